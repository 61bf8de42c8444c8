"""Fits of many videos: weights of its own for each, kept until something changes, or one model from all."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.files import Stopped
from scalor.many import fitting_task
from scalor.many.fitting_task import FIT
from scalor.many.videos import VideoJob, find_jobs
from scalor.many.worker import do_job
from scalor.training.step import TrainingStep

from ..cli.test_fit import SMALL
from .conftest import Say


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: None) -> Path:
    """A folder of two films of boxes that walk, one of them damaged."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    pictures = np.repeat(random.integers(60, 140, (1, 48, 64, 3)), 20, 0)
    for t in range(20):
        for top, left in ((6, 2 * t), (28, 50 - 2 * t)):
            pictures[t, top : top + 14, max(left, 0) : left + 7] = (250, 20, 30)
    Path("films").mkdir()
    np.save("films/good.npy", pictures.astype(np.uint8))
    Path("films/broken.npy").write_bytes(Path("films/good.npy").read_bytes()[:1000])
    return Path("films")


def test_each_video_gets_weights_of_its_own_once(films: Path, say: Say) -> None:
    words = ["fit", "films", "--each", "--out", "mine", "--json", *SMALL]
    said = say(*words)
    assert said.code == 1, said.err
    found = {one["name"]: one for one in json.loads(said.out)["videos"]}
    assert (found["good"]["state"], found["good"]["verdict"]) == ("done", "fitted")
    assert found["broken"]["state"] == "failed"
    assert "broken.npy" in found["broken"]["reason"]
    assert json.loads(Path("mine/fits.json").read_text())["done"] == 1
    weights = Path("mine/good/model.safetensors").read_bytes()
    assert {one["name"]: one["state"] for one in json.loads(say(*words).out)["videos"]} == {
        "good": "kept",
        "broken": "failed",
    }
    assert Path("mine/good/model.safetensors").read_bytes() == weights
    shorter = [*words[: words.index("--steps")], "--steps", "4", *words[words.index("--steps") + 2 :]]
    assert json.loads(say(*shorter).out)["done"] == 1
    assert say("info", "mine/good").code == 0
    assert "--resume is given with --each" in say("fit", "films", "--each", "--resume").complaint


def test_a_fit_that_was_stopped_goes_on(films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scalor.cli.overrides import settings

    words = SMALL[SMALL.index("--train.batch") : SMALL.index("--device")]
    options = {"scratch": True, "steps": 6, "device": "cpu", "settings": settings(words)}
    job, steps = VideoJob("good", "films/good.npy", options), []
    step = TrainingStep.__call__

    def watched(self: TrainingStep, number: int, *more: object) -> object:
        steps.append(number)
        if len(steps) == 4:
            raise Stopped(15)
        return step(self, number, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(TrainingStep, "__call__", watched)
    with pytest.raises(Stopped):
        do_job(FIT, job, Path("mine"))
    assert do_job(FIT, job, Path("mine")).state == "done"
    assert steps == [0, 1, 2, 3, 2, 3, 4, 5]
    assert do_job(FIT, job, Path("mine")).state == "kept"


def test_a_run_of_another_command_is_not_replaced(films: Path) -> None:
    Path("mine/good").mkdir(parents=True)
    Path("mine/good/chosen.json").write_text("{}")
    outcome = do_job(FIT, VideoJob("good", "films/good.npy", {}), Path("mine"))
    assert outcome.reason == "folder mine/good holds a run of another command: choose another folder with --out."


def test_one_model_learns_from_the_videos_of_a_folder(films: Path, say: Say) -> None:
    Path("films/broken.npy").unlink()
    np.save("films/other.npy", np.load("films/good.npy")[::-1])
    assert say("fit", "films", "--out", "one", *SMALL).code == 0
    assert json.loads(Path("one/chosen.json").read_text())["videos"] == ["films/good.npy", "films/other.npy"]
    Path("list.csv").write_text("video,minutes\nfilms/good.npy,1\n")
    assert "give --each" in say("fit", "list.csv", "--out", "two").complaint


def test_a_table_for_fits_has_their_options(films: Path) -> None:
    Path("list.csv").write_text("video,minutes,object_size\nfilms/good.npy,1.5,14x7\n")
    (job,) = find_jobs(["list.csv"], {}, fitting_task.COLUMNS)
    assert job.options == {"minutes": 1.5, "object_size": (14.0, 7.0)}


def test_weights_stay_until_those_of_the_next_fit_are_there(films: Path) -> None:
    from scalor.cli.overrides import settings

    words = SMALL[SMALL.index("--train.batch") : SMALL.index("--device")]
    options = {"scratch": True, "steps": 6, "device": "cpu", "settings": settings(words)}
    job = VideoJob("good", "films/good.npy", options)
    assert do_job(FIT, job, Path("mine")).state == "done"
    weights = Path("mine/good/model.safetensors").read_bytes()
    for other in (replace(job, options={**options, "scale": 1e-9}), replace(job, video="films/gone.npy")):
        outcome = do_job(FIT, other, Path("mine"))
        assert outcome.state == "failed"
        assert outcome.reason.endswith("(the results of an earlier run are kept)")
        assert Path("mine/good/model.safetensors").read_bytes() == weights
        assert do_job(FIT, job, Path("mine")).state == "kept"
    assert do_job(FIT, replace(job, options={**options, "steps": 4}), Path("mine")).state == "done"
    assert Path("mine/good/model.safetensors").read_bytes() != weights
    assert [path.name for path in Path("mine").iterdir() if path.name.startswith(".")] == []


def test_a_video_may_not_be_named_as_the_records(films: Path) -> None:
    with pytest.raises(InputError, match="is named fits, as the folder of the records"):
        fitting_task.fit_each([VideoJob("fits", "films/good.npy", {})], "mine")
