"""BEIR datasets: inspect them, and adapt them to quote-anchored judgments.

A dataset is a directory with `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`, each as it is or packed
(`.gz`, `.zst`), or a zip archive of these files, read in place. It is third-party input: every line is checked, and all
problems are gathered before anything is written.

References:
    Thakur, N., Reimers, N., Rücklé, A., Srivastava, A., Gurevych, I. (2021). BEIR: A Heterogeneous Benchmark for
    Zero-shot Evaluation of Information Retrieval Models. NeurIPS Datasets and Benchmarks.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from groundkit._native import CheckedFile, Dataset, QrelsFile, check_records, find_obstacles, publish, read_qrels
from groundkit.errors import EvalError
from groundkit.evals.id_map import ID_MAP_FILE, write_id_map
from groundkit.evals.progress import ProgressOption, Report, Watch, open_progress
from groundkit.evals.provenance import AdaptationRecord, HashName, OutputCorpus, OutputFile, SourceFile

if TYPE_CHECKING:
    import polars as pl

Layout = Literal["flat", "sharded"]

CORPUS_FILE: Final = "corpus.jsonl"
QUERIES_FILE: Final = "queries.jsonl"
QRELS_DIR: Final = "qrels"

_SAFE_SPLIT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# As many as anybody reads; all of them are counted.
_KEPT_PROBLEMS: Final = 100
# A screenful, with the lines around them.
_SHOWN_PROBLEMS: Final = 10
_SHOWN_SPLITS: Final = 20
_QUOTED_CHARACTERS: Final = 80

# What a `BeirPolicy` can do about a kind of problem.
_REMEDIES: Final = {
    "unsafe_document_id": 'document_ids="map"',
    "long_document_id": 'document_ids="map"',
    "device_document_id": 'document_ids="map"',
    "colliding_document_ids": 'document_ids="map"',
    "unsafe_query_id": 'query_ids="map"',
    "inadmissible_query_id": 'query_ids="map"',
    "graded_relevance": "min_relevance=1 (or higher)",
    "empty_document": 'empty_documents="drop" (unless it is judged relevant)',
    "missing_document": 'unknown_documents="drop"',
}


class BeirProblem(BaseModel):
    """One thing that is wrong with a dataset.

    Attributes:
        kind: What it is about, in snake case, such as `duplicate_document_id`.
        file: The file as the dataset has it, such as `corpus.jsonl` or `scifact.zip:scifact/corpus.jsonl`.
        line: The line of the file, from 1, blank lines counted; `None` where it is about the file as a whole.
        message: What is wrong, for people; names file and line.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    file: str
    line: int | None
    message: str


class BeirPolicy(BaseModel):
    """What to do, on request, about rows that the strict rules refuse; the default refuses them all.

    Attributes:
        document_ids: `"map"` gives document ids that are no safe file name, and those that differ from another in case
            only, another name: a readable slug and a hash of the id, the same in every run and every subset of the
            dataset. Admissible ids keep their names.
        query_ids: `"map"` does the same for query ids that cannot be the id of a judgment.
        min_relevance: Rows of at least this grade (1 or more) are relevant, others are not; `None` takes the grades 0
            and 1 only.
        empty_documents: `"drop"` leaves out documents without title and text, unless they are judged relevant.
        unknown_documents: `"drop"` leaves out relevant rows that name a document which the corpus lacks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    document_ids: Literal["strict", "map"] = "strict"
    query_ids: Literal["strict", "map"] = "strict"
    min_relevance: int | None = Field(default=None, ge=1)
    empty_documents: Literal["refuse", "drop"] = "refuse"
    unknown_documents: Literal["refuse", "drop"] = "refuse"

    @property
    def maps_ids(self) -> bool:
        """Whether any identifier may get another name."""
        return "map" in {self.document_ids, self.query_ids}


class PolicyCounts(BaseModel):
    """What a `BeirPolicy` did.

    Attributes:
        mapped_document_count: Documents with another name.
        mapped_query_count: Queries with a relevant row and another name.
        dropped_document_count: Documents left out for want of title and text.
        dropped_pair_count: Relevant pairs left out because the corpus lacks the document.
        below_threshold_pair_count: Pairs of a positive grade below `min_relevance`.
        lost_query_count: Queries that have a row of a positive grade but no relevant one that is left.
        repeated_row_count: Rows that repeat a pair with the same grade, each counted once only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mapped_document_count: int = 0
    mapped_query_count: int = 0
    dropped_document_count: int = 0
    dropped_pair_count: int = 0
    below_threshold_pair_count: int = 0
    lost_query_count: int = 0
    repeated_row_count: int = 0


