"""Compare many systems in many metrics on many datasets in one call, with verdicts that count how often was compared.

Every comparison over the same queries shares one stream of resamples, so that a row of the result equals the single
`paired_bootstrap` call with the same arguments, bit for bit, at a fraction of its cost. Beside the percentile interval
each row has a sign-flip test, a paired t-test and levels adjusted for the size of its family.
"""

import functools
import hashlib
import itertools
import math
import operator
import os
import warnings
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, get_args

from pydantic import BaseModel, ConfigDict, Field

from groundkit import _native
from groundkit.errors import EvalError
from groundkit.evals.blocks import Block, Compared, Comparison, run_blocks
from groundkit.evals.multiplicity import benjamini_hochberg, holm
from groundkit.evals.progress import SweepProgressOption, open_sweep_progress
from groundkit.evals.rendering import Verdict, draw_forest, group_of_best, render_latex, render_markdown, render_rich
from groundkit.evals.schema import EvalReport
from groundkit.evals.scores import ScoreTable, read_scores, report_baseline
from groundkit.evals.significance import require_confidence_level, require_resamples, shown

if TYPE_CHECKING:
    import polars as pl
    import rich.table
    from matplotlib.figure import Figure

__all__ = [
    "AverageRow",
    "Family",
    "Missing",
    "SweepResult",
    "SweepRow",
    "SweepWarning",
    "Test",
    "Verdict",
    "compare_systems",
]

Missing = Literal["refuse", "zero", "intersect"]
Family = Literal["dataset", "metric", "all"]
Test = Literal["sign_flip", "t", "max_t"]
AdjustedTest = Literal["sign_flip", "t", "bootstrap"]

FEW_QUERIES = 50
"""Below so many queries a percentile interval is too short."""

POWER = 0.8
"""Power at which an effect counts as detectable."""

_LEVEL_OF_TEST: dict[AdjustedTest, str] = {
    "sign_flip": "p_value_sign_flip",
    "t": "p_value_t",
    "bootstrap": "p_value_two_sided",
}

NOTE_CONSTANT = "all deltas are equal: tests that need a variance claim nothing"
NOTE_FEW_QUERIES = f"fewer than {FEW_QUERIES} queries: percentile intervals are too short, read the sign-flip test"


class SweepWarning(UserWarning):
    """Some comparison of a sweep has no variance, so that only parts of its row mean something."""


