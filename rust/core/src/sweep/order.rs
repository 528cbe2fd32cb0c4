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
    /// Find the window around `position` for exact sums that lie at most `slack` from the rounded ones.
    ///
    /// With R the rounded and T the exact sums, |T - R| <= slack gives |T_(k) - R_(k)| <= slack for every rank k, so the
    /// resample that has T_(k) lies within 2 slack of R_(k), and a sum further away stays on its side.
    #[inline]
    #[must_use]
    pub fn around(sums: &[i32], position: Position, slack: i32, scratch: &mut Vec<i32>) -> Self {
        let (at_lower, at_upper) = select(sums, position.lower, scratch);
        let low = at_lower.saturating_sub(slack.saturating_mul(2));
        let high = at_upper.saturating_add(slack.saturating_mul(2));
        Self {
            low,
            high,
            below: sums.iter().filter(|&&sum| sum < low).count(),
        }
    }

    /// Whether a rounded sum lies in the window.
    #[must_use]
    pub fn holds(self, sum: i32) -> bool {
        self.low <= sum && sum <= self.high
    }
}

/// Sampled sums that bracket an order statistic.
const SAMPLE: usize = 256;
/// Ranks of the sample between an order statistic and each bracket: about four standard deviations at the 2.5 % point.
const MARGIN: usize = 10;

/// The value of rank `rank`, from zero, and the one after it (itself at the end).
///
/// A sorted sample brackets the rank, so that only a few values are ordered; where it does not, all are.
#[inline]
fn select(values: &[i32], rank: usize, scratch: &mut Vec<i32>) -> (i32, i32) {
    scratch.clear();
    let mut before = 0;
    if values.len() >= 8 * SAMPLE {
        scratch.extend(values.iter().step_by(values.len() / SAMPLE).take(SAMPLE));
        scratch.sort_unstable();
        let expected = rank * SAMPLE / values.len();
        let low = expected.checked_sub(MARGIN).map_or(i32::MIN, |at| scratch[at]);
        let high = scratch.get(expected + MARGIN).map_or(i32::MAX, |&value| value);
        if scratch.len() < values.len() {
            scratch.resize(values.len(), 0);
        }
        let mut end = 0;
        for &value in values {
            // Written always and kept by moving on: a branch here would be mispredicted.
            scratch[end] = value;
            end += usize::from(low <= value && value <= high);
            before += usize::from(value < low);
        }
        scratch.truncate(end);
    }
    if rank < before || rank + 1 >= before + scratch.len() {
        before = 0;
        scratch.clear();
        scratch.extend_from_slice(values);
    }
    let (_, &mut at_rank, above) = scratch.select_nth_unstable(rank - before);
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
            values in prop_oneof![vec(any::<i32>(), 1..50), vec(any::<i32>(), 2_048..4_000), vec(-3..3, 2_048..4_000)],
            share in 0.0..1.0,
        ) {
            let rank = Position::new(values.len(), share).lower;
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let next = sorted[(rank + 1).min(values.len() - 1)];
            prop_assert_eq!(select(&values, rank, &mut Vec::new()), (sorted[rank], next));
        }

        #[test]
        fn a_window_holds_the_exact_order_statistics(
            pairs in vec((-1000..1000, -5..=5), 1..200),
            share in 0.0..1.0,
        ) {
            let rounded: Vec<i32> = pairs.iter().map(|pair| pair.0).collect();
            let position = Position::new(pairs.len(), share);
            let window = Window::around(&rounded, position, 5, &mut Vec::new());
            let mut exact: Vec<i32> = pairs.iter().map(|pair| pair.0 + pair.1).collect();
            exact.sort_unstable();
            let mut inside: Vec<i32> =
                pairs.iter().filter(|pair| window.holds(pair.0)).map(|pair| pair.0 + pair.1).collect();
            inside.sort_unstable();
            let last = (position.lower + 1).min(pairs.len() - 1);
            prop_assert_eq!(inside[position.lower - window.below], exact[position.lower]);
            prop_assert_eq!(inside[last - window.below], exact[last]);
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
        assert_eq!(select(&values, 255, &mut Vec::new()), (sorted[255], sorted[256]));
    }
}
