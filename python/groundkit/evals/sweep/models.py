"""The rows of a sweep, and the choices that a sweep is made with."""

from typing import Literal

from pydantic import Field

from groundkit.evals.model import FrozenModel

__all__ = ["AdjustedTest", "AverageRow", "Family", "Missing", "Nesting", "SweepContent", "SweepRow", "Test", "Verdict"]

Missing = Literal["refuse", "zero", "intersect"]
"""What to do about queries on which only one of two systems was scored."""

Nesting = Literal["metric", "query"]
"""What nested mappings of scores have directly below a system."""

Family = Literal["dataset", "metric", "all"]
"""The comparisons whose p-values are adjusted together."""

Test = Literal["sign_flip", "t", "max_t"]
"""The tests that can be run beside the bootstrap."""

AdjustedTest = Literal["sign_flip", "t", "bootstrap"]
"""The test whose p-values are adjusted by Holm's and by Benjamini and Hochberg's method."""

Verdict = Literal["holm", "benjamini_hochberg", "max_t", "interval"]
"""What decides whether two systems differ; the first three are adjusted for the size of the family."""


class SweepRow(FrozenModel):
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
        p_value_two_sided: p-value of the bootstrap (achieved significance level).
        significant: Whether the percentile interval excludes zero.
        method: What was done, in words.
        p_value_standard_error: Monte Carlo standard error of ``p_value_two_sided``.
        baseline_mean: Mean score of the baseline.
        candidate_mean: Mean score of the candidate.
        baseline_missing: Queries that the baseline lacked.
        candidate_missing: Queries that the candidate lacked.
        standard_deviation: Standard deviation of the deltas (n - 1 in the denominator).
        effect_size: ``effect / standard_deviation``; ``None`` where all deltas are equal and not zero.
        detectable_effect: Smallest effect that a two-sided t-test at significance level 1 - ``confidence_level`` finds
            with a power of 80 %, for this n and this standard deviation; ``None`` for a single query.
        wins: Queries on which the candidate is better.
        ties: Queries on which both are equal but for rounding.
        losses: Queries on which the baseline is better.
        p_value_sign_flip: p-value of the paired sign-flip test.
        sign_flip_exact: Whether that test went through every assignment of signs.
        p_value_sign_flip_standard_error: Its Monte Carlo standard error; zero where it is exact.
        t_statistic: Statistic of the paired t-test; zero where all deltas are equal.
        p_value_t: Its p-value; one where all deltas are equal.
        family: The family that the adjusted p-values are for.
        family_size: Comparisons in that family; a pair that is compared in both directions counts once.
        p_value_holm: Holm's adjusted p-value, of the test that `SweepResult.adjusted_test` names.
        p_value_benjamini_hochberg: Benjamini and Hochberg's, of the same test.
        p_value_max_t: Adjusted p-value of the step-down max-T method.
        p_value_max_t_standard_error: Its Monte Carlo standard error.
        simultaneous_interval_low: Lower end of the interval that covers together with all others of the family.
        simultaneous_interval_high: Upper end of that interval.
        notes: What to mind when reading the row.
    """

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


class AverageRow(FrozenModel):
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
        p_value_two_sided: p-value of the bootstrap (achieved significance level).
        significant: Whether the interval excludes zero.
        p_value_standard_error: Monte Carlo standard error of ``p_value_two_sided``.
        baseline_mean: Average over the datasets of the baseline's means.
        candidate_mean: Average over the datasets of the candidate's means.
        p_value_holm: Holm's adjusted ``p_value_two_sided``, over all averages of the sweep.
        p_value_benjamini_hochberg: Benjamini and Hochberg's, likewise.
    """

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


class SweepContent(FrozenModel):
    """The fields of a `SweepResult`, which describes them."""

    rows: tuple[SweepRow, ...]
    baselines: tuple[str, ...]
    family: Family
    missing: Missing
    adjusted_test: AdjustedTest
    averages: tuple[AverageRow, ...] = ()
