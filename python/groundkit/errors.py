"""The exceptions that groundkit raises."""


class GroundkitError(Exception):
    """Base of every exception that groundkit raises on purpose."""


class EvalError(GroundkitError):
    """Bad input to an evaluation: says which file, which line, what is wrong and what to do."""
