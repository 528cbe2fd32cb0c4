"""Deterministic paired-bootstrap comparisons of two retrieval systems.

The unit of resampling is a query. Both systems must be scored on the same queries; that is checked by query id, so a
missing or reordered query raises instead of turning into an unpaired comparison. The generator is seeded in every call,
so no result depends on the order of calls, on threads or on the machine.
"""

from collections.abc import Mapping
from typing import Literal, SupportsIndex, get_args

from pydantic import Field

from groundkit import _native
from groundkit.errors import EvalError
from groundkit.evals.arguments import (
    encode_seed,
    require_choice,
    require_confidence_level,
    require_name,
    require_resamples,
    require_seed,
)
from groundkit.evals.model import FrozenModel
from groundkit.evals.p_values import bootstrap_p_value, excludes_zero
from groundkit.evals.quoting import quote, quote_first
from groundkit.evals.schema import EvalReport, QueryResult, StageName
from groundkit.evals.score_values import convert_scores

__all__ = ["BootstrapResult", "MetricName", "compare_report_stages", "paired_bootstrap"]

MetricName = Literal["recall_at_1", "recall_at_5", "recall_at_10", "mrr", "ndcg_at_10"]


class BootstrapResult(FrozenModel):
    """The result of one paired-bootstrap comparison.

    Attributes:
        baseline: Name of the system that is compared with.
        candidate: Name of the system that is compared.
        metric: The metric that the scores measure.
        query_count: Number of paired queries, n.
        resamples: Number of bootstrap resamples, B.
        seed: Seed of the index stream.
        confidence_level: Nominal coverage of the interval, in (0, 1).
        effect: Mean of candidate minus baseline, in units of the metric.
        confidence_interval_low: Lower end of the percentile interval of the effect.
        confidence_interval_high: Upper end of the percentile interval of the effect.
        p_value_two_sided: p-value (achieved significance level): twice the smaller share of bootstrap means at or
            beyond zero, with the (r + 1) / (B + 1) correction. It is counted over resamples of the observed deltas, not
            over a distribution centred at the null hypothesis, and is at least 2 / (B + 1).
        significant: Whether the interval excludes zero; read from the interval alone, never from the p-value.
        method: What was done, in words.
    """

    baseline: str
    candidate: str
    metric: MetricName
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


def paired_bootstrap(
    baseline_scores: Mapping[str, float],
    candidate_scores: Mapping[str, float],
    *,
    baseline_name: str,
    candidate_name: str,
    metric: MetricName,
    resamples: SupportsIndex = 10_000,
    seed: SupportsIndex = 7,
    confidence_level: float = 0.95,
) -> BootstrapResult:
    r"""Compare two systems by resampling their paired per-query score deltas.

    With the deltas d_q = candidate_q - baseline_q of n queries, every resample b draws n queries with replacement and
    has the mean m_b. The effect is the mean of all d_q. The interval runs from the alpha to the 1 - alpha quantile of
    the m_b, alpha = (1 - confidence_level) / 2, each interpolated linearly at position (B - 1) p of the ordered means.
    The p-value (achieved significance level) is min(1, 2 (r + 1) / (B + 1)), r being the smaller of the numbers of
    m_b <= 0 and of m_b >= 0. Sums are correctly rounded. The draws are those of ``random.Random(seed).randrange(n)``
    over the query ids in code point order, so every platform and every number of threads gives the same bits.

    Args:
        baseline_scores: One finite score per query id; read once.
        candidate_scores: One finite score per query id, for the same ids; read once.
        baseline_name: Name of the baseline, for the result.
        candidate_name: Name of the candidate, for the result.
        metric: The metric that the scores measure.
        resamples: Number of resamples, B >= 1.
        seed: Any integer; its absolute value seeds the generator, as in CPython.
        confidence_level: Nominal coverage of the interval, in (0, 1).

    Returns:
        Effect, percentile interval, p-value and verdict.

    Raises:
        EvalError: The metric is unknown, ``resamples`` or ``confidence_level`` is out of range, there is no query, the
            query ids differ, or the scores are not finite or so large that a sum of n deltas could overflow.
        TypeError: A score is no real number, an id or a name no string, ``resamples`` or ``seed`` no integer.

    Example:
        >>> baseline = {"q1": 0.2, "q2": 0.5, "q3": 0.4, "q4": 0.1}
        >>> candidate = {"q1": 0.6, "q2": 0.7, "q3": 0.4, "q4": 0.5}
        >>> result = paired_bootstrap(
        ...     baseline, candidate, baseline_name="BM25", candidate_name="dense", metric="ndcg_at_10"
        ... )
        >>> round(result.effect, 3), result.significant
        (0.25, True)

    References:
        B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 13 and 15.
        A. C. Davison and D. V. Hinkley, "Bootstrap Methods and their Application", 1997, section 4.2, for the
        (r + 1) / (B + 1) correction.
        M. D. Smucker, J. Allan and B. Carterette, "A Comparison of Statistical Significance Tests for Information
        Retrieval Evaluation", CIKM 2007.
    """
    require_choice("metric", metric, get_args(MetricName))
    for name in (baseline_name, candidate_name):
        require_name("system", name)
    resample_count = require_resamples(resamples)
    seed_value = require_seed(seed)
    level = require_confidence_level(confidence_level)
    baseline = _read(baseline_scores)
    candidate = _read(candidate_scores)
    query_ids = _pair(baseline, candidate)
    comparison = _native.paired_bootstrap(
        convert_scores([baseline[query_id] for query_id in query_ids], query_ids, f" of {quote(baseline_name)}"),
        convert_scores([candidate[query_id] for query_id in query_ids], query_ids, f" of {quote(candidate_name)}"),
        resamples=resample_count,
        seed=encode_seed(seed_value),
        confidence_level=level,
    )
    if comparison is None:
        raise EvalError(_not_finite(baseline, candidate, query_ids))
    effect, low, high, non_positive, non_negative = comparison
    return BootstrapResult(
        baseline=baseline_name,
        candidate=candidate_name,
        metric=metric,
        query_count=len(query_ids),
        resamples=resample_count,
        seed=seed_value,
        confidence_level=level,
        effect=effect,
        confidence_interval_low=low,
        confidence_interval_high=high,
        p_value_two_sided=bootstrap_p_value(non_positive, non_negative, resample_count),
        significant=excludes_zero(low, high),
    )


