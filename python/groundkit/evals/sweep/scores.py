"""Per-query scores of many systems, from nested mappings, long frames or an evaluation report.

Every form becomes the same thing: for each dataset and metric one row of scores a system, over all queries that any
system has, in code point order of their ids.
"""

import contextlib
import itertools
import operator
import re
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from groundkit import _native
from groundkit.errors import EvalError
from groundkit.evals.arguments import require_name
from groundkit.evals.fork import using_polars
from groundkit.evals.quoting import quote, quote_first
from groundkit.evals.schema import EvalReport, StageName
from groundkit.evals.score_values import convert_scores, require_finite
from groundkit.evals.significance import MetricName
from groundkit.evals.sweep.models import Nesting

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DEFAULT_DATASET", "ScoreTable", "read_scores", "report_scores"]

DEFAULT_DATASET = "default"
"""Name of the dataset of scores that name none."""

_MEASURE = re.compile(
    # As trec_eval names them, with a cutoff or level where there is one, and as ir_measures does.
    r"(map|gm_map|Rprec|bpref|recip_rank|ndcg|ndcg_rel|infAP|11pt_avg|set_\w+|num_\w+|utility|G|binG|"
    r"(map_cut|ndcg_cut|P|recall|success|relative_P|relstring|iprec_at_recall|Rprec_mult|gm_bpref)_[\d.]+|"
    r"(nDCG|AP|RR|P|R|Success|Judged|ERR|NERR\d+|RBP|Bpref|Compat|infAP|INST|SetP|SetR|SetF|SetAP|Rprec|IPrec|"
    r"alpha_nDCG|MAP|MRR|Recall|NDCG|Precision|Hit|hit|mrr|recall|precision)(\(.*\))?(@[\d.]+)?)",
)
"""Names of measures in the field, none of which anybody gives to a query."""

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


def read_scores(scores: object, *, nesting: Nesting = "metric") -> list[ScoreTable]:
    """Bring per-query scores of any supported form into tables.

    Args:
        scores: An `EvalReport`, a long frame with the columns ``dataset`` (may be left out), ``system``, ``metric``,
            ``query_id`` and ``score``, or nested mappings ``{system: {metric: {query_id: score}}}``, of one dataset, or
            ``{dataset: {system: {metric: {query_id: score}}}}``.
        nesting: What the mappings nest directly below a system.

    Returns:
        One table for each dataset and metric, in the order in which they first appear.

    Raises:
        EvalError: A frame cannot be read, lacks a column or scores a query twice, a score is not finite, nothing is
            scored, a stage of the report is there twice, or mappings nest the other way round.
        TypeError: The scores have another form, or one of them is no real number.
    """
    if isinstance(scores, EvalReport):
        tables = _from_mapping({DEFAULT_DATASET: report_scores(scores)})
    elif isinstance(scores, Mapping):
        tables = _from_mapping(scores if _names_datasets(scores) else {DEFAULT_DATASET: scores}, nesting)
    else:
        tables = _read_frame(scores)
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
        raise EvalError(f"report contains more than one stage named {quote_first(repeated)}")
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for stage in report.stages:
        by_metric: dict[str, dict[str, float]] = {metric: {} for metric in get_args(MetricName)}
        for query in stage.queries:
            if query.metrics is None:
                continue
            if query.query_id in by_metric["mrr"]:
                raise EvalError(f"duplicate query id {quote(query.query_id)} in stage {stage.stage!r}")
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


def _from_mapping(datasets: Mapping[Any, Any], nesting: Nesting = "metric") -> list[ScoreTable]:
    tables: list[ScoreTable] = []
    for dataset, systems in datasets.items():
        require_name("dataset", dataset)
        by_metric: dict[str, dict[str, Mapping[str, float]]] = {}
        for system, nested in _items(systems, f"the systems of dataset {quote(dataset)}"):
            require_name("system", system)
            metrics = nested if nesting == "metric" else _transpose(system, nested)
            for metric, queries in _items(metrics, f"the metrics of {quote(system)}"):
                if not isinstance(queries, Mapping):
                    raise TypeError(
                        f"the scores of {quote(system)} in {quote(metric)} must be a mapping from query id to score, "
                        f"not {type(queries).__name__}"
                    )
                if metric not in by_metric:
                    require_name("metric", metric)
                by_metric.setdefault(metric, {})[system] = queries
            _require_queries_below_metrics(system, metrics)
        systems_in_order = list(systems)
        tables.extend(_table(dataset, metric, systems_in_order, by_system) for metric, by_system in by_metric.items())
    return tables


