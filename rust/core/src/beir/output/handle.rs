//! Files and directories below an open directory: every name is one component, and no link is followed.
//!
//! Whatever is planted or swapped in while a run is under way is refused and cannot lead outside the output.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::system_calls;
use crate::error::Error;
use crate::stop::Stop;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Names listed at once while a directory is emptied: it may hold millions.
const REMOVED_AT_ONCE: usize = 1 << 12;

/// The output directory as the caller names it: resolved, absolute, and perhaps absent.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The path.
    pub path: PathBuf,
}

impl Destination {
    /// Take a resolved absolute path.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Make the error that says what could not be done with `name` in it, or with itself where `name` is empty.
    #[must_use]
    pub fn error(&self, action: &str, name: &str, error: Errno) -> Error {
        if error == Errno::CANCELED {
            return Error::Interrupted;
        }
        let path = if name.is_empty() {
            self.path.clone()
        } else {
            self.path.join(name)
        };
        Error::output(&path, &format!("cannot {action}: {}", io::Error::from(error)))
    }

    /// Open the nearest existing ancestor of `path`, component by component, and list the components that are absent.
    ///
    /// # Errors
    /// [`Error::Output`] where a component is no directory, is a link, or cannot be opened.
    pub fn open_ancestor<'a>(&self, path: &'a Path) -> Result<(OwnedFd, Vec<&'a OsStr>), Error> {
        let mut directory =
            system_calls::openat(CWD, "/", DIRECTORY, Mode::empty()).map_err(|error| self.error("open", "", error))?;
        let mut components = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        while let Some(name) = components.next() {
            match open_directory(&directory, name) {
                Ok(inner) => directory = inner,
                Err(Errno::NOENT) => return Ok((directory, std::iter::once(name).chain(components).collect())),
                Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                    return Err(self.refuse_component(&directory, name, error));
                }
                Err(error) => return Err(self.error("open", "", error)),
            }
        }
        Ok((directory, Vec::new()))
    }

    fn refuse_component(&self, directory: &OwnedFd, name: &OsStr, error: Errno) -> Error {
        // The path was resolved, so a link here was put there since.
        let is_link =
            status(directory, name).is_ok_and(|stat| stat.is_some_and(|stat| file_type(&stat) == FileType::Symlink));
        let reason = if is_link {
            "resolves outside the output directory: a component of its path has become a symbolic link".to_owned()
        } else {
            format!("is not a directory, or lies below a file: {}", io::Error::from(error))
        };
        Error::output(&self.path, &reason)
    }
}

/// Create a file that must not exist yet, relative to a directory; `access` is how it is opened.
///
/// # Errors
/// What the operating system says.
pub fn create_file(directory: impl AsFd, name: &str, access: OFlags) -> Result<OwnedFd, Errno> {
    // A second barrier, independent of the rules for identifiers: one ordinary component and nothing else.
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only.as_bytes() == name.as_bytes() => {
            system_calls::openat(directory, name, NEW_FILE | access, Mode::from_raw_mode(0o666))
        }
        _ => Err(Errno::INVAL),
    }
}

/// Create a file with this content.
///
/// # Errors
/// What the operating system says.
pub fn write_file(directory: impl AsFd, name: &str, content: &[u8]) -> Result<(), Errno> {
    File::from(create_file(directory, name, OFlags::WRONLY)?)
        .write_all(content)
        .map_err(|error| errno_of(&error))
}

/// Open a directory.
///
/// # Errors
/// What the operating system says.
pub fn open_directory(directory: impl AsFd, name: impl AsRef<OsStr>) -> Result<OwnedFd, Errno> {
    system_calls::openat(directory, name, DIRECTORY, Mode::empty())
}

/// Make a directory and open it.
///
/// # Errors
/// What the operating system says; then it is not there.
pub fn make_directory(directory: impl AsFd, name: impl AsRef<OsStr>, mode: u32) -> Result<OwnedFd, Errno> {
    system_calls::mkdirat(&directory, &name, Mode::from_raw_mode(mode))?;
    open_directory(&directory, &name).inspect_err(|_| {
        // The caller does not know of it, so nobody else would remove it.
        let _ = system_calls::unlinkat(&directory, &name, AtFlags::REMOVEDIR);
    })
}

