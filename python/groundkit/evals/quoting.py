"""Names in messages: quoted, shortened, and without characters that a terminal would obey."""

import os
from collections.abc import Sequence

__all__ = ["QUOTED_NAMES", "quote", "quote_first", "quote_path", "show_integer"]

QUOTED_NAMES = 10
"""Number of names that a list in a message shows before it says how many more there are."""

_QUOTED_CHARACTERS = 80
# Python refuses to print integers of thousands of digits.
_SHOWN_BITS = 256


def quote(value: object) -> str:
    r"""Quote a value for a message.

    Args:
        value: Most often a string from outside; anything else is shown as Python writes it.

    Returns:
        At most some eighty characters, with control characters escaped.

    Example:
        >>> print(quote("a\x1b[31mb"))
        'a\x1b[31mb'
        >>> print(quote("d" * 100))
        'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd'... (100 characters)
    """
    if isinstance(value, str):
        text = str(value)
        if len(text) > _QUOTED_CHARACTERS:
            return f"{text[:_QUOTED_CHARACTERS]!r}... ({len(text)} characters)"
        return repr(text)
    if isinstance(value, int) and not isinstance(value, bool):
        return show_integer(value)
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail because of what it shows
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]}..."


def quote_first(names: Sequence[object], limit: int = QUOTED_NAMES) -> str:
    """Quote the first names of a list, and say how many more there are.

    Args:
        names: The names, in the order in which to show them.
        limit: Number of names to show.

    Returns:
        The names, joined by commas; ``none`` where there is none.

    Example:
        >>> quote_first(["q1", "q2", "q3"], limit=2)
        "'q1', 'q2' and 1 more, 3 in all"
    """
    if not names:
        return "none"
    first = ", ".join(quote(name) for name in names[:limit])
    rest = len(names) - limit
    return f"{first} and {rest:,} more, {len(names):,} in all" if rest > 0 else first


def quote_path(path: str | os.PathLike[str]) -> str:
    """Quote a path for a message: whole, since it says where to look, with control characters escaped."""
    return repr(str(os.fspath(path)))


def show_integer(value: int) -> str:
    """Write an integer in decimal digits, or say how long it is where it has too many."""
    return int.__repr__(value) if value.bit_length() <= _SHOWN_BITS else f"an integer of {value.bit_length():,} bits"
