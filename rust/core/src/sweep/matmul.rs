//! Weights times rounded deltas, in exact 32-bit integers.

use super::deltas::Deltas;
use super::weights::{CHUNK, LANES, PANELS, Weights, unpack};
use crate::simd::{Kernel, Level, Simd};

/// Columns that are multiplied together.
pub const TILE: usize = 4;
/// Pairs of queries whose weights stay in the first-level cache while all columns pass: 24 KiB of them.
const BLOCK: usize = 128;

/// The packed rounded deltas of several comparisons, one after the other, filled up with zeros to whole tiles.
pub struct Matrix {
    /// Number of comparisons, those that fill up counted.
    pub width: usize,
    /// Their packed pairs.
    pub pairs: Vec<i32>,
}

impl Matrix {
    /// Gather the comparisons.
    pub fn new<'a>(comparisons: impl ExactSizeIterator<Item = &'a Deltas>, queries: usize) -> Self {
        let width = comparisons.len().next_multiple_of(TILE);
        let mut pairs = Vec::with_capacity(width * queries.div_ceil(2));
        for deltas in comparisons {
            pairs.extend_from_slice(&deltas.pairs);
        }
        pairs.resize(width * queries.div_ceil(2), 0);
        Self { width, pairs }
    }
}

/// Add to `sums` the products of 48 resamples with every column.
///
/// `columns` holds the packed pairs of one column after the other; their number is a multiple of [`TILE`].
pub fn multiply(weights: &Weights, columns: &[i32], sums: &mut [[i32; CHUNK]], level: Level) {
    let panels: [_; PANELS] = std::array::from_fn(|panel| weights.panel(panel));
    let pairs = panels[0].len();
    debug_assert_eq!(columns.len(), pairs * sums.len());
    for start in (0..pairs).step_by(BLOCK) {
        let end = pairs.min(start + BLOCK);
        let block = panels.map(|panel| &panel[start..end]);
        for (columns, sums) in columns.chunks_exact(TILE * pairs).zip(sums.as_chunks_mut::<TILE>().0) {
            let columns: [_; TILE] = std::array::from_fn(|column| &columns[column * pairs..][start..end]);
            level.run(MultiplyTile {
                panels: block,
                columns,
                sums,
            });
        }
    }
}

/// Adds the products of one block of weights with one tile of columns.
struct MultiplyTile<'a> {
    panels: [&'a [[i32; LANES]]; PANELS],
    columns: [&'a [i32]; TILE],
    sums: &'a mut [[i32; CHUNK]; TILE],
}

impl Kernel for MultiplyTile<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { panels, columns, sums } = self;
        match simd.level() {
            Level::Portable => multiply_portable(panels, columns, sums),
            // SAFETY: the token shows that this machine has the features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => unsafe { avx2::multiply(panels, columns, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => unsafe { avx512::multiply(panels, columns, sums) },
        }
    }
}

