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


def find_conflicts(distinct: pl.DataFrame) -> pl.DataFrame:
    """Find the pairs that have more than one grade, in what `distinct_pairs` keeps.

    Returns:
        One row a pair, in file order: `query`, `document`, `first_line`, `first_grade`, and `line` and `grade` of the
        first row that says something else.
    """
    first = distinct.unique(["query", "document"], keep="first", maintain_order=True)
    others = distinct if first.height < distinct.height else distinct.clear()
    first = first.rename({"line": "first_line", "grade": "first_grade"})
    others = others.join(first, on=["query", "document"], maintain_order="left")
    others = others.filter(pl.col("grade") != pl.col("first_grade"))
    return others.unique(["query", "document"], keep="first", maintain_order=True)


def find_graded(rows: pl.DataFrame) -> pl.DataFrame:
    """Find the rows whose grade is neither 0 nor 1."""
    return rows.filter(~pl.col("grade").is_in(BINARY_GRADES))


def count_grades(distinct: pl.DataFrame) -> dict[int, int]:
    """Count the `distinct_pairs` of each grade, in ascending order of the grade."""
    counts = distinct["grade"].value_counts().sort("grade")
    return dict(counts.iter_rows())


def select_relevant(rows: pl.DataFrame, min_relevance: int = 1) -> pl.DataFrame:
    """Select `query` and `document` of each pair with a grade of at least `min_relevance`, once and in any order."""
    return rows.filter(pl.col("grade") >= min_relevance).select("query", "document").unique()


def list_identifiers(rows: pl.DataFrame, column: str, min_relevance: int = 1) -> pl.DataFrame:
    """List the distinct identifiers of a column: the relevant ones, then the others, each in file order.

    Returns:
        `id`; `relevant`, whether a row of at least `min_relevance` names it; `line`, the first such row, else the
        first row.
    """
    marked = rows.lazy().select(
        pl.col(column).alias("id"), (pl.col("grade") >= min_relevance).alias("relevant"), "line"
    )
    marked = marked.sort("relevant", descending=True, maintain_order=True)
    return marked.unique("id", keep="first", maintain_order=True).collect()


def find_absent(identifiers: pl.DataFrame, record_lines: Columns) -> pl.DataFrame:
    """Find the identifiers that have no record.

    Args:
        identifiers: As `list_identifiers` gives them.
        record_lines: For each of them the line of its record, 0 where there is none.
    """
    return identifiers.filter(pl.DataFrame(record_lines)["line"] == 0)


def drop_documents(pairs: pl.DataFrame, absent: pl.DataFrame) -> pl.DataFrame:
    """Leave out the pairs whose document is among the `absent` identifiers."""
    return pairs.join(absent, left_on="document", right_on="id", how="anti", maintain_order="left")


def list_queries(rows: pl.DataFrame, relevant: pl.DataFrame, min_relevance: int) -> pl.DataFrame:
    """List the distinct queries as `list_identifiers` does, relevant being those with a pair in `relevant`."""
    queries = list_identifiers(rows, "query", min_relevance)
    return queries.with_columns(relevant=pl.col("id").is_in(relevant["query"].implode()))


def count_below(distinct: pl.DataFrame, min_relevance: int) -> int:
    """Count the `distinct_pairs` of a positive grade below `min_relevance`."""
    return distinct.filter(pl.col("grade").is_between(1, min_relevance, closed="left")).height


def count_lost_queries(rows: pl.DataFrame, relevant: pl.DataFrame) -> int:
    """Count the queries that have a row of a positive grade but no pair in `relevant`."""
    return rows.filter(pl.col("grade") >= 1)["query"].n_unique() - relevant["query"].n_unique()


def make_id_map(documents: Columns | None, queries: Columns | None, relevant: pl.DataFrame) -> pl.DataFrame:
    """Join the mapped documents and the mapped queries that have a relevant pair.

    Returns:
        `kind` (`document` or `query`), `source_id` and `adapted_id`, sorted by kind and source id.
    """
    frames = [pl.DataFrame(schema={"kind": pl.String, "source_id": pl.String, "adapted_id": pl.String})]
    if documents is not None:
        frames.append(pl.DataFrame(documents).select(pl.lit("document").alias("kind"), "source_id", "adapted_id"))
    if queries is not None:
        mapped = pl.DataFrame(queries).select(pl.lit("query").alias("kind"), "source_id", "adapted_id")
        frames.append(mapped.filter(pl.col("source_id").is_in(relevant["query"].implode())))
    return pl.concat(frames)
