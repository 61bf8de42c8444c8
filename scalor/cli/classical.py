"""Classical trackers on the command line: `classical-colour` and its like stand where weights have their names."""

import argparse
from dataclasses import replace

from scalor.baselines.classical import PREFIX, ClassicalTracker, evaluate, named
from scalor.cli.learning import gates
from scalor.documents import print_json
from scalor.errors import InputError
from scalor.presets import get_preset
from scalor.still.background import Background
from scalor.video.viewing import VideoView

MOTION = PREFIX + "motion"
"""The one that measures what it is not told."""


def is_classical(weights: str) -> bool:
    return weights.startswith(PREFIX)


def check_words(arguments: argparse.Namespace) -> None:
    """Refuse at once what a classical tracker cannot do, and a name that none has."""
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
    """The tracker that `scalor track` asks for, for this video: what is not said is measured."""
    if arguments.weights != MOTION:
        return named(arguments.weights, arguments.object_size)
    found = view.found
    if found is None or view.background is None:
        raise InputError(
            f"{view.video.name} shows nothing that moves: choose another part of it with --start, --end or --region."
        )
    size = arguments.object_size or found.object_size
    return replace(named(arguments.weights, size), scene=Background(view.background.epochs), test=found.test)


def evaluate_named(arguments: argparse.Namespace) -> int:
    """`scalor evaluate classical-colour --preset shapes-md`."""
    if arguments.preset is None:
        raise InputError(
            f"weights is {arguments.weights!r}: it has no test scenes of its own; name some, for example "
            "--preset shapes-md."
        )
    if arguments.nll_samples:
        raise InputError(f"weights is {arguments.weights!r}: it has no likelihood, so leave --nll-samples out.")
    scene = get_preset(arguments.preset).test
    measured = evaluate(named(arguments.weights, (scene.size, scene.size)), scene, arguments.clips)
    if arguments.json:
        print_json({"weights": arguments.weights, "clips": arguments.clips, "metrics": measured.to_dict()})
    else:
        print("\n".join(gates(measured)))
        print(f"HOTA {measured.hota:.3f}, count MAE {measured.count_mae:.3f}, {measured.clips} unseen clips")
    return 0
