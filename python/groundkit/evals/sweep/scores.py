"""Per-query scores of many systems, from nested mappings, long frames or an evaluation report.

Every form becomes the same thing: for each dataset and metric one row of scores a system, over all queries that any
system has, in code point order of their ids.
"""

import contextlib
import itertools
import operator
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from groundkit import _native
from groundkit.errors import EvalError
from groundkit.evals.fork import using_polars
from groundkit.evals.schema import EvalReport, StageName
from groundkit.evals.significance import MetricName

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DEFAULT_DATASET", "ScoreTable", "read_scores", "report_scores"]

DEFAULT_DATASET = "default"
"""Name of the dataset of scores that name none."""

COLUMNS = ("dataset", "system", "metric", "query_id", "score")
"""Columns of a long frame; ``dataset`` may be left out."""


@dataclass(frozen=True)
class ScoreTable:
    """The scores of all systems in one metric on one dataset.

    Attributes:
        dataset: The dataset.
        metric: The metric.
        query_ids: Queries that any system was scored on, in code point order.
        rows: One score a query for each system; zero where a query is missing.
        missing: Positions of the queries that a system has no score for; systems that have all are left out.
    """

    dataset: str
    metric: str
    query_ids: list[str]
    rows: "dict[str, array[float]]"
    missing: dict[str, frozenset[int]] = field(default_factory=dict)


def read_scores(scores: object) -> list[ScoreTable]:
    """Bring per-query scores of any supported form into tables.

    Args:
        scores: An `EvalReport`, a long frame with the columns ``dataset`` (may be left out), ``system``, ``metric``,
            ``query_id`` and ``score``, or nested mappings ``{system: {metric: {query_id: score}}}``, of one dataset, or
            ``{dataset: {system: {metric: {query_id: score}}}}``.

    Returns:
        One table for each dataset and metric, in the order in which they first appear.

    Raises:
        EvalError: A frame lacks a column or scores a query twice, nothing is scored, or a stage of the report is there
            twice.
        TypeError: The scores have another form, or one of them is no real number.
    """
    if isinstance(scores, EvalReport):
        tables = _from_mapping({DEFAULT_DATASET: report_scores(scores)})
    elif isinstance(scores, Mapping):
        tables = _from_mapping(scores if _names_datasets(scores) else {DEFAULT_DATASET: scores})
    else:
        with using_polars():
            tables = _from_frame(_as_polars(scores))
    if not tables or any(not table.query_ids for table in tables):
        raise EvalError("a sweep requires at least one query score")
    return tables


def report_scores(report: EvalReport) -> dict[str, dict[str, dict[str, float]]]:
    """Collect the scores of every stage of a report, without the queries that have no answer.

    Args:
        report: The report.

    Returns:
        Scores by stage, metric and query id.

    Raises:
        EvalError: Two stages share a name, or a query is in a stage twice.
    """
    names = [stage.stage for stage in report.stages]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise EvalError(f"report contains more than one stage named {', '.join(map(repr, repeated))}")
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for stage in report.stages:
        by_metric: dict[str, dict[str, float]] = {metric: {} for metric in get_args(MetricName)}
        for query in stage.queries:
            if query.metrics is None:
                continue
            if query.query_id in by_metric["mrr"]:
                raise EvalError(f"duplicate query id {query.query_id!r} in stage {stage.stage!r}")
            for metric, values in by_metric.items():
                name = "reciprocal_rank" if metric == "mrr" else metric
                values[query.query_id] = getattr(query.metrics, name)
        scores[stage.stage] = by_metric
    return scores


def report_baseline(report: EvalReport) -> StageName:
    """Return the stage that the others of a report are compared with."""
    return report.stages[0].stage


def _names_datasets(scores: Mapping[Any, Any]) -> bool:
    """Whether mappings nest four deep."""
    value: Any = scores
    for _ in range(3):
        value = next(iter(value.values()), None) if isinstance(value, Mapping) else None
    return isinstance(value, Mapping)


def _from_mapping(datasets: Mapping[Any, Any]) -> list[ScoreTable]:
    tables = []
    for dataset, systems in datasets.items():
        by_metric: dict[str, dict[str, Mapping[str, float]]] = {}
        for system, metrics in _items(systems, "metrics of a system"):
            for metric, queries in _items(metrics, "queries of a metric"):
                if not isinstance(queries, Mapping):
                    raise TypeError(f"the scores of {system!r} in {metric!r} must be a mapping of query ids to scores")
                by_metric.setdefault(metric, {})[system] = queries
        systems_in_order = list(systems)
        for metric, by_system in by_metric.items():
            _require_names(dataset, metric, systems_in_order)
            tables.append(_table(dataset, metric, systems_in_order, by_system))
    return tables


def _items(value: object, what: str) -> Iterable[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"scores must nest as system, metric, query id; {what} are no mapping but {type(value).__name__}"
        )
    return value.items()


def _require_names(dataset: object, metric: object, systems: Iterable[object]) -> None:
    for name in itertools.chain((dataset, metric), systems):
        if not isinstance(name, str):
            raise TypeError(f"names of datasets, systems and metrics must be strings, not {type(name).__name__}")


