"""The code of docs/python.md runs as it is printed, and its package is installed and trained."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import scalor
from scalor.fitting import fit as fitting
from scalor.fitting.options import FitOptions
from scalor.presets import PRESETS
from scalor.registry import SCENES, Registry, SceneKinds
from scalor.settings import with_values
from scalor.track_files import COLUMNS
from scalor.video import write_video

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "python.md").read_text()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a video of two squares, the same as an array, and its truth; a fit takes two steps."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    pictures = np.repeat(random.integers(60, 140, (1, 48, 64, 3), np.uint8), 16, 0)
    for t in range(16):
        for top, left in ((6, 3 * t), (28, 50 - 3 * t)):
            pictures[t, top : top + 10, max(left, 0) : max(left + 7, 0)] = (250, 20, 30)
    write_video("walkers.mp4", pictures, 10)
    np.save("walkers.npy", pictures)
    Path("gt.txt").write_text("".join(f"{t + 1},1,{3 * t},6,7,10,1\n" for t in range(16)))
    small = {"train.batch": 2, "train.lengths": [[0, 2]], "scene.length": 2}

    def two_steps(config: scalor.Config) -> scalor.Config:
        return with_values(config, small)

    prepare = fitting.prepare
    quick = FitOptions(steps=2)
    monkeypatch.setattr(
        fitting,
        "prepare",
        lambda videos, out, options, part, fps, *_: prepare(videos, out, quick, part, fps, two_steps, "cpu"),
    )
    return tmp_path


def test_the_python_of_the_page_runs(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    try:
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.S):
            exec(code, names)
    finally:
        PRESETS.pop("shapes-few", None)
    printed = capsys.readouterr().out
    assert "MOTA" in printed
    assert "5 frames observed, 5 generated" in printed
    assert (desk / "future.csv").exists()
    assert isinstance(names["model"], scalor.SCALOR)


def test_every_function_has_an_example() -> None:
    functions = {name: getattr(scalor, name) for name in scalor.__all__ if inspect.isfunction(getattr(scalor, name))}
    assert len(functions) >= 13
    for name, function in functions.items():
        assert ">>> " in str(function.__doc__), name


def test_the_page_lists_every_column() -> None:
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.M)))
    assert [name for name in listed if name in COLUMNS] == list(COLUMNS)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package of the page."""
    source, target = tmp_path_factory.mktemp("dots"), tmp_path_factory.mktemp("site")
    (toml,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    (code,) = re.findall(r"```python dots\n(.*?)```", PAGE, re.S)
    (source / "pyproject.toml").write_text(toml)
    (source / "dots.py").write_text(code)
    install = ("install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", target, source)
    subprocess.run([sys.executable, "-m", "pip", *map(str, install)], check=True, capture_output=True)
    return target


def test_the_package_of_the_page_is_installed_and_trained(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])}

    def say(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "scalor", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "dots-tiny                Dots that fall: for a first look." in say("presets")
    short = ("--train.steps", "2", "--train.lengths", "[[0,1],[1,2]]", "--train.batch", "2", "--clips", "1")
    ours, theirs = json.loads(say("train", "dots-tiny", "dots-small-vae", *short, "--device", "cpu", "--json"))
    assert ours["step"] == theirs["step"] == 2
    assert "tracking" in ours["metrics"] or "strict_mota" in ours["metrics"]
    config = json.loads(say("info", "runs/dots-small-vae", "--json"))["config"]
    assert (config["system"], config["scene"]["kind"]) == ("small-vae", "dots")


def test_a_package_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    broken = Registry[object]("scalor.nothing")
    broken.__dict__["_installed"] = {"bad": EntryPoint("bad", "no_such_module:thing", "scalor.nothing")}
    assert "bad" in broken
    assert list(broken) == ["bad"]
    with pytest.raises(scalor.InputError, match=r"'bad' of scalor\.nothing cannot be loaded from the package"):
        broken["bad"]
    with pytest.raises(scalor.InputError, match="has one of that name already"):
        broken.add("bad", object())
    with pytest.raises(KeyError):
        broken["unknown"]


def test_names_are_registered_once() -> None:
    with pytest.raises(scalor.InputError, match="has one of that name already"):

        @scalor.register_preset
        def shapes_md() -> scalor.Config:
            return scalor.Config()

    with pytest.raises(scalor.InputError, match="there are scenes of that kind already"):
        scalor.register_scenes("mnist")
    with pytest.raises(scalor.InputError, match=r"scene\.kind is 'dots'.*shapes"):
        scalor.SceneConfig(kind="dots")
    try:
        scalor.register_scenes("dots")(object)
        assert "dots" in SceneKinds()
        assert scalor.SceneConfig(kind="dots").kind == "dots"
    finally:
        del SCENES["dots"]
