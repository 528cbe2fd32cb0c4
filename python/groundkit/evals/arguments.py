"""Checks of arguments that several functions take, so that each is refused in one way and with one message."""

import operator
import os
import sys
from array import array
from collections.abc import Iterable
from typing import SupportsIndex

from groundkit.errors import EvalError
from groundkit.evals.quoting import quote, show_integer

__all__ = [
    "encode_seed",
    "require_choice",
    "require_choices",
    "require_confidence_level",
    "require_digits",
    "require_name",
    "require_printable_seed",
    "require_resamples",
    "require_seed",
    "require_threads",
]

# More threads than that are of no use to anybody, and some systems refuse to start them.
_MAXIMUM_THREADS = 1024

# Beyond this many decimal places a double has nothing to tell.
_MAXIMUM_DIGITS = 17

# Python neither prints nor parses integers with more decimal digits, unless it is told to.
_MAXIMUM_SEED_DIGITS = 4300


def require_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Check that an argument is one of a few strings.

    Args:
        name: What the message calls the argument.
        value: The argument.
        choices: The strings that it may be, such as ``get_args`` gives of a ``Literal``.

    Raises:
        EvalError: It is none of them.

    Example:
        >>> require_choice("layout", "round", ("flat", "sharded"))
        Traceback (most recent call last):
        groundkit.errors.EvalError: unknown layout 'round'; expected one of flat, sharded
    """
    known = tuple(choices)
    # Comparing with anything but a string may raise, as arrays do.
    if not isinstance(value, str) or value not in known:
        raise EvalError(f"unknown {name} {quote(value)}; expected one of {', '.join(known)}")


def require_choices(name: str, values: object, choices: Iterable[str]) -> tuple[str, ...]:
    """Check that an argument lists some of a few strings.

    Args:
        name: What the message calls one of them, in the singular.
        values: The argument.
        choices: The strings that may be among them.

    Returns:
        The strings, each once.

    Raises:
        EvalError: One of them is unknown, or the argument is a single string.
        TypeError: The argument is not iterable.
    """
    known = tuple(choices)
    if isinstance(values, str):
        raise EvalError(f"expected a list of {name}s, not the single string {quote(values)}; write [{quote(values)}]")
    if not isinstance(values, Iterable):
        raise TypeError(f"expected a list of {name}s, not {type(values).__name__}")
    listed = list(values)
    for value in listed:
        require_choice(name, value, known)
    return tuple(dict.fromkeys(listed))


def require_name(what: str, name: object) -> str:
    """Check a name that a result shows.

    Args:
        what: What it names, such as ``system``.
        name: The name.

    Returns:
        The name.

    Raises:
        EvalError: It cannot be written as UTF-8, so that no result that shows it could be saved.
        TypeError: It is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} must be a string, not {quote(name)} of type {type(name).__name__}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise EvalError(
            f"the name of {what} {quote(name)} contains a lone surrogate, which no file can hold; "
            "decode names as UTF-8, or rename it"
        ) from None
    return name


def require_digits(digits: SupportsIndex) -> int:
    """Return a number of decimal places.

    Raises:
        EvalError: It is negative, or more than a double has.
        TypeError: It is no integer.
    """
    count = int(operator.index(digits))
    if not 0 <= count <= _MAXIMUM_DIGITS:
        raise EvalError(f"digits must be between 0 and {_MAXIMUM_DIGITS}, got {show_integer(count)}")
    return count


def require_resamples(resamples: SupportsIndex) -> int:
    """Return the number of resamples as an integer.

    Raises:
        EvalError: It is not positive, or the means of so many resamples cannot fit in memory.
        TypeError: It is no integer.
    """
    count = int(operator.index(resamples))
    if count <= 0:
        raise EvalError(f"resamples must be positive, got {show_integer(count)}")
    # Every resample keeps a mean of eight bytes.
    if count > sys.maxsize // 8:
        raise EvalError(
            f"resamples must be positive and fit in memory, got {show_integer(count)}; ten thousand is usual"
        )
    return count


def require_confidence_level(confidence_level: float) -> float:
    """Return the confidence level as a float.

    Raises:
        EvalError: It is not between 0 and 1.
        TypeError: It is no real number.
    """
    try:
        level = array("d", [confidence_level])[0]
    except (OverflowError, ValueError) as error:
        raise EvalError(f"confidence_level must be between 0 and 1: {error}") from None
    # Compared as a float: a fraction within rounding of 1 leaves no tail.
    if not 0.0 < level < 1.0:
        raise EvalError(f"confidence_level must be between 0 and 1, got {level}")
    return level


def require_seed(seed: SupportsIndex) -> int:
    """Return the seed as an integer of any size.

    Raises:
        TypeError: It is no integer.
    """
    return int(operator.index(seed))


def require_printable_seed(seed: SupportsIndex) -> int:
    """Return the seed of a result that is meant to be saved as text.

    Raises:
        EvalError: It has more digits than Python prints and parses.
        TypeError: It is no integer.
    """
    value = require_seed(seed)
    if abs(value) >= 10**_MAXIMUM_SEED_DIGITS:
        raise EvalError(
            f"seed has more than {_MAXIMUM_SEED_DIGITS:,} digits ({show_integer(value)}), so that no result could be "
            "saved with it; any smaller integer will do"
        )
    return value


def encode_seed(seed: int) -> bytes:
    """Return the magnitude of a seed as little-endian bytes, which is what the generator is seeded with."""
    return abs(seed).to_bytes((seed.bit_length() + 7) // 8, "little")


def require_threads(threads: SupportsIndex | None) -> int | None:
    """Return the maximum number of threads, or ``None`` to leave the choice to the native code.

    Args:
        threads: A positive number, -1 for all cores that this process may use, or ``None``.

    Raises:
        EvalError: It is zero or less, and not -1.
        TypeError: It is no integer.
    """
    if threads is None:
        return None
    count = int(operator.index(threads))
    if count == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count <= 0:
        raise EvalError(f"threads must be positive, or -1 for all cores, got {show_integer(count)}")
    return min(count, _MAXIMUM_THREADS)
