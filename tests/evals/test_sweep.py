"""Sweeps: rows equal single calls, tests equal the plain-Python reference, and every input form means the same."""

import json
import math
import multiprocessing
import random
import warnings
from collections import UserDict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import distributed
import numpy as np
import polars as pl
import pytest
import reference
import scipy.stats
from datasets import REAL_REPORT
from groundkit.errors import EvalError
from groundkit.evals.p_values import is_significant
from groundkit.evals.progress import SweepProgress
from groundkit.evals.schema import load_report
from groundkit.evals.significance import BootstrapResult, MetricName, compare_report_stages, paired_bootstrap
from groundkit.evals.sweep import SweepResult, SweepRow, SweepWarning, compare_systems
from groundkit.evals.sweep.multiplicity import benjamini_hochberg, holm
from hypothesis import given, settings
from hypothesis import strategies as st

Scores = dict[str, dict[str, dict[str, float]]]
METRICS = get_args(MetricName)

kinds_of_score = st.sampled_from(
    [
        st.sampled_from([0.0, 1.0]),
        st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 0.25, 0.2]),
        st.floats(0.0, 1.0),
        st.floats(-1e300, 1e300),
    ]
)


@st.composite
def score_sets(draw: st.DrawFn, fewest: int = 1, most: int = 80) -> Scores:
    """Draw the scores of some systems, each metric of its own kind."""
    kinds = {metric: draw(kinds_of_score) for metric in METRICS[: draw(st.integers(1, 3))]}
    query_ids = draw(st.lists(st.text(min_size=1, max_size=3), min_size=fewest, max_size=most, unique=True))
    return {
        system: {metric: {query_id: draw(kind) for query_id in query_ids} for metric, kind in kinds.items()}
        for system in ("a", "b", "c", "d")[: draw(st.integers(2, 4))]
    }


def simulated(systems: int = 4, queries: int = 60, *, seed: int = 0, metrics: tuple[str, ...] = ("mrr",)) -> Scores:
    """Make scores with ties, whose systems get better with their number."""
    data = random.Random(seed)
    base = {f"q{query:04}": data.random() for query in range(queries)}
    return {
        f"s{system}": {
            metric: {
                query_id: round(min(1.0, max(0.0, score + data.gauss(0.01 * system, 0.1))), 1)
                for query_id, score in base.items()
            }
            for metric in metrics
        }
        for system in range(systems)
    }


def as_frame(scores: Scores, **columns: str) -> pl.DataFrame:
    rows = [
        (system, metric, query_id, score)
        for system, metrics in scores.items()
        for metric, queries in metrics.items()
        for query_id, score in queries.items()
    ]
    frame = pl.DataFrame(rows, schema=["system", "metric", "query_id", "score"], orient="row")
    return frame.with_columns(**{name: pl.lit(value) for name, value in columns.items()})


def compare(scores: object, **arguments: Any) -> SweepResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SweepWarning)
        return compare_systems(scores, **arguments)


def deltas(scores: Scores, row: SweepRow) -> list[float]:
    pair = scores[row.baseline][row.metric], scores[row.candidate][row.metric]
    return [pair[1][query_id] - pair[0][query_id] for query_id in sorted(pair[0])]


@settings(deadline=None, max_examples=100)
@given(
    scores=score_sets(),
    resamples=st.integers(1, 300),
    seed=st.integers(-(2**70), 2**70),
    level=st.floats(0.1, 0.999),
)
def test_every_row_equals_the_single_call(scores: Scores, resamples: int, seed: int, level: float) -> None:
    arguments: dict[str, Any] = {"resamples": resamples, "seed": seed, "confidence_level": level}
    rows = compare(scores, **arguments).rows
    assert len(rows) == len(scores["a"]) * math.comb(len(scores), 2)
    for row in rows:
        metric: Any = row.metric
        alone = paired_bootstrap(
            scores[row.baseline][metric],
            scores[row.candidate][metric],
            baseline_name=row.baseline,
            candidate_name=row.candidate,
            metric=metric,
            **arguments,
        )
        assert {name: getattr(row, name) for name in BootstrapResult.model_fields} == alone.model_dump()


