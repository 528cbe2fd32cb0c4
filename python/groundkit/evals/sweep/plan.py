"""What a sweep has to compute: its comparisons, gathered by the queries that they share."""

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from groundkit.errors import EvalError
from groundkit.evals.quoting import quote, quote_first
from groundkit.evals.sweep.models import Family, Missing, Test
from groundkit.evals.sweep.scores import ScoreTable

__all__ = ["Comparison", "Settings", "Task", "plan_tasks"]


class Settings(NamedTuple):
    """The arguments of a sweep that every task needs."""

    resamples: int
    seed: int
    confidence_level: float
    tests: frozenset[Test]
    threads: int | None


class Comparison(NamedTuple):
    """What is known of a row before anything is computed."""

    dataset: str
    metric: str
    baseline: str
    candidate: str
    baseline_missing: int
    candidate_missing: int
    family: str


class Task(NamedTuple):
    """Comparisons over one set of queries of one dataset: all that a worker needs.

    Attributes:
        query_count: Number of queries, n.
        scores: One row of n scores for each system and metric.
        pairs: For each comparison the rows of baseline and candidate in ``scores``, and its family's number.
        family_levels: Confidence level of each family's simultaneous intervals over this set of queries.
        family_task_counts: Number of tasks that each family is spread over.
        comparisons: What is known of each comparison.
    """

    query_count: int
    scores: "array[float]"
    pairs: list[tuple[int, int, int]]
    family_levels: list[float]
    family_task_counts: list[int]
    comparisons: list[Comparison]


def plan_tasks(
    tables: list[ScoreTable], baselines: list[str] | None, settings: Settings, *, missing: Missing, family: Family
) -> list[Task]:
    """Gather the comparisons that share their queries, dataset by dataset.

    Args:
        tables: The scores.
        baselines: Systems to compare all others with; ``None`` for all pairs.
        settings: The settings of the sweep.
        missing: What to do about queries on which only one of two systems was scored.
        family: The comparisons whose p-values are adjusted together.

    Returns:
        At least one task, each with at least one comparison and one query.

    Raises:
        EvalError: There is nothing to compare, or two systems differ in their queries and ``missing`` refuses that.
    """
    # Query sets by number: hashing them again for every comparison would cost more than resampling them.
    numbers: dict[tuple[str, ...], int] = {}
    planned: dict[tuple[str, int], tuple[int, dict[tuple[str, str], array[float]], list[Comparison]]] = {}
    for table in tables:
        named = {"dataset": table.dataset, "metric": f"{table.dataset} {table.metric}", "all": "all"}[family]
        shared = tuple(table.query_ids)
        whole = numbers.setdefault(shared, len(numbers))
        for baseline, candidate in _pair_systems(table, baselines):
            absent_of = (table.missing.get(baseline, frozenset()), table.missing.get(candidate, frozenset()))
            if any(absent_of) and missing == "refuse":
                raise EvalError(_describe_difference(table, baseline, candidate))
            query_set, query_count = whole, len(shared)
            if any(absent_of) and missing == "intersect":
                absent = absent_of[0] | absent_of[1]
                query_ids = tuple(query_id for place, query_id in enumerate(shared) if place not in absent)
                query_set, query_count = numbers.setdefault(query_ids, len(numbers)), len(query_ids)
                if not query_ids:
                    raise EvalError(
                        f"systems {quote(baseline)} and {quote(candidate)} have no query in common in "
                        f"{quote(table.metric)} on dataset {quote(table.dataset)}; a comparison requires at least one "
                        "query score"
                    )
            _, rows, comparisons = planned.setdefault((table.dataset, query_set), (query_count, {}, []))
            for system in (baseline, candidate):
                if (table.metric, system) not in rows:
                    row = table.rows[system]
                    if query_count < len(shared):
                        row = array("d", (score for place, score in enumerate(row) if place not in absent))
                    rows[table.metric, system] = row
            comparisons.append(
                Comparison(
                    table.dataset, table.metric, baseline, candidate, len(absent_of[0]), len(absent_of[1]), named
                )
            )
    if not planned:
        raise EvalError("a sweep requires at least two systems")
    task_counts = Counter(
        itertools.chain.from_iterable({comparison.family for comparison in part[2]} for part in planned.values())
    )
    return [
        _make_task(query_count, rows, comparisons, task_counts, settings)
        for query_count, rows, comparisons in planned.values()
    ]


def _pair_systems(table: ScoreTable, baselines: list[str] | None) -> Iterator[tuple[str, str]]:
    if baselines is None:
        yield from itertools.combinations(table.rows, 2)
        return
    for baseline in baselines:
        if baseline not in table.rows:
            raise EvalError(f"dataset {quote(table.dataset)} has no scores of baseline {quote(baseline)}")
        yield from ((baseline, system) for system in table.rows if system != baseline)


def _make_task(
    query_count: int,
    rows: "dict[tuple[str, str], array[float]]",
    comparisons: list[Comparison],
    task_counts: "Counter[str]",
    settings: Settings,
) -> Task:
    places = {key: place for place, key in enumerate(rows)}
    families = list(dict.fromkeys(comparison.family for comparison in comparisons))
    scores = array("d")
    for row in rows.values():
        scores.extend(row)
    return Task(
        query_count=query_count,
        scores=scores,
        pairs=[
            (
                places[comparison.metric, comparison.baseline],
                places[comparison.metric, comparison.candidate],
                families.index(comparison.family),
            )
            for comparison in comparisons
        ],
        # A family over several sets of queries shares its error among them (Bonferroni).
        family_levels=[1.0 - (1.0 - settings.confidence_level) / task_counts[name] for name in families],
        family_task_counts=[task_counts[name] for name in families],
        comparisons=comparisons,
    )


def _describe_difference(table: ScoreTable, baseline: str, candidate: str) -> str:
    def missing(system: str) -> str:
        return quote_first([table.query_ids[place] for place in sorted(table.missing.get(system, ()))])

    return (
        f"query ids differ in {quote(table.metric)} on dataset {quote(table.dataset)} (missing from candidate "
        f"{quote(candidate)}: {missing(candidate)}; missing from baseline {quote(baseline)}: {missing(baseline)}); "
        "score both systems on the same queries, or say with missing='zero' or 'intersect' what to do"
    )
