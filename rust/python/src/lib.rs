//! `groundkit._native`: the thin layer between Python and `groundkit-core`.

/// The extension module; free-threaded safe, because no state is shared between calls.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
