"""Speeds, headings, turning, path lengths and neighbours: tables per object and frame, per track and per frame."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

from scalor.measures.samples import Samples, data_frame

if TYPE_CHECKING:
    import pandas


def motion(samples: Samples) -> "pandas.DataFrame":
    """Return a row per object and frame: place, speed, heading, turning, path so far, nearest neighbour.

    Speed, heading and turning are those of the step that ends in the row, so they are empty in an object's first row.
    Headings are in degrees counter-clockwise from the right, as one sees the picture (90 is up). A positive turning
    is to the left.

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`.

    Returns
    -------
    DataFrame
        Columns frame, seconds, id, x, y, speed, heading_deg, turning_deg_per_s, path, nearest_id (0 if alone in the
        frame) and nearest; names of lengths end in their unit, such as `speed_mm_per_s`.

    Examples
    --------
    One object goes to the right and one up, both 10 px in a tenth of a second; a pixel shows half a millimetre.

    >>> table = motion(samples_of(tracks, Calibration(0.5)))
    >>> table[["frame", "id", "x_mm", "speed_mm_per_s", "heading_deg", "path_mm"]].query("frame < 2")
       frame  id  x_mm  speed_mm_per_s  heading_deg  path_mm
    0      0   1   5.0             NaN          NaN      0.0
    1      1   1  10.0            50.0          0.0      5.0
    4      0   2  30.0             NaN          NaN      0.0
    5      1   2  30.0            50.0         90.0      5.0
    """
    unit = samples.unit
    speed, heading = speeds(samples), headings(samples)
    nearest, distance = neighbours(samples)
    return data_frame(
        {
            "frame": samples.frame,
            "seconds": samples.seconds,
            "id": samples.id,
            f"x_{unit}": samples.place[:, 0],
            f"y_{unit}": samples.place[:, 1],
            f"speed_{unit}_per_s": speed,
            "heading_deg": heading,
            "turning_deg_per_s": turning(samples, heading),
            f"path_{unit}": paths(samples),
            "nearest_id": nearest,
            f"nearest_{unit}": distance,
        }
    )


def step_lengths(samples: Samples) -> Float[np.ndarray, " N"]:
    """Return the length of the step that ends in each row; NaN in an object's first row."""
    length: np.ndarray = np.hypot(*samples.since_last(samples.place).T)
    return length


def speeds(samples: Samples) -> Float[np.ndarray, " N"]:
    """Return the mean speed over the step that ends in each row; NaN in an object's first row."""
    speed: np.ndarray = step_lengths(samples) / samples.since_last(samples.seconds)
    return speed


def headings(samples: Samples) -> Float[np.ndarray, " N"]:
    """Return the direction of the step that ends in each row, in degrees above -180 and up to 180; NaN at rest."""
    across, down = samples.since_last(samples.place).T
    heading: np.ndarray = np.degrees(np.arctan2(-down, across)) + 0.0  # no -0
    heading[heading == -180] = 180
    heading[(across == 0) & (down == 0)] = np.nan
    return heading


def turning(samples: Samples, heading: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return the change of heading from the last step to the one that ends in each row, in degrees per second."""
    change = (samples.since_last(heading) + 180) % 360 - 180
    # Headings belong to the middles of their steps.
    middle = samples.seconds - samples.since_last(samples.seconds) / 2
    turned: np.ndarray = change / samples.since_last(middle)
    return turned


def paths(samples: Samples) -> Float[np.ndarray, " N"]:
    """Return the length of the object's path up to each row."""
    total = np.cumsum(np.nan_to_num(step_lengths(samples)))
    path = np.zeros(len(samples))
    for _, rows in samples.objects():
        path[rows] = total[rows] - total[rows.start]
    return path


def neighbours(samples: Samples) -> tuple[Int[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Return the id of each object's nearest neighbour in its frame (0 if it is alone), and its distance."""
    nearest, distance = np.zeros(len(samples), int), np.full(len(samples), np.nan)
    order = np.argsort(samples.frame, kind="stable")
    _, starts = np.unique(samples.frame[order], return_index=True)
    for rows in np.split(order, starts[1:]):
        if len(rows) > 1:
            tree = KDTree(samples.place[rows])
            away, which = (np.asarray(found) for found in tree.query(samples.place[rows], k=2))
            # Of two objects at one place, either may come first.
            other = np.where(which[:, 0] == np.arange(len(rows)), which[:, 1], which[:, 0])
            nearest[rows], distance[rows] = samples.id[rows[other]], away[:, 1]
    return nearest, distance


def per_track(samples: Samples, names: Mapping[int, str] | None = None) -> "pandas.DataFrame":
    """Return a row per track: when it was seen, how far and how fast it went, how straight, and how large it is.

    The mean speed is the path divided by its time. The straightness is the distance between the ends divided by the
    path: 1 on a line, 0 on a closed loop.

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`.
    names : mapping of int to str, optional
        Names of tracks, by id.

    Returns
    -------
    DataFrame
        Columns id, name, first_frame, last_frame, first_s, last_s, duration_s, boxes (their number), path,
        displacement, straightness, mean, median and maximum speed, mean_turning_deg_per_s, mean_nearest, mean_width
        and mean_height; names of lengths end in their unit, such as `path_mm`.

    Examples
    --------
    >>> table = per_track(samples_of(tracks, Calibration(0.5)), names={2: "bee"})
    >>> table[["id", "name", "duration_s", "path_mm", "mean_speed_mm_per_s", "straightness"]]
       id name  duration_s  path_mm  mean_speed_mm_per_s  straightness
    0   1              0.3     15.0                 50.0           1.0
    1   2  bee         0.3     15.0                 50.0           1.0
    """
    unit = samples.unit
    speed, turned, path = speeds(samples), np.abs(turning(samples, headings(samples))), paths(samples)
    distance = neighbours(samples)[1]
    rows = []
    for number, part in samples.objects():
        time, place = samples.seconds[part], samples.place[part]
        length, duration = float(path[part][-1]), float(time[-1] - time[0])
        apart = float(np.linalg.norm(place[-1] - place[0]))
        width, height = samples.extent[part].mean(axis=0)
        rows.append(
            {
                "id": number,
                "name": (names or {}).get(number, ""),
                "first_frame": int(samples.frame[part][0]),
                "last_frame": int(samples.frame[part][-1]),
                "first_s": float(time[0]),
                "last_s": float(time[-1]),
                "duration_s": duration,
                "boxes": len(time),
                f"path_{unit}": length,
                f"displacement_{unit}": apart,
                "straightness": apart / length if length else np.nan,
                f"mean_speed_{unit}_per_s": length / duration if duration else np.nan,
                f"median_speed_{unit}_per_s": _median(speed[part]),
                f"max_speed_{unit}_per_s": np.nanmax(speed[part], initial=-np.inf) if len(time) > 1 else np.nan,
                "mean_turning_deg_per_s": _mean(turned[part]),
                f"mean_nearest_{unit}": _mean(distance[part]),
                f"mean_width_{unit}": width,
                f"mean_height_{unit}": height,
            }
        )
    return data_frame({name: [row[name] for row in rows] for name in (rows[0] if rows else {"id": 0})})


def per_frame(samples: Samples, times: Mapping[int, float] | None = None) -> "pandas.DataFrame":
    """Return a row per frame: objects in view, their mean speed and neighbour distance, and how aligned they move.

    The alignment is the length of the mean of all directions: 1 if all move the same way, near 0 if in all ways.

    Parameters
    ----------
    samples : Samples
        Positions; see `samples_of`.
    times : mapping of int to float, optional
        Seconds of all tracked frames by their number. Without it, frames that show nothing are left out.

    Returns
    -------
    DataFrame
        Columns frame, seconds, objects, mean_speed, mean_nearest and alignment; names of lengths end in their unit.

    Examples
    --------
    Of two objects that move at right angles, the mean direction has the length 0.71.

    >>> per_frame(samples_of(tracks))[["frame", "objects", "mean_speed_px_per_s", "alignment"]].round(2)
       frame  objects  mean_speed_px_per_s  alignment
    0      0        2                  NaN        NaN
    1      1        2                100.0       0.71
    2      2        2                100.0       0.71
    3      3        2                100.0       0.71
    """
    unit = samples.unit
    known = times or dict(zip(samples.frame.tolist(), samples.seconds.tolist(), strict=True))
    frames = np.array(sorted(known), int)
    place = np.searchsorted(frames, samples.frame)
    counts = np.bincount(place, minlength=len(frames))
    direction = np.exp(1j * np.radians(headings(samples)))

    def mean(values: np.ndarray) -> np.ndarray:
        there = ~np.isnan(values)
        number = np.bincount(place[there], minlength=len(frames))
        total = np.bincount(place[there], values[there], minlength=len(frames))
        averaged: np.ndarray = np.where(number > 0, total / np.maximum(number, 1), np.nan)
        return averaged

    return data_frame(
        {
            "frame": frames,
            "seconds": [known[frame] for frame in frames.tolist()],
            "objects": counts,
            f"mean_speed_{unit}_per_s": mean(speeds(samples)),
            f"mean_nearest_{unit}": mean(neighbours(samples)[1]),
            "alignment": np.hypot(mean(direction.real), mean(direction.imag)),
        }
    )


def _mean(values: Float[np.ndarray, " n"]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def _median(values: Float[np.ndarray, " n"]) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else np.nan
