"""The evaluation report: a real one validates, and every rule between its fields holds."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import REAL_REPORT
from groundkit.errors import EvalError
from groundkit.evals.schema import EvalReport, RunConfig, RunMetadata, SynthesisReport, load_report
from pydantic import ValidationError

METRICS = {"recall_at_1": 0.0, "recall_at_5": 0.5, "recall_at_10": 1.0, "ndcg_at_10": 0.5}
CONFIG: dict[str, Any] = {
    "chunk_size": 512,
    "chunk_overlap": 64,
    "top_k": 10,
    "bm25_k1": 1.5,
    "bm25_b": 0.75,
    "score_threshold": None,
}
QUERY: dict[str, Any] = {
    "query_id": "q1",
    "query": "what is B?",
    "category": "normal",
    "is_no_answer": False,
    "gold": [{"document": "d.md", "start_offset": 0, "end_offset": 1, "quote": "B"}],
    "total_relevant_chunks": 1,
    "retrieved": [
        {"rank": 1, "document": "d.md", "start_offset": 0, "end_offset": 9, "score": 1.5, "is_relevant": True}
    ],
    "metrics": METRICS | {"reciprocal_rank": 0.5},
    "latency_ms": 1.0,
}
STAGE: dict[str, Any] = {
    "stage": "bm25",
    "is_baseline": True,
    "aggregate": METRICS | {"mrr": 0.5, "query_count": 1},
    "by_category": {"normal": METRICS | {"mrr": 0.5, "query_count": 1}},
    "no_answer_query_count": 1,
    "no_answer_abstained_count": 1,
    "latency_p50_ms": 1.0,
    "latency_p95_ms": 1.0,
    "latency_p99_ms": 1.0,
    "queries": [QUERY],
}
REPORT: dict[str, Any] = {
    "schema_version": 1,
    "run": {
        "run_id": "0",
        "started_at": "2026-01-01T00:00:00+00:00",
        "groundkit_version": "0.1.0",
        "corpus_hash": "0",
        "judgments_hash": "0",
        "document_count": 1,
        "chunk_count": 1,
        "judgment_count": 1,
        "config": CONFIG,
    },
    "stages": [STAGE],
}


def test_a_real_report_validates_and_round_trips() -> None:
    file = REAL_REPORT
    report = load_report(file)
    assert [stage.stage for stage in report.stages] == ["bm25", "dense", "fusion"]
    assert EvalReport.model_validate_json(report.model_dump_json()) == report
    written = json.loads(file.read_bytes())
    assert json.loads(report.model_dump_json(exclude_unset=True)) == written


def stages(*changes: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def change(report: dict[str, Any]) -> None:
        report["stages"] = [copy.deepcopy(STAGE) | fields for fields in changes]

    return change


def query(**fields: object) -> Callable[[dict[str, Any]], None]:
    return lambda report: report["stages"][0]["queries"][0].update(fields)


def stage(**fields: object) -> Callable[[dict[str, Any]], None]:
    return lambda report: report["stages"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (stages(), "stages must not be empty"),
        (stages({}, {"stage": "dense"}), "exactly one stage must be the baseline, found 2"),
        (stages({"is_baseline": False}), "exactly one stage must be the baseline, found 0"),
        (stages({"is_baseline": False, "stage": "dense"}, {}), "the baseline must be the first stage"),
        (stages({"stage": "dense"}), "the baseline must be 'bm25'"),
        (stage(no_answer_abstained_count=2), "must not exceed"),
        (stage(latency_p50_ms=-1.0), "latency_p50_ms"),
        (stage(stage="splade"), "stage"),
        (query(metrics=None), "must agree"),
        (query(gold=[]), "must agree"),
        (query(is_no_answer=True), "must agree"),
        (query(metrics=METRICS | {"reciprocal_rank": 1.5}), "reciprocal_rank"),
        (query(metrics=METRICS | {"reciprocal_rank": float("nan")}), "reciprocal_rank"),
        (query(unknown=1), "unknown"),
        (query(latency_ms=float("inf")), "latency_ms"),
        (query(retrieved=[QUERY["retrieved"][0] | {"score": float("inf")}]), "score"),
        (lambda report: report.update(schema_version=2), "schema_version"),
    ],
)
def test_every_rule_of_a_report_is_checked(change: Callable[[dict[str, Any]], None], message: str) -> None:
    report = copy.deepcopy(REPORT)
    EvalReport.model_validate(report)
    change(report)
    with pytest.raises(ValidationError, match=message):
        EvalReport.model_validate(report)


def test_two_later_stages_may_share_a_name() -> None:
    later = STAGE | {"stage": "dense", "is_baseline": False}
    assert len(EvalReport.model_validate(REPORT | {"stages": [STAGE, later, later]}).stages) == 3


def test_a_query_without_answer_has_neither_metrics_nor_gold() -> None:
    report = copy.deepcopy(REPORT)
    query(is_no_answer=True, metrics=None, gold=[])(report)
    assert EvalReport.model_validate(report).stages[0].queries[0].metrics is None


EMBEDDING = {"provider": "p", "model_name": "m", "dimensions": 3}
RERANK = {"rerank_input": "fusion", "rerank_candidates": 10, "rerank_model": "m"}


@pytest.mark.parametrize(
    "fields",
    [
        {"embedding": EMBEDDING},
        {"rrf_k": 60},
        {"rerank_input": "fusion"},
        RERANK | {"rerank_model": None},
        RERANK | {"rerank_input": "rerank"},
        RERANK | {"rerank_candidates": 9},
        {"embedding": EMBEDDING, "rrf_k": 0},
        {"embedding": EMBEDDING | {"dimensions": 0}, "rrf_k": 60},
    ],
)
def test_settings_that_belong_together_are_set_together(fields: dict[str, Any]) -> None:
    RunConfig.model_validate(CONFIG | {"embedding": EMBEDDING, "rrf_k": 60} | RERANK)
    with pytest.raises(ValidationError):
        RunConfig.model_validate(CONFIG | fields)


SYNTHESIS: dict[str, Any] = {
    "input_stage": "fusion",
    "synthesis_provider": "p",
    "synthesis_model": "m",
    "synthesis_prompt_hash": "0",
    "redacted": False,
    "answered_count": 3,
    "abstained_count": 0,
    "rejected_count": 0,
}
JUDGE: dict[str, Any] = {
    "judge_provider": "p",
    "judge_model": "m",
    "judge_prompt_hash": "0",
    "judged_count": 3,
    "faithful_count": 1,
    "unfaithful_count": 1,
    "judge_error_count": 1,
}


def test_a_synthesis_report_has_a_whole_judge_or_none() -> None:
    SynthesisReport.model_validate(SYNTHESIS)
    SynthesisReport.model_validate(SYNTHESIS | JUDGE)
    for field in JUDGE:
        with pytest.raises(ValidationError, match="together or not at all"):
            SynthesisReport.model_validate(SYNTHESIS | JUDGE | {field: None})
    with pytest.raises(ValidationError, match="judged_count must be the sum"):
        SynthesisReport.model_validate(SYNTHESIS | JUDGE | {"judged_count": 4})


def test_a_run_without_an_id_gets_a_new_one() -> None:
    run = {name: value for name, value in REPORT["run"].items() if name != "run_id"}
    first, second = RunMetadata.model_validate(run), RunMetadata.model_validate(run)
    assert first.run_id != second.run_id
    assert len(bytes.fromhex(first.run_id)) == 16


def test_reports_are_frozen() -> None:
    report = EvalReport.model_validate(REPORT)
    with pytest.raises(ValidationError, match="frozen"):
        report.schema_version = 1  # type: ignore[misc]


def test_a_file_that_is_no_report_names_the_file_and_the_field(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    with pytest.raises(EvalError, match=r"cannot read evaluation report .*report\.json"):
        load_report(file)
    file.write_text(json.dumps(REPORT | {"stages": [STAGE | {"stage": "splade"}]}))
    with pytest.raises(EvalError, match=r"report\.json: not an evaluation report: stages\.0\.stage"):
        load_report(file)
    file.write_bytes(b'{"run": "caf\xe9"')
    with pytest.raises(EvalError, match="not an evaluation report"):
        load_report(file)