fn multiply_portable(panels: [&[[i32; LANES]]; PANELS], columns: [&[i32]; TILE], sums: &mut [[i32; CHUNK]; TILE]) {
    for (column, sums) in columns.into_iter().zip(sums) {
        for (panel, sums) in panels.into_iter().zip(sums.as_chunks_mut::<LANES>().0) {
            for (weights, &deltas) in panel.iter().zip(column) {
                let deltas = unpack(deltas);
                for (sum, &weight) in sums.iter_mut().zip(weights) {
                    let weight = unpack(weight);
                    *sum += weight.0 * deltas.0 + weight.1 * deltas.1;
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{CHUNK, LANES, PANELS, TILE};
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi32, _mm256_setzero_si256,
        _mm256_storeu_si256,
    };

    /// Vectors that hold the lanes of a panel.
    const VECTORS: usize = 2;

    #[target_feature(enable = "avx2")]
    fn load(lanes: &[i32; LANES / VECTORS]) -> __m256i {
        // SAFETY: the array has the 32 bytes that are read; the load needs no alignment.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    /// Eight accumulators, so that no addition waits for the one before and all of them stay in registers.
    #[target_feature(enable = "avx2")]
    pub(super) fn multiply(
        panels: [&[[i32; LANES]]; PANELS],
        columns: [&[i32]; TILE],
        sums: &mut [[i32; CHUNK]; TILE],
    ) {
        // Equal lengths, said once, spare the loop its bounds checks.
        let pairs = panels[0].len();
        let columns = columns.map(|column| &column[..pairs]);
        for (number, panel) in panels.into_iter().enumerate() {
            let panel = &panel[..pairs];
            let mut totals = [[_mm256_setzero_si256(); VECTORS]; TILE];
            for pair in 0..pairs {
                let weights = panel[pair].as_chunks().0;
                let weights = [load(&weights[0]), load(&weights[1])];
                for column in 0..TILE {
                    let deltas = _mm256_set1_epi32(columns[column][pair]);
                    for vector in 0..VECTORS {
                        let products = _mm256_madd_epi16(weights[vector], deltas);
                        totals[column][vector] = _mm256_add_epi32(totals[column][vector], products);
                    }
                }
            }
            for (totals, sums) in totals.into_iter().zip(sums.iter_mut()) {
                let sums = sums[number * LANES..][..LANES].as_chunks_mut().0;
                for (total, sums) in totals.into_iter().zip(sums) {
                    let sum = _mm256_add_epi32(load(sums), total);
                    // SAFETY: the array has the 32 bytes that are written; the store needs no alignment.
                    unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), sum) };
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{CHUNK, LANES, PANELS, TILE};
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi32, _mm512_dpwssd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
        _mm512_storeu_si512,
    };

    #[target_feature(enable = "avx512f")]
    fn load(lanes: &[i32; LANES]) -> __m512i {
        // SAFETY: the array has the 64 bytes that are read; the load needs no alignment.
        unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
    }

    /// Twelve accumulators, so that no addition waits for the one before.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn multiply(
        panels: [&[[i32; LANES]]; PANELS],
        columns: [&[i32]; TILE],
        sums: &mut [[i32; CHUNK]; TILE],
    ) {
        // Equal lengths, said once, spare the loop its bounds checks.
        let pairs = panels[0].len();
        let panels = panels.map(|panel| &panel[..pairs]);
        let columns = columns.map(|column| &column[..pairs]);
        let mut totals = [[_mm512_setzero_si512(); PANELS]; TILE];
        for pair in 0..pairs {
            let weights = [load(&panels[0][pair]), load(&panels[1][pair]), load(&panels[2][pair])];
            for column in 0..TILE {
                let deltas = _mm512_set1_epi32(columns[column][pair]);
                for panel in 0..PANELS {
                    totals[column][panel] = _mm512_dpwssd_epi32(totals[column][panel], weights[panel], deltas);
                }
            }
        }
        for (totals, sums) in totals.into_iter().zip(sums) {
            for (total, sums) in totals.into_iter().zip(sums.as_chunks_mut::<LANES>().0) {
                let sum = _mm512_add_epi32(load(sums), total);
                // SAFETY: the array has the 64 bytes that are written; the store needs no alignment.
                unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), sum) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::weights::{Scheme, Source, pack};
    use super::*;

    #[test]
    fn every_level_adds_weights_times_deltas() {
        for queries in [1, 2, 31, 513, 1_100] {
            for scheme in [Scheme::Counts, Scheme::RandomSigns] {
                let mut weights = Weights::new(queries, Level::Portable);
                let mut numbers = Vec::new();
                let wanted = CHUNK * scheme.numbers(queries);
                Source::new(scheme, &[7], queries, Level::Portable).read(wanted, &mut numbers);
                weights.fill(scheme, 0, &numbers);
                let delta = |column: usize, query: usize| {
                    i16::try_from((column * 7_919 + query * 104_729) % 65_535).unwrap_or(i16::MAX)
                        - i16::try_from(query % 300).unwrap()
                };
                let pairs = queries.div_ceil(2);
                let columns: Vec<i32> = (0..8)
                    .flat_map(|column| {
                        (0..pairs).map(move |pair| pack(delta(column, 2 * pair), delta(column, 2 * pair + 1)))
                    })
                    .collect();
                for level in Level::available() {
                    let mut sums = [[0; CHUNK]; 8];
                    multiply(&weights, &columns, &mut sums, level);
                    for (column, sums) in sums.iter().enumerate() {
                        for (within, &sum) in sums.iter().enumerate() {
                            let plain: i32 = weights
                                .of_resample(within)
                                .enumerate()
                                .map(|(query, weight)| weight * i32::from(delta(column, query)))
                                .sum();
                            assert_eq!(sum, plain);
                        }
                    }
                }
            }
        }
    }
}
