"""One name, one meaning: no two files, and no two classes, of the package have the same name."""

import ast
from collections import defaultdict
from pathlib import Path

import scalor

PACKAGE = Path(scalor.__file__).parent


def modules() -> list[Path]:
    """Return all modules of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def test_no_two_files_have_one_name() -> None:
    """A command is named like the part of the package that it runs. SQAIR has the settings and steps of SCALOR."""
    places = defaultdict(list)
    for path in modules():
        if path.name != "__init__.py" and path.parent.name not in ("cli", "sqair"):
            places[path.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
