"""Adapt a BEIR dataset, rank it with two settings of BM25 and ask whether their difference is real.

The baseline has the defaults of bm25s, the candidate those that Anserini reports for BEIR. ``make demo`` runs this.
"""

import argparse
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import bm25s
import ir_measures
import numpy as np
from groundkit.errors import EvalError
from groundkit.evals.beir import adapt_beir_dataset
from groundkit.evals.corpus import Judgment, load_judgments
from groundkit.evals.significance import BootstrapResult, MetricName, paired_bootstrap
from ir_measures import RR, Measure, R, nDCG
from rich import box
from rich.console import Console
from rich.table import Table

DEPTH: Final = 10
MEASURES: Final[Mapping[MetricName, Measure]] = {
    "ndcg_at_10": nDCG @ 10,
    "mrr": RR @ 10,
    "recall_at_1": R @ 1,
    "recall_at_5": R @ 5,
    "recall_at_10": R @ 10,
}
# Name, term-frequency saturation k1 and length normalisation b.
BASELINE: Final = ("BM25 (k1=1.5, b=0.75)", 1.5, 0.75)
CANDIDATE: Final = ("BM25 (k1=0.9, b=0.4)", 0.9, 0.4)
# Below this, percentile intervals tend to be too short.
FEW_QUERIES: Final = 50
WIDTH: Final = 80

Run = dict[str, dict[str, float]]


def rank(documents: Mapping[str, str], judgments: Sequence[Judgment], *, k1: float, b: float) -> Run:
    """Rank all documents for every query with BM25.

    Returns:
        The first `DEPTH` documents of each query, with scores that keep their order; ties go by document name.
    """
    names = sorted(documents)
    ranker = bm25s.BM25(method="lucene", k1=k1, b=b)
    ranker.index(_tokenize([documents[name] for name in names]), show_progress=False)
    run: Run = {}
    for judgment, terms in zip(judgments, _tokenize([judgment.query for judgment in judgments]), strict=True):
        best = np.argsort(-ranker.get_scores(terms), kind="stable")[:DEPTH]
        run[judgment.query_id] = {names[index]: float(DEPTH - place) for place, index in enumerate(best)}
    return run


def score(judgments: Sequence[Judgment], run: Run) -> dict[MetricName, dict[str, float]]:
    """Score a run query by query against the judgments' documents."""
    qrels = {judgment.query_id: {span.doc: 1 for span in judgment.gold} for judgment in judgments}
    metric_of = {measure: metric for metric, measure in MEASURES.items()}
    scores: dict[MetricName, dict[str, float]] = {metric: {} for metric in MEASURES}
    for value in ir_measures.iter_calc(list(metric_of), qrels, run):
        scores[metric_of[value.measure]][value.query_id] = value.value
    return scores


def compare(documents: Mapping[str, str], judgments: Sequence[Judgment]) -> tuple[Table, list[BootstrapResult]]:
    """Rank with both settings and compare them on every metric."""
    names = [name for name, _, _ in (BASELINE, CANDIDATE)]
    baseline, candidate = (
        score(judgments, rank(documents, judgments, k1=k1, b=b)) for _, k1, b in (BASELINE, CANDIDATE)
    )
    headings = ("metric", "baseline", "candidate", "delta", "95 % interval", "p", "significant")
    table = Table(*headings, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    results = []
    for metric, measure in MEASURES.items():
        result = paired_bootstrap(
            baseline[metric], candidate[metric], baseline_name=names[0], candidate_name=names[1], metric=metric
        )
        results.append(result)
        table.add_row(
            str(measure),
            *(f"{sum(scores[metric].values()) / result.query_count:.4f}" for scores in (baseline, candidate)),
            f"{result.effect:+.4f}",
            f"[{result.confidence_interval_low:+.4f}, {result.confidence_interval_high:+.4f}]",
            f"{result.p_value_two_sided:.4f}",
            "yes" if result.significant else "no",
        )
    return table, results


def explain(results: Sequence[BootstrapResult]) -> list[str]:
    """Say in words what the comparisons mean."""
    count = results[0].query_count
    better, worse, open_questions = (
        [str(MEASURES[result.metric]) for result in results if (result.significant, result.effect > 0.0) in signs]
        for signs in ({(True, True)}, {(True, False)}, {(False, True), (False, False)})
    )
    words = [
        f"The candidate is {verdict} than the baseline on {', '.join(measures)}: the interval of the mean delta "
        "excludes zero."
        for verdict, measures in (("better", better), ("worse", worse))
        if measures
    ]
    if open_questions:
        words.append(
            f"On {', '.join(open_questions)} these {count} queries do not separate the two: the interval contains "
            "zero, which does not show that they are equal."
        )
    words.append(
        f"Each row is one test at 95 %, and {len(results)} tests on the same queries are not corrected for their "
        "number. Whole documents were ranked with plain BM25, so no mean here is a published BEIR figure."
    )
    if count < FEW_QUERIES:
        words.append(f"With fewer than {FEW_QUERIES} queries, percentile intervals tend to be too short.")
    return words


def main() -> int:
    """Run the demonstration and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a BEIR dataset: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv")
    parser.add_argument("--output", type=Path, help="where to keep the adapted dataset; a temporary folder by default")
    parser.add_argument("--split", default="test", help="which qrels to use (default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        try:
            report = adapt_beir_dataset(
                arguments.source, arguments.output or Path(temporary) / "adapted", split=arguments.split
            )
            judgments = load_judgments(report.judgments_path)
        except EvalError as error:
            print(error, file=sys.stderr)
            return 1
        documents = {path.name: path.read_text(encoding="utf-8") for path in Path(report.corpus_dir).iterdir()}
        print(
            f"Adapted {report.document_count:,} documents, {report.query_count:,} queries and "
            f"{report.relevance_pair_count:,} relevant pairs"
        )
        table, results = compare(documents, judgments)
        print(f"Baseline {results[0].baseline}, candidate {results[0].candidate}\n")
        Console(width=WIDTH).print(table)
        print()
        for sentence in explain(results):
            print(textwrap.fill(sentence, WIDTH))
        if arguments.output:
            print(f"The adapted dataset is in {report.output_dir}")
    return 0


def _tokenize(texts: list[str]) -> list[list[str]]:
    tokens: list[list[str]] = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
    return tokens


if __name__ == "__main__":
    sys.exit(main())
