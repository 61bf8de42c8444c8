"""`scalor score`: compare the tracks of one or more files, or of a folder of results, with the truth."""

import argparse
from pathlib import Path

from scalor.cli.text import print_result, workers_of
from scalor.errors import InputError
from scalor.evaluation.score import score as score_files
from scalor.files import print_json
from scalor.many.scoring_task import score_many


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Print the scores of each file of tracks."""
    frames = None if arguments.frames is None else frame_range(arguments.frames)
    if Path(arguments.truth).is_dir():
        return score_folder(arguments, frames)
    scores = {
        tracks: score_files(tracks, arguments.truth, frames, arguments.minimum_presence) for tracks in arguments.tracks
    }
    documents = [{"tracks": tracks, "truth": arguments.truth, **one.to_dict()} for tracks, one in scores.items()]
    several = len(scores) > 1
    if arguments.json:
        print_json(documents if several else documents[0])
    else:
        print("\n\n".join(f"{tracks}\n{one.table()}" if several else one.table() for tracks, one in scores.items()))
    return 0


def score_folder(arguments: argparse.Namespace, frames: tuple[int, int] | None) -> int:
    """Print the scores of the videos of a folder; return 1 if one of them failed."""
    if len(arguments.tracks) > 1 or not Path(arguments.tracks[0]).is_dir():
        raise InputError(f"--truth is the folder {arguments.truth}: give one folder of results, too.")
    scores = score_many(arguments.tracks[0], arguments.truth, frames, arguments.minimum_presence, workers_of(arguments))
    print_result(scores.to_dict(), arguments.json, scores.table())
    return 1 if scores.failed else 0


def frame_range(word: str) -> tuple[int, int]:
    """Return the first and last frame of a range such as `478-795`, counted from 1."""
    first, dash, last = word.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise InputError(f"--frames is {word!r}: give the first frame and the last, from 1 on, for example 478-795.")
    return int(first), int(last)
