"""Evaluation of retrieval systems: judgments, reports, significance and BEIR adaptation."""
