"""Score TREC run files against judgments, query by query, with any measure of ir_measures.

A run that scores a document twice, ties that each program breaks in its own way, queries that were not judged and
queries that were not answered change averages without a word in most tools. Here each of them is refused until an
argument says what to do.
"""

import gzip
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args

from groundkit.errors import EvalError

__all__ = ["MissingQueries", "Ties", "UnjudgedQueries", "read_qrels", "read_run", "score_runs"]

Ties = Literal["refuse", "document_id", "rank"]
UnjudgedQueries = Literal["refuse", "drop"]
MissingQueries = Literal["refuse", "zero", "leave"]

PathLike = str | os.PathLike[str]
Number = TypeVar("Number", int, float)

_RUN_FIELDS = 6
_TREC_QRELS_FIELDS = 4
_BEIR_HEADER = ["query-id", "corpus-id", "score"]
_GZIP = b"\x1f\x8b"
_SHOWN = 5


def score_runs(
    runs: Mapping[str, PathLike],
    qrels: PathLike,
    measures: Iterable[str],
    *,
    ties: Ties = "refuse",
    unjudged_queries: UnjudgedQueries = "refuse",
    missing_queries: MissingQueries = "refuse",
) -> dict[str, dict[str, dict[str, float]]]:
    """Score runs against judgments: what `groundkit.evals.sweep.compare_systems` takes.

    Args:
        runs: Path of a TREC run file for each system; gzip is recognised.
        qrels: Path of the judgments, as TREC or BEIR write them; gzip is recognised.
        measures: Names of measures as ir_measures spells them, such as ``nDCG@10``, ``RR``, ``AP(rel=2)``.
        ties: Documents of one query with equal scores: ``refuse`` them, order them by ``document_id`` (the later one
            in code point order first, as trec_eval does), or order the whole run by its ``rank`` column.
        unjudged_queries: Queries that a run answers and nobody judged: ``refuse``, or ``drop`` them.
        missing_queries: Judged queries that a run does not answer: ``refuse``, score them ``zero``, or ``leave`` them
            out, which `compare_systems` then asks about.

    Returns:
        Scores by system, measure and query id.

    Raises:
        EvalError: ir_measures is not installed (extra ``runs``), a measure is unknown, a file cannot be
            read or has a malformed row, a run has a document twice, or one of the cases above is refused.

    References:
        S. MacAvaney, C. Macdonald and I. Ounis, "Streamlining Evaluation with ir-measures", ECIR 2022.
        G. Cabanac, G. Hubert, M. Boughanem and C. Chrisment, "Tie-Breaking Bias: Effect of an Uncontrolled Parameter on
        Information Retrieval Evaluation", CLEF 2010.
    """
    for name, value, known in (
        ("ties", ties, get_args(Ties)),
        ("unjudged_queries", unjudged_queries, get_args(UnjudgedQueries)),
        ("missing_queries", missing_queries, get_args(MissingQueries)),
    ):
        if value not in known:
            raise EvalError(f"unknown {name} {value!r}; expected one of {', '.join(known)}")
    parsed = _parse_measures(measures)
    judgments = read_qrels(qrels)
    scores = {}
    for system, path in runs.items():
        run = read_run(path, ties=ties)
        unjudged = run.keys() - judgments.keys()
        if unjudged and unjudged_queries == "refuse":
            raise EvalError(
                f"{os.fspath(path)}: {len(unjudged)} queries have no judgment ({_shown(unjudged)}); "
                "say unjudged_queries='drop' to leave them out"
            )
        missing = judgments.keys() - run.keys()
        if missing and missing_queries == "refuse":
            raise EvalError(
                f"{os.fspath(path)}: {len(missing)} judged queries have no result ({_shown(missing)}); "
                "say missing_queries='zero' or 'leave'"
            )
        answered = {query_id: run[query_id] for query_id in sorted(run.keys() & judgments.keys())}
        scores[system] = _score(parsed, judgments, answered)
        if missing_queries == "zero":
            for by_query in scores[system].values():
                by_query.update(dict.fromkeys(missing, 0.0))
    return scores


