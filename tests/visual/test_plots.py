"""Plots show the numbers they are given, in colours that mean the same everywhere."""

import builtins
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from scalor.errors import InputError
from scalor.visual.plots import COLORS, Line, Panel, plot, save_plot

OURS = Line("ours", [1, 2, 3], [0.5, 0.25, 0.125])
THEIRS = Line("theirs", [1, 2], [4.0, math.nan])
BOTH = Panel("objects", "milliseconds", [OURS, THEIRS], title="speed")
THEIRS_ALONE = Panel("seconds", "error", [THEIRS], log_x=True, log_y=True)


def drawn(figure: Figure) -> list[dict[str, Any]]:
    return [{str(line.get_label()): line for line in axes.get_lines()} for axes in figure.axes]


def test_a_line_goes_through_its_points() -> None:
    (lines,) = drawn(plot([[BOTH]]))
    assert list(lines) == ["ours", "theirs"]
    for line in (OURS, THEIRS):
        assert np.array_equal(lines[line.name].get_xdata(), line.x)
        assert np.array_equal(lines[line.name].get_ydata(), line.y, equal_nan=True)


def test_axes_are_named_and_scaled_as_asked() -> None:
    first, second = plot([[BOTH, THEIRS_ALONE]]).axes
    assert (first.get_xlabel(), first.get_ylabel(), first.get_title()) == ("objects", "milliseconds", "speed")
    assert (first.get_xscale(), first.get_yscale()) == ("linear", "linear")
    assert first.get_ylim()[0] == 0
    assert (second.get_xscale(), second.get_yscale()) == ("log", "log")


def test_a_name_has_one_colour_in_all_panels_and_names_differ() -> None:
    first, second = drawn(plot([[BOTH], [THEIRS_ALONE]]))
    assert to_hex(second["theirs"].get_color()) == to_hex(first["theirs"].get_color()) == COLORS[1].lower()
    assert to_hex(first["ours"].get_color()) == COLORS[0].lower()
    assert first["ours"].get_marker() != first["theirs"].get_marker()


def test_the_legend_names_every_line_once_and_covers_no_panel() -> None:
    figure = plot([[BOTH, THEIRS_ALONE]])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours", "theirs"]
    for axes in figure.axes:
        panel = axes.get_tightbbox()
        assert panel is not None
        assert not legend.get_window_extent().overlaps(panel)


def test_a_short_logarithmic_axis_still_has_numbers() -> None:
    figure = plot([[Panel("x", "y", [Line("a", [2, 7], [0.02, 0.0021])], log_x=True, log_y=True)]])
    figure.draw_without_rendering()
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        low, high = sorted(axis.get_view_interval())
        shown = [
            t.get_text() for t, at in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True) if low <= at <= high
        ]
        assert len(shown) >= 2
        assert not any("times" in text or "e" in text for text in shown)


def test_a_plot_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    save_plot(tmp_path / "a.png", [[BOTH, THEIRS_ALONE]])
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (1600, 620)
    with pytest.raises(InputError, match=r"a\.pdf: give a file name that ends in \.png"):
        save_plot(tmp_path / "a.pdf", [[BOTH]])
    with pytest.raises(InputError, match=r"cannot write .* choose a folder that exists"):
        save_plot(tmp_path / "missing" / "a.png", [[BOTH]])
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_what_cannot_be_plotted_is_said_in_a_sentence() -> None:
    empty: list[list[list[Panel]]] = [[], [[]], [[Panel("x", "y", [])]]]
    for nothing in empty:
        with pytest.raises(InputError, match=r"rows holds .* 0 lines: give rows of equally many panels"):
            plot(nothing)
    with pytest.raises(InputError, match=r"rows holds \[2, 1\] panels with 5 lines"):
        plot([[BOTH, THEIRS_ALONE], [BOTH]])


def test_a_missing_matplotlib_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(InputError, match=r"needs the package matplotlib: run pip install 'scalor\[plots\]'"):
        save_plot(tmp_path / "a.png", [[BOTH]])
    assert list(tmp_path.iterdir()) == []
