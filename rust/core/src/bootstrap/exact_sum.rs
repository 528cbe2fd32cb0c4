//! Correctly rounded sums: what `math.fsum` returns, so that no result depends on order, vector width or threads.
//!
//! Finite floats are integers times a power of two. Where all deltas share a power of two narrow enough, they become
//! 64-bit integers in one or two planes, and adding them is exact and as fast as adding floats. Where they do not, a
//! superaccumulator holds every bit that a double can have (U. W. Kulisch, "Computer Arithmetic and Validity", 2008).

/// Lowest bit of any double: the smallest subnormal is 2^-1074.
const LOWEST: i32 = -1074;
/// Bits of a superaccumulator limb; the rest of an `i64` takes the carries of 2^31 additions.
const LIMB_BITS: u32 = 32;
/// Limbs for the 2098 bits from 2^-1074 to 2^1024, and one for the carries of the topmost.
const LIMBS: usize = 67;

/// A finite float as `(negative, mantissa, exponent)` with value `mantissa * 2^exponent`.
fn decompose(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = i32::from(u16::try_from(bits >> 52 & 0x7ff).unwrap_or(0));
    let mantissa = if biased == 0 { fraction } else { fraction | 1 << 52 };
    (value.is_sign_negative(), mantissa, biased.max(1) - 1075)
}

#[expect(clippy::cast_possible_truncation, reason = "the low word is what is asked for")]
fn low_word(value: u128) -> u32 {
    value as u32
}

/// `2^exponent` for any exponent that a double (subnormals included) can have.
#[must_use]
pub fn power_of_two(exponent: i32) -> f64 {
    if exponent >= -1022 {
        f64::from_bits(u64::from((exponent + 1023).cast_unsigned()) << 52)
    } else {
        f64::from_bits(1 << (exponent - LOWEST).cast_unsigned())
    }
}

/// Round `integer * 2^low` to the nearest double, ties to even; `low` is at least -1074.
///
/// One rounding happens, not two: a result below 2^-1022 is a multiple of 2^-1074 below 2^52 of them, so the conversion
/// to a double is exact there, and elsewhere the scaling by a power of two is.
#[expect(
    clippy::cast_precision_loss,
    reason = "the conversion rounds to nearest, ties to even, as is wanted"
)]
fn scale(integer: i128, low: i32) -> f64 {
    // The conversion from 64 bits is one instruction, that from 128 bits a library call.
    let rounded = i64::try_from(integer).map_or_else(|_| integer as f64, |narrow| narrow as f64);
    rounded * power_of_two(low)
}

/// Exponents of the lowest bit of any of the finite `deltas` and of the bit above the highest; `None` for zeros alone.
#[must_use]
pub fn bit_range(deltas: &[f64]) -> Option<(i32, i32)> {
    let (mut low, mut high) = (i32::MAX, i32::MIN);
    for &delta in deltas {
        let (_, mantissa, exponent) = decompose(delta);
        if mantissa != 0 {
            low = low.min(exponent + mantissa.trailing_zeros().cast_signed());
            high = high.max(exponent + 64 - mantissa.leading_zeros().cast_signed());
        }
    }
    (low != i32::MAX).then_some((low, high))
}

/// The deltas as integers on a common power of two, in the fewest planes that hold the sum of as many of them.
#[derive(Debug)]
pub enum Planes {
    /// One 64-bit integer a delta.
    One {
        /// The integers.
        table: Vec<[i64; 1]>,
        /// Exponent of their unit.
        low: i32,
    },
    /// A low part of `split` bits, never negative, and a signed high part.
    Two {
        /// The integers, low part first.
        table: Vec<[i64; 2]>,
        /// Exponent of their unit.
        low: i32,
        /// Bits of the low part.
        split: u32,
    },
    /// The magnitudes lie too far apart for two planes.
    Wide,
}

impl Planes {
    /// Plan the planes for sums of `deltas.len()` of the finite `deltas`.
    #[must_use]
    pub fn new(deltas: &[f64]) -> Self {
        let Some((low, high)) = bit_range(deltas) else {
            return Self::One {
                table: vec![[0]; deltas.len()],
                low: 0,
            };
        };
        // |delta| < 2^width units, and the sum of n of them lies below 2^(width + carry).
        let width = (high - low).cast_unsigned();
        let carry = usize::BITS - deltas.len().leading_zeros();
        let split = 62 - carry;
        if width + carry > 63 && width > 2 * split {
            return Self::Wide;
        }
        let integer = |delta: f64| {
            let (negative, mantissa, exponent) = decompose(delta);
            // The mantissa's own trailing zeros make up for an exponent below the common one.
            let magnitude = if exponent >= low {
                i128::from(mantissa) << (exponent - low).cast_unsigned().min(126)
            } else {
                i128::from(mantissa.checked_shr((low - exponent).cast_unsigned()).unwrap_or(0))
            };
            if negative { -magnitude } else { magnitude }
        };
        let narrow = |value: i128| i64::try_from(value).unwrap_or_default();
        if width + carry <= 63 {
            return Self::One {
                table: deltas.iter().map(|&delta| [narrow(integer(delta))]).collect(),
                low,
            };
        }
        let mask = (1_i128 << split) - 1;
        let table = deltas
            .iter()
            .map(|&delta| integer(delta))
            .map(|value| [narrow(value & mask), narrow(value >> split)])
            .collect();
        Self::Two { table, low, split }
    }
}

