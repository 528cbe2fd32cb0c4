//! Writing the documents and the judgments into a staging directory.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use foldhash::quality::RandomState;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::fingerprint::{CorpusHasher, FileFingerprint, HashingWriter, OutputFingerprint};
use super::handle::{Destination, create_file, errno_of, write_file};
use super::judgments;
use super::layout::{CORPUS, JUDGMENTS, Layout, RECORD};
use super::staging::Staging;
use super::system_calls;
use crate::beir::check::identifier::DOCUMENT_SUFFIX;
use crate::beir::check::records::{CheckedFile, RecordText};
use crate::beir::digest::HashName;
use crate::beir::source::file::Source;
use crate::error::Error;

/// One relevant pair.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Identifier of the query.
    pub query: &'a str,
    /// Its name in the judgments.
    pub query_name: &'a str,
    /// Identifier of the document.
    pub document: &'a str,
    /// Its name in the corpus.
    pub document_name: &'a str,
}

/// A checked dataset, and how it is written.
#[derive(Debug)]
pub struct Adaptation<'a> {
    /// The corpus.
    pub corpus: &'a CheckedFile,
    /// The queries.
    pub queries: &'a CheckedFile,
    /// The relevant pairs, each once, sorted by the names of query and then document by code point.
    pub pairs: &'a [Pair<'a>],
    /// Where documents stand.
    pub layout: Layout,
    /// Further files: names and contents.
    pub files: &'a [(&'a str, &'a [u8])],
    /// Maximum number of threads.
    pub threads: usize,
    /// Whether everything is on the disk before it appears.
    pub durable: bool,
}

/// Length and hash of each judged document's text, once it is written.
type JudgedTexts<'a> = HashMap<&'a str, OnceLock<(usize, blake3::Hash)>, RandomState>;

/// An output that is written and not published; dropped, it is removed.
#[derive(Debug)]
pub struct WrittenOutput {
    staging: Staging,
    corpus: Source,
    fingerprint: OutputFingerprint,
    durable: bool,
}

impl WrittenOutput {
    /// What was written.
    #[must_use]
    pub fn fingerprint(&self) -> &OutputFingerprint {
        &self.fingerprint
    }

    /// Add the `record` of what was written as `adaptation.json`, and let all of it appear, or nothing.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written, [`Error::Changed`] when the corpus is not what was checked, and
    /// [`Error::Interrupted`]. The output is then as it was.
    pub fn publish(self, record: &[u8]) -> Result<(), Error> {
        let staging = &self.staging;
        write_file(staging.new_output(), RECORD, record).map_err(|error| staging.error("write", RECORD, error))?;
        self.corpus.verify_unchanged()?;
        self.corpus.stop().check()?;
        let names = self.fingerprint.files.iter().map(|(name, _)| name.as_str());
        let names: Vec<_> = names.filter(|&name| name != JUDGMENTS).chain([RECORD]).collect();
        self.staging.publish(&names, self.durable)
    }
}

