"""Measures of tracks in real units: speeds, paths, zones, crossings, occupancy, mean squared displacement."""

from scalor.measures.calibration import Calibration
from scalor.measures.displacement import mean_squared_displacement
from scalor.measures.drawings import drawn_calibration, drawn_regions
from scalor.measures.heat_map import occupancy
from scalor.measures.kinematics import motion, per_frame, per_track
from scalor.measures.line_crossings import line_counts, line_crossings
from scalor.measures.measurements import Measurements, measure
from scalor.measures.regions import CountingLine, Regions, Zone, read_regions
from scalor.measures.samples import Samples, samples_of
from scalor.measures.visits import visits, zone_times

__all__ = [
    "Calibration",
    "CountingLine",
    "Measurements",
    "Regions",
    "Samples",
    "Zone",
    "drawn_calibration",
    "drawn_regions",
    "line_counts",
    "line_crossings",
    "mean_squared_displacement",
    "measure",
    "motion",
    "occupancy",
    "per_frame",
    "per_track",
    "read_regions",
    "samples_of",
    "visits",
    "zone_times",
]
