//! What is reported of the bootstrap means: two interval ends and two tail counts.

/// Summary of the means of all resamples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Lower end of the percentile interval.
    pub low: f64,
    /// Upper end of the percentile interval.
    pub high: f64,
    /// Means at or below zero.
    pub non_positive: usize,
    /// Means at or above zero.
    pub non_negative: usize,
}

impl Summary {
    /// Summarise the means (at least one, finite); reorders them.
    #[must_use]
    pub fn new(means: &mut [f64], confidence_level: f64) -> Self {
        let alpha = (1.0 - confidence_level) / 2.0;
        let non_positive = means.iter().filter(|&&mean| mean <= 0.0).count();
        let non_negative = means.iter().filter(|&&mean| mean >= 0.0).count();
        let low = quantile(means, alpha);
        let high = quantile(means, 1.0 - alpha);
        Self {
            low,
            high,
            non_positive,
            non_negative,
        }
    }
}

/// Interpolate linearly between the ordered values at position `(len - 1) * probability`; reorders the values.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position lies between 0 and the length, which is far below 2^53"
)]
fn quantile(values: &mut [f64], probability: f64) -> f64 {
    let position = (values.len() - 1) as f64 * probability;
    let lower = position.floor();
    let weight = position - lower;
    let (_, &mut at_lower, above) = values.select_nth_unstable_by(lower as usize, f64::total_cmp);
    if weight == 0.0 {
        return at_lower;
    }
    let at_upper = above.iter().copied().min_by(f64::total_cmp).unwrap_or(at_lower);
    at_lower * (1.0 - weight) + at_upper * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_its_two_neighbours() {
        let mut values = [3.0, 1.0, 2.0, 4.0];
        assert_eq!(quantile(&mut values, 0.5), 2.5);
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 1.0), 4.0);
        assert_eq!(quantile(&mut [7.0], 0.975), 7.0);
    }

    #[test]
    fn a_mean_of_zero_counts_on_both_sides() {
        let summary = Summary::new(&mut [-1.0, 0.0, -0.0, 2.0], 0.95);
        assert_eq!((summary.non_positive, summary.non_negative), (3, 3));
    }
}
