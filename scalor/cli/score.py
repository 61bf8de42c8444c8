"""`scalor score`: compare the tracks of one or more files with a ground-truth file."""

import argparse

from scalor.errors import InputError
from scalor.evaluation.score import score as score_files
from scalor.files import print_json


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Print the scores of each file of tracks."""
    frames = None if arguments.frames is None else frame_range(arguments.frames)
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


def frame_range(word: str) -> tuple[int, int]:
    """Return the first and last frame of a range such as `478-795`, counted from 1."""
    first, dash, last = word.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise InputError(f"--frames is {word!r}: give the first frame and the last, from 1 on, for example 478-795.")
    return int(first), int(last)
