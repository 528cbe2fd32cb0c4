//! Averages over datasets, each of which is resampled on its own.

use super::deltas::Deltas;
use super::draw::for_each_chunk;
use super::weights::{CHUNK, Scheme};
use super::{Comparison, GROUP_BYTES, Settings};
use crate::bootstrap::exact_sum::{Planes, round_one, round_two};
use crate::bootstrap::summary::Summary;
use crate::bootstrap::{reserve, to_f64};
use crate::error::Error;
use crate::parallel;
use crate::stop::Stop;

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
/// [`Error::NotFinite`] for a comparison that is not finite in some stratum, [`Error::Interrupted`] when the stop is
/// requested, [`Error::OutOfMemory`] when the means do not fit.
pub fn stratified(strata: &[Stratum<'_>], settings: Settings<'_>, stop: &Stop) -> Result<Vec<Summary>, Error> {
    let comparisons = strata.first().map_or(0, |stratum| stratum.comparisons.len());
    let group = (GROUP_BYTES / settings.resamples.saturating_mul(size_of::<f64>())).max(1);
    let mut summaries = Vec::with_capacity(comparisons);
    for start in (0..comparisons).step_by(group) {
        let width = group.min(comparisons - start);
        let chunks = settings.resamples.div_ceil(CHUNK);
        let mut totals: Vec<[f64; CHUNK]> = reserve(chunks * width)?;
        totals.resize(chunks * width, [0.0; CHUNK]);
        for stratum in strata {
            let members = stratum.comparisons[start..start + width]
                .iter()
                .enumerate()
                .map(|(place, comparison)| {
                    Deltas::new(comparison.baseline, comparison.candidate).ok_or(Error::NotFinite {
                        comparison: start + place,
                    })
                });
            let settings = Settings {
                seed: stratum.seed,
                ..settings
            };
            add_means(&members.collect::<Result<Vec<_>, _>>()?, &mut totals, settings, stop)?;
        }
        let strata = to_f64(strata.len());
        summaries.extend(parallel::map(width, settings.threads, stop, |place| {
            let totals = totals.iter().skip(place).step_by(width).flatten();
            let mut means: Vec<f64> = totals.take(settings.resamples).map(|total| total / strata).collect();
            Ok(Summary::new(&mut means, settings.confidence_level))
        })?);
    }
    Ok(summaries)
}

/// Add to `totals` the means of all resamples of one stratum, from exact sums.
fn add_means(
    comparisons: &[Deltas],
    totals: &mut [[f64; CHUNK]],
    settings: Settings<'_>,
    stop: &Stop,
) -> Result<(), Error> {
    let queries = comparisons[0].values.len();
    // One row a query, so that a drawn query is one addition of rows; the two planes of each comparison side by side.
    let mut table = vec![0_i64; queries * 2 * comparisons.len()];
    for (place, deltas) in comparisons.iter().enumerate() {
        let mut entries = table
            .chunks_exact_mut(2 * comparisons.len())
            .map(|row| &mut row[2 * place..2 * place + 2]);
        match &deltas.planes {
            Planes::One { table, .. } => entries.zip(table).for_each(|(entry, planes)| entry[0] = planes[0]),
            Planes::Two { table, .. } => entries
                .zip(table)
                .for_each(|(entry, planes)| entry.copy_from_slice(planes)),
            Planes::Wide => _ = entries.next(),
        }
    }
    let items = totals.chunks_exact_mut(comparisons.len());
    for_each_chunk(Scheme::Counts, queries, items, settings, stop, |_, _, chunk, totals| {
        let weights = chunk.fill();
        let mut sums = vec![0_i64; 2 * comparisons.len()];
        for within in 0..CHUNK {
            sums.fill(0);
            for (weight, row) in weights
                .of_resample(within)
                .zip(table.chunks_exact(2 * comparisons.len()))
            {
                for _ in 0..weight {
                    for (sum, value) in sums.iter_mut().zip(row) {
                        *sum += value;
                    }
                }
            }
            for ((deltas, totals), sums) in comparisons.iter().zip(totals.iter_mut()).zip(sums.as_chunks::<2>().0) {
                let sum = match &deltas.planes {
                    Planes::One { low, .. } => round_one([sums[0]], *low),
                    Planes::Two { low, split, .. } => round_two(*sums, *low, *split),
                    planes @ Planes::Wide => planes.weighted_sum(&deltas.values, weights.of_resample(within)),
                };
                totals[within] += sum / to_f64(queries);
            }
        }
    })?;
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
        let summaries = stratified(&strata, settings, &Stop::default()).unwrap();
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
                bootstrap_means(&deltas, alone, &Stop::default()).unwrap()
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
