"""The names that mapped identifiers have in an adapted dataset, and translation in both directions.

`id-map.parquet` lists the mapped identifiers only: any other identifier is the same on both sides.
"""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from groundkit.errors import EvalError
from groundkit.evals.files import read_regular_file
from groundkit.evals.fork import using_polars

if TYPE_CHECKING:
    import polars as pl

__all__ = ["IdMap", "load_id_map"]

ID_MAP_FILE: Final = "id-map.parquet"

_Value = TypeVar("_Value")


class IdMap:
    """Translates scores and runs between the identifiers of a BEIR dataset and those of its adaptation.

    Args:
        documents: Adapted id of each mapped document id.
        queries: Adapted id of each mapped query id.

    Example:
        >>> id_map = IdMap({"MED-10": "med-10-9b2c"}, {"PLAIN-2": "plain-2-77aa"})
        >>> id_map.run_to_source({"plain-2-77aa": {"med-10-9b2c": 1.5, "other": 0.5}})
        {'PLAIN-2': {'MED-10': 1.5, 'other': 0.5}}
        >>> id_map.scores_to_adapted({"PLAIN-2": 0.25})
        {'plain-2-77aa': 0.25}
    """

    def __init__(self, documents: Mapping[str, str], queries: Mapping[str, str]) -> None:
        """Keep both directions."""
        self._documents, self._queries = dict(documents), dict(queries)
        self._source_documents = {adapted: source for source, adapted in documents.items()}
        self._source_queries = {adapted: source for source, adapted in queries.items()}

    def scores_to_source(self, scores: Mapping[str, _Value]) -> dict[str, _Value]:
        """Translate the query ids of per-query scores into those of the BEIR dataset."""
        return _rename(scores, self._source_queries)

    def scores_to_adapted(self, scores: Mapping[str, _Value]) -> dict[str, _Value]:
        """Translate the query ids of per-query scores into those of the adaptation."""
        return _rename(scores, self._queries)

    def run_to_source(self, run: Mapping[str, Mapping[str, _Value]]) -> dict[str, dict[str, _Value]]:
        """Translate a run, documents by query, into the identifiers of the BEIR dataset."""
        return _rename_run(run, self._source_queries, self._source_documents)

    def run_to_adapted(self, run: Mapping[str, Mapping[str, _Value]]) -> dict[str, dict[str, _Value]]:
        """Translate a run, documents by query, into the identifiers of the adaptation."""
        return _rename_run(run, self._queries, self._documents)

    def translate_run_file(
        self, source: str | os.PathLike[str], target: str | os.PathLike[str], *, to_source: bool
    ) -> int:
        """Translate a TREC run file (`query Q0 document rank score tag`, separated by white space).

        Args:
            source: The run file to read, UTF-8.
            target: The run file to write; must not exist.
            to_source: Whether to translate into the identifiers of the BEIR dataset, or else into the adapted ones.

        Returns:
            The number of rows.

        Raises:
            EvalError: A file cannot be read or written, or a row has not six fields; names file and line.
        """
        queries = self._source_queries if to_source else self._queries
        documents = self._source_documents if to_source else self._documents
        lines = []
        text = read_regular_file(source, "run file")
        for number, line in enumerate(text.split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                fields = line.decode().split()
            except UnicodeDecodeError as error:
                raise EvalError(f"{source}:{number}: not valid UTF-8: {error}") from None
            if len(fields) != _RUN_FIELDS:
                raise EvalError(f"{source}:{number}: a run row has six fields, found {len(fields)}")
            fields[0] = queries.get(fields[0], fields[0])
            fields[2] = documents.get(fields[2], fields[2])
            lines.append(" ".join(fields) + "\n")
        try:
            with Path(target).open("x", encoding="utf-8", newline="\n") as handle:
                handle.writelines(lines)
        except (OSError, ValueError) as error:
            raise EvalError(f"cannot write run file {str(Path(target))!r}: {error}") from error
        return len(lines)


_RUN_FIELDS: Final = 6


def load_id_map(output: str | os.PathLike[str]) -> IdMap:
    """Read the id map of an adapted dataset.

    Args:
        output: The directory that `adapt_beir_dataset` wrote to.

    Returns:
        The map; it changes nothing where the policy mapped no identifier.

    Raises:
        EvalError: The file is there but cannot be read, or is no id map.
    """
    import polars as pl  # noqa: PLC0415 - takes a while, and most of the package does without it

    path = Path(output) / ID_MAP_FILE
    if not path.is_symlink() and not path.exists():
        if not Path(output).is_dir():
            raise EvalError(f"cannot read id map: {str(Path(output))!r} is not a directory")
        return IdMap({}, {})
    content = read_regular_file(path, "id map")
    with using_polars():
        try:
            frame = pl.read_parquet(io.BytesIO(content)).select(
                pl.col("kind").cast(pl.String),
                pl.col("source_id").cast(pl.String),
                pl.col("adapted_id").cast(pl.String),
            )
        except pl.exceptions.PolarsError as error:
            raise EvalError(f"{path}: not an id map: {error}") from error
        kinds = {
            kind: dict(frame.filter(kind=kind).select("source_id", "adapted_id").iter_rows())
            for kind in ("document", "query")
        }
    return IdMap(kinds["document"], kinds["query"])


def write_id_map(id_map: "pl.DataFrame") -> bytes:
    """Write an id map (`kind`, `source_id`, `adapted_id`) as Parquet."""
    buffer = io.BytesIO()
    id_map.write_parquet(buffer)
    return buffer.getvalue()


def _rename(values: Mapping[str, _Value], names: Mapping[str, str]) -> dict[str, _Value]:
    return {names.get(identifier, identifier): value for identifier, value in values.items()}


def _rename_run(
    run: Mapping[str, Mapping[str, _Value]], queries: Mapping[str, str], documents: Mapping[str, str]
) -> dict[str, dict[str, _Value]]:
    return {queries.get(query, query): _rename(ranking, documents) for query, ranking in run.items()}
