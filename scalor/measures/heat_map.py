"""Occupancy: where objects spend their time, as a table and as a picture."""

from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import InputError
from scalor.measures.samples import Samples
from scalor.track_files import LARGEST

CELLS = 64
"""Number of cells along the longer side of the picture, if no size of cells is given."""
MOST_CELLS = 10**7
PARTS = 10
"""Number of places between two rows at which the time of a step is counted."""

DARKEST = 0.3
"""Colour of the shortest time, 0 to 1 in the colour map, so that it stands out from a dark scene."""
SHADE = 0.5
"""Exponent of time in the colours: below 1, short times are told apart beside a few long ones."""


def cell_size(size: tuple[int, int], cell_px: float | None = None) -> float:
    """Return the side of a cell in pixels, or the default for a picture of this height and width."""
    side = max(1.0, round(max(size) / CELLS)) if cell_px is None else cell_px
    if not (0 < side <= LARGEST and size[0] * size[1] / side**2 <= MOST_CELLS):
        raise InputError(
            f"cell is {side} px: give a number of pixels above 0 and up to {LARGEST:g}, with at most {MOST_CELLS:,} "
            "cells."
        )
    return float(side)


def occupancy(
    samples: Samples, size: tuple[int, int], cell_px: float | None = None
) -> Float[np.ndarray, "rows columns"]:
    """Return the seconds that all objects together spent in each cell of the picture.

    Between two rows, an object moves evenly along a straight line.

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`. Those outside the picture count for the cell at its border.
    size : tuple of int
        Height and width of the picture in pixels.
    cell_px : float, optional
        Side of a cell in pixels. Default: so that the longer side of the picture has about 64 cells.

    Returns
    -------
    array
        Seconds in each cell, a row per row of cells from the top.

    Examples
    --------
    Object 1 spends its 0.4 s in the lower left quarter, object 2 in the upper right one.

    >>> occupancy(samples_of(tracks), size=(100, 100), cell_px=50).round(2)
    array([[0. , 0.4],
           [0.4, 0. ]])
    """
    side = cell_size(size, cell_px)
    rows, columns = (max(1, int(np.ceil(length / side))) for length in size)
    step = np.zeros_like(samples.pixels)
    goes_on = samples.follows[1:]
    step[:-1][goes_on] = np.diff(samples.pixels, axis=0)[goes_on]
    seconds = np.zeros(rows * columns)
    for part in (np.arange(PARTS) + 0.5) / PARTS:
        x, y = np.floor((samples.pixels + part * step) / side).astype(int).T
        cell = np.clip(y, 0, rows - 1) * columns + np.clip(x, 0, columns - 1)
        seconds += np.bincount(cell, samples.lasting / PARTS, minlength=rows * columns)
    return seconds.reshape(rows, columns)


def draw_occupancy(
    path: Path,
    seconds: Float[np.ndarray, "rows columns"],
    cell_px: float,
    scene: UInt8[np.ndarray, "H W 3"],
    scale: float,
    unit: str,
) -> None:
    """Draw occupancy over a grey picture of the scene, with axes in real units and a scale of seconds."""
    try:
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import ListedColormap, PowerNorm
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("drawing the heat map needs matplotlib: run pip install 'scalor[plots]'.") from error
    height, width = scene.shape[:2]
    figure = Figure(figsize=(8, max(2.5, 6.6 * height / width)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    right, lower = width * scale, height * scale
    axes.imshow(scene.mean(axis=2), cmap="gray", vmin=0, vmax=400, extent=(0, right, lower, 0))
    rows, columns = seconds.shape
    extent = (0, columns * cell_px * scale, rows * cell_px * scale, 0)
    shown = np.ma.masked_equal(seconds, 0)
    colors = ListedColormap(colormaps["inferno"](np.linspace(DARKEST, 1, 256)))
    norm = PowerNorm(SHADE, vmin=0, vmax=max(float(seconds.max()), 1e-9))
    heat = axes.imshow(shown, cmap=colors, norm=norm, extent=extent, interpolation="nearest")
    axes.set_xlim(0, right)
    axes.set_ylim(lower, 0)
    axes.set_xlabel(f"x ({unit})")
    axes.set_ylabel(f"y ({unit})")
    figure.colorbar(heat, ax=axes, label=f"seconds in a cell of {cell_px * scale:.3g} {unit}", shrink=0.9)
    figure.savefig(path, dpi=110)
