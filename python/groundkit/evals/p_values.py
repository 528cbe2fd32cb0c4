"""p-values and verdicts from counted resamples."""

import math
from decimal import Decimal

__all__ = [
    "bootstrap_p_value",
    "excludes_zero",
    "is_significant",
    "monte_carlo_error",
    "significance_level",
    "smaller_tail",
]


def smaller_tail(non_positive: int, non_negative: int, resamples: int) -> float:
    """Return the smaller share of bootstrap means at or beyond zero, (r + 1) / (B + 1).

    Args:
        non_positive: Number of means that are zero or less.
        non_negative: Number of means that are zero or more.
        resamples: Number of resamples, B.

    References:
        A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application", 1997, section 4.2.
    """
    return (min(non_positive, non_negative) + 1) / (resamples + 1)


def bootstrap_p_value(non_positive: int, non_negative: int, resamples: int) -> float:
    """Return the two-sided p-value: twice the `smaller_tail`, but at most one."""
    return min(1.0, 2.0 * smaller_tail(non_positive, non_negative, resamples))


def significance_level(confidence_level: float) -> float:
    """Return 1 - ``confidence_level`` as a person computes it, in decimals.

    Example:
        >>> 1.0 - 0.9, significance_level(0.9)
        (0.09999999999999998, 0.1)
    """
    return float(1 - Decimal(repr(confidence_level)))


def is_significant(p_value: float, confidence_level: float) -> bool:
    """Say whether a p-value is at or below the `significance_level`.

    An adjusted p-value is a product of counts, whose rounding must not decide: within 1e-12 of the level it is at it.
    Counts of fewer than a billion resamples have no value that close which is not equal.
    """
    return p_value <= significance_level(confidence_level) * (1.0 + 1e-12)


def excludes_zero(low: float, high: float) -> bool:
    """Say whether an interval lies on one side of zero."""
    return low > 0.0 or high < 0.0


def monte_carlo_error(share: float, draws: int) -> float:
    """Return the standard error of a share that was counted in so many random draws."""
    return math.sqrt(share * (1.0 - share) / draws)
