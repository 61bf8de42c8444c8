"""Classical trackers on the command line: `classical-colour` and its like stand where weights have their names."""

import argparse

from scalor.baselines.classical import PREFIX, ClassicalTracker, evaluate, named
from scalor.cli.learning import gates
from scalor.documents import print_json
from scalor.errors import InputError
from scalor.presets import get_preset


def is_classical(weights: str) -> bool:
    return weights.startswith(PREFIX)


def tracker_for_video(arguments: argparse.Namespace) -> ClassicalTracker:
    """The tracker that `scalor track` asks for."""
    for option in ("slots", "masks"):
        if getattr(arguments, option):
            raise InputError(f"weights is {arguments.weights!r}: it has no {option}, so leave --{option} out.")
    if arguments.raw:
        raise InputError(f"weights is {arguments.weights!r}: it is no model with ids of its own, so leave --raw out.")
    if arguments.object_size is None:
        raise InputError(
            f"weights is {arguments.weights!r}: it must be told how large objects are, for example --object-size 9x9."
        )
    return named(arguments.weights, arguments.object_size)


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
