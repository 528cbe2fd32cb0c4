//! Averages over datasets, each of which is resampled on its own.

use super::deltas::{Column, count};
use super::weights::{CHUNK, Scheme};
use super::{Comparison, Error, GROUP_BYTES, Settings, for_each_chunk, parallel};
use crate::bootstrap::exact_sum::{Planes, round_one, round_two};
use crate::bootstrap::summary::Summary;
use crate::bootstrap::{Error as Stop, reserve};

/// One dataset of a stratified bootstrap.
#[derive(Clone, Copy, Debug)]
pub struct Stratum<'a> {
    /// The same comparisons in every stratum, over the queries of this one.
    pub comparisons: &'a [Comparison<'a>],
    /// Absolute value of the seed of this stratum's stream, as little-endian 32-bit words.
    pub seed: &'a [u32],
}

/// Resample every stratum and summarise, for each comparison, the averages over the strata of the resamples' means.
///
/// # Errors
///
/// [`Error::Stop`] when asked to stop, [`Error::NotFinite`] for a comparison that is not finite in some stratum.
pub fn stratified(
    strata: &[Stratum<'_>],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<Summary>, Error> {
    let comparisons = strata.first().map_or(0, |stratum| stratum.comparisons.len());
    let group = (GROUP_BYTES / settings.resamples.saturating_mul(size_of::<f64>())).max(1);
    let mut summaries = Vec::with_capacity(comparisons);
    for start in (0..comparisons).step_by(group) {
        let width = group.min(comparisons - start);
        let chunks = settings.resamples.div_ceil(CHUNK);
        let mut totals: Vec<[f64; CHUNK]> = reserve(chunks * width)?;
        totals.resize(chunks * width, [0.0; CHUNK]);
        for stratum in strata {
            let columns = stratum.comparisons[start..start + width]
                .iter()
                .enumerate()
                .map(|(place, comparison)| {
                    Column::new(comparison.baseline, comparison.candidate).ok_or(Error::NotFinite(start + place))
                });
            let settings = Settings {
                seed: stratum.seed,
                ..settings
            };
            add_means(
                &columns.collect::<Result<Vec<_>, _>>()?,
                &mut totals,
                settings,
                interrupted,
            )?;
        }
        let strata = count(strata.len());
        summaries.extend(parallel::map(width, settings.threads, interrupted, |column| {
            let totals = totals.iter().skip(column).step_by(width).flatten();
            let mut means: Vec<f64> = totals.take(settings.resamples).map(|total| total / strata).collect();
            Summary::new(&mut means, settings.confidence_level)
        })?);
    }
    Ok(summaries)
}

/// Add to `totals` the means of all resamples of one stratum, from exact sums.
fn add_means(
    columns: &[Column],
    totals: &mut [[f64; CHUNK]],
    settings: Settings<'_>,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<(), Stop> {
    let queries = columns[0].deltas.len();
    // One row a query, so that a drawn query is one addition of rows; the two planes of each comparison side by side.
    let mut table = vec![0_i64; queries * 2 * columns.len()];
    for (place, column) in columns.iter().enumerate() {
        let mut entries = table
            .chunks_exact_mut(2 * columns.len())
            .map(|row| &mut row[2 * place..2 * place + 2]);
        match &column.planes {
            Planes::One { table, .. } => entries.zip(table).for_each(|(entry, planes)| entry[0] = planes[0]),
            Planes::Two { table, .. } => entries
                .zip(table)
                .for_each(|(entry, planes)| entry.copy_from_slice(planes)),
            Planes::Wide => _ = entries.next(),
        }
    }
    let items = totals.chunks_exact_mut(columns.len());
    for_each_chunk(
        Scheme::Counts,
        queries,
        items,
        settings,
        interrupted,
        |_, _, chunk, totals| {
            let weights = chunk.fill();
            let mut sums = vec![0_i64; 2 * columns.len()];
            for within in 0..CHUNK {
                sums.fill(0);
                for (weight, row) in weights.of_resample(within).zip(table.chunks_exact(2 * columns.len())) {
                    for _ in 0..weight {
                        for (sum, value) in sums.iter_mut().zip(row) {
                            *sum += value;
                        }
                    }
                }
                for ((column, totals), sums) in columns.iter().zip(totals.iter_mut()).zip(sums.as_chunks::<2>().0) {
                    let sum = match &column.planes {
                        Planes::One { low, .. } => round_one([sums[0]], *low),
                        Planes::Two { low, split, .. } => round_two(*sums, *low, *split),
                        planes @ Planes::Wide => planes.weighted_sum(&column.deltas, weights.of_resample(within)),
                    };
                    totals[within] += sum / count(queries);
                }
            }
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::{self, bootstrap_means};
    use crate::simd::Level;

    #[test]
    fn a_stratified_mean_is_the_average_of_the_means_of_the_strata() {
        let scores = |seed: u32, queries: u32, kind: u32| -> Vec<f64> {
            let raw = (0..queries).map(|query| f64::from((query * 7_919 + seed * 104_729) % 1_009));
            match kind {
                0 => raw.map(|value| (value / 250.0).floor()).collect(),
                1 => raw.map(|value| value / 1_009.0).collect(),
                _ => raw.map(|value| 10.0_f64.powf(value / 4.0)).collect(),
            }
        };
        let settings = Settings {
            resamples: 55,
            seed: &[],
            confidence_level: 0.9,
            sign_flip: false,
            family_levels: &[],
            threads: 2,
            level: Level::best(),
        };
        let data: Vec<Vec<(Vec<f64>, Vec<f64>)>> = [(40, 1), (9, 2)]
            .map(|(queries, seed)| {
                (0..3)
                    .map(|kind| (scores(seed, queries, kind), scores(seed + 9, queries, kind)))
                    .collect()
            })
            .into();
        let comparisons: Vec<Vec<Comparison<'_>>> = data
            .iter()
            .map(|pairs| {
                let pairs = pairs.iter();
                pairs
                    .map(|(baseline, candidate)| Comparison {
                        baseline,
                        candidate,
                        family: 0,
                    })
                    .collect()
            })
            .collect();
        let strata = [
            Stratum {
                comparisons: &comparisons[0],
                seed: &[3],
            },
            Stratum {
                comparisons: &comparisons[1],
                seed: &[4],
            },
        ];
        let summaries = stratified(&strata, settings, &mut || false).unwrap();
        for (number, summary) in summaries.into_iter().enumerate() {
            let means = strata.map(|stratum| {
                let (baseline, candidate) = (
                    stratum.comparisons[number].baseline,
                    stratum.comparisons[number].candidate,
                );
                let deltas: Vec<f64> = baseline
                    .iter()
                    .zip(candidate)
                    .map(|(before, after)| after - before)
                    .collect();
                let alone = bootstrap::Settings {
                    resamples: settings.resamples,
                    seed: stratum.seed,
                    threads: 1,
                    level: Level::Portable,
                };
                bootstrap_means(&deltas, alone, &mut || false).unwrap()
            });
            let mut average: Vec<f64> = means[0]
                .iter()
                .zip(&means[1])
                .map(|(one, other)| (one + other) / 2.0)
                .collect();
            assert_eq!(summary, Summary::new(&mut average, settings.confidence_level));
        }
    }
}
