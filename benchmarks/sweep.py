"""Time a sweep of one baseline, 50 candidates and 5 metrics beside what else computes 250 intervals and levels.

Run as ``python benchmarks/sweep.py``; README.md beside it says what each figure means.
"""

import argparse
import os
import random
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# Forced settings would take numpy's peers their kernels.
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)

import measure
from groundkit.evals.significance import paired_bootstrap
from groundkit.evals.sweep import compare_systems

Scores = dict[str, dict[str, dict[str, float]]]
Peer = Callable[[Scores, int], object]

METRICS = ("recall_at_1", "recall_at_5", "recall_at_10", "mrr", "ndcg_at_10")
CANDIDATES = 50
RESAMPLES = 10_000
SIZES = (300, 6_980)
SLOW_SIZES = (300,)
COUNTED_AT_A_TIME = 1 << 21


def make_scores(queries: int) -> Scores:
    """Make the scores of all systems, the first of which is the baseline: the same for the same number of queries."""
    data = random.Random(queries)
    base = [data.random() for _ in range(queries)]
    return {
        f"system {number}": {
            metric: {
                f"q{query}": min(1.0, max(0.0, score + data.gauss(0.0004 * number, 0.15)))
                for query, score in enumerate(base)
            }
            for metric in METRICS
        }
        for number in range(CANDIDATES + 1)
    }


def with_groundkit(scores: Scores, resamples: int) -> object:
    """Compare with intervals and levels alone."""
    return compare_systems(scores, baseline="system 0", resamples=resamples, tests=())


def with_groundkit_max_t(scores: Scores, resamples: int) -> object:
    """Compare with the max-T method too."""
    return compare_systems(scores, baseline="system 0", resamples=resamples, tests=("max_t",))


def with_groundkit_tests(scores: Scores, resamples: int) -> object:
    """Compare with every test."""
    return compare_systems(scores, baseline="system 0", resamples=resamples)


def with_single_calls(scores: Scores, resamples: int) -> object:
    """Compare in a loop of single calls."""
    return [
        paired_bootstrap(
            scores["system 0"][metric],
            scores[system][metric],
            baseline_name="system 0",
            candidate_name=system,
            metric=metric,
            resamples=resamples,
        )
        for system in scores
        if system != "system 0"
        for metric in METRICS
    ]


def deltas_of(scores: Scores) -> "NDArray[float64]":
    """Return the deltas of all comparisons, one row each."""
    import numpy as np

    query_ids = sorted(scores["system 0"]["mrr"])
    rows = {
        (system, metric): np.array([by_query[query_id] for query_id in query_ids])
        for system, metrics in scores.items()
        for metric, by_query in metrics.items()
    }
    return np.stack([row - rows["system 0", metric] for (system, metric), row in rows.items() if system != "system 0"])


