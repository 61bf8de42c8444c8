"""`scalor presets`, `scalor info` and `scalor pack`: what there is, what is in it, and a small copy of it."""

import argparse
import json
from pathlib import Path

from scalor import presets as library
from scalor.config import ModelConfig
from scalor.documents import print_json
from scalor.training import checkpoint


def presets(arguments: argparse.Namespace) -> int:
    if arguments.preset:
        config = library.get_preset(arguments.preset).to_dict()
        if arguments.json:
            print_json(config)
            return 0
        print(f"{'system':<32} {json.dumps(config.pop('system'))}")
        for section, values in config.items():
            for name, value in values.items():
                print(f"{section + '.' + name:<32} {json.dumps(value)}")
        return 0
    if arguments.json:
        print_json({name: library.describe(name) for name in library.PRESETS})
        return 0
    for name in library.PRESETS:
        print(f"{name:<24} {library.describe(name)}")
    return 0


def pack(arguments: argparse.Namespace) -> int:
    source, target = checkpoint.find(arguments.weights), Path(arguments.out)
    checkpoint.save_packed(source, target)
    document = {"weights": str(source), "file": str(target), "bytes": target.stat().st_size}
    if arguments.json:
        print_json(document)
    else:
        print(f"{source} ({source.stat().st_size:,} bytes) packed into {target} ({document['bytes']:,} bytes)")
    return 0


def info(arguments: argparse.Namespace) -> int:
    path = checkpoint.find(arguments.weights)
    found = checkpoint.read(path)
    document = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "parameters": sum(tensor.numel() for tensor in found.weights.values()),
        "provenance": found.provenance,
        "config": found.config.to_dict(),
    }
    if arguments.json:
        print_json(document)
        return 0
    print(f"{path}: {document['parameters']:,} parameters, {document['bytes']:,} bytes")
    for name, value in found.provenance.items():
        print(f"{name:<12} {value}")
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
