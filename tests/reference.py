"""The algorithms of the package in plain Python: slow, short, and what every fast path is compared with."""

import math
import random
from collections.abc import Callable, Iterable, Mapping


def paired_bootstrap(  # noqa: PLR0913 - the parameters of the function that it is compared with
    baseline_scores: Mapping[str, float],
    candidate_scores: Mapping[str, float],
    *,
    baseline_name: str,
    candidate_name: str,
    metric: str,
    resamples: int = 10_000,
    seed: int = 7,
    confidence_level: float = 0.95,
    add_up: Callable[[Iterable[float]], float] = math.fsum,
) -> dict[str, object]:
    """Compare two systems with `random` and `math.fsum`; ``add_up`` may replace the latter."""
    query_ids = sorted(baseline_scores)
    deltas = [candidate_scores[query_id] - baseline_scores[query_id] for query_id in query_ids]
    count = len(deltas)
    generator = random.Random(seed)
    means = sorted(add_up(deltas[generator.randrange(count)] for _ in range(count)) / count for _ in range(resamples))
    alpha = (1.0 - confidence_level) / 2.0
    low = quantile(means, alpha)
    high = quantile(means, 1.0 - alpha)
    non_positive = sum(mean <= 0.0 for mean in means)
    non_negative = sum(mean >= 0.0 for mean in means)
    return {
        "baseline": baseline_name,
        "candidate": candidate_name,
        "metric": metric,
        "query_count": count,
        "resamples": resamples,
        "seed": seed,
        "confidence_level": confidence_level,
        "effect": add_up(deltas) / count,
        "confidence_interval_low": low,
        "confidence_interval_high": high,
        "p_value_two_sided": min(1.0, 2.0 * (min(non_positive, non_negative) + 1) / (resamples + 1)),
        "significant": low > 0.0 or high < 0.0,
        "method": "paired bootstrap over query-level candidate-minus-baseline deltas",
    }


def quantile(ordered: list[float], probability: float) -> float:
    """Interpolate linearly between ordered values at position ``(len - 1) * probability``."""
    position = (len(ordered) - 1) * probability
    lower, upper = math.floor(position), math.ceil(position)
    if lower == upper:
        return ordered[lower]
    weight = position - lower
    return ordered[lower] * (1.0 - weight) + ordered[upper] * weight