def numpy_means(deltas: "NDArray[float64]", resamples: int) -> "NDArray[float64]":
    """Return the bootstrap means, one row a comparison, as a product of the deltas with shared counts of draws."""
    import numpy as np

    count = deltas.shape[1]
    generator = np.random.Generator(np.random.SFC64(7))
    means = np.empty((len(deltas), resamples))
    rows = max(1, COUNTED_AT_A_TIME // count)
    for start in range(0, resamples, rows):
        some = min(rows, resamples - start)
        draws = generator.integers(0, count, size=(some, count), dtype=np.uint16)
        places = draws + np.arange(0, some * count, count)[:, None]
        counts = np.bincount(places.ravel(), minlength=some * count).reshape(some, count).astype(float)
        means[:, start : start + some] = deltas @ counts.T
    means /= count
    return means


def numpy_summaries(means: "NDArray[float64]") -> tuple[Any, Any]:
    """Return interval ends and levels."""
    import numpy as np

    resamples = means.shape[1]
    tails = np.minimum((means <= 0).sum(axis=1), (means >= 0).sum(axis=1))
    levels = np.minimum(1.0, 2 * (tails + 1) / (resamples + 1))
    return np.quantile(means, [0.025, 0.975], axis=1, overwrite_input=True), levels


def with_numpy(scores: Scores, resamples: int) -> object:
    """Compare with one product of deltas and shared counts."""
    return numpy_summaries(numpy_means(deltas_of(scores), resamples))


def with_numpy_max_t(scores: Scores, resamples: int) -> object:
    """Compare with the product, and the single-step max-T method."""
    import numpy as np

    deltas = deltas_of(scores)
    means = numpy_means(deltas, resamples)
    effects = deltas.mean(axis=1)
    errors = deltas.std(axis=1, ddof=1) / np.sqrt(deltas.shape[1])
    statistics = np.abs(means - effects[:, None])
    statistics /= errors[:, None]
    maxima = np.sort(statistics.max(axis=0))
    below = np.searchsorted(maxima, np.abs(effects) / errors)
    adjusted = (resamples - below + 1) / (resamples + 1)
    critical = np.quantile(maxima, 0.95)
    return numpy_summaries(means), adjusted, effects - critical * errors, effects + critical * errors


def with_scipy(scores: Scores, resamples: int) -> object:
    """Compare in a loop of scipy's percentile intervals; no levels."""
    import numpy as np
    from scipy.stats import bootstrap

    return [bootstrap((row,), np.mean, n_resamples=resamples, method="percentile", rng=7) for row in deltas_of(scores)]


def with_arch(scores: Scores, resamples: int) -> object:
    """Compare with arch's bootstrap of all columns together; intervals alone."""
    import numpy as np
    from arch.bootstrap import IIDBootstrap

    sampled = IIDBootstrap(deltas_of(scores).T, seed=np.random.default_rng(7))
    return sampled.conf_int(lambda rows: rows.mean(axis=0), resamples, method="percentile")


# By name: the package that it needs, whether it is slow, and the function.
PEERS: dict[str, tuple[str, bool, Peer]] = {
    "groundkit": ("groundkit", False, with_groundkit),
    "numpy, one product": ("numpy", False, with_numpy),
    "groundkit, max-T": ("groundkit", False, with_groundkit_max_t),
    "numpy, one product, max-T": ("numpy", False, with_numpy_max_t),
    "groundkit, every test": ("groundkit", False, with_groundkit_tests),
    "groundkit, single calls": ("groundkit", True, with_single_calls),
    "arch, all columns": ("arch", True, with_arch),
    "scipy, in a loop": ("scipy", True, with_scipy),
}


def compare(queries: int, repeats: int) -> dict[str, dict[str, float | int]]:
    """Time every peer that is installed."""
    scores = make_scores(queries)

    def runs(peer: Peer) -> Callable[[], object]:
        return lambda: peer(scores, RESAMPLES)

    chosen = {
        name: runs(peer)
        for name, (package, slow, peer) in PEERS.items()
        if find_spec(package) is not None and (not slow or queries in SLOW_SIZES)
    }
    times = {name: measure.describe(taken) for name, taken in measure.interleave(chosen, repeats).items()}
    print(f"\nn={queries:,}, B={RESAMPLES:,}, {CANDIDATES * len(METRICS)} comparisons")
    print(f"{'':28}{'median ms':>12}{'quartiles':>20}{'multiple':>10}")
    own = float(times["groundkit"]["median_ms"])
    for name, figures in times.items():
        quartiles = f"{figures['lower_quartile_ms']:.0f} to {figures['upper_quartile_ms']:.0f}"
        print(f"{name:28}{figures['median_ms']:12.1f}{quartiles:>20}{figures['median_ms'] / own:10.2f}")
    adjusted = times["numpy, one product, max-T"]["median_ms"] / times["groundkit, max-T"]["median_ms"]
    print(f"with max-T, numpy takes {adjusted:.2f} times as long as groundkit")
    return times


def measure_memory() -> dict[str, float]:
    """Measure the peak of a process that makes the scores and compares them once, and of one that only makes them."""
    peaks = {}
    code = (
        "import sys, measure, sweep; scores = sweep.make_scores(int(sys.argv[2])); "
        "sys.argv[1] in sweep.PEERS and sweep.PEERS[sys.argv[1]][2](scores, 10_000); print(measure.peak_resident())"
    )
    for queries in SIZES:
        print(f"\npeak resident memory at n={queries:,}")
        bare = float(measure.in_child(code, "nothing", str(queries)))
        print(f"{'the scores alone':28}{bare:10.1f} MB")
        for name in ("groundkit", "groundkit, every test", "numpy, one product"):
            peak = float(measure.in_child(code, name, str(queries)))
            peaks[f"{name}, n={queries}"] = peak
            print(f"{name:28}{peak:10.1f} MB, {peak - bare:.1f} MB above the scores")
    return peaks


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeats", type=int, default=7, help="rounds, of which slow peers take fewer (default 7)")
    arguments = parser.parse_args()
    start = time.perf_counter()
    environment = measure.describe_environment("groundkit", "numpy", "scipy", "arch", "pydantic")
    measure.print_environment(environment)
    report = {
        "environment": environment,
        "sweeps": [{"queries": queries, "peers": compare(queries, arguments.repeats)} for queries in SIZES],
        "peak_resident_mb": measure_memory(),
    }
    print(f"\nmeasured in {time.perf_counter() - start:.0f} s")
    measure.write_json(arguments.json, report)


if __name__ == "__main__":
    main()
