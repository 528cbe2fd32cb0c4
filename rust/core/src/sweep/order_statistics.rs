//! Order statistics of sums that are known but for a slack.

use crate::bootstrap::summary::Position;

/// A window of rounded sums that holds the exact order statistics at a position and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Smallest rounded sum in the window.
    pub low: i32,
    /// Largest rounded sum in the window.
    pub high: i32,
    /// Sums below the window.
    pub below: usize,
}

impl Window {
    /// Find the windows around the two ends of an interval, for exact sums at most `slack` from the rounded ones.
    ///
    /// With R the rounded and T the exact sums, |T - R| <= slack gives |T_(k) - R_(k)| <= slack for every rank k, so the
    /// resample that has T_(k) lies within 2 slack of R_(k), and a sum further away stays on its side.
    #[inline(always)]
    #[must_use]
    pub fn around(sums: &[i32], ends: [Position; 2], slack: i32, tails: &mut Tails) -> [Self; 2] {
        tails
            .select(sums, ends.map(|end| end.lower))
            .map(|(at_lower, at_upper)| {
                let low = at_lower.saturating_sub(slack.saturating_mul(2));
                Self {
                    low,
                    high: at_upper.saturating_add(slack.saturating_mul(2)),
                    below: sums.iter().map(|&sum| u32::from(sum < low)).sum::<u32>() as usize,
                }
            })
    }

    /// Whether a rounded sum lies in the window.
    #[must_use]
    pub fn holds(self, sum: i32) -> bool {
        self.low <= sum && sum <= self.high
    }
}

/// Sampled values that bound the tails.
const SAMPLE: usize = 256;
/// Ranks of the sample between an order statistic and the bound of its tail: about four standard deviations at the
/// 2.5 % point.
const MARGIN: usize = 10;

/// Room for the values at both ends of many.
#[derive(Default)]
pub struct Tails {
    sample: Vec<i32>,
    low: Vec<i32>,
    high: Vec<i32>,
}

impl Tails {
    /// The values of two ranks from zero, the lower one first, and each time the value after it (itself at the end).
    ///
    /// A sorted sample bounds the tails, so that only a few values are ordered; where it misleads, all are.
    #[inline(always)]
    fn select(&mut self, values: &[i32], ranks: [usize; 2]) -> [(i32, i32); 2] {
        let length = values.len();
        let (mut low, mut high) = (0, 0);
        if length >= 8 * SAMPLE {
            self.sample.clear();
            self.sample.extend(values.iter().step_by(length / SAMPLE).take(SAMPLE));
            self.sample.sort_unstable();
            let expected = ranks.map(|rank| rank * SAMPLE / length);
            let low_bound = *self.sample.get(expected[0] + MARGIN).unwrap_or(&i32::MAX);
            let high_bound = expected[1].checked_sub(MARGIN).map_or(i32::MIN, |at| self.sample[at]);
            self.low.resize(self.low.len().max(length), 0);
            self.high.resize(self.high.len().max(length), 0);
            for &value in values {
                // Written always and kept by moving on: a branch here would be mispredicted.
                self.low[low] = value;
                low += usize::from(value <= low_bound);
                self.high[high] = value;
                high += usize::from(value >= high_bound);
            }
        }
        let all = |tail: &mut Vec<i32>| {
            tail.clear();
            tail.extend_from_slice(values);
            length
        };
        if ranks[0] + 1 >= low {
            low = all(&mut self.low);
        }
        if ranks[1] + high < length {
            high = all(&mut self.high);
        }
        [
            with_next(&mut self.low[..low], ranks[0]),
            with_next(&mut self.high[..high], ranks[1] + high - length),
        ]
    }
}

fn with_next(values: &mut [i32], rank: usize) -> (i32, i32) {
    let (_, &mut at_rank, above) = values.select_nth_unstable(rank);
    (at_rank, above.iter().copied().min().unwrap_or(at_rank))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_selected_value_is_that_of_the_sorted_ones(
            sets in vec(
                prop_oneof![vec(any::<i32>(), 1..50), vec(any::<i32>(), 2_048..4_000), vec(-3..3, 2_048..4_000)], 1..4,
            ),
            level in 0.0..1.0,
        ) {
            let mut tails = Tails::default();
            for values in sets {
                let ranks = Position::of_interval(values.len(), level).map(|end| end.lower);
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let expected = ranks.map(|rank| (sorted[rank], sorted[(rank + 1).min(values.len() - 1)]));
                prop_assert_eq!(tails.select(&values, ranks), expected);
            }
        }

        #[test]
        fn a_window_holds_the_exact_order_statistics(
            pairs in vec((-1000..1000, -5..=5), 1..200),
            level in 0.0..1.0,
        ) {
            let rounded: Vec<i32> = pairs.iter().map(|pair| pair.0).collect();
            let ends = Position::of_interval(pairs.len(), level);
            let mut exact: Vec<i32> = pairs.iter().map(|pair| pair.0 + pair.1).collect();
            exact.sort_unstable();
            for (window, position) in Window::around(&rounded, ends, 5, &mut Tails::default()).into_iter().zip(ends) {
                let mut inside: Vec<i32> =
                    pairs.iter().filter(|pair| window.holds(pair.0)).map(|pair| pair.0 + pair.1).collect();
                inside.sort_unstable();
                let last = (position.lower + 1).min(pairs.len() - 1);
                prop_assert_eq!(inside[position.lower - window.below], exact[position.lower]);
                prop_assert_eq!(inside[last - window.below], exact[last]);
            }
        }
    }

    #[test]
    fn an_ordered_sequence_whose_sample_misleads_is_still_selected() {
        let mut values: Vec<i32> = (0..10_240).collect();
        for value in values.iter_mut().step_by(40) {
            *value = 1_000_000;
        }
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let expected = [(sorted[255], sorted[256]), (sorted[9_983], sorted[9_984])];
        assert_eq!(Tails::default().select(&values, [255, 9_983]), expected);
    }
}