impl Planes {
    /// The correctly rounded sum of weight times delta; the weights' magnitudes add up to the number of deltas at most.
    ///
    /// `deltas` are those that the planes were made of.
    #[must_use]
    pub fn weighted_sum(&self, deltas: &[f64], weights: impl Iterator<Item = i32>) -> f64 {
        match self {
            Self::One { table, low } => {
                let sum = table
                    .iter()
                    .zip(weights)
                    .map(|(entry, weight)| entry[0] * i64::from(weight));
                round_one([sum.sum()], *low)
            }
            Self::Two { table, low, split } => {
                let sum = table.iter().zip(weights).fold([0, 0], |sum, (entry, weight)| {
                    let weight = i64::from(weight);
                    [sum[0] + entry[0] * weight, sum[1] + entry[1] * weight]
                });
                round_two(sum, *low, *split)
            }
            Self::Wide => {
                let mut sum = Superaccumulator::default();
                for (&delta, weight) in deltas.iter().zip(weights) {
                    for _ in 0..weight.unsigned_abs() {
                        sum.add(if weight < 0 { -delta } else { delta });
                    }
                }
                sum.round()
            }
        }
    }
}

/// Round a sum held in one plane.
#[must_use]
pub fn round_one(sum: [i64; 1], low: i32) -> f64 {
    scale(i128::from(sum[0]), low)
}

/// Round a sum held in two planes.
#[must_use]
pub fn round_two(sum: [i64; 2], low: i32, split: u32) -> f64 {
    scale((i128::from(sum[1]) << split) + i128::from(sum[0]), low)
}

/// Every bit that a sum of up to 2^31 finite doubles can have.
#[derive(Clone)]
pub struct Superaccumulator {
    limbs: [i64; LIMBS],
}

impl Default for Superaccumulator {
    fn default() -> Self {
        Self { limbs: [0; LIMBS] }
    }
}

impl Superaccumulator {
    /// Add one finite value.
    pub fn add(&mut self, value: f64) {
        let (negative, mantissa, exponent) = decompose(value);
        let position = (exponent - LOWEST).cast_unsigned();
        let first = (position / LIMB_BITS) as usize;
        let mut shifted = u128::from(mantissa) << (position % LIMB_BITS);
        for limb in &mut self.limbs[first..(first + 3).min(LIMBS)] {
            let part = i64::from(low_word(shifted));
            *limb += if negative { -part } else { part };
            shifted >>= LIMB_BITS;
        }
    }

