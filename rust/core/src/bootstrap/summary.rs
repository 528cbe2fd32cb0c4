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
        let non_positive = means.iter().filter(|&&mean| mean <= 0.0).count();
        let non_negative = means.iter().filter(|&&mean| mean >= 0.0).count();
        let [low, high] =
            Position::of_interval(means.len(), confidence_level).map(|position| quantile(means, position));
        Self {
            low,
            high,
            non_positive,
            non_negative,
        }
    }
}

/// Where a quantile lies between ordered values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Index of the value at or below it.
    pub lower: usize,
    /// Share of the next value; that value is not needed where this is zero.
    pub weight: f64,
}

impl Position {
    /// The position `(len - 1) * probability` among `len` values.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position lies between 0 and the length, which is far below 2^53"
    )]
    pub fn new(len: usize, probability: f64) -> Self {
        let position = (len - 1) as f64 * probability;
        let lower = position.floor();
        Self {
            lower: lower as usize,
            weight: position - lower,
        }
    }

    /// The positions of the two interval ends.
    #[must_use]
    pub fn of_interval(len: usize, confidence_level: f64) -> [Self; 2] {
        let alpha = (1.0 - confidence_level) / 2.0;
        [Self::new(len, alpha), Self::new(len, 1.0 - alpha)]
    }

    /// Interpolate linearly between the values at `lower` and after it.
    #[must_use]
    pub fn interpolate(self, at_lower: f64, at_upper: f64) -> f64 {
        if self.weight == 0.0 {
            return at_lower;
        }
        at_lower * (1.0 - self.weight) + at_upper * self.weight
    }
}

/// The value at a position among the values when ordered; reorders them.
fn quantile(values: &mut [f64], position: Position) -> f64 {
    let (_, &mut at_lower, above) = values.select_nth_unstable_by(position.lower, f64::total_cmp);
    let at_upper = above.iter().copied().min_by(f64::total_cmp).unwrap_or(at_lower);
    position.interpolate(at_lower, at_upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_between_its_two_neighbours() {
        let mut values = [3.0, 1.0, 2.0, 4.0];
        let mut at = |probability| quantile(&mut values, Position::new(4, probability));
        assert_eq!(at(0.5), 2.5);
        assert_eq!(at(0.0), 1.0);
        assert_eq!(at(1.0), 4.0);
        assert_eq!(quantile(&mut [7.0], Position::new(1, 0.975)), 7.0);
    }

    #[test]
    fn a_mean_of_zero_counts_on_both_sides() {
        let summary = Summary::new(&mut [-1.0, 0.0, -0.0, 2.0], 0.95);
        assert_eq!((summary.non_positive, summary.non_negative), (3, 3));
    }
}
