"""`scalor pack`: write a small copy of trained weights."""

import argparse
from pathlib import Path

from scalor import checkpoint
from scalor.files import print_json


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Write the small copy and print its size."""
    source, target = checkpoint.find(arguments.weights), Path(arguments.out)
    checkpoint.save_packed(source, target)
    document = {"weights": str(source), "file": str(target), "bytes": target.stat().st_size}
    if arguments.json:
        print_json(document)
    else:
        print(f"{source} ({source.stat().st_size:,} bytes) packed into {target} ({document['bytes']:,} bytes)")
    return 0