_STRICT: Final = BeirPolicy()


class BeirInspection(BaseModel):
    """What a dataset holds and what is wrong with it.

    Counts cover the rows that could be read; where there are problems, they tell about the dataset as it is.

    Attributes:
        source_dir: The dataset's directory or archive, resolved.
        split: The split whose qrels were read.
        document_count: Rows of `corpus.jsonl` with an identifier.
        query_count: Queries with a relevant row.
        relevance_pair_count: Distinct pairs of query and document that are relevant.
        total_characters: Characters (code points) of all documents' texts, as they would be written.
        all_query_count: Rows of `queries.jsonl` with an identifier, judged or not.
        qrels_row_count: Well-formed rows of the qrels.
        grade_counts: Distinct pairs of each grade, in ascending order.
        unjudged_document_count: Documents that no row of the qrels names.
        unknown_document_count: Distinct documents that the qrels name, relevant or not, and the corpus lacks.
        unknown_query_count: Distinct queries that the qrels name, relevant or not, and `queries.jsonl` lacks.
        policy: What was to be done about rows that the strict rules refuse.
        policy_counts: What it did.
        problems: What is wrong, by file and line; the first ones of every kind.
        problem_count: How many problems there are; may be more than are kept.
        problem_counts: How many problems there are of each kind.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_dir: str
    split: str
    document_count: int
    query_count: int
    relevance_pair_count: int
    total_characters: int
    all_query_count: int
    qrels_row_count: int
    grade_counts: dict[int, int]
    unjudged_document_count: int
    unknown_document_count: int
    unknown_query_count: int
    policy: BeirPolicy = _STRICT
    policy_counts: PolicyCounts = PolicyCounts()
    problems: tuple[BeirProblem, ...]
    problem_count: int
    problem_counts: dict[str, int]

    @property
    def admissible(self) -> bool:
        """Whether `adapt_beir_dataset` accepts the dataset."""
        return self.problem_count == 0


class BeirAdaptationReport(BaseModel):
    """Counts and paths of an adapted dataset.

    Attributes:
        source_dir: The dataset's directory or archive, resolved.
        output_dir: Where it was adapted to, resolved.
        split: The split whose qrels were adapted.
        document_count: Documents written.
        query_count: Queries with a relevant row, each one judgment.
        relevance_pair_count: Distinct relevant pairs of query and document, each one gold quote.
        total_characters: Characters (code points) of all documents written.
        corpus_dir: Directory of the documents.
        judgments_path: File of the judgments.
        policy: What was done about rows that the strict rules refuse.
        policy_counts: How often.
        layout: Where documents stand below `corpus_dir`.
        id_map_path: File of the mapped ids; `None` where the policy maps none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_dir: str
    output_dir: str
    split: str
    document_count: int
    query_count: int
    relevance_pair_count: int
    total_characters: int
    corpus_dir: str
    judgments_path: str
    policy: BeirPolicy = _STRICT
    policy_counts: PolicyCounts = PolicyCounts()
    layout: Layout = "flat"
    id_map_path: str | None = None


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset that was checked: the open files, so that the bytes that were checked are those that are used.

    Attributes:
        inspection: What was found.
        corpus: The corpus; `None` where it could not be read.
        queries: The queries; `None` where they could not be read.
        qrels: The qrels; `None` where they could not be read.
        documents: The documents that the qrels name (`id`, `relevant`, `line`), in the order of `corpus.places`.
        judged_queries: The queries that the qrels name, in the order of `queries.places`.
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


