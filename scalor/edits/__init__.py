"""Corrections of tracks by hand: an append-only log of edits, the tracks after them, and places to look at."""

from scalor.edits.apply import apply, names_after
from scalor.edits.edit_log import LOG_FILE, Entry, in_effect, read_log
from scalor.edits.edited_folder import EditedFolder
from scalor.edits.operations import (
    Add,
    Delete,
    Edit,
    Merge,
    Name,
    Redo,
    Split,
    Step,
    Swap,
    Undo,
    describe,
    step_from_dict,
    step_to_dict,
)
from scalor.edits.review import Crossing, Doubt, crossings, doubtful_places

__all__ = [
    "LOG_FILE",
    "Add",
    "Crossing",
    "Delete",
    "Doubt",
    "Edit",
    "EditedFolder",
    "Entry",
    "Merge",
    "Name",
    "Redo",
    "Split",
    "Step",
    "Swap",
    "Undo",
    "apply",
    "crossings",
    "describe",
    "doubtful_places",
    "in_effect",
    "names_after",
    "read_log",
    "step_from_dict",
    "step_to_dict",
]
