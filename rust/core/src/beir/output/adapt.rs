//! Writing the documents and the judgments into a staging directory.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock, PoisonError};

use foldhash::quality::RandomState;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::fingerprint::{CorpusHasher, FilePrint, HashingWriter, OutputPrint};
use super::judgments;
use super::layout::{CORPUS, JUDGMENTS, Layout, PROVENANCE};
use super::staging::{Output, Staging, create};
use super::system_calls;
use crate::beir::check::identifier::DOCUMENT_SUFFIX;
use crate::beir::check::records::{Checked, Document};
use crate::beir::digest::HashName;
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
    pub corpus: &'a Checked,
    /// The queries.
    pub queries: &'a Checked,
    /// The relevant pairs, each once, sorted by the names of query and then document by code point.
    pub pairs: &'a [Pair<'a>],
    /// Where documents stand.
    pub layout: Layout,
    /// Further files, by their names.
    pub others: &'a [(&'a str, &'a [u8])],
    /// Most threads to use.
    pub threads: usize,
    /// Whether everything is on the disk before it appears.
    pub durable: bool,
}

/// The length and hash of each judged document's text, once it is written.
type Written<'a> = HashMap<&'a str, OnceLock<(usize, blake3::Hash)>, RandomState>;

impl Adaptation<'_> {
    /// Write the dataset and let it appear, all or nothing.
    ///
    /// Memory holds the pairs and 16 bytes a document, but no more than one text a thread: quotes are read back from the
    /// documents written. `describe` makes the content of `adaptation.json` of what was written; nothing ends the work.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written, [`Error::Changed`] when a source is not what was checked,
    /// [`Error::Unreadable`] and [`Error::Interrupted`]. The output is then as it was.
    pub fn publish(
        &self,
        output: Output,
        describe: &mut dyn FnMut(&OutputPrint) -> Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let staging = output.stage(self.corpus.source.stop())?;
        let corpus = Directories::make(&staging, self.layout)?;
        let mut written = Written::default();
        written.extend(self.pairs.iter().map(|pair| (pair.document, OnceLock::new())));
        let hash = self.hash();
        let hasher = CorpusHasher::new(hash);
        self.write_documents(&staging, &corpus, &written, &hasher)?;
        let texts = self.spool_queries(&staging)?;
        let judgments = self.write_judgments(&staging, &corpus, &written, &texts)?;
        let print = OutputPrint {
            corpus: hasher.finish(),
            files: std::iter::once((JUDGMENTS, judgments))
                .chain(
                    self.others
                        .iter()
                        .map(|&(name, content)| (name, FilePrint::of(content, hash))),
                )
                .map(|(name, print)| (name.to_owned(), print))
                .collect(),
        };
        let description = describe(&print).ok_or(Error::Interrupted)?;
        create(staging.new_output(), PROVENANCE, OFlags::WRONLY)
            .and_then(|file| write_all(&file, &description))
            .map_err(|error| staging.failure("write", PROVENANCE, error))?;
        self.corpus.source.verify_unchanged()?;
        self.corpus.source.stop().check()?;
        self.write_others(&staging)?;
        let names: Vec<&str> = self.others.iter().map(|&(name, _)| name).chain([PROVENANCE]).collect();
        staging.publish(&names, self.durable)
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
        written: &Written<'_>,
        hasher: &CorpusHasher,
    ) -> Result<(), Error> {
        let write = |document: Document<'_>| {
            if let Some(entry) = written.get(document.id.as_ref()) {
                let _ = entry.set((document.text.len(), blake3::hash(document.text.as_bytes())));
            }
            if document.text.is_empty() && self.corpus.policy.drop_empty {
                return Ok(());
            }
            with_file_name(&self.corpus.naming.name(&document.id), |name| {
                hasher.add(&corpus.path(name), document.text.as_bytes());
                create(corpus.of(name), name, OFlags::WRONLY)
                    .and_then(|file| write_all(&file, document.text.as_bytes()))
                    .map_err(|error| staging.failure("write document", &format!("{CORPUS}/{name}"), error))
            })
        };
        self.corpus.for_each_document(self.threads, &write)
    }

    fn write_others(&self, staging: &Staging) -> Result<(), Error> {
        for (name, content) in self.others {
            create(staging.new_output(), name, OFlags::WRONLY)
                .and_then(|file| write_all(&file, content))
                .map_err(|error| staging.failure("write", name, error))?;
        }
        Ok(())
    }

    /// Keep the texts of the judged queries in a file without a name.
    fn spool_queries(&self, staging: &Staging) -> Result<Spool<'_>, Error> {
        const NAME: &str = "queries";
        let failure = |error| staging.failure("write", NAME, error);
        let file = create(staging.new_output(), NAME, OFlags::RDWR).map_err(failure)?;
        system_calls::unlinkat(staging.new_output(), NAME, AtFlags::empty()).map_err(failure)?;
        let mut places: HashMap<&str, OnceLock<(u64, usize)>, RandomState> = HashMap::default();
        places.extend(self.pairs.iter().map(|pair| (pair.query, OnceLock::new())));
        let end = Mutex::new(0);
        let write = |query: Document<'_>| {
            if let Some(place) = places.get(query.id.as_ref()) {
                let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
                write_all(&file, query.text.as_bytes()).map_err(failure)?;
                let _ = place.set((*end, query.text.len()));
                *end += query.text.len() as u64;
            }
            Ok(())
        };
        self.queries.for_each_document(1, &write)?;
        Ok(Spool {
            file: File::from(file),
            places,
        })
    }

    fn write_judgments(
        &self,
        staging: &Staging,
        corpus: &Directories,
        written: &Written<'_>,
        texts: &Spool<'_>,
    ) -> Result<FilePrint, Error> {
        let failure = |error: std::io::Error| {
            let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
            staging.failure("write judgments", JUDGMENTS, errno)
        };
        let file = create(staging.new_output(), JUDGMENTS, OFlags::WRONLY).map_err(|error| failure(error.into()))?;
        let mut file = BufWriter::with_capacity(1 << 18, HashingWriter::new(File::from(file), self.hash()));
        let (mut query, mut quote) = (String::new(), String::new());
        for row in self.pairs.chunk_by(|one, next| one.query == next.query) {
            self.corpus.source.stop().check()?;
            let is_known = texts.read(row[0].query, &mut query).map_err(failure)?;
            if !is_known {
                return Err(self.queries.source.changed("content"));
            }
            judgments::start(&mut file, row[0].query_name, &query).map_err(failure)?;
            for (number, pair) in row.iter().enumerate() {
                let fingerprint = written.get(pair.document).and_then(OnceLock::get);
                let (length, hash) = *fingerprint.ok_or_else(|| self.corpus.source.changed("content"))?;
                with_file_name(pair.document_name, |name| {
                    read_back(corpus.of(name), name, &mut quote, length, hash)
                        .map_err(|error| staging.failure("read back document", &format!("{CORPUS}/{name}"), error))?;
                    judgments::gold(&mut file, number == 0, &corpus.path(name), &quote).map_err(failure)
                })?;
            }
            judgments::end(&mut file).map_err(failure)?;
        }
        let (_, print) = file.into_inner().map_err(|error| failure(error.into_error()))?.finish();
        Ok(print)
    }
}

