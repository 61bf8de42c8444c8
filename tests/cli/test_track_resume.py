"""A `track` that was stopped or killed goes on where it was, and ends with the same bytes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scalor.files import Stopped
from scalor.outputs import ResultFolder
from scalor.replacement import PARTIAL
from scalor.video import segments

from .conftest import Say

FRAMES = 36


@pytest.fixture
def walkers(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three squares that walk over a textured floor; a snapshot every 6 frames."""
    monkeypatch.setattr(segments, "SEGMENT", 6)
    noise = np.random.default_rng(0).integers(0, 12, (FRAMES, 48, 64, 3), dtype=np.uint8)
    film = np.random.default_rng(1).integers(60, 90, (48, 64, 3), dtype=np.uint8) + noise
    for t, frame in enumerate(film):
        for row, speed in ((6, 1), (20, 2), (34, -1)):
            x = (20 * (row % 7) + speed * t) % 64
            frame[row : row + 12, x : x + 10] = 220 - row
    np.save("walkers.npy", film)
    return Path("walkers.npy")


def when(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Call `act` before each frame is added to the results, with the number of frames before it."""
    add = ResultFolder.add

    def watched(self: ResultFolder, *shot: object, **more: object) -> None:
        act(self.frames)
        add(self, *shot, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ResultFolder, "add", watched)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["of a still camera", "of the paper"])
def test_a_killed_run_ends_with_the_same_bytes(
    kind: str, say: Say, weights: Path, walkers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["track", walkers, "--masks", *(["--weights", weights] if kind == "of the paper" else [])]
    with monkeypatch.context() as patch:

        def act(frames: int) -> None:
            if frames == 15:  # what a run leaves that is killed here
                shutil.copytree("tracked", "killed")

        when(patch, act)
        assert say(*words).code == 0
    whole = contents(Path("tracked"))
    begun: list[int] = []
    when(monkeypatch, begun.append)
    assert say(*words, "--out", "killed").code == 0
    assert begun[0] == 12
    after = contents(Path("killed"))
    assert after.keys() == whole.keys()
    assert [name for name in whole if after[name] != whole[name]] == []


def test_a_stopped_run_says_that_it_can_be_gone_on_with(
    say: Say, weights: Path, walkers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(frames: int) -> None:
        if frames == 14:
            raise Stopped(2)

    words = ["track", walkers, "--weights", weights]
    with monkeypatch.context() as patch:
        when(patch, stop)
        stopped = say(*words)
    assert stopped.code == 130
    assert stopped.err.endswith("tracked holds no half-written file. Repeat the command to resume.\n")
    begun: list[int] = []
    when(monkeypatch, begun.append)
    assert say(*words, "--stride", 2).complaint == (
        "tracked holds a stopped run that had another stride: repeat that command to resume it, choose another folder "
        "with --out, or start from the first frame with --restart."
    )
    np.save("walkers.npy", np.load("walkers.npy")[::-1])
    assert "another video: repeat" in say(*words).complaint
    assert Path("tracked", PARTIAL).exists()
    assert begun == []
    assert say(*words, "--restart").code == 0
    assert begun[0] == 0
    assert not Path("tracked", PARTIAL).exists()


def test_a_run_with_bad_input_leaves_nothing_to_go_on_with(
    say: Say, weights: Path, walkers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scalor.errors import InputError

    def refuse(frames: int) -> None:
        if frames == 14:
            raise InputError("the video is damaged: repair it.")

    when(monkeypatch, refuse)
    assert say("track", walkers, "--weights", weights).complaint == "the video is damaged: repair it."
    assert list(Path("tracked").iterdir()) == []
