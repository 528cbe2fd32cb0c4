"""Judgments: which quote of which document answers a query, and the file that holds them."""

import codecs
import gc
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from groundkit.errors import EvalError
from groundkit.evals.files import describe_first_fault, read_regular_file
from groundkit.evals.model import FrozenModel

__all__ = ["GoldSpan", "Judgment", "load_judgments"]

_DRIVE_LETTER = re.compile(r"[A-Za-z]:")
_AMBIGUOUS_GOLD = 2


class GoldSpan(FrozenModel):
    """One answer: a document and a verbatim quote of it.

    Attributes:
        doc: Path of the document within the corpus: relative, with forward slashes, without ``..``.
        quote: The quote.
    """

    doc: str
    quote: str = Field(min_length=1)

    @field_validator("doc")
    @classmethod
    def _check_doc(cls, doc: str) -> str:
        if not doc.strip():
            raise ValueError("doc must not be blank")
        if "\\" in doc or "\0" in doc:
            raise ValueError(f"doc must use forward slashes and no NUL: {doc!r}")
        if doc.startswith("/") or _DRIVE_LETTER.match(doc):
            raise ValueError(f"doc must be relative to the corpus: {doc!r}")
        if ".." in doc.split("/"):
            raise ValueError(f"doc must not contain a '..' segment: {doc!r}")
        return doc


class Judgment(FrozenModel):
    """One query and its answers.

    Attributes:
        query_id: Identifier, lower-case words and numbers joined by single hyphens.
        query: The query's text.
        category: What kind of query it is. ``no_answer`` has no gold, ``ambiguous`` two or more, every other at least
            one.
        gold: The answers.
        notes: Remarks for people.
    """

    query_id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    query: str = Field(min_length=1)
    category: Literal["normal", "ambiguous", "no_answer", "adversarial"]
    gold: list[GoldSpan] = Field(default_factory=list)
    notes: str | None = None

    @model_validator(mode="after")
    def _check_gold(self) -> Self:
        if self.category == "no_answer":
            if self.gold:
                raise ValueError("a judgment of category 'no_answer' must have no gold")
        elif not self.gold:
            raise ValueError(f"a judgment of category {self.category!r} needs at least one gold span")
        elif self.category == "ambiguous" and len(self.gold) < _AMBIGUOUS_GOLD:
            raise ValueError("a judgment of category 'ambiguous' needs at least two gold spans")
        return self


def load_judgments(path: str | os.PathLike[str]) -> list[Judgment]:
    """Read a judgments file: UTF-8, one JSON object per line, sorted by query id.

    A record ends at a line feed only, so other line separators may stand inside a text. Lines of white space are
    skipped. The whole file is checked: query ids must be unique and strictly ascending by code point. A byte order mark
    and lone surrogates are refused; of a field that stands twice in one object, the last counts. The process collects
    no cyclic garbage meanwhile.

    Args:
        path: The file.

    Returns:
        The judgments, in the order of the file.

    Raises:
        EvalError: The file cannot be read, or a line is no judgment or out of order; names ``path:line``.
    """
    file = Path(path)
    content = read_regular_file(file, "judgments file")
    if content.startswith(codecs.BOM_UTF8):
        raise EvalError(
            f"{file}:1: invalid judgment: the file begins with a byte order mark; save it as UTF-8 without one"
        )
    with _garbage_collection_paused():
        return _read_lines(file, content)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the collector: it visits all judgments again and again while they are made, and none of them is garbage."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_lines(file: Path, content: bytes) -> list[Judgment]:
    judgments: list[Judgment] = []
    for number, line in enumerate(io.BytesIO(content), start=1):
        record = line.removesuffix(b"\n")
        if not record or record.isspace():
            continue
        try:
            judgment = Judgment.model_validate_json(record)
        except ValidationError as error:
            raise EvalError(f"{file}:{number}: invalid judgment: {describe_first_fault(error)}") from None
        if judgments and judgment.query_id <= judgments[-1].query_id:
            same = judgment.query_id == judgments[-1].query_id
            fault = "stands twice" if same else f"stands after {judgments[-1].query_id!r}"
            raise EvalError(
                f"{file}:{number}: query id {judgment.query_id!r} {fault}; "
                "the file must be sorted by query id, each id once"
            )
        judgments.append(judgment)
    return judgments
