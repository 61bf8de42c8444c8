"""One name, one meaning: no two files, and no two classes, of the package have the same name."""

import ast
from collections import defaultdict
from pathlib import Path

import scalor

PACKAGE = Path(scalor.__file__).parent
KNOWN_CLASSES = {
    "Paths": "the paths of composed objects, and the cuts of a replay",
    "Prepared": "what a fit from scratch, and what a refinement, has prepared",
}
"""Names that two classes have."""


def modules() -> list[Path]:
    """Return all modules but the baselines: each baseline is a system of its own, with the same parts as the model."""
    return sorted(path for path in PACKAGE.rglob("*.py") if PACKAGE / "baselines" not in path.parents)


def test_no_two_files_have_one_name() -> None:
    """A command may be named like the part of the package that it runs, and presets like the data they are for."""
    places = defaultdict(list)
    for path in modules():
        if path.name != "__init__.py" and path.parent.name not in ("cli", "presets"):
            places[path.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1 and name not in KNOWN_CLASSES} == {}
