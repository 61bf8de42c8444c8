"""Classical trackers on the command line: names such as `classical-colour` are given in place of weights."""

import argparse
from dataclasses import replace

from scalor.classical.tracker import PREFIX, ClassicalTracker, named
from scalor.errors import InputError
from scalor.still.still_background import StillBackground
from scalor.tracking.view import VideoView

MOTION = PREFIX + "motion"
"""Name of the tracker that measures object sizes itself if they are not given."""


def is_classical(weights: str) -> bool:
    """Return whether a name of weights is that of a classical tracker."""
    return weights.startswith(PREFIX)


def check_words(arguments: argparse.Namespace) -> None:
    """Raise an error for options that a classical tracker does not support, and for an unknown name."""
    for option in ("slots", "masks"):
        if getattr(arguments, option):
            raise InputError(f"weights is {arguments.weights!r}: it has no {option}, so leave --{option} out.")
    if arguments.raw:
        raise InputError(f"weights is {arguments.weights!r}: it is no model with ids of its own, so leave --raw out.")
    if arguments.object_size is None and arguments.weights != MOTION:
        raise InputError(
            f"weights is {arguments.weights!r}: it must be told how large objects are, for example --object-size 9x9; "
            f"or choose --weights {MOTION}, which measures it."
        )
    named(arguments.weights, arguments.object_size or (1.0, 1.0))


def tracker_for_video(arguments: argparse.Namespace, view: VideoView) -> ClassicalTracker:
    """Return the tracker that `scalor track` requests for a video; `classical-motion` measures what is not given."""
    if arguments.weights != MOTION:
        return named(arguments.weights, arguments.object_size)
    found = view.found
    if found is None or view.background is None:
        raise InputError(
            f"{view.video.name} shows nothing that moves: choose another part of it with --start, --end or --region."
        )
    size = arguments.object_size or found.object_size
    return replace(named(arguments.weights, size), scene=StillBackground(view.background.epochs), test=found.test)