def compare_report_stages(
    report: EvalReport,
    *,
    baseline: StageName,
    candidate: StageName,
    metric: MetricName,
    resamples: SupportsIndex = 10_000,
    seed: SupportsIndex = 7,
    confidence_level: float = 0.95,
) -> BootstrapResult:
    """Compare two stages of one evaluation report, query by query.

    Queries without metrics (those that have no answer) are left out on both sides.

    Args:
        report: The evaluation report.
        baseline: Stage to compare with.
        candidate: Stage to compare.
        metric: Per-query metric to compare; ``mrr`` reads the reciprocal rank.
        resamples: As for `paired_bootstrap`.
        seed: As for `paired_bootstrap`.
        confidence_level: As for `paired_bootstrap`.

    Returns:
        The comparison, named by the two stages.

    Raises:
        EvalError: Two stages share a name, a stage is absent, a query id occurs twice in a stage, or for a reason of
            `paired_bootstrap`.
    """
    require_choice("metric", metric, get_args(MetricName))
    if not isinstance(report, EvalReport):
        raise TypeError(f"the report must be an EvalReport, not {type(report).__name__}")
    names = [stage.stage for stage in report.stages]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise EvalError(
            f"report contains more than one stage named {quote_first(repeated)}; "
            "a comparison could not say which of them it measured"
        )
    stages = {stage.stage: stage for stage in report.stages}
    for name in (baseline, candidate):
        if name not in stages:
            raise EvalError(f"report does not contain stage {quote(name)}; it has {quote_first(names)}")
    return paired_bootstrap(
        _stage_scores(baseline, stages[baseline].queries, metric),
        _stage_scores(candidate, stages[candidate].queries, metric),
        baseline_name=baseline,
        candidate_name=candidate,
        metric=metric,
        resamples=resamples,
        seed=seed,
        confidence_level=confidence_level,
    )


def _read(scores: Mapping[str, float]) -> dict[str, float]:
    # Without this `dict` would take pairs, and fail on other sequences in ways of its own.
    if not hasattr(scores, "keys"):
        raise TypeError(f"scores must be a mapping from query id to score, not {type(scores).__name__}")
    return dict(scores)


def _pair(baseline: dict[str, float], candidate: dict[str, float]) -> list[str]:
    """Return the query ids in code point order, which is the order of the draws."""
    if not baseline:
        raise EvalError("paired bootstrap requires at least one query score")
    for query_id in (*baseline, *candidate):
        if not isinstance(query_id, str):
            raise TypeError(f"a query id must be a string, not {type(query_id).__name__}")
    if baseline.keys() != candidate.keys():
        raise EvalError(
            "paired bootstrap query ids differ "
            f"(missing from candidate: {quote_first(sorted(baseline.keys() - candidate.keys()))}; "
            f"missing from baseline: {quote_first(sorted(candidate.keys() - baseline.keys()))}); "
            "score both systems on the same queries"
        )
    return sorted(baseline)


def _stage_scores(stage: StageName, queries: list[QueryResult], metric: MetricName) -> dict[str, float]:
    field = "reciprocal_rank" if metric == "mrr" else metric
    scores: dict[str, float] = {}
    for query in queries:
        if query.metrics is None:
            continue
        if query.query_id in scores:
            raise EvalError(
                f"duplicate query id {quote(query.query_id)} in stage {stage!r}; "
                "a paired comparison needs one score a query"
            )
        scores[query.query_id] = getattr(query.metrics, field)
    return scores


def _not_finite(baseline: dict[str, float], candidate: dict[str, float], query_ids: list[str]) -> str:
    infinity = float("inf")
    for query_id in query_ids:
        before, after = float(baseline[query_id]), float(candidate[query_id])
        if not -infinity < after - before < infinity:
            return (
                f"paired bootstrap scores must be finite: query {quote(query_id)} has baseline {before} "
                f"and candidate {after}"
            )
    return f"paired bootstrap scores must be finite, and so must a sum of {len(query_ids)} deltas; these are too large"