def read_run(path: PathLike, *, ties: Ties = "refuse") -> dict[str, dict[str, float]]:
    """Read a TREC run file: ``query Q0 document rank score tag`` separated by white space.

    Args:
        path: The file; gzip is recognised.
        ties: As for `score_runs`.

    Returns:
        Score by query id and document id, no two of one query equal; with ``ties="rank"`` the negative rank, and with
        ``ties="document_id"``, where scores tie, a number that falls by one from document to document.

    Raises:
        EvalError: The file cannot be read, a row is malformed, a document is twice in a query, or scores tie and
            ``ties`` is ``refuse``.
    """
    run: dict[str, dict[str, float]] = {}
    for place, fields in _rows(path):
        if len(fields) != _RUN_FIELDS:
            raise EvalError(f"{place}: invalid run row: expected {_RUN_FIELDS} fields, found {len(fields)}")
        query_id, _, document_id, rank, score, _ = fields
        value = _number(float, score, place, "score")
        if ties == "rank":
            value = -float(_number(int, rank, place, "rank"))
        documents = run.setdefault(query_id, {})
        if document_id in documents:
            raise EvalError(f"{place}: duplicate document {document_id!r} in query {query_id!r}")
        documents[document_id] = value
    if ties == "document_id":
        run = {query_id: _break_ties(documents) for query_id, documents in run.items()}
    else:
        tied = {query_id for query_id, documents in run.items() if len(set(documents.values())) < len(documents)}
        if tied and ties == "rank":
            raise EvalError(f"{os.fspath(path)}: one rank is there twice in {len(tied)} queries ({_shown(tied)})")
        if tied:
            raise EvalError(
                f"{os.fspath(path)}: scores tie in {len(tied)} queries ({_shown(tied)}), and the result depends on how "
                "ties are broken; say ties='document_id' to break them as trec_eval does, or 'rank'"
            )
    return run


def _break_ties(documents: dict[str, float]) -> dict[str, float]:
    if len(set(documents.values())) == len(documents):
        return documents
    ordered = sorted(documents, key=lambda document_id: (documents[document_id], document_id))
    return {document_id: float(place) for place, document_id in enumerate(ordered)}


def read_qrels(path: PathLike) -> dict[str, dict[str, int]]:
    """Read judgments: TREC's ``query iteration document grade``, or BEIR's three columns with their header.

    Args:
        path: The file; gzip is recognised.

    Returns:
        Grade by query id and document id.

    Raises:
        EvalError: The file cannot be read, a row is malformed, there is none, or a document has two grades for a query.
    """
    qrels: dict[str, dict[str, int]] = {}
    beir = False
    for number, (place, fields) in enumerate(_rows(path)):
        if number == 0 and fields == _BEIR_HEADER:
            beir = True
            continue
        expected = len(_BEIR_HEADER) if beir else _TREC_QRELS_FIELDS
        if len(fields) != expected:
            raise EvalError(f"{place}: invalid qrels row: expected {expected} fields, found {len(fields)}")
        query_id, document_id, grade = fields if beir else (fields[0], *fields[2:])
        value = _number(int, grade, place, "relevance grade")
        if qrels.setdefault(query_id, {}).setdefault(document_id, value) != value:
            raise EvalError(f"{place}: document {document_id!r} has two grades in query {query_id!r}")
    if not qrels:
        raise EvalError(f"{os.fspath(path)}: there is no judgment")
    return qrels


def _rows(path: PathLike) -> Iterator[tuple[str, list[str]]]:
    """Yield place and fields of every row that is not blank."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as raw:  # noqa: PTH123 - the path may be any os.PathLike
            packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            lines = gzip.GzipFile(fileobj=raw) if packed else raw
            for number, line in enumerate(lines, start=1):
                fields = line.decode("utf-8-sig" if number == 1 else "utf-8").split()
                if fields:
                    yield f"{name}:{number}", fields
    except UnicodeDecodeError as error:
        raise EvalError(f"cannot read {name!r}: not valid UTF-8 ({error.reason})") from error
    except (OSError, EOFError) as error:
        raise EvalError(f"cannot read {name!r}: {getattr(error, 'strerror', None) or error}") from error


def _number(kind: type[Number], text: str, place: str, what: str) -> Number:
    try:
        value = kind(text)
    except ValueError:
        raise EvalError(f"{place}: invalid {what} {text!r}") from None
    if not math.isfinite(value):
        raise EvalError(f"{place}: {what} must be finite, got {text!r}")
    return value


def _parse_measures(measures: Iterable[str]) -> list[Any]:
    try:
        import ir_measures  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise EvalError("scoring runs needs ir_measures: pip install 'groundkit-evals[runs]'") from error
    parsed = []
    for name in measures:
        try:
            parsed.append(ir_measures.parse_measure(name))
        except (NameError, ValueError, AttributeError, SyntaxError, TypeError) as error:
            raise EvalError(f"unknown measure {name!r}: {error}") from error
    if not parsed:
        raise EvalError("name at least one measure")
    return parsed


def _score(
    measures: list[Any], qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    import ir_measures  # noqa: PLC0415 - an optional extra

    scores: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    if run:
        judged = {query_id: qrels[query_id] for query_id in run}
        for metric in ir_measures.iter_calc(measures, judged, run):
            scores[str(metric.measure)][metric.query_id] = float(metric.value)
    for name, by_query in scores.items():
        # Some measures say nothing of a query without relevant documents; all that were answered count.
        absent = run.keys() - by_query.keys()
        if absent:
            raise EvalError(f"measure {name} gives no score for {len(absent)} queries ({_shown(absent)})")
    return scores


def _shown(query_ids: Iterable[str]) -> str:
    ordered = sorted(query_ids)
    rest = len(ordered) - _SHOWN
    return ", ".join(map(repr, ordered[:_SHOWN])) + (f" and {rest} more" if rest > 0 else "")
