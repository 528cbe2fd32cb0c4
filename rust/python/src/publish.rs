//! Writing an adapted dataset, and reading it again.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use groundkit_core::beir::check::space::Space;
use groundkit_core::beir::output::adapt::{self, Adaptation, Pair};
use groundkit_core::beir::output::fingerprint::{self, ReadAgain};
use groundkit_core::beir::output::handle::Destination;
use groundkit_core::beir::output::layout::Layout;
use groundkit_core::beir::output::obstacles;
use groundkit_core::beir::source::file::Source;
use groundkit_core::beir::source::lines;
use groundkit_core::parallel;
use groundkit_core::stop::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{IntoPyDict, PyDict};

use crate::columns::{column, import, strings};
use crate::error::{eval_error, run, run_watched};
use crate::inspect::{CheckedFile, hash_named};
use crate::interrupt::{Done, Watcher};

/// Say what keeps a corpus from being written to a resolved output directory; without a corpus, only what is there
/// already.
#[pyfunction]
#[pyo3(signature = (output, corpus, *, sharded=false))]
pub fn find_obstacles(
    py: Python<'_>,
    output: PathBuf,
    corpus: Option<&Bound<'_, CheckedFile>>,
    sharded: bool,
) -> PyResult<Vec<String>> {
    let space = corpus.map_or_else(Space::default, |corpus| corpus.get().0.space);
    let stop = Stop::default();
    run(py, &stop, || {
        obstacles::find_obstacles(&Destination::new(output), &space, layout(sharded), &stop)
    })
}

fn layout(sharded: bool) -> Layout {
    if sharded { Layout::Sharded } else { Layout::Flat }
}

/// All documents of a corpus as one.
#[pyclass(frozen, get_all, module = "groundkit._native")]
#[derive(Clone)]
pub struct CorpusFingerprint {
    document_count: u64,
    /// Bytes of all texts.
    size: u64,
    /// In hexadecimal digits.
    digest: String,
}

impl From<&fingerprint::CorpusFingerprint> for CorpusFingerprint {
    fn from(corpus: &fingerprint::CorpusFingerprint) -> Self {
        Self {
            document_count: corpus.documents,
            size: corpus.bytes,
            digest: corpus.hash.to_string(),
        }
    }
}

/// A file as a whole.
#[pyclass(frozen, get_all, module = "groundkit._native")]
#[derive(Clone)]
pub struct FileFingerprint {
    size: u64,
    /// In hexadecimal digits.
    digest: String,
}

/// An output that is written and not published: a context manager, which removes it unless it was published.
#[pyclass(frozen, module = "groundkit._native")]
pub struct WrittenOutput {
    written: Mutex<Option<adapt::WrittenOutput>>,
    stop: Stop,
    #[pyo3(get)]
    corpus: CorpusFingerprint,
    files: Vec<(String, FileFingerprint)>,
}

impl WrittenOutput {
    fn take(&self) -> Option<adapt::WrittenOutput> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl WrittenOutput {
    /// The files beside the corpus, by name.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.files.clone().into_py_dict(py)
    }

    /// Let all of it appear, with `record` as `adaptation.json`, or nothing.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts owned bytes")]
    fn publish(&self, py: Python<'_>, record: PyBackedBytes) -> PyResult<()> {
        let written = self
            .take()
            .ok_or_else(|| PyValueError::new_err("the output was published or removed before"))?;
        run(py, &self.stop, || written.publish(&record))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let written = self.take();
        run(py, &self.stop, || {
            drop(written);
            Ok(())
        })
    }
}

