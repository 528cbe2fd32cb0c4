//! All or nothing: everything is written to a hidden staging directory and appears by renaming.
//!
//! Every name is opened relative to a directory handle and never through a link, so what is planted or swapped in while
//! a run is under way is refused and cannot lead outside the output.
//!
//! Where the output is absent or an empty directory, the staging directory stands beside it and one rename publishes.
//! Where the output holds other files, the staging directory stands inside it, and the parts are renamed one by one,
//! `judgments.jsonl` last; a journal in the staging directory lets the next run undo or complete what a killed run
//! began. A lock on the staging directory excludes two runs into one output; the kernel drops it when a run dies.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::capacity::Capacity;
use super::layout::{CORPUS, FILES, JUDGMENTS, Layout};
use super::system_calls;
use crate::beir::check::space::Space;
use crate::error::Error;
use crate::stop::Stop;

const STAGING_SUFFIX: &str = ".groundkit-staging";
const JOURNAL: &str = "journal";
const JOURNAL_START: &str = "groundkit staging 1\n";
const NEW: &str = "new";
const OLD_PREFIX: &str = "old-";

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::CREATE
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Create a file that must not exist yet, relative to a directory; `access` is how it is opened.
///
/// # Errors
/// What the operating system says.
pub fn create(directory: impl AsFd, name: &str, access: OFlags) -> Result<OwnedFd, Errno> {
    // A second barrier, independent of the rules for identifiers: one ordinary component and nothing else.
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only.as_bytes() == name.as_bytes() => {
            system_calls::openat(directory, name, NEW_FILE | access, Mode::from_raw_mode(0o666))
        }
        _ => Err(Errno::INVAL),
    }
}

fn open_directory(directory: impl AsFd, name: impl AsRef<OsStr>) -> Result<OwnedFd, Errno> {
    system_calls::openat(directory, name, DIRECTORY, Mode::empty())
}

fn make_directory(directory: impl AsFd, name: impl AsRef<OsStr>, mode: u32) -> Result<OwnedFd, Errno> {
    system_calls::mkdirat(&directory, &name, Mode::from_raw_mode(mode))?;
    open_directory(&directory, &name).inspect_err(|_| {
        // Nobody knows of it yet who would remove it.
        let _ = system_calls::unlinkat(&directory, &name, AtFlags::REMOVEDIR);
    })
}

/// The status of a name, `None` where there is nothing; a link is not followed.
fn status(directory: impl AsFd, name: impl AsRef<OsStr>) -> Result<Option<Stat>, Errno> {
    match system_calls::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names in a directory, in one go or none: a listing that was interrupted starts again.
fn list(directory: impl AsFd, limit: usize) -> Result<Vec<OsString>, Errno> {
    retry_on_intr(|| names(&directory)?.take(limit).collect())
}

/// The names in a directory.
fn names(directory: impl AsFd) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
    let names = Dir::read_from(directory)?
        .map(|entry| entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned()));
    Ok(names.filter(|name| name.as_ref().map_or(true, |name| name != "." && name != "..")))
}

