"""`scalor measure`: speeds, paths, zones, line crossings and more of the tracks in a result folder, in real units."""

import argparse
from typing import TYPE_CHECKING

from scalor.cli.parser import Commands, Parser, command
from scalor.cli.text import print_result
from scalor.cli.values import number, positive
from scalor.errors import InputError
from scalor.provenance import command_line, commit, today

if TYPE_CHECKING:
    from scalor.measures import Calibration, Measurements


def add_measure(commands: Commands) -> None:
    """Add the command."""
    measure = command(
        commands, "measure", "Measure tracks: speeds, paths, zones, line crossings, occupancy.", out="measures"
    )
    measure.add_argument("folder", help="folder that `scalor track` wrote; its edits count")
    add_scale(measure)
    measure.add_argument(
        "--zones",
        default=None,
        metavar="FILE",
        help="JSON file of zones and lines, in pixels (default: those drawn in `scalor view`)",
    )
    measure.add_argument(
        "--anchor", choices=("centre", "bottom"), default="centre", help="point of the box that is its position"
    )
    measure.add_argument("--smooth", type=number, default=0.0, metavar="S", help="seconds to average positions over")
    measure.add_argument(
        "--margin",
        type=number,
        default=None,
        metavar="PX",
        help="pixels beyond a line at which it is crossed (default: a quarter of the object's size)",
    )
    measure.add_argument(
        "--patience", type=number, default=0.0, metavar="S", help="seconds of absence that do not end a visit"
    )
    measure.add_argument("--cell", type=number, default=None, metavar="PX", help="side of a cell of the heat map")
    measure.add_argument(
        "--lags",
        type=positive,
        default=None,
        help="largest lag of the mean squared displacement, frames (default: a quarter of the longest track)",
    )
    measure.add_argument("--video", default=None, help="the video, if it is not where it was tracked")


def add_scale(sub: Parser) -> None:
    """Add the options that give the scale of the picture."""
    sub.add_argument(
        "--mm-per-pixel",
        type=number,
        default=None,
        metavar="MM",
        help="millimetres that a pixel shows (default: the known length drawn in `scalor view`; without one, pixels)",
    )
    sub.add_argument(
        "--known-length",
        type=number,
        nargs=5,
        metavar=("X0", "Y0", "X1", "Y1", "MM"),
        default=None,
        help="instead: two points of the picture, pixels, and their distance in millimetres",
    )


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Measure the tracks and print the most important measures."""
    from scalor.edits import EditedFolder
    from scalor.measures import drawings, drawn_regions, measure, read_regions
    from scalor.measures.measurements import OTHERS, TABLES

    folder = EditedFolder(arguments.folder)
    calibration = calibration_of(arguments)
    regions = drawn_regions(arguments.folder) if arguments.zones is None else read_regions(arguments.zones)
    measured = measure(
        folder.tracks,
        calibration,
        regions,
        anchor=arguments.anchor,
        smooth_s=arguments.smooth,
        margin=arguments.margin,
        patience_s=arguments.patience,
        cell_px=arguments.cell,
        lags=arguments.lags,
        names=folder.names,
        times=folder.times,
    )
    facts = {
        **folder.about.facts,
        "tracks": str(folder.folder),
        "edits": len(folder.edits),
        "measured by": command_line(),
        "measured at commit": commit(),
        "measured on": today(),
    }
    written = measured.save(arguments.out, folder.scene(arguments.video), facts)
    drawn = []
    if arguments.zones is None and regions is not None:
        drawn.append(f"zones and lines are those of {folder.folder / drawings.ZONES_FILE}")
    if arguments.mm_per_pixel is None and arguments.known_length is None and calibration.mm_per_pixel is not None:
        drawn.append(f"a pixel shows {calibration.mm_per_pixel:.4g} mm, by {folder.folder / drawings.SCALE_FILE}")
    document = {
        "tracks": len(measured.per_track),
        "unit": measured.samples.unit,
        "mm_per_pixel": calibration.mm_per_pixel,
        "mean_speed": mean_speed(measured),
        "line_counts": measured.line_counts.to_dict("records"),
        "zones": zone_totals(measured),
        "files": [str(written / name) for name in (*TABLES, *OTHERS) if (written / name).exists()],
    }
    return print_result(document, arguments.json, "\n".join([*lines_of(measured), *drawn, f"see {written}/"]))


def calibration_of(arguments: argparse.Namespace) -> "Calibration":
    """Return the calibration that the options give, or the one that was drawn in `scalor view`."""
    from scalor.measures import Calibration, drawn_calibration

    if arguments.known_length is None:
        given = None if arguments.mm_per_pixel is None else Calibration(arguments.mm_per_pixel)
        return given or drawn_calibration(arguments.folder) or Calibration()
    if arguments.mm_per_pixel is not None:
        raise InputError("--mm-per-pixel and --known-length both give the scale: leave one out.")
    x0, y0, x1, y1, length = arguments.known_length
    return Calibration.from_points((x0, y0), (x1, y1), length)


def mean_speed(measured: "Measurements") -> float | None:
    """Return the length of all paths divided by their time."""
    unit, table = measured.samples.unit, measured.per_track
    seconds = float(table["duration_s"].sum()) if len(table) else 0.0
    return float(table[f"path_{unit}"].sum()) / seconds if seconds else None


def zone_totals(measured: "Measurements") -> list[dict[str, object]]:
    """Return the seconds of all objects together, the visitors and the visits of every zone."""
    if not len(measured.zones):
        return []
    return [
        {
            "zone": name,
            "inside_s": float(part["inside_s"].sum()),
            "objects": int((part["visits"] > 0).sum()),
            "visits": int(part["visits"].sum()),
        }
        for name, part in measured.zones.groupby("zone", sort=False)
    ]


def lines_of(measured: "Measurements") -> list[str]:
    """Return the most important measures as text."""
    unit, speed = measured.samples.unit, mean_speed(measured)
    lines = [f"{len(measured.per_track)} tracks" + ("" if speed is None else f", mean speed {speed:.3g} {unit}/s")]
    if unit == "px":
        lines[0] += "; lengths are in pixels: give --mm-per-pixel for millimetres"
    for one in measured.line_counts.to_dict("records"):
        lines.append(
            f"line {one['line']}: {one['forward']} forward, {one['backward']} backward, {one['came_back']} came back"
        )
    for zone in zone_totals(measured):
        lines.append(
            f"zone {zone['zone']}: {zone['inside_s']:.1f} s, {zone['visits']} visits by {zone['objects']} objects"
        )
    return lines
