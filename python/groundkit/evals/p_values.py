"""p-values and verdicts from counted resamples."""

import math

__all__ = ["bootstrap_p_value", "excludes_zero", "monte_carlo_error", "smaller_tail"]


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


def excludes_zero(low: float, high: float) -> bool:
    """Say whether an interval lies on one side of zero."""
    return low > 0.0 or high < 0.0


def monte_carlo_error(share: float, draws: int) -> float:
    """Return the standard error of a share that was counted in so many random draws."""
    return math.sqrt(share * (1.0 - share) / draws)