impl Adaptation<'_> {
    /// Write the dataset to a staging directory of the `destination`.
    ///
    /// Memory holds the pairs and 16 bytes a document, but no more than one text a thread: quotes are read back from the
    /// documents written.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written, [`Error::Changed`] when a source is not what was checked,
    /// [`Error::Unreadable`] and [`Error::Interrupted`]. The output is then as it was.
    pub fn write(&self, destination: Destination) -> Result<WrittenOutput, Error> {
        let staging = Staging::begin(destination, self.corpus.source.stop())?;
        let corpus = Directories::make(&staging, self.layout)?;
        let mut judged = JudgedTexts::default();
        judged.extend(self.pairs.iter().map(|pair| (pair.document, OnceLock::new())));
        let hasher = CorpusHasher::new(self.hash());
        self.write_documents(&staging, &corpus, &judged, &hasher)?;
        let queries = self.keep_queries(&staging)?;
        let judgments = self.write_judgments(&staging, &corpus, &judged, &queries)?;
        let mut files = vec![(JUDGMENTS.to_owned(), judgments)];
        for (name, content) in self.files {
            write_file(staging.new_output(), name, content).map_err(|error| staging.error("write", name, error))?;
            files.push(((*name).to_owned(), FileFingerprint::of(content, self.hash())));
        }
        Ok(WrittenOutput {
            staging,
            corpus: self.corpus.source.clone(),
            fingerprint: OutputFingerprint {
                corpus: hasher.finish(),
                files,
            },
            durable: self.durable,
        })
    }

    /// Which hash the output gets: that of its sources, if they have one.
    fn hash(&self) -> HashName {
        self.corpus
            .content
            .hash
            .map_or_else(HashName::default, |digest| digest.name())
    }

    fn write_documents(
        &self,
        staging: &Staging,
        corpus: &Directories,
        judged: &JudgedTexts<'_>,
        hasher: &CorpusHasher,
    ) -> Result<(), Error> {
        let write = |document: RecordText<'_>| {
            if let Some(entry) = judged.get(document.id.as_ref()) {
                let _ = entry.set((document.text.len(), blake3::hash(document.text.as_bytes())));
            }
            if document.text.is_empty() && self.corpus.policy.drop_empty {
                return Ok(());
            }
            with_file_name(&self.corpus.naming.name(&document.id), |name| {
                hasher.add(&corpus.path(name), document.text.as_bytes());
                write_file(corpus.of(name), name, document.text.as_bytes())
                    .map_err(|error| staging.error("write document", &format!("{CORPUS}/{name}"), error))
            })
        };
        self.corpus.for_each_record(self.threads, &write)
    }

    /// Keep the texts of the judged queries in a file without a name.
    fn keep_queries(&self, staging: &Staging) -> Result<QueryTexts<'_>, Error> {
        const NAME: &str = "queries";
        let failure = |error: io::Error| staging.error("write", NAME, errno_of(&error));
        let create = || {
            let file = create_file(staging.new_output(), NAME, OFlags::RDWR)?;
            system_calls::unlinkat(staging.new_output(), NAME, AtFlags::empty())?;
            Ok(File::from(file))
        };
        let file = create().map_err(failure)?;
        let mut places: HashMap<&str, OnceLock<(u64, usize)>, RandomState> = HashMap::default();
        places.extend(self.pairs.iter().map(|pair| (pair.query, OnceLock::new())));
        let end = Mutex::new(0);
        let write = |query: RecordText<'_>| {
            if let Some(place) = places.get(query.id.as_ref()) {
                let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
                (&file).write_all(query.text.as_bytes()).map_err(failure)?;
                let _ = place.set((*end, query.text.len()));
                *end += query.text.len() as u64;
            }
            Ok(())
        };
        self.queries.for_each_record(1, &write)?;
        Ok(QueryTexts { file, places })
    }

    fn write_judgments(
        &self,
        staging: &Staging,
        corpus: &Directories,
        judged: &JudgedTexts<'_>,
        queries: &QueryTexts<'_>,
    ) -> Result<FileFingerprint, Error> {
        let failure = |error: io::Error| staging.error("write judgments", JUDGMENTS, errno_of(&error));
        let file =
            create_file(staging.new_output(), JUDGMENTS, OFlags::WRONLY).map_err(|error| failure(error.into()))?;
        let mut file = BufWriter::with_capacity(1 << 18, HashingWriter::new(File::from(file), self.hash()));
        let (mut query, mut quote) = (String::new(), Vec::new());
        for row in self.pairs.chunk_by(|one, next| one.query == next.query) {
            self.corpus.source.stop().check()?;
            let is_known = queries.read(row[0].query, &mut query).map_err(failure)?;
            if !is_known {
                return Err(self.queries.source.changed("content"));
            }
            judgments::start(&mut file, row[0].query_name, &query).map_err(failure)?;
            for (number, pair) in row.iter().enumerate() {
                let fingerprint = judged.get(pair.document).and_then(OnceLock::get);
                let (length, hash) = *fingerprint.ok_or_else(|| self.corpus.source.changed("content"))?;
                with_file_name(pair.document_name, |name| {
                    let path = format!("{CORPUS}/{name}");
                    read_document(corpus.of(name), name, length, &mut quote)
                        .map_err(|error| staging.error("read back document", &path, errno_of(&error)))?;
                    if quote.len() != length || blake3::hash(&quote) != hash {
                        return Err(staging.refuse(&path, "was changed by another process while the run went on"));
                    }
                    let quote = str::from_utf8(&quote).map_err(io::Error::other).map_err(failure)?;
                    judgments::gold(&mut file, number == 0, &corpus.path(name), quote).map_err(failure)
                })?;
            }
            judgments::end(&mut file).map_err(failure)?;
        }
        let (_, print) = file.into_inner().map_err(|error| failure(error.into_error()))?.finish();
        Ok(print)
    }
}

