"""Crossings of lines: where, when and which way, and how many objects passed, each counted once.

An object that trembles on a line does not cross it: it is on a side only once it is a margin away from the line. A line
ends at its two points; who goes around it does not cross it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from scalor.errors import InputError
from scalor.measures.regions import CountingLine
from scalor.measures.samples import Samples, data_frame
from scalor.track_files import LARGEST

if TYPE_CHECKING:
    import pandas

MARGIN_SIZES = 0.25
"""Margin in sizes of the object (square root of its box's area), if none is given."""
FORWARD, BACKWARD = "forward", "backward"


def line_crossings(samples: Samples, lines: Sequence[CountingLine], margin: float | None = None) -> "pandas.DataFrame":
    """Return a row per crossing of a line, in order of time.

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`.
    lines : sequence of CountingLine
        Lines in pixels of the video.
    margin : float, optional
        Distance from the line, in pixels, from which on an object is on a side of it. Default: a quarter of the
        object's size.

    Returns
    -------
    DataFrame
        line, id, direction ("forward" from the left of the line to its right, or "backward"), frame (the first one
        beyond the line), seconds and place of the crossing, interpolated between frames.

    Examples
    --------
    The line goes up at x = 25. Object 1 is at x = 20 after 0.1 s and at x = 30, to the right of the line, after 0.2 s.

    >>> line_crossings(samples_of(tracks), [CountingLine("gate", (25, 100), (25, 0))])
       line  id direction  frame  seconds  x_px  y_px
    0  gate   1   forward      2     0.15  25.0  50.0
    """
    if margin is not None and not 0 <= margin <= LARGEST:
        raise InputError(f"margin is {margin}: give a number of pixels from 0 to {LARGEST:g}.")
    sizes = np.sqrt(samples.extent.clip(0).prod(axis=1)) / samples.scale
    margins = MARGIN_SIZES * sizes if margin is None else np.full(len(samples), float(margin))
    found = []
    for line in lines:
        start, end = np.array(line.start), np.array(line.end)
        along = (end - start) / np.linalg.norm(end - start)
        offset = samples.pixels - start
        away = along[0] * offset[:, 1] - along[1] * offset[:, 0]  # positive on the right of the line
        reached = offset @ along / np.linalg.norm(end - start)  # 0 at the start, 1 at the end
        for number, rows in samples.objects():
            side = np.where(np.abs(away[rows]) > margins[rows], np.sign(away[rows]), 0)
            sure = np.flatnonzero(side)
            for before, after in pairwise(sure.tolist()):
                if side[before] == side[after]:
                    continue
                i, share = _last_change(away[rows], before, after)
                across = (1 - share) * reached[rows][i] + share * reached[rows][i + 1]
                if not 0 <= across <= 1:
                    continue
                seconds = (1 - share) * samples.seconds[rows][i] + share * samples.seconds[rows][i + 1]
                place = (1 - share) * samples.place[rows][i] + share * samples.place[rows][i + 1]
                direction = FORWARD if side[after] > 0 else BACKWARD
                found.append((seconds, line.name, number, direction, int(samples.frame[rows][i + 1]), *place))
    found.sort(key=lambda one: (one[0], one[1], one[2]))
    names = ("seconds", "line", "id", "direction", "frame", f"x_{samples.unit}", f"y_{samples.unit}")
    table = {name: [one[place] for one in found] for place, name in enumerate(names)}
    order = ("line", "id", "direction", "frame", "seconds", f"x_{samples.unit}", f"y_{samples.unit}")
    return data_frame({name: table[name] for name in order})


def _last_change(away: np.ndarray, before: int, after: int) -> tuple[int, float]:
    """Return the last row between two before the line is passed, and the share of the step up to the line."""
    beyond = np.sign(away[after])
    i = after - 1
    while i > before and np.sign(away[i]) == beyond:
        i -= 1
    return i, float(away[i] / (away[i] - away[i + 1]))


def line_counts(crossings: "pandas.DataFrame", lines: Sequence[CountingLine]) -> "pandas.DataFrame":
    """Return a row per line: objects that passed it, each counted once, and all crossings.

    An object has passed forward if it crossed forward more often than backward. One that came back has not passed.

    Parameters
    ----------
    crossings : DataFrame
        What `line_crossings` returned.
    lines : sequence of CountingLine
        The lines.

    Returns
    -------
    DataFrame
        Columns line; forward, backward and came_back, in objects; crossings_forward and crossings_backward.

    Examples
    --------
    >>> lines = [CountingLine("gate", (25, 100), (25, 0))]
    >>> line_counts(line_crossings(samples_of(tracks), lines), lines)[["line", "forward", "backward", "came_back"]]
       line  forward  backward  came_back
    0  gate        1         0          0
    """
    rows = []
    for line in lines:
        mine = crossings[crossings["line"] == line.name]
        forward = mine["direction"] == FORWARD
        net = (2 * forward.astype(int) - 1).groupby(mine["id"]).sum()
        passed = int((net > 0).sum()), int((net < 0).sum()), int((net == 0).sum())
        rows.append((line.name, *passed, int(forward.sum()), int((~forward).sum())))
    names = ("line", "forward", "backward", "came_back", "crossings_forward", "crossings_backward")
    return data_frame({name: [row[place] for row in rows] for place, name in enumerate(names)})