/// The status of a name, `None` where there is nothing.
///
/// # Errors
/// What the operating system says.
pub fn status(directory: impl AsFd, name: impl AsRef<OsStr>) -> Result<Option<Stat>, Errno> {
    match system_calls::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What kind of file a status is of.
#[must_use]
pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether two statuses are of one file.
#[must_use]
pub fn is_same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// List up to `limit` names in a directory; a listing that was interrupted starts again.
///
/// # Errors
/// What the operating system says.
pub fn list_names(directory: impl AsFd, limit: usize) -> Result<Vec<OsString>, Errno> {
    retry_on_intr(|| names(&directory)?.take(limit).collect())
}

fn names(directory: impl AsFd) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
    let names = Dir::read_from(directory)?
        .map(|entry| entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()));
    Ok(names.filter(|name| name.as_ref().map_or(true, |name| name != "." && name != "..")))
}

/// Count the names in a directory, and find the first in order.
///
/// # Errors
/// What the operating system says, and [`Errno::CANCELED`] once the `stop` is requested.
pub fn count_names(directory: impl AsFd, stop: &Stop) -> Result<(u64, Option<OsString>), Errno> {
    retry_on_intr(|| {
        let (mut count, mut first) = (0, None);
        for name in names(&directory)? {
            if stop.is_requested() {
                return Err(Errno::CANCELED);
            }
            let name = name?;
            count += 1;
            if first.as_ref().is_none_or(|first| name < *first) {
                first = Some(name);
            }
        }
        Ok((count, first))
    })
}

/// Remove a name and everything below it; what is absent is removed already.
///
/// # Errors
/// What the operating system says, and [`Errno::CANCELED`] once `is_cancelled`, which is asked before every file.
pub fn remove_tree(directory: impl AsFd, name: &OsStr, is_cancelled: &dyn Fn() -> bool) -> Result<(), Errno> {
    if is_cancelled() {
        return Err(Errno::CANCELED);
    }
    match system_calls::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // Linux says the one of a directory, and POSIX and macOS the other.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let inner = open_directory(&directory, name)?;
    // A listing that goes on while its entries are removed may skip some.
    loop {
        let some = list_names(&inner, REMOVED_AT_ONCE)?;
        if some.is_empty() {
            break;
        }
        for name in some {
            remove_tree(&inner, &name, is_cancelled)?;
        }
    }
    system_calls::unlinkat(directory, name, AtFlags::REMOVEDIR)
}

/// Move a file to the same name in another directory, where nothing may have that name.
///
/// # Errors
/// What the operating system says, [`Errno::EXIST`] where the name is taken.
pub fn rename_without_replacing(from: impl AsFd, name: &str, to: impl AsFd) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    match system_calls::renameat_without_replacing(&from, name, &to, name) {
        // Some network file systems do not know the flag.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        outcome => return outcome,
    }
    if status(&to, name)?.is_some() {
        return Err(Errno::EXIST);
    }
    system_calls::renameat(from, name, to, name)
}

/// The number of an error, [`Errno::IO`] where it has none.
#[must_use]
pub fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_single_component_is_never_created() {
        let directory = tempfile::tempdir().unwrap();
        let handle = File::open(directory.path()).unwrap();
        for name in ["", ".", "..", "a/b", "/a", "a/", "./a"] {
            assert!(create_file(&handle, name, OFlags::WRONLY).is_err(), "{name:?}");
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        create_file(&handle, "a", OFlags::WRONLY).unwrap();
        assert_eq!(create_file(&handle, "a", OFlags::WRONLY).unwrap_err(), Errno::EXIST);
    }

    #[test]
    fn a_link_is_removed_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join("file"), "mine").unwrap();
        std::fs::create_dir_all(directory.path().join("tree/inner")).unwrap();
        std::os::unix::fs::symlink(&kept, directory.path().join("tree/inner/link")).unwrap();
        let handle = File::open(directory.path()).unwrap();
        remove_tree(&handle, "tree".as_ref(), &|| false).unwrap();
        assert_eq!(list_names(&handle, 9).unwrap(), ["kept"]);
        assert_eq!(std::fs::read_to_string(kept.join("file")).unwrap(), "mine");
        assert_eq!(
            remove_tree(&handle, "kept".as_ref(), &|| true).unwrap_err(),
            Errno::CANCELED
        );
    }
}
