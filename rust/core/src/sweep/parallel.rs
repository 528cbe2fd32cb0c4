//! Work shared by several threads, ended when the caller asks for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bootstrap::Error;

/// Time between two questions whether to stop.
const QUESTION_INTERVAL: Duration = Duration::from_millis(20);

/// Run `step` on every thread's own state until it returns `false`; what `finish` makes of the states, thread by thread.
pub fn work<S, T: Send>(
    threads: usize,
    interrupted: &mut dyn FnMut() -> bool,
    start: impl Fn() -> S + Sync,
    step: impl Fn(&mut S) -> bool + Sync,
    finish: impl Fn(S) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let stopped = AtomicBool::new(false);
    let run = |interrupted: &mut dyn FnMut() -> bool| {
        let mut state = start();
        let mut asked = Instant::now();
        while !stopped.load(Ordering::Relaxed) && step(&mut state) {
            if asked.elapsed() >= QUESTION_INTERVAL {
                asked = Instant::now();
                if interrupted() {
                    stopped.store(true, Ordering::Relaxed);
                }
            }
        }
        finish(state)
    };
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| run(&mut || false))).collect();
        let mut results = vec![run(interrupted)];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    });
    if stopped.load(Ordering::Relaxed) {
        Err(Error::Interrupted)
    } else {
        Ok(results)
    }
}

/// Apply `function` to the numbers below `length`.
pub fn map<T: Send>(
    length: usize,
    threads: usize,
    interrupted: &mut dyn FnMut() -> bool,
    function: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let parts = work(
        threads.min(length),
        interrupted,
        Vec::new,
        |values| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number < length {
                values.push((number, function(number)));
            }
            number < length
        },
        |values| values,
    )?;
    let mut values: Vec<(usize, T)> = parts.into_iter().flatten().collect();
    values.sort_unstable_by_key(|&(number, _)| number);
    Ok(values.into_iter().map(|(_, value)| value).collect())
}
