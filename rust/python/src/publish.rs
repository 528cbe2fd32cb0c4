//! Writing an adapted dataset.

use std::path::PathBuf;
use std::sync::Arc;

use groundkit_core::beir::publish::Output;
use groundkit_core::beir::write::{Adaptation, Layout, Pair};
use groundkit_core::threads;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

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

/// Write documents, judgments and `others` (names and contents) to a resolved output directory, all or nothing; `pairs`
/// is a table of relevant pairs (`query`, `document`), each once.
#[pyfunction]
#[pyo3(signature = (output, *, corpus, queries, pairs, others, sharded=false, durable=false, progress=None, threads=None))]
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
    sharded: bool,
    durable: bool,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<()> {
    let batches = import(pairs)?;
    let (corpus, queries) = (&corpus.get().0, &queries.get().0);
    let mut named = Vec::new();
    for batch in &batches {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| PyValueError::new_err(format!("no column {name}")))
        };
        let (query, document) = (strings(column("query")?)?, strings(column("document")?)?);
        named.extend(query.zip(document).map(|(query, document)| {
            (
                queries.naming.name(query),
                corpus.naming.name(document),
                query,
                document,
            )
        }));
    }
    named.sort_unstable();
    let pairs: Vec<_> = named
        .iter()
        .map(|(query_name, document_name, query, document)| Pair {
            query,
            query_name,
            document,
            document_name,
        })
        .collect();
    let others: Vec<(&str, &[u8])> = others
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_ref()))
        .collect();
    let layout = if sharded { Layout::Sharded } else { Layout::Flat };
    let threads = threads::count(threads);
    let (counted, before) = (Arc::clone(corpus), corpus.visited());
    let watcher = Watcher::new(progress, [&corpus.source, &queries.source], move || {
        counted.visited() - before
    });
    run_watched(py, watcher, |interrupted| {
        Adaptation {
            corpus,
            queries,
            pairs: &pairs,
            layout,
            others: &others,
            threads,
            durable,
        }
        .publish(Output::new(output), interrupted)
    })
}
