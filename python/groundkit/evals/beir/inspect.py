"""Read and check a dataset, and tell everything that is wrong with it."""

import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from groundkit._native import CheckedFile, Dataset, QrelsFile, check_records, read_qrels
from groundkit.errors import EvalError
from groundkit.evals.beir.models import STRICT, BeirInspection, BeirPolicy, PolicyCounts
from groundkit.evals.beir.refusal import CORPUS_FILE, QUERIES_FILE, UNREAD_ROWS, Problems
from groundkit.evals.files import describe_reason
from groundkit.evals.fork import using_polars
from groundkit.evals.progress import ProgressOption, Report, Watch, open_progress
from groundkit.evals.provenance import HashName
from groundkit.evals.quoting import quote, quote_first, quote_path

if TYPE_CHECKING:
    import polars as pl

QRELS_DIR: Final = "qrels"

_SAFE_SPLIT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_SHOWN_SPLITS: Final = 20


def inspect_beir_dataset(
    source: str | os.PathLike[str],
    *,
    split: str = "test",
    policy: BeirPolicy = STRICT,
    progress: ProgressOption = None,
) -> BeirInspection:
    r"""Check a BEIR dataset without writing anything.

    Bad content is reported in the result, not raised, and so is a file that is missing or cannot be read: one call
    finds everything that `adapt_beir_dataset` would refuse.

    Args:
        source: Directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`, each as it is, with `.gz` or
            with `.zst`; or a zip archive of them, with at most one folder around them.
        split: Name of the qrels file, without `.tsv`.
        policy: What to do about rows that the strict rules refuse.
        progress: `True` shows a bar on a terminal or in a notebook; a callable gets a `BeirProgress` some twenty times
            a second, and what it raises ends the run.

    Returns:
        Counts, grades and problems.

    Raises:
        EvalError: `source` is neither a directory nor a sound zip archive, `split` is no safe file name, or polars
            cannot be used: this process was forked after it had been used, or no thread can be started.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     source = pathlib.Path(name)
        ...     (source / "qrels").mkdir()
        ...     _ = (source / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "B"}\n')
        ...     _ = (source / "queries.jsonl").write_text('{"_id": "q1", "text": "what is B?"}\n')
        ...     _ = (source / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\n")
        ...     inspection = inspect_beir_dataset(source)
        >>> inspection.document_count, inspection.grade_counts, inspection.admissible
        (1, {2: 1}, False)
        >>> print(inspection.problems[0].message)
        qrels/test.tsv line 2: binary qrels only, found grade 2; BeirPolicy.min_relevance sets a threshold
    """
    with open_progress(progress) as report, using_polars():
        return check_dataset(source, split=split, policy=policy, report=report).inspection


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset that was checked: the open files, so that the bytes that were checked are those that are used.

    Attributes:
        inspection: What was found.
        corpus: The corpus; `None` where it could not be read.
        queries: The queries; `None` where they could not be read.
        qrels: The qrels; `None` where they could not be read.
        documents: The documents that the qrels name (`id`, `relevant`, `line`), in the order of `corpus.judged_lines`.
        judged_queries: The queries that the qrels name, in the order of `queries.judged_lines`.
        relevant: The relevant pairs (`query`, `document`), in any order.
        id_map: The identifiers that get another name (`kind`, `source_id`, `adapted_id`).
    """

    inspection: BeirInspection
    corpus: CheckedFile | None
    queries: CheckedFile | None
    qrels: QrelsFile | None
    documents: "pl.DataFrame"
    judged_queries: "pl.DataFrame"
    relevant: "pl.DataFrame"
    id_map: "pl.DataFrame"


def check_dataset(
    source: str | os.PathLike[str],
    *,
    split: str,
    policy: BeirPolicy = STRICT,
    hash: HashName | None = None,
    report: Report = lambda _phase, _documents: None,
) -> CheckedDataset:
    """Read and check all files of a dataset, take the hash of each where one is named, and keep them open.

    Raises:
        EvalError: `source` is neither a directory nor a sound zip archive, or `split` is no safe file name.
    """
    # polars takes a while to import, and significance tests do without it.
    from groundkit.evals.beir import qrels as tables  # noqa: PLC0415

    if not isinstance(policy, BeirPolicy):
        raise TypeError(f"policy must be a BeirPolicy, not {type(policy).__name__}")
    path = _resolve_source(source)
    if not _SAFE_SPLIT.fullmatch(split):
        raise EvalError(
            f"unsafe BEIR split {quote(split)}; expected letters, digits, dot, underscore, or hyphen, "
            "starting with a letter or digit"
        )
    dataset = Dataset(path)
    qrels_name = f"{QRELS_DIR}/{split}.tsv"
    problems = Problems()

    qrels = None
    try:
        qrels = read_qrels(
            dataset,
            qrels_name,
            any_document=policy.document_ids == "map",
            any_query=policy.query_ids == "map",
            hash=hash,
            progress=report("qrels", None),
        )
        qrels_name = qrels.name
    except EvalError as error:
        problems.add_file(qrels_name, f"{error}; {_describe_splits(dataset)}")
    rows = tables.frame_rows(qrels.rows) if qrels else tables.no_rows()
    distinct = tables.distinct_pairs(rows)
    min_relevance = policy.min_relevance or 1
    documents = tables.list_identifiers(rows, "document", min_relevance)
    relevant = tables.select_relevant(distinct, min_relevance)

    check = partial(_check_file, dataset, policy=policy, hash=hash, problems=problems)
    corpus = check(CORPUS_FILE, documents, watch=report("corpus", None))
    absent_documents = tables.find_absent(documents, corpus.judged_lines) if corpus else documents.clear()
    dropped_pair_count = 0
    if policy.unknown_documents == "drop":
        known = tables.drop_documents(relevant, absent_documents)
        dropped_pair_count = relevant.height - known.height
        relevant = known

    judged_queries = tables.list_queries(rows, relevant, min_relevance)
    queries = check(QUERIES_FILE, judged_queries, watch=report("queries", None))
    absent_queries = tables.find_absent(judged_queries, queries.judged_lines) if queries else judged_queries.clear()
    id_map = tables.make_id_map(
        corpus.mapped if corpus and policy.document_ids == "map" else None,
        queries.mapped if queries and policy.query_ids == "map" else None,
        relevant,
    )
    if qrels:
        problems.add_native(qrels_name, qrels)
        _add_qrels_problems(problems, qrels_name, rows, distinct, policy)
        if policy.unknown_documents == "refuse":
            _add_missing(problems, "missing_document", qrels_name, absent_documents, corpus)
        _add_missing(problems, "missing_query", qrels_name, absent_queries, queries)
        # Rows that could not be read may be the relevant ones.
        if relevant.is_empty() and not qrels.problem_counts.keys() & {
            "not_utf8",
            "qrels_header",
            "qrels_row",
            "qrels_score",
        }:
            problems.count("no_positive_relevance", 1)
            message = f"BEIR qrels for split {split!r} contain no positive relevance rows"
            problems.keep("no_positive_relevance", qrels_name, None, message)

    return CheckedDataset(
        inspection=BeirInspection(
            source_dir=str(path),
            split=split,
            document_count=corpus.record_count if corpus else 0,
            query_count=relevant["query"].n_unique(),
            relevance_pair_count=relevant.height,
            total_characters=corpus.character_count if corpus else 0,
            all_query_count=queries.record_count if queries else 0,
            qrels_row_count=rows.height,
            grade_counts=tables.count_grades(distinct),
            unjudged_document_count=_count_unjudged(corpus, documents, absent_documents),
            unknown_document_count=absent_documents.height,
            unknown_query_count=absent_queries.height,
            policy=policy,
            policy_counts=PolicyCounts(
                mapped_document_count=id_map.filter(kind="document").height,
                mapped_query_count=id_map.filter(kind="query").height,
                dropped_document_count=corpus.dropped_count if corpus else 0,
                dropped_pair_count=dropped_pair_count,
                below_threshold_pair_count=tables.count_below(distinct, min_relevance),
                lost_query_count=tables.count_lost_queries(rows, relevant),
                repeated_row_count=rows.height - distinct.height,
            ),
            problems=problems.select(),
            problem_count=sum(problems.counts.values()),
            problem_counts=dict(sorted(problems.counts.items())),
        ),
        corpus=corpus,
        queries=queries,
        qrels=qrels,
        documents=documents,
        judged_queries=judged_queries,
        relevant=relevant,
        id_map=id_map,
    )


def _count_unjudged(corpus: CheckedFile | None, documents: "pl.DataFrame", absent: "pl.DataFrame") -> int:
    if corpus is None:
        return 0
    return corpus.record_count + corpus.dropped_count - documents.height + absent.height


def _check_file(
    dataset: Dataset,
    name: str,
    judged: "pl.DataFrame",
    *,
    policy: BeirPolicy,
    hash: HashName | None,
    problems: Problems,
    watch: Watch | None,
) -> CheckedFile | None:
    documents = name == CORPUS_FILE
    try:
        checked = check_records(
            dataset,
            name,
            documents=documents,
            judged=judged.select("id", "relevant"),
            map_ids=(policy.document_ids if documents else policy.query_ids) == "map",
            drop_empty=documents and policy.empty_documents == "drop",
            hash=hash,
            progress=watch,
        )
    except EvalError as error:
        problems.add_file(name, str(error))
        return None
    problems.add_native(checked.name, checked)
    return checked


def _add_qrels_problems(
    problems: Problems, name: str, rows: "pl.DataFrame", distinct: "pl.DataFrame", policy: BeirPolicy
) -> None:
    from groundkit.evals.beir import qrels as tables  # noqa: PLC0415 - as above

    graded = tables.find_graded(rows) if policy.min_relevance is None else rows.clear()
    for line, grade in problems.add_rows("graded_relevance", graded, "line", "grade"):
        message = f"binary qrels only, found grade {grade}; BeirPolicy.min_relevance sets a threshold"
        problems.keep("graded_relevance", name, line, message)
    conflicts = tables.find_conflicts(distinct)
    columns = ("query", "document", "line", "grade", "first_line", "first_grade")
    for query, document, line, grade, first_line, first_grade in problems.add_rows(
        "conflicting_grades", conflicts, *columns
    ):
        message = (
            f"query {quote(query)} and document {quote(document)} have grade {grade} here "
            f"and grade {first_grade} on line {first_line}"
        )
        problems.keep("conflicting_grades", name, line, message)


def _add_missing(
    problems: Problems,
    kind: Literal["missing_document", "missing_query"],
    qrels_name: str,
    absent: "pl.DataFrame",
    checked: CheckedFile | None,
) -> None:
    """Add what relevant rows name and the file that was checked lacks."""
    if checked is None:
        return
    what = "documents" if kind == "missing_document" else "queries"
    unread = sum(count for name, count in checked.problem_counts.items() if name in UNREAD_ROWS)
    rows = "1 row" if unread == 1 else f"{unread:,} rows"
    where = f"{checked.name}, where {rows} could not be read" if unread else checked.name
    for identifier, line in problems.add_rows(kind, absent.filter("relevant"), "id", "line"):
        message = f"BEIR qrels reference missing {what}: {quote(identifier)} is not in {where}"
        problems.keep(kind, qrels_name, line, message)


def _resolve_source(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    try:
        resolved = path.resolve(strict=True)
        if resolved.is_dir() or resolved.is_file():
            return resolved
        reason = "neither a directory nor a zip archive"
    # A loop of links is a RuntimeError before Python 3.13; a NUL is a ValueError.
    except (OSError, RuntimeError, ValueError) as error:
        reason = describe_reason(error)
    raise EvalError(f"cannot read BEIR source directory {quote_path(path)}: {reason}")


def _describe_splits(dataset: Dataset) -> str:
    try:
        splits = dataset.splits()
    except EvalError:
        splits = []
    if not splits:
        return f"there is no split in {QRELS_DIR}/"
    return f"splits present: {quote_first(splits, _SHOWN_SPLITS)}"