class SweepRow(BaseModel):
    """One comparison of a sweep.

    The fields that `BootstrapResult` has too are equal to those of the single `paired_bootstrap` call. ``None`` stands
    where a value is not defined or its test was not asked for.

    Attributes:
        dataset: The dataset.
        baseline: System that is compared with.
        candidate: System that is compared.
        metric: The metric.
        query_count: Number of paired queries, n.
        resamples: Number of bootstrap resamples, B.
        seed: Seed of the streams.
        confidence_level: Nominal coverage of the interval, in (0, 1).
        effect: Mean of candidate minus baseline.
        confidence_interval_low: Lower end of the percentile interval.
        confidence_interval_high: Upper end of the percentile interval.
        p_value_two_sided: Achieved significance level of the bootstrap.
        significant: Whether the percentile interval excludes zero.
        method: What was done, in words.
        p_value_standard_error: Monte Carlo standard error of ``p_value_two_sided``.
        baseline_mean: Mean score of the baseline.
        candidate_mean: Mean score of the candidate.
        baseline_missing: Queries that the baseline lacked.
        candidate_missing: Queries that the candidate lacked.
        standard_deviation: Standard deviation of the deltas (n - 1 in the denominator).
        effect_size: ``effect / standard_deviation``; ``None`` where all deltas are equal and not zero.
        detectable_effect: Smallest effect that a two-sided t-test at 1 - ``confidence_level`` finds with a power of
            80 %, for this n and this standard deviation; ``None`` for a single query.
        wins: Queries on which the candidate is better.
        ties: Queries on which both are equal but for rounding.
        losses: Queries on which the baseline is better.
        p_value_sign_flip: p-value of the paired sign-flip test.
        sign_flip_exact: Whether that test went through every assignment of signs.
        p_value_sign_flip_standard_error: Its Monte Carlo standard error; zero where it is exact.
        t_statistic: Statistic of the paired t-test; zero where all deltas are equal.
        p_value_t: Its p-value; one where all deltas are equal.
        family: The family that the adjusted levels are for.
        family_size: Comparisons in that family.
        p_value_holm: Holm's adjusted p-value, of the test that `SweepResult.adjusted_test` names.
        p_value_benjamini_hochberg: Benjamini and Hochberg's, of the same test.
        p_value_max_t: Adjusted p-value of the step-down max-T method.
        p_value_max_t_standard_error: Its Monte Carlo standard error.
        simultaneous_interval_low: Lower end of the interval that covers together with all others of the family.
        simultaneous_interval_high: Upper end of that interval.
        notes: What to mind when reading the row.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    dataset: str
    baseline: str
    candidate: str
    metric: str
    query_count: int = Field(gt=0)
    resamples: int = Field(gt=0)
    seed: int
    confidence_level: float = Field(gt=0.0, lt=1.0)
    effect: float
    confidence_interval_low: float
    confidence_interval_high: float
    p_value_two_sided: float = Field(gt=0.0, le=1.0)
    significant: bool
    method: str = "paired bootstrap over query-level candidate-minus-baseline deltas"
    p_value_standard_error: float
    baseline_mean: float
    candidate_mean: float
    baseline_missing: int
    candidate_missing: int
    standard_deviation: float
    effect_size: float | None
    detectable_effect: float | None
    wins: int
    ties: int
    losses: int
    p_value_sign_flip: float | None = None
    sign_flip_exact: bool | None = None
    p_value_sign_flip_standard_error: float | None = None
    t_statistic: float | None = None
    p_value_t: float | None = None
    family: str
    family_size: int
    p_value_holm: float
    p_value_benjamini_hochberg: float
    p_value_max_t: float | None = None
    p_value_max_t_standard_error: float | None = None
    simultaneous_interval_low: float | None = None
    simultaneous_interval_high: float | None = None
    notes: tuple[str, ...] = ()


class AverageRow(BaseModel):
    """One comparison of averages over datasets, in which every dataset counts the same.

    Each dataset is resampled on its own (stratified bootstrap): the interval says what other queries for the same
    datasets could have given, not what other datasets could.

    Attributes:
        datasets: The datasets.
        baseline: System that is compared with.
        candidate: System that is compared.
        metric: The metric.
        query_count: Number of paired queries of all datasets.
        resamples: Number of bootstrap resamples, B.
        seed: Seed from which each dataset's own is derived.
        confidence_level: Nominal coverage of the interval.
        effect: Average over the datasets of the mean of candidate minus baseline.
        confidence_interval_low: Lower end of the percentile interval.
        confidence_interval_high: Upper end of the percentile interval.
        p_value_two_sided: Achieved significance level of the bootstrap.
        significant: Whether the interval excludes zero.
        p_value_standard_error: Monte Carlo standard error of ``p_value_two_sided``.
        baseline_mean: Average over the datasets of the baseline's means.
        candidate_mean: Average over the datasets of the candidate's means.
        p_value_holm: Holm's adjusted ``p_value_two_sided``, over all averages of the sweep.
        p_value_benjamini_hochberg: Benjamini and Hochberg's, likewise.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    datasets: tuple[str, ...]
    baseline: str
    candidate: str
    metric: str
    query_count: int = Field(gt=0)
    resamples: int = Field(gt=0)
    seed: int
    confidence_level: float = Field(gt=0.0, lt=1.0)
    effect: float
    confidence_interval_low: float
    confidence_interval_high: float
    p_value_two_sided: float = Field(gt=0.0, le=1.0)
    significant: bool
    p_value_standard_error: float
    baseline_mean: float
    candidate_mean: float
    p_value_holm: float
    p_value_benjamini_hochberg: float


