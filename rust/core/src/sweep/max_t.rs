//! The max-T method: adjusted p-values and simultaneous intervals from the resamples that all comparisons share.
//!
//! P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", 1993, algorithm 4.1 (step-down, free of an
//! assumption about how the comparisons depend on each other). The statistic of a resample is the distance of its mean
//! from the observed mean in standard errors of the comparison, all of it on the rounded deltas.

use std::collections::BTreeMap;

use super::deltas::Deltas;
use super::weights::CHUNK;
use super::{Comparison, Settings};
use crate::bootstrap::{reserve, to_f64};
use crate::error::Error;
use crate::simd::{Kernel, Level, Simd};

/// What the max-T method says of one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxT {
    /// Resamples whose largest statistic, over this comparison and the less extreme ones, reaches this one's.
    pub as_extreme: usize,
    /// Lower end of the simultaneous interval.
    pub low: f64,
    /// Upper end of the simultaneous interval.
    pub high: f64,
}

/// What turns the rounded sums of one comparison into statistics.
#[derive(Clone, Copy, Debug)]
pub struct Statistic {
    /// Place of its family among those of the group.
    family: usize,
    /// Rounded sum of the sample, around which the resamples scatter.
    centre: i32,
    /// Standard errors of the mean in a unit of the sum; zero where there is no variance.
    scale: f64,
    /// The observed statistic; infinite where there is no variance.
    observed: f64,
}

/// The comparisons that are resampled together.
pub struct Group {
    pub statistics: Vec<Statistic>,
    /// Number of families; at least one, used or not.
    pub families: usize,
    /// Largest statistics of the resamples so far, chunk by chunk and in it family by family.
    pub maxima: Vec<[f64; CHUNK]>,
}

/// The state of the method from group to group.
pub struct MaxTMethod {
    /// Comparisons by family, and in it by observed statistic, the least extreme first.
    order: Vec<usize>,
    /// Family and statistic of every comparison; empty where the method is not wanted.
    statistics: Vec<Statistic>,
    confidence_levels: Vec<f64>,
    as_extreme: Vec<usize>,
    critical: BTreeMap<usize, f64>,
    /// The family of the last comparison of the last group, and its maxima so far.
    carried: Option<(usize, Vec<[f64; CHUNK]>)>,
    resamples: usize,
}

