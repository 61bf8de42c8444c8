"""`measure`: all measures of the tracks of a video at once, and the files that hold them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8

from scalor.files import as_json, open_folder
from scalor.measures.calibration import Calibration
from scalor.measures.displacement import mean_squared_displacement
from scalor.measures.heat_map import cell_size, draw_occupancy, occupancy
from scalor.measures.kinematics import motion, per_frame, per_track
from scalor.measures.line_crossings import line_counts, line_crossings
from scalor.measures.regions import Regions
from scalor.measures.samples import Anchor, Samples, TracksLike, samples_of
from scalor.measures.visits import visits, zone_counts, zone_times
from scalor.outputs.tables import as_text
from scalor.replacement import replacing_together

if TYPE_CHECKING:
    import pandas

TABLES = {
    "motion.csv": "one row per object and frame: place, speed, heading, turning, path so far, nearest neighbour",
    "per_track.csv": "one row per track: when it was seen, path, displacement, speeds, turning, size",
    "per_frame.csv": "one row per frame: objects in view and in each zone, mean speed, alignment",
    "msd.csv": "mean squared displacement by lag, over all objects",
    "msd_per_track.csv": "the same of every object",
    "zones.csv": "one row per zone and object: seconds inside, share of its time, visits",
    "visits.csv": "one row per visit: zone, object, when it came and left, dwell time",
    "crossings.csv": "one row per crossing of a line: line, object, direction, when and where",
    "line_counts.csv": "one row per line: objects that passed it, each counted once, and all crossings",
}
OTHERS = {
    "heat_map.csv": "seconds that objects spent in each cell of the picture: a row per row of cells, from the top",
    "heat_map.png": "the same as a picture, over the scene",
    "measures.json": "units, settings, zones and lines, and where the tracks came from",
}
TEXTS = ("name", "zone", "line")
"""Columns that hold names."""
DIGITS = 9
"""Significant digits in tables."""


@dataclass(frozen=True)
class Measurements:
    """Tables of measures as pandas DataFrames. Names of columns with a unit end in it, such as `speed_mm_per_s`."""

    samples: Samples
    motion: "pandas.DataFrame"
    per_track: "pandas.DataFrame"
    per_frame: "pandas.DataFrame"
    msd: "pandas.DataFrame"
    msd_per_track: "pandas.DataFrame"
    zones: "pandas.DataFrame"
    visits: "pandas.DataFrame"
    crossings: "pandas.DataFrame"
    line_counts: "pandas.DataFrame"
    heat_map: Float[np.ndarray, "rows columns"]
    cell_px: float
    size: tuple[int, int]
    settings: Mapping[str, object]

    def save(
        self, folder: str | Path, scene: UInt8[np.ndarray, "H W 3"] | None = None, facts: Mapping[str, object] = {}
    ) -> Path:
        """Write all tables to a folder, with the heat map over `scene` and `facts` about the tracks' origin."""
        whole = open_folder(folder)
        with replacing_together(whole, [*TABLES, *OTHERS]) as partial:
            for name in TABLES:
                table = getattr(self, name.removesuffix(".csv"))
                table = table.assign(**{text: table[text].map(as_text) for text in TEXTS if text in table})
                table.to_csv(partial / name, index=False, float_format=f"%.{DIGITS}g", lineterminator="\n")
            np.savetxt(partial / "heat_map.csv", self.heat_map, fmt=f"%.{DIGITS}g", delimiter=",")
            if find_spec("matplotlib") is not None:
                picture = np.zeros((*self.size, 3), np.uint8) if scene is None else scene
                samples = self.samples
                draw_occupancy(
                    partial / "heat_map.png", self.heat_map, self.cell_px, picture, samples.scale, samples.unit
                )
            files = {name: text for name, text in (TABLES | OTHERS).items() if name != "measures.json"}
            document = {**self.settings, "origin": dict(facts), "files": files}
            (partial / "measures.json").write_text(as_json(json.loads(json.dumps(document))), encoding="utf-8")
        return whole


