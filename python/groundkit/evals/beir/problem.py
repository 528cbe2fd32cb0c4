"""One thing that is wrong with a BEIR dataset."""

from typing import Final, Literal, TypeAlias

from groundkit.evals.model import FrozenModel

__all__ = ["REFUSALS_PAGE", "BeirProblem", "ProblemKind"]

REFUSALS_PAGE: Final = "docs/refusals.md"
"""The page that has a section of each kind."""

ProblemKind: TypeAlias = Literal[
    "unreadable_file",
    # a line of corpus.jsonl or queries.jsonl
    "not_utf8",
    "invalid_json",
    "not_an_object",
    "repeated_field",
    "lone_surrogate",
    "missing_id",
    # a document
    "title_not_string",
    "text_not_string",
    "empty_document",
    "unsafe_document_id",
    "long_document_id",
    "device_document_id",
    "duplicate_document_id",
    "colliding_document_ids",
    # a query
    "missing_text",
    "empty_query",
    "unsafe_query_id",
    "inadmissible_query_id",
    "duplicate_query_id",
    # the qrels
    "qrels_header",
    "qrels_row",
    "qrels_score",
    "graded_relevance",
    "conflicting_grades",
    "missing_document",
    "missing_query",
    "no_positive_relevance",
    # the place to write to
    "output",
]
"""What a problem is about."""


class BeirProblem(FrozenModel):
    """One thing that is wrong with a dataset.

    Attributes:
        kind: What it is about.
        file: The file as the dataset has it, such as `corpus.jsonl` or `scifact.zip:scifact/corpus.jsonl`.
        line: The line of the file, from 1, blank lines counted; `None` where it is about the file as a whole.
        message: What is wrong, for people; names the file and the line.
    """

    kind: ProblemKind
    file: str
    line: int | None
    message: str

    @property
    def page(self) -> str:
        """Where the documentation explains this kind: its cause, an example and the remedy."""
        return f"{REFUSALS_PAGE}#{self.kind}"
