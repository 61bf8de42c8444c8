"""What `import scalor` offers: public names, models by name, and weights that come back as they were saved."""

import subprocess
import sys
from pathlib import Path

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
    public = {"SCALOR", "Config", "InputError", "Model", "ModelConfig", "SceneConfig", "Tracks", "TrainConfig"}
    assert set(scalor.__all__) == {*public, "build", "get_preset", "load", "read_tracks", "save", "track"}
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