def _table(dataset: str, metric: str, systems: list[str], by_system: dict[str, Mapping[str, float]]) -> ScoreTable:
    table = _table_in_one_order(dataset, metric, systems, by_system)
    if table is not None:
        return table
    scored = {system: dict(scores) for system, scores in by_system.items()}
    query_ids = sorted(_union(scored.values()))
    read = operator.itemgetter(*query_ids) if len(query_ids) > 1 else None
    rows: dict[str, array[float]] = {}
    missing = {}
    for system in systems:
        scores = scored.get(system, {})
        if len(scores) < len(query_ids):
            missing[system] = frozenset(place for place, query_id in enumerate(query_ids) if query_id not in scores)
            scores = dict.fromkeys(query_ids, 0.0) | scores
        try:
            # An array converts by __float__ and __index__ alone: numpy scalars pass, strings and None do not.
            rows[system] = array("d", read(scores) if read else scores.values())
        except OverflowError:
            raise EvalError(f"scores must be finite; one of {system!r} in {metric!r} is too large") from None
    return ScoreTable(dataset, metric, query_ids, rows, missing)


def _table_in_one_order(
    dataset: str, metric: str, systems: list[str], by_system: dict[str, Mapping[str, float]]
) -> ScoreTable | None:
    """Read plain dictionaries that hold the same queries in the same order; None where they do not."""
    reader = None
    rows: dict[str, array[float]] = {}
    for system in systems:
        scores = by_system.get(system)
        if type(scores) is not dict:
            return None
        if reader is None:
            reader = _native.ScoreReader.like(scores)
        row = None if reader is None else reader.read(scores)
        if row is None:
            return None
        rows[system] = array("d", row)
    return None if reader is None else ScoreTable(dataset, metric, reader.query_ids, rows)


def _union(by_query: Collection[dict[str, float]]) -> set[str]:
    union: set[str] = set()
    for scores in by_query:
        # Most often all have the same queries, and comparing views is faster than adding them.
        if scores.keys() != union:
            union |= scores.keys()
    for query_id in union:
        if not isinstance(query_id, str):
            raise TypeError(f"a query id must be a string, not {type(query_id).__name__}")
    return union


def _as_polars(scores: object) -> "pl.DataFrame":
    import polars as pl  # noqa: PLC0415 - half a second of import that mappings do not need

    if isinstance(scores, pl.LazyFrame):
        return scores.collect()
    if isinstance(scores, pl.DataFrame):
        return scores
    if hasattr(scores, "__arrow_c_stream__"):
        # pandas offers the stream, but fails to give it without pyarrow.
        with contextlib.suppress(ImportError):
            return pl.DataFrame(scores)
    columns: Any = getattr(scores, "columns", None)
    if columns is not None:
        frame: Any = scores
        return pl.DataFrame({name: frame[name].tolist() for name in COLUMNS if name in columns})
    raise TypeError(f"scores must be mappings, a long frame or an EvalReport, not {type(scores).__name__}")


def _from_frame(frame: "pl.DataFrame") -> list[ScoreTable]:
    import polars as pl  # noqa: PLC0415 - as above

    if "dataset" not in frame.columns:
        frame = frame.with_columns(dataset=pl.lit(DEFAULT_DATASET))
    absent = [column for column in COLUMNS if column not in frame.columns]
    if absent:
        raise EvalError(f"the frame of scores lacks the columns {', '.join(map(repr, absent))}")
    if not frame.schema["score"].is_numeric() and frame.schema["score"] != pl.Boolean:
        raise TypeError(f"scores must be real numbers, not {frame.schema['score']}")
    names = [column for column in COLUMNS if column != "score"]
    frame = frame.select(pl.col(names).cast(pl.String), pl.col("score").cast(pl.Float64))
    nulls = [column for column in COLUMNS if frame[column].null_count()]
    if nulls:
        raise EvalError(f"the frame of scores has nulls in {', '.join(map(repr, nulls))}")
    tables: list[ScoreTable] = []
    for of_dataset in frame.partition_by("dataset", maintain_order=True):
        systems = of_dataset["system"].unique(maintain_order=True).to_list()
        by_metric = of_dataset.partition_by("metric", maintain_order=True)
        tables.extend(_table_of_frame(part, systems) for part in by_metric)
    return tables


def _table_of_frame(part: "pl.DataFrame", systems: list[str]) -> ScoreTable:
    import polars as pl  # noqa: PLC0415 - as above

    dataset, _, metric, _, _ = part.select(COLUMNS).row(0)
    # UTF-8 sorts as code points do.
    queries = part.select(pl.col("query_id").unique().sort()).with_row_index("place")
    placed = part.select("system", "query_id", "score").join(queries, on="query_id").sort("system", "place")
    rows: dict[str, array[float]] = {system: array("d", bytes(8 * len(queries))) for system in systems}
    missing = {system: frozenset(range(len(queries))) for system in systems}
    for of_system in placed.partition_by("system", maintain_order=True):
        system = of_system["system"][0]
        places = of_system["place"].to_list()
        if len(places) != len(set(places)):
            twice = next(place for place, following in itertools.pairwise(places) if place == following)
            raise EvalError(
                f"duplicate query id {queries['query_id'][twice]!r} of system {system!r} in metric {metric!r} "
                f"on dataset {dataset!r}"
            )
        scores = of_system["score"].to_list()
        if len(places) == len(queries):
            rows[system] = array("d", scores)
            del missing[system]
        else:
            missing[system] -= set(places)
            for place, score in zip(places, scores, strict=True):
                rows[system][place] = score
    missing = {system: places for system, places in missing.items() if places}
    return ScoreTable(dataset, metric, queries["query_id"].to_list(), rows, missing)
