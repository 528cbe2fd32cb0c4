//! The one place where what ends the work of the core crate becomes a Python exception.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use groundkit_core::error::Error;
use groundkit_core::stop::Stop;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError};
use pyo3::prelude::*;

use crate::interrupt::{Watcher, run_beside_watcher};

/// Make the `groundkit.errors.EvalError` that says `message`.
pub fn eval_error(py: Python<'_>, message: &str) -> PyErr {
    let raise = || {
        let kind = py.import("groundkit.errors")?.getattr("EvalError")?;
        Ok(PyErr::from_value(kind.call1((message,))?))
    };
    raise().unwrap_or_else(|error: PyErr| error)
}

/// Do `work` without the interpreter lock on a thread of its own, end it on Ctrl-C, and map what ended it.
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
    convert(
        py,
        run_beside_watcher(py, stop, watcher, || flatten(catch_unwind(AssertUnwindSafe(work))))?,
    )
}

/// Do `work` of a few milliseconds without the interpreter lock, on the calling thread, and map what ended it.
pub fn run_briefly<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    convert(py, py.detach(|| flatten(catch_unwind(AssertUnwindSafe(work)))))
}

/// What ended a piece of work.
enum Ending {
    Error(Error),
    /// The message of a panic, which is a fault of the package.
    Panic(String),
}

fn flatten<T>(outcome: Result<Result<T, Error>, Box<dyn Any + Send>>) -> Result<T, Ending> {
    match outcome {
        Ok(result) => result.map_err(Ending::Error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Ending::Panic(text.unwrap_or("no message").to_owned()))
        }
    }
}

fn convert<T>(py: Python<'_>, outcome: Result<T, Ending>) -> PyResult<T> {
    outcome.map_err(|ending| match ending {
        Ending::Error(Error::Interrupted) => PyKeyboardInterrupt::new_err(()),
        Ending::Error(error @ Error::OutOfMemory) => PyMemoryError::new_err(error.to_string()),
        Ending::Error(error) => eval_error(py, &error.to_string()),
        Ending::Panic(message) => eval_error(
            py,
            &format!(
                "groundkit failed at something that it takes for granted ({message}); this is a fault of groundkit and \
                 not of the data: please report it"
            ),
        ),
    })
}
