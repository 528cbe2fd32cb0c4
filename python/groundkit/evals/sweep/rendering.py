"""Show a sweep: tables for Markdown, LaTeX and terminals, and a forest plot."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from groundkit.errors import EvalError
from groundkit.evals.arguments import require_choice
from groundkit.evals.p_values import is_significant, significance_level
from groundkit.evals.quoting import quote, quote_first
from groundkit.evals.sweep.models import SweepContent, SweepRow, Verdict

if TYPE_CHECKING:
    import rich.table
    from matplotlib.figure import Figure


__all__ = ["draw_forest", "group_of_best", "render_latex", "render_markdown", "render_rich", "verdict_of"]

_WORDS: dict[Verdict, str] = {
    "holm": "Holm-adjusted {test}",
    "benjamini_hochberg": "Benjamini-Hochberg-adjusted {test}",
    "max_t": "step-down max-T bootstrap",
    "interval": "percentile interval of the single comparison, not adjusted",
}
_TESTS = {"sign_flip": "sign-flip test", "t": "paired t-test", "bootstrap": "bootstrap p-value"}


def verdict_of(row: SweepRow, by: Verdict) -> bool:
    """Say whether the two systems of a row differ at the row's confidence level."""
    require_choice("verdict", by, get_args(Verdict))
    if by == "interval":
        return row.significant
    p_values = {
        "holm": row.p_value_holm,
        "benjamini_hochberg": row.p_value_benjamini_hochberg,
        "max_t": row.p_value_max_t,
    }
    p_value = p_values[by]
    if p_value is None:
        raise EvalError(f"the sweep did not run the test for {by!r}; add it to its tests")
    return is_significant(p_value, row.confidence_level)


def group_of_best(result: SweepContent, *, metric: str, dataset: str | None, by: Verdict) -> tuple[str, ...]:
    """Return the system with the highest mean and those that are not separable from it, best first."""
    rows = [row for row in result.rows if row.metric == metric and dataset in {None, row.dataset}]
    datasets = {row.dataset for row in rows}
    if len(datasets) != 1:
        raise EvalError(
            f"expected comparisons in {quote(metric)} on one dataset, found {len(datasets)}: name one of the datasets "
            f"{quote_first(sorted({row.dataset for row in result.rows}))}"
        )
    means = _means(rows)
    ranked = sorted(means, key=means.__getitem__, reverse=True)
    best = ranked[0]
    against = {row.candidate if row.baseline == best else row.baseline: row for row in rows if best in _pair(row)}
    absent = [system for system in ranked if system != best and system not in against]
    if absent:
        raise EvalError(
            f"the best system {quote(best)} was not compared with {quote_first(absent)}: compare all pairs, "
            "or make it a baseline"
        )
    return (best, *(system for system in ranked[1:] if not verdict_of(against[system], by)))


def _pair(row: SweepRow) -> tuple[str, str]:
    return row.baseline, row.candidate


def _means(rows: Iterable[SweepRow]) -> dict[str, float]:
    means: dict[str, float] = {}
    for row in rows:
        means.setdefault(row.baseline, row.baseline_mean)
        means.setdefault(row.candidate, row.candidate_mean)
    return means


@dataclass(frozen=True)
class _Cell:
    mean: float
    best: bool
    marks: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    columns: list[tuple[str, str]]
    cells: dict[str, list[_Cell | None]]
    letters: dict[str, str]
    legend: str


def _tabulate(result: SweepContent, by: Verdict) -> _Table:
    """Lay out systems as rows, and the metrics of each dataset as columns."""
    columns = list(dict.fromkeys((row.dataset, row.metric) for row in result.rows))
    systems = list(dict.fromkeys(name for row in result.rows for name in _pair(row)))
    letters = {baseline: _letter(number) for number, baseline in enumerate(result.baselines)}
    cells: dict[str, list[_Cell | None]] = {system: [] for system in systems}
    for column in columns:
        rows = [row for row in result.rows if (row.dataset, row.metric) == column]
        means = _means(rows)
        marks: dict[str, list[str]] = {system: [] for system in systems}
        for row in rows:
            if verdict_of(row, by):
                marks[row.candidate].append(("" if row.effect > 0.0 else "-") + letters[row.baseline])
                if row.candidate in letters:
                    marks[row.baseline].append(("-" if row.effect > 0.0 else "") + letters[row.candidate])
        for system in systems:
            cell = None
            if system in means:
                cell = _Cell(means[system], means[system] == max(means.values()), tuple(dict.fromkeys(marks[system])))
            cells[system].append(cell)
    row = result.rows[0]
    words = _WORDS[by].format(test=_TESTS[result.adjusted_test])
    families = {"dataset": "each dataset", "metric": "each metric of each dataset", "all": "the whole sweep"}
    family = "" if by == "interval" else f" over {families[result.family]}"
    named = "; ".join(f"{letter}: {baseline}" for baseline, letter in letters.items())
    legend = (
        f"Means; best of a column in bold. A letter marks a system that scores higher than its baseline ({named}), a "
        f"letter after a minus one that scores lower: {words}{family}, "
        f"level {significance_level(row.confidence_level):.3g}; "
        f"{_counts(result)} queries, {row.resamples} resamples, seed {row.seed}."
    )
    if any(row.notes for row in result.rows):
        legend += " Notes: " + "; ".join(dict.fromkeys(note for row in result.rows for note in row.notes)) + "."
    return _Table(columns, cells, letters, legend)


