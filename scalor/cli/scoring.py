"""`scalor score`: the tracks of a file against a truth file."""

import argparse

from scalor.cli.main import print_json
from scalor.errors import InputError
from scalor.evaluation.scoring import score as score_files


def score(arguments: argparse.Namespace) -> int:
    frames = None if arguments.frames is None else frame_range(arguments.frames)
    scores = score_files(arguments.tracks, arguments.truth, frames, arguments.minimum_presence)
    if arguments.json:
        print_json({"tracks": arguments.tracks, "truth": arguments.truth, **scores.to_dict()})
    else:
        print(scores.table())
    return 0


def frame_range(word: str) -> tuple[int, int]:
    """`478-795`: the first frame and the last, from 1 on."""
    first, dash, last = word.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise InputError(f"--frames is {word!r}: give the first frame and the last, from 1 on, for example 478-795.")
    return int(first), int(last)