/// The texts of the judged queries, one after the other, and where each one stands.
struct Spool<'a> {
    file: File,
    places: HashMap<&'a str, OnceLock<(u64, usize)>, RandomState>,
}

impl Spool<'_> {
    /// Read the text of a query; `false` where it has none.
    fn read(&self, query: &str, text: &mut String) -> std::io::Result<bool> {
        let Some(&(offset, length)) = self.places.get(query).and_then(OnceLock::get) else {
            return Ok(false);
        };
        let mut bytes = std::mem::take(text).into_bytes();
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, offset)?;
        *text = String::from_utf8(bytes).map_err(std::io::Error::other)?;
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

fn write_all(file: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match system_calls::write(&file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => bytes = &bytes[count..],
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Read a document that was written, and prove that nobody wrote to it since.
fn read_back(
    directory: &OwnedFd,
    name: &str,
    text: &mut String,
    length: usize,
    hash: blake3::Hash,
) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(system_calls::openat(directory, name, flags, Mode::empty())?);
    text.clear();
    text.reserve(length + 1);
    let read = file.take(length as u64 + 1).read_to_string(text);
    read.map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))?;
    if text.len() == length && blake3::hash(text.as_bytes()) == hash {
        Ok(())
    } else {
        Err(Errno::STALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beir::check::judged::Judged;
    use crate::beir::check::naming::{Policy, Role};
    use crate::beir::check::records::check;
    use crate::beir::check::space::Space;
    use crate::beir::source::file::Source;
    use crate::stop::Stop;
    use std::fs;
    use std::path::{Path, PathBuf};

    const QUERIES: &str = "{\"_id\":\"q1\",\"text\":\" what is B? \"}\n";

    struct Dataset {
        directory: tempfile::TempDir,
        corpus: Checked,
        queries: Checked,
    }

    fn dataset(documents: &[(&str, &str)]) -> Dataset {
        let directory = tempfile::tempdir().unwrap();
        let lines = documents
            .iter()
            .map(|(id, text)| format!("{{\"_id\":\"{id}\",\"text\":\"{text}\"}}\n"));
        fs::write(directory.path().join("corpus.jsonl"), lines.collect::<String>()).unwrap();
        fs::write(directory.path().join("queries.jsonl"), QUERIES).unwrap();
        let checked = |name, role, id: &str| {
            let source = Source::open(directory.path(), name).unwrap();
            check(
                source,
                role,
                &Judged::new([(id.as_bytes(), true)]),
                Policy::default(),
                None,
                1,
            )
            .unwrap()
        };
        let (corpus, queries) = (
            checked("corpus.jsonl", Role::Documents, "d1"),
            checked("queries.jsonl", Role::Queries, "q1"),
        );
        Dataset {
            directory,
            corpus,
            queries,
        }
    }

    fn publish(dataset: &Dataset, output: &Path) -> Result<(), Error> {
        let pairs = [Pair {
            query: "q1",
            query_name: "q1",
            document: "d1",
            document_name: "d1",
        }];
        let Dataset { corpus, queries, .. } = dataset;
        let adaptation = Adaptation {
            corpus,
            queries,
            pairs: &pairs,
            layout: Layout::Flat,
            others: &[],
            threads: 2,
            durable: false,
        };
        adaptation.publish(Output::new(output.to_owned()), &mut |_| Some(b"{}\n".to_vec()))
    }

    /// Every path below `root` with its content, directories without.
    fn tree(root: &Path) -> Vec<(PathBuf, Option<String>)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(root).into_iter().flatten() {
            let path = entry.unwrap().path();
            let content = fs::read_to_string(&path).ok();
            found.push((path.strip_prefix(root).unwrap().to_owned(), content));
            found.extend(
                tree(&path)
                    .into_iter()
                    .map(|(inner, content)| (path.strip_prefix(root).unwrap().join(inner), content)),
            );
        }
        found.sort();
        found
    }

    const ROW: &str = "{\"query_id\": \"q1\", \"query\": \"what is B?\", \"category\": \"normal\", \
                       \"gold\": [{\"doc\": \"d1.txt\", \"quote\": \"B\"}]}\n";

    fn expected() -> Vec<(PathBuf, Option<String>)> {
        vec![
            ("adaptation.json".into(), Some("{}\n".into())),
            ("corpus".into(), None),
            ("corpus/d1.txt".into(), Some("B".into())),
            ("corpus/d2.txt".into(), Some("C".into())),
            ("judgments.jsonl".into(), Some(ROW.into())),
        ]
    }

    #[test]
    fn an_absent_output_appears_whole_and_nothing_else_does() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        publish(&dataset, &root.join("deep/er/out")).unwrap();
        assert_eq!(tree(&root.join("deep/er/out")), expected());
        assert_eq!(fs::read_dir(root.join("deep/er")).unwrap().count(), 1);
    }

    #[test]
    fn an_empty_directory_is_replaced_and_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().canonicalize().unwrap().join("out");
        fs::create_dir(&output).unwrap();
        fs::set_permissions(&output, fs::Permissions::from_mode(0o711)).unwrap();
        publish(&dataset, &output).unwrap();
        assert_eq!(tree(&output), expected());
        assert_eq!(fs::metadata(&output).unwrap().permissions().mode() & 0o777, 0o711);
    }

    #[test]
    fn other_files_stay_and_old_judgments_are_replaced() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().canonicalize().unwrap();
        fs::write(output.join("README"), "mine").unwrap();
        fs::write(output.join("judgments.jsonl"), "old").unwrap();
        fs::create_dir(output.join("corpus")).unwrap();
        publish(&dataset, &output).unwrap();
        let mut all = vec![("README".into(), Some("mine".into()))];
        all.extend(expected());
        assert_eq!(tree(&output), all);
    }

    #[test]
    fn a_failing_run_leaves_everything_as_it_was() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let path = dataset.directory.path().join("corpus.jsonl");
        fs::write(&path, fs::read_to_string(&path).unwrap().replace('C', "D")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        assert!(matches!(
            publish(&dataset, &root.join("a/b")),
            Err(Error::Changed { .. })
        ));
        assert_eq!(tree(&root), []);
        fs::write(root.join("judgments.jsonl"), "old").unwrap();
        assert!(matches!(publish(&dataset, &root), Err(Error::Changed { .. })));
        assert_eq!(tree(&root), [("judgments.jsonl".into(), Some("old".into()))]);
    }

    #[test]
    fn no_run_begins_while_another_holds_the_output() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for output in [root.join("out"), root.clone()] {
            fs::write(root.join("other"), "").unwrap();
            let held = Output::new(output.clone()).stage(&Stop::default()).unwrap();
            let refusal = publish(&dataset, &output).unwrap_err().to_string();
            assert!(refusal.contains("another adaptation"), "{refusal}");
            drop(held);
            publish(&dataset, &output).unwrap();
        }
    }

    #[test]
    fn an_interrupted_run_clears_up_unless_it_is_asked_a_second_time() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let stage = |stop: &Stop| {
            let staging = Output::new(root.join("out")).stage(stop);
            staging.inspect(|staging| drop(create(staging.new_output(), "file", OFlags::WRONLY).unwrap()))
        };
        let stop = Stop::default();
        let begun = stage(&stop).unwrap();
        stop.request();
        drop(begun);
        assert_eq!(tree(&root), []);

        let stop = Stop::default();
        let begun = stage(&stop).unwrap();
        stop.request();
        stop.request();
        drop(begun);
        assert!(root.join(".out.groundkit-staging/new/file").exists());
        // Neither does a run that is to end clear up after another one.
        assert!(matches!(stage(&stop), Err(Error::Interrupted)));
        publish(&dataset, &root.join("out")).unwrap();
        assert_eq!(tree(&root.join("out")), expected());
        assert!(!root.join(".out.groundkit-staging").exists());
    }

    #[test]
    fn a_run_that_found_the_output_absent_excludes_one_that_finds_files_in_it() {
        let dataset = dataset(&[("d1", "B")]);
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().canonicalize().unwrap().join("out");
        let held = Output::new(output.clone()).stage(&Stop::default()).unwrap();
        fs::create_dir(&output).unwrap();
        fs::write(output.join("other"), "").unwrap();
        assert!(
            publish(&dataset, &output)
                .unwrap_err()
                .to_string()
                .contains("another adaptation")
        );
        drop(held);
        publish(&dataset, &output).unwrap();
    }

    #[test]
    fn what_groundkit_did_not_make_is_never_removed() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let staging = root.join(".out.groundkit-staging");
        let elsewhere = root.join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &staging).unwrap();
        assert!(
            publish(&dataset, &root.join("out"))
                .unwrap_err()
                .to_string()
                .contains("symbolic link")
        );
        fs::remove_file(&staging).unwrap();
        fs::write(&staging, "mine").unwrap();
        assert!(
            publish(&dataset, &root.join("out"))
                .unwrap_err()
                .to_string()
                .contains("a file stands")
        );
        fs::remove_file(&staging).unwrap();
        fs::create_dir(&staging).unwrap();
        fs::write(staging.join("mine"), "mine").unwrap();
        assert!(
            publish(&dataset, &root.join("out"))
                .unwrap_err()
                .to_string()
                .contains("without a journal")
        );
        assert_eq!(fs::read_to_string(staging.join("mine")).unwrap(), "mine");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert!(!root.join("out").exists());
    }

    #[test]
    fn what_a_killed_run_left_is_cleared() {
        let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
        for journal in ["", "groundkit st", "groundkit staging 1\n"] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().canonicalize().unwrap();
            let staging = root.join(".out.groundkit-staging");
            fs::create_dir_all(staging.join("new/corpus")).unwrap();
            fs::write(staging.join("new/corpus/d9.txt"), "half").unwrap();
            fs::write(staging.join("journal"), journal).unwrap();
            publish(&dataset, &root.join("out")).unwrap();
            assert_eq!(tree(&root.join("out")), expected());
            assert!(!staging.exists());
        }
    }

    /// Stop publishing into a directory that holds files after each of its steps, as a kill would.
    #[test]
    fn a_publication_killed_between_any_two_renames_is_undone_or_complete() {
        use std::os::unix::fs::MetadataExt;
        for steps in 0..=3 {
            let dataset = dataset(&[("d1", "B"), ("d2", "C")]);
            let directory = tempfile::tempdir().unwrap();
            let output = directory.path().canonicalize().unwrap();
            fs::write(output.join("judgments.jsonl"), "old").unwrap();
            let staging = output.join(".groundkit-staging");
            fs::create_dir_all(staging.join("new/corpus")).unwrap();
            fs::write(staging.join("new/corpus/d9.txt"), "X").unwrap();
            fs::write(staging.join("new/judgments.jsonl"), "new").unwrap();
            let part = |name: &str| {
                let metadata = fs::metadata(staging.join("new").join(name)).unwrap();
                format!("{} {} {name}\n", metadata.dev(), metadata.ino())
            };
            let journal = format!("groundkit staging 1\n{}{}", part("corpus"), part("judgments.jsonl"));
            fs::write(staging.join("journal"), journal).unwrap();
            let renames = [
                (output.join("judgments.jsonl"), staging.join("old-judgments.jsonl")),
                (staging.join("new/corpus"), output.join("corpus")),
                (staging.join("new/judgments.jsonl"), output.join("judgments.jsonl")),
            ];
            for (from, to) in &renames[..steps] {
                fs::rename(from, to).unwrap();
            }
            let obstacles = Output::new(output.clone())
                .obstacles(&Space::default(), Layout::Flat, &Stop::default())
                .unwrap();
            if steps == 3 {
                assert!(obstacles[0].contains("already contains"), "{obstacles:?}");
                drop(Output::new(output.clone()).stage(&Stop::default()).unwrap());
                assert_eq!(fs::read_to_string(output.join("judgments.jsonl")).unwrap(), "new");
                assert!(output.join("corpus/d9.txt").exists());
                assert!(!staging.exists());
            } else {
                assert_eq!(obstacles, Vec::<String>::new());
                drop(Output::new(output.clone()).stage(&Stop::default()).unwrap());
                assert_eq!(tree(&output), [("judgments.jsonl".into(), Some("old".into()))]);
                publish(&dataset, &output).unwrap();
                assert_eq!(tree(&output), expected());
            }
        }
    }

    #[test]
    fn obstacles_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let obstacles = |path: &Path| {
            Output::new(path.to_owned())
                .obstacles(&Space::default(), Layout::Flat, &Stop::default())
                .unwrap()
                .join("; ")
        };
        assert_eq!(obstacles(&root.join("absent/too")), "");
        fs::write(root.join("file"), "").unwrap();
        assert!(obstacles(&root.join("file")).contains("is not a directory"));
        assert!(obstacles(&root.join("file/below")).contains("is not a directory"));
        std::os::unix::fs::symlink(&root, root.join("corpus")).unwrap();
        std::os::unix::fs::symlink(root.join("file"), root.join("judgments.jsonl")).unwrap();
        let both = obstacles(&root);
        assert_eq!(both.matches("symbolic link").count(), 2, "{both}");
        assert!(obstacles(&root.join("corpus")).contains("resolves outside"));
        fs::remove_file(root.join("corpus")).unwrap();
        fs::remove_file(root.join("judgments.jsonl")).unwrap();
        fs::write(root.join("corpus"), "").unwrap();
        fs::create_dir(root.join("judgments.jsonl")).unwrap();
        let both = obstacles(&root);
        assert!(
            both.contains("is not a directory") && both.contains("is not a regular file"),
            "{both}"
        );
        fs::remove_file(root.join("corpus")).unwrap();
        fs::create_dir(root.join("corpus")).unwrap();
        fs::write(root.join("corpus/old.txt"), "").unwrap();
        assert!(obstacles(&root).contains("already contains 1 entries, such as 'old.txt'"));
    }

    #[test]
    fn a_name_that_is_no_single_component_is_never_created() {
        let directory = tempfile::tempdir().unwrap();
        let handle = File::open(directory.path()).unwrap();
        for name in ["", ".", "..", "a/b", "/a", "a/", "./a"] {
            assert!(create(&handle, name, OFlags::WRONLY).is_err(), "{name:?}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        create(&handle, "a", OFlags::WRONLY).unwrap();
        assert_eq!(create(&handle, "a", OFlags::WRONLY).unwrap_err(), Errno::EXIST);
    }
}
