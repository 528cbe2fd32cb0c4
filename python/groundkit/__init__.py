"""Retrieval evaluation that can be trusted: paired bootstrap comparisons and BEIR adaptation."""

from groundkit._native import __version__

__all__ = ["__version__"]
