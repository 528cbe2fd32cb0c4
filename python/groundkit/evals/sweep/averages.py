"""Averages over datasets, in which every dataset counts the same."""

import hashlib
import math
from collections.abc import Iterable, Iterator

from groundkit import _native
from groundkit.evals.p_values import bootstrap_p_value, excludes_zero, monte_carlo_error, smaller_tail
from groundkit.evals.sweep.models import AverageRow, SweepRow
from groundkit.evals.sweep.multiplicity import adjust_once_per_pair
from groundkit.evals.sweep.plan import Settings, Task

__all__ = ["make_averages"]


def make_averages(tasks: list[Task], rows: list[SweepRow], settings: Settings) -> Iterator[AverageRow]:
    """Compare averages over all datasets, where there are several.

    Args:
        tasks: The tasks of the sweep.
        rows: Its rows.
        settings: Its settings.

    Yields:
        One row for each pair of systems and each metric that all datasets have.
    """
    datasets = tuple(dict.fromkeys(row.dataset for row in rows))
    if len(datasets) < 2:  # noqa: PLR2004 - an average over one dataset is its own row
        return
    places: dict[tuple[str, str, str], dict[str, tuple[int, tuple[int, int]]]] = {}
    for number, task in enumerate(tasks):
        for comparison, (first, second, _) in zip(task.comparisons, task.pairs, strict=True):
            key = (comparison.baseline, comparison.candidate, comparison.metric)
            places.setdefault(key, {})[comparison.dataset] = (number, (first, second))
    # Comparisons whose queries are the same in every dataset are resampled together.
    together: dict[tuple[int, ...], list[tuple[str, str, str]]] = {}
    for key, by_dataset in places.items():
        if len(by_dataset) == len(datasets):
            together.setdefault(tuple(by_dataset[dataset][0] for dataset in datasets), []).append(key)
    found: dict[tuple[str, str, str], tuple[float, float, int, int]] = {}
    for numbers, keys in together.items():
        strata = [
            (
                tasks[number].scores,
                tasks[number].query_count,
                [places[key][dataset][1] for key in keys],
                _stratum_seed(settings.seed, dataset),
            )
            for dataset, number in zip(datasets, numbers, strict=True)
        ]
        summaries, _ = _native.compare_averages(
            strata,
            resamples=settings.resamples,
            confidence_level=settings.confidence_level,
            threads=settings.threads,
        )
        found |= zip(keys, summaries, strict=True)
    by_key: dict[tuple[str, str, str], list[SweepRow]] = {}
    for row in rows:
        by_key.setdefault((row.baseline, row.candidate, row.metric), []).append(row)
    tails = {
        key: (
            smaller_tail(non_positive, non_negative, settings.resamples),
            bootstrap_p_value(non_positive, non_negative, settings.resamples),
        )
        for key, (_, _, non_positive, non_negative) in found.items()
    }
    adjusted = adjust_once_per_pair(
        [p_value for _, p_value in tails.values()],
        [(frozenset((baseline, candidate)), metric) for baseline, candidate, metric in tails],
    )
    for (key, (tail, p_value)), (by_holm, by_rate) in zip(tails.items(), adjusted, strict=True):
        low, high, _, _ = found[key]
        baseline, candidate, metric = key
        yield AverageRow(
            datasets=datasets,
            baseline=baseline,
            candidate=candidate,
            metric=metric,
            query_count=sum(row.query_count for row in by_key[key]),
            resamples=settings.resamples,
            seed=settings.seed,
            confidence_level=settings.confidence_level,
            effect=_average(row.effect for row in by_key[key]),
            confidence_interval_low=low,
            confidence_interval_high=high,
            p_value_two_sided=p_value,
            significant=excludes_zero(low, high),
            p_value_standard_error=2.0 * monte_carlo_error(tail, settings.resamples),
            baseline_mean=_average(row.baseline_mean for row in by_key[key]),
            candidate_mean=_average(row.candidate_mean for row in by_key[key]),
            p_value_holm=by_holm,
            p_value_benjamini_hochberg=by_rate,
        )


def _stratum_seed(seed: int, dataset: str) -> bytes:
    """Return a seed of a dataset's own: with one seed for all, datasets of equal size would share their draws."""
    return hashlib.sha256(f"{seed} {dataset}".encode(errors="surrogatepass")).digest()


def _average(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
