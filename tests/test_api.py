"""What `import scalor` offers: public names, models by name, and weights that come back as they were saved."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import scalor
from scalor.config import Config
from tests.model.worlds import assert_same_tracks, squares, tiny_model

pytestmark = pytest.mark.filterwarnings("ignore:slots run out")


@pytest.mark.parametrize("name", scalor.__all__)
def test_a_public_name_can_be_imported(name: str) -> None:
    assert getattr(scalor, name) is not None


def test_nothing_public_is_forgotten() -> None:
    types = {"SCALOR", "Config", "Fitted", "InputError", "LoadedModel", "Model", "ModelConfig", "Prediction"}
    types |= {"SceneConfig", "System", "Tracks", "TrainConfig"}
    functions = {"build", "fit", "get_preset", "load", "predict", "read_tracks", "save", "score", "track"}
    functions |= {"register_preset", "register_scenes", "register_system", "track_to_folder"}
    assert set(scalor.__all__) == {*types, *functions}
    assert set(scalor.__all__) <= set(dir(scalor))
    assert issubclass(scalor.InputError, Exception)
    assert scalor.__version__


def test_a_name_that_is_not_public_is_unknown() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trakc'"):
        scalor.trakc  # noqa: B018


def test_importing_the_package_loads_no_heavy_library() -> None:
    """Names are imported when they are first used."""
    code = "import sys, scalor; print(sorted({'torch', 'numpy', 'scipy', 'av'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_model_is_built_by_the_name_of_its_preset() -> None:
    model = scalor.build("shapes-tiny")
    assert isinstance(model, scalor.SCALOR)
    assert model.config == scalor.get_preset("shapes-tiny").model
    assert isinstance(model.track(np.zeros((2, 3, 32, 32), np.float32)), scalor.Tracks)
    with pytest.raises(scalor.InputError, match="did you mean shapes-tiny"):
        scalor.build("shapes-tine")


def test_a_saved_model_comes_back_as_it_was(tmp_path: Path) -> None:
    model, video = tiny_model(background=True), squares(3)
    scalor.save(model, tmp_path / "model.safetensors")
    for name in (tmp_path / "model.safetensors", str(tmp_path / "model.safetensors"), tmp_path):
        loaded = scalor.load(name)
        assert loaded.config == model.config
        assert not loaded.training
        assert loaded.state_dict().keys() == model.state_dict().keys()
        for key, value in model.state_dict().items():
            assert torch.equal(loaded.state_dict()[key], value), key
        assert_same_tracks(loaded.track(video), model.track(video), tolerance=1e-6)


def test_slots_may_be_changed_on_loading(tmp_path: Path) -> None:
    model, video = tiny_model(slots=2), squares(3)
    scalor.save(model, tmp_path / "model.safetensors")
    loaded = scalor.load(tmp_path, slots=60)
    assert loaded.config.slots == 60
    assert_same_tracks(loaded.track(video), tiny_model(slots=60).track(video), tolerance=1e-6)
    with pytest.raises(scalor.InputError, match=r"model\.slots is 0"):
        scalor.load(tmp_path, slots=0)


def test_a_model_is_saved_with_the_config_of_its_run(tmp_path: Path) -> None:
    config = scalor.get_preset("shapes-tiny")
    scalor.save(scalor.SCALOR(config.model), tmp_path / "model.safetensors", config)
    assert scalor.load(tmp_path).config == config.model


@pytest.mark.parametrize(
    ("frame", "grid"), [((48, 80), (6, 10)), ((24, 20), (4, 4)), ((28, 21), (4, 3)), ((36, 48), (3, 4))]
)
def test_a_model_of_any_cell_size_can_be_saved_without_a_run(
    tmp_path: Path, frame: tuple[int, int], grid: tuple[int, int]
) -> None:
    model = tiny_model(lively=False, frame=frame, grid=grid)
    scalor.save(model, tmp_path / "model.safetensors")
    assert scalor.load(tmp_path).config == model.config


def test_nothing_is_loaded_from_nowhere(tmp_path: Path) -> None:
    for name in ("no-such-weights", tmp_path / "model.safetensors", tmp_path):
        with pytest.raises(scalor.InputError, match=r"no-such-weights|model\.safetensors"):
            scalor.load(name)


def test_a_default_config_is_a_whole_run() -> None:
    assert scalor.SCALOR(Config().model).config == scalor.ModelConfig()


def walking(kind: str) -> np.ndarray | torch.Tensor:
    """Two squares that walk over a noisy scene, as one of the kinds of arrays that users have."""
    random = np.random.default_rng(0)
    pictures = np.repeat(random.integers(60, 140, (1, 48, 64, 3), np.uint8), 16, 0)
    for t in range(16):
        for top, left in ((6, 3 * t), (28, 50 - 3 * t)):
            pictures[t, top : top + 10, max(left, 0) : max(left + 7, 0)] = (250, 20, 30)
    kinds: dict[str, np.ndarray | torch.Tensor] = {
        "uint8 THWC": pictures,
        "uint8 TCHW": pictures.transpose(0, 3, 1, 2),
        "float TCHW": pictures.transpose(0, 3, 1, 2).astype(np.float32) / 255,
        "float THWC": pictures / 255,
        "uint8 tensor": torch.from_numpy(pictures),
        "float tensor": torch.from_numpy(pictures).permute(0, 3, 1, 2) / 255,
    }
    return kinds[kind]


KINDS = ("uint8 TCHW", "float TCHW", "float THWC", "uint8 tensor", "float tensor")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array_gives_the_same_tracks(kind: str) -> None:
    expected = scalor.track(walking("uint8 THWC"), quiet=True)
    assert len(expected) > 0
    assert_same_tracks(scalor.track(walking(kind), quiet=True), expected, tolerance=1e-6)


@pytest.mark.parametrize("kind", ["uint8 THWC", "float tensor"])
def test_universal_weights_track_plain_frames(kind: str) -> None:
    """The background, the scale and the slots come from the video itself, as in `scalor.track`."""
    model = scalor.load("any")
    expected = scalor.track(walking(kind), quiet=True)
    assert_same_tracks(model.track(walking(kind)), expected, tolerance=1e-6)
    assert model.config.slots == scalor.load("any").config.slots, "the loaded model has changed"
    again = pickle.loads(pickle.dumps(model))
    assert_same_tracks(again.track(walking(kind)), expected, tolerance=1e-6)


def test_a_loaded_model_takes_a_path_its_parameters_and_masks(tmp_path: Path) -> None:
    np.save(tmp_path / "film.npy", walking("uint8 THWC"))
    tracks = scalor.load("any").track(tmp_path / "film.npy", masks=True, start=0.5, quiet=True)
    assert tracks.frame.min() >= 5
    assert tracks.masks is not None
    assert tracks.masks.shape == (len(tracks), 48, 64)
    assert np.allclose(tracks.seconds, tracks.frame / 10)


def test_weights_of_drawn_scenes_take_pictures_of_bytes_too() -> None:
    model, video = tiny_model(), squares(3)
    bytes_ = (video[0].permute(0, 2, 3, 1).numpy() * 255).round().astype(np.uint8)
    model.run = scalor.Config(model.config, scalor.SceneConfig(), scalor.SceneConfig())
    assert_same_tracks(scalor.track(bytes_, model, quiet=True), model.track(video[0]), tolerance=0.05)


@pytest.mark.parametrize(
    "frames", [np.zeros((4, 8, 8)), np.zeros((4, 8, 8, 3), int), np.zeros((4, 3, 8, 8)) + 2, [["a"]], [[1], [1, 2]], 7]
)
def test_what_is_no_video_is_refused_everywhere(frames: Any, tmp_path: Path) -> None:
    for call in (
        lambda: scalor.track(frames, quiet=True),
        lambda: scalor.load("any").track(frames),
        lambda: scalor.predict(frames),
        lambda: scalor.fit(frames, tmp_path / "run", quiet=True),
    ):
        with pytest.raises(scalor.InputError):
            call()


def test_the_future_is_predicted_most_likely_or_at_random() -> None:
    model = scalor.load("any")
    video = walking("uint8 THWC")
    future = model.predict(video, seconds=0.3)
    assert isinstance(future, scalor.Prediction)
    assert (future.observed, len(future.future), future.frames.shape) == (5, 3, (8, 48, 64, 3))
    assert future.index.tolist() == [*range(11, 19)]
    assert np.allclose(future.seconds, future.index / 10)
    assert np.array_equal(future.frames[:5], np.asarray(video)[11:])
    assert set(future.tracks.frame.tolist()) <= set(future.index.tolist())
    assert np.array_equal(scalor.predict(video, seconds=0.3, seed=1).frames, future.frames)
    drawn = [scalor.predict(video, seconds=0.3, sample=True, seed=seed).frames for seed in (0, 0, 1)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_a_fit_can_be_given_wherever_weights_are(tmp_path: Path) -> None:
    small = {"train.batch": 2, "train.lengths": [[0, 2]], "scene.length": 2}
    run = scalor.fit(walking("uint8 THWC"), tmp_path / "run", steps=2, settings=small, device="cpu", quiet=True)
    assert isinstance(run, scalor.Fitted)
    assert (run.step, run.stopped, run.config.train.batch) == (2, None, 2)
    assert run.compared is not None
    assert (tmp_path / "run" / "video.npy").exists()
    tracks = scalor.track(tmp_path / "run" / "video.npy", weights=run, quiet=True)
    assert_same_tracks(scalor.load(run).track(walking("uint8 THWC")), tracks, tolerance=1e-6)
    with pytest.raises(scalor.InputError, match="holds a run:"):
        scalor.fit(walking("uint8 THWC"), tmp_path / "run", quiet=True)
    with pytest.raises(scalor.InputError, match=r"setting is 'train\.batc'.*did you mean 'train\.batch'"):
        scalor.fit(walking("uint8 THWC"), tmp_path / "other", settings={"train.batc": 2}, quiet=True)
    with pytest.raises(scalor.InputError, match="give the folder of the run"):
        scalor.fit(walking("uint8 THWC"))
    with pytest.raises(scalor.InputError, match="fps is given with --resume"):
        scalor.fit(walking("uint8 THWC"), tmp_path / "run", resume=True, fps=25, device="cpu", quiet=True)
    again = scalor.fit(walking("uint8 THWC"), tmp_path / "run", resume=True, device="cpu", quiet=True)
    assert again.step == 2


def test_tracks_in_memory_are_scored_as_those_in_files(tmp_path: Path) -> None:
    tracks = scalor.track(walking("uint8 THWC"), quiet=True)
    tracks.to_mot(tmp_path / "gt.txt")
    there, here = scalor.score(tracks, tmp_path / "gt.txt"), scalor.score(tracks, tracks)
    assert there.to_dict() == here.to_dict()
    assert here.gates["iou .5"].clear.mota == 1


def test_a_result_folder_says_how_far_tracks_can_be_trusted(tmp_path: Path) -> None:
    found = scalor.track_to_folder(walking("uint8 THWC"), tmp_path / "tracked", quiet=True)
    assert found.health is not None
    assert found.health.verdict in ("good", "doubtful", "not to be trusted")
    read = scalor.read_tracks(tmp_path / "tracked" / "tracks.parquet")
    tracks = scalor.track(walking("uint8 THWC"), quiet=True)
    assert (found.summary.rows, read.size) == (len(tracks), tracks.size)
    assert_same_tracks(read, tracks, tolerance=1e-4)


def test_another_system_is_loaded_with_the_same_methods(tmp_path: Path) -> None:
    scalor.save(scalor.build("vae-shapes-tiny"), tmp_path / "vae.safetensors", scalor.get_preset("vae-shapes-tiny"))
    model: Any = scalor.load(tmp_path / "vae.safetensors")
    assert not isinstance(model, scalor.SCALOR)
    with pytest.raises(scalor.InputError, match="sees frames and no objects"):
        model.track(walking("uint8 THWC"))


WRONG: list[tuple[Callable[..., object], str, Any]] = [
    *((call, "weights", None) for call in (scalor.track, scalor.predict)),
    *((call, "slots", 0) for call in (scalor.track, scalor.predict)),
    *((call, "stride", 0) for call in (scalor.track, scalor.predict, scalor.fit)),
    *((call, "object_size", size) for call in (scalor.track, scalor.fit) for size in ((9.0, -1.0), (9.0,), 9)),
    *((call, "region", (0, 0, 500, 500)) for call in (scalor.track, scalor.predict)),
    *((call, "fps", 0) for call in (scalor.track, scalor.predict)),
    *((scalor.predict, name, 0) for name in ("seconds", "observe")),
    *((scalor.fit, name, wrong) for name in ("minutes", "steps") for wrong in (0, -1)),
]


@pytest.mark.parametrize(("call", "name", "wrong"), WRONG, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_wrong_parameter_is_refused_by_its_name(
    call: Callable[..., object], name: str, wrong: object, tmp_path: Path
) -> None:
    more = {"out": tmp_path / "run"} if call is scalor.fit else {}
    with pytest.raises(scalor.InputError, match=f"^{name} is "):
        call(walking("uint8 THWC"), **more, **{name: wrong})
    assert not (tmp_path / "run").exists()


def test_only_tracks_and_files_of_tracks_are_scored() -> None:
    with pytest.raises(scalor.InputError, match="path is None: give"):
        scalor.score(None, None)  # type: ignore[arg-type]


def test_a_quiet_fit_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    small = {"train.batch": 2, "train.lengths": [[0, 2]], "scene.length": 2}
    scalor.fit(walking("uint8 THWC"), tmp_path / "run", steps=1, settings=small, device="cpu", quiet=True)
    assert capfd.readouterr() == ("", "")
