"""`scalor edit`: correct the tracks of a result folder, with undo, and list the places to look at."""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scalor.cli.parser import Commands, Help, Parser, command
from scalor.cli.text import print_result
from scalor.cli.values import natural, number, positive

if TYPE_CHECKING:
    from scalor.edits import EditedFolder, Step


def add_edit(commands: Commands) -> None:
    """Add the command and its operations."""
    edit = command(commands, "edit", "Correct the tracks of a result folder; every edit is logged and can be undone.")
    edit.add_argument("folder", help="folder that `scalor track` wrote")
    operations = edit.add_subparsers(dest="operation", metavar="OPERATION", required=True, parser_class=Parser)

    def operation(name: str, help: str) -> Parser:
        sub: Parser = operations.add_parser(name, help=help, description=help, allow_abbrev=False, formatter_class=Help)
        # Without a default, the option counts before the operation, too.
        sub.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document")
        return sub

    def since(sub: Parser, help: str, required: bool = True) -> None:
        sub.add_argument("--from", dest="frame", type=natural, metavar="FRAME", required=required, help=help)

    swap = operation("swap", "Exchange two ids from a frame on.")
    swap.add_argument("a", type=positive, help="id of a track")
    swap.add_argument("b", type=positive, help="id of the other track")
    since(swap, "first frame with exchanged ids")
    merge = operation("merge", "Join two tracks that share no frame.")
    merge.add_argument("keep", type=positive, help="id that the joined track has")
    merge.add_argument("other", type=positive, help="id that is given up")
    split = operation("split", "Give a track a new id from a frame on.")
    split.add_argument("id", type=positive, help="id of the track")
    since(split, "first frame with the new id")
    delete = operation("delete", "Delete a track, or a stretch of it.")
    delete.add_argument("id", type=positive, help="id of the track")
    since(delete, "first frame to delete (default: the track's first)", required=False)
    delete.add_argument("--to", dest="last", type=natural, metavar="FRAME", help="last frame (default: the track's)")
    name = operation("name", "Name a track; an empty name removes the name.")
    name.add_argument("id", type=positive, help="id of the track")
    name.add_argument("name", help="the name, one line")
    add = operation("add", "Add a missing box.")
    add.add_argument("--frame", type=natural, required=True, help="number of the frame")
    add.add_argument("--box", type=number, nargs=4, metavar=("X0", "Y0", "X1", "Y1"), required=True, help="pixels")
    add.add_argument("--id", type=positive, default=None, help="id of the track (default: a new track)")
    operation("undo", "Take back the last edit.")
    operation("redo", "Repeat the last edit taken back.")
    operation("log", "List all edits.")
    crossings = operation("crossings", "List where two tracks are near each other, so that ids may be swapped.")
    crossings.add_argument("--near", type=number, default=1.0, help="largest distance, in sizes of the objects")
    doubtful = operation("doubtful", "List where tracks begin or end inside the picture, jump, or are unsure.")
    doubtful.add_argument("--confidence", type=number, default=0.5, help="confidence below which a box is doubtful")
    for places in (crossings, doubtful):
        places.add_argument("--after", type=natural, default=0, metavar="FRAME", help="first frame to look at")
        places.add_argument("--next", action="store_true", help="the next one only")
    render = operation("render", "Draw overlay.mp4 and labels.mp4 again, from the video.")
    render.add_argument("--video", default=None, help="the video, if it is not where it was tracked")


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Carry out one operation on a result folder."""
    from scalor.edits import EditedFolder, crossings, describe, doubtful_places, step_to_dict

    folder = EditedFolder(arguments.folder)
    if folder.stale:
        folder.write()
    match arguments.operation:
        case "log":
            entries = folder.entries
            document: dict[str, Any] = {
                "entries": [{**step_to_dict(entry.step), "when": entry.when} for entry in entries],
                "in_effect": [step_to_dict(edit) for edit in folder.edits],
                "names": {str(number): name for number, name in folder.names.items()},
            }
            lines = [f"{place:>4}  {entry.when}  {describe(entry.step)}" for place, entry in enumerate(entries, 1)]
            text = "\n".join([*lines, f"{_count(len(folder.edits), 'edit')} in effect"])
        case "crossings":
            found = crossings(folder.tracks, arguments.near, arguments.after)[: 1 if arguments.next else None]
            document = {"crossings": [asdict(one) for one in found]}
            lines = [
                f"frame {one.frame:>6}  tracks {one.a} and {one.b}, {one.distance_px:.1f} px apart "
                f"(near from {one.first} to {one.last})"
                for one in found
            ]
            text = "\n".join(lines or ["no crossing"])
        case "doubtful":
            places = doubtful_places(folder.tracks, arguments.confidence, arguments.after)[
                : 1 if arguments.next else None
            ]
            document = {"doubtful": [asdict(one) for one in places]}
            lines = [f"frame {one.first:>6}  {one.sentence}" for one in places]
            text = "\n".join(lines or ["no doubtful place"])
        case "render":
            draw_films(folder, arguments.video)
            document = {"folder": str(folder.folder), "edits": len(folder.edits)}
            text = f"drawn again in {folder.folder}"
        case _:
            entry = folder.do(_step(arguments))
            document = {"entry": {**step_to_dict(entry.step), "when": entry.when}, "edits": len(folder.edits)}
            in_effect = _count(len(folder.edits), "edit")
            text = f"{describe(entry.step)}; {in_effect} in effect, see {folder.folder}/report.html"
            text += films_note(folder)
    return print_result(document, arguments.json, text)


def films_note(folder: "EditedFolder") -> str:
    """Return a line that says how to draw the films again, if they lag behind the edits."""
    films = " and ".join(folder.stale_films)
    return f"\n{films} as before: `scalor edit {folder.folder} render` draws again" if films else ""


def draw_films(folder: "EditedFolder", video: str | None = None) -> None:
    """Draw the films of a folder again, with a progress bar."""
    from tqdm import tqdm

    with tqdm(total=len(folder.times), file=sys.stderr, unit="frame", leave=False) as bar:

        def tick() -> None:
            bar.update()

        folder.write(video, films=True, tick=tick)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _step(arguments: argparse.Namespace) -> "Step":
    """Return the step that the command line names."""
    from scalor.edits import Add, Delete, Merge, Name, Redo, Split, Swap, Undo

    match arguments.operation:
        case "swap":
            return Swap(arguments.a, arguments.b, arguments.frame)
        case "merge":
            return Merge(arguments.keep, arguments.other)
        case "split":
            return Split(arguments.id, arguments.frame)
        case "delete":
            return Delete(arguments.id, arguments.frame, arguments.last)
        case "name":
            return Name(arguments.id, arguments.name)
        case "add":
            x0, y0, x1, y1 = arguments.box
            return Add(arguments.frame, (x0, y0, x1, y1), arguments.id)
        case "undo":
            return Undo()
        case _:
            return Redo()
