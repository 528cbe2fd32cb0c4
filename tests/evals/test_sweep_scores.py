"""What goes into a sweep: every fault of a score names system, metric, query and value."""

import decimal
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from groundkit.errors import EvalError
from groundkit.evals.significance import paired_bootstrap
from groundkit.evals.sweep import compare_systems

Scores = dict[str, dict[str, dict[str, Any]]]
PLACE = "of system 'dense' in metric 'RR' for query 'q1' is "


def make(value: object = 0.5) -> Scores:
    """Make scores of two systems, one of them this value."""
    return {
        "BM25": {"RR": {"q0": 0.5, "q1": 0.25, "q2": 1.0}},
        "dense": {"RR": {"q0": 0.75, "q1": value, "q2": 1.0}},
    }


def as_frame(scores: Scores) -> pl.DataFrame:
    rows = [(s, m, q, score) for s, metrics in scores.items() for m, by in metrics.items() for q, score in by.items()]
    return pl.DataFrame(rows, schema=["system", "metric", "query_id", "score"], orient="row")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (np.float32("nan"), "nan"),
        (10**400, "an integer of 1,329 bits"),
        (decimal.Decimal("sNaN"), "Decimal"),
    ],
)
def test_a_score_that_is_not_finite_is_named(value: object, shown: str) -> None:
    with pytest.raises(EvalError, match=f"finite: the score {PLACE}{shown}"):
        compare_systems(make(value))


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_score_of_a_frame_that_is_not_finite_is_named(value: float) -> None:
    with pytest.raises(EvalError, match=f"finite: the score {PLACE}{value}"):
        compare_systems(as_frame(make(value)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None of type NoneType"),
        ("0.5", "'0.5' of type str"),
        (1j, "1j of type complex"),
        (np.complex128(1 + 2j), r".*of type complex128"),
        ([0.5], r"\[0.5\] of type list"),
    ],
)
def test_what_is_no_real_number_is_named(value: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=f"real number: the score {PLACE}{shown}"):
        compare_systems(make(value))
    with pytest.raises(TypeError, match=f"real number: the score of 'b' for query 'q' is {shown}"):
        paired_bootstrap({"q": 0.5}, {"q": value}, baseline_name="a", candidate_name="b", metric="mrr")


def test_a_dataset_is_named_too() -> None:
    with pytest.raises(EvalError, match=r"in metric 'RR' on dataset 'x' for query 'q1' is nan"):
        compare_systems({"x": make(math.nan)})


def test_a_null_of_a_frame_is_named() -> None:
    with pytest.raises(
        EvalError, match=r"nulls in 'score', first in row 4 .*system 'dense', metric 'RR', query_id 'q1'"
    ):
        compare_systems(as_frame(make(None)))


@pytest.mark.parametrize("form", [dict, as_frame])
def test_a_name_that_no_file_can_hold_is_refused_before_anything_is_computed(form: Any) -> None:
    scores = make()
    scores["\udce9"] = scores.pop("dense")
    if form is dict:
        with pytest.raises(EvalError, match=r"name of system '\\udce9' contains a lone surrogate"):
            compare_systems(scores)
    for what in ("metric", "dataset"):
        named = {"\ud800": make()} if what == "dataset" else {s: {"\ud800": m["RR"]} for s, m in make().items()}
        with pytest.raises(EvalError, match=f"name of {what}"):
            compare_systems(named)
    with pytest.raises(EvalError, match="name of system"):
        paired_bootstrap({"q": 0}, {"q": 1}, baseline_name="\ud800", candidate_name="b", metric="mrr")


def transpose(scores: Scores) -> Any:
    return {
        system: {query: {metric: by[query] for metric, by in metrics.items()} for query in next(iter(metrics.values()))}
        for system, metrics in scores.items()
    }


@pytest.mark.parametrize("measure", ["map", "ndcg_cut_10", "P_5", "recip_rank", "nDCG@10", "AP(rel=2)@100"])
def test_the_nesting_of_pytrec_eval_is_recognised(measure: str) -> None:
    scores = {system: {measure: metrics["RR"]} for system, metrics in make().items()}
    with pytest.raises(EvalError, match=r"\{system: \{query_id: \{measure: score\}\}\}.*nesting='query'"):
        compare_systems(transpose(scores))
    assert compare_systems(transpose(scores), nesting="query") == compare_systems(scores)
    with pytest.raises(EvalError, match=r"nesting='query'"):
        compare_systems({"x": transpose(scores), "y": transpose(scores)})


def test_queries_that_lack_a_measure_lack_it_below_queries_too() -> None:
    scores = {system: {"map": metrics["RR"]} for system, metrics in make().items()}
    given = transpose(scores)
    del given["dense"]["q1"]["map"]
    with pytest.raises(EvalError, match="missing from candidate 'dense': 'q1'"):
        compare_systems(given, nesting="query")


def test_metrics_with_any_name_are_taken_above_queries() -> None:
    scores = {system: {"my score": metrics["RR"], "P": metrics["RR"]} for system, metrics in make().items()}
    assert len(compare_systems(scores).rows) == 2
    odd = {system: {"RR": {"map": 0.1, "P": 0.2 + shift}} for system, shift in (("BM25", 0.0), ("dense", 0.5))}
    assert compare_systems(odd, tests=["t"]).rows[0].query_count == 2


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda frame: frame.with_columns(query_id=pl.concat_list("query_id")), TypeError, "'query_id' .* List"),
        (lambda frame: frame.with_columns(system=pl.lit(0.5)), TypeError, "'system' .* Float64"),
        (lambda frame: frame.with_columns(score=pl.concat_list("score")), TypeError, "'score' is of type List"),
        (lambda frame: frame.with_columns(query_id=pl.lit(b"\xff")), EvalError, "cannot read the frame of scores: inv"),
        (lambda frame: frame.lazy().with_columns(pl.col("absent")), EvalError, "cannot read the frame of scores"),
        (lambda frame: frame.drop("metric"), EvalError, "lacks the columns 'metric'; it has 'system', 'query_id'"),
        (lambda frame: frame.clear(), EvalError, "requires at least one query score"),
    ],
)
def test_a_frame_of_another_form_is_refused(change: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        compare_systems(change(as_frame(make())))
    assert "\n" not in str(caught.value)


def test_a_lazy_frame_of_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="cannot read the frame of scores: No such file"):
        compare_systems(pl.scan_parquet(tmp_path / "absent.parquet"))


def test_a_frame_with_a_column_twice_is_refused() -> None:
    class Twice:
        columns = ("system", "metric", "query_id", "score", "score")

    with pytest.raises(EvalError, match="several columns named 'score'"):
        compare_systems(Twice())


def test_query_ids_of_a_frame_may_be_integers_or_categories() -> None:
    frame = as_frame(make())
    numbers = frame.with_columns(pl.col("query_id").str.tail(1).cast(pl.Int32), pl.col("system").cast(pl.Categorical))
    assert compare_systems(numbers) == compare_systems(frame)
