"""One name, one meaning: no two files, and no two classes, of the package have the same name."""

import ast
from collections import defaultdict
from pathlib import Path

import scalor

PACKAGE = Path(scalor.__file__).parent
KNOWN_FILES: set[str] = set()
KNOWN_CLASSES = {
    "Appearance": "the object's appearance, in SCALOR and in SQAIR",
    "Costs": "the terms of the bound, in SCALOR and in SQAIR",
    "Discovery": "the module that proposes objects, in SCALOR and in SQAIR",
    "Likely": "to be renamed",
    "Memory": "to be renamed",
    "Paths": "to be renamed",
    "Prepared": "to be renamed",
    "Propagation": "the module that carries objects forward, in SCALOR and in SQAIR",
    "Rollout": "to be renamed",
    "Sampled": "to be renamed",
    "Seen": "to be renamed",
    "Transition": "the prior of an object's motion, in SCALOR and in SQAIR",
    "View": "the posterior's view of a frame, in SCALOR and in SQAIR",
    "Watched": "to be renamed",
}
"""Names that two classes have, with what they mean."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_no_two_files_have_one_name() -> None:
    """A command of the command line may be named like the part of the package that it runs."""
    places = defaultdict(list)
    for path in modules():
        if path.name != "__init__.py" and path.parent.name != "cli":
            places[path.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1 and name not in KNOWN_FILES} == {}


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1 and name not in KNOWN_CLASSES} == {}
