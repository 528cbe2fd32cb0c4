//! Fingerprints of an adapted dataset, taken while it is written and again when it is verified.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::layout::CORPUS;
use crate::beir::digest::{Digest, HashName, Hasher};
use crate::beir::source::file::Source;
use crate::error::Error;
use crate::parallel;
use crate::stop::Stop;
use crate::text::quote;

/// What a document's name and text come to; 128 bits, so that the leaves of ten million documents take 160 MB.
type Leaf = [u8; 16];

/// Leaves are kept in as many lists, by their first bits, so that threads seldom wait for each other.
const LISTS: usize = 64;

/// Most names of entries that are no documents.
const KEPT: usize = 100;

/// How many documents a thread takes at once.
const BATCH: usize = 64;

/// All documents of a corpus as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorpusFingerprint {
    /// How many documents.
    pub documents: u64,
    /// Bytes of all texts.
    pub bytes: u64,
    /// Hash of the documents' leaves in ascending order; a leaf is the first 16 bytes of the same hash of name, a zero
    /// byte, and text. It depends on neither the order of writing nor the layout of memory.
    pub hash: Digest,
}

/// A file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFingerprint {
    /// Its size in bytes.
    pub bytes: u64,
    /// Hash of its bytes.
    pub hash: Digest,
}

/// What an output holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFingerprint {
    /// The documents.
    pub corpus: CorpusFingerprint,
    /// The files beside them, by name.
    pub files: Vec<(String, FileFingerprint)>,
}

impl FileFingerprint {
    /// The fingerprint of a file with this content.
    #[must_use]
    pub fn of(content: &[u8], hash: HashName) -> Self {
        Self {
            bytes: content.len() as u64,
            hash: hash.of(&[content]),
        }
    }
}

/// Gathers the documents of a corpus in any order, from any thread.
#[derive(Debug)]
pub struct CorpusHasher {
    name: HashName,
    lists: [Mutex<Vec<Leaf>>; LISTS],
    bytes: AtomicU64,
}

impl CorpusHasher {
    /// Start with no documents.
    #[must_use]
    pub fn new(name: HashName) -> Self {
        Self {
            name,
            lists: [const { Mutex::new(Vec::new()) }; LISTS],
            bytes: AtomicU64::new(0),
        }
    }

    /// Add a document by its path in the corpus directory.
    pub fn add(&self, name: &str, text: &[u8]) {
        let digest = self.name.of(&[name.as_bytes(), &[0], text]);
        let mut leaf = Leaf::default();
        leaf.copy_from_slice(&digest.as_bytes()[..16]);
        self.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        let list = &self.lists[usize::from(leaf[0]) * LISTS / 256];
        list.lock().unwrap_or_else(PoisonError::into_inner).push(leaf);
    }

    /// The fingerprint of all that was added.
    #[must_use]
    pub fn finish(self) -> CorpusFingerprint {
        let mut hasher = Hasher::new(self.name);
        let mut documents = 0;
        for list in self.lists {
            let mut leaves = list.into_inner().unwrap_or_else(PoisonError::into_inner);
            leaves.sort_unstable();
            documents += leaves.len() as u64;
            hasher.update(leaves.as_flattened());
        }
        CorpusFingerprint {
            documents,
            bytes: self.bytes.into_inner(),
            hash: hasher.finish(),
        }
    }
}

/// Writes to `inner` and hashes what goes there.
pub struct HashingWriter<W> {
    inner: W,
    hasher: Hasher,
    bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Start with nothing written.
    pub fn new(inner: W, hash: HashName) -> Self {
        Self {
            inner,
            hasher: Hasher::new(hash),
            bytes: 0,
        }
    }