/// How many names there are in a directory, and the first of them in order.
fn count(directory: impl AsFd, stop: &Stop) -> Result<(u64, Option<OsString>), Errno> {
    let (mut count, mut first) = (0, None);
    for name in names(directory)? {
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
}

/// Remove a name and everything below it, never through a link. What is absent is removed already. `ended` is asked
/// before every file, since there may be millions, and ends it with [`Errno::CANCELED`].
fn remove(directory: impl AsFd, name: &OsStr, ended: &dyn Fn() -> bool) -> Result<(), Errno> {
    if ended() {
        return Err(Errno::CANCELED);
    }
    match system_calls::unlinkat(&directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let inner = open_directory(&directory, name)?;
    // Neither all names at once, which may be millions, nor a listing that goes on while its entries go away.
    loop {
        let some = list(&inner, 1 << 12)?;
        if some.is_empty() {
            break;
        }
        for name in some {
            remove(&inner, &name, ended)?;
        }
    }
    system_calls::unlinkat(directory, name, AtFlags::REMOVEDIR)
}

/// The output directory as the caller names it: resolved, absolute, and perhaps absent.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
}

impl Output {
    /// Take a resolved absolute path.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn failure(&self, what: &str, name: &str, error: Errno) -> Error {
        if error == Errno::CANCELED {
            return Error::Interrupted;
        }
        let path = if name.is_empty() {
            self.path.clone()
        } else {
            self.path.join(name)
        };
        Error::output(&path, &format!("cannot {what}: {}", io::Error::from(error)))
    }

    /// Open the nearest ancestor that exists, component by component, and list the components that do not.
    fn open_ancestor<'a>(&self, path: &'a Path) -> Result<(OwnedFd, Vec<&'a OsStr>), Error> {
        let mut directory = system_calls::openat(CWD, "/", DIRECTORY, Mode::empty())
            .map_err(|error| self.failure("open", "", error))?;
        let mut components = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        while let Some(name) = components.next() {
            match open_directory(&directory, name) {
                Ok(inner) => directory = inner,
                Err(Errno::NOENT) => return Ok((directory, std::iter::once(name).chain(components).collect())),
                // The path was resolved, so a link here was put there since.
                Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                    let is_link = status(&directory, name)
                        .is_ok_and(|stat| stat.is_some_and(|stat| kind(&stat) == FileType::Symlink));
                    return Err(if is_link {
                        Error::output(
                            &self.path,
                            "resolves outside the output directory: a part of it is a symbolic link now",
                        )
                    } else {
                        let reason = io::Error::from(error);
                        Error::output(
                            &self.path,
                            &format!("is not a directory, or lies below a file: {reason}"),
                        )
                    });
                }
                Err(error) => return Err(self.failure("open", "", error)),
            }
        }
        Ok((directory, Vec::new()))
    }

    /// Say what stands in the way of publishing documents of that `space`, without writing anything.
    ///
    /// # Errors
    /// [`Error::Output`] when the file system cannot be asked, [`Error::Interrupted`].
    pub fn obstacles(&self, space: &Space, layout: Layout, stop: &Stop) -> Result<Vec<String>, Error> {
        let (directory, absent) = match self.open_ancestor(&self.path) {
            Ok(opened) => opened,
            Err(Error::Output { message }) => return Ok(vec![message]),
            Err(error) => return Err(error),
        };
        let capacity = Capacity::of(&directory).map_err(|error| self.failure("examine", "", error))?;
        let shortages = capacity.find_shortages(space, layout);
        let path = crate::text::quote(&self.path.to_string_lossy());
        let mut obstacles: Vec<_> = shortages
            .iter()
            .map(|shortage| format!("output {path} {shortage}"))
            .collect();
        if !absent.is_empty() {
            return Ok(obstacles);
        }
        let quoted = |name: &str| crate::text::quote(&self.path.join(name).to_string_lossy());
        let stat_of = |name: &str| status(&directory, name).map_err(|error| self.failure("examine", name, error));
        match stat_of(CORPUS)? {
            Some(stat) if kind(&stat) == FileType::Symlink => obstacles.push(format!(
                "output corpus path {} is a symbolic link, through which documents would land elsewhere; remove it",
                quoted(CORPUS)
            )),
            Some(stat) if kind(&stat) != FileType::Directory => obstacles.push(format!(
                "output corpus path {} is not a directory; remove it",
                quoted(CORPUS)
            )),
            Some(stat) if !is_unfinished(&directory, &stat) => {
                let inner = open_directory(&directory, CORPUS).map_err(|error| self.failure("open", CORPUS, error))?;
                let (count, first) =
                    retry_on_intr(|| count(&inner, stop)).map_err(|error| self.failure("list", CORPUS, error))?;
                if let Some(first) = first {
                    obstacles.push(format!(
                        "output corpus directory {} already contains {} entries, such as {}; adapting into it would \
                         mix two datasets: remove it or name another output",
                        quoted(CORPUS),
                        count,
                        crate::text::quote(&first.to_string_lossy())
                    ));
                }
            }
            _ => {}
        }
        for name in FILES {
            let what = name.split('.').next().unwrap_or(name);
            match stat_of(name)? {
                Some(stat) if kind(&stat) == FileType::Symlink => obstacles.push(format!(
                    "output {what} path {} is a symbolic link; remove it",
                    quoted(name)
                )),
                Some(stat) if kind(&stat) != FileType::RegularFile => obstacles.push(format!(
                    "output {what} path {} is not a regular file; remove it",
                    quoted(name)
                )),
                _ => {}
            }
        }
        Ok(obstacles)
    }

    /// Lock the output, clear what a killed run left, and make the directories to write to.
    ///
    /// # Errors
    /// [`Error::Output`] when another run holds the lock or the file system refuses, [`Error::Interrupted`].
    pub fn stage(self, stop: &Stop) -> Result<Staging, Error> {
        let name = self
            .path
            .file_name()
            .ok_or_else(|| Error::output(&self.path, "cannot be an output directory"))?;
        let name = name.to_owned();
        let parent_path = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        let (mut parent, absent) = self.open_ancestor(&parent_path)?;
        let mut created = Created::default();
        for component in absent {
            let made = match make_directory(&parent, component, 0o777) {
                // Another run may have made it since.
                Err(Errno::EXIST) => {
                    parent = open_directory(&parent, component)
                        .map_err(|error| self.failure("open the parent directory of", "", error))?;
                    continue;
                }
                made => made.map_err(|error| self.failure("create the parent directory of", "", error))?,
            };
            created
                .0
                .push((std::mem::replace(&mut parent, made), component.to_owned()));
        }
        let (place, directory, new) = self.stage_within(parent, &name, stop)?;
        Ok(Staging {
            output: self,
            place,
            directory,
            new,
            created,
            stop: stop.clone(),
            done: false,
        })
    }

    fn stage_within(&self, parent: OwnedFd, name: &OsStr, stop: &Stop) -> Result<(Place, OwnedFd, OwnedFd), Error> {
        let existing = match open_directory(&parent, name) {
            Ok(existing) => Some(existing),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(self.failure("open", "", error)),
        };
        let examine = |error| self.failure("examine", "", error);
        let is_free = match &existing {
            None => true,
            // One rename can replace an empty directory, but not the root of another file system.
            Some(directory) => {
                list(directory, 1).map_err(examine)?.is_empty()
                    && system_calls::fstat(directory).map_err(examine)?.st_dev
                        == system_calls::fstat(&parent).map_err(examine)?.st_dev
            }
        };
        let staging_name = staging_name(name);
        if is_free {
            match lock(&parent, &staging_name, None, stop) {
                Ok(staging) => {
                    let new = self.make_new(&parent, &staging_name, &staging, stop)?;
                    return Ok((
                        Place::Beside {
                            parent,
                            name: name.to_owned(),
                            staging_name,
                        },
                        staging,
                        new,
                    ));
                }
                // The output itself may still be writable.
                Err(LockFailure::Unwritable(_)) if existing.is_some() => {}
                Err(failure) => return Err(self.describe(&failure, &parent_of(&self.path).join(&staging_name))),
            }
        }
        let Some(output) = existing else {
            return Err(self.failure("create", "", Errno::NOENT));
        };
        // A run that found the output free may still be under way beside it, or have left its staging directory.
        if status(&parent, &staging_name).map_err(examine)?.is_some()
            && let Err(failure @ LockFailure::Busy) = lock(&parent, &staging_name, None, stop).map(|leftover| {
                let _ = empty(&leftover, &|| stop.is_requested());
                let _ = system_calls::unlinkat(&parent, &staging_name, AtFlags::REMOVEDIR);
            })
        {
            return Err(self.describe(&failure, &self.path));
        }
        let staging = lock(&output, STAGING_SUFFIX.as_ref(), Some(&output), stop)
            .map_err(|failure| self.describe(&failure, &self.path.join(STAGING_SUFFIX)))?;
        let new = self.make_new(&output, STAGING_SUFFIX.as_ref(), &staging, stop)?;
        Ok((Place::Inside { output }, staging, new))
    }

    fn describe(&self, failure: &LockFailure, path: &Path) -> Error {
        match failure {
            LockFailure::Busy => Error::output(&self.path, "is being written by another adaptation; wait for its end"),
            LockFailure::Foreign(what) => Error::output(
                path,
                &format!("{what} stands where the staging directory is to be; groundkit did not make it, so remove it"),
            ),
            LockFailure::Unwritable(error) | LockFailure::System(error) => {
                self.failure("create a staging directory for", "", *error)
            }
        }
    }

    fn make_new(&self, directory: &OwnedFd, name: &OsStr, staging: &OwnedFd, stop: &Stop) -> Result<OwnedFd, Error> {
        make_directory(staging, NEW, 0o777).map_err(|error| {
            discard(directory, name, staging, stop);
            self.failure("create a staging directory for", "", error)
        })
    }
}