    /// The sum, rounded to the nearest double, ties to even; infinite where no double holds it.
    #[must_use]
    pub fn round(&self) -> f64 {
        let Some((negative, limbs)) = self.magnitude() else {
            return 0.0;
        };
        let Some(top) = limbs.iter().rposition(|&limb| limb != 0) else {
            return 0.0;
        };
        let bit = |index: u32| limbs[(index / LIMB_BITS) as usize] >> (index % LIMB_BITS) & 1;
        let length = u32::try_from(top).unwrap_or(0) * LIMB_BITS + (LIMB_BITS - limbs[top].leading_zeros());
        let dropped = length.saturating_sub(53);
        let mut mantissa = (dropped..length)
            .rev()
            .fold(0_u64, |kept, index| kept << 1 | u64::from(bit(index)));
        if dropped > 0 && bit(dropped - 1) == 1 {
            let sticky = (0..dropped - 1).any(|index| bit(index) == 1);
            mantissa += u64::from(sticky || mantissa & 1 == 1);
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 2^53, which a double holds exactly")]
        let magnitude = match LOWEST + dropped.cast_signed() {
            // 2^53 * 2^971 is 2^1024, an infinity: as it should be.
            exponent @ ..=971 => mantissa as f64 * power_of_two(exponent),
            _ => f64::INFINITY,
        };
        if negative { -magnitude } else { magnitude }
    }

    /// Sign and limbs of 32 bits each, lowest first; `None` where the sum is beyond any limb.
    fn magnitude(&self) -> Option<(bool, [u32; LIMBS + 1])> {
        let carried = |sign: i64| {
            let mut limbs = [0_u32; LIMBS + 1];
            let mut carry = 0_i64;
            for (limb, &value) in limbs.iter_mut().zip(&self.limbs) {
                let total = sign * value + carry;
                *limb = low_word(u128::from(total.cast_unsigned()));
                carry = total >> LIMB_BITS;
            }
            limbs[LIMBS] = u32::try_from(carry).ok()?;
            Some(limbs)
        };
        // A negative sum leaves a negative carry, so exactly one of the signs succeeds (both do for zero).
        carried(1)
            .map(|limbs| (false, limbs))
            .or_else(|| carried(-1).map(|limbs| (true, limbs)))
    }
}

/// The correctly rounded sum of finite values, in any order and of any magnitudes.
///
/// ```
/// use groundkit_core::bootstrap::exact_sum::exact_sum;
/// assert_eq!(exact_sum([1e308, 1.0, -1e308]), 1.0);
/// ```
pub fn exact_sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut accumulator = Superaccumulator::default();
    for value in values {
        accumulator.add(value);
    }
    accumulator.round()
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "test values are small enough")]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Shewchuk's exact partials, the method of `math.fsum`: J. R. Shewchuk, "Adaptive Precision Floating-Point
    /// Arithmetic and Fast Robust Geometric Predicates", 1997.
    fn fsum(values: &[f64]) -> f64 {
        let mut partials: Vec<f64> = Vec::new();
        for &value in values {
            let mut x = value;
            let mut kept = Vec::new();
            for &partial in &partials {
                let (large, small) = if x.abs() < partial.abs() {
                    (partial, x)
                } else {
                    (x, partial)
                };
                let high = large + small;
                let error = small - (high - large);
                if error != 0.0 {
                    kept.push(error);
                }
                x = high;
            }
            kept.push(x);
            partials = kept;
        }
        let mut high = 0.0;
        let mut error = 0.0;
        while let Some(x) = partials.pop() {
            let before = high;
            high = before + x;
            error = x - (high - before);
            if error != 0.0 {
                break;
            }
        }
        if let Some(&next) = partials.last()
            && (error < 0.0) == (next < 0.0)
            && error != 0.0
            && next != 0.0
        {
            let twice = error * 2.0;
            let nudged = high + twice;
            if twice == nudged - high {
                high = nudged;
            }
        }
        high
    }

    fn planes_sum(values: &[f64]) -> Option<f64> {
        let planes = Planes::new(values);
        let sum = planes.weighted_sum(values, std::iter::repeat_n(1, values.len()));
        (!matches!(planes, Planes::Wide)).then_some(sum)
    }

    fn finite() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>().prop_filter("finite and far from overflow", |x| x.abs() < 1e305),
            -1.0..1.0,
            (-1_i64 << 53..1 << 53, -1074..-1000).prop_map(|(m, e)| m as f64 * power_of_two(e)),
            Just(-0.0),
            Just(f64::MIN_POSITIVE),
            Just(5e-324),
        ]
    }

    proptest! {
        #[test]
        fn the_superaccumulator_equals_exact_partials(values in vec(finite(), 0..40)) {
            prop_assert_eq!(exact_sum(values.iter().copied()), fsum(&values));
        }

        #[test]
        fn planes_equal_the_superaccumulator(values in vec(-1.0..1.0, 1..300), scale in -1000..900) {
            let values: Vec<f64> = values.iter().map(|value| value * power_of_two(scale)).collect();
            if let Some(sum) = planes_sum(&values) {
                prop_assert_eq!(sum, exact_sum(values));
            }
        }

        #[test]
        fn planes_equal_the_superaccumulator_for_any_magnitudes(values in vec(finite(), 1..20)) {
            if let Some(sum) = planes_sum(&values) {
                prop_assert_eq!(sum, exact_sum(values));
            }
        }
    }

    proptest! {
        #[test]
        fn weighted_sums_equal_repeated_ones(values in vec((finite(), -3..4), 1..20), width in 0..3) {
            // The weights' magnitudes may add up to the number of deltas only: pad it.
            let mut deltas: Vec<f64> = values.iter().map(|&(value, _): &(f64, i32)| if width == 0 { value } else { value % 1.0 }).collect();
            deltas.resize(3 * values.len(), 0.0);
            let weights = values.iter().map(|&(_, weight)| weight);
            let repeated = deltas.iter().zip(weights.clone()).flat_map(|(&delta, weight)| {
                std::iter::repeat_n(delta * f64::from(weight.signum()), weight.unsigned_abs() as usize)
            });
            let sum = Planes::new(&deltas).weighted_sum(&deltas, weights);
            prop_assert_eq!(sum, exact_sum(repeated));
        }
    }

    #[test]
    fn scores_in_the_unit_interval_never_need_the_wide_sum() {
        let deltas: Vec<f64> = (1..2000)
            .map(|rank| 1.0 / f64::from(rank) - 1.0 / f64::from(rank + 3))
            .collect();
        assert!(planes_sum(&deltas).is_some());
    }

    #[test]
    fn ties_round_to_even_and_sticky_bits_count() {
        let half = power_of_two(-53);
        assert_eq!(exact_sum([1.0, half]), 1.0);
        assert_eq!(exact_sum([1.0, half, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(exact_sum([1.0 + f64::EPSILON, half]), 1.0 + 2.0 * f64::EPSILON);
        assert_eq!(exact_sum([f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(exact_sum([-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
    }
}
