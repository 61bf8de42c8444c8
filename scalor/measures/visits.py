"""Time that objects spend in zones, and their visits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scalor.errors import InputError
from scalor.measures.regions import Zone
from scalor.measures.samples import Samples, data_frame
from scalor.track_files import LARGEST

if TYPE_CHECKING:
    import pandas


def visits(samples: Samples, zones: Sequence[Zone], patience_s: float = 0.0) -> "pandas.DataFrame":
    """Return a row per visit of an object to a zone.

    A visit begins with the first row inside. It ends with the first row outside, or, if the track ends inside, one
    frame after its last row. Its length is the dwell time.

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`.
    zones : sequence of Zone
        Zones; they may overlap.
    patience_s : float, default 0
        An absence of at most this many seconds does not end a visit.

    Returns
    -------
    DataFrame
        Columns zone, id, enter_s, leave_s, dwell_s, and ended: 0 if the track ends inside.

    Examples
    --------
    Object 1 is at x = 10, 20 and 30 in the zone, and at x = 40, after 0.3 s, outside.

    >>> visits(samples_of(tracks), [Zone.rectangle("left", 0, 0, 35, 100)])
       zone  id  enter_s  leave_s  dwell_s  ended
    0  left   1      0.0      0.3      0.3      1
    """
    if not 0 <= patience_s <= LARGEST:
        raise InputError(f"patience is {patience_s}: give a number of seconds from 0 to {LARGEST:g}.")
    columns: dict[str, list[object]] = {name: [] for name in ("zone", "id", "enter_s", "leave_s", "dwell_s", "ended")}
    ends = samples.seconds + samples.lasting
    for zone in zones:
        inside = zone.contains(samples.pixels)
        for number, rows in samples.objects():
            within = np.concatenate([[False], inside[rows], [False]])
            starts, stops = np.flatnonzero(within[1:] & ~within[:-1]), np.flatnonzero(within[:-1] & ~within[1:])
            enter, leave = samples.seconds[rows][starts], ends[rows][stops - 1]
            apart = enter[1:] - leave[:-1] > patience_s + 1e-9
            enter, leave = enter[np.append(True, apart)[: len(enter)]], leave[np.append(apart, True)[: len(leave)]]
            columns["zone"] += [zone.name] * len(enter)
            columns["id"] += [number] * len(enter)
            columns["enter_s"] += enter.tolist()
            columns["leave_s"] += leave.tolist()
            columns["dwell_s"] += (leave - enter).tolist()
            columns["ended"] += (leave < ends[rows][-1] - 1e-9).astype(int).tolist()
    return data_frame(columns)


def zone_times(samples: Samples, zones: Sequence[Zone], patience_s: float = 0.0) -> "pandas.DataFrame":
    """Return a row per zone and object: seconds inside, share of the track's time, visits, first entry, longest visit.

    The seconds inside leave out absences; the visits do not count those of at most `patience_s`.

    Parameters
    ----------
    samples, zones, patience_s
        As for `visits`.

    Returns
    -------
    DataFrame
        Columns zone, id, inside_s, inside_share (0 to 1), visits (their number), first_entry_s and longest_visit_s.

    Examples
    --------
    >>> table = zone_times(samples_of(tracks), [Zone.rectangle("left", 0, 0, 35, 100)])
    >>> table[["zone", "id", "inside_s", "inside_share", "visits"]].round(2)
       zone  id  inside_s  inside_share  visits
    0  left   1       0.3          0.75       1
    1  left   2       0.0          0.00       0
    """
    table = visits(samples, zones, patience_s)
    lasting = samples.lasting
    rows = []
    for zone in zones:
        inside = zone.contains(samples.pixels)
        for number, part in samples.objects():
            mine = table[(table["zone"] == zone.name) & (table["id"] == number)]
            total, seconds = float(lasting[part].sum()), float(lasting[part][inside[part]].sum())
            first = float(mine["enter_s"].min()) if len(mine) else np.nan
            longest = float(mine["dwell_s"].max()) if len(mine) else 0.0
            share = seconds / total if total else np.nan
            rows.append((zone.name, number, seconds, share, len(mine), first, longest))
    names = ("zone", "id", "inside_s", "inside_share", "visits", "first_entry_s", "longest_visit_s")
    return data_frame({name: [row[place] for row in rows] for place, name in enumerate(names)})


def zone_counts(samples: Samples, zones: Sequence[Zone]) -> "pandas.DataFrame":
    """Return a row per frame with the number of objects in each zone."""
    frames = np.unique(samples.frame)
    place = np.searchsorted(frames, samples.frame)
    columns: dict[str, object] = {"frame": frames}
    for zone in zones:
        inside = zone.contains(samples.pixels)
        columns[f"in_{zone.name}"] = np.bincount(place[inside], minlength=len(frames))
    return data_frame(columns)