/// Whether `corpus` was put there by a run that was killed before its judgments came.
fn is_unfinished(output: &OwnedFd, corpus: &Stat) -> bool {
    let Ok(staging) = open_directory(output, STAGING_SUFFIX) else {
        return false;
    };
    let parts = read_journal(&staging).ok().flatten().unwrap_or_default();
    let is_journaled = parts
        .iter()
        .any(|(device, inode, name)| name == CORPUS && (*device, *inode) == (corpus.st_dev, corpus.st_ino));
    let waiting = open_directory(&staging, NEW).and_then(|new| status(new, JUDGMENTS));
    is_journaled && matches!(waiting, Ok(Some(_)))
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

/// Lock a staging directory, and clear it; nothing where its owner has just removed it.
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
            let link = status(directory, name)?.is_some_and(|stat| kind(&stat) == FileType::Symlink);
            return Err(LockFailure::Foreign(if link { "a symbolic link" } else { "a file" }));
        }
        Err(error) => return Err(LockFailure::System(error)),
    };
    match system_calls::flock(&staging, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(LockFailure::Busy),
        outcome => outcome?,
    }
    // Between opening and locking, the owner may have removed this directory and another made a new one.
    let held = system_calls::fstat(&staging)?;
    let is_current =
        status(directory, name)?.is_some_and(|named| (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino));
    if !is_current {
        return Ok(None);
    }
    if !list(&staging, 1)?.is_empty() {
        let Some(parts) = read_journal(&staging)? else {
            return Err(LockFailure::Foreign("a directory without a journal"));
        };
        if let Some(output) = output {
            recover(&staging, output, &parts)?;
        }
        empty(&staging, &|| stop.is_requested())?;
    }
    if let Err(error) = write_file(&staging, JOURNAL, JOURNAL_START) {
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

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// The name of the staging directory beside an output.
fn staging_name(name: &OsStr) -> OsString {
    let mut staging = OsString::from(".");
    if name.len() + 1 + STAGING_SUFFIX.len() <= crate::beir::check::identifier::FILENAME_LIMIT {
        staging.push(name);
    } else {
        staging.push(blake3::hash(name.as_bytes()).to_hex().as_str());
    }
    staging.push(STAGING_SUFFIX);
    staging
}

/// Parent directories that a run made; dropped, they are removed.
#[derive(Debug, Default)]
struct Created(Vec<(OwnedFd, OsString)>);

impl Drop for Created {
    fn drop(&mut self) {
        for (parent, name) in self.0.drain(..).rev() {
            // Fails where somebody put something into it since; then it is theirs.
            let _ = system_calls::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

enum LockFailure {
    Busy,
    Foreign(&'static str),
    /// The directory takes no other one.
    Unwritable(Errno),
    System(Errno),
}

impl From<Errno> for LockFailure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

/// A part that is being published: its device, inode and name.
type Part = (u64, u64, String);

/// Read which parts a run had begun to publish; `None` where the directory holds no journal of ours.
fn read_journal(staging: &OwnedFd) -> Result<Option<Vec<Part>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match system_calls::openat(staging, JOURNAL, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    // Longer than any journal of ours, so that nothing else is read whole.
    if File::from(file).take(4096).read_to_string(&mut text).is_err() {
        return Ok(None);
    }
    let Some(lines) = text.strip_prefix(JOURNAL_START) else {
        // A run killed while it wrote the first line left a part of it.
        return Ok(JOURNAL_START.starts_with(&text).then(Vec::new));
    };
    let part = |line: &str| {
        let mut words = line.splitn(3, ' ');
        Some((
            words.next()?.parse().ok()?,
            words.next()?.parse().ok()?,
            words.next()?.to_owned(),
        ))
    };
    Ok(Some(lines.lines().filter_map(part).collect()))
}

/// Replace the journal; a reader sees the old or the new one whole.
fn write_journal(staging: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    const NEXT: &str = "journal-next";
    let mut text = JOURNAL_START.to_owned();
    for (device, inode, name) in parts {
        let _ = writeln!(text, "{device} {inode} {name}");
    }
    // A run that was killed while it wrote may have left one.
    remove(staging, NEXT.as_ref(), &|| false)?;
    write_file(staging, NEXT, &text)?;
    system_calls::renameat(staging, NEXT, staging, JOURNAL)
}

fn write_file(directory: &OwnedFd, name: &str, text: &str) -> Result<(), Errno> {
    File::from(create(directory, name, OFlags::WRONLY)?)
        .write_all(text.as_bytes())
        .map_err(|error| errno(&error))
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Remove all that a staging directory holds, the journal last, so that it stays recognisable.
fn empty(staging: &OwnedFd, ended: &dyn Fn() -> bool) -> Result<(), Errno> {
    for name in list(staging, usize::MAX)? {
        if name != JOURNAL {
            remove(staging, &name, ended)?;
        }
    }
    remove(staging, JOURNAL.as_ref(), ended)
}

/// Bring an output back to what it was before a run that was killed while it published.
fn recover(staging: &OwnedFd, output: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    let Some((_, _, last)) = parts.last() else {
        return Ok(());
    };
    let new = match open_directory(staging, NEW) {
        Ok(new) => new,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    // Once the last part has left the staging directory, the run was complete.
    if status(&new, last)?.is_none() {
        return Ok(());
    }
    undo(staging, &new, output, parts)
}

/// Move out what was moved in, and back what was moved aside.
fn undo(staging: &OwnedFd, new: &OwnedFd, output: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
    for (device, inode, name) in parts {
        if status(output, name)?.is_some_and(|stat| (stat.st_dev, stat.st_ino) == (*device, *inode)) {
            system_calls::renameat(output, name, new, name)?;
        }
    }
    for old in list(staging, usize::MAX)? {
        if let Some(name) = old.as_bytes().strip_prefix(OLD_PREFIX.as_bytes()) {
            system_calls::renameat(staging, &old, output, OsStr::from_bytes(name))?;
        }
    }
    // Once the parts are gone, their inodes may be given to files of others; the journal must not name them then. Where
    // it cannot be written, it is removed right after.
    let _ = write_journal(staging, &[]);
    Ok(())
}

#[derive(Debug)]
enum Place {
    Beside {
        parent: OwnedFd,
        name: OsString,
        staging_name: OsString,
    },
    Inside {
        output: OwnedFd,
    },
}

/// A locked staging directory; dropped without [`Staging::publish`], it leaves the output as it was.
#[derive(Debug)]
pub struct Staging {
    output: Output,
    place: Place,
    directory: OwnedFd,
    new: OwnedFd,
    created: Created,
    stop: Stop,
    done: bool,
}

impl Staging {
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
        make_directory(within, name, 0o777).map_err(|error| self.failure("create", name, error))
    }

    /// The error that says what could not be done with `name` of the output.
    #[must_use]
    pub fn failure(&self, what: &str, name: &str, error: Errno) -> Error {
        self.output.failure(what, name, error)
    }

    /// Let the corpus and the files `others` appear, and `judgments.jsonl` last.
    ///
    /// With `durable`, all of it is on the disk before it appears, and its appearance when this returns.
    ///
    /// # Errors
    /// [`Error::Output`]; the output is then as it was.
    pub fn publish(mut self, others: &[&str], durable: bool) -> Result<(), Error> {
        if durable {
            system_calls::syncfs(&self.directory).map_err(|error| self.failure("sync", "", error))?;
        }
        match &self.place {
            Place::Beside { parent, name, .. } => {
                if let Ok(replaced) = open_directory(parent, name) {
                    inherit(&self.new, &replaced).map_err(|error| self.failure("set the mode of", "", error))?;
                }
                system_calls::renameat(&self.directory, NEW, parent, name)
                    .map_err(|error| self.failure("move the finished output to", "", error))?;
                self.done = true;
            }
            Place::Inside { output } => {
                let names: Vec<&str> = [CORPUS].iter().chain(others).chain(&[JUDGMENTS]).copied().collect();
                let parts = self.parts(&names).map_err(|error| self.failure("examine", "", error))?;
                if let Err(error) = self.move_in(output, &parts) {
                    let undone = undo(&self.directory, &self.new, output, &parts);
                    // What could not be undone is left to the next run, which reads the journal.
                    self.done = undone.is_err();
                    return Err(self.failure("move the finished parts into", "", error));
                }
                self.done = true;
            }
        }
        let synced = match &self.place {
            _ if !durable => Ok(()),
            Place::Beside { parent, .. } => system_calls::fsync(parent),
            Place::Inside { output } => system_calls::fsync(output),
        };
        // All has appeared, whether or not the disk could confirm it, so the staging directory has no further use.
        self.created.0.clear();
        self.clear();
        synced.map_err(|error| self.failure("sync", "", error))
    }

    fn parts(&self, names: &[&str]) -> Result<Vec<Part>, Errno> {
        let part = |name: &&str| {
            let stat = status(&self.new, name)?.ok_or(Errno::NOENT)?;
            Ok((stat.st_dev, stat.st_ino, (*name).to_owned()))
        };
        names.iter().map(part).collect()
    }

    fn move_in(&self, output: &OwnedFd, parts: &[Part]) -> Result<(), Errno> {
        write_journal(&self.directory, parts)?;
        // Old files go first, so that they never stand beside a new corpus.
        for name in FILES {
            match status(output, name)? {
                None => {}
                Some(stat) if kind(&stat) == FileType::RegularFile => {
                    system_calls::renameat(output, name, &self.directory, format!("{OLD_PREFIX}{name}"))?;
                }
                Some(_) => return Err(Errno::EXIST),
            }
        }
        for (_, _, name) in parts {
            // Whatever was put there since: a directory replaces an empty directory only, a file nothing.
            if name == CORPUS {
                system_calls::renameat(&self.new, name, output, name)?;
            } else {
                rename_into_absent(&self.new, name, output)?;
            }
        }
        Ok(())
    }

    /// Remove the staging directory. What cannot be removed is left to the next run, which recognises it.
    fn clear(&self) {
        let (directory, name) = match &self.place {
            Place::Beside {
                parent, staging_name, ..
            } => (parent, staging_name.as_os_str()),
            Place::Inside { output } => (output, STAGING_SUFFIX.as_ref()),
        };
        // The name may stand for something else by now; only what is locked is removed.
        let held = system_calls::fstat(&self.directory);
        let named = status(directory, name);
        if let (Ok(held), Ok(Some(named))) = (held, named)
            && (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)
        {
            discard(directory, name, &self.directory, &self.stop);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.done {
            self.clear();
        }
    }
}

/// Give a directory the mode of the empty one that it replaces and, where that may be set, its owner.
fn inherit(directory: &OwnedFd, replaced: &OwnedFd) -> Result<(), Errno> {
    let stat = system_calls::fstat(replaced)?;
    let (uid, gid) = (
        rustix::fs::Uid::from_raw(stat.st_uid),
        rustix::fs::Gid::from_raw(stat.st_gid),
    );
    let _ = system_calls::fchown(directory, uid, gid);
    system_calls::fchmod(directory, Mode::from_raw_mode(stat.st_mode))
}

/// Rename a file to the same name in `output`, where nothing may stand.
fn rename_into_absent(directory: &OwnedFd, name: &str, output: &OwnedFd) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    match system_calls::renameat_without_replacing(directory, name, output, name) {
        // Some network file systems do not know the flag.
        Err(Errno::INVAL | Errno::NOSYS) => {}
        outcome => return outcome,
    }
    if status(output, name)?.is_some() {
        return Err(Errno::EXIST);
    }
    system_calls::renameat(directory, name, output, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undone_publication_is_forgotten_so_that_its_inodes_may_be_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let output = File::open(directory.path()).unwrap().into();
        let staging = make_directory(&output, "staging", 0o700).unwrap();
        let new = make_directory(&staging, NEW, 0o700).unwrap();
        make_directory(&output, CORPUS, 0o700).unwrap();
        let corpus = status(&output, CORPUS).unwrap().unwrap();
        let parts = [(corpus.st_dev, corpus.st_ino, CORPUS.to_owned())];
        // What a run leaves that was killed while it wrote its journal.
        write_file(&staging, "journal-next", "half").unwrap();
        write_journal(&staging, &parts).unwrap();
        assert_eq!(read_journal(&staging).unwrap().unwrap(), parts);
        undo(&staging, &new, &output, &parts).unwrap();
        assert!(status(&output, CORPUS).unwrap().is_none());
        assert!(status(&new, CORPUS).unwrap().is_some());
        assert_eq!(read_journal(&staging).unwrap().unwrap(), []);
    }
}
