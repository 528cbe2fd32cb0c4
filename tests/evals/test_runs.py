"""Run files and judgments: scored as ir_measures does, with the usual traps refused."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from groundkit.errors import EvalError
from groundkit.evals.runs import read_qrels, read_run, score_runs
from groundkit.evals.sweep import compare_systems

RUN = """\
q1 Q0 d1 1 3.0 x
q1 Q0 d2 2 2.5 x

q2 Q0 d3 1 1.5 x
q2 Q0 d1 2 1.0 x
"""
QRELS = "q1 0 d2 1\nq1 0 d1 0\nq2 0 d3 2\n"


def write(path: Path, text: str, *, packed: bool = False) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    return write(tmp_path / "qrels", QRELS)


@pytest.mark.parametrize("packed", [False, True])
def test_any_measure_scores_every_query(tmp_path: Path, packed: bool) -> None:
    scores = score_runs(
        {"x": write(tmp_path / "run", RUN, packed=packed)},
        write(tmp_path / "qrels", QRELS, packed=packed),
        ["RR", "P@1", "AP(rel=2)"],
    )
    assert scores == {
        "x": {"RR": {"q1": 0.5, "q2": 1.0}, "P@1": {"q1": 0.0, "q2": 1.0}, "AP(rel=2)": {"q1": 0.0, "q2": 1.0}}
    }


def test_beir_judgments_mean_the_same_as_those_of_trec(tmp_path: Path, qrels: Path) -> None:
    beir = write(tmp_path / "test.tsv", "query-id\tcorpus-id\tscore\r\nq1\td2\t1\nq1\td1\t0\nq2\td3\t2\n")
    assert read_qrels(beir) == read_qrels(qrels) == {"q1": {"d2": 1, "d1": 0}, "q2": {"d3": 2}}


def test_the_scores_are_what_a_sweep_takes(tmp_path: Path, qrels: Path) -> None:
    runs = {"x": write(tmp_path / "x", RUN), "y": write(tmp_path / "y", RUN.replace("d2 2 2.5", "d2 2 9.5"))}
    row = compare_systems(score_runs(runs, qrels, ["RR"])).rows[0]
    assert (row.effect, row.query_count) == (0.25, 2)


def test_a_document_twice_in_a_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match=r"run:6: duplicate document 'd1' in query 'q2'"):
        read_run(write(tmp_path / "run", RUN + "q2 Q0 d1 3 0.5 x\n"))


@pytest.fixture
def tied(tmp_path: Path) -> Path:
    return write(tmp_path / "tied", RUN.replace("d2 2 2.5", "d2 2 3.0"))


def test_tied_scores_are_refused(tied: Path) -> None:
    with pytest.raises(EvalError, match=r"scores tie in 1 queries \('q1'\)"):
        read_run(tied)


@pytest.mark.parametrize(("ties", "expected"), [("document_id", 1.0), ("rank", 0.5)])
def test_ties_are_broken_as_is_said(tied: Path, qrels: Path, ties: Any, expected: float) -> None:
    assert score_runs({"x": tied}, qrels, ["RR"], ties=ties)["x"]["RR"] == {"q1": expected, "q2": 1.0}


def test_a_rank_twice_in_a_query_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="one rank is there twice"):
        read_run(write(tmp_path / "run", RUN.replace("d2 2", "d2 1")), ties="rank")


def test_queries_that_nobody_judged_are_refused_or_dropped(tmp_path: Path, qrels: Path) -> None:
    run = write(tmp_path / "run", RUN + "q3 Q0 d1 1 0.5 x\n")
    with pytest.raises(EvalError, match=r"1 queries have no judgment \('q3'\)"):
        score_runs({"x": run}, qrels, ["RR"])
    assert score_runs({"x": run}, qrels, ["RR"], unjudged_queries="drop")["x"]["RR"].keys() == {"q1", "q2"}


def test_queries_without_a_result_are_refused_or_zero_or_left_out(tmp_path: Path) -> None:
    run = write(tmp_path / "run", RUN)
    qrels = write(tmp_path / "more", QRELS + "q3 0 d1 1\n")
    with pytest.raises(EvalError, match=r"1 judged queries have no result \('q3'\)"):
        score_runs({"x": run}, qrels, ["RR"])
    assert score_runs({"x": run}, qrels, ["RR"], missing_queries="zero")["x"]["RR"]["q3"] == 0.0
    assert "q3" not in score_runs({"x": run}, qrels, ["RR"], missing_queries="leave")["x"]["RR"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 Q0 d1 1 3.0\n", "run:1: invalid run row: expected 6 fields, found 5"),
        ("\nq1 Q0 d1 1 high x\n", "run:2: invalid score 'high'"),
        ("q1 Q0 d1 1 nan x\n", "score must be finite"),
    ],
)
def test_a_malformed_run_row_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EvalError, match=message):
        read_run(write(tmp_path / "run", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 d1 1\n", "qrels:1: invalid qrels row: expected 4 fields, found 3"),
        ("query-id\tcorpus-id\tscore\nq1\t0\td1\t1\n", "qrels:2: invalid qrels row: expected 3 fields"),
        ("q1 0 d1 good\n", "qrels:1: invalid relevance grade 'good'"),
        ("q1 0 d1 1\nq1 0 d1 2\n", "qrels:2: document 'd1' has two grades in query 'q1'"),
        ("\n", "there is no judgment"),
    ],
)
def test_a_malformed_judgment_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(EvalError, match=message):
        read_qrels(write(tmp_path / "qrels", text))


@pytest.mark.parametrize("data", [None, b"\x1f\x8b broken", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "run"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(EvalError, match=r"cannot read '.*run'"):
        read_run(path)


@pytest.mark.parametrize("measure", ["Nonsense@10", "nDCG@", ""])
def test_an_unknown_measure_is_refused(tmp_path: Path, qrels: Path, measure: str) -> None:
    with pytest.raises(EvalError, match="unknown measure"):
        score_runs({"x": write(tmp_path / "run", RUN)}, qrels, [measure])


@pytest.mark.parametrize("choice", ["ties", "unjudged_queries", "missing_queries"])
def test_an_unknown_choice_is_refused(tmp_path: Path, qrels: Path, choice: str) -> None:
    arguments: dict[str, Any] = {choice: "guess"}
    with pytest.raises(EvalError, match=f"unknown {choice} 'guess'"):
        score_runs({"x": write(tmp_path / "run", RUN)}, qrels, ["RR"], **arguments)
