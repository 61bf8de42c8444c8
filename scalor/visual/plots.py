"""Line plots in rows of panels; a name has the same colour in every panel.

Figures are made without matplotlib's global state, so no window is opened and no figure stays in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalor.errors import InputError
from scalor.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which can be told apart with every kind of colour vision. Their pale yellow is left out,
# because it is hardly visible on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^DvPX"
"""One marker for each colour, so that lines can be told apart in black and white as well."""
MAX_MARKERS = 12
"""Approximate limit on the markers of a line. More could not be told apart."""
PANEL_INCHES = (4.0, 2.7)
"""Width and height of a panel."""
DOTS_PER_INCH = 200


@dataclass(frozen=True)
class Line:
    """A named line of values y over x."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """Lines on shared axes. The y axis starts at zero unless it is logarithmic."""

    x_label: str
    y_label: str
    lines: Sequence[Line]
    title: str = ""
    log_x: bool = False
    log_y: bool = False


def plot(rows: Sequence[Sequence[Panel]], inches: tuple[float, float] = PANEL_INCHES) -> "Figure":
    """Draw panels under one legend.

    Parameters
    ----------
    rows : sequence of sequences of Panel
        Rows of equally many panels.
    inches : tuple of float
        Width and height of each panel.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("drawing a plot needs the package matplotlib: run pip install 'scalor[plots]'.") from error
    panels = [panel for row in rows for panel in row]
    if not any(panel.lines for panel in panels) or len({len(row) for row in rows}) > 1:
        raise InputError(
            f"rows holds {[len(row) for row in rows]} panels with {sum(len(panel.lines) for panel in panels)} lines: "
            "give rows of equally many panels, and at least one line."
        )
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    width, height = inches
    figure = Figure(figsize=(width * len(rows[0]), height * len(rows) + 0.4), layout="constrained")
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _draw(axes, panel, names)
    handles = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
    figure.legend(
        [handles[name] for name in names],
        names,
        loc="outside upper center",
        ncols=min(len(names), 4),
        frameon=False,
    )
    return figure


def save_plot(path: str | Path, rows: Sequence[Sequence[Panel]], inches: tuple[float, float] = PANEL_INCHES) -> None:
    """Write a plot to a .png file, which appears only when it is complete; see `plot` for the arguments."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise InputError(f"path is {path}: give a file name that ends in .png.")
    figure = plot(rows, inches)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=DOTS_PER_INCH)


def _draw(axes: "Axes", panel: Panel, names: list[str]) -> None:
    """Draw a panel; the place of a line's name in `names` selects its colour and marker."""
    for line in panel.lines:
        which = names.index(line.name) % len(COLORS)
        every = max(1, len(line.x) // MAX_MARKERS)
        (drawn,) = axes.plot(line.x, line.y, color=COLORS[which], label=line.name)
        drawn.set(marker=MARKERS[which], markersize=4, markevery=every)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    if panel.log_x:
        axes.set_xscale("log")
        _mark_decades(axes.xaxis, [value for line in panel.lines for value in line.x])
    if panel.log_y:
        axes.set_yscale("log")
        _mark_decades(axes.yaxis, [value for line in panel.lines for value in line.y])
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)


def _mark_decades(axis: "Axis", values: Sequence[float]) -> None:
    """Label 1, 10, 100; on an axis of less than two decades, which would have few labels, add 2 and 5."""
    from matplotlib.ticker import LogLocator, NullFormatter

    measured = [value for value in values if value > 0]  # excludes zero and NaN
    short = max(measured, default=1.0) < 100 * min(measured, default=1.0)
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axis.set_minor_formatter(NullFormatter())
