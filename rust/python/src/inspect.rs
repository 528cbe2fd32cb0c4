//! Reading and checking the files of a BEIR dataset.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::{Int64Array, LargeStringArray, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use groundkit_core::beir::check::judged::Judged;
use groundkit_core::beir::check::mapping::adapted_id;
use groundkit_core::beir::check::naming::{Policy, Role};
use groundkit_core::beir::check::problem::{self, Problems};
use groundkit_core::beir::check::qrels::{Accepts, Qrels, Strings};
use groundkit_core::beir::check::records::{self, check};
use groundkit_core::beir::digest::HashName;
use groundkit_core::beir::source::dataset;
use groundkit_core::beir::source::file::Source;
use groundkit_core::beir::source::lines::Content;
use groundkit_core::parallel;
use groundkit_core::stop::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::{Columns, column, import, strings};
use crate::error::{run, run_watched};
use crate::interrupt::Watcher;

/// Something that is wrong with one line.
#[pyclass(frozen, get_all, module = "groundkit._native")]
pub struct Problem {
    kind: &'static str,
    line: u64,
    /// What is wrong, for people; names file and line.
    message: String,
}

fn kept(problems: &Problems, file: &str) -> Vec<Problem> {
    let problem = |problem: &problem::Problem| Problem {
        kind: problem.kind.name(),
        line: problem.line,
        message: problem.message(file),
    };
    problems.kept().map(problem).collect()
}

fn counts(problems: &Problems) -> BTreeMap<&'static str, u64> {
    problems.counts().map(|(kind, count)| (kind.name(), count)).collect()
}

/// A directory or zip archive with the files of a dataset.
#[pyclass(frozen, module = "groundkit._native")]
pub struct Dataset(dataset::Dataset);

#[pymethods]
impl Dataset {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts owned paths")]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let stop = Stop::default();
        run(py, &stop, || dataset::Dataset::open(&path, &stop)).map(Self)
    }

    /// The splits that have qrels, in ascending order.
    fn splits(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        run(py, self.0.stop(), || self.0.splits())
    }
}

/// A qrels file that was read whole.
#[pyclass(frozen, module = "groundkit._native")]
pub struct QrelsFile {
    pub source: Source,
    pub content: Content,
    rows: Columns,
    problems: Problems,
}

#[pymethods]
impl QrelsFile {
    /// How messages name it, such as `scifact.zip:scifact/qrels/test.tsv`.
    #[getter]
    fn name(&self) -> &str {
        self.source.name()
    }

    /// Its well-formed rows: line, query, document, grade.
    #[getter]
    fn rows(&self) -> Columns {
        self.rows.clone()
    }

    #[getter]
    fn problems(&self) -> Vec<Problem> {
        kept(&self.problems, self.source.name())
    }

    #[getter]
    fn problem_counts(&self) -> BTreeMap<&'static str, u64> {
        counts(&self.problems)
    }

    #[getter]
    fn size(&self) -> u64 {
        self.content.size
    }

    #[getter]
    fn digest(&self) -> Option<String> {
        self.content.hash.map(|digest| digest.to_string())
    }
}

/// Find a hash by its name.
pub fn hash_named(name: &str) -> PyResult<HashName> {
    HashName::ALL
        .into_iter()
        .find(|hash| hash.name() == name)
        .ok_or_else(|| PyValueError::new_err(format!("no hash {name}")))
}

