"""Measure how often the tests of a sweep are wrong, on simulated scores with ties.

Prints the tables of docs/sweeps.md:

    .venv/bin/python benchmarks/calibration.py --simulations 10000
"""

import argparse
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

from groundkit.evals.sweep import SweepRow, SweepWarning, compare_systems

CONFIDENCE_LEVEL = 0.95
RESAMPLES = 2_000
FAMILY = 10
AT_A_TIME = 200

Draw = Callable[[random.Random], float]


class Population(NamedTuple):
    """Where the deltas of a simulation come from.

    Attributes:
        name: What it looks like.
        mean: Its mean.
        draw: Draws one delta.
    """

    name: str
    mean: float
    draw: Draw


def hits(better: float, worse: float) -> Draw:
    """Return deltas of a metric that is zero or one: mostly ties."""
    return lambda data: float(data.choices([1, 0, -1], [better, 1 - better - worse, worse])[0])


def ranks(data: random.Random) -> float:
    """Return a difference of reciprocal ranks, drawn alike on both sides: a quarter are ties."""
    return 1 / data.choice([1, 1, 1, 2, 3, 4, 5]) - 1 / data.choice([1, 1, 1, 2, 3, 4, 5])


def gains(data: random.Random) -> float:
    """Return a difference of graded scores, of which a half are ties."""
    return data.gauss(0.0, 0.2) if data.random() < 0.5 else 0.0  # noqa: PLR2004 - a half


NULL = [
    Population("hit or miss, 90 % ties", 0.0, hits(0.05, 0.05)),
    Population("hit or miss, 70 % ties", 0.0, hits(0.15, 0.15)),
    Population("reciprocal ranks", 0.0, ranks),
    Population("graded, 50 % ties", 0.0, gains),
]
SHIFTED = [
    Population("hit or miss, 80 % ties, + 0.1", 0.1, hits(0.15, 0.05)),
    Population("reciprocal ranks, + 0.05", 0.05, lambda data: ranks(data) + 0.05),
    Population("graded, 50 % ties, + 0.05", 0.05, lambda data: gains(data) + 0.05),
]


def compare(population: Population, queries: int, simulations: int, *, family: int = 1) -> Iterator[list[SweepRow]]:
    """Yield the rows of one simulated family after the other: candidates that share a baseline and its queries."""
    data = random.Random(f"{population.name} {queries} {family}")
    while simulations > 0:
        batch = min(simulations, AT_A_TIME)
        simulations -= batch
        metrics = [f"m{number}" for number in range(batch)]
        query_ids = list(map(str, range(queries)))
        scores = {"baseline": {metric: dict.fromkeys(query_ids, 0.0) for metric in metrics}}
        for member in range(family):
            scores[f"candidate {member}"] = {
                metric: {query_id: population.draw(data) for query_id in query_ids} for metric in metrics
            }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SweepWarning)
            result = compare_systems(
                scores,
                baseline="baseline",
                resamples=RESAMPLES,
                seed=data.getrandbits(32),
                confidence_level=CONFIDENCE_LEVEL,
                family="metric",
            )
        for _, rows in itertools.groupby(result.rows, key=lambda row: row.metric):
            yield list(rows)


def share(flags: list[bool]) -> float:
    """Return the share of true ones."""
    return sum(flags) / len(flags)


def found(p_value: float | None) -> bool:
    """Return whether a test finds a difference."""
    return p_value is not None and p_value <= 1.0 - CONFIDENCE_LEVEL


def false_positives(population: Population, queries: int, simulations: int) -> dict[str, float]:
    """Return how often each test finds a difference where there is none."""
    rows = [row for (row,) in compare(population, queries, simulations)]
    return {
        "percentile interval": share([row.significant for row in rows]),
        "sign-flip test": share([found(row.p_value_sign_flip) for row in rows]),
        "t-test": share([found(row.p_value_t) for row in rows]),
    }


def coverage(population: Population, queries: int, simulations: int) -> float:
    """Return how often the percentile interval holds the true mean."""
    rows = [row for (row,) in compare(population, queries, simulations)]
    return share([row.confidence_interval_low <= population.mean <= row.confidence_interval_high for row in rows])


def family_errors(population: Population, queries: int, simulations: int) -> dict[str, float]:
    """Return how often a family of null comparisons has any false positive, and how often all its intervals hold."""
    families = list(compare(population, queries, simulations, family=FAMILY))
    return {
        "percentile intervals": share([any(row.significant for row in rows) for rows in families]),
        "Holm": share([any(found(row.p_value_holm) for row in rows) for rows in families]),
        "max-T": share([any(found(row.p_value_max_t) for row in rows) for rows in families]),
        "simultaneous coverage": share([all(map(holds, rows)) for rows in families]),
    }


def holds(row: SweepRow) -> bool:
    """Return whether the simultaneous interval of a null comparison holds zero."""
    low, high = row.simultaneous_interval_low, row.simultaneous_interval_high
    return low is not None and high is not None and low <= 0.0 <= high


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=10_000)
    simulations = parser.parse_args().simulations
    sizes = (10, 20, 50, 100, 300)
    print(f"False positives at a nominal {1 - CONFIDENCE_LEVEL:.0%}, {simulations:,} simulations each:\n")
    print("| deltas | n | percentile interval | sign-flip test | t-test |\n|---|---:|---:|---:|---:|")
    for population, queries in itertools.product(NULL, sizes):
        shares = false_positives(population, queries, simulations).values()
        print(f"| {population.name} | {queries} | " + " | ".join(f"{value:.1%}" for value in shares) + " |", flush=True)
    print(f"\nCoverage of the {CONFIDENCE_LEVEL:.0%} percentile interval:\n")
    print("| deltas | " + " | ".join(f"n = {queries}" for queries in sizes) + " |\n|---|" + "---:|" * len(sizes))
    for population in SHIFTED:
        covered = (coverage(population, queries, simulations) for queries in sizes)
        print(f"| {population.name} | " + " | ".join(f"{value:.1%}" for value in covered) + " |", flush=True)
    families = max(1, simulations // 5)
    print(f"\nAny false positive in a family of {FAMILY} null comparisons, {families:,} families each:\n")
    print(
        "| deltas | n | percentile intervals | Holm | max-T | simultaneous coverage |\n|---|---:|---:|---:|---:|---:|"
    )
    for population, queries in itertools.product(NULL, (20, 50, 300)):
        shares = family_errors(population, queries, families).values()
        print(f"| {population.name} | {queries} | " + " | ".join(f"{value:.1%}" for value in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
