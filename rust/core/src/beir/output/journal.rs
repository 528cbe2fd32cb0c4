//! The journal of a publication into a directory that holds other files, and how the next run undoes or completes what
//! a killed run began.
//!
//! A journal lists device, inode and name of every part that is moved into the output. An old file is moved aside into
//! the staging directory first, under its name with a prefix.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::handle::{file_type, list_names, open_directory, remove_tree, rename_without_replacing, status, write_file};
use super::layout::{CORPUS, FILES, JUDGMENTS, STAGING_SUFFIX};
use super::system_calls;

/// The name of the journal in a staging directory.
pub const JOURNAL: &str = "journal";
/// The directory in a staging directory that holds the new output.
pub const NEW: &str = "new";

const FIRST_LINE: &str = "groundkit staging 1\n";
const OLD_PREFIX: &str = "old-";

/// Bytes of a journal that are read: more than any that this package writes.
const SIZE_LIMIT: u64 = 4096;

/// A file or directory that is moved into the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    device: u64,
    inode: u64,
    name: String,
}

impl Part {
    /// Identify `name` in `directory`.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn identify(directory: impl AsFd, name: &str) -> Result<Self, Errno> {
        let stat = status(directory, name)?.ok_or(Errno::NOENT)?;
        Ok(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            name: name.to_owned(),
        })
    }

    fn is(&self, stat: &Stat) -> bool {
        (stat.st_dev, stat.st_ino) == (self.device, self.inode)
    }
}

/// Start a journal without parts, by which a staging directory is known as one of this package.
///
/// # Errors
/// What the operating system says.
pub fn start(staging: &OwnedFd) -> Result<(), Errno> {
    write_file(staging, JOURNAL, FIRST_LINE.as_bytes())
}

/// Read the parts that a run had begun to publish; `None` where the directory holds no journal of this package.
///
/// # Errors
/// What the operating system says.
pub fn read(staging: &OwnedFd) -> Result<Option<Vec<Part>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match system_calls::openat(staging, JOURNAL, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    if File::from(file).take(SIZE_LIMIT).read_to_string(&mut text).is_err() {
        return Ok(None);
    }
    let Some(lines) = text.strip_prefix(FIRST_LINE) else {
        // A run killed while it wrote the first line left a part of it.
        return Ok(FIRST_LINE.starts_with(&text).then(Vec::new));
    };
    let part = |line: &str| {
        let mut words = line.splitn(3, ' ');
        Some(Part {
            device: words.next()?.parse().ok()?,
            inode: words.next()?.parse().ok()?,
            name: words.next()?.to_owned(),
        })
    };
    Ok(Some(lines.lines().filter_map(part).collect()))
}

/// Replace the journal; a reader sees the old one or the new one whole.
///
/// # Errors
/// What the operating system says.
pub fn write(staging: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    const NEXT: &str = "journal-next";
    let mut text = FIRST_LINE.to_owned();
    for Part { device, inode, name } in parts {
        let _ = writeln!(text, "{device} {inode} {name}");
    }
    // A run that was killed while it wrote may have left one.
    remove_tree(staging, NEXT.as_ref(), &|| false)?;
    write_file(staging, NEXT, text.as_bytes())?;
    system_calls::renameat(staging, NEXT, staging, JOURNAL)
}

/// Move the parts into an output, in their order, after the files that they replace were moved aside.
///
/// # Errors
/// What the operating system says; then [`undo`] brings the output back.
pub fn move_in(staging: &OwnedFd, new: &OwnedFd, output: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    write(staging, parts)?;
    // Old files go first, so that they are never beside a new corpus.
    for name in FILES {
        match status(output, name)? {
            None => {}
            Some(stat) if file_type(&stat) == FileType::RegularFile => {
                system_calls::renameat(output, name, staging, format!("{OLD_PREFIX}{name}"))?;
            }
            Some(_) => return Err(Errno::EXIST),
        }
    }
    for Part { name, .. } in parts {
        // Something may have been put there since: a directory replaces an empty directory only, a file nothing.
        if name == CORPUS {
            system_calls::renameat(new, name, output, name)?;
        } else {
            rename_without_replacing(new, name, output)?;
        }
    }
    Ok(())
}

/// Move the parts out of an output, and the files that were moved aside back.
///
/// # Errors
/// What the operating system says; the next run tries again.
pub fn undo(staging: &OwnedFd, new: &OwnedFd, output: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    for part in parts {
        if status(output, &part.name)?.is_some_and(|stat| part.is(&stat)) {
            system_calls::renameat(output, &part.name, new, &part.name)?;
        }
    }
    for old in list_names(staging, usize::MAX)? {
        if let Some(name) = old.as_bytes().strip_prefix(OLD_PREFIX.as_bytes()) {
            system_calls::renameat(staging, &old, output, OsStr::from_bytes(name))?;
        }
    }
    // Once the parts are gone, their inodes may be given to other files; the journal must not name them then. Where it
    // cannot be written, it is removed right after.
    let _ = write(staging, &[]);
    Ok(())
}

/// Bring an output back to what it was before a run that was killed while it published.
///
/// # Errors
/// What the operating system says.
pub fn recover(staging: &OwnedFd, output: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    let Some(last) = parts.last() else {
        return Ok(());
    };
    let new = match open_directory(staging, NEW) {
        Ok(new) => new,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    // Once the last part has left the staging directory, the run was complete.
    if status(&new, &last.name)?.is_none() {
        return Ok(());
    }
    undo(staging, &new, output, parts)
}

/// Whether the `corpus` of an output was put there by a run that was killed before its judgments came.
#[must_use]
pub fn is_unfinished(output: &OwnedFd, corpus: &Stat) -> bool {
    let Ok(staging) = open_directory(output, STAGING_SUFFIX) else {
        return false;
    };
    let parts = read(&staging).ok().flatten().unwrap_or_default();
    let is_journaled = parts.iter().any(|part| part.name == CORPUS && part.is(corpus));
    let waiting = open_directory(&staging, NEW).and_then(|new| status(new, JUDGMENTS));
    is_journaled && matches!(waiting, Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::super::handle::make_directory;
    use super::*;

    #[test]
    fn an_undone_publication_is_forgotten_so_that_its_inodes_may_be_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let output = File::open(directory.path()).unwrap().into();
        let staging = make_directory(&output, "staging", 0o700).unwrap();
        let new = make_directory(&staging, NEW, 0o700).unwrap();
        make_directory(&output, CORPUS, 0o700).unwrap();
        let parts = [Part::identify(&output, CORPUS).unwrap()];
        // What a run leaves that was killed while it wrote its journal.
        write_file(&staging, "journal-next", b"half").unwrap();
        write(&staging, &parts).unwrap();
        assert_eq!(read(&staging).unwrap().unwrap(), parts);
        undo(&staging, &new, &output, &parts).unwrap();
        assert!(status(&output, CORPUS).unwrap().is_none());
        assert!(status(&new, CORPUS).unwrap().is_some());
        assert_eq!(read(&staging).unwrap().unwrap(), []);
    }
}
