"""The rows of a sweep, made of what the kernel counted."""

import math
from collections.abc import Collection, Iterator
from typing import Any

from groundkit import _native
from groundkit.evals.p_values import bootstrap_p_value, excludes_zero, monte_carlo_error, smaller_tail
from groundkit.evals.sweep.models import AdjustedTest, SweepRow, Test
from groundkit.evals.sweep.multiplicity import adjust_once_per_pair
from groundkit.evals.sweep.plan import Settings, Task
from groundkit.evals.sweep.tasks import TaskResult

__all__ = ["NOTE_CONSTANT", "choose_adjusted_test", "make_rows"]

FEW_QUERIES = 50
"""Below so many queries a percentile interval is too short."""

POWER = 0.8
"""Power at which an effect counts as detectable."""

NOTE_CONSTANT = "all deltas are equal: tests that need a variance claim nothing"
NOTE_FEW_QUERIES = f"fewer than {FEW_QUERIES} queries: percentile intervals are too short, read the sign-flip test"

_P_VALUE_OF_TEST: dict[AdjustedTest, str] = {
    "sign_flip": "p_value_sign_flip",
    "t": "p_value_t",
    "bootstrap": "p_value_two_sided",
}


def make_rows(tasks: list[Task], results: list[TaskResult], settings: Settings) -> Iterator[SweepRow]:
    """Make the rows of all tasks, with their p-values adjusted by family.

    Args:
        tasks: The tasks.
        results: Their results, in the same order.
        settings: The settings of the sweep.

    Yields:
        One row for each comparison.
    """
    partial = [
        fields
        for task, result in zip(tasks, results, strict=True)
        for fields in _describe_comparisons(task, *result, settings)
    ]
    test = choose_adjusted_test(settings.tests)
    by_family: dict[str, list[dict[str, Any]]] = {}
    for fields in partial:
        by_family.setdefault(fields["family"], []).append(fields)
    for members in by_family.values():
        pairs = [
            (fields["dataset"], fields["metric"], frozenset((fields["baseline"], fields["candidate"])))
            for fields in members
        ]
        size = len(set(pairs))
        adjusted = adjust_once_per_pair([fields[_P_VALUE_OF_TEST[test]] for fields in members], pairs)
        for fields, (by_holm, by_rate) in zip(members, adjusted, strict=True):
            fields |= {"family_size": size, "p_value_holm": by_holm, "p_value_benjamini_hochberg": by_rate}
    for fields in partial:
        yield SweepRow(**fields)


def _describe_comparisons(
    task: Task, rows: "list[_native.Row]", means: list[float], settings: Settings
) -> Iterator[dict[str, Any]]:
    count = task.query_count
    task_counts = {
        comparison.family: task.family_task_counts[family]
        for comparison, (_, _, family) in zip(task.comparisons, task.pairs, strict=True)
    }
    # The factor of the standard error in the detectable effect, which only depends on the number of queries.
    factor = None
    if count > 1:
        alpha = (1.0 - settings.confidence_level) / 2.0
        factor = sum(_native.student_quantile(probability, count - 1) for probability in (1.0 - alpha, POWER))
    for comparison, (first, second, _), row in zip(task.comparisons, task.pairs, rows, strict=True):
        (effect, deviation, wins, ties, losses), (low, high, non_positive, non_negative), flips, max_t = row
        tail = smaller_tail(non_positive, non_negative, settings.resamples)
        error = deviation / math.sqrt(count)
        notes = []
        if deviation == 0.0:
            notes.append(NOTE_CONSTANT)
        if count < FEW_QUERIES:
            notes.append(NOTE_FEW_QUERIES)
        fields: dict[str, Any] = comparison._asdict() | {
            "query_count": count,
            "resamples": settings.resamples,
            "seed": settings.seed,
            "confidence_level": settings.confidence_level,
            "effect": effect,
            "confidence_interval_low": low,
            "confidence_interval_high": high,
            "p_value_two_sided": bootstrap_p_value(non_positive, non_negative, settings.resamples),
            "significant": excludes_zero(low, high),
            "p_value_standard_error": 2.0 * monte_carlo_error(tail, settings.resamples),
            "baseline_mean": means[first],
            "candidate_mean": means[second],
            "standard_deviation": deviation,
            "effect_size": _effect_size(effect, deviation),
            "detectable_effect": None if factor is None else factor * error,
            "wins": wins,
            "ties": ties,
            "losses": losses,
            "notes": tuple(notes),
        }
        if flips is not None:
            as_extreme, assignments, exact = flips
            p_value = as_extreme / assignments if exact else (as_extreme + 1) / (assignments + 1)
            fields |= {
                "p_value_sign_flip": p_value,
                "sign_flip_exact": exact,
                "p_value_sign_flip_standard_error": 0.0 if exact else monte_carlo_error(p_value, assignments),
            }
        if "t" in settings.tests:
            statistic = effect / error if error > 0.0 else 0.0
            fields |= {
                "t_statistic": statistic,
                "p_value_t": _native.student_two_sided(statistic, count - 1) if count > 1 else 1.0,
            }
        if max_t is not None:
            as_extreme, lower, upper = max_t
            p_value = (as_extreme + 1) / (settings.resamples + 1)
            # A family over several sets of queries shares its error among them (Bonferroni).
            task_count = task_counts[comparison.family]
            fields |= {
                "p_value_max_t": min(1.0, task_count * p_value),
                "p_value_max_t_standard_error": task_count * monte_carlo_error(p_value, settings.resamples),
                "simultaneous_interval_low": lower,
                "simultaneous_interval_high": upper,
            }
        yield fields


def _effect_size(effect: float, deviation: float) -> float | None:
    if deviation > 0.0:
        return effect / deviation
    return 0.0 if effect == 0.0 else None


def choose_adjusted_test(tests: Collection[Test]) -> AdjustedTest:
    """Choose the test whose p-values are adjusted: the sign-flip test where it was run."""
    if "sign_flip" in tests:
        return "sign_flip"
    return "t" if "t" in tests else "bootstrap"