def _items(value: object, what: str) -> Iterable[tuple[Any, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError(
            "scores must nest as {system: {metric: {query_id: score}}}: "
            f"{what} must be a mapping, not {type(value).__name__}"
        )
    return value.items()


def _transpose(system: str, queries: object) -> dict[str, dict[str, float]]:
    metrics: dict[str, dict[str, float]] = {}
    for query_id, by_metric in _items(queries, f"the queries of {quote(system)}"):
        for metric, score in _items(by_metric, f"the scores of {quote(system)} for query {quote(query_id)}"):
            metrics.setdefault(metric, {})[query_id] = score
    return metrics


def _require_queries_below_metrics(system: str, metrics: Mapping[Any, Mapping[Any, Any]]) -> None:
    """Refuse measures below queries, as pytrec_eval nests them: every query would count as a metric."""
    inner = next(iter(metrics.values()), {})
    if not inner or not all(map(_is_measure, inner)) or any(map(_is_measure, metrics)):
        return
    raise EvalError(
        "scores must nest as {system: {metric: {query_id: score}}}, but those of "
        f"{quote(system)} seem to nest as {{system: {{query_id: {{measure: score}}}}}}, as pytrec_eval writes them: "
        f"{quote(next(iter(metrics)))} would be a metric and {quote(next(iter(inner)))} a query; "
        "say nesting='query' to take them so"
    )


def _is_measure(name: object) -> bool:
    return isinstance(name, str) and _MEASURE.fullmatch(name) is not None


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
        owner = _describe_owner(dataset, metric, system)
        rows[system] = convert_scores(read(scores) if read else list(scores.values()), query_ids, owner)
        require_finite(rows[system], query_ids, owner)
    return ScoreTable(dataset, metric, query_ids, rows, missing)


def _describe_owner(dataset: str, metric: str, system: str) -> str:
    on = "" if dataset == DEFAULT_DATASET else f" on dataset {quote(dataset)}"
    return f" of system {quote(system)} in metric {quote(metric)}{on}"


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
    columns: Any = getattr(scores, "columns", None)
    if columns is not None:
        names = list(columns() if callable(columns) else columns)
        repeated = [name for name in COLUMNS if names.count(name) > 1]
        if repeated:
            raise EvalError(f"the frame of scores has several columns named {quote_first(repeated)}")
    if hasattr(scores, "__arrow_c_stream__"):
        # pandas offers the stream, but fails to give it without pyarrow.
        with contextlib.suppress(ImportError):
            return pl.DataFrame(scores)
    if columns is not None:
        frame: Any = scores
        return pl.DataFrame({name: frame[name].tolist() for name in COLUMNS if name in names})
    raise TypeError(f"scores must be mappings, a long frame or an EvalReport, not {type(scores).__name__}")


def _read_frame(scores: object) -> list[ScoreTable]:
    import polars as pl  # noqa: PLC0415 - as above

    with using_polars():
        try:
            return _from_frame(_as_polars(scores))
        except (pl.exceptions.PolarsError, OSError) as error:
            # What follows the first line tells of the plan that polars made.
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise EvalError(f"cannot read the frame of scores: {reason}") from error


def _from_frame(frame: "pl.DataFrame") -> list[ScoreTable]:
    import polars as pl  # noqa: PLC0415 - as above

    if "dataset" not in frame.columns:
        frame = frame.with_columns(dataset=pl.lit(DEFAULT_DATASET))
    absent = [column for column in COLUMNS if column not in frame.columns]
    if absent:
        raise EvalError(
            f"the frame of scores lacks the columns {quote_first(absent)}; it has {quote_first(frame.columns)}"
        )
    kind = frame.schema["score"]
    if not kind.is_numeric() and kind not in (pl.Boolean, pl.Null):
        raise TypeError(f"scores must be real numbers, but the column 'score' is of type {kind}")
    names = [column for column in COLUMNS if column != "score"]
    for name in names:
        kind = frame.schema[name]
        if not kind.is_integer() and kind not in (pl.String, pl.Binary, pl.Categorical, pl.Enum, pl.Null):
            raise TypeError(f"the column {name!r} of the frame of scores must hold strings, but it is of type {kind}")
    frame = frame.select(pl.col(names).cast(pl.String), pl.col("score").cast(pl.Float64)).select(COLUMNS)
    for name in COLUMNS:
        if frame[name].null_count():
            row = frame.with_row_index("row").filter(pl.col(name).is_null()).row(0, named=True)
            raise EvalError(
                f"the frame of scores has nulls in {name!r}, first in row {row['row']:,}{_describe_row(row)}"
            )
    infinite = frame.filter(~pl.col("score").is_finite())
    if infinite.height:
        row = infinite.row(0, named=True)
        owner = _describe_owner(row["dataset"], row["metric"], row["system"])
        raise EvalError(f"scores must be finite: the score{owner} for query {quote(row['query_id'])} is {row['score']}")
    tables: list[ScoreTable] = []
    for of_dataset in frame.partition_by("dataset", maintain_order=True):
        systems = of_dataset["system"].unique(maintain_order=True).to_list()
        by_metric = of_dataset.partition_by("metric", maintain_order=True)
        tables.extend(_table_of_frame(part, systems) for part in by_metric)
    return tables


def _describe_row(row: dict[str, Any]) -> str:
    known = [
        f"{name} {quote(row[name])}" for name in ("dataset", "system", "metric", "query_id") if row[name] is not None
    ]
    return f" ({', '.join(known)})" if known else ""


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
                f"duplicate query id {quote(queries['query_id'][twice])} of system {quote(system)} in metric "
                f"{quote(metric)} on dataset {quote(dataset)}"
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
