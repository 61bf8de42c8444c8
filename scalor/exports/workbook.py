"""An Excel workbook: the tracks, a sheet of the tracks' measures, one of the frames', and the origin."""

import math
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.exports.export_source import ExportSource
from scalor.files import replacing
from scalor.measures import motion, per_frame, per_track, samples_of
from scalor.outputs.tables import as_text

MOST_ROWS = 2**20 - 1
"""Rows of a sheet of Excel, besides the header."""


def write_workbook(path: str | Path, source: ExportSource) -> None:
    """Write an Excel workbook with the sheets tracks, per_track, per_frame and about.

    Parameters
    ----------
    path : str or Path
        File to write.
    source : ExportSource
        What `export_source` returned.

    Examples
    --------
    >>> write_workbook("tracks.xlsx", export_source("tracked", Calibration(0.12)))
    """
    try:
        openpyxl = import_module("openpyxl")
    except ImportError as error:
        raise InputError("an Excel workbook needs the package openpyxl: run pip install 'scalor[exports]'.") from error
    if len(source.tracks) > MOST_ROWS:
        raise InputError(f"the tracks have {len(source.tracks):,} rows and a sheet of Excel {MOST_ROWS:,}: use a CSV.")
    samples = samples_of(source.tracks, source.calibration)
    rows = motion(samples)
    rows.insert(3, "name", [source.names.get(number, "") for number in rows["id"].tolist()])
    book = openpyxl.Workbook(write_only=True)
    for title, table in (
        ("tracks", rows),
        ("per_track", per_track(samples, source.names)),
        ("per_frame", per_frame(samples, source.times)),
    ):
        _sheet(openpyxl, book, title, list(table), zip(*(table[name].tolist() for name in table), strict=True))
    facts = {
        **source.about.facts,
        "unit of lengths": source.calibration.unit,
        "mm per pixel": source.calibration.mm_per_pixel,
    }
    _sheet(openpyxl, book, "about", ["what", "value"], facts.items())
    with replacing(Path(path)) as temporary:
        book.save(temporary)


def _sheet(openpyxl: Any, book: Any, title: str, names: list[str], rows: Iterable[Iterable[object]]) -> None:
    """Add a sheet with a bold header that stays in view."""
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    header = []
    for place, name in enumerate(names):
        cell = openpyxl.cell.WriteOnlyCell(sheet, name)
        cell.font = openpyxl.styles.Font(bold=True)
        header.append(cell)
        sheet.column_dimensions[openpyxl.utils.get_column_letter(place + 1)].width = max(10, len(name) + 2)
    sheet.append(header)
    for row in rows:
        sheet.append([_cell(value) for value in row])


def _cell(value: object) -> object:
    """Return a value as Excel holds it: numbers that are not finite are empty; a text is never a formula."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return as_text(value) if isinstance(value, str) else value
