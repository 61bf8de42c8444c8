"""`scalor export`: write the tracks of a result folder for other programs, or a clip that follows one object."""

import argparse
from pathlib import Path

from scalor.cli.measure import add_scale, calibration_of
from scalor.cli.parser import Commands, command
from scalor.cli.text import print_result
from scalor.cli.values import number, positive
from scalor.errors import InputError

FORMATS = {
    "trackmate": "tracks_trackmate.xml",
    "geff": "tracks.geff",
    "cvat": "tracks_cvat.xml",
    "xlsx": "tracks.xlsx",
    "clip": "clip_{id}.mp4",
}
"""Formats, with the names of their files."""


def add_export(commands: Commands) -> None:
    """Add the command."""
    export = command(commands, "export", "Write tracks for other programs, or a clip that follows one object.")
    export.add_argument("folder", help="folder that `scalor track` wrote; its edits count")
    export.add_argument(
        "--to", required=True, choices=FORMATS, help="TrackMate XML, GEFF, CVAT XML for video, Excel, or a clip"
    )
    export.add_argument("--id", type=positive, default=None, help="with --to clip: the object to follow")
    export.add_argument("--around", type=number, default=2.0, help="with --to clip: side, in sizes of the object")
    export.add_argument("--out", default=None, help="file to write (default: in the current folder, by the format)")
    export.add_argument("--video", default=None, help="the video, if it is not where it was tracked")
    add_scale(export)


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Write the tracks in the requested format."""
    from scalor import exports

    if (arguments.id is None) == (arguments.to == "clip"):
        raise InputError("--to clip follows one object, which --id names; other formats hold all, without --id.")
    source = exports.export_source(arguments.folder, calibration_of(arguments), arguments.video)
    path = Path(arguments.out or FORMATS[arguments.to].format(id=arguments.id))
    document: dict[str, object] = {"file": str(path), "rows": len(source.tracks)}
    match arguments.to:
        case "trackmate":
            exports.write_trackmate(path, source)
        case "geff":
            exports.write_geff(path, source)
        case "cvat":
            exports.write_cvat(path, source)
        case "xlsx":
            exports.write_workbook(path, source)
        case _:
            document = {"file": str(path), "frames": exports.write_clip(path, source, arguments.id, arguments.around)}
    return print_result(document, arguments.json, f"wrote {path}")