@pytest.mark.parametrize("queries", [300, 601])
def test_large_sweeps_equal_the_single_calls_with_any_number_of_threads(queries: int) -> None:
    scores = simulated(3, queries, metrics=("mrr", "ndcg_at_10"))
    results = [compare_systems(scores, baseline="s0", threads=threads) for threads in (1, 2, 5)]
    assert results[0] == results[1] == results[2]
    for row in results[0].rows:
        metric: Any = row.metric
        alone = paired_bootstrap(
            scores["s0"][metric], scores[row.candidate][metric], baseline_name="s0", candidate_name=row.candidate,
            metric=metric,
        )  # fmt: skip
        assert {name: getattr(row, name) for name in BootstrapResult.model_fields} == alone.model_dump()


@settings(deadline=None, max_examples=40)
@given(
    scores=st.one_of(score_sets(1, 9), score_sets(17, 24)), seed=st.integers(-5, 2**40), resamples=st.integers(1, 60)
)
def test_the_sign_flip_test_equals_the_reference(scores: Scores, seed: int, resamples: int) -> None:
    for row in compare(scores, baseline="a", seed=seed, resamples=resamples).rows:
        query_ids = sorted(scores["a"][row.metric])
        sides = ([scores[name][row.metric][query_id] for query_id in query_ids] for name in ("a", row.candidate))
        level, exact = reference.sign_flip_level(*sides, assignments=resamples, seed=seed)
        assert (row.p_value_sign_flip, row.sign_flip_exact) == (level, exact)


def test_sign_flip_ties_within_rounding_count() -> None:
    # In exact arithmetic both deltas are 0.1, so all four assignments of signs but two tie with the observed one.
    scores = {"a": {"m": {"q1": 0.2, "q2": 0.7}}, "b": {"m": {"q1": 0.3, "q2": 0.8}}}
    assert 0.3 - 0.2 != 0.8 - 0.7
    opposite = {"a": {"m": {"q1": 0.2, "q2": 0.8}}, "b": {"m": {"q1": 0.3, "q2": 0.7}}}
    assert compare(scores).rows[0].p_value_sign_flip == 0.5
    assert compare(opposite).rows[0].p_value_sign_flip == 1.0


