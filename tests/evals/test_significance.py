"""Paired bootstrap: equal to the plain-Python reference, and strict about what it is given."""

import math
import random
import signal
import subprocess
import sys
import textwrap
from array import array
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
import reference
from datasets import REAL_REPORT
from groundkit import _native
from groundkit.errors import EvalError
from groundkit.evals.schema import EvalReport, StageName, load_report
from groundkit.evals.significance import BootstrapResult, MetricName, compare_report_stages, paired_bootstrap
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES: dict[str, Any] = {"baseline_name": "BM25", "candidate_name": "dense", "metric": "ndcg_at_10"}

# Python refuses to print an integer of as many digits, in a message as in a test's name.
UNPRINTABLE = pytest.param(10**5000, id="unprintable")

recall_like = st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 2 / 3, 0.25])
ndcg_like = st.floats(0.0, 1.0)
adversarial = st.one_of(
    st.floats(-1e304, 1e304),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e304, -1e304, 1e-300, 1.0]),
)
subnormal = st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-323])
seeds = st.one_of(st.sampled_from([0, 1, 7, -7, -1, 2**31, 2**32, 2**64, 2**200 + 1, -(2**200)]), st.integers())
Scores = dict[str, float]


@st.composite
def paired_scores(draw: st.DrawFn) -> tuple[Scores, Scores]:
    """Draw the scores of two systems on the same queries."""
    score = draw(st.sampled_from([recall_like, ndcg_like, adversarial, subnormal, st.just(0.25)]))
    query_ids = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=60, unique=True))
    return {query_id: draw(score) for query_id in query_ids}, {query_id: draw(score) for query_id in query_ids}


@settings(deadline=None, max_examples=150)
@given(pair=paired_scores(), resamples=st.integers(1, 200), seed=seeds, level=st.floats(0.5, 0.999))
def test_every_field_equals_the_reference(pair: tuple[Scores, Scores], resamples: int, seed: int, level: float) -> None:
    arguments = NAMES | {"resamples": resamples, "seed": seed, "confidence_level": level}
    assert paired_bootstrap(*pair, **arguments).model_dump() == reference.paired_bootstrap(*pair, **arguments)


@settings(deadline=None, max_examples=25)
@given(count=st.integers(1, 2000), entropy=st.integers(0, 2**32), seed=seeds)
def test_large_query_sets_equal_the_reference(count: int, entropy: int, seed: int) -> None:
    data = random.Random(entropy)
    baseline = {f"q{number}": data.random() for number in range(count)}
    candidate = {query_id: max(0.0, score + data.gauss(0.0, 0.1)) for query_id, score in baseline.items()}
    arguments = NAMES | {"resamples": 50, "seed": seed}
    assert paired_bootstrap(baseline, candidate, **arguments).model_dump() == reference.paired_bootstrap(
        baseline, candidate, **arguments
    )


@settings(deadline=None, max_examples=20)
@given(entropy=st.integers(0, 2**32))
def test_plain_sums_differ_from_exact_ones_by_rounding_only(entropy: int) -> None:
    data = random.Random(entropy)
    baseline = {f"q{number}": data.choice([0.0, 0.2, 1 / 3, 0.5, 1.0]) for number in range(40)}
    candidate = {query_id: data.choice([0.0, 0.2, 1 / 3, 0.5, 1.0]) for query_id in baseline}
    exact = paired_bootstrap(baseline, candidate, **NAMES, resamples=400).model_dump()
    sums: list[float] = []

    def add_up(values: Iterable[float]) -> float:
        sums.append(sum(values))
        return sums[-1]

    plain: dict[str, Any] = reference.paired_bootstrap(baseline, candidate, **NAMES, resamples=400, add_up=add_up)
    for end in ("confidence_interval_low", "confidence_interval_high"):
        assert abs(exact[end] - plain[end]) < 1e-15
    if exact["p_value_two_sided"] != plain["p_value_two_sided"]:
        assert any(abs(total) < 1e-13 for total in sums)


