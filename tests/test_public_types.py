"""Public calls as a user's type checker sees them; mypy checks what `assert_type` says."""

from pathlib import Path
from typing import Literal, assert_type

import pytest
from datasets import REAL_REPORT
from groundkit.errors import EvalError
from groundkit.evals.beir import BeirAdaptationReport, BeirInspection, adapt_beir_dataset, inspect_beir_dataset
from groundkit.evals.corpus import GoldSpan, Judgment, load_judgments
from groundkit.evals.schema import EvalReport, QueryMetrics, load_report
from groundkit.evals.significance import BootstrapResult, compare_report_stages, paired_bootstrap

SMALL = Path(__file__).resolve().parents[1] / "examples" / "beir-small"


def test_a_comparison_has_precise_types() -> None:
    result = paired_bootstrap({"q": 0.0}, {"q": 1}, baseline_name="a", candidate_name="b", metric="mrr", resamples=10)
    assert_type(result, BootstrapResult)
    assert_type(result.metric, Literal["recall_at_1", "recall_at_5", "recall_at_10", "mrr", "ndcg_at_10"])
    assert_type(result.effect, float)
    assert_type(result.significant, bool)
    with pytest.raises(EvalError, match="unknown metric"):
        paired_bootstrap({"q": 0.0}, {"q": 1.0}, baseline_name="a", candidate_name="b", metric="map")  # type: ignore[arg-type]


def test_a_report_has_precise_types() -> None:
    report = load_report(REAL_REPORT)
    assert_type(report, EvalReport)
    assert_type(report.stages[0].stage, Literal["bm25", "dense", "fusion", "rerank"])
    assert_type(report.stages[0].queries[0].metrics, QueryMetrics | None)
    result = compare_report_stages(report, baseline="bm25", candidate="dense", metric="ndcg_at_10", resamples=10)
    assert_type(result, BootstrapResult)
    with pytest.raises(EvalError, match="does not contain stage"):
        compare_report_stages(report, baseline="bm25", candidate="splade", metric="mrr")  # type: ignore[arg-type]


def test_an_adaptation_has_precise_types(tmp_path: Path) -> None:
    inspection = inspect_beir_dataset(str(SMALL), split="test")
    assert_type(inspection, BeirInspection)
    assert_type(inspection.grade_counts, dict[int, int])
    report = adapt_beir_dataset(SMALL, tmp_path)
    assert_type(report, BeirAdaptationReport)
    judgments = load_judgments(report.judgments_path)
    assert_type(judgments, list[Judgment])
    assert_type(judgments[0].gold, list[GoldSpan])
    assert len(judgments) == report.query_count