def _counts(result: SweepContent) -> str:
    counts = {row.query_count for row in result.rows}
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def _letter(number: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return (
        letters[number]
        if number < len(letters)
        else _letter(number // len(letters) - 1) + _letter(number % len(letters))
    )


def _headings(table: _Table) -> list[str]:
    several = len({dataset for dataset, _ in table.columns}) > 1
    return [f"{dataset} {metric}" if several else metric for dataset, metric in table.columns]


def _system(table: _Table, system: str) -> str:
    return f"{system} ({table.letters[system]})" if system in table.letters else system


def _texts(
    table: _Table, digits: int, *, bold: Callable[[str], str], mark: Callable[[str], str]
) -> Iterable[tuple[str, list[str]]]:
    for system, cells in table.cells.items():
        texts = []
        for cell in cells:
            if cell is None:
                texts.append("")
                continue
            text = f"{cell.mean:.{digits}f}"
            texts.append((bold(text) if cell.best else text) + (mark(",".join(cell.marks)) if cell.marks else ""))
        yield _system(table, system), texts


def render_markdown(result: SweepContent, *, by: Verdict, digits: int) -> str:
    """Return a Markdown table with its legend."""
    table = _tabulate(result, by)

    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")

    lines = ["| system | " + " | ".join(map(escape, _headings(table))) + " |", "|---|" + "---:|" * len(table.columns)]
    for system, texts in _texts(table, digits, bold="**{}**".format, mark="<sup>{}</sup>".format):
        lines.append(f"| {escape(system)} | " + " | ".join(texts) + " |")
    return "\n".join([*lines, "", escape(table.legend), ""])


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\n": " ",
}


def render_latex(result: SweepContent, *, by: Verdict, digits: int) -> str:
    """Return a LaTeX table (booktabs) with its legend as caption."""
    table = _tabulate(result, by)

    def escape(text: str) -> str:
        return "".join(_LATEX.get(character, character) for character in text)

    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        " & ".join(["system", *map(escape, _headings(table))]) + r" \\",
        r"\midrule",
    ]
    for system, texts in _texts(table, digits, bold=r"\textbf{{{}}}".format, mark="$^{{{}}}$".format):
        lines.append(" & ".join([escape(system), *texts]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{escape(table.legend)}}}", r"\end{table}", ""]
    return "\n".join(lines)


def render_rich(result: SweepContent, *, by: Verdict = "holm", digits: int = 3) -> "rich.table.Table":
    """Return a table for `rich.print`."""
    from rich.markup import escape  # noqa: PLC0415 - only who prints with rich has it
    from rich.table import Table  # noqa: PLC0415 - as above

    table = _tabulate(result, by)
    shown = Table(caption=escape(table.legend), caption_justify="left")
    shown.add_column("system")
    for heading in _headings(table):
        shown.add_column(escape(heading), justify="right")
    for system, texts in _texts(table, digits, bold="[bold]{}[/bold]".format, mark=" {}".format):
        shown.add_row(escape(system), *texts)
    return shown


def draw_forest(rows: Sequence[SweepRow], *, by: Verdict) -> "Figure":
    """Draw effects with their intervals, one panel a dataset and metric, one line a comparison."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise EvalError("plots need matplotlib: pip install 'groundkit-evals[plot]'") from error
    if not rows:
        raise EvalError("there is no comparison to plot")
    panels = list(dict.fromkeys((row.dataset, row.metric) for row in rows))
    pairs = list(dict.fromkeys(_pair(row) for row in rows))
    several = len({baseline for baseline, _ in pairs}) > 1
    labels = [f"{candidate} \N{MINUS SIGN} {baseline}" if several else candidate for baseline, candidate in pairs]
    across = min(len(panels), 5)
    down = -(-len(panels) // across)
    width = 1.2 + 0.075 * max(map(len, labels)) + 2.6 * across
    figure = Figure(figsize=(width, down * (1.1 + 0.24 * len(pairs)) + 0.5), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    datasets = len({dataset for dataset, _ in panels})
    for axes, (dataset, metric) in zip(grid.flat, panels, strict=False):
        for row in rows:
            if (row.dataset, row.metric) != (dataset, metric):
                continue
            height = pairs.index(_pair(row))
            differs = verdict_of(row, by)
            colour = "tab:gray" if not differs else "tab:blue" if row.effect > 0.0 else "tab:red"
            if row.simultaneous_interval_low is not None and row.simultaneous_interval_high is not None:
                axes.plot(
                    [row.simultaneous_interval_low, row.simultaneous_interval_high], [height] * 2, color=colour, lw=0.8
                )
            axes.plot([row.confidence_interval_low, row.confidence_interval_high], [height] * 2, color=colour, lw=2.6)
            axes.plot(row.effect, height, "o" if differs else "|", color=colour, ms=5)
        axes.axvline(0.0, color="black", lw=0.8)
        axes.set_title(f"{dataset} {metric}" if datasets > 1 else metric, fontsize=10)
        axes.grid(axis="y", color="0.92", lw=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8)
        axes.set_yticks(range(len(pairs)), labels)
        axes.set_ylim(len(pairs) - 0.5, -0.5)
    baselines = "" if several else f" \N{MINUS SIGN} {pairs[0][0]}"
    words = _WORDS[by].format(test="test")
    figure.supxlabel(
        f"difference of means{baselines}\n"
        f"thick: {rows[0].confidence_level:.0%} percentile interval, thin: simultaneous; "
        f"coloured where the {words} finds a difference",
        fontsize=8,
    )
    return figure
