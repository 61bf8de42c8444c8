"""The examples in the docstrings of measures, edits and exports give what they say."""

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest

import scalor.edits
import scalor.exports
import scalor.measures
from scalor.edits import EditedFolder
from tests.edits.drawn import mixed_ids, tracks_of, true_centres, write_results, write_scene
from tests.measures.walks import table

PACKAGES = (scalor.measures, scalor.edits, scalor.exports)
OPTIONS = doctest.NORMALIZE_WHITESPACE
RIGHT = np.array([[10, 50], [20, 50], [30, 50], [40, 50]])
UP = np.array([[60, 50], [60, 40], [60, 30], [60, 20]])


def examples() -> Iterator[tuple[str, doctest.DocTest]]:
    """Yield the package and the examples of every docstring that has any."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for package in PACKAGES:
        for name in (
            package.__name__,
            *(f"{package.__name__}.{module.name}" for module in iter_modules(package.__path__)),
        ):
            for found in finder.find(import_module(name), extraglobs={}):
                if found.examples:
                    yield package.__name__, found


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the result folder and the file of zones that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    write_scene(folder / "beetles.mp4")
    write_results(folder / "tracked", folder / "beetles.mp4")
    (folder / "zones.json").write_text('{"zones": [{"name": "ring", "circle": [80, 75, 40]}]}')
    return folder


@pytest.mark.parametrize(("package", "example"), [pytest.param(*one, id=one[1].name) for one in examples()])
def test_an_example_gives_what_it_says(
    package: str, example: doctest.DocTest, workshop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workshop)
    names = {name: value for one in PACKAGES for name, value in vars(one).items() if not name.startswith("_")}
    example.globs |= {**names, "np": np, "folder": EditedFolder("tracked")}
    example.globs["tracks"] = (
        table(np.stack([RIGHT, UP])) if package == "scalor.measures" else tracks_of(true_centres(), mixed_ids())
    )
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=said.append)
    assert said == []


def test_every_function_of_the_interface_has_an_example() -> None:
    without = [
        f"{package.__name__}.{name}"
        for package in PACKAGES
        for name in package.__all__
        if inspect.isfunction(getattr(package, name))
        and "Examples\n" not in (inspect.getdoc(getattr(package, name)) or "")
    ]
    assert without == []
