"""BEIR datasets: inspect them, and adapt them to quote-anchored judgments.

A dataset is a directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`, each as it is or packed
(`.gz`, `.zst`), or a zip archive of these files, read in place. It is third-party input: every line is checked, and all
problems are gathered before anything is written.

References:
    Thakur, N., Reimers, N., Rücklé, A., Srivastava, A., Gurevych, I. (2021). BEIR: A Heterogeneous Benchmark for
    Zero-shot Evaluation of Information Retrieval Models. NeurIPS Datasets and Benchmarks.
"""

from groundkit.evals.beir.adapt import adapt_beir_dataset
from groundkit.evals.beir.inspect import inspect_beir_dataset
from groundkit.evals.beir.models import BeirAdaptationReport, BeirInspection, BeirPolicy, Layout, PolicyCounts
from groundkit.evals.beir.problem import BeirProblem

__all__ = [
    "BeirAdaptationReport",
    "BeirInspection",
    "BeirPolicy",
    "BeirProblem",
    "Layout",
    "PolicyCounts",
    "adapt_beir_dataset",
    "inspect_beir_dataset",
]
