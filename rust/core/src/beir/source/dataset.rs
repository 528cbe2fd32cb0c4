//! Finding the files of a dataset, whatever they are kept in: a directory, packed files in it, or a zip archive.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::Archive;
use super::decode::{Decoder, Form, HEAD, Span, check_head, refuse};
use super::file::{Packing, Source};
use crate::beir::retry::retry_on_interrupt;
use crate::error::Error;
use crate::stop::Stop;

/// A dataset that is a directory or a zip archive.
#[derive(Clone, Debug)]
pub struct Dataset {
    place: Place,
    stop: Stop,
}

#[derive(Clone, Debug)]
enum Place {
    /// Files `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`, each plain, gzip (`.gz`) or zstd (`.zst`).
    Directory(PathBuf),
    /// The same files as members of an archive.
    Archive(Arc<Archive>),
}

impl Dataset {
    /// Open the dataset at `path`. What stands in a directory is looked at only when it is asked for; `stop` ends every
    /// reading of its files.
    ///
    /// # Errors
    /// As [`Archive::open`] where a file stands at `path`.
    pub fn open(path: &Path, stop: &Stop) -> Result<Self, Error> {
        let is_file = retry_on_interrupt(|| path.metadata()).is_ok_and(|metadata| metadata.is_file());
        let place = if is_file {
            Place::Archive(Arc::new(Archive::open(path, stop)?))
        } else {
            Place::Directory(path.to_owned())
        };
        Ok(Self {
            place,
            stop: stop.clone(),
        })
    }

    /// What ends every reading of its files.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Open the file `name`, such as `corpus.jsonl` or `qrels/test.tsv`, in whichever form it is there.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when it is absent, there in two forms, no regular file, or not what its name says.
    pub fn source(&self, name: &str) -> Result<Source, Error> {
        let mut present = Vec::new();
        for form in Form::ALL {
            if self.has(&packed_name(name, form))? {
                present.push(form);
            }
        }
        let form = match present[..] {
            [] => Form::Plain,
            [form] => form,
            [one, other, ..] => {
                let (one, other) = (packed_name(name, one), packed_name(name, other));
                return Err(refuse(
                    name,
                    format!("both {one} and {other} are there; keep one of them"),
                ));
            }
        };
        let file = packed_name(name, form);
        match &self.place {
            Place::Directory(directory) => open_packed(directory, &file, form, &self.stop),
            Place::Archive(archive) => open_member(archive, &file, form),
        }
    }

    /// The splits that have a file in `qrels/`, in ascending order.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the directory cannot be listed; one that is absent has no splits.
    pub fn splits(&self) -> Result<Vec<String>, Error> {
        let files: Vec<String> = match &self.place {
            Place::Archive(archive) => archive
                .names()
                .filter_map(|name| name.strip_prefix("qrels/"))
                .map(str::to_owned)
                .collect(),
            Place::Directory(directory) => match std::fs::read_dir(directory.join("qrels")) {
                Ok(entries) => entries
                    .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                    .collect::<std::io::Result<_>>()
                    .map_err(|error| Error::unreadable("qrels", &error))?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(Error::unreadable("qrels", &error)),
            },
        };
        let split = |file: &String| {
            let stem = Form::ALL
                .iter()
                .rev()
                .find_map(|form| file.strip_suffix(form.suffix()))?;
            stem.strip_suffix(".tsv").map(str::to_owned)
        };
        Ok(files
            .iter()
            .filter_map(split)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect())
    }

    fn has(&self, file: &str) -> Result<bool, Error> {
        match &self.place {
            Place::Directory(directory) => {
                use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
                match retry_on_interrupt(|| directory.join(file).symlink_metadata()) {
                    Ok(_) => Ok(true),
                    Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidFilename) => Ok(false),
                    Err(error) => Err(Error::unreadable(file, &error)),
                }
            }
            Place::Archive(archive) => Ok(archive.names().any(|name| name == file)),
        }
    }
}

fn packed_name(name: &str, form: Form) -> String {
    format!("{name}{}", form.suffix())
}

fn open_packed(directory: &Path, file: &str, form: Form, stop: &Stop) -> Result<Source, Error> {
    let source = Source::open(directory, file)?.stopped_by(stop);
    let mut head = [0; HEAD];
    let head = &mut head[..usize::try_from(source.identity().size).unwrap_or(HEAD).min(HEAD)];
    source.read_at(head, 0)?;
    check_head(form, file, head)?;
    if form == Form::Plain {
        return Ok(source);
    }
    let raw = Arc::new(source.clone());
    Ok(source.packed(file.to_owned(), Arc::new(PackedFile { raw, form })))
}

fn open_member(archive: &Arc<Archive>, file: &str, form: Form) -> Result<Source, Error> {
    let name = archive.display(file);
    let mut head = [0; HEAD];
    let length = Decoder::new(&name, archive.read(file)?).fill(&mut head)?;
    check_head(form, &name, &head[..length])?;
    let packing = PackedMember {
        archive: Arc::clone(archive),
        file: file.to_owned(),
        form,
    };
    Ok(archive.source().packed(name, Arc::new(packing)))
}

/// A file of its own that is compressed.
#[derive(Debug)]
struct PackedFile {
    raw: Arc<Source>,
    form: Form,
}

impl Packing for PackedFile {
    fn unpack(&self) -> Result<Box<dyn Read + Send>, Error> {
        let span = Span::new(Arc::clone(&self.raw), 0, self.raw.identity().size);
        self.form.decode(self.raw.name(), Box::new(span))
    }

    fn packed_size(&self) -> u64 {
        self.raw.identity().size
    }
}

/// A member of an archive, which may be compressed once more.
#[derive(Debug)]
struct PackedMember {
    archive: Arc<Archive>,
    file: String,
    form: Form,
}

impl Packing for PackedMember {
    fn unpack(&self) -> Result<Box<dyn Read + Send>, Error> {
        self.form
            .decode(&self.archive.display(&self.file), self.archive.read(&self.file)?)
    }

    fn packed_size(&self) -> u64 {
        self.archive.packed_size(&self.file).unwrap_or(0)
    }
}