@pytest.mark.parametrize("level", _native.levels())
@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 1025])
def test_every_vector_level_and_thread_count_gives_the_same_bits(level: str, count: int) -> None:
    baseline = array("d", [number / 7 % 1 for number in range(count)])
    candidate = array("d", [number / 11 % 1 for number in range(count)])
    arguments: dict[str, Any] = {"resamples": 1_000_000 // count, "seed": b"\x07", "confidence_level": 0.95}
    expected = _native.paired_bootstrap(baseline, candidate, threads=1, level="portable", **arguments)
    for threads in (1, 2, 3):
        assert _native.paired_bootstrap(baseline, candidate, threads=threads, level=level, **arguments) == expected


def test_the_order_of_the_mappings_does_not_matter() -> None:
    baseline = {f"q{number}": number / 9 for number in range(9)}
    candidate = {query_id: 1 - score for query_id, score in baseline.items()}
    expected = paired_bootstrap(baseline, candidate, **NAMES)
    assert paired_bootstrap(dict(reversed(baseline.items())), candidate, **NAMES) == expected


def test_query_ids_are_paired_in_code_point_order() -> None:
    # U+FF5E sorts before U+1F600 by code point, but after it by UTF-16 code unit.
    baseline = {"\uff5e": 0.1, "\U0001f600": 0.7, "\ud800": 0.2, "a": 0.9}
    candidate = {"\uff5e": 0.4, "\U0001f600": 0.6, "\ud800": 0.9, "a": 0.0}
    arguments = NAMES | {"resamples": 7}
    assert paired_bootstrap(baseline, candidate, **arguments).model_dump() == reference.paired_bootstrap(
        baseline, candidate, **arguments
    )


class ReadOnce(Mapping[str, float]):
    """A mapping that may be iterated only once."""

    def __init__(self, values: Scores) -> None:
        self._values = values
        self._reads = 0

    def __getitem__(self, key: str) -> float:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        self._reads += 1
        assert self._reads == 1, "read a second time"
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def test_mappings_are_read_once() -> None:
    result = paired_bootstrap(ReadOnce({"a": 0.0, "b": 0.5}), ReadOnce({"a": 1.0, "b": 0.5}), **NAMES)
    assert result.query_count == 2


def test_any_real_number_is_a_score() -> None:
    values: dict[str, Any] = {"a": 1, "b": True, "c": np.float32(0.5), "d": np.int64(1), "e": np.bool_(1), "f": 0.25}
    result = paired_bootstrap(dict.fromkeys(values, 0.0), values, **NAMES, seed=np.int64(7), resamples=np.int32(10))
    assert result.effect == 4.75 / 6
    assert type(result.seed) is int
    assert type(result.resamples) is int


@pytest.mark.parametrize("score", ["0.5", None, 1j, np.complex64(1), b"1", [1.0]])
def test_other_scores_are_a_type_error(score: Any) -> None:
    with pytest.raises(TypeError):
        paired_bootstrap({"a": 0.5}, {"a": score}, **NAMES)


@pytest.mark.parametrize("wrong", ["ab", ["abc"], [("a", 0.5)], 1, None])
def test_scores_that_are_no_mapping_are_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="must be a mapping"):
        paired_bootstrap(wrong, {"a": 0.5}, **NAMES)
    with pytest.raises(TypeError, match="must be a mapping"):
        paired_bootstrap({"a": 0.5}, wrong, **NAMES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"resamples": 1.5},
        {"resamples": "9"},
        {"seed": 0.5},
        {"confidence_level": "1"},
        {"confidence_level": np.array([0.5, 0.9])},
    ],
)
def test_wrong_arguments_are_a_type_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        paired_bootstrap({"a": 0.5}, {"a": 0.5}, **NAMES | wrong)


@pytest.mark.parametrize("wrong", [{1: 0.5}, {None: 0.5}, {b"a": 0.5}])
def test_a_query_id_that_is_no_string_is_a_type_error(wrong: dict[Any, float]) -> None:
    with pytest.raises(TypeError, match="query id"):
        paired_bootstrap(wrong, wrong, **NAMES)


@pytest.mark.parametrize("resamples", [0, -1, 10**30, UNPRINTABLE, pytest.param(-(10**5000), id="negative")])
def test_resamples_must_be_positive_and_fit_in_memory(resamples: int) -> None:
    with pytest.raises(EvalError, match="resamples must be positive"):
        paired_bootstrap({"a": 0.5}, {"a": 0.5}, **NAMES, resamples=resamples)


@pytest.mark.parametrize(
    "level",
    [0.0, 1.0, -0.5, 95.0, math.nan, math.inf, UNPRINTABLE, Fraction(10**30 - 1, 10**30), Decimal("sNaN")],
)
def test_a_confidence_level_lies_between_zero_and_one(level: Any) -> None:
    with pytest.raises(EvalError, match="confidence_level must be between 0 and 1"):
        paired_bootstrap({"a": 0.5}, {"a": 0.5}, **NAMES, confidence_level=level)


@pytest.mark.parametrize("candidate", [{}, {"a": 0.5}])
def test_a_baseline_without_queries_is_refused(candidate: Scores) -> None:
    with pytest.raises(EvalError, match="at least one query score"):
        paired_bootstrap({}, candidate, **NAMES)


def test_differing_query_ids_are_named_ten_a_side_with_their_number() -> None:
    baseline = {"both": 0.0} | {f"b{number:02}": 0.0 for number in range(12)}
    candidate = {"both": 0.0, "c": 0.0}
    with pytest.raises(EvalError, match=r"query ids differ.*'b00'.*'b09' and 2 more, 12 in all.*'c'") as caught:
        paired_bootstrap(baseline, candidate, **NAMES)
    assert "'b10'" not in str(caught.value)


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        (0.0, math.nan),
        (math.inf, 0.0),
        (math.inf, math.inf),
        (-1.7e308, 1.7e308),
        (0, 10**400),
        (0.0, Decimal("sNaN")),
        (Fraction(10**5000 + 1, 10**5000), math.nan),
    ],
)
def test_scores_and_deltas_must_be_finite(baseline: Any, candidate: Any) -> None:
    with pytest.raises(EvalError, match="must be finite"):
        paired_bootstrap({"q1": baseline, "q2": 0.0}, {"q1": candidate, "q2": 0.0}, **NAMES)


