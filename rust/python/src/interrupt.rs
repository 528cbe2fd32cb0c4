//! Ctrl-C and progress while the interpreter lock is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Time between two reports; a report costs some microseconds.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Who is told how far the work is.
pub struct Watcher {
    callback: Py<PyAny>,
    bytes_total: u64,
    done: Box<dyn Fn() -> Done + Send>,
    reported: Instant,
}

/// How far the work is.
#[derive(Clone, Copy)]
pub struct Done {
    pub bytes: u64,
    pub documents: u64,
}

/// Counts bytes for all time; the work started at `start`.
struct Counter {
    bytes: Arc<AtomicU64>,
    start: u64,
}

impl Watcher {
    /// Call `callback(bytes_done, bytes_total, documents_done)` while work goes on that reads `sources`.
    pub fn new<'a>(
        callback: Option<Py<PyAny>>,
        sources: impl IntoIterator<Item = &'a groundkit_core::beir::source::Source>,
        documents: impl Fn() -> u64 + Send + 'static,
    ) -> Option<Self> {
        let mut bytes_total = 0;
        let mut counters = Vec::new();
        for source in sources {
            bytes_total += source.size_on_disk();
            let bytes = source.bytes_read();
            // Members of one archive have one counter.
            if counters
                .iter()
                .any(|counter: &Counter| Arc::ptr_eq(&counter.bytes, &bytes))
            {
                continue;
            }
            let start = bytes.load(Ordering::Relaxed);
            counters.push(Counter { bytes, start });
        }
        let read = |counter: &Counter| counter.bytes.load(Ordering::Relaxed) - counter.start;
        let done = move || Done {
            // Headers of an archive, and lines that are looked up again, are read on top.
            bytes: counters.iter().map(read).sum::<u64>().min(bytes_total),
            documents: documents(),
        };
        Self::counting(callback, bytes_total, done)
    }

    /// As [`Watcher::new`], for work that counts by itself.
    pub fn counting(
        callback: Option<Py<PyAny>>,
        bytes_total: u64,
        done: impl Fn() -> Done + Send + 'static,
    ) -> Option<Self> {
        Some(Self {
            callback: callback?,
            bytes_total,
            done: Box::new(done),
            reported: Instant::now(),
        })
    }

    fn report(&mut self, py: Python<'_>) -> PyResult<()> {
        let Done { bytes, documents } = (self.done)();
        self.callback.call1(py, (bytes, self.bytes_total, documents))?;
        self.reported = Instant::now();
        Ok(())
    }
}

/// Run `work` without the interpreter lock; the closure it gets says whether a signal handler raised.
///
/// The handler's exception is what the caller sees, whatever `work` makes of being stopped.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send) -> PyResult<T> {
    looking_up(py, check_signals, work)
}

/// As [`detached`], and tell the watcher how far the work is, also before it starts and when it has succeeded; the
/// watcher may raise as well.
pub fn watched<T: Send, E: Send>(
    py: Python<'_>,
    watcher: Option<Watcher>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    let Some(mut watcher) = watcher else {
        return detached(py, work);
    };
    watcher.report(py)?;
    let look_up = |py: Python<'_>| {
        check_signals(py)?;
        if watcher.reported.elapsed() >= REPORT_INTERVAL {
            watcher.report(py)?;
        }
        Ok(())
    };
    let result = looking_up(py, look_up, work)?;
    if result.is_ok() {
        watcher.report(py)?;
    }
    Ok(result)
}

fn looking_up<T: Send>(
    py: Python<'_>,
    mut look_up: impl FnMut(Python<'_>) -> PyResult<()> + Send,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| {
        work(&mut || {
            if raised.is_none() {
                raised = Python::attach(&mut look_up).err();
            }
            raised.is_some()
        })
    });
    raised.map_or(Ok(result), Err)
}

fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}