def inspect_beir_dataset(
    source: str | os.PathLike[str],
    *,
    split: str = "test",
    policy: BeirPolicy = _STRICT,
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
        EvalError: `source` is neither a directory nor a sound zip archive, or `split` is no safe file name.

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
    with open_progress(progress) as report:
        return check_dataset(source, split=split, policy=policy, report=report).inspection


def adapt_beir_dataset(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    split: str = "test",
    policy: BeirPolicy = _STRICT,
    layout: Layout = "flat",
    durable: bool = False,
    hash: HashName = "blake3",
    progress: ProgressOption = None,
) -> BeirAdaptationReport:
    r"""Turn a BEIR dataset into a quote-anchored corpus: `corpus/<id>.txt` and `judgments.jsonl`.

    BEIR judges whole documents and a judgment quotes a document verbatim, so each gold quote is the document's whole
    text. A score over the adapted set is no published BEIR number.

    Everything is checked before the first byte is written. Then it is written beside its place and appears at once; a
    refusal, an exception, Ctrl-C or a full disk leaves the output as it was. `adaptation.json` beside the judgments
    says what the output was made of; see `groundkit.evals.provenance`.

    Args:
        source: Directory or zip archive, as for `inspect_beir_dataset`.
        output: Directory to write to; made where it is absent. Other files in it stay; `judgments.jsonl` is replaced.
        split: Name of the qrels file, without `.tsv`.
        policy: What to do about rows that the strict rules refuse. Where it maps ids, `id-map.parquet` beside the
            judgments gives `kind`, `source_id` and `adapted_id` of every mapped id.
        layout: `"flat"` puts all documents into one directory, `"sharded"` into 256 by a hash of the id,
            `corpus/<2 hexadecimal digits>/<id>.txt`, for file systems that take no more than some millions in one.
        durable: Whether everything is on the disk before it appears, so that a power loss leaves it whole or absent.
        hash: Which hash `adaptation.json` has of the source files and of all that was written: `"blake3"`, which
            several threads take, or `"sha256"`, which other tools give.
        progress: As for `inspect_beir_dataset`.

    Returns:
        Counts and paths.

    Raises:
        EvalError: The dataset has problems (`problems` and `problem_count` of the error tell them all), the output
            holds a corpus already or is no place to write to, another run is writing to it, or a source file changed
            after it was checked.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     source = pathlib.Path(name)
        ...     (source / "qrels").mkdir()
        ...     _ = (source / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "B"}\n')
        ...     _ = (source / "queries.jsonl").write_text('{"_id": "q1", "text": "what is B?"}\n')
        ...     _ = (source / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
        ...     report = adapt_beir_dataset(source, source / "adapted")
        ...     (source / "adapted/corpus/d1.txt").read_text()
        'T\n\nB'
        >>> report.document_count, report.query_count, report.relevance_pair_count, report.total_characters
        (1, 1, 1, 4)
    """
    if layout not in get_args(Layout):
        raise EvalError(f"unknown layout {layout!r}; expected one of {', '.join(get_args(Layout))}")
    if hash not in get_args(HashName):
        raise EvalError(f"unknown hash {hash!r}; expected one of {', '.join(get_args(HashName))}")
    destination = _resolve_output(output)
    with open_progress(progress) as report:
        dataset = check_dataset(source, split=split, policy=policy, hash=hash, report=report)
        obstacles = find_obstacles(destination, dataset.corpus, sharded=layout == "sharded")
        inspection = _with_obstacles(dataset.inspection, obstacles)
        if not inspection.admissible or dataset.corpus is None or dataset.queries is None:
            raise refusal(inspection)
        publish(
            destination,
            corpus=dataset.corpus,
            queries=dataset.queries,
            pairs=dataset.relevant.sort("query", "document"),  # by code point
            others=[(ID_MAP_FILE, write_id_map(dataset.id_map))] if policy.maps_ids else [],
            sharded=layout == "sharded",
            durable=durable,
            describe=partial(_describe, dataset, policy, layout, hash),
            progress=report("output", inspection.document_count),
        )
    return BeirAdaptationReport(
        source_dir=inspection.source_dir,
        output_dir=str(destination),
        split=split,
        document_count=inspection.document_count,
        query_count=inspection.query_count,
        relevance_pair_count=inspection.relevance_pair_count,
        total_characters=inspection.total_characters,
        corpus_dir=str(destination / "corpus"),
        judgments_path=str(destination / "judgments.jsonl"),
        policy=policy,
        policy_counts=inspection.policy_counts,
        layout=layout,
        id_map_path=str(destination / ID_MAP_FILE) if policy.maps_ids else None,
    )


def _describe(
    dataset: CheckedDataset,
    policy: BeirPolicy,
    layout: Layout,
    hash: HashName,
    documents: int,
    corpus_bytes: int,
    corpus_digest: str,
    written: list[tuple[str, int, str]],
) -> bytes:
    inspection = dataset.inspection
    files = {
        CORPUS_FILE: dataset.corpus,
        QUERIES_FILE: dataset.queries,
        f"{QRELS_DIR}/{inspection.split}.tsv": dataset.qrels,
    }
    return AdaptationRecord(
        split=inspection.split,
        layout=layout,
        policy=policy.model_dump(),
        counts={
            "document_count": documents,
            "query_count": inspection.query_count,
            "relevance_pair_count": inspection.relevance_pair_count,
            "total_characters": inspection.total_characters,
        },
        sources=tuple(
            SourceFile(name=name, kept_as=file.name, bytes=file.size, **{hash: file.digest})
            for name, file in files.items()
            if file is not None
        ),
        corpus=OutputCorpus(documents=documents, bytes=corpus_bytes, **{hash: corpus_digest}),
        files={name: OutputFile(bytes=size, **{hash: digest}) for name, size, digest in written},
    ).encode()


def check_dataset(
    source: str | os.PathLike[str],
    *,
    split: str,
    policy: BeirPolicy = _STRICT,
    hash: HashName | None = None,
    report: Report = lambda _phase, _documents: None,
) -> CheckedDataset:
    """Read and check all files of a dataset, take the hash of each where one is named, and keep them open.

    Raises:
        EvalError: `source` is neither a directory nor a sound zip archive, or `split` is no safe file name.
    """
    # polars takes a while to import, and significance tests do without it.
    from groundkit.evals import qrels as tables  # noqa: PLC0415

    if not isinstance(policy, BeirPolicy):
        raise TypeError(f"policy must be a BeirPolicy, not {type(policy).__name__}")
    path = _resolve_source(source)
    if not _SAFE_SPLIT.fullmatch(split):
        raise EvalError(
            f"unsafe BEIR split {_quote(split)}; expected letters, digits, dot, underscore, or hyphen, "
            "starting with a letter or digit"
        )
    dataset = Dataset(path)
    qrels_name = f"{QRELS_DIR}/{split}.tsv"
    problems = _Problems()

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
    absent_documents = tables.find_absent(documents, corpus.places) if corpus else documents.clear()
    dropped_pair_count = 0
    if policy.unknown_documents == "drop":
        known = tables.drop_documents(relevant, absent_documents)
        dropped_pair_count = relevant.height - known.height
        relevant = known

    judged_queries = tables.list_queries(rows, relevant, min_relevance)
    queries = check(QUERIES_FILE, judged_queries, watch=report("queries", None))
    absent_queries = tables.find_absent(judged_queries, queries.places) if queries else judged_queries.clear()
    id_map = tables.make_id_map(
        corpus.mapped if corpus and policy.document_ids == "map" else None,
        queries.mapped if queries and policy.query_ids == "map" else None,
        relevant,
    )
    if qrels:
        problems.add_native(qrels_name, qrels)
        _add_qrels_problems(problems, qrels_name, rows, distinct, policy)
        unknown_documents = absent_documents.clear() if policy.unknown_documents == "drop" else absent_documents
        for absent, kind, what, file in (
            (unknown_documents, "missing_document", "documents", CORPUS_FILE),
            (absent_queries, "missing_query", "queries", QUERIES_FILE),
        ):
            for identifier, line in problems.add_rows(kind, absent.filter("relevant"), "id", "line"):
                message = f"BEIR qrels reference missing {what}: {_quote(identifier)} is not in {file}"
                problems.keep(kind, qrels_name, line, message)
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


def refusal(inspection: BeirInspection) -> EvalError:
    """Make the error that says why a dataset is refused, at most a screenful, with what can be done about it."""
    count = inspection.problem_count
    shown = _pick(inspection.problems, _SHOWN_PROBLEMS)
    what = "1 problem" if count == 1 else f"{count:,} problems"
    dataset = f"{_quote(inspection.source_dir)}, split {inspection.split!r},"
    lines = [f"BEIR dataset {dataset} is refused for {what}; nothing was written"]
    lines += [f"  {problem.message}" for problem in shown]
    if count > len(shown):
        lines.append(f"  ... and {count - len(shown):,} more")
    remedies = [remedy for kind, remedy in _REMEDIES.items() if kind in inspection.problem_counts]
    if remedies:
        lines.append("BeirPolicy options that resolve some of this: " + ", ".join(dict.fromkeys(remedies)))
    return EvalError("\n".join(lines), problems=inspection.problems, problem_count=count)


def _with_obstacles(inspection: BeirInspection, obstacles: list[str]) -> BeirInspection:
    """Add what stands in the way of writing to what is wrong with the dataset."""
    if not obstacles:
        return inspection
    problems = [BeirProblem(kind="output", file="output", line=None, message=message) for message in obstacles]
    return inspection.model_copy(
        update={
            "problems": (*problems, *inspection.problems)[:_KEPT_PROBLEMS],
            "problem_count": inspection.problem_count + len(obstacles),
            "problem_counts": inspection.problem_counts | {"output": len(obstacles)},
        }
    )


@dataclass
class _Problems:
    """Problems as they are found: the first ones of every kind in every file, and counts."""

    counts: dict[str, int] = field(default_factory=dict)
    kept: list[BeirProblem] = field(default_factory=list)

    def count(self, kind: str, count: int) -> None:
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count

    def keep(self, kind: str, file: str, line: int | None, message: str) -> None:
        place = f"{file} line {line}" if line is not None else file
        self.kept.append(BeirProblem(kind=kind, file=file, line=line, message=f"{place}: {message}"))

    def add_rows(self, kind: str, rows: "pl.DataFrame", *columns: str) -> list[tuple[Any, ...]]:
        """Count all rows and return the columns of those whose problems are kept."""
        self.count(kind, rows.height)
        return rows.head(_KEPT_PROBLEMS).select(columns).rows()

    def add_file(self, file: str, message: str) -> None:
        self.count("unreadable_file", 1)
        self.kept.append(BeirProblem(kind="unreadable_file", file=file, line=None, message=message))

    def add_native(self, file: str, checked: CheckedFile | QrelsFile) -> None:
        for kind, count in checked.problem_counts.items():
            self.count(kind, count)
        for kind, line, message in checked.problems:
            self.kept.append(BeirProblem(kind=kind, file=file, line=line, message=message))

    def select(self) -> tuple[BeirProblem, ...]:
        def position(problem: BeirProblem) -> tuple[int, int]:
            order = 0 if CORPUS_FILE in problem.file else 1 if QUERIES_FILE in problem.file else 2
            return order, problem.line or 0

        return _pick(sorted(self.kept, key=position), _KEPT_PROBLEMS)


def _pick(problems: Sequence[BeirProblem], limit: int) -> tuple[BeirProblem, ...]:
    """Pick the first of every kind, then the first of all up to `limit`, and keep their order."""
    first_of_kind = {problem.kind: number for number, problem in reversed(list(enumerate(problems)))}
    picked = set(first_of_kind.values())
    for number in range(len(problems)):
        if len(picked) >= limit:
            break
        picked.add(number)
    return tuple(problems[number] for number in sorted(picked))


def _check_file(
    dataset: Dataset,
    name: str,
    judged: "pl.DataFrame",
    *,
    policy: BeirPolicy,
    hash: HashName | None,
    problems: _Problems,
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
    problems: _Problems, name: str, rows: "pl.DataFrame", distinct: "pl.DataFrame", policy: BeirPolicy
) -> None:
    from groundkit.evals import qrels as tables  # noqa: PLC0415 - as above

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
            f"query {_quote(query)} and document {_quote(document)} have grade {grade} here "
            f"and grade {first_grade} on line {first_line}"
        )
        problems.keep("conflicting_grades", name, line, message)


