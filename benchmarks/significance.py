"""Time `paired_bootstrap` beside what else computes such an interval, from two dicts of scores to the result.

Run as ``python benchmarks/significance.py``; README.md beside it says what each figure means.
"""

import argparse
import os
import random
import statistics
import sys
import time
from array import array
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# A forced core type would take numpy's peers their kernels.
os.environ.pop("OPENBLAS_CORETYPE", None)
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import measure
import reference
from groundkit import _native
from groundkit.evals.significance import paired_bootstrap

Scores = dict[str, float]
Peer = Callable[[Scores, Scores, int], object]

compare_fast = partial(paired_bootstrap, baseline_name="one", candidate_name="other", metric="ndcg_at_10")
compare_plainly = partial(reference.paired_bootstrap, baseline_name="one", candidate_name="other", metric="ndcg_at_10")
GRADES = (0.0, 0.3868528072345416, 0.43067655807339306, 0.5, 0.6309297535714575, 1.0)
COMPARISONS = [(50, 10_000), (300, 10_000), (300, 100_000), (6_980, 10_000)]
NEIGHBOURS = [(2**8, 10_000), (2**12, 10_000), (2**16, 500)]
UINT16_VALUES = 1 << 16
MEMORY_QUERIES = 6_980


def make_scores(count: int) -> tuple[Scores, Scores]:
    """Make two systems' nDCG-like scores of as many queries: the same for the same count."""
    generator = random.Random(count)
    baseline = {f"q{number}": generator.choice(GRADES) * generator.random() for number in range(count)}
    candidate = {
        query_id: min(1.0, max(0.0, score + generator.gauss(0.01, 0.15))) for query_id, score in baseline.items()
    }
    return baseline, candidate


def with_groundkit(threads: int | None = None) -> Peer:
    """Return groundkit with at most as many threads."""

    def run(baseline: Scores, candidate: Scores, resamples: int) -> object:
        if threads is not None:
            os.environ["RAYON_NUM_THREADS"] = str(threads)
        try:
            return compare_fast(baseline, candidate, resamples=resamples)
        finally:
            os.environ.pop("RAYON_NUM_THREADS", None)

    return run


def with_plain_python(baseline: Scores, candidate: Scores, resamples: int) -> object:
    """Compare as the plain algorithm does, with the built-in sum."""
    return compare_plainly(baseline, candidate, resamples=resamples, add_up=sum)


