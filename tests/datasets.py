"""BEIR datasets for tests: small ones, whatever is asked for, and the identifiers of published ones."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Judged = tuple[str, str, int]

DATA = Path(__file__).with_name("data")
REAL_REPORT = DATA / "report.json"

HEADER = "query-id\tcorpus-id\tscore\n"
CORPUS = '{"_id": "d1", "title": "T", "text": "B"}\n'
QUERIES = '{"_id": "q1", "text": "what is B?"}\n'
QRELS = HEADER + "q1\td1\t1\n"

REAL_IDS = sorted(path.stem for path in (DATA / "real-ids").glob("*.tsv"))


def write_files(
    directory: Path,
    corpus: str | bytes | None = CORPUS,
    queries: str | bytes | None = QUERIES,
    qrels: str | bytes | None = QRELS,
) -> Path:
    """Write the three files as they are given, but those that are `None`; by default one document and one query."""
    (directory / "qrels").mkdir(parents=True, exist_ok=True)
    for name, content in {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels}.items():
        if content is not None:
            (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def write_dataset(
    directory: Path,
    corpus: Sequence[Row] | Mapping[str, str],
    queries: Sequence[Row] | Mapping[str, str],
    qrels: Sequence[Judged],
) -> Path:
    """Write rows of JSON, or texts by identifier, and the judgments of them."""
    judged = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in qrels)
    return write_files(directory, _encode_rows(corpus), _encode_rows(queries), HEADER + judged)


def write_small_dataset(directory: Path, documents: int = 3) -> Path:
    """Write some documents and one query that has two of them."""
    corpus = [{"_id": f"d{number}", "title": "T", "text": f"text {number}"} for number in range(documents)]
    return write_dataset(directory, corpus, {"q1": "what?"}, [("q1", "d1", 1), ("q1", "d0", 1)])


def read_real_ids(name: str) -> list[Judged]:
    """Read the rows of a published set."""
    lines = (DATA / "real-ids" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [(query, document, int(grade)) for query, document, grade in (line.split("\t") for line in lines[1:])]


def write_real_ids(directory: Path, name: str) -> Path:
    """Write a dataset with the identifiers and grades of a published set, and a text of our own for each."""
    rows = read_real_ids(name)
    documents = sorted({document for _, document, _ in rows})
    random.Random(name).shuffle(documents)
    queries = {query: f"What is {query}?" for query, _, _ in rows}
    return write_dataset(directory, {document: f"About {document}." for document in documents}, queries, rows)


def _encode_rows(rows: Sequence[Row] | Mapping[str, str]) -> str:
    if isinstance(rows, Mapping):
        rows = [{"_id": identifier, "text": text} for identifier, text in rows.items()]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
