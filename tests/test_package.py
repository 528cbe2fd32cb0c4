"""The package as a whole."""

from importlib.metadata import version

import groundkit
from groundkit.errors import EvalError, GroundkitError


def test_every_refusal_is_a_groundkit_error() -> None:
    assert issubclass(EvalError, GroundkitError)


def test_the_native_module_carries_the_version_of_the_distribution() -> None:
    assert groundkit.__version__ == version("groundkit-evals")