/// Read and check a qrels file, such as `qrels/test.tsv`.
#[pyfunction]
#[pyo3(signature = (dataset, name, *, any_document=false, any_query=false, hash=None, progress=None))]
pub fn read_qrels(
    py: Python<'_>,
    dataset: &Dataset,
    name: &str,
    any_document: bool,
    any_query: bool,
    hash: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<QrelsFile> {
    let accepts = Accepts {
        documents: any_document,
        queries: any_query,
    };
    let hash = hash.map(hash_named).transpose()?;
    let source = run(py, dataset.0.stop(), || dataset.0.source(name))?;
    let watcher = Watcher::new(progress, [&source], || 0);
    let (qrels, content) = run_watched(py, source.stop(), watcher, || Qrels::read(&source, accepts, hash))?;
    let rows = Columns::new([
        ("line", Arc::new(UInt64Array::from(qrels.lines)) as _),
        ("query", Arc::new(string_array(qrels.queries)?) as _),
        ("document", Arc::new(string_array(qrels.documents)?) as _),
        ("grade", Arc::new(Int64Array::from(qrels.grades)) as _),
    ])?;
    Ok(QrelsFile {
        source,
        content,
        rows,
        problems: qrels.problems,
    })
}

fn string_array(strings: Strings) -> PyResult<LargeStringArray> {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(strings.offsets));
    LargeStringArray::try_new(offsets, Buffer::from_vec(strings.bytes), None)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// `corpus.jsonl` or `queries.jsonl`, read whole and checked; it stays open.
#[pyclass(frozen, module = "groundkit._native")]
pub struct CheckedFile(pub Arc<records::CheckedFile>);

#[pymethods]
impl CheckedFile {
    /// How messages name it, such as `corpus.jsonl.gz`.
    #[getter]
    fn name(&self) -> &str {
        self.0.source.name()
    }

    #[getter]
    fn problems(&self) -> Vec<Problem> {
        kept(&self.0.problems, self.0.source.name())
    }

    #[getter]
    fn problem_counts(&self) -> BTreeMap<&'static str, u64> {
        counts(&self.0.problems)
    }

    #[getter]
    fn size(&self) -> u64 {
        self.0.content.size
    }

    #[getter]
    fn digest(&self) -> Option<String> {
        self.0.content.hash.map(|digest| digest.to_string())
    }

    #[getter]
    fn record_count(&self) -> u64 {
        self.0.records
    }

    /// Documents left out for want of title and text.
    #[getter]
    fn dropped_count(&self) -> u64 {
        self.0.dropped
    }

    /// The identifiers that have another name in the adapted dataset, and these names.
    #[getter]
    fn mapped(&self) -> PyResult<Columns> {
        let mapped = || self.0.mapped.iter();
        let sources = LargeStringArray::from_iter_values(mapped());
        let names = LargeStringArray::from_iter_values(mapped().map(|id| adapted_id(id)));
        Columns::new([
            ("source_id", Arc::new(sources) as _),
            ("adapted_id", Arc::new(names) as _),
        ])
    }

    #[getter]
    fn character_count(&self) -> u64 {
        self.0.characters
    }

    /// The line of the record of each judged identifier, 0 where there is none.
    #[getter]
    fn judged_lines(&self) -> PyResult<Columns> {
        let lines = self.0.judged_lines.iter().map(|line| line.unwrap_or(0));
        Columns::new([("line", Arc::new(UInt64Array::from_iter_values(lines)) as _)])
    }
}

/// Check all records of a file; `judged` is a table of distinct identifiers (`id`) and whether a row makes them
/// relevant (`relevant`).
#[pyfunction]
#[pyo3(signature = (dataset, name, *, documents, judged, map_ids=false, drop_empty=false, hash=None, progress=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn check_records(
    py: Python<'_>,
    dataset: &Dataset,
    name: &str,
    documents: bool,
    judged: &Bound<'_, PyAny>,
    map_ids: bool,
    drop_empty: bool,
    hash: Option<&str>,
    progress: Option<Py<PyAny>>,
    threads: Option<usize>,
) -> PyResult<CheckedFile> {
    let hash = hash.map(hash_named).transpose()?;
    let batches = import(judged)?;
    let mut ids = Vec::new();
    for batch in &batches {
        let relevant = column(batch, "relevant")?;
        let relevant = relevant
            .as_boolean_opt()
            .ok_or_else(|| PyValueError::new_err("relevant must be boolean"))?;
        for (id, relevant) in strings(column(batch, "id")?)?.zip(relevant) {
            ids.push((id.as_bytes(), relevant.unwrap_or(false)));
        }
    }
    let judged = Judged::new(ids);
    let policy = Policy { map_ids, drop_empty };
    let role = if documents { Role::Documents } else { Role::Queries };
    let source = run(py, dataset.0.stop(), || dataset.0.source(name))?;
    let counted = documents.then(|| Arc::clone(source.records_checked()));
    let watcher = Watcher::new(progress, [&source], move || {
        counted.as_ref().map_or(0, |records| records.load(Ordering::Relaxed))
    });
    let checked = run_watched(py, dataset.0.stop(), watcher, || {
        check(source, role, &judged, policy, hash, parallel::count_threads(threads))
    })?;
    Ok(CheckedFile(Arc::new(checked)))
}
