"""What a score is: a finite real number, checked in one way wherever scores come in."""

import math
import numbers
from array import array
from collections.abc import Sequence
from contextlib import suppress

from groundkit.errors import EvalError
from groundkit.evals.quoting import quote

__all__ = ["convert_scores", "require_finite"]


def convert_scores(values: Sequence[object], query_ids: Sequence[str], owner: str = "") -> "array[float]":
    """Convert scores to doubles.

    Args:
        values: One score for each query: integers, floats, booleans, numpy scalars and the like.
        query_ids: The queries, in the same order.
        owner: Whose scores they are, for the message, such as ``" of system 'BM25' in metric 'RR'"``.

    Returns:
        The scores; any of them may be NaN or infinite.

    Raises:
        EvalError: A score has no finite value as a double.
        TypeError: A score is no real number; names the query and the value.
    """
    # What fails is looked at again below, one score at a time, for a message that names it.
    with suppress(Exception):
        # numpy's complex numbers have a __float__, which drops a part of them.
        if not any(map(_is_complex, set(map(type, values)))):
            # An array converts by __float__ and __index__ alone: strings and None are refused.
            return array("d", values)  # type: ignore[arg-type]
    for query_id, value in zip(query_ids, values, strict=True):
        score = f"the score{owner} for query {quote(query_id)} is {quote(value)}"
        try:
            array("d", [None if _is_complex(type(value)) else value])  # type: ignore[type-var]
        except (OverflowError, ValueError):
            raise EvalError(f"scores must be finite: {score}") from None
        except Exception:  # noqa: BLE001 - any class may raise anything
            raise TypeError(f"a score must be a real number: {score} of type {type(value).__name__}") from None
    raise TypeError(f"a score must be a real number: some{owner} cannot be converted")


def _is_complex(kind: type) -> bool:
    return issubclass(kind, numbers.Complex) and not issubclass(kind, numbers.Real)


def require_finite(scores: "array[float]", query_ids: Sequence[str], owner: str) -> None:
    """Check that scores are finite.

    Raises:
        EvalError: One of them is not; names the query and the value.
    """
    # A sum that overflows is looked at too, and passes.
    if math.isfinite(sum(scores)):
        return
    for query_id, score in zip(query_ids, scores, strict=True):
        if not math.isfinite(score):
            raise EvalError(f"scores must be finite: the score{owner} for query {quote(query_id)} is {score}")
