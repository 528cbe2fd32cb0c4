"""Tables and plots of a sweep: the best is bold, differences are marked, names are escaped."""

import math
import random
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from groundkit.errors import EvalError
from groundkit.evals.sweep import SweepResult, compare_systems
from rich.console import Console

SVG_TEXT = re.compile(r"<!-- (.*?) -->")


def sweep(names: tuple[str, ...] = ("BM25", "worse", "same", "better"), **arguments: Any) -> SweepResult:
    """Compare systems of which the second is clearly worse than the first and the fourth clearly better."""
    data = random.Random(5)
    base = [data.uniform(0.3, 0.7) for _ in range(80)]
    shifts = (0.0, -0.1, 0.0, 0.1, *(0.1 * math.sin(number) for number in range(len(names))))
    scores = {
        name: {
            metric: {f"q{query}": score + shift + data.gauss(0.0, 0.05) for query, score in enumerate(base)}
            for metric in ("nDCG@10", "RR")
        }
        for name, shift in zip(names, shifts, strict=False)
    }
    return compare_systems(scores, **{"baseline": names[0]} | arguments)


def test_a_markdown_table_has_the_best_in_bold_and_marks_what_differs() -> None:
    lines = sweep().to_markdown().splitlines()
    assert lines[0] == "| system | nDCG@10 | RR |"
    assert re.fullmatch(r"\| BM25 \(a\) \| 0\.\d{3} \| 0\.\d{3} \|", lines[2])
    assert re.fullmatch(r"\| worse \| 0\.\d{3}<sup>-a</sup> \| 0\.\d{3}<sup>-a</sup> \|", lines[3])
    assert re.fullmatch(r"\| same \| 0\.\d{3} \| 0\.\d{3} \|", lines[4])
    assert re.fullmatch(r"\| better \| \*\*0\.\d{3}\*\*<sup>a</sup> \| \*\*0\.\d{3}\*\*<sup>a</sup> \|", lines[5])
    assert "Holm-adjusted sign-flip test over each dataset, level 0.05; 80 queries" in lines[7]


def test_between_two_baselines_both_are_marked() -> None:
    lines = sweep(baseline=["BM25", "worse"]).to_markdown().splitlines()
    assert lines[2].count("<sup>b</sup>") == 2
    assert lines[3].count("<sup>-a</sup>") == 2
    assert lines[5].count("<sup>a,b</sup>") == 2


def test_datasets_stand_beside_each_other() -> None:
    scores = {name: {"m": {str(query): query * factor for query in range(60)}} for name, factor in (("a", 1), ("b", 2))}
    table = compare_systems({"x": scores, "y": scores}).to_markdown()
    assert table.startswith("| system | x m | y m |")


def test_a_table_escapes_what_its_language_would_read() -> None:
    result = sweep(("a|b_c", "50% & more\\"))
    assert "a\\|b_c (a)" in result.to_markdown()
    latex = result.to_latex()
    assert r"50\% \& more\textbackslash{} &" in latex
    assert r"a|b\_c (a)" in latex


def test_a_latex_table_is_complete() -> None:
    latex = sweep().to_latex(digits=2)
    assert latex.startswith("\\begin{table}")
    assert latex.endswith("\\end{table}\n")
    assert re.search(r"better & \\textbf\{0\.\d\d\}\$\^\{a\}\$ &", latex)
    assert re.search(r"worse & 0\.\d\d\$\^\{-a\}\$ &", latex)


def test_rich_prints_the_table() -> None:
    out = StringIO()
    Console(file=out, width=100).print(sweep(("[red]", "worse", "same", "better")))
    assert "[red] (a)" in out.getvalue()
    assert re.search(r"worse .* -a ", out.getvalue())


@pytest.mark.parametrize("by", ["holm", "benjamini_hochberg", "max_t", "interval"])
def test_every_verdict_finds_the_clear_differences(by: Any) -> None:
    lines = sweep().to_markdown(by=by).splitlines()
    assert lines[5].count("<sup>a</sup>") == 2


def test_a_verdict_whose_test_was_not_run_is_refused() -> None:
    with pytest.raises(EvalError, match="did not run the test for 'max_t'"):
        sweep(tests=[]).to_markdown(by="max_t")


def test_an_unknown_verdict_is_refused() -> None:
    verdict: Any = "hope"
    with pytest.raises(EvalError, match="unknown verdict 'hope'"):
        sweep().to_markdown(by=verdict)


def test_the_group_of_the_best_ends_where_systems_are_separable() -> None:
    result = sweep(("BM25", "worse", "same", "better"), baseline=None)
    assert result.group_of_best("RR") == ("better",)
    scores = {
        name: {"m": {str(query): math.sin(query * factor) + shift for query in range(100)}}
        for name, factor, shift in (("low", 1.1, -2.0), ("first", 1.3, 0.01), ("second", 1.7, 0.0))
    }
    assert compare_systems(scores).group_of_best("m") == ("first", "second")


def test_the_group_of_the_best_needs_its_comparisons() -> None:
    with pytest.raises(EvalError, match="the best system 'better' was not compared with"):
        sweep().group_of_best("RR")


def test_the_group_of_the_best_needs_one_dataset() -> None:
    with pytest.raises(EvalError, match="on one dataset, found 0"):
        sweep().group_of_best("MAP")


def test_a_frame_has_one_column_a_field_and_one_row_a_comparison() -> None:
    result = sweep()
    frame = result.to_polars()
    assert frame.columns == list(type(result.rows[0]).model_fields)
    assert frame["effect"].to_list() == [row.effect for row in result.rows]
    assert frame["notes"].to_list() == [[]] * 6
    assert str(frame.schema["query_count"]) == "Int64"


def test_a_frame_holds_seeds_of_any_size_and_absent_values() -> None:
    frame = sweep(seed=2**80, tests=[]).to_polars()
    assert frame["seed"][0] == str(2**80)
    assert frame["p_value_max_t"].null_count() == 6
    assert str(frame.schema["p_value_max_t"]) == "Float64"


def test_a_plot_shows_every_comparison_of_fifty_systems(tmp_path: Path) -> None:
    names = tuple(f"system {number}" for number in range(51))
    sweep(names, resamples=200, tests=["max_t"]).plot(tmp_path / "forest.svg")
    text = SVG_TEXT.findall((tmp_path / "forest.svg").read_text())
    assert set(names[1:]) <= set(text)
    assert {"nDCG@10", "RR"} <= set(text)


def test_a_plot_can_be_a_picture(tmp_path: Path) -> None:
    sweep().plot(tmp_path / "forest.png")
    assert (tmp_path / "forest.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_shows_the_chosen_metrics() -> None:
    titles = [axes.get_title() for axes in sweep().plot(metrics=["RR"]).axes if axes.get_visible()]
    assert titles == ["RR"]


def test_lines_of_a_plot_are_as_long_as_their_intervals() -> None:
    result = sweep()
    axes = result.plot(metrics=["RR"]).axes[0]
    drawn = {tuple(map(float, line.get_xdata())) for line in axes.lines}  # type: ignore[arg-type]
    for row in result.rows:
        if row.metric == "RR":
            assert (row.confidence_interval_low, row.confidence_interval_high) in drawn
            assert (row.simultaneous_interval_low, row.simultaneous_interval_high) in drawn


@pytest.mark.parametrize("name", ["absent/forest.png", "forest.doc"])
def test_a_plot_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EvalError, match="cannot write plot"):
        sweep().plot(tmp_path / name)


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(EvalError, match="no comparison to plot"):
        sweep().plot(metrics=["MAP"])