impl MaxTMethod {
    pub fn new(comparisons: &[Comparison<'_>], deltas: &[Deltas], settings: Settings<'_>) -> Self {
        let mut order: Vec<usize> = (0..deltas.len()).collect();
        let mut statistics = Vec::new();
        if !settings.family_levels.is_empty() {
            statistics.extend(comparisons.iter().zip(deltas).map(|(comparison, deltas)| {
                let error = deltas.standard_error();
                let varies = error > 0.0;
                Statistic {
                    family: comparison.family,
                    centre: deltas.sum,
                    scale: if varies {
                        deltas.unit / (to_f64(deltas.values.len()) * (error * deltas.magnification))
                    } else {
                        0.0
                    },
                    observed: if varies {
                        deltas.description.effect.abs() / error
                    } else {
                        f64::INFINITY
                    },
                }
            }));
            order.sort_by(|&one, &other| {
                let (one, other) = (&statistics[one], &statistics[other]);
                one.family
                    .cmp(&other.family)
                    .then(one.observed.total_cmp(&other.observed))
            });
        }
        Self {
            order,
            as_extreme: vec![0; statistics.len()],
            statistics,
            confidence_levels: settings.family_levels.to_vec(),
            critical: BTreeMap::new(),
            carried: None,
            resamples: settings.resamples,
        }
    }

    /// The order in which comparisons must be resampled.
    pub fn order(&self) -> Vec<usize> {
        self.order.clone()
    }

    /// Begin a group of comparisons, the next ones in order.
    pub fn enter(&mut self, numbers: &[usize]) -> Result<Group, Error> {
        let mut statistics: Vec<Statistic> = Vec::with_capacity(numbers.len());
        let mut last = None;
        let mut families = 0;
        for &number in numbers.iter().filter(|_| !self.statistics.is_empty()) {
            let statistic = self.statistics[number];
            families += usize::from(last != Some(statistic.family));
            last = Some(statistic.family);
            statistics.push(Statistic {
                family: families - 1,
                ..statistic
            });
        }
        let families = families.max(1);
        let chunks = self.resamples.div_ceil(CHUNK);
        let mut maxima = reserve(chunks * families)?;
        maxima.resize(chunks * families, [0.0; CHUNK]);
        if let (Some((family, carried)), Some(&first)) = (self.carried.take(), numbers.first())
            && self.statistics[first].family == family
        {
            for (chunk, carried) in carried.into_iter().enumerate() {
                maxima[chunk * families] = carried;
            }
        }
        // Places behind the last resample hold no number, which reaches no statistic.
        let used = self.resamples - (chunks - 1) * CHUNK;
        for maxima in &mut maxima[(chunks - 1) * families..] {
            maxima[used..].fill(f64::NAN);
        }
        Ok(Group {
            statistics,
            families,
            maxima,
        })
    }

    /// End a group whose resamples have been followed.
    pub fn leave(&mut self, group: &Group, numbers: &[usize], counts: &[usize]) {
        if self.statistics.is_empty() {
            return;
        }
        for (&number, &count) in numbers.iter().zip(counts) {
            self.as_extreme[number] = count;
        }
        let of_family = |family: usize| group.maxima.iter().skip(family).step_by(group.families);
        let members = numbers.iter().zip(&group.statistics);
        let families: BTreeMap<usize, usize> = members
            .map(|(&number, statistic)| (self.statistics[number].family, statistic.family))
            .collect();
        for (&family, &place) in &families {
            // A family that goes on in the next group gets its final value there.
            let critical = critical_value(of_family(place), self.resamples, self.confidence_levels[family]);
            self.critical.insert(family, critical);
        }
        self.carried = families
            .last_key_value()
            .map(|(&family, &place)| (family, of_family(place).copied().collect()));
    }

    /// The results of all comparisons, in their own order; none where the method is not wanted.
    pub fn finish(mut self, deltas: &[Deltas]) -> Vec<MaxT> {
        // A less extreme comparison is never the more significant one.
        let (mut family, mut most) = (usize::MAX, 0);
        for &number in self.order.iter().rev().filter(|_| !self.statistics.is_empty()) {
            let statistic = self.statistics[number];
            if statistic.family != family {
                (family, most) = (statistic.family, 0);
            }
            if statistic.observed.is_infinite() {
                // Nothing to standardise by, so nothing is claimed.
                self.as_extreme[number] = self.resamples;
            } else {
                most = most.max(self.as_extreme[number]);
                self.as_extreme[number] = most;
            }
        }
        let rows = self.statistics.iter().zip(deltas).zip(&self.as_extreme);
        rows.map(|((statistic, deltas), &as_extreme)| {
            let half = self.critical.get(&statistic.family).copied().unwrap_or(0.0) * deltas.standard_error();
            MaxT {
                as_extreme,
                low: deltas.description.effect - half,
                high: deltas.description.effect + half,
            }
        })
        .collect()
    }
}

/// The smallest maximum that the rest exceed so seldom that the adjusted p-value is at most one minus
/// `confidence_level`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between zero and the number of resamples, plus one"
)]
fn critical_value<'a>(maxima: impl Iterator<Item = &'a [f64; CHUNK]>, resamples: usize, confidence_level: f64) -> f64 {
    let mut maxima: Vec<f64> = maxima.flatten().copied().take(resamples).collect();
    let rank = (confidence_level * to_f64(resamples + 1)).ceil() as usize;
    let rank = rank.clamp(1, resamples) - 1;
    *maxima.select_nth_unstable_by(rank, f64::total_cmp).1
}

/// Follow one chunk of resamples through the comparisons of a group, in order.
pub fn follow(
    statistics: &[Statistic],
    sums: &[[i32; CHUNK]],
    maxima: &mut [[f64; CHUNK]],
    counts: &mut Vec<usize>,
    level: Level,
) {
    counts.resize(statistics.len(), 0);
    level.run(Follow {
        statistics,
        sums,
        maxima,
        counts,
    });
}

struct Follow<'a> {
    statistics: &'a [Statistic],
    sums: &'a [[i32; CHUNK]],
    maxima: &'a mut [[f64; CHUNK]],
    counts: &'a mut [usize],
}

impl Kernel for Follow<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for ((statistic, sums), total) in self.statistics.iter().zip(self.sums).zip(self.counts) {
            let maxima = &mut self.maxima[statistic.family];
            let mut reached = 0_u64;
            for (maximum, &sum) in maxima.iter_mut().zip(sums) {
                let value = f64::from((sum - statistic.centre).abs()) * statistic.scale;
                // A place without a resample holds no number and keeps it.
                *maximum = if value > *maximum { value } else { *maximum };
                reached += u64::from(*maximum >= statistic.observed);
            }
            *total += usize::try_from(reached).unwrap_or(0);
        }
    }
}
