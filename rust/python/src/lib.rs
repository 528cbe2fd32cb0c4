//! `groundkit._native`: the thin layer between Python and `groundkit-core`.

mod bootstrap;
mod columns;
mod error;
mod inspect;
mod interrupt;
mod publish;
mod scores;
mod sweep;

/// The extension module; free-threaded safe, because no state is shared between calls.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::bootstrap::{levels, paired_bootstrap};
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::inspect::{CheckedFile, Dataset, Problem, QrelsFile, check_records, read_qrels};
    #[pymodule_export]
    use crate::publish::{
        CorpusFingerprint, FileFingerprint, FoundCorpus, WrittenOutput, find_obstacles, read_corpus, read_file,
        write_output,
    };
    #[pymodule_export]
    use crate::scores::ScoreReader;
    #[pymodule_export]
    use crate::sweep::{compare_averages, compare_rows, student_quantile, student_two_sided};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
