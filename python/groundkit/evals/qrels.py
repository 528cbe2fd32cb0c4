"""Relevance judgments as a frame: pairs, conflicts, grades and what the other files know of their identifiers.

A frame of rows has the columns `line` (from 1), `query`, `document` and `grade`, one row for each well-formed row of
the file, in file order.
"""

import polars as pl

from groundkit._native import Columns

BINARY_GRADES = (0, 1)


def frame_rows(rows: Columns) -> pl.DataFrame:
    """Take over the rows that were read, without a copy."""
    return pl.DataFrame(rows)


def no_rows() -> pl.DataFrame:
    """Make a frame of rows without any."""
    return pl.DataFrame(schema={"line": pl.UInt64, "query": pl.String, "document": pl.String, "grade": pl.Int64})


def distinct_pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep the first row of each pair of query and document with each grade."""
    return rows.unique(["query", "document", "grade"], keep="first", maintain_order=True)


def find_conflicts(rows: pl.DataFrame) -> pl.DataFrame:
    """Find the pairs that have more than one grade.

    Returns:
        One row a pair, in file order: `query`, `document`, `first_line`, `first_grade`, and `line` and `grade` of the
        first row that says something else.
    """
    first = rows.unique(["query", "document"], keep="first", maintain_order=True)
    first = first.rename({"line": "first_line", "grade": "first_grade"})
    others = rows.join(first, on=["query", "document"], maintain_order="left")
    others = others.filter(pl.col("grade") != pl.col("first_grade"))
    return others.unique(["query", "document"], keep="first", maintain_order=True)


def find_graded(rows: pl.DataFrame) -> pl.DataFrame:
    """Find the rows whose grade is neither 0 nor 1."""
    return rows.filter(~pl.col("grade").is_in(BINARY_GRADES))


def count_grades(rows: pl.DataFrame) -> dict[int, int]:
    """Count the distinct pairs of each grade, in ascending order of the grade."""
    counts = distinct_pairs(rows)["grade"].value_counts().sort("grade")
    return dict(counts.iter_rows())


def select_relevant(rows: pl.DataFrame, min_relevance: int = 1) -> pl.DataFrame:
    """Keep each pair with a grade of at least `min_relevance` once, sorted by query, then document (by code point)."""
    relevant = rows.filter(pl.col("grade") >= min_relevance)
    relevant = relevant.unique(["query", "document"], keep="first", maintain_order=True)
    return relevant.sort("query", "document")


def list_identifiers(rows: pl.DataFrame, column: str, min_relevance: int = 1) -> pl.DataFrame:
    """List the distinct identifiers of a column, in file order.

    Returns:
        `id`; `relevant`, whether a row of at least `min_relevance` names it; `line`, the first such row, else the
        first row.
    """
    relevant = pl.col("grade") >= min_relevance
    return (
        rows.lazy()
        .group_by(pl.col(column).alias("id"), maintain_order=True)
        .agg(
            relevant.any().alias("relevant"),
            pl.coalesce(pl.col("line").filter(relevant).first(), pl.col("line").first()).alias("line"),
        )
        .collect()
    )


def find_absent(identifiers: pl.DataFrame, places: Columns) -> pl.DataFrame:
    """Find the identifiers that have no record.

    Args:
        identifiers: As `list_identifiers` gives them.
        places: For each of them the line of its record, 0 where there is none.
    """
    record_lines = pl.DataFrame(places)["line"]
    return identifiers.filter(record_lines == 0)
