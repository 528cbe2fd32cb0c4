//! How many threads a piece of work may use.

use std::thread::available_parallelism;

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