@pytest.mark.parametrize("queries", [12, 16])
def test_the_exact_sign_flip_test_agrees_with_scipy(queries: int) -> None:
    scores = simulated(2, queries)
    row = compare_systems(scores).rows[0]
    result = scipy.stats.permutation_test(
        (deltas(scores, row),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert row.sign_flip_exact
    assert row.p_value_sign_flip == pytest.approx(result.pvalue, rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(systems=st.integers(2, 6), queries=st.integers(2, 40), entropy=st.integers(0, 99), resamples=st.integers(1, 80))
def test_max_t_equals_the_reference(systems: int, queries: int, entropy: int, resamples: int) -> None:
    data = random.Random(entropy)
    scores = {
        f"s{number}": {"m": {f"q{query}": data.random() for query in range(queries)}} for number in range(systems)
    }
    rows = compare(scores, resamples=resamples, confidence_level=0.9).rows
    expected = reference.max_t([deltas(scores, row) for row in rows], resamples=resamples, seed=7, confidence_level=0.9)
    found = [(row.p_value_max_t, row.simultaneous_interval_low, row.simultaneous_interval_high) for row in rows]
    assert found == expected


def test_simultaneous_intervals_contain_the_pointwise_verdicts() -> None:
    for row in compare_systems(simulated(6, 200), baseline="s0").rows:
        assert row.p_value_max_t is not None
        assert row.p_value_sign_flip is not None
        assert row.simultaneous_interval_low is not None
        assert row.simultaneous_interval_low < row.confidence_interval_low
        assert row.p_value_max_t >= row.p_value_two_sided / 2


def test_a_family_over_two_sets_of_queries_shares_its_error() -> None:
    one, two = simulated(3, 60, seed=1), simulated(3, 70, seed=2)
    alone = {family: compare_systems({"x": one, "y": two}, family=family) for family in ("dataset", "all")}
    for apart, together in zip(alone["dataset"].rows, alone["all"].rows, strict=True):
        assert apart.p_value_max_t is not None
        assert together.p_value_max_t == min(1.0, 2 * apart.p_value_max_t)
        assert (together.simultaneous_interval_low or 0.0) < (apart.simultaneous_interval_low or 0.0)
        assert (apart.family, apart.family_size) == (apart.dataset, 3)
        assert (together.family, together.family_size) == ("all", 6)


def test_the_paired_t_test_agrees_with_scipy() -> None:
    scores = simulated(4, 40)
    for row in compare_systems(scores).rows:
        result = scipy.stats.ttest_1samp(deltas(scores, row), 0.0)
        assert row.t_statistic == pytest.approx(result.statistic, rel=1e-12)
        assert row.p_value_t == pytest.approx(result.pvalue, rel=1e-9)


def test_descriptions_agree_with_numpy_and_scipy() -> None:
    scores = simulated(2, 50)
    row = compare_systems(scores).rows[0]
    values = np.array(deltas(scores, row))
    assert row.standard_deviation == pytest.approx(values.std(ddof=1))
    assert row.effect_size == pytest.approx(values.mean() / values.std(ddof=1))
    assert (row.wins, row.losses) == ((values > 1e-9).sum(), (values < -1e-9).sum())
    assert row.wins + row.ties + row.losses == 50
    assert row.baseline_mean == math.fsum(scores["s0"]["mrr"].values()) / 50
    quantiles = scipy.stats.t(49).ppf([0.975, 0.8]).sum()
    assert row.detectable_effect == pytest.approx(quantiles * values.std(ddof=1) / math.sqrt(50))


def test_holm_and_benjamini_hochberg_adjust_the_sign_flip_levels_of_a_family() -> None:
    result = compare_systems(simulated(5, 60, metrics=("mrr", "ndcg")), family="metric")
    assert result.adjusted_test == "sign_flip"
    for metric in ("mrr", "ndcg"):
        rows = [row for row in result.rows if row.metric == metric]
        levels = [row.p_value_sign_flip or 0.0 for row in rows]
        assert [row.p_value_holm for row in rows] == holm(levels)
        assert [row.p_value_benjamini_hochberg for row in rows] == benjamini_hochberg(levels)
        assert {row.family_size for row in rows} == {10}


def directions(result: SweepResult) -> dict[tuple[str, str, str], SweepRow]:
    return {(row.baseline, row.candidate, row.dataset): row for row in result.rows}


@pytest.mark.parametrize("family", ["dataset", "all"])
def test_a_pair_compared_in_both_directions_counts_once(family: Any) -> None:
    scores = {"x": simulated(3, 60, seed=1), "y": simulated(3, 60, seed=2)}
    both = compare_systems(scores, baseline=["s0", "s1"], family=family)
    once = directions(compare_systems(scores, family=family))
    assert len(both.rows) == 8
    for row in both.rows:
        single = once.get((row.baseline, row.candidate, row.dataset)) or once[row.candidate, row.baseline, row.dataset]
        assert row.family_size == single.family_size == (3 if family == "dataset" else 6)
        for field in ("two_sided", "sign_flip", "t", "holm", "benjamini_hochberg", "max_t"):
            assert getattr(row, f"p_value_{field}") == getattr(single, f"p_value_{field}"), field
    once_averaged = {frozenset((row.baseline, row.candidate)): row for row in compare_systems(scores).averages}
    assert len(both.averages) == 4
    for average in both.averages:
        expected = once_averaged[frozenset((average.baseline, average.candidate))]
        for name in ("p_value_two_sided", "p_value_holm", "p_value_benjamini_hochberg"):
            assert getattr(average, name) == getattr(expected, name)


@pytest.mark.parametrize("level", ["0.5", "0.7", "0.8", "0.9", "0.95", "0.99", "0.999", "0.9999", "0.683"])
@pytest.mark.parametrize("factor", [1, 3, 7, 11])
def test_a_p_value_at_the_threshold_is_significant(level: str, factor: int) -> None:
    # What Holm's method makes of a p-value that is, in exact arithmetic, a share of the threshold.
    threshold = 1 - Decimal(level)
    adjusted = factor * float(threshold / factor)
    assert is_significant(adjusted, float(level))
    assert not is_significant(float(threshold) * (1.0 + 1e-9), float(level))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_benjamini_hochberg_agrees_with_scipy(levels: list[float]) -> None:
    assert benjamini_hochberg(levels) == pytest.approx(list(scipy.stats.false_discovery_control(levels)))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_holm_claims_what_its_sequence_of_tests_claims(levels: list[float]) -> None:
    adjusted = holm(levels)
    ranked = sorted(range(len(levels)), key=levels.__getitem__)
    products = [(len(levels) - rank) * levels[position] for rank, position in enumerate(ranked)]
    for rank, position in enumerate(ranked):
        assert adjusted[position] == min(1.0, max(products[: rank + 1]))


def test_tests_that_were_not_asked_for_are_none() -> None:
    result = compare_systems(simulated(), tests=())
    assert result.adjusted_test == "bootstrap"
    row = result.rows[0]
    assert (row.p_value_sign_flip, row.p_value_t, row.p_value_max_t) == (None, None, None)
    full = compare_systems(simulated()).rows[0]
    assert full.confidence_interval_low == row.confidence_interval_low


@pytest.mark.parametrize("queries", [1, 5, 60])
@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_constant_deltas_give_defined_values_and_warn_once(queries: int, shift: float) -> None:
    scores = {
        name: {metric: {f"q{query}": 0.5 + added for query in range(queries)} for metric in ("m", "k")}
        for name, added in (("a", 0.0), ("b", shift))
    }
    with pytest.warns(SweepWarning, match="2 of 2 comparisons") as caught:
        result = compare_systems(scores)
    assert len(caught) == 1
    assert SweepResult.model_validate_json(result.model_dump_json()) == result
    row = result.rows[0]
    assert row.p_value_t == 1.0
    assert row.p_value_max_t == 1.0
    assert row.simultaneous_interval_low == row.simultaneous_interval_high == row.effect
    assert row.effect_size == (0.0 if shift == 0.0 else None)
    assert "all deltas are equal" in row.notes[0]


def test_a_row_of_few_queries_says_that_its_interval_is_too_short() -> None:
    assert any("too short" in note for note in compare_systems(simulated(2, 49)).rows[0].notes)
    assert compare_systems(simulated(2, 50)).rows[0].notes == ()


def test_a_result_survives_json() -> None:
    result = compare_systems(simulated(3, 20), seed=-(2**70))
    text = result.model_dump_json()
    assert SweepResult.model_validate_json(text) == result
    assert "NaN" not in text
    json.loads(text)


def test_several_baselines_compare_every_other_system_with_each() -> None:
    rows = compare_systems(simulated(4), baseline=["s1", "s0"]).rows
    assert [(row.baseline, row.candidate) for row in rows] == [
        ("s1", "s0"), ("s1", "s2"), ("s1", "s3"), ("s0", "s1"), ("s0", "s2"), ("s0", "s3"),
    ]  # fmt: skip


@pytest.mark.parametrize("library", ["polars", "lazy", "arrow", "pandas without arrow"])
def test_a_long_frame_means_the_same_as_mappings(library: str) -> None:
    class Capsule:
        def __init__(self, frame: pl.DataFrame) -> None:
            self.__arrow_c_stream__ = frame.__arrow_c_stream__

    class Columns:
        def __init__(self, frame: pl.DataFrame) -> None:
            self.columns = frame.columns
            self._values = frame.to_dict()

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ImportError("pyarrow is not installed")

        def __getitem__(self, name: str) -> Any:
            return self._values[name].to_numpy()

    scores = simulated(3, 30, metrics=("mrr", "ndcg"))
    frame = as_frame(scores).sample(fraction=1.0, shuffle=True, seed=3).sort("system", "metric", maintain_order=True)
    given: Any = {
        "polars": frame,
        "lazy": frame.lazy(),
        "arrow": Capsule(frame),
        "pandas without arrow": Columns(frame),
    }[library]
    assert compare_systems(given) == compare_systems(scores)


class Text(str):
    """A string of a class of its own."""

    __slots__ = ()


@pytest.mark.parametrize(
    "rewritten",
    [
        lambda scores: dict(reversed(scores.items())),
        lambda scores: {Text(query_id): score for query_id, score in scores.items()},
        lambda scores: {query_id: np.float64(score) for query_id, score in scores.items()},
        lambda scores: {query_id: int(score) if score in (0, 1) else score for query_id, score in scores.items()},
        lambda scores: {query_id: bool(score) if score in (0, 1) else score for query_id, score in scores.items()},
        UserDict,
    ],
    ids=["reversed", "own strings", "numpy", "integers", "booleans", "mapping"],
)
def test_scores_mean_the_same_in_any_order_and_of_any_type(rewritten: Callable[[dict[str, float]], Any]) -> None:
    metrics = ("mrr", "ndcg")
    scores = {
        system: {
            metric: {
                f"{character}{query_id}": score for query_id, score in queries.items() for character in "é\U0001d49cz"
            }
            for metric, queries in by_metric.items()
        }
        for system, by_metric in simulated(3, 20, metrics=metrics).items()
    }
    mixed: Any = {
        system: {
            metric: rewritten(queries) if (system, metric) != ("s1", "ndcg") else queries
            for metric, queries in by_metric.items()
        }
        for system, by_metric in scores.items()
    }
    assert compare_systems(mixed) == compare_systems(scores)


def test_query_ids_that_are_no_unicode_text_are_compared_too() -> None:
    scores = simulated(3, 20)
    odd = {
        system: {metric: {f"{query_id}\ud800": score for query_id, score in queries.items()}}
        for system, by_metric in scores.items()
        for metric, queries in by_metric.items()
    }
    assert compare_systems(odd) == compare_systems(scores)


def test_datasets_of_a_frame_are_compared_apart() -> None:
    one, two = simulated(3, 30, seed=1), simulated(3, 40, seed=2)
    frame = pl.concat([as_frame(one, dataset="x"), as_frame(two, dataset="y")])
    assert compare_systems(frame) == compare_systems({"x": one, "y": two})
    assert [row.query_count for row in compare_systems(frame).rows] == [30, 30, 30, 40, 40, 40]


def test_a_query_scored_twice_is_refused() -> None:
    frame = as_frame(simulated(2, 5))
    with pytest.raises(EvalError, match="duplicate query id 'q0000' of system 's0'"):
        compare_systems(pl.concat([frame, frame.head(1)]))


def test_a_frame_without_a_column_is_refused() -> None:
    with pytest.raises(EvalError, match="lacks the columns 'metric'"):
        compare_systems(as_frame(simulated()).drop("metric"))


def test_nulls_in_a_frame_are_refused() -> None:
    frame = as_frame(simulated(2, 5)).with_columns(score=pl.lit(None, pl.Float64))
    with pytest.raises(EvalError, match="nulls in 'score'"):
        compare_systems(frame)


@pytest.mark.parametrize("scores", [3, "scores", [1, 2], {"a": 1}, {"a": {"m": {"q": "0.5"}}, "b": {"m": {"q": 1.0}}}])
def test_other_scores_are_a_type_error(scores: Any) -> None:
    with pytest.raises(TypeError):
        compare_systems(scores)


def test_a_frame_of_strings_for_scores_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="real numbers"):
        compare_systems(as_frame(simulated()).with_columns(pl.col("score").cast(pl.String)))


def lacking() -> Scores:
    scores = simulated(3, 60)
    for query in range(10):
        del scores["s1"]["mrr"][f"q{query:04}"]
    for query in range(8, 12):
        del scores["s2"]["mrr"][f"q{query:04}"]
    return scores


@pytest.mark.parametrize("form", [dict, as_frame])
def test_differing_queries_are_refused(form: Any) -> None:
    with pytest.raises(EvalError, match=r"query ids differ in 'mrr'.*candidate 's1': 'q0000'.*baseline 's0': none"):
        compare_systems(form(lacking()))


@pytest.mark.parametrize("form", [dict, as_frame])
def test_missing_queries_can_count_zero(form: Any) -> None:
    scores = lacking()
    filled = {
        name: {"mrr": dict.fromkeys(scores["s0"]["mrr"], 0.0) | metrics["mrr"]} for name, metrics in scores.items()
    }
    result = compare_systems(form(scores), missing="zero")
    lacked = [(row.baseline_missing, row.candidate_missing) for row in result.rows]
    assert lacked == [(0, 10), (0, 4), (10, 4)]
    expected = compare_systems(filled)
    for row, plain in zip(result.rows, expected.rows, strict=True):
        assert row == plain.model_copy(
            update={"baseline_missing": row.baseline_missing, "candidate_missing": row.candidate_missing}
        )


@pytest.mark.parametrize("form", [dict, as_frame])
def test_two_systems_can_be_compared_on_the_queries_of_both(form: Any) -> None:
    scores = lacking()
    for row in compare_systems(form(scores), missing="intersect").rows:
        both = scores[row.baseline]["mrr"].keys() & scores[row.candidate]["mrr"].keys()
        alone = paired_bootstrap(
            *({query_id: scores[name]["mrr"][query_id] for query_id in both} for name in (row.baseline, row.candidate)),
            baseline_name=row.baseline, candidate_name=row.candidate, metric="mrr",
        )  # fmt: skip
        assert {name: getattr(row, name) for name in BootstrapResult.model_fields} == alone.model_dump()
        assert row.query_count == len(both)


def test_systems_without_a_common_query_are_refused() -> None:
    scores = {"a": {"m": {"q1": 0.5}}, "b": {"m": {"q2": 0.5}}}
    with pytest.raises(EvalError, match="no query in common"):
        compare_systems(scores, missing="intersect")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"resamples": 0}, "resamples must be positive"),
        ({"confidence_level": 1.0}, "confidence_level must be between 0 and 1"),
        ({"missing": "drop"}, "unknown missing 'drop'"),
        ({"family": "world"}, "unknown family 'world'"),
        ({"tests": ["z"]}, "unknown test 'z'"),
        ({"baseline": "s9"}, "baseline 's9'"),
        ({"baseline": []}, "baseline is empty"),
        ({"tests": "max_t"}, r"list of tests, not the single string 'max_t'; write \['max_t'\]"),
        ({"nesting": "deep"}, "unknown nesting 'deep'"),
        ({"threads": 0}, "threads must be positive, or -1 for all cores"),
        ({"threads": -2}, "threads must be positive, or -1 for all cores"),
        ({"seed": 10**4300}, "seed has more than 4,300 digits"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        compare_systems(simulated(2, 5), **arguments)


@pytest.mark.parametrize(
    ("name", "value"), [("baseline", 3), ("baseline", [["s0"]]), ("executor", 3), ("threads", 1.5), ("tests", 3)]
)
def test_arguments_of_another_type_are_a_type_error(name: str, value: Any) -> None:
    with pytest.raises(TypeError):
        compare_systems(simulated(2, 5), **{name: value})


def test_all_cores_can_be_asked_for_as_joblib_does() -> None:
    assert compare_systems(simulated(2, 5), threads=-1) == compare_systems(simulated(2, 5))


def test_sums_of_scores_must_be_finite() -> None:
    scores = simulated(3, 5)
    scores["s2"]["mrr"]["q0001"] = 1.7e308
    with pytest.raises(EvalError, match=r"finite.*'s2'"):
        compare_systems(scores)


@pytest.mark.parametrize("scores", [{}, {"a": {"m": {"q": 1.0}}}, {"a": {}, "b": {}}, {"a": {"m": {}}, "b": {"m": {}}}])
def test_a_sweep_needs_two_systems_and_a_query(scores: Any) -> None:
    with pytest.raises(EvalError, match="requires at least"):
        compare_systems(scores)


def datasets() -> dict[str, Scores]:
    return {
        name: simulated(3, queries, seed=queries, metrics=("mrr", "ndcg"))
        for name, queries in (("x", 60), ("y", 75), ("z", 60))
    }


def test_averages_equal_the_reference() -> None:
    scores = {
        name: simulated(3, queries, seed=number) for number, (name, queries) in enumerate({"x": 20, "y": 9}.items())
    }
    result = compare(scores, resamples=60, confidence_level=0.9, seed=-3)
    assert [(row.baseline, row.candidate) for row in result.averages] == [("s0", "s1"), ("s0", "s2"), ("s1", "s2")]
    for row in result.averages:
        assert row.datasets == ("x", "y")
        assert row.query_count == 29
        expected = reference.average(
            {
                name: [
                    systems[row.candidate]["mrr"][query_id] - systems[row.baseline]["mrr"][query_id]
                    for query_id in sorted(systems["s0"]["mrr"])
                ]
                for name, systems in scores.items()
            },
            resamples=60,
            confidence_level=0.9,
            seed=-3,
        )
        found = (row.effect, row.confidence_interval_low, row.confidence_interval_high, row.p_value_two_sided)
        assert found == expected


def test_averages_take_only_metrics_that_all_datasets_have() -> None:
    scores = datasets()
    for system in scores["y"].values():
        del system["ndcg"]
    assert {row.metric for row in compare_systems(scores).averages} == {"mrr"}


def test_averages_follow_the_queries_of_each_pair() -> None:
    scores = {"x": lacking(), "y": lacking()}
    counts = [row.query_count for row in compare_systems(scores, missing="intersect").averages]
    assert counts == [100, 112, 96]


def test_one_dataset_has_no_averages() -> None:
    assert compare_systems(simulated()).averages == ()
    assert compare_systems(datasets(), averages=False).averages == ()


@pytest.fixture(scope="module")
def by_itself() -> SweepResult:
    return compare_systems(datasets())


def test_a_process_pool_gives_the_same_bits(by_itself: SweepResult) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert compare_systems(datasets(), executor=pool) == by_itself


def test_a_local_dask_cluster_gives_the_same_bits(by_itself: SweepResult) -> None:
    with (
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        assert compare_systems(datasets(), executor=client.get_executor()) == by_itself


def test_an_error_in_an_executor_is_the_same_error() -> None:
    scores = datasets()
    scores["y"]["s1"]["mrr"]["q0001"] = 1.7e308
    with ThreadPoolExecutor(1) as pool, pytest.raises(EvalError, match="'y' are not"):
        compare_systems(scores, executor=pool)


def test_progress_is_told_at_the_beginning_and_after_every_set_of_queries() -> None:
    told: list[SweepProgress] = []
    compare_systems(datasets(), progress=told.append)
    assert [(event.dataset, event.sets_done, event.sets_total) for event in told] == [
        (None, 0, 3), ("x", 1, 3), ("y", 2, 3), ("z", 3, 3),
    ]  # fmt: skip


def test_a_bar_changes_no_result(by_itself: SweepResult) -> None:
    assert compare_systems(datasets(), progress=True) == by_itself


def test_a_sweep_that_was_stopped_goes_on_where_it_was(tmp_path: Path, by_itself: SweepResult) -> None:
    def stop(event: SweepProgress) -> None:
        if event.sets_done == 2:
            raise KeyboardInterrupt

    kept = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        compare_systems(datasets(), resume=kept, progress=stop)
    before = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert len(before) == 2
    assert compare_systems(datasets(), resume=kept) == by_itself
    assert len(list(kept.iterdir())) == 3
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_results_of_other_scores_or_settings_are_not_taken_up(tmp_path: Path, by_itself: SweepResult) -> None:
    other = datasets()
    other["x"]["s0"]["mrr"]["q0000"] += 0.5
    for scores, arguments in ((other, {}), (datasets(), {"seed": 8}), (datasets(), {"confidence_level": 0.9})):
        assert compare_systems(scores, resume=tmp_path, **arguments) == compare_systems(scores, **arguments)
    assert compare_systems(datasets(), resume=tmp_path) == by_itself


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EvalError, match="cannot keep results in"):
        compare_systems(datasets(), resume=tmp_path / "file")


def test_all_stages_of_a_report_are_compared_with_its_baseline() -> None:
    report = load_report(REAL_REPORT)
    result = compare_systems(report)
    assert {(row.baseline, row.candidate) for row in result.rows} == {("bm25", "dense"), ("bm25", "fusion")}
    for row in result.rows:
        arguments: Any = {"baseline": row.baseline, "candidate": row.candidate, "metric": row.metric}
        alone = compare_report_stages(report, **arguments)
        assert {field: getattr(row, field) for field in BootstrapResult.model_fields} == alone.model_dump()
