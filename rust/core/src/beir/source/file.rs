//! Opening the files of a dataset: regular files only, never blocking, with an identity to compare later.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::beir::retry::retry_on_interrupt;
use crate::error::Error;
use crate::stop::Stop;

/// What tells one state of a file from another, as far as the filesystem knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last modification, in nanoseconds since the epoch.
    pub modified_ns: i128,
}

/// How the content of a file that is not plain comes out of it.
pub trait Packing: fmt::Debug + Send + Sync {
    /// Start to unpack; the end is reported only when all checksums hold. Errors may carry an [`Error`].
    ///
    /// # Errors
    /// [`Error::Unreadable`] when it cannot be unpacked at all.
    fn unpack(&self) -> Result<Box<dyn Read + Send>, Error>;

    /// Bytes on the disk that hold the content.
    fn packed_size(&self) -> u64;
}

/// An open file of a dataset.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    file: Arc<File>,
    identity: Identity,
    packing: Option<Arc<dyn Packing>>,
    bytes_read: Arc<AtomicU64>,
    records_checked: Arc<AtomicU64>,
    stop: Stop,
}

impl Source {
    /// Open `directory/name` for reading.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when it is absent, not permitted, or not a regular file (a directory, pipe or device).
    pub fn open(directory: &Path, name: &str) -> Result<Self, Error> {
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        let nonblocking = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking.bits().cast_signed())
            .open(directory.join(name))
            .map_err(|error| Error::unreadable(name, &error))?;
        let metadata = retry_on_interrupt(|| file.metadata()).map_err(|error| Error::unreadable(name, &error))?;
        if !metadata.is_file() {
            let what = if metadata.is_dir() {
                "a directory"
            } else {
                "a pipe, socket or device"
            };
            return Err(Error::Unreadable {
                file: name.to_owned(),
                reason: format!("{what} stands where a regular file is expected"),
            });
        }
        let identity = identify(&metadata);
        Ok(Self {
            name: name.to_owned(),
            file: Arc::new(file),
            identity,
            packing: None,
            bytes_read: Arc::default(),
            records_checked: Arc::default(),
            stop: Stop::default(),
        })
    }

    /// The same file, as what is packed in it and known as `name`.
    #[must_use]
    pub fn packed(&self, name: String, packing: Arc<dyn Packing>) -> Self {
        Self {
            name,
            packing: Some(packing),
            records_checked: Arc::default(),
            ..self.clone()
        }
    }

    /// Let `stop` end every reading of this file, what is packed in it included.
    #[must_use]
    pub fn stopped_by(self, stop: &Stop) -> Self {
        Self {
            stop: stop.clone(),
            ..self
        }
    }

    /// What ends every reading of this file.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// How the content is packed; nothing where the bytes of the file are the content.
    #[must_use]
    pub fn packing(&self) -> Option<&dyn Packing> {
        self.packing.as_deref()
    }

    /// Bytes on the disk that hold the content.
    #[must_use]
    pub fn size_on_disk(&self) -> u64 {
        self.packing
            .as_ref()
            .map_or(self.identity.size, |packing| packing.packed_size())
    }

    /// Counts the bytes read so far through this source, all its copies, and what is packed in it.
    #[must_use]
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Counts the records that were checked so far, for who watches a check.
    #[must_use]
    pub fn records_checked(&self) -> &Arc<AtomicU64> {
        &self.records_checked
    }

    /// Name relative to the dataset, as messages give it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identity at the time of opening.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Fill `buffer` from `offset` on.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when reading fails, [`Error::Changed`] when the file ends before the buffer is full,
    /// [`Error::Interrupted`].
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.stop.check()?;
        self.file.read_exact_at(buffer, offset).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                self.changed("size")
            } else {
                Error::unreadable(&self.name, &error)
            }
        })?;
        self.bytes_read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Compare the file with what it was when it was opened.
    ///
    /// # Errors
    /// [`Error::Changed`] when inode, size or modification time differ.
    pub fn verify_unchanged(&self) -> Result<(), Error> {
        let metadata =
            retry_on_interrupt(|| self.file.metadata()).map_err(|error| Error::unreadable(&self.name, &error))?;
        let now = identify(&metadata);
        if now.size != self.identity.size {
            return Err(self.changed("size"));
        }
        if now != self.identity {
            return Err(self.changed("modification time"));
        }
        Ok(())
    }

    /// The error that says that this file changed.
    #[must_use]
    pub fn changed(&self, what: &'static str) -> Error {
        Error::Changed {
            file: self.name.clone(),
            what,
        }
    }
}

fn identify(metadata: &std::fs::Metadata) -> Identity {
    Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
    }
}
