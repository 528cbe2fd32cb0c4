"""Problems as they are found, and the error that tells them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from groundkit._native import CheckedFile, QrelsFile
from groundkit.errors import EvalError
from groundkit.evals.beir.models import BeirInspection
from groundkit.evals.beir.problem import REFUSALS_PAGE, BeirProblem, ProblemKind
from groundkit.evals.quoting import quote_path

if TYPE_CHECKING:
    import polars as pl

CORPUS_FILE: Final = "corpus.jsonl"
QUERIES_FILE: Final = "queries.jsonl"

# As many as anybody reads; all of them are counted.
_KEPT_PROBLEMS: Final = 100
# A screenful, with the lines around them.
_SHOWN_PROBLEMS: Final = 10

# What a `BeirPolicy` can do about a kind of problem.
_REMEDIES: Final[Mapping[ProblemKind, str]] = {
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

# A row of one of these kinds could not be read, and may be what another row refers to.
UNREAD_ROWS: Final[frozenset[ProblemKind]] = frozenset(
    ("not_utf8", "invalid_json", "not_an_object", "repeated_field", "lone_surrogate", "missing_id")
)


@dataclass
class Problems:
    """Problems as they are found: the first ones of every kind in every file, and counts."""

    counts: dict[ProblemKind, int] = field(default_factory=dict)
    kept: list[BeirProblem] = field(default_factory=list)

    def count(self, kind: ProblemKind, count: int) -> None:
        """Count problems of a kind, kept or not."""
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count

    def keep(self, kind: ProblemKind, file: str, line: int | None, message: str) -> None:
        """Keep a problem that is counted already; file and line are put before the message."""
        place = f"{file} line {line}" if line is not None else file
        self.kept.append(BeirProblem(kind=kind, file=file, line=line, message=f"{place}: {message}"))

    def add_rows(self, kind: ProblemKind, rows: "pl.DataFrame", *columns: str) -> list[tuple[Any, ...]]:
        """Count all rows and return the columns of those whose problems are kept."""
        self.count(kind, rows.height)
        return rows.head(_KEPT_PROBLEMS).select(columns).rows()

    def add_file(self, file: str, message: str) -> None:
        """Count and keep a file that cannot be read; the message names it."""
        self.count("unreadable_file", 1)
        self.kept.append(BeirProblem(kind="unreadable_file", file=file, line=None, message=message))

    def add_native(self, file: str, checked: CheckedFile | QrelsFile) -> None:
        """Take over what a native reader found in a file."""
        for kind, count in checked.problem_counts.items():
            self.count(cast("ProblemKind", kind), count)
        for problem in checked.problems:
            self.kept.append(BeirProblem(kind=problem.kind, file=file, line=problem.line, message=problem.message))

    def select(self) -> tuple[BeirProblem, ...]:
        """Select those that a result has, in the order of files and lines."""

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


def make_refusal(inspection: BeirInspection) -> EvalError:
    """Make the error that says why a dataset is refused, at most a screenful, with what can be done about it."""
    count = inspection.problem_count
    shown = _pick(inspection.problems, _SHOWN_PROBLEMS)
    what = "1 problem" if count == 1 else f"{count:,} problems"
    dataset = f"{quote_path(inspection.source_dir)}, split {inspection.split!r},"
    lines = [f"BEIR dataset {dataset} is refused for {what}; nothing was written"]
    lines += [f"  {problem.message}" for problem in shown]
    if count > len(shown):
        lines.append(f"  ... and {count - len(shown):,} more")
    found = set(inspection.problem_counts)
    if found & UNREAD_ROWS:
        # Dropping what refers to a row that could not be read would lose more than is lost.
        found.discard("missing_document")
    remedies = [remedy for kind, remedy in _REMEDIES.items() if kind in found]
    if remedies:
        lines.append("BeirPolicy options that resolve some of this: " + ", ".join(dict.fromkeys(remedies)))
    kinds = dict.fromkeys(problem.kind for problem in shown)
    lines.append(f"Causes and remedies: {REFUSALS_PAGE} {' '.join(f'#{kind}' for kind in kinds)}")
    return EvalError("\n".join(lines), problems=inspection.problems, problem_count=count)


def add_obstacles(inspection: BeirInspection, obstacles: list[str]) -> BeirInspection:
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
