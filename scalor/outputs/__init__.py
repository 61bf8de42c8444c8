"""Result files of a tracked video: tables, masks, videos, pictures and a report."""

from scalor.outputs.result_folder import FILES, ResultFolder, Summary
from scalor.tracks import Tracks

__all__ = ["FILES", "ResultFolder", "Summary", "to_supervision"]

to_supervision = Tracks.to_supervision
"""Convert the tracks of one frame to `supervision.Detections`."""
