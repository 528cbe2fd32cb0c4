//! Writing an adapted dataset.

use std::path::PathBuf;
use std::sync::Arc;

use groundkit_core::beir::publish::Output;
use groundkit_core::beir::write::{Adaptation, Pair};
use groundkit_core::threads;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::{import, strings};
use crate::error::{eval_error, run_watched};
use crate::inspect::CheckedFile;
use crate::interrupt::Watcher;

/// Say what stands in the way of writing to a resolved output directory.
#[pyfunction]
pub fn find_obstacles(py: Python<'_>, output: PathBuf) -> PyResult<Vec<String>> {
    Output::new(output)
        .obstacles()
        .map_err(|error| eval_error(py, &error.to_string()))
}

/// Write documents and judgments to a resolved output directory, all or nothing; `pairs` is a table of relevant pairs
/// (`query`, `document`), each once, sorted by code point.
#[pyfunction]
#[pyo3(signature = (output, *, corpus, queries, pairs, durable=false, progress=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn publish(
    py: Python<'_>,
    output: PathBuf,
    corpus: &Bound<'_, CheckedFile>,
    queries: &Bound<'_, CheckedFile>,
    pairs: &Bound<'_, PyAny>,
    durable: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<()> {
    let batches = import(pairs)?;
    let mut rows = Vec::new();
    for batch in &batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| PyValueError::new_err(format!("no column {name}")))
        };
        let (query, document) = (strings(column("query")?)?, strings(column("document")?)?);
        rows.extend(query.zip(document).map(|(query, document)| Pair { query, document }));
    }
    let (corpus, queries) = (&corpus.get().0, &queries.get().0);
    let threads = threads::count(threads);
    let (counted, before) = (Arc::clone(corpus), corpus.visited());
    let watcher = Watcher::new(progress, [&corpus.source, &queries.source], move || {
        counted.visited() - before
    });
    run_watched(py, watcher, |interrupted| {
        Adaptation {
            corpus,
            queries,
            pairs: &rows,
            threads,
            durable,
        }
        .publish(Output::new(output), interrupted)
    })
}
