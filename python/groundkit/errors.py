"""The exceptions that groundkit raises."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundkit.evals.beir.problem import BeirProblem


class GroundkitError(Exception):
    """Base of every exception that groundkit raises on purpose."""


class EvalError(GroundkitError):
    """Bad input to an evaluation: says which file, which line, what is wrong and what to do.

    Attributes:
        problems: What is wrong with a BEIR dataset, one by one, as many as are kept; empty for other refusals.
        problem_count: How many problems there are; may be more than are kept.
    """

    def __init__(
        self, message: str, *, problems: "tuple[BeirProblem, ...]" = (), problem_count: int | None = None
    ) -> None:
        """Keep the problems beside the message."""
        super().__init__(message)
        self.problems = problems
        self.problem_count = len(problems) if problem_count is None else problem_count
