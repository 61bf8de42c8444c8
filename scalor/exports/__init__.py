"""Tracks in the formats of other programs: TrackMate, GEFF, CVAT, Excel; and a clip that follows one object."""

from scalor.exports.cvat import write_cvat
from scalor.exports.export_source import ExportSource, export_source
from scalor.exports.geff_folder import write_geff
from scalor.exports.object_clip import write_clip
from scalor.exports.trackmate import write_trackmate
from scalor.exports.workbook import write_workbook

__all__ = [
    "ExportSource",
    "export_source",
    "write_clip",
    "write_cvat",
    "write_geff",
    "write_trackmate",
    "write_workbook",
]