def test_sums_must_be_finite() -> None:
    # Each delta is finite, but a resample may draw the large one twice.
    with pytest.raises(EvalError, match=r"must be finite.*sum of 2 deltas"):
        paired_bootstrap({"q1": 0.0, "q2": 0.0}, {"q1": 1.7e308, "q2": 0.0}, **NAMES)


@pytest.mark.parametrize("metric", ["map", None, ["mrr"], np.array(["mrr", "map"])])
def test_an_unknown_metric_is_refused_before_any_work(metric: Any) -> None:
    with pytest.raises(EvalError, match="unknown metric"):
        paired_bootstrap({}, {}, **NAMES | {"metric": metric})


def test_significance_is_read_from_the_interval_alone() -> None:
    baseline = dict.fromkeys(map(str, range(20)), 0.0)
    candidate = {query_id: 0.1 if int(query_id) % 4 else -0.1 for query_id in baseline}
    wide = paired_bootstrap(baseline, candidate, **NAMES, confidence_level=0.999)
    narrow = paired_bootstrap(baseline, candidate, **NAMES, confidence_level=0.5)
    assert wide.p_value_two_sided == narrow.p_value_two_sided
    assert (wide.significant, narrow.significant) == (False, True)


def test_the_achieved_significance_level_is_never_zero() -> None:
    baseline = dict.fromkeys(map(str, range(20)), 0.0)
    candidate = dict.fromkeys(baseline, 0.5)
    assert paired_bootstrap(baseline, candidate, **NAMES, resamples=99).p_value_two_sided == 2 / 100


def test_a_result_survives_json() -> None:
    result = paired_bootstrap({"a": 0.1, "b": 0.2}, {"a": 0.3, "b": 0.1}, **NAMES, seed=2**70)
    assert BootstrapResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize("threads", ["1", "2"])
def test_ctrl_c_ends_a_long_run(threads: str) -> None:
    script = textwrap.dedent("""
        from groundkit.evals.significance import paired_bootstrap
        scores = {str(number): number / 1000 for number in range(1000)}
        try:
            print("started", flush=True)
            paired_bootstrap(
                scores, dict.fromkeys(scores, 0.5),
                baseline_name="a", candidate_name="b", metric="mrr", resamples=50_000_000,
            )
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    environment = {"RAYON_NUM_THREADS": threads}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
    assert child.returncode == 0


def test_importing_the_module_loads_neither_polars_nor_numpy() -> None:
    script = "import sys, groundkit.evals.significance; print('polars' in sys.modules, 'numpy' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout == "False False\n"


@pytest.fixture(scope="session")
def report() -> EvalReport:
    return load_report(REAL_REPORT)


@pytest.mark.parametrize("candidate", ["dense", "fusion"])
@pytest.mark.parametrize("metric", get_args(MetricName))
def test_stages_of_a_real_report_compare_as_the_reference_says(
    report: EvalReport, candidate: StageName, metric: MetricName
) -> None:
    result = compare_report_stages(report, baseline="bm25", candidate=candidate, metric=metric, resamples=500)
    field = "reciprocal_rank" if metric == "mrr" else metric
    by_stage: dict[str, Scores] = {
        stage.stage: {query.query_id: getattr(query.metrics, field) for query in stage.queries if query.metrics}
        for stage in report.stages
    }
    expected = reference.paired_bootstrap(
        by_stage["bm25"],
        by_stage[candidate],
        baseline_name="bm25",
        candidate_name=candidate,
        metric=metric,
        resamples=500,
    )
    assert result.model_dump() == expected


def test_a_report_that_is_not_read_yet_is_a_type_error() -> None:
    wrong: Any = {"stages": []}
    with pytest.raises(TypeError, match="must be an EvalReport"):
        compare_report_stages(wrong, baseline="bm25", candidate="dense", metric="mrr")


def test_an_absent_stage_is_named(report: EvalReport) -> None:
    with pytest.raises(EvalError, match="does not contain stage 'rerank'"):
        compare_report_stages(report, baseline="bm25", candidate="rerank", metric="mrr")


def test_two_stages_of_one_name_are_refused(report: EvalReport) -> None:
    twice = report.model_copy(update={"stages": [*report.stages, report.stages[1]]})
    with pytest.raises(EvalError, match="more than one stage named 'dense'"):
        compare_report_stages(twice, baseline="bm25", candidate="fusion", metric="mrr")


def test_a_query_twice_in_a_stage_is_refused(report: EvalReport) -> None:
    first = report.stages[0]
    twice = first.model_copy(update={"queries": [*first.queries, first.queries[0]]})
    report = report.model_copy(update={"stages": [twice, *report.stages[1:]]})
    with pytest.raises(EvalError, match="duplicate query id"):
        compare_report_stages(report, baseline="bm25", candidate="dense", metric="mrr")
