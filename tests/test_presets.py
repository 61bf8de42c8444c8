"""Every preset is a config that builds, trains and is found by name."""

from dataclasses import replace

import pytest
import torch

from scalor import systems
from scalor.config import Config, ModelConfig, SystemConfig
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Noise, Relaxed
from scalor.nn.interface import Annealed
from scalor.presets import PRESETS, describe, get_preset


def small(model: ModelConfig) -> ModelConfig:
    """Slots have no weights: hundreds of them only take time."""
    return replace(model, slots=min(model.slots, 100))


OURS = [name for name, make in PRESETS.items() if make().system == "scalor"]
THEIRS = [name for name in PRESETS if name not in OURS]
MODELS = {small(get_preset(name).model): name for name in OURS}
OTHER_MODELS = {get_preset(name).model: name for name in THEIRS}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_makes_its_config_and_describes_itself(name: str) -> None:
    config = get_preset(name)
    assert isinstance(config, Config)
    assert config == get_preset(name)
    assert name == PRESETS[name].__name__.replace("_", "-")
    assert describe(name).endswith(".")
    assert config.scene.kind in name.split("-") or name in ("grand-central", "grand-central-video", "any-video")


@pytest.mark.parametrize("name", OURS)
def test_a_preset_has_room_for_its_objects(name: str) -> None:
    config = get_preset(name)
    for scene in (config.scene, config.test):
        assert config.model.slots >= scene.objects[1] * (1 if len(scene.births) == 1 else len(scene.births))
        assert config.model.object_size == (scene.size, scene.size) or scene.kind in ("replay", "station", "video")
        assert not scene.background or config.model.background
    assert config.model.frame == config.scene.frame


@pytest.mark.parametrize("model", MODELS, ids=MODELS.values())
def test_every_distinct_model_takes_a_training_step(model: ModelConfig) -> None:
    torch.manual_seed(0)
    network, image = SCALOR(model), torch.rand(1, 2, 3, *model.frame)
    still = (torch.rand_like(image), torch.ones_like(image[:, :, 0, :, 0])) if model.still else ()
    video = Observation(image, *still)
    bound = network.elbo(video, Relaxed(1.0), presence_prior=0.1)
    (-bound.terms.elbo.mean()).backward()
    assert torch.isfinite(bound.terms.elbo).all()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("model", OTHER_MODELS, ids=OTHER_MODELS.values())
def test_every_distinct_model_of_another_system_takes_a_training_step(model: SystemConfig) -> None:
    torch.manual_seed(0)
    network = systems.build(model)
    normals, uniforms = network.noise_per_frame(model.frame)
    noise = Noise(torch.randn(2, 1, normals), torch.rand(2, 1, uniforms))
    now = Annealed(torch.tensor(1.0), torch.tensor(0.1), cut_gradients=False)
    bound = network.bound(Observation(torch.rand(1, 2, 3, *model.frame)), noise, now)
    (-bound.elbo.mean()).backward()
    assert set(bound.numbers) == set(network.reported)
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("name", THEIRS)
def test_a_preset_of_another_system_differs_from_ours_in_model_and_training_alone(name: str) -> None:
    system, ours = name.split("-", 1)
    config, other = get_preset(name), get_preset(ours)
    assert config.system == system
    assert (config.scene, config.test) == (other.scene, other.test)
    assert config.model.sigma == other.model.sigma
    assert describe(name).endswith(describe(ours))


def test_gradients_are_cut_in_presets_of_ours_and_of_sqair_alone() -> None:
    cuts = {name: (get_preset(name).train.clip_usual, get_preset(name).train.clip_object) for name in PRESETS}
    without = {name for name, cut in cuts.items() if cut == (0, 0)}
    theirs = {name for name in PRESETS if name.startswith("sqair-")}
    assert all(cuts[name] == ((3, 3) if name in theirs else (0, 3)) for name in PRESETS if name not in without)
    others = {name for name in THEIRS if not name.startswith("sqair-")}
    papers = {name for name in PRESETS if name.startswith("paper-")} | {"grand-central", "grand-central-video"}
    assert without == {"shapes-tiny", *others, *papers}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("shapes_md", "did you mean shapes-md"),
        ("shape-hd", "did you mean shapes-hd"),
        ("mnist-occlusions", "did you mean mnist-occlusion"),
        ("zzz", "`scalor presets` lists them all"),
        ("", "`scalor presets` lists them all"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(InputError) as error:
        get_preset(name)
    assert str(error.value) == f"preset is {name!r}: there is no such preset; {hint}."