def with_numpy(baseline: Scores, candidate: Scores, resamples: int) -> object:
    """Compare with numpy's fastest generator, narrow indices and chunks that stay in the cache."""
    import numpy as np

    deltas = numpy_deltas(baseline, candidate)
    count = len(deltas)
    generator = np.random.Generator(np.random.SFC64(7))
    kind = np.uint16 if count <= UINT16_VALUES else np.uint32
    rows = max(1, (1 << 16) // count)
    means = np.empty(resamples)
    for start in range(0, resamples, rows):
        some = min(rows, resamples - start)
        indices = generator.integers(0, count, size=(some, count), dtype=kind)
        deltas[indices].mean(axis=1, out=means[start : start + some])
    low, high = np.quantile(means, [0.025, 0.975])
    tail = min(np.count_nonzero(means <= 0), np.count_nonzero(means >= 0))
    return deltas.mean(), low, high, min(1.0, 2 * (tail + 1) / (resamples + 1))


def with_scipy(baseline: Scores, candidate: Scores, resamples: int) -> object:
    """Compare with scipy's percentile interval; it gives no p-value."""
    import numpy as np
    from scipy.stats import bootstrap

    deltas = numpy_deltas(baseline, candidate)
    return bootstrap((deltas,), np.mean, n_resamples=resamples, method="percentile", rng=7).confidence_interval


def with_evaluatio(baseline: Scores, candidate: Scores, resamples: int) -> object:
    """Compare with evaluatio's p-value alone; it takes no seed."""
    from evaluatio.inference.hypothesis import paired_bootstrap_test

    query_ids = sorted(baseline)
    return paired_bootstrap_test([candidate[key] for key in query_ids], [baseline[key] for key in query_ids], resamples)


def with_evaluatio_interval(baseline: Scores, candidate: Scores, resamples: int) -> object:
    """Compare with evaluatio's p-value and its interval."""
    from evaluatio.inference.ci import bootstrap_confidence_interval

    p_value = with_evaluatio(baseline, candidate, resamples)
    deltas = [candidate[key] - baseline[key] for key in sorted(baseline)]
    return p_value, bootstrap_confidence_interval(deltas, resamples, 0.05)


def numpy_deltas(baseline: Scores, candidate: Scores) -> "NDArray[float64]":
    """Return candidate minus baseline in the order of the query ids."""
    import numpy as np

    query_ids = sorted(baseline)
    return np.array([candidate[query_id] - baseline[query_id] for query_id in query_ids])


# By name: the package that it needs, and the function.
PEERS: dict[str, tuple[str, Peer]] = {
    "groundkit": ("groundkit", with_groundkit()),
    "groundkit, one thread": ("groundkit", with_groundkit(1)),
    "plain Python": ("random", with_plain_python),
    "numpy, tuned": ("numpy", with_numpy),
    "evaluatio, p only": ("evaluatio", with_evaluatio),
    "evaluatio, p and interval": ("evaluatio", with_evaluatio_interval),
    "scipy, percentile": ("scipy", with_scipy),
}


def installed_peers() -> dict[str, Peer]:
    """Return the peers that can be run, naming those that cannot."""
    peers = {}
    for name, (package, run) in PEERS.items():
        if find_spec(package) is None:
            print(f"left out: {name}; the package {package} is not installed")
        else:
            peers[name] = run
    return peers


def compare(peers: dict[str, Peer], count: int, resamples: int, repeats: int) -> dict[str, dict[str, float | int]]:
    """Time every peer on one size and print it beside groundkit."""
    baseline, candidate = make_scores(count)
    runs = {name: bind(run, baseline, candidate, resamples) for name, run in peers.items()}
    figures = {name: measure.describe(times) for name, times in measure.interleave(runs, repeats).items()}
    own = figures["groundkit"]["median_ms"]
    print(f"\nn={count:,}, B={resamples:,}: milliseconds")
    print(f"{'':28}{'median':>10}{'quartiles':>21}{'runs':>6}{'times groundkit':>17}")
    for name, figure in figures.items():
        quartiles = f"{figure['lower_quartile_ms']:.2f} - {figure['upper_quartile_ms']:.2f}"
        print(
            f"{name:28}{figure['median_ms']:10.2f}{quartiles:>21}{figure['repeats']:6}{figure['median_ms'] / own:17.2f}"
        )
    return figures


def bind(run: Peer, baseline: Scores, candidate: Scores, resamples: int) -> measure.Run:
    """Return the run on these scores."""
    return lambda: run(baseline, candidate, resamples)


def check_against_reference() -> None:
    """Require the bits of the plain algorithm with correctly rounded sums, where the stream is the same."""
    for count, resamples in [(50, 2_000), (257, 500), (300, 1_000), (6_980, 20)]:
        baseline, candidate = make_scores(count)
        result = compare_fast(baseline, candidate, resamples=resamples)
        if result.model_dump() != compare_plainly(baseline, candidate, resamples=resamples):
            sys.exit(f"groundkit and the reference differ at n={count}, B={resamples}")
    print("results equal the reference's bit for bit at n=50, 257, 300 and 6,980")


def compare_neighbours(repeats: int) -> dict[str, float]:
    """Time a power of two and the number after it, where most draws are rejected, a draw that is accepted."""
    print(f"\n{'nanoseconds an accepted draw':28}{'n=2^k':>10}{'n=2^k+1':>10}{'ratio':>8}")
    ratios = {}
    for power, resamples in NEIGHBOURS:
        runs = {str(count): bind(with_groundkit(), *make_scores(count), resamples) for count in (power, power + 1)}
        times = measure.interleave(runs, repeats)
        each = [1e9 * statistics.median(times[str(count)]) / (count * resamples) for count in (power, power + 1)]
        ratios[str(power)] = each[1] / each[0]
        print(f"{f'k={power.bit_length() - 1}':28}{each[0]:10.3f}{each[1]:10.3f}{each[1] / each[0]:8.2f}")
    return ratios


def measure_overhead(repeats: int) -> dict[str, float]:
    """Time the call beside its kernel on prepared arrays, n=50 and B=10,000."""
    baseline, candidate = make_scores(50)
    query_ids = sorted(baseline)
    arrays = [array("d", [scores[query_id] for query_id in query_ids]) for scores in (baseline, candidate)]

    def kernel() -> object:
        return _native.paired_bootstrap(*arrays, resamples=10_000, seed=b"\x07", confidence_level=0.95)

    times = measure.interleave({"call": bind(with_groundkit(), baseline, candidate, 10_000), "kernel": kernel}, repeats)
    call, alone = (1e3 * statistics.median(times[name]) for name in ("call", "kernel"))
    print(f"\ncall overhead at n=50: {call - alone:.4f} ms (call {call:.4f} ms, kernel alone {alone:.4f} ms)")
    return {"call_ms": call, "kernel_ms": alone, "overhead_ms": call - alone}


def measure_memory(peers: dict[str, Peer]) -> dict[str, float]:
    """Measure the peak of a process that compares 6,980 queries once, above that of the interpreter alone."""
    bare = float(measure.in_child("import measure; print(measure.peak_resident())"))
    code = (
        "import sys, measure, significance as s; run = s.PEERS[sys.argv[1]][1]; "
        f"run(*s.make_scores({MEMORY_QUERIES}), 10_000); print(measure.peak_resident())"
    )
    print(f"\npeak resident memory at n={MEMORY_QUERIES:,}, B=10,000, above the interpreter's {bare:.0f} MB")
    peaks = {}
    for name in peers:
        if name != "plain Python":
            peaks[name] = float(measure.in_child(code, name)) - bare
            print(f"{name:28}{peaks[name]:10.1f} MB")
    return peaks


def measure_import(repeats: int) -> float:
    """Time the import of the module in new interpreters that have made a pydantic model already.

    The first model of a process makes pydantic search every installed distribution for plugins, which takes longer than
    all that is ours.
    """
    code = (
        "from time import perf_counter; from pydantic import BaseModel, ConfigDict, Field; "
        "type('First', (BaseModel,), {}); start = perf_counter(); "
        "import groundkit.evals.significance; print(perf_counter() - start)"
    )
    times = [1e3 * float(measure.in_child(code)) for _ in range(repeats)]
    print(f"\nimport of groundkit.evals.significance above pydantic's: {statistics.median(times):.1f} ms")
    return statistics.median(times)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeats", type=int, default=7, help="rounds, of which slow peers take fewer (default 7)")
    arguments = parser.parse_args()
    start = time.perf_counter()
    environment = measure.describe_environment("groundkit", "numpy", "scipy", "evaluatio", "pydantic")
    environment["levels"] = ", ".join(_native.levels())
    measure.print_environment(environment)
    peers = installed_peers()
    check_against_reference()
    report = {
        "environment": environment,
        "comparisons": [
            {"queries": count, "resamples": resamples, "peers": compare(peers, count, resamples, arguments.repeats)}
            for count, resamples in COMPARISONS
        ],
        "powers_of_two": compare_neighbours(arguments.repeats),
        "overhead": measure_overhead(20 * arguments.repeats),
        "peak_resident_mb": measure_memory(peers),
        "import_ms": measure_import(arguments.repeats),
    }
    print(f"\nmeasured in {time.perf_counter() - start:.0f} s")
    measure.write_json(arguments.json, report)


if __name__ == "__main__":
    main()
