"""Mean squared displacement: how far objects get in a time."""

from typing import TYPE_CHECKING

import numpy as np

from scalor.errors import InputError
from scalor.measures.samples import Samples, data_frame

if TYPE_CHECKING:
    import pandas

LONGEST_LAG = 100
"""Largest lag in tracked frames, if none is given."""


def mean_squared_displacement(samples: Samples, lags: int | None = None, each: bool = False) -> "pandas.DataFrame":
    """Return the mean squared displacement over all pairs of rows of an object that are a lag apart.

    Windows overlap. The mean is taken over all pairs of all objects, or of each object. Brownian motion in the plane
    gives 4 D t, motion at a steady velocity v gives v² t². Independent errors of sigma in x and in y add 4 sigma².

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`.
    lags : int, optional
        Largest lag, in tracked frames. Default: a quarter of the longest track, at most 100.
    each : bool, default False
        Whether to measure every object on its own; the column `id` then comes first.

    Returns
    -------
    DataFrame
        Columns lag_s, msd (in its unit squared) and pairs; lags without a pair are left out.

    Examples
    --------
    Steady motion of 10 px a step: 10² and 20² after one and two steps.

    >>> mean_squared_displacement(samples_of(tracks), lags=2)
       lag_s  msd_px2  pairs
    0    0.1    100.0      6
    1    0.2    400.0      4
    """
    if lags is not None and lags < 1:
        raise InputError(f"lags is {lags}: give a number of frames from 1.")
    spans = [(samples.frame[rows][-1] - samples.frame[rows][0]) // samples.step for _, rows in samples.objects()]
    most = max(spans, default=0)
    longest = max(1, min(LONGEST_LAG, most // 4) if lags is None else min(lags, most))
    ids, totals, pairs = [], [], []
    for number, rows in samples.objects():
        total, count = _sums(samples, rows, longest)
        ids.append(number)
        totals.append(total)
        pairs.append(count)
    lag = np.arange(1, longest + 1)
    if not each:
        ids, totals, pairs = [0], *([np.reshape(values, (-1, longest)).sum(axis=0)] for values in (totals, pairs))
    number_of = np.repeat(ids, longest)
    total, count = (np.reshape(values, -1) if ids else np.zeros(0) for values in (totals, pairs))
    lag_s = np.tile(lag * samples.interval, len(ids))
    there = count > 0
    columns = {
        "id": number_of[there],
        "lag_s": lag_s[there],
        f"msd_{samples.unit}2": total[there] / count[there],
        "pairs": count[there].astype(int),
    }
    if not each:
        del columns["id"]
    return data_frame(columns)


def _sums(samples: Samples, rows: slice, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of the squared displacements and the number of pairs at every lag."""
    place = (samples.frame[rows] - samples.frame[rows][0]) // samples.step
    path = np.full((place[-1] + 1, 2), np.nan)
    path[place] = samples.place[rows]
    total, count = np.zeros(longest), np.zeros(longest)
    for lag in range(1, min(longest, len(path) - 1) + 1):
        squared = ((path[lag:] - path[:-lag]) ** 2).sum(axis=1)
        known = ~np.isnan(squared)
        total[lag - 1], count[lag - 1] = squared[known].sum(), known.sum()
    return total, count
