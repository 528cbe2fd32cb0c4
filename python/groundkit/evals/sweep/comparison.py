"""Compare many systems in many metrics on many datasets in one call."""

import itertools
import os
import warnings
from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from typing import SupportsIndex, cast, get_args

from groundkit.errors import EvalError
from groundkit.evals.arguments import (
    require_choice,
    require_choices,
    require_confidence_level,
    require_printable_seed,
    require_resamples,
    require_threads,
)
from groundkit.evals.progress import SweepProgressOption, open_sweep_progress
from groundkit.evals.quoting import quote_first
from groundkit.evals.schema import EvalReport
from groundkit.evals.sweep.averages import make_averages
from groundkit.evals.sweep.models import Family, Missing, Nesting, Test
from groundkit.evals.sweep.plan import Settings, plan_tasks
from groundkit.evals.sweep.result import SweepResult
from groundkit.evals.sweep.rows import NOTE_CONSTANT, choose_adjusted_test, make_rows
from groundkit.evals.sweep.scores import read_scores, report_baseline
from groundkit.evals.sweep.tasks import run_tasks

__all__ = ["SweepWarning", "compare_systems"]


class SweepWarning(UserWarning):
    """Some comparison of a sweep has no variance, so that only parts of its row mean something."""


def compare_systems(  # noqa: PLR0913 - keyword-only choices with defaults
    scores: object,
    *,
    baseline: str | Sequence[str] | None = None,
    resamples: SupportsIndex = 10_000,
    seed: SupportsIndex = 7,
    confidence_level: float = 0.95,
    missing: Missing = "refuse",
    nesting: Nesting = "metric",
    family: Family = "dataset",
    tests: Collection[Test] = ("sign_flip", "t", "max_t"),
    averages: bool = True,
    executor: Executor | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: SweepProgressOption = None,
    threads: SupportsIndex | None = None,
) -> SweepResult:
    """Compare systems with one or several baselines, or all with each other, in every metric on every dataset.

    Args:
        scores: One finite score a query. Nested mappings ``{system: {metric: {query_id: score}}}``, or the same under
            ``{dataset: ...}``; a long polars, pandas or Arrow frame with the columns ``dataset`` (may be left out),
            ``system``, ``metric``, ``query_id`` and ``score``; or an `EvalReport`.
        baseline: System or systems to compare all others with. By default the baseline of a report, and otherwise every
            system that comes earlier, so that all pairs are compared.
        resamples: Number of bootstrap resamples and of random sign assignments, B >= 1.
        seed: Any integer; every set of queries starts its streams from it.
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        missing: What to do where two systems were not scored on the same queries: ``refuse``; count a score of ``zero``
            for every query that any system has in that metric; or ``intersect``, which compares two systems on the
            queries that both have.
        nesting: What nested mappings have directly below a system: ``metric``, or ``query`` for
            ``{system: {query_id: {metric: score}}}``, as pytrec_eval gives for each system.
        family: Comparisons that are adjusted for together: all of one ``dataset``, all of one dataset and ``metric``,
            or ``all``.
        tests: Tests to run beside the bootstrap, which is always run. ``max_t`` costs a fifth more, ``sign_flip`` as
            much as the bootstrap, ``t`` nothing.
        averages: Whether to compare averages over the datasets too, where there are several.
        executor: Where to run the sets of queries, one a task: any `concurrent.futures.Executor`, such as a process
            pool or those of dask and mpi4py; by default here. The bits are the same.
        resume: Directory that keeps each finished set of queries, so that a sweep that was stopped goes on when called
            again with the same arguments; made if it is absent. What other arguments left there is not read.
        progress: `True` shows a bar on a terminal or in a notebook (extra ``progress``); a callable gets
            a `SweepProgress` at the beginning and whenever a set of queries is finished.
        threads: Maximum number of threads, -1 for all cores; by default the variable ``RAYON_NUM_THREADS`` or all
            cores, and one in a task of an executor.

    Returns:
        One row a comparison.

    Raises:
        EvalError: An argument is out of range, a baseline is not among the systems, the queries of two systems differ
            (unless ``missing`` says what to do), or scores are not finite or so large that a sum could overflow.
        TypeError: The scores have another form, or one of them is no real number.

    Example:
        >>> queries = [f"q{number}" for number in range(60)]
        >>> scores = {
        ...     "BM25": {"MRR": {query: 0.25 for query in queries}},
        ...     "dense": {"MRR": {query: (number % 3) / 2 for number, query in enumerate(queries)}},
        ... }
        >>> row, = compare_systems(scores, baseline="BM25").rows
        >>> row.effect, row.significant, row.wins, row.ties, row.losses
        (0.25, True, 40, 0, 20)

    References:
        P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", 1993.
        M. D. Smucker, J. Allan and B. Carterette, "A Comparison of Statistical Significance Tests for Information
        Retrieval Evaluation", CIKM 2007.
        T. Sakai, "Laboratory Experiments in Information Retrieval", 2018.
    """
    thread_count = require_threads(threads)
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor must be a concurrent.futures.Executor, not {type(executor).__name__}")
    settings = Settings(
        resamples=require_resamples(resamples),
        seed=require_printable_seed(seed),
        confidence_level=require_confidence_level(confidence_level),
        tests=frozenset(cast("tuple[Test, ...]", require_choices("test", tests, get_args(Test)))),
        threads=1 if thread_count is None and executor is not None else thread_count,
    )
    require_choice("nesting", nesting, get_args(Nesting))
    require_choice("missing", missing, get_args(Missing))
    require_choice("family", family, get_args(Family))
    if baseline is None and isinstance(scores, EvalReport):
        baseline = report_baseline(scores)
    tables = read_scores(scores, nesting=nesting)
    systems = list(dict.fromkeys(itertools.chain.from_iterable(table.rows for table in tables)))
    baselines = None if baseline is None else _read_baselines(baseline, systems)
    tasks = plan_tasks(tables, baselines, settings, missing=missing, family=family)
    with open_sweep_progress(progress) as watch:
        results = run_tasks(tasks, settings, executor, resume, watch)
    rows = list(make_rows(tasks, results, settings))
    constant = sum(NOTE_CONSTANT in row.notes for row in rows)
    if constant:
        warnings.warn(
            f"{constant} of {len(rows)} comparisons have deltas that are all equal; their rows say so in their notes",
            SweepWarning,
            stacklevel=2,
        )
    return SweepResult(
        rows=tuple(rows),
        baselines=tuple(systems if baselines is None else baselines),
        family=family,
        missing=missing,
        adjusted_test=choose_adjusted_test(settings.tests),
        averages=tuple(make_averages(tasks, rows, settings)) if averages else (),
    )


def _read_baselines(baseline: str | Sequence[str], systems: list[str]) -> list[str]:
    names = [baseline] if isinstance(baseline, str) else list(baseline)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a baseline must be the name of a system, not {type(name).__name__}")
    baselines = list(dict.fromkeys(names))
    unknown = [name for name in baselines if name not in systems]
    if unknown or not baselines:
        raise EvalError(
            f"baseline {quote_first(unknown) if unknown else 'is empty'}: expected some of {quote_first(systems)}"
        )
    return baselines
