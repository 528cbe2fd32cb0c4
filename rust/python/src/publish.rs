//! Writing an adapted dataset.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use groundkit_core::beir::check::space::Space;
use groundkit_core::beir::output::adapt::{Adaptation, Pair};
use groundkit_core::beir::output::fingerprint::{self, CorpusPrint, OutputPrint, ReadAgain};
use groundkit_core::beir::output::layout::Layout;
use groundkit_core::beir::output::staging::Output;
use groundkit_core::beir::source::file::Source;
use groundkit_core::beir::source::lines;
use groundkit_core::parallel;
use groundkit_core::stop::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::columns::{import, strings};
use crate::error::{eval_error, run, run_watched};
use crate::inspect::{CheckedFile, hash_named};
use crate::interrupt::{Done, Watcher};

/// Say what stands in the way of writing a corpus to a resolved output directory; without a corpus, only what stands
/// there already.
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
        Output::new(output).obstacles(&space, layout(sharded), &stop)
    })
}

fn layout(sharded: bool) -> Layout {
    if sharded { Layout::Sharded } else { Layout::Flat }
}

/// Write documents, judgments and `others` (names and contents) to a resolved output directory, all or nothing; `pairs`
/// is a table of relevant pairs (`query`, `document`), each once. `describe` makes the content of `adaptation.json` of
/// what was written: documents, their bytes and hash, and the files beside them with bytes and hash.
#[pyfunction]
#[pyo3(signature = (output, *, corpus, queries, pairs, others, describe, sharded=false, durable=false, progress=None, threads=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "they are keywords in Python"
)]
pub fn publish(
    py: Python<'_>,
    output: PathBuf,
    corpus: &Bound<'_, CheckedFile>,
    queries: &Bound<'_, CheckedFile>,
    pairs: &Bound<'_, PyAny>,
    others: Vec<(String, PyBackedBytes)>,
    describe: &Bound<'_, PyAny>,
    sharded: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<()> {
    let batches = import(pairs)?;
    let mut pairs = Vec::new();
    for batch in &batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| PyValueError::new_err(format!("no column {name}")))
        };
        pairs.extend(strings(column("query")?)?.zip(strings(column("document")?)?));
    }
    let (corpus, queries) = (&corpus.get().0, &queries.get().0);
    let others: Vec<(&str, &[u8])> = others
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_ref()))
        .collect();
    let layout = layout(sharded);
    let threads = parallel::count_threads(threads);
    let (counted, before) = (Arc::clone(corpus), corpus.visited());
    let watcher = Watcher::new(progress, [&corpus.source, &queries.source], move || {
        counted.visited() - before
    });
    let describe_written = describe.clone().unbind();
    let mut raised = None;
    let mut describe = |print: &OutputPrint| {
        let OutputPrint { corpus, files } = print;
        let files: Vec<_> = files
            .iter()
            .map(|(name, file)| (name.as_str(), file.bytes, file.hash.to_string()))
            .collect();
        let call = |py: Python<'_>| {
            let arguments = (corpus.documents, corpus.bytes, corpus.hash.to_string(), files);
            describe_written.call1(py, arguments)?.extract(py)
        };
        Python::attach(call).map_err(|error| raised = Some(error)).ok()
    };
    let outcome = run_watched(py, corpus.source.stop(), watcher, || {
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
            layout,
            others: &others,
            threads,
            durable,
        }
        .publish(Output::new(output), &mut describe)
    });
    raised.map_or(outcome, Err)
}

/// Read the documents of an output again: how many, their bytes, their hash, and entries that are no documents;
/// `bytes_total` is how many bytes the watcher is told of.
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
) -> PyResult<(u64, u64, String, Vec<String>)> {
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
    let CorpusPrint { documents, bytes, hash } = found.print;
    Ok((documents, bytes, hash.to_string(), found.strangers))
}

/// Size and hash of a file of an output.
#[pyfunction]
#[pyo3(signature = (directory, name, *, hash="blake3", progress=None, threads=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts owned paths")]
pub fn hash_file(
    py: Python<'_>,
    directory: PathBuf,
    name: &str,
    hash: &str,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<(u64, Option<String>)> {
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
    Ok((content.size, content.hash.map(|digest| digest.to_string())))
}
