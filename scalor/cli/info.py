"""`scalor info`: print the contents of a checkpoint."""

import argparse

from scalor import checkpoint
from scalor.config import ModelConfig
from scalor.files import print_json


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Print what a checkpoint holds."""
    path = checkpoint.find(arguments.weights)
    found = checkpoint.read(path)
    document = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "parameters": sum(tensor.numel() for tensor in found.weights.values()),
        "provenance": found.provenance,
        "config": found.config.to_dict(),
        "settings_not_recorded": found.missing,
    }
    if arguments.json:
        print_json(document)
        return 0
    print(f"{path}: {document['parameters']:,} parameters, {document['bytes']:,} bytes")
    for name, value in found.provenance.items():
        print(f"{name:<12} {value}")
    if found.missing:
        print(f"{'not recorded':<12} {', '.join(found.missing)}: settings newer than this file, taken as the defaults")
    model = found.config.model
    print(f"{'system':<12} {model.system}")
    if not isinstance(model, ModelConfig):
        print(f"{'frames':<12} {model.frame[0]}x{model.frame[1]}")
        return 0
    print(
        f"{'frames':<12} {model.frame[0]}x{model.frame[1]}, grid {model.grid[0]}x{model.grid[1]}, or any size "
        f"in cells of {model.cell[0]}x{model.cell[1]} px"
    )
    print(f"{'objects':<12} up to {model.slots}, about {model.object_size[0]:g}x{model.object_size[1]:g} px")
    background = "moving" if model.background else "the video's empty scene" if model.still else "black"
    print(f"{'background':<12} {background}")
    return 0
