"""A model so small that loading and tracking take no time; what it finds does not matter."""

from pathlib import Path

TINY = [
    *("--model.slots", "4", "--model.proposals", "2", "--model.glimpse", "8", "--model.what_dim", "4"),
    *("--model.feature_dim", "8", "--model.tracker_dim", "8", "--model.prior_dim", "8"),
    *("--scene.objects", "[2, 3]", "--scene.length", "4", "--test.objects", "[2, 3]", "--test.length", "7"),
    *("--train.batch", "2", "--train.lengths", "[[0, 1], [2, 2]]", "--train.save_every", "2"),
]
"""Settings of the model, in words of the command line."""


def tiny_weights(folder: Path) -> Path:
    """Write the weights of an untrained tiny model. Return their path."""
    import torch

    import scalor
    from scalor import systems
    from scalor.cli.overrides import apply
    from scalor.presets import get_preset

    torch.manual_seed(0)
    config = apply(get_preset("shapes-tiny"), TINY)
    model = systems.build(config.model)
    path = folder / "tiny.safetensors"
    scalor.save(model, path, config)
    return path.resolve()
