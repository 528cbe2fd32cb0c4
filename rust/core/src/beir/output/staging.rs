//! All or nothing: everything is written to a hidden staging directory and appears by renaming.
//!
//! Where the output is absent or an empty directory, the staging directory is beside it and one rename publishes. Where
//! the output holds other files, the staging directory is inside it, and the parts are renamed one by one,
//! `judgments.jsonl` last; a [journal](super::journal) lets the next run undo or complete what a killed run began. A lock
//! on the staging directory excludes two runs into one output; the kernel releases it when a run dies.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode};
use rustix::io::Errno;

use super::handle::{
    Destination, file_type, is_same_file, list_names, make_directory, open_directory, remove_tree, status,
};
use super::journal::{self, JOURNAL, NEW, Part};
use super::layout::{CORPUS, JUDGMENTS, STAGING_SUFFIX};
use super::system_calls;
use crate::beir::check::identifier::FILENAME_LIMIT;
use crate::error::Error;
use crate::stop::Stop;

/// A locked staging directory; dropped without [`Staging::publish`], it leaves the output as it was.
#[derive(Debug)]
pub struct Staging {
    destination: Destination,
    site: Site,
    directory: OwnedFd,
    new: OwnedFd,
    parents: CreatedParents,
    stop: Stop,
    /// Whether nothing is left to clear.
    is_settled: bool,
}

/// Where a staging directory is.
#[derive(Debug)]
enum Site {
    /// Beside the output, in its parent directory.
    Beside {
        parent: OwnedFd,
        name: OsString,
        staging_name: OsString,
    },
    /// In the output.
    Inside { output: OwnedFd },
}

/// Parent directories that a run made; dropped, they are removed.
#[derive(Debug, Default)]
struct CreatedParents(Vec<(OwnedFd, OsString)>);

