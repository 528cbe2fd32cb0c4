"""Adjust p-values for the number of comparisons that were made."""

from collections.abc import Hashable, Sequence

__all__ = ["adjust_once_per_pair", "benjamini_hochberg", "holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the chance of any false claim is held, whatever the dependence.

    Args:
        p_values: p-values of one family, in any order, each in [0, 1].

    Returns:
        Adjusted p-values in the same order: claiming those at or below alpha keeps the family-wise error at alpha.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]

    References:
        S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6, 1979.
    """
    adjusted = [0.0] * len(p_values)
    most = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        most = max(most, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = most
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the expected share of false claims among the claims is held.

    Args:
        p_values: p-values of one family, in any order, each in [0, 1]; independent or positively dependent.

    Returns:
        Adjusted p-values in the same order: claiming those at or below q keeps the false discovery rate at q.

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03])
        [0.03, 0.04, 0.04]

    References:
        Y. Benjamini and Y. Hochberg, "Controlling the False Discovery Rate", Journal of the Royal Statistical Society
        B 57, 1995.
    """
    adjusted = [0.0] * len(p_values)
    least = 1.0
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, position in reversed(list(enumerate(ranked, start=1))):
        least = min(least, len(p_values) * p_values[position] / rank)
        adjusted[position] = least
    return adjusted


def adjust_once_per_pair(p_values: Sequence[float], pairs: Sequence[Hashable]) -> list[tuple[float, float]]:
    """Adjust the p-values of a family in which a pair may be compared in both directions.

    Both directions are one comparison: they have the same p-value and count once.

    Args:
        p_values: p-values of one family.
        pairs: What each compares, equal for both directions.

    Returns:
        The p-values as Holm and as Benjamini and Hochberg adjust them, in the same order.
    """
    by_pair: dict[Hashable, float] = {}
    for pair, p_value in zip(pairs, p_values, strict=True):
        by_pair.setdefault(pair, p_value)
    once = list(by_pair.values())
    adjusted = dict(zip(by_pair, zip(holm(once), benjamini_hochberg(once), strict=True), strict=True))
    return [adjusted[pair] for pair in pairs]
