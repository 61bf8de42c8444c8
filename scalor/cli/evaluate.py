"""`scalor evaluate`: measure a model, or a classical tracker, on unseen clips."""

import argparse

from scalor import checkpoint
from scalor.classical.tracker import named
from scalor.cli import overrides
from scalor.cli.text import gates, table
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.files import print_json
from scalor.presets import get_preset
from scalor.tracker_choice import is_classical


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Measure the weights and print the metrics."""
    if is_classical(arguments.weights):
        return evaluate_classical(arguments)
    path = checkpoint.find(arguments.weights)
    found = checkpoint.read(path)
    model = checkpoint.load(path, arguments.device)
    config = found.config
    if arguments.preset:
        config = overrides.with_test_scenes(config, get_preset(arguments.preset))
    measured = report.evaluate(model, config, arguments.clips, nll_samples=arguments.nll_samples)
    if arguments.json:
        print_json(
            {
                "weights": str(arguments.weights),
                "provenance": found.provenance,
                "clips": arguments.clips,
                "metrics": measured.to_dict(),
            }
        )
    else:
        print(table(measured))
    return 0


def evaluate_classical(arguments: argparse.Namespace) -> int:
    """Run a command such as `scalor evaluate classical-colour --preset shapes-md`."""
    if arguments.preset is None:
        raise InputError(
            f"weights is {arguments.weights!r}: it has no test scenes of its own; name some, for example "
            "--preset shapes-md."
        )
    if arguments.nll_samples:
        raise InputError(f"weights is {arguments.weights!r}: it has no likelihood, so leave --nll-samples out.")
    scene = get_preset(arguments.preset).test
    measured = report.evaluate_tracker(named(arguments.weights, (scene.size, scene.size)), scene, arguments.clips)
    if arguments.json:
        print_json({"weights": arguments.weights, "clips": arguments.clips, "metrics": measured.to_dict()})
    else:
        print("\n".join(gates(measured)))
        print(f"HOTA {measured.hota:.3f}, count MAE {measured.count_mae:.3f}, {measured.clips} unseen clips")
    return 0
