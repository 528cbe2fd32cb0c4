"""Rank a BEIR dataset with three rankers, write TREC runs, and compare all of them with each other.

The rankers are BM25 (bm25s), latent semantic indexing (a truncated SVD of tf-idf: the oldest dense retriever, which
needs no model to download) and the reciprocal rank fusion of both.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import bm25s
import numpy as np
from groundkit.errors import EvalError
from groundkit.evals.runs import score_runs
from groundkit.evals.sweep import compare_systems
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

DEPTH: Final = 100
DIMENSIONS: Final = 200
FUSION_CONSTANT: Final = 60
MEASURES: Final = ("nDCG@10", "RR@10", "R@1", "R@10")

Floats = NDArray[np.float64]
Rankings = list[list[int]]


def read_texts(path: Path) -> dict[str, str]:
    """Read the texts of a BEIR file by id."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {row["_id"]: f"{row.get('title', '')} {row['text']}" for row in rows}


def tokenize(texts: Sequence[str]) -> list[list[str]]:
    """Split texts into terms."""
    tokens: list[list[str]] = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return tokens


def best(scores: Floats) -> list[int]:
    """Return the first documents, ties in their order."""
    return [int(place) for place in np.argsort(-scores, kind="stable")[:DEPTH]]


def rank_bm25(documents: list[list[str]], queries: list[list[str]]) -> Rankings:
    """Rank by BM25 with the parameters that Anserini reports for BEIR."""
    ranker = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    ranker.index(documents, show_progress=False)
    return [best(ranker.get_scores(terms)) for terms in queries]


def rank_lsi(documents: list[list[str]], queries: list[list[str]]) -> Rankings:
    """Rank by the cosine in the space of the leading singular vectors of tf-idf."""
    terms = {term: place for place, term in enumerate(sorted({term for document in documents for term in document}))}
    frequency = Counter(term for document in documents for term in set(document))
    weight = np.array([np.log(len(documents) / frequency[term]) for term in terms])

    def vectors(texts: list[list[str]]) -> sparse.csr_array:
        counts = [Counter(term for term in text if term in terms) for text in texts]
        cells = [
            (row, terms[term], 1.0 + np.log(count)) for row, text in enumerate(counts) for term, count in text.items()
        ]
        rows, columns, values = zip(*cells, strict=True)
        return sparse.csr_array((values, (rows, columns)), shape=(len(texts), len(terms))).multiply(weight).tocsr()

    matrix = vectors(documents)
    start = np.ones(min(matrix.shape))
    _, _, directions = linalg.svds(matrix, k=min(DIMENSIONS, min(matrix.shape) - 1), v0=start)

    def embed(vector: sparse.csr_array) -> Floats:
        dense = np.asarray(vector @ directions.T, dtype=np.float64)
        lengths: Floats = np.linalg.norm(dense, axis=1, keepdims=True)
        return dense / np.maximum(lengths, 1e-12)

    similarity = embed(vectors(queries)) @ embed(matrix).T
    return [best(np.round(row, 9)) for row in similarity]


def fuse(rankings: Sequence[Rankings]) -> Rankings:
    """Fuse rankings by the sum of reciprocal ranks."""
    fused = []
    for lists in zip(*rankings, strict=True):
        scores: Counter[int] = Counter()
        for ranking in lists:
            for rank, document in enumerate(ranking, start=1):
                scores[document] += 1.0 / (FUSION_CONSTANT + rank)  # type: ignore[assignment]
        fused.append(sorted(scores, key=lambda document: (-scores[document], document))[:DEPTH])
    return fused


def write_run(path: Path, rankings: Rankings, documents: Sequence[str], queries: Sequence[str]) -> None:
    """Write a TREC run file, whose scores fall with the rank."""
    with path.open("w", encoding="utf-8") as file:
        for query_id, ranking in zip(queries, rankings, strict=True):
            for rank, document in enumerate(ranking, start=1):
                file.write(f"{query_id} Q0 {documents[document]} {rank} {1.0 / rank} {path.stem}\n")


def judged_queries(path: Path, queries: Mapping[str, str]) -> dict[str, str]:
    """Return the queries that have a judgment."""
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    judged = {line.split("\t")[0] for line in lines if line.strip()}
    return {query_id: text for query_id, text in queries.items() if query_id in judged}


def main() -> int:
    """Run the example and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a BEIR dataset: corpus.jsonl, queries.jsonl, qrels/test.tsv")
    parser.add_argument("output", type=Path, help="folder for the runs, the result, its table and its plot")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    qrels = arguments.source / "qrels" / "test.tsv"
    documents = read_texts(arguments.source / "corpus.jsonl")
    queries = judged_queries(qrels, read_texts(arguments.source / "queries.jsonl"))
    texts = tokenize(list(documents.values())), tokenize(list(queries.values()))
    bm25, lsi = rank_bm25(*texts), rank_lsi(*texts)
    runs = {}
    for name, rankings in (("BM25", bm25), ("LSI", lsi), ("RRF", fuse([bm25, lsi]))):
        runs[name] = arguments.output / f"{name}.run"
        write_run(runs[name], rankings, list(documents), list(queries))
    try:
        result = compare_systems(score_runs(runs, qrels, MEASURES))
        (arguments.output / "sweep.json").write_text(result.model_dump_json(indent=1), encoding="utf-8")
        (arguments.output / "sweep.md").write_text(result.to_markdown(), encoding="utf-8")
        result.plot(arguments.output / "sweep.svg")
    except EvalError as error:
        print(error, file=sys.stderr)
        return 1
    print(result.to_markdown())
    for measure in MEASURES:
        print(f"not separable from the best in {measure}: {', '.join(result.group_of_best(measure))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
