"""The result of a sweep, with the forms in which it can be shown."""

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, get_args

from groundkit.errors import EvalError
from groundkit.evals.sweep.models import SweepContent, SweepRow, Verdict
from groundkit.evals.sweep.rendering import draw_forest, group_of_best, render_latex, render_markdown, render_rich

if TYPE_CHECKING:
    import polars as pl
    import rich.table
    from matplotlib.figure import Figure

__all__ = ["SweepResult"]


class SweepResult(SweepContent):
    """The comparisons of a sweep, with what they were made of, and ways to show them.

    Attributes:
        rows: One comparison each: by dataset, metric and baseline, in the order of the scores.
        baselines: Systems that were compared with; all of them where all pairs were compared.
        family: What makes a family of comparisons.
        missing: What was done about queries that a system lacks.
        adjusted_test: The test whose p-values Holm's and Benjamini and Hochberg's methods adjusted.
        averages: Averages over the datasets, where there are several and they were asked for: one row for each pair of
            systems and each metric that all datasets have.
    """

    def to_polars(self) -> "pl.DataFrame":
        """Return the rows as a polars frame, one column a field; the notes as a list of strings."""
        import polars as pl  # noqa: PLC0415 - half a second of import that a sweep does not need

        kinds = {int: pl.Int64(), float: pl.Float64(), str: pl.String(), bool: pl.Boolean()}
        schema: dict[str, pl.DataType] = {}
        for name, info in SweepRow.model_fields.items():
            kind = next((kind for kind in (get_args(info.annotation) or (info.annotation,)) if kind in kinds), None)
            schema[name] = kinds[kind] if kind is not None else pl.List(pl.String())
        schema["notes"] = pl.List(pl.String())
        # A seed may have any size.
        schema["seed"] = pl.String()
        rows = [row.model_dump() | {"seed": str(row.seed)} for row in self.rows]
        return pl.DataFrame(rows, schema=schema)

    def to_markdown(self, *, by: Verdict = "holm", digits: int = 3) -> str:
        """Return a Markdown table: systems by metrics, the best in bold, differences marked, with a legend.

        Args:
            by: What decides that two systems differ.
            digits: Digits behind the point.

        Returns:
            The table and its legend.

        Raises:
            EvalError: The sweep did not run the test that ``by`` names.
        """
        return render_markdown(self, by=by, digits=digits)

    def to_latex(self, *, by: Verdict = "holm", digits: int = 3) -> str:
        """Return the same as a LaTeX table, for the package booktabs.

        Args:
            by: As for `to_markdown`.
            digits: As for `to_markdown`.

        Returns:
            A table environment with the legend as its caption.

        Raises:
            EvalError: As for `to_markdown`.
        """
        return render_latex(self, by=by, digits=digits)

    def __rich__(self) -> "rich.table.Table":
        """Let `rich.print` show the table."""
        return render_rich(self)

    def group_of_best(self, metric: str, *, dataset: str | None = None, by: Verdict = "holm") -> tuple[str, ...]:
        """Return the best system of a metric and all those that are not separable from it.

        The system with the highest mean is picked by looking, so its comparisons must be adjusted for all that were
        made: compare all pairs.

        Args:
            metric: The metric.
            dataset: The dataset, where there are several.
            by: What decides that two systems differ.

        Returns:
            The systems, by their mean, best first.

        Raises:
            EvalError: The best system was not compared with all others, or there is no such metric or dataset.
        """
        return group_of_best(self, metric=metric, dataset=dataset, by=by)

    def plot(
        self,
        path: "str | os.PathLike[str] | None" = None,
        *,
        metrics: Collection[str] | None = None,
        datasets: Collection[str] | None = None,
        by: Verdict = "holm",
    ) -> "Figure":
        """Draw a forest plot: effects with their intervals, one panel a dataset and metric, one line a comparison.

        Args:
            path: Where to save it; the suffix says as what (``.svg``, ``.png``, ``.pdf``).
            metrics: Metrics to show; all by default.
            datasets: Datasets to show; all by default.
            by: What decides that two systems differ, which colours a line.

        Returns:
            The figure.

        Raises:
            EvalError: Nothing is left to plot, matplotlib is not installed (extra ``plot``), or the file
                cannot be written.
        """
        figure = draw_forest(
            [
                row
                for row in self.rows
                if (metrics is None or row.metric in metrics) and (datasets is None or row.dataset in datasets)
            ],
            by=by,
        )
        if path is not None:
            try:
                figure.savefig(path, dpi=150)
            except (OSError, ValueError) as error:
                raise EvalError(f"cannot write plot {os.fspath(path)!r}: {error}") from error
        return figure