/// Write documents, judgments and `files` (names and contents) to a staging directory of a resolved output directory;
/// `pairs` is a table of relevant pairs (`query`, `document`), each once.
#[pyfunction]
#[pyo3(signature = (output, *, corpus, queries, pairs, files, sharded=false, durable=false, progress=None, threads=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "they are keywords in Python"
)]
pub fn write_output(
    py: Python<'_>,
    output: PathBuf,
    corpus: &Bound<'_, CheckedFile>,
    queries: &Bound<'_, CheckedFile>,
    pairs: &Bound<'_, PyAny>,
    files: Vec<(String, PyBackedBytes)>,
    sharded: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<WrittenOutput> {
    let batches = import(pairs)?;
    let mut pairs = Vec::new();
    for batch in &batches {
        let queries = strings(column(batch, "query")?)?;
        pairs.extend(queries.zip(strings(column(batch, "document")?)?));
    }
    let (corpus, queries) = (&corpus.get().0, &queries.get().0);
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_ref()))
        .collect();
    let (counted, before) = (Arc::clone(corpus), corpus.visited());
    let watcher = Watcher::new(progress, [&corpus.source, &queries.source], move || {
        counted.visited() - before
    });
    let written = run_watched(py, corpus.source.stop(), watcher, || {
        let mut named: Vec<_> = pairs
            .into_iter()
            .map(|(query, document)| {
                let names = (queries.naming.name(query), corpus.naming.name(document));
                (names, query, document)
            })
            .collect();
        named.sort_unstable();
        let pairs: Vec<_> = named
            .iter()
            .map(|((query_name, document_name), query, document)| Pair {
                query,
                query_name,
                document,
                document_name,
            })
            .collect();
        Adaptation {
            corpus,
            queries,
            pairs: &pairs,
            layout: layout(sharded),
            files: &files,
            threads: parallel::count_threads(threads),
            durable,
        }
        .write(Destination::new(output))
    })?;
    let fingerprint = written.fingerprint();
    let file = |(name, file): &(String, fingerprint::FileFingerprint)| {
        let (size, digest) = (file.bytes, file.hash.to_string());
        (name.clone(), FileFingerprint { size, digest })
    };
    Ok(WrittenOutput {
        corpus: (&fingerprint.corpus).into(),
        files: fingerprint.files.iter().map(file).collect(),
        written: Mutex::new(Some(written)),
        stop: corpus.source.stop().clone(),
    })
}

/// The corpus of an output as it is now.
#[pyclass(frozen, get_all, module = "groundkit._native")]
pub struct FoundCorpus {
    fingerprint: CorpusFingerprint,
    /// Some of the entries that are no documents, quoted.
    other_entries: Vec<String>,
}

/// Read the documents of an output again; `bytes_total` is how many bytes the watcher is told of.
#[pyfunction]
#[pyo3(signature = (output, *, hash="blake3", bytes_total=0, progress=None, threads=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts owned paths")]
pub fn read_corpus(
    py: Python<'_>,
    output: PathBuf,
    hash: &str,
    bytes_total: u64,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<FoundCorpus> {
    let hash = hash_named(hash)?;
    let counts = Arc::new(ReadAgain::default());
    let counted = Arc::clone(&counts);
    let watcher = Watcher::counting(progress, bytes_total, move || Done {
        bytes: counted.bytes.load(Ordering::Relaxed).min(bytes_total),
        documents: counted.documents.load(Ordering::Relaxed),
    });
    let stop = Stop::default();
    let found = run_watched(py, &stop, watcher, || {
        fingerprint::read_corpus(&output, hash, parallel::count_threads(threads), &counts, &stop)
    })?;
    Ok(FoundCorpus {
        fingerprint: (&found.fingerprint).into(),
        other_entries: found.other_entries,
    })
}

/// Read a file of an output again.
#[pyfunction]
#[pyo3(signature = (directory, name, *, hash="blake3", progress=None, threads=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts owned paths")]
pub fn read_file(
    py: Python<'_>,
    directory: PathBuf,
    name: &str,
    hash: &str,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<FileFingerprint> {
    let hash = hash_named(hash)?;
    let stop = Stop::default();
    let source = Source::open(&directory, name)
        .map_err(|error| eval_error(py, &error.to_string()))?
        .stopped_by(&stop);
    let watcher = Watcher::new(progress, [&source], || 0);
    let content = run_watched(py, &stop, watcher, || {
        lines::read(
            &source,
            parallel::count_threads(threads),
            Some(hash),
            &|_| (),
            &mut |()| Ok(()),
        )
    })?;
    Ok(FileFingerprint {
        size: content.size,
        digest: content.hash.map(|digest| digest.to_string()).unwrap_or_default(),
    })
}
