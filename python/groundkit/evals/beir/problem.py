"""One thing that is wrong with a BEIR dataset."""

from groundkit.evals.model import FrozenModel

__all__ = ["BeirProblem"]


class BeirProblem(FrozenModel):
    """One thing that is wrong with a dataset.

    Attributes:
        kind: What it is about, in snake case, such as `duplicate_document_id`.
        file: The file as the dataset has it, such as `corpus.jsonl` or `scifact.zip:scifact/corpus.jsonl`.
        line: The line of the file, from 1, blank lines counted; `None` where it is about the file as a whole.
        message: What is wrong, for people; names file and line.
    """

    kind: str
    file: str
    line: int | None
    message: str
