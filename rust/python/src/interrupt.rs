//! Ctrl-C while the interpreter lock is released.

use pyo3::prelude::*;

/// Run `work` without the interpreter lock; the closure it gets says whether a signal handler raised.
///
/// The handler's exception is what the caller sees, whatever `work` makes of being stopped.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| {
        work(&mut || {
            if raised.is_none() {
                raised = Python::attach(check_signals).err();
            }
            raised.is_some()
        })
    });
    raised.map_or(Ok(result), Err)
}

fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}
