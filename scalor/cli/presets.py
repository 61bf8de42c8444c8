"""`scalor presets`: list the presets, or print all settings of one."""

import argparse
import json

from scalor import presets as library
from scalor.files import print_json


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Print the names of the presets, or the settings of one."""
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
