//! How many threads a piece of work may use, and how they share it.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use crate::error::Error;
use crate::stop::Stop;

/// Count the threads to use: `requested`, else the variable `RAYON_NUM_THREADS`, else the cores of this process.
///
/// A request of zero, and a variable that is no positive number, count as absent.
#[must_use]
pub fn count_threads(requested: Option<usize>) -> usize {
    let variable = || std::env::var("RAYON_NUM_THREADS").ok()?.trim().parse().ok();
    requested
        .filter(|&threads| threads > 0)
        .or_else(|| variable().filter(|&threads| threads > 0))
        .unwrap_or_else(|| available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Do `work` on up to `threads` threads at once, of which the calling one has the number 0.
///
/// Where the system gives no further thread, fewer do the work, so `work` must leave nothing to a thread of a certain
/// number but the first. Returns what each thread gives; a panic of one of them becomes the caller's.
pub fn run<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let spawn = |number| {
            let builder = thread::Builder::new().name("groundkit".to_owned());
            builder.spawn_scoped(scope, move || work(number)).ok()
        };
        let others: Vec<_> = (1..threads).map_while(spawn).collect();
        let mut results = vec![work(0)];
        results.extend(
            others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))),
        );
        results
    })
}

/// Apply `function` to every number below `length`, on up to `threads` threads; the results in order.
///
/// # Errors
/// The error of the lowest number that has one, and [`Error::Interrupted`] when the stop is requested.
pub fn map<T: Send>(
    length: usize,
    threads: usize,
    stop: &Stop,
    function: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let parts = run(threads.min(length), |_| {
        let mut results = Vec::new();
        while !failed.load(Ordering::Relaxed) && !stop.is_requested() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= length {
                break;
            }
            let result = function(number);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            results.push((number, result));
        }
        results
    });
    stop.check()?;
    let mut results: Vec<_> = parts.into_iter().flatten().collect();
    // Numbers are taken in order, so every one below a failed one has been worked on.
    results.sort_unstable_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_from_any_number_of_threads() {
        let expected: Vec<usize> = (0..1_000).map(|number| number * 3).collect();
        for threads in [0, 1, 2, 5] {
            let found = map(1_000, threads, &Stop::default(), |number| Ok(number * 3));
            assert_eq!(found.as_ref(), Ok(&expected));
        }
    }

    #[test]
    fn the_lowest_number_that_fails_decides_the_error() {
        for threads in [1, 4] {
            let found = map(1_000, threads, &Stop::default(), |number| match number {
                300 | 301 | 900 => Err(Error::NotFinite { comparison: number }),
                _ => Ok(()),
            });
            assert_eq!(found, Err(Error::NotFinite { comparison: 300 }));
        }
    }

    #[test]
    fn a_request_to_stop_ends_the_work() {
        let stop = Stop::default();
        let found = map(usize::MAX, 2, &stop, |number| {
            if number == 100 {
                stop.request();
            }
            Ok(())
        });
        assert_eq!(found, Err(Error::Interrupted));
    }

    #[test]
    #[should_panic(expected = "a panic of the second thread")]
    fn a_panic_of_another_thread_becomes_that_of_the_caller() {
        let reached = AtomicBool::new(false);
        run(2, |number| {
            if number == 1 {
                reached.store(true, Ordering::Release);
                panic!("a panic of the second thread");
            }
            while !reached.load(Ordering::Acquire) {
                thread::yield_now();
            }
        });
    }
}