def _resolve_source(source: str | os.PathLike[str]) -> Path:
    path = Path(source)
    try:
        resolved = path.resolve(strict=True)
        if resolved.is_dir() or resolved.is_file():
            return resolved
        reason = "neither a directory nor a zip archive"
    # A loop of links is a RuntimeError before Python 3.13; a NUL is a ValueError.
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise EvalError(f"cannot read BEIR source directory {_quote(str(path))}: {reason}")


def _resolve_output(output: str | os.PathLike[str]) -> Path:
    path = Path(output)
    try:
        resolved = path.resolve()
        # What cannot even be asked for, such as a path longer than the system takes, cannot be opened later.
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            os.lstat(resolved / "judgments.jsonl")
    # A loop of links is a RuntimeError before Python 3.13; a NUL is a ValueError.
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise EvalError(f"cannot resolve output directory {_quote(str(path))}: {reason}") from error
    return resolved


def _describe_splits(dataset: Dataset) -> str:
    try:
        splits = dataset.splits()
    except EvalError:
        splits = []
    if not splits:
        return f"there is no split in {QRELS_DIR}/"
    more = f" and {len(splits) - _SHOWN_SPLITS} more" if len(splits) > _SHOWN_SPLITS else ""
    return f"splits present: {', '.join(map(_quote, splits[:_SHOWN_SPLITS]))}{more}"


def _quote(text: str) -> str:
    """Quote foreign text for a message: shortened, and no control or format character reaches a terminal."""
    if len(text) > _QUOTED_CHARACTERS:
        return f"{text[:_QUOTED_CHARACTERS]!r}... ({len(text)} characters)"
    return repr(text)