/// The texts of the judged queries in a file, and offset and length of each.
struct QueryTexts<'a> {
    file: File,
    places: HashMap<&'a str, OnceLock<(u64, usize)>, RandomState>,
}

impl QueryTexts<'_> {
    /// Read the text of a query; `false` where it has none.
    fn read(&self, query: &str, text: &mut String) -> io::Result<bool> {
        let Some(&(offset, length)) = self.places.get(query).and_then(OnceLock::get) else {
            return Ok(false);
        };
        let mut bytes = std::mem::take(text).into_bytes();
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, offset)?;
        *text = String::from_utf8(bytes).map_err(io::Error::other)?;
        Ok(true)
    }
}

/// The directories that documents are written to.
struct Directories(Vec<OwnedFd>);

impl Directories {
    fn make(staging: &Staging, layout: Layout) -> Result<Self, Error> {
        let corpus = staging.make_directory(staging.new_output(), CORPUS)?;
        Ok(Self(match layout {
            Layout::Flat => vec![corpus],
            Layout::Sharded => (0..=u8::MAX)
                .map(|shard| staging.make_directory(&corpus, &format!("{shard:02x}")))
                .collect::<Result<_, _>>()?,
        }))
    }

    /// The shard of a file, `None` where all stand in one directory.
    fn shard(&self, name: &str) -> Option<u8> {
        let id = name.strip_suffix(DOCUMENT_SUFFIX).unwrap_or(name);
        (self.0.len() > 1).then(|| blake3::hash(id.as_bytes()).as_bytes()[0])
    }

    /// The directory of a file.
    fn of(&self, name: &str) -> &OwnedFd {
        &self.0[usize::from(self.shard(name).unwrap_or(0))]
    }

    /// The path of a file below `corpus`.
    fn path<'a>(&self, name: &'a str) -> Cow<'a, str> {
        self.shard(name)
            .map_or(Cow::Borrowed(name), |shard| Cow::Owned(format!("{shard:02x}/{name}")))
    }
}

/// Do something with `<id>.txt`, spelled in a buffer that the thread keeps.
fn with_file_name<T>(id: &str, act: impl FnOnce(&str) -> T) -> T {
    thread_local! {
        static NAME: RefCell<String> = const { RefCell::new(String::new()) };
    }
    NAME.with_borrow_mut(|name| {
        name.clear();
        name.push_str(id);
        name.push_str(DOCUMENT_SUFFIX);
        act(name)
    })
}

/// Read a document that was written, and one byte more if there is one.
fn read_document(directory: &OwnedFd, name: &str, length: usize, text: &mut Vec<u8>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(system_calls::openat(directory, name, flags, Mode::empty())?);
    text.clear();
    text.reserve(length + 1);
    file.take(length as u64 + 1).read_to_end(text)?;
    Ok(())
}
