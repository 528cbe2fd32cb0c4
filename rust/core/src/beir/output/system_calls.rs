//! System calls, each made again where a signal interrupted it: on network and user-space file systems any of them may
//! report that, and it says nothing about the file.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Access, AtFlags, FlockOperation, Gid, Mode, OFlags, Stat, StatVfs, Uid};
use rustix::io::{Result, retry_on_intr};

/// See openat(2).
pub fn openat(directory: impl AsFd, name: impl AsRef<OsStr>, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
    retry_on_intr(|| rustix::fs::openat(&directory, name.as_ref(), flags, mode))
}

/// See mkdirat(2).
pub fn mkdirat(directory: impl AsFd, name: impl AsRef<OsStr>, mode: Mode) -> Result<()> {
    retry_on_intr(|| rustix::fs::mkdirat(&directory, name.as_ref(), mode))
}

/// See fstatat(2).
pub fn statat(directory: impl AsFd, name: impl AsRef<OsStr>, flags: AtFlags) -> Result<Stat> {
    retry_on_intr(|| rustix::fs::statat(&directory, name.as_ref(), flags))
}

/// See fstat(2).
pub fn fstat(file: impl AsFd) -> Result<Stat> {
    retry_on_intr(|| rustix::fs::fstat(&file))
}

/// See fstatvfs(3).
pub fn fstatvfs(file: impl AsFd) -> Result<StatVfs> {
    retry_on_intr(|| rustix::fs::fstatvfs(&file))
}

/// See fstatfs(2).
#[cfg(target_os = "linux")]
pub fn fstatfs(file: impl AsFd) -> Result<rustix::fs::StatFs> {
    retry_on_intr(|| rustix::fs::fstatfs(&file))
}

/// See faccessat(2).
pub fn accessat(directory: impl AsFd, name: impl AsRef<OsStr>, access: Access, flags: AtFlags) -> Result<()> {
    retry_on_intr(|| rustix::fs::accessat(&directory, name.as_ref(), access, flags))
}

/// See unlinkat(2).
pub fn unlinkat(directory: impl AsFd, name: impl AsRef<OsStr>, flags: AtFlags) -> Result<()> {
    retry_on_intr(|| rustix::fs::unlinkat(&directory, name.as_ref(), flags))
}

/// See renameat(2).
pub fn renameat(
    old_directory: impl AsFd,
    old: impl AsRef<OsStr>,
    directory: impl AsFd,
    name: impl AsRef<OsStr>,
) -> Result<()> {
    retry_on_intr(|| rustix::fs::renameat(&old_directory, old.as_ref(), &directory, name.as_ref()))
}

/// See renameat2(2) and its `RENAME_NOREPLACE`.
#[cfg(target_os = "linux")]
pub fn renameat_without_replacing(
    old_directory: impl AsFd,
    old: impl AsRef<OsStr>,
    directory: impl AsFd,
    name: impl AsRef<OsStr>,
) -> Result<()> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    retry_on_intr(|| rustix::fs::renameat_with(&old_directory, old.as_ref(), &directory, name.as_ref(), flags))
}

/// See flock(2).
pub fn flock(file: impl AsFd, operation: FlockOperation) -> Result<()> {
    retry_on_intr(|| rustix::fs::flock(&file, operation))
}

/// See fsync(2).
pub fn fsync(file: impl AsFd) -> Result<()> {
    retry_on_intr(|| rustix::fs::fsync(&file))
}

/// See syncfs(2).
pub fn syncfs(file: impl AsFd) -> Result<()> {
    retry_on_intr(|| rustix::fs::syncfs(&file))
}

/// See fchmod(2).
pub fn fchmod(file: impl AsFd, mode: Mode) -> Result<()> {
    retry_on_intr(|| rustix::fs::fchmod(&file, mode))
}

/// See fchown(2).
pub fn fchown(file: impl AsFd, owner: Uid, group: Gid) -> Result<()> {
    retry_on_intr(|| rustix::fs::fchown(&file, Some(owner), Some(group)))
}
