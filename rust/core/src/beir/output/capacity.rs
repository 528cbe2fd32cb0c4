//! What the file system of an output can take.

use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags, StatVfsMountFlags};
use rustix::io::Errno;

use super::layout::Layout;
use super::system_calls;
use crate::beir::check::identifier::DOCUMENT_SUFFIX;
use crate::beir::check::space::{BLOCK, Space};

/// Files that an ext4 directory takes for certain without its `large_dir` feature, which a program cannot ask for.
const EXT_DIRECTORY_LIMIT: u64 = 10_000_000;

// The magic numbers of statfs(2).
const EXT: i64 = 0xef53;
const TMPFS: i64 = 0x0102_1994;
const XFS: i64 = 0x5846_5342;

/// What a file system says of itself.
#[derive(Clone, Debug)]
pub struct Capacity {
    kind: i64,
    is_read_only: bool,
    is_writable: bool,
    block_bytes: u64,
    free_bytes: u64,
    free_files: Option<u64>,
    longest_name: u64,
}

impl Capacity {
    /// Ask the file system of `directory`.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn of(directory: impl AsFd) -> rustix::io::Result<Self> {
        let vfs = system_calls::fstatvfs(&directory)?;
        let access = Access::WRITE_OK | Access::EXEC_OK;
        let is_writable = match system_calls::accessat(&directory, ".", access, AtFlags::EACCESS) {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => false,
            outcome => outcome.map(|()| true)?,
        };
        Ok(Self {
            kind: kind_of(&directory)?,
            is_read_only: vfs.f_flag.contains(StatVfsMountFlags::RDONLY),
            is_writable,
            block_bytes: vfs.f_frsize,
            free_bytes: vfs.f_bavail.saturating_mul(vfs.f_frsize),
            // Some file systems make inodes as they are needed, and say zero.
            free_files: (vfs.f_files > 0).then_some(vfs.f_favail),
            longest_name: vfs.f_namemax,
        })
    }

    /// Say why documents that take `space` do not fit.
    #[must_use]
    pub fn find_shortages(&self, space: &Space, layout: Layout) -> Vec<String> {
        let mut shortages = Vec::new();
        if self.is_read_only {
            shortages.push("is on a read-only file system".to_owned());
        } else if !self.is_writable {
            shortages.push("is in a directory that you may not write to".to_owned());
        }
        // Other file systems pack small files, so that only the bytes are certain.
        let needed = match self.kind {
            EXT | TMPFS | XFS if self.block_bytes == BLOCK => space.blocks * BLOCK,
            _ => space.bytes,
        };
        if needed > self.free_bytes {
            shortages.push(format!(
                "needs at least {needed} bytes in blocks of its file system, which has {} free",
                self.free_bytes
            ));
        }
        if self.free_files.is_some_and(|free| space.files > free) {
            shortages.push(format!(
                "needs {} files (inodes), and its file system has {} free",
                space.files,
                self.free_files.unwrap_or(0)
            ));
        }
        let longest = space.longest + DOCUMENT_SUFFIX.len();
        if self.longest_name > 0 && longest as u64 > self.longest_name {
            shortages.push(format!(
                "needs file names of {longest} bytes, and its file system takes {}; \
                 BeirPolicy(document_ids=\"map\") shortens none that is admissible, so use another file system",
                self.longest_name
            ));
        }
        if self.kind == EXT && layout == Layout::Flat && space.files > EXT_DIRECTORY_LIMIT {
            shortages.push(format!(
                "needs {} files in one directory, more than its file system surely takes ({EXT_DIRECTORY_LIMIT}); \
                 layout=\"sharded\" spreads them over 256",
                space.files
            ));
        }
        shortages
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
        let shortages = tight(EXT).find_shortages(&space, Layout::Flat);
        assert!(shortages[0].contains("at least 4096000 bytes") && shortages[0].contains("4095999 free"));
        assert!(tight(0).find_shortages(&space, Layout::Flat).is_empty());
        assert!(roomy().find_shortages(&space, Layout::Flat).is_empty());
    }

    #[test]
    fn files_and_names_are_counted() {
        let few = Capacity {
            free_files: Some(999),
            longest_name: 10,
            ..roomy()
        };
        let shortages = few.find_shortages(&of(1000, 10), Layout::Flat).join("; ");
        assert!(shortages.contains("needs 1000 files (inodes)") && shortages.contains("999 free"));
        assert!(shortages.contains("file names of 11 bytes"));
        let unlimited = Capacity {
            free_files: None,
            longest_name: 0,
            ..roomy()
        };
        assert!(unlimited.find_shortages(&of(1000, 10), Layout::Flat).is_empty());
    }

    #[test]
    fn too_many_files_for_one_directory_name_the_layout() {
        let space = of(10_000_001, 10);
        assert!(roomy().find_shortages(&space, Layout::Flat)[0].contains("layout=\"sharded\""));
        assert!(roomy().find_shortages(&space, Layout::Sharded).is_empty());
        assert!(
            Capacity { kind: XFS, ..roomy() }
                .find_shortages(&space, Layout::Flat)
                .is_empty()
        );
    }

    #[test]
    fn a_read_only_or_unwritable_target_is_named() {
        let shortages = |capacity: Capacity| capacity.find_shortages(&of(1, 1), Layout::Flat).join("; ");
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
        let capacity = Capacity::of(std::fs::File::open(directory.path()).unwrap()).unwrap();
        assert_eq!(capacity.find_shortages(&of(1, 1), Layout::Flat), Vec::<String>::new());
        assert!(!capacity.find_shortages(&of(1 << 50, 1), Layout::Flat).is_empty());
    }
}
