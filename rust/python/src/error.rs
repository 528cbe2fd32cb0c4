//! The one place where an error of the core crate becomes a Python exception.

use groundkit_core::error::Error;
use groundkit_core::stop::Stop;
use pyo3::prelude::*;

use crate::interrupt::{Watcher, watched};

/// Make the `groundkit.errors.EvalError` that says `message`.
pub fn eval_error(py: Python<'_>, message: &str) -> PyErr {
    let raise = || {
        let kind = py.import("groundkit.errors")?.getattr("EvalError")?;
        Ok(PyErr::from_value(kind.call1((message,))?))
    };
    raise().unwrap_or_else(|error: PyErr| error)
}

/// Do `work` without the interpreter lock, and map what ended it.
pub fn run<T: Send>(py: Python<'_>, stop: &Stop, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    run_watched(py, stop, None, work)
}

/// As [`run`], and tell the watcher how far the work is.
pub fn run_watched<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    watcher: Option<Watcher>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    watched(py, stop, watcher, work)?.map_err(|error| eval_error(py, &error.to_string()))
}