class SweepResult(BaseModel):
    """The comparisons of a sweep, with what they were made of.

    Attributes:
        rows: One comparison each: by dataset, metric and baseline, in the order of the scores.
        baselines: Systems that were compared with; all of them where all pairs were compared.
        family: What makes a family of comparisons.
        missing: What was done about queries that a system lacks.
        adjusted_test: The test whose p-values Holm's and Benjamini and Hochberg's methods adjusted.
        averages: Averages over the datasets, where there are several and they were asked for: one row for each pair of
            systems and each metric that all datasets have.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rows: tuple[SweepRow, ...]
    baselines: tuple[str, ...]
    family: Family
    missing: Missing
    adjusted_test: AdjustedTest
    averages: tuple[AverageRow, ...] = ()

    def to_polars(self) -> "pl.DataFrame":
        """Return the rows as a polars frame, one column a field; the notes as a list of strings."""
        import polars as pl  # noqa: PLC0415 - half a second of import that a sweep does not need

        kinds = {int: pl.Int64(), float: pl.Float64(), str: pl.String(), bool: pl.Boolean()}
        schema: dict[str, pl.DataType] = {}
        for name, info in SweepRow.model_fields.items():
            kind = next((kind for kind in (get_args(info.annotation) or (info.annotation,)) if kind in kinds), None)
            schema[name] = kinds[kind] if kind is not None else pl.List(pl.String())
        schema["notes"] = pl.List(pl.String())
        # A seed may have any size.
        schema["seed"] = pl.String()
        rows = [row.model_dump() | {"seed": str(row.seed)} for row in self.rows]
        return pl.DataFrame(rows, schema=schema)

    def to_markdown(self, *, by: Verdict = "holm", digits: int = 3) -> str:
        """Return a Markdown table: systems by metrics, the best in bold, differences marked, with a legend.

        Args:
            by: What decides that two systems differ.
            digits: Digits behind the point.

        Returns:
            The table and its legend.

        Raises:
            EvalError: The sweep did not run the test that ``by`` names.
        """
        return render_markdown(self, by=by, digits=digits)

    def to_latex(self, *, by: Verdict = "holm", digits: int = 3) -> str:
        """Return the same as a LaTeX table, for the package booktabs.

        Args:
            by: As for `to_markdown`.
            digits: As for `to_markdown`.

        Returns:
            A table environment with the legend as its caption.

        Raises:
            EvalError: As for `to_markdown`.
        """
        return render_latex(self, by=by, digits=digits)

    def __rich__(self) -> "rich.table.Table":
        """Let `rich.print` show the table."""
        return render_rich(self)

    def group_of_best(self, metric: str, *, dataset: str | None = None, by: Verdict = "holm") -> tuple[str, ...]:
        """Return the best system of a metric and all those that are not separable from it.

        The system with the highest mean is picked by looking, so its comparisons must be adjusted for all that were
        made: compare all pairs.

        Args:
            metric: The metric.
            dataset: The dataset, where there are several.
            by: What decides that two systems differ.

        Returns:
            The systems, by their mean, best first.

        Raises:
            EvalError: The best system was not compared with all others, or there is no such metric or dataset.
        """
        return group_of_best(self, metric=metric, dataset=dataset, by=by)

    def plot(
        self,
        path: "str | os.PathLike[str] | None" = None,
        *,
        metrics: Collection[str] | None = None,
        datasets: Collection[str] | None = None,
        by: Verdict = "holm",
    ) -> "Figure":
        """Draw a forest plot: effects with their intervals, one panel a dataset and metric, one line a comparison.

        Args:
            path: Where to save it; the suffix says as what (``.svg``, ``.png``, ``.pdf``).
            metrics: Metrics to show; all by default.
            datasets: Datasets to show; all by default.
            by: What decides that two systems differ, which colours a line.

        Returns:
            The figure.

        Raises:
            EvalError: Nothing is left to plot, matplotlib is not installed (extra ``plot``), or the file
                cannot be written.
        """
        figure = draw_forest(
            [
                row
                for row in self.rows
                if (metrics is None or row.metric in metrics) and (datasets is None or row.dataset in datasets)
            ],
            by=by,
        )
        if path is not None:
            try:
                figure.savefig(path, dpi=150)
            except (OSError, ValueError) as error:
                raise EvalError(f"cannot write plot {os.fspath(path)!r}: {error}") from error
        return figure


class _Settings(NamedTuple):
    resamples: int
    seed: int
    confidence_level: float
    tests: frozenset[Test]
    threads: int | None


def compare_systems(  # noqa: PLR0913 - keyword-only choices with defaults
    scores: object,
    *,
    baseline: str | Sequence[str] | None = None,
    resamples: SupportsIndex = 10_000,
    seed: SupportsIndex = 7,
    confidence_level: float = 0.95,
    missing: Missing = "refuse",
    family: Family = "dataset",
    tests: Collection[Test] = ("sign_flip", "t", "max_t"),
    averages: bool = True,
    executor: Executor | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: SweepProgressOption = None,
    threads: int | None = None,
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
        threads: Most threads to use; by default the variable ``RAYON_NUM_THREADS`` or all cores, and one in a task of
            an executor.

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
    settings = _checked(resamples, seed, confidence_level, tests, threads, executor)
    for name, value, known in (("missing", missing, get_args(Missing)), ("family", family, get_args(Family))):
        if value not in known:
            raise EvalError(f"unknown {name} {value!r}; expected one of {', '.join(known)}")
    if baseline is None and isinstance(scores, EvalReport):
        baseline = report_baseline(scores)
    tables = read_scores(scores)
    systems = list(dict.fromkeys(itertools.chain.from_iterable(table.rows for table in tables)))
    baselines = None if baseline is None else _baselines(baseline, systems)
    blocks = _plan(tables, baselines, settings, missing=missing, family=family)
    with open_sweep_progress(progress) as watch:
        results = run_blocks(blocks, functools.partial(_compare_block, settings=settings), executor, resume, watch)
    rows = list(_rows(blocks, results, settings))
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
        adjusted_test=_adjusted_test(settings.tests),
        averages=tuple(_averages(blocks, rows, settings)) if averages else (),
    )


def _checked(
    resamples: SupportsIndex,
    seed: SupportsIndex,
    confidence_level: float,
    tests: Collection[Test],
    threads: int | None,
    executor: Executor | None,
) -> _Settings:
    level = require_confidence_level(confidence_level)
    for test in tests:
        if test not in get_args(Test):
            raise EvalError(f"unknown test {test!r}; expected one of {', '.join(get_args(Test))}")
    return _Settings(
        resamples=require_resamples(resamples),
        seed=int(operator.index(seed)),
        confidence_level=level,
        tests=frozenset(tests),
        threads=1 if threads is None and executor is not None else threads,
    )


def _baselines(baseline: str | Sequence[str], systems: list[str]) -> list[str]:
    baselines = [baseline] if isinstance(baseline, str) else list(dict.fromkeys(baseline))
    unknown = [name for name in baselines if name not in systems]
    if unknown or not baselines:
        raise EvalError(
            f"baseline {', '.join(map(repr, unknown)) or 'is empty'}: expected some of {', '.join(map(repr, systems))}"
        )
    return baselines


def _pairs(table: ScoreTable, baselines: list[str] | None) -> Iterator[tuple[str, str]]:
    if baselines is None:
        yield from itertools.combinations(table.rows, 2)
        return
    for baseline in baselines:
        if baseline not in table.rows:
            raise EvalError(f"dataset {table.dataset!r} has no scores of baseline {baseline!r}")
        yield from ((baseline, system) for system in table.rows if system != baseline)


def _plan(
    tables: list[ScoreTable], baselines: list[str] | None, settings: _Settings, *, missing: Missing, family: Family
) -> list[Block]:
    """Gather the comparisons that share their queries, dataset by dataset."""
    # Query sets by number: hashing them again for every comparison would cost more than resampling them.
    numbers: dict[tuple[str, ...], int] = {}
    planned: dict[tuple[str, int], tuple[int, dict[tuple[str, str], array[float]], list[Comparison]]] = {}
    for table in tables:
        named = {"dataset": table.dataset, "metric": f"{table.dataset} {table.metric}", "all": "all"}[family]
        shared = tuple(table.query_ids)
        whole = numbers.setdefault(shared, len(numbers))
        for baseline, candidate in _pairs(table, baselines):
            lacks = (table.lacks.get(baseline, frozenset()), table.lacks.get(candidate, frozenset()))
            if any(lacks) and missing == "refuse":
                raise EvalError(_differ(table, baseline, candidate))
            query_set, query_count = whole, len(shared)
            if any(lacks) and missing == "intersect":
                absent = lacks[0] | lacks[1]
                query_ids = tuple(query_id for place, query_id in enumerate(shared) if place not in absent)
                query_set, query_count = numbers.setdefault(query_ids, len(numbers)), len(query_ids)
                if not query_ids:
                    raise EvalError(
                        f"systems {baseline!r} and {candidate!r} have no query in common in {table.metric!r} on "
                        f"dataset {table.dataset!r}; a comparison requires at least one query score"
                    )
            _, rows, comparisons = planned.setdefault((table.dataset, query_set), (query_count, {}, []))
            for system in (baseline, candidate):
                if (table.metric, system) not in rows:
                    row = table.rows[system]
                    if query_count < len(shared):
                        row = array("d", (score for place, score in enumerate(row) if place not in absent))
                    rows[table.metric, system] = row
            comparisons.append(
                Comparison(table.dataset, table.metric, baseline, candidate, len(lacks[0]), len(lacks[1]), named)
            )
    if not planned:
        raise EvalError("a sweep requires at least two systems")
    shares = Counter(
        itertools.chain.from_iterable({comparison.family for comparison in block[2]} for block in planned.values())
    )
    return [
        _block(query_count, rows, comparisons, shares, settings) for query_count, rows, comparisons in planned.values()
    ]


def _block(
    query_count: int,
    rows: "dict[tuple[str, str], array[float]]",
    comparisons: list[Comparison],
    shares: "Counter[str]",
    settings: _Settings,
) -> Block:
    places = {key: place for place, key in enumerate(rows)}
    families = list(dict.fromkeys(comparison.family for comparison in comparisons))
    scores = array("d")
    for row in rows.values():
        scores.extend(row)
    # A family over several sets of queries has a share of the error in each (Bonferroni).
    levels = [1.0 - (1.0 - settings.confidence_level) / shares[name] for name in families]
    return Block(
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
        family_levels=levels,
        family_shares=[shares[name] for name in families],
        comparisons=comparisons,
    )


def _differ(table: ScoreTable, baseline: str, candidate: str) -> str:
    def missing(system: str) -> str:
        return shown({table.query_ids[place] for place in table.lacks.get(system, ())})

    return (
        f"query ids differ in {table.metric!r} on dataset {table.dataset!r} (missing from candidate {candidate!r}: "
        f"{missing(candidate)}; missing from baseline {baseline!r}: {missing(baseline)}); score both systems on the "
        "same queries, or say with missing='zero' or 'intersect' what to do"
    )


def _compare_block(block: Block, settings: _Settings) -> Compared:
    rows, means, failed = _native.compare_rows(
        block.scores,
        block.query_count,
        block.pairs,
        resamples=settings.resamples,
        seed=abs(settings.seed).to_bytes((settings.seed.bit_length() + 7) // 8, "little"),
        confidence_level=settings.confidence_level,
        sign_flip="sign_flip" in settings.tests,
        family_levels=block.family_levels if "max_t" in settings.tests else [],
        threads=settings.threads,
    )
    if failed is not None:
        comparison = block.comparisons[failed]
        raise EvalError(
            f"scores must be finite, and so must a sum of {block.query_count} deltas: those of {comparison.baseline!r} "
            f"or {comparison.candidate!r} in {comparison.metric!r} on dataset {comparison.dataset!r} are not"
        )
    return rows, means


def _rows(blocks: list[Block], results: list[Compared], settings: _Settings) -> Iterator[SweepRow]:
    partial = [
        fields
        for block, result in zip(blocks, results, strict=True)
        for fields in _block_fields(block, *result, settings)
    ]
    test = _adjusted_test(settings.tests)
    by_family: dict[str, list[dict[str, Any]]] = {}
    for fields in partial:
        by_family.setdefault(fields["family"], []).append(fields)
    for members in by_family.values():
        levels = [fields[_LEVEL_OF_TEST[test]] for fields in members]
        for fields, by_holm, by_rate in zip(members, holm(levels), benjamini_hochberg(levels), strict=True):
            fields |= {
                "family_size": len(members),
                "p_value_holm": by_holm,
                "p_value_benjamini_hochberg": by_rate,
            }
    for fields in partial:
        yield SweepRow(**fields)


def _block_fields(
    block: Block, rows: "list[_native.Row]", means: list[float], settings: _Settings
) -> Iterator[dict[str, Any]]:
    count = block.query_count
    shares = {
        comparison.family: block.family_shares[family]
        for comparison, (_, _, family) in zip(block.comparisons, block.pairs, strict=True)
    }
    # The factor of the standard error in the detectable effect, which only depends on the number of queries.
    factor = None
    if count > 1:
        alpha = (1.0 - settings.confidence_level) / 2.0
        factor = sum(_native.student_quantile(probability, count - 1) for probability in (1.0 - alpha, POWER))
    for comparison, (first, second, _), row in zip(block.comparisons, block.pairs, rows, strict=True):
        (effect, deviation, wins, ties, losses), (low, high, non_positive, non_negative), flips, max_t = row
        tail = (min(non_positive, non_negative) + 1) / (settings.resamples + 1)
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
            "p_value_two_sided": min(1.0, 2.0 * tail),
            "significant": low > 0.0 or high < 0.0,
            "p_value_standard_error": 2.0 * _monte_carlo_error(tail, settings.resamples),
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
            level = as_extreme / assignments if exact else (as_extreme + 1) / (assignments + 1)
            fields |= {
                "p_value_sign_flip": level,
                "sign_flip_exact": exact,
                "p_value_sign_flip_standard_error": 0.0 if exact else _monte_carlo_error(level, assignments),
            }
        if "t" in settings.tests:
            statistic = effect / error if error > 0.0 else 0.0
            fields |= {
                "t_statistic": statistic,
                "p_value_t": _native.student_two_sided(statistic, count - 1) if count > 1 else 1.0,
            }
        if max_t is not None:
            as_extreme, lower, upper = max_t
            level = (as_extreme + 1) / (settings.resamples + 1)
            share = shares[comparison.family]
            fields |= {
                "p_value_max_t": min(1.0, share * level),
                "p_value_max_t_standard_error": share * _monte_carlo_error(level, settings.resamples),
                "simultaneous_interval_low": lower,
                "simultaneous_interval_high": upper,
            }
        yield fields


def _monte_carlo_error(level: float, draws: int) -> float:
    """Return the standard error of a share that was counted in so many draws."""
    return math.sqrt(level * (1.0 - level) / draws)


def _effect_size(effect: float, deviation: float) -> float | None:
    if deviation > 0.0:
        return effect / deviation
    return 0.0 if effect == 0.0 else None


def _adjusted_test(tests: Collection[Test]) -> AdjustedTest:
    if "sign_flip" in tests:
        return "sign_flip"
    return "t" if "t" in tests else "bootstrap"


def _averages(blocks: list[Block], rows: list[SweepRow], settings: _Settings) -> Iterator[AverageRow]:
    datasets = tuple(dict.fromkeys(row.dataset for row in rows))
    if len(datasets) < 2:  # noqa: PLR2004 - an average over one dataset is its own row
        return
    places: dict[tuple[str, str, str], dict[str, tuple[int, tuple[int, int]]]] = {}
    for number, block in enumerate(blocks):
        for comparison, (first, second, _) in zip(block.comparisons, block.pairs, strict=True):
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
                blocks[number].scores,
                blocks[number].query_count,
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
        key: (min(non_positive, non_negative) + 1) / (settings.resamples + 1)
        for key, (_, _, non_positive, non_negative) in found.items()
    }
    levels = [min(1.0, 2.0 * tail) for tail in tails.values()]
    adjusted = zip(levels, holm(levels), benjamini_hochberg(levels), strict=True)
    for (key, tail), (level, by_holm, by_rate) in zip(tails.items(), adjusted, strict=True):
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
            p_value_two_sided=level,
            significant=low > 0.0 or high < 0.0,
            p_value_standard_error=2.0 * _monte_carlo_error(tail, settings.resamples),
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