def measure(
    tracks: TracksLike,
    calibration: Calibration | None = None,
    regions: Regions | None = None,
    *,
    size: tuple[int, int] | None = None,
    anchor: Anchor = "centre",
    smooth_s: float = 0.0,
    margin: float | None = None,
    patience_s: float = 0.0,
    cell_px: float | None = None,
    lags: int | None = None,
    names: Mapping[int, str] | None = None,
    times: Mapping[int, float] | None = None,
) -> Measurements:
    """Measure the tracks of a video.

    Parameters
    ----------
    tracks : Tracks or DataFrame
        Tracks of one video, or a table with the columns frame, seconds, id, x0, y0, x1, y1.
    calibration : Calibration, optional
        Scale of the picture, such as `Calibration(mm_per_pixel=0.12)`. Without it, lengths are in pixels.
    regions : Regions, optional
        Zones and lines, such as `read_regions("zones.json")`.
    size : tuple of int, optional
        Height and width of the picture in pixels, for the heat map. Default: those of the tracks.
    anchor : "centre" or "bottom", default "centre"
        Point of the box that is the position.
    smooth_s : float, default 0
        Seconds over which positions are averaged.
    margin : float, optional
        Pixels beyond a line at which an object has crossed it. Default: a quarter of the object's size.
    patience_s : float, default 0
        Seconds of absence that do not end a visit to a zone.
    cell_px : float, optional
        Side of a cell of the heat map, pixels.
    lags : int, optional
        Largest lag of the mean squared displacement, tracked frames.
    names : mapping of int to str, optional
        Names of tracks, for the table of tracks.
    times : mapping of int to float, optional
        Seconds of every tracked frame, so that the table of frames has those without objects, too.

    Returns
    -------
    Measurements
        Tables as DataFrames; `save` writes them.

    Examples
    --------
    >>> measured = measure(tracks, Calibration(0.12), read_regions("zones.json"))
    >>> measured.per_track[["id", "mean_speed_mm_per_s"]]
       id  mean_speed_mm_per_s
    0   1                 12.0
    1   2                 12.0
    >>> folder = measured.save("measures")
    """
    regions = regions or Regions()
    samples = samples_of(tracks, calibration, anchor, smooth_s)
    size = size or getattr(tracks, "size", (0, 0))
    if not isinstance(size, tuple) or min(size) < 1:  # a DataFrame has another size
        size = _covering(samples)
    crossed = line_crossings(samples, regions.lines, margin)
    frames = per_frame(samples, times)
    if regions.zones:
        frames = frames.merge(zone_counts(samples, regions.zones), on="frame", how="left")
        inside = [name for name in frames if name.startswith("in_")]
        frames[inside] = frames[inside].fillna(0).astype(int)
    return Measurements(
        samples=samples,
        motion=motion(samples),
        per_track=per_track(samples, names),
        per_frame=frames,
        msd=mean_squared_displacement(samples, lags),
        msd_per_track=mean_squared_displacement(samples, lags, each=True),
        zones=zone_times(samples, regions.zones, patience_s),
        visits=visits(samples, regions.zones, patience_s),
        crossings=crossed,
        line_counts=line_counts(crossed, regions.lines),
        heat_map=occupancy(samples, size, cell_px),
        cell_px=cell_size(size, cell_px),
        size=size,
        settings={
            "unit": samples.unit,
            "mm_per_pixel": None if calibration is None else calibration.mm_per_pixel,
            "anchor": anchor,
            "smooth_s": smooth_s,
            "margin_px": margin,
            "patience_s": patience_s,
            "cell_px": cell_size(size, cell_px),
            "zones": [{"name": one.name, "polygon": one.polygon, "circle": one.circle} for one in regions.zones],
            "lines": [{"name": one.name, "from": one.start, "to": one.end} for one in regions.lines],
        },
    )


def _covering(samples: Samples) -> tuple[int, int]:
    """Return the smallest height and width that hold all positions."""
    x, y = np.ceil(samples.pixels.max(axis=0, initial=1)).astype(int).tolist()
    return max(1, y), max(1, x)