    /// The writer, and the fingerprint of all that was written.
    pub fn finish(self) -> (W, FileFingerprint) {
        let print = FileFingerprint {
            bytes: self.bytes,
            hash: self.hasher.finish(),
        };
        (self.inner, print)
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// How much of a corpus has been read again, for who watches.
#[derive(Debug, Default)]
pub struct ReadAgain {
    /// Documents.
    pub documents: AtomicU64,
    /// Bytes of their texts.
    pub bytes: AtomicU64,
}

/// The corpus of an output as it is now.
#[derive(Clone, Debug)]
pub struct FoundCorpus {
    /// Its documents.
    pub fingerprint: CorpusFingerprint,
    /// Some of the entries that are no documents, as messages name them.
    pub other_entries: Vec<String>,
}

/// Read all documents of `output` again on up to `threads` threads, and count them on the way.
///
/// # Errors
/// [`Error::Output`] when a directory or document cannot be read, and [`Error::Interrupted`].
pub fn read_corpus(
    output: &Path,
    hash: HashName,
    threads: usize,
    counts: &ReadAgain,
    stop: &Stop,
) -> Result<FoundCorpus, Error> {
    let root = output.join(CORPUS);
    let (mut names, mut other_entries) = (Vec::new(), Vec::new());
    list(&root, "", true, &mut names, &mut other_entries, stop)?;
    let hasher = CorpusHasher::new(hash);
    let batches: Vec<&[String]> = names.chunks(BATCH).collect();
    parallel::map(batches.len(), threads, stop, |number| {
        batches[number]
            .iter()
            .try_for_each(|name| hash_document(&root, name, &hasher, counts, stop))
    })?;
    Ok(FoundCorpus {
        fingerprint: hasher.finish(),
        other_entries,
    })
}

/// Gather the paths of all documents below `root`, at most one directory down.
fn list(
    root: &Path,
    prefix: &str,
    may_descend: bool,
    names: &mut Vec<String>,
    other_entries: &mut Vec<String>,
    stop: &Stop,
) -> Result<(), Error> {
    let directory = root.join(prefix);
    let failure = |error: io::Error| Error::output(&directory, &format!("cannot be read: {error}"));
    for entry in fs::read_dir(&directory).map_err(failure)? {
        stop.check()?;
        let entry = entry.map_err(failure)?;
        let kind = entry.file_type().map_err(failure)?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if kind.is_file() && entry.file_name().to_str().is_some() {
            names.push(name);
        } else if kind.is_dir() && may_descend {
            list(root, &format!("{name}/"), false, names, other_entries, stop)?;
        } else if other_entries.len() < KEPT {
            other_entries.push(quote(&name));
        }
    }
    Ok(())
}

fn hash_document(root: &Path, name: &str, hasher: &CorpusHasher, counts: &ReadAgain, stop: &Stop) -> Result<(), Error> {
    let source = Source::open(root, name)?.stopped_by(stop);
    let mut text = vec![0; usize::try_from(source.identity().size).unwrap_or(usize::MAX)];
    source.read_at(&mut text, 0)?;
    hasher.add(name, &text);
    counts.documents.fetch_add(1, Ordering::Relaxed);
    counts.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print_of(documents: &[(&str, &str)]) -> CorpusFingerprint {
        print_by(HashName::Blake3, documents)
    }

    fn print_by(hash: HashName, documents: &[(&str, &str)]) -> CorpusFingerprint {
        let hasher = CorpusHasher::new(hash);
        for (name, text) in documents {
            hasher.add(name, text.as_bytes());
        }
        hasher.finish()
    }

    #[test]
    fn a_corpus_has_one_fingerprint_whatever_the_order() {
        let documents: Vec<_> = (0..500)
            .map(|number| (format!("d{number}.txt"), format!("text {number}")))
            .collect();
        let mut documents: Vec<_> = documents
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let forwards = print_of(&documents);
        documents.reverse();
        assert_eq!(print_of(&documents), forwards);
        assert_eq!(forwards.documents, 500);
    }

    #[test]
    fn the_fingerprint_is_the_documented_one() {
        for hash in HashName::ALL {
            let mut leaves: Vec<_> = [("a.txt", "one"), ("b.txt", "two")]
                .map(|(name, text)| hash.of(&[format!("{name}\0{text}").as_bytes()]).as_bytes()[..16].to_vec())
                .to_vec();
            leaves.sort();
            assert_eq!(
                print_by(hash, &[("b.txt", "two"), ("a.txt", "one")]).hash,
                hash.of(&[&leaves.concat()])
            );
        }
    }

    #[test]
    fn names_and_texts_do_not_run_together() {
        assert_ne!(print_of(&[("ab", "c")]).hash, print_of(&[("a", "bc")]).hash);
    }

    #[test]
    fn a_written_corpus_has_the_fingerprint_of_its_documents() {
        let directory = tempfile::tempdir().unwrap();
        let corpus = directory.path().join(CORPUS);
        fs::create_dir_all(corpus.join("0a")).unwrap();
        let documents: Vec<_> = (0..300)
            .map(|number| (format!("d{number}.txt"), "x".repeat(number)))
            .collect();
        for (name, text) in &documents {
            fs::write(corpus.join(name), text).unwrap();
        }
        fs::write(corpus.join("0a/deep.txt"), "deep").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", corpus.join("link.txt")).unwrap();
        let mut expected: Vec<_> = documents
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        expected.push(("0a/deep.txt", "deep"));
        for threads in [1, 3] {
            let counts = ReadAgain::default();
            let found = read_corpus(directory.path(), HashName::Blake3, threads, &counts, &Stop::default()).unwrap();
            assert_eq!(found.fingerprint, print_of(&expected));
            let counted = (counts.documents.into_inner(), counts.bytes.into_inner());
            assert_eq!(counted, (found.fingerprint.documents, found.fingerprint.bytes));
            assert_eq!(found.other_entries, ["'link.txt'"]);
        }
        let stop = Stop::default();
        stop.request();
        let outcome = read_corpus(directory.path(), HashName::Blake3, 2, &ReadAgain::default(), &stop);
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
}
