//! The space that an output needs and that its file system has.

use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags, StatVfsMountFlags};
use rustix::io::Errno;

use super::identifier::DOCUMENT_SUFFIX;
use crate::beir::output::adapt::Layout;
use crate::beir::output::system_calls;

/// Bytes of a block of the file systems whose files take whole blocks.
const BLOCK: u64 = 4096;

/// Files that an ext4 directory takes for certain without its `large_dir` feature, which a program cannot ask for.
const EXT_DIRECTORY_LIMIT: u64 = 10_000_000;

// The magic numbers of statfs(2).
const EXT: i64 = 0xef53;
const TMPFS: i64 = 0x0102_1994;
const XFS: i64 = 0x5846_5342;

/// What the documents of a corpus take at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// How many there are.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their blocks of 4096 bytes.
    pub blocks: u64,
    /// Bytes of the longest identifier.
    pub longest: usize,
}

impl Space {
    /// Add a document.
    #[inline]
    pub fn add(&mut self, bytes: usize, identifier: usize) {
        self.files += 1;
        self.bytes += bytes as u64;
        self.blocks += (bytes as u64).div_ceil(BLOCK);
        self.longest = self.longest.max(identifier);
    }

    /// Add the documents of another part.
    pub fn append(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.longest = self.longest.max(other.longest);
    }

    /// Say what a file system lacks for it, given what it says of itself.
    fn shortages(&self, has: &Capacity, layout: Layout) -> Vec<String> {
        let mut shortages = Vec::new();
        if has.is_read_only {
            shortages.push("is on a read-only file system".to_owned());
        } else if !has.is_writable {
            shortages.push("is in a directory that you may not write to".to_owned());
        }
        // Other file systems pack small files, so that only the bytes are certain.
        let needed = match has.kind {
            EXT | TMPFS | XFS if has.block_bytes == BLOCK => self.blocks * BLOCK,
            _ => self.bytes,
        };
        if needed > has.free_bytes {
            shortages.push(format!(
                "needs at least {needed} bytes in blocks of its file system, which has {} free",
                has.free_bytes
            ));
        }
        if has.free_files.is_some_and(|free| self.files > free) {
            shortages.push(format!(
                "needs {} files (inodes), and its file system has {} free",
                self.files,
                has.free_files.unwrap_or(0)
            ));
        }
        let longest = self.longest + DOCUMENT_SUFFIX.len();
        if has.longest_name > 0 && longest as u64 > has.longest_name {
            shortages.push(format!(
                "needs file names of {longest} bytes, and its file system takes {}; \
                 BeirPolicy(document_ids=\"map\") shortens none that is admissible, so use another file system",
                has.longest_name
            ));
        }
        if has.kind == EXT && layout == Layout::Flat && self.files > EXT_DIRECTORY_LIMIT {
            shortages.push(format!(
                "needs {} files in one directory, more than its file system surely takes ({EXT_DIRECTORY_LIMIT}); \
                 layout=\"sharded\" spreads them over 256",
                self.files
            ));
        }
        shortages
    }

    /// Say what the file system of `directory` lacks for it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn shortages_in(&self, directory: impl AsFd, layout: Layout) -> rustix::io::Result<Vec<String>> {
        let vfs = system_calls::fstatvfs(&directory)?;
        let access = Access::WRITE_OK | Access::EXEC_OK;
        let is_writable = match system_calls::accessat(&directory, ".", access, AtFlags::EACCESS) {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => false,
            outcome => outcome.map(|()| true)?,
        };
        let has = Capacity {
            kind: kind_of(&directory)?,
            is_read_only: vfs.f_flag.contains(StatVfsMountFlags::RDONLY),
            is_writable,
            block_bytes: vfs.f_frsize,
            free_bytes: vfs.f_bavail.saturating_mul(vfs.f_frsize),
            // Some file systems make inodes as they are needed, and say zero.
            free_files: (vfs.f_files > 0).then_some(vfs.f_favail),
            longest_name: vfs.f_namemax,
        };
        Ok(self.shortages(&has, layout))
    }
}

#[cfg(target_os = "linux")]
fn kind_of(directory: impl AsFd) -> rustix::io::Result<i64> {
    #[allow(
        clippy::useless_conversion,
        reason = "the width of the field differs between targets"
    )]
    Ok(i64::try_from(system_calls::fstatfs(directory)?.f_type).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn kind_of(_directory: impl AsFd) -> rustix::io::Result<i64> {
    Ok(0)
}

/// What a file system says of itself.
struct Capacity {
    kind: i64,
    is_read_only: bool,
    is_writable: bool,
    block_bytes: u64,
    free_bytes: u64,
    free_files: Option<u64>,
    longest_name: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roomy() -> Capacity {
        Capacity {
            kind: EXT,
            is_read_only: false,
            is_writable: true,
            block_bytes: 4096,
            free_bytes: 1 << 40,
            free_files: Some(1 << 30),
            longest_name: 255,
        }
    }

    fn of(files: u64, bytes: usize) -> Space {
        let mut one = Space::default();
        one.add(bytes, 7);
        Space {
            files,
            bytes: one.bytes * files,
            blocks: one.blocks * files,
            ..one
        }
    }

    #[test]
    fn a_file_takes_whole_blocks_where_the_file_system_gives_whole_blocks() {
        let space = of(1000, 10);
        let tight = |kind| Capacity {
            kind,
            free_bytes: 1000 * 4096 - 1,
            ..roomy()
        };
        let shortages = space.shortages(&tight(EXT), Layout::Flat);
        assert!(shortages[0].contains("at least 4096000 bytes") && shortages[0].contains("4095999 free"));
        assert!(space.shortages(&tight(0), Layout::Flat).is_empty());
        assert!(space.shortages(&roomy(), Layout::Flat).is_empty());
    }

    #[test]
    fn files_and_names_are_counted() {
        let few = Capacity {
            free_files: Some(999),
            longest_name: 10,
            ..roomy()
        };
        let shortages = of(1000, 10).shortages(&few, Layout::Flat).join("; ");
        assert!(shortages.contains("needs 1000 files (inodes)") && shortages.contains("999 free"));
        assert!(shortages.contains("file names of 11 bytes"));
        let unlimited = Capacity {
            free_files: None,
            longest_name: 0,
            ..roomy()
        };
        assert!(of(1000, 10).shortages(&unlimited, Layout::Flat).is_empty());
    }

    #[test]
    fn too_many_files_for_one_directory_name_the_layout() {
        let space = of(10_000_001, 10);
        assert!(space.shortages(&roomy(), Layout::Flat)[0].contains("layout=\"sharded\""));
        assert!(space.shortages(&roomy(), Layout::Sharded).is_empty());
        assert!(
            space
                .shortages(&Capacity { kind: XFS, ..roomy() }, Layout::Flat)
                .is_empty()
        );
    }

    #[test]
    fn a_read_only_or_unwritable_target_is_named() {
        let shortages = |has| of(1, 1).shortages(&has, Layout::Flat).join("; ");
        assert!(
            shortages(Capacity {
                is_read_only: true,
                ..roomy()
            })
            .contains("read-only")
        );
        assert!(
            shortages(Capacity {
                is_writable: false,
                ..roomy()
            })
            .contains("may not write")
        );
    }

    #[test]
    fn a_real_directory_has_room_for_little() {
        let directory = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(directory.path()).unwrap();
        assert_eq!(
            of(1, 1).shortages_in(&handle, Layout::Flat).unwrap(),
            Vec::<String>::new()
        );
        assert!(!of(1 << 50, 1).shortages_in(&handle, Layout::Flat).unwrap().is_empty());
    }
}