impl Drop for CreatedParents {
    fn drop(&mut self) {
        for (parent, name) in self.0.drain(..).rev() {
            // Fails where somebody else put something into it; then it is theirs.
            let _ = system_calls::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

impl Staging {
    /// Lock the output, clear what a killed run left, and make the directories to write to.
    ///
    /// # Errors
    /// [`Error::Output`] when another run holds the lock or the file system refuses, [`Error::Interrupted`].
    pub fn begin(destination: Destination, stop: &Stop) -> Result<Self, Error> {
        let path = &destination.path;
        let name = path
            .file_name()
            .ok_or_else(|| Error::output(path, "cannot be an output directory"))?
            .to_owned();
        let (mut parent, absent) = destination.open_ancestor(parent_of(path))?;
        let mut parents = CreatedParents::default();
        for component in absent {
            let created = match make_directory(&parent, component, 0o777) {
                // Another run may have made it since.
                Err(Errno::EXIST) => {
                    parent = open_directory(&parent, component)
                        .map_err(|error| destination.error("open the parent directory of", "", error))?;
                    continue;
                }
                created => created.map_err(|error| destination.error("create the parent directory of", "", error))?,
            };
            let within = std::mem::replace(&mut parent, created);
            parents.0.push((within, component.to_owned()));
        }
        let (site, directory) = choose_site(&destination, parent, name, stop)?;
        let new = make_directory(&directory, NEW, 0o777).map_err(|error| {
            let (within, name) = site.staging();
            discard(within, name, &directory, stop);
            destination.error("create a staging directory for", "", error)
        })?;
        Ok(Self {
            destination,
            site,
            directory,
            new,
            parents,
            stop: stop.clone(),
            is_settled: false,
        })
    }

    /// The directory to fill.
    #[must_use]
    pub fn new_output(&self) -> &OwnedFd {
        &self.new
    }

    /// Make a directory in the one to fill, or in one made by this.
    ///
    /// # Errors
    /// [`Error::Output`] when the file system refuses.
    pub fn make_directory(&self, within: &OwnedFd, name: &str) -> Result<OwnedFd, Error> {
        make_directory(within, name, 0o777).map_err(|error| self.error("create", name, error))
    }

    /// Make the error that says what could not be done with `name` of the output.
    #[must_use]
    pub fn error(&self, action: &str, name: &str, error: Errno) -> Error {
        self.destination.error(action, name, error)
    }

    /// Make the error that says what is wrong with `name` of the output.
    #[must_use]
    pub fn refuse(&self, name: &str, what: &str) -> Error {
        Error::output(&self.destination.path.join(name), what)
    }

    /// Let the corpus and the `files` appear, and `judgments.jsonl` last.
    ///
    /// With `durable`, all of it is on the disk before it appears, and its appearance when this returns.
    ///
    /// # Errors
    /// [`Error::Output`]; the output is then as it was.
    pub fn publish(mut self, files: &[&str], durable: bool) -> Result<(), Error> {
        if durable {
            system_calls::syncfs(&self.directory).map_err(|error| self.error("sync", "", error))?;
        }
        match &self.site {
            Site::Beside { parent, name, .. } => {
                if let Ok(replaced) = open_directory(parent, name) {
                    copy_mode_and_owner(&replaced, &self.new)
                        .map_err(|error| self.error("set the mode of", "", error))?;
                }
                system_calls::renameat(&self.directory, NEW, parent, name)
                    .map_err(|error| self.error("move the finished output to", "", error))?;
                self.is_settled = true;
            }
            Site::Inside { output } => {
                let names = [CORPUS].iter().chain(files).chain(&[JUDGMENTS]);
                let parts: Vec<_> = names
                    .map(|name| Part::identify(&self.new, name))
                    .collect::<Result<_, _>>()
                    .map_err(|error| self.error("examine", "", error))?;
                if let Err(error) = journal::move_in(&self.directory, &self.new, output, &parts) {
                    let undone = journal::undo(&self.directory, &self.new, output, &parts);
                    // What could not be undone is left to the next run, which reads the journal.
                    self.is_settled = undone.is_err();
                    return Err(self.error("move the finished parts into", "", error));
                }
                self.is_settled = true;
            }
        }
        let synced = match &self.site {
            _ if !durable => Ok(()),
            Site::Beside { parent, .. } => system_calls::fsync(parent),
            Site::Inside { output } => system_calls::fsync(output),
        };
        // All has appeared, whether or not the disk could confirm it, so the staging directory has no further use.
        self.parents.0.clear();
        self.clear();
        synced.map_err(|error| self.error("sync", "", error))
    }

    /// Remove the staging directory. What cannot be removed is left to the next run, which recognises it.
    fn clear(&self) {
        let (directory, name) = self.site.staging();
        // The name may belong to something else by now; only what is locked is removed.
        if let (Ok(held), Ok(Some(named))) = (system_calls::fstat(&self.directory), status(directory, name))
            && is_same_file(&held, &named)
        {
            discard(directory, name, &self.directory, &self.stop);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_settled {
            self.clear();
        }
    }
}

impl Site {
    /// The directory that the staging directory is in, and its name there.
    fn staging(&self) -> (&OwnedFd, &OsStr) {
        match self {
            Self::Beside {
                parent, staging_name, ..
            } => (parent, staging_name),
            Self::Inside { output } => (output, STAGING_SUFFIX.as_ref()),
        }
    }
}

/// Find where to stage, and lock a staging directory there.
fn choose_site(
    destination: &Destination,
    parent: OwnedFd,
    name: OsString,
    stop: &Stop,
) -> Result<(Site, OwnedFd), Error> {
    let existing = match open_directory(&parent, &name) {
        Ok(existing) => Some(existing),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(destination.error("open", "", error)),
    };
    let examine = |error| destination.error("examine", "", error);
    let is_free = match &existing {
        None => true,
        // One rename can replace an empty directory, but not the root of another file system.
        Some(directory) => {
            list_names(directory, 1).map_err(examine)?.is_empty()
                && system_calls::fstat(directory).map_err(examine)?.st_dev
                    == system_calls::fstat(&parent).map_err(examine)?.st_dev
        }
    };
    let staging_name = staging_name(&name);
    if is_free {
        match lock(&parent, &staging_name, None, stop) {
            Ok(staging) => {
                let site = Site::Beside {
                    parent,
                    name,
                    staging_name,
                };
                return Ok((site, staging));
            }
            // The output itself may still be writable.
            Err(LockFailure::Unwritable(_)) if existing.is_some() => {}
            Err(failure) => {
                let path = parent_of(&destination.path).join(&staging_name);
                return Err(failure.into_error(destination, &path));
            }
        }
    }
    let Some(output) = existing else {
        return Err(destination.error("create", "", Errno::NOENT));
    };
    // A run that found the output free may still be under way beside it, or have left its staging directory.
    if status(&parent, &staging_name).map_err(examine)?.is_some() {
        match lock(&parent, &staging_name, None, stop) {
            Ok(leftover) => {
                let _ = empty(&leftover, &|| stop.is_requested());
                let _ = system_calls::unlinkat(&parent, &staging_name, AtFlags::REMOVEDIR);
            }
            Err(failure @ LockFailure::Busy) => return Err(failure.into_error(destination, &destination.path)),
            Err(_) => {}
        }
    }
    let staging = lock(&output, STAGING_SUFFIX.as_ref(), Some(&output), stop)
        .map_err(|failure| failure.into_error(destination, &destination.path.join(STAGING_SUFFIX)))?;
    Ok((Site::Inside { output }, staging))
}

/// Why a staging directory could not be locked.
enum LockFailure {
    /// Another run holds the lock.
    Busy,
    /// Something else has its name.
    Foreign(&'static str),
    /// No directory can be made there.
    Unwritable(Errno),
    /// The operating system refuses.
    System(Errno),
}

impl LockFailure {
    /// Say it of the `destination`, or of the `path` of the staging directory.
    fn into_error(self, destination: &Destination, path: &Path) -> Error {
        match self {
            Self::Busy => Error::output(
                &destination.path,
                "is being written by another adaptation; wait until it ends",
            ),
            Self::Foreign(what) => Error::output(
                path,
                &format!("is {what} where the staging directory belongs; groundkit did not make it, so remove it"),
            ),
            Self::Unwritable(error) | Self::System(error) => {
                destination.error("create a staging directory for", "", error)
            }
        }
    }
}

impl From<Errno> for LockFailure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

/// Make or take over a staging directory and lock it. `output` is where a killed run may have put parts.
fn lock(directory: &OwnedFd, name: &OsStr, output: Option<&OwnedFd>, stop: &Stop) -> Result<OwnedFd, LockFailure> {
    loop {
        let is_new = match system_calls::mkdirat(directory, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => return Err(LockFailure::Unwritable(error)),
            Err(error) => return Err(LockFailure::System(error)),
        };
        match lock_existing(directory, name, output, stop) {
            Ok(Some(staging)) => return Ok(staging),
            Ok(None) => {}
            Err(failure) => {
                if is_new {
                    // Only an empty one is removed this way.
                    let _ = system_calls::unlinkat(directory, name, AtFlags::REMOVEDIR);
                }
                return Err(failure);
            }
        }
    }
}

/// Lock a staging directory, and clear it; `None` where its owner has just removed it.
fn lock_existing(
    directory: &OwnedFd,
    name: &OsStr,
    output: Option<&OwnedFd>,
    stop: &Stop,
) -> Result<Option<OwnedFd>, LockFailure> {
    let staging = match open_directory(directory, name) {
        Ok(staging) => staging,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(LockFailure::Foreign("a symbolic link")),
        Err(Errno::NOTDIR) => {
            let link = status(directory, name)?.is_some_and(|stat| file_type(&stat) == FileType::Symlink);
            return Err(LockFailure::Foreign(if link { "a symbolic link" } else { "a file" }));
        }
        Err(error) => return Err(LockFailure::System(error)),
    };
    match system_calls::flock(&staging, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(LockFailure::Busy),
        outcome => outcome?,
    }
    // Between opening and locking, the owner may have removed this directory and another run made a new one.
    let held = system_calls::fstat(&staging)?;
    if !status(directory, name)?.is_some_and(|named| is_same_file(&named, &held)) {
        return Ok(None);
    }
    if !list_names(&staging, 1)?.is_empty() {
        let Some(parts) = journal::read(&staging)? else {
            return Err(LockFailure::Foreign("a directory without a journal"));
        };
        if let Some(output) = output {
            journal::recover(&staging, output, &parts)?;
        }
        empty(&staging, &|| stop.is_requested())?;
    }
    if let Err(error) = journal::start(&staging) {
        discard(directory, name, &staging, stop);
        return Err(LockFailure::System(error));
    }
    Ok(Some(staging))
}

/// Remove a staging directory that is locked; what cannot be removed, or not in time, is left to the next run.
fn discard(directory: &OwnedFd, name: &OsStr, staging: &OwnedFd, stop: &Stop) {
    if empty(staging, &|| stop.is_urgent()).is_ok() {
        let _ = system_calls::unlinkat(directory, name, AtFlags::REMOVEDIR);
    }
}

/// Remove all that a staging directory holds, the journal last, so that it stays recognisable.
fn empty(staging: &OwnedFd, is_cancelled: &dyn Fn() -> bool) -> Result<(), Errno> {
    for name in list_names(staging, usize::MAX)? {
        if name != JOURNAL {
            remove_tree(staging, &name, is_cancelled)?;
        }
    }
    remove_tree(staging, JOURNAL.as_ref(), is_cancelled)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// The name of the staging directory beside an output.
fn staging_name(name: &OsStr) -> OsString {
    let mut staging = OsString::from(".");
    if name.len() + 1 + STAGING_SUFFIX.len() <= FILENAME_LIMIT {
        staging.push(name);
    } else {
        staging.push(blake3::hash(name.as_encoded_bytes()).to_hex().as_str());
    }
    staging.push(STAGING_SUFFIX);
    staging
}

/// Give a directory the mode of the empty one that it replaces and, where that may be set, its owner.
fn copy_mode_and_owner(replaced: &OwnedFd, directory: &OwnedFd) -> Result<(), Errno> {
    let stat = system_calls::fstat(replaced)?;
    let (uid, gid) = (
        rustix::fs::Uid::from_raw(stat.st_uid),
        rustix::fs::Gid::from_raw(stat.st_gid),
    );
    let _ = system_calls::fchown(directory, uid, gid);
    system_calls::fchmod(directory, Mode::from_raw_mode(stat.st_mode))
}
