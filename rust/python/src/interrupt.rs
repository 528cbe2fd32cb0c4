//! Ctrl-C and progress while the interpreter lock is released.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use groundkit_core::stop::Stop;
use pyo3::prelude::*;

/// Time between two looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

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
        sources: impl IntoIterator<Item = &'a groundkit_core::beir::source::file::Source>,
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

/// Run `work` on a thread of its own, without the interpreter lock, and meanwhile look for signals and tell the watcher
/// how far the work is, also before it starts and when it has succeeded.
///
/// What a signal handler or the watcher raises requests the `stop`, and is what the caller sees once `work` has ended,
/// whatever `work` makes of it. Since the calling thread has no other work, it notices at once.
pub fn run_beside_watcher<T: Send, E: Send>(
    py: Python<'_>,
    stop: &Stop,
    mut watcher: Option<Watcher>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    watcher.as_mut().map_or(Ok(()), |watcher| watcher.report(py))?;
    let mut raised = None;
    let mut look_up = |py: Python<'_>| {
        let mut outcome = py.check_signals();
        if let Some(watcher) = &mut watcher
            && outcome.is_ok()
            && !stop.is_requested()
            && watcher.reported.elapsed() >= REPORT_INTERVAL
        {
            outcome = watcher.report(py);
        }
        if let Err(error) = outcome {
            stop.request();
            raised = Some(error);
        }
    };
    let result = py.detach(|| {
        let work = Mutex::new(Some(work));
        let take = || {
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            work.expect("one thread takes the work, once")
        };
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            let take = &take;
            let builder = std::thread::Builder::new().name("groundkit".to_owned());
            let spawned = builder.spawn_scoped(scope, move || {
                // The receiver waits for this.
                let _ = sender.send(take()());
            });
            let Ok(worker) = spawned else {
                // Where no thread can be had, work cannot be interrupted.
                return take()();
            };
            loop {
                match receiver.recv_timeout(SIGNAL_INTERVAL) {
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Timeout) => Python::attach(&mut look_up),
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => unreachable!("a thread ends with a result or a panic"),
                    },
                }
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    if let Some(watcher) = &mut watcher
        && result.is_ok()
    {
        watcher.report(py)?;
    }
    Ok(result)
}
