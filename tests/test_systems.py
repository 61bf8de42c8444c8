"""Other systems are trained, saved, evaluated and named on the command line as SCALOR is."""

import json
import sys
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

import scalor
from scalor import InputError, checkpoint, systems
from scalor.cli.main import main
from scalor.config import ModelConfig, SceneConfig
from scalor.data.clip import Truth
from scalor.data.observation import Observation, check_frames
from scalor.evaluation.report import evaluate
from scalor.kernels import forced
from scalor.nn.distributions import Estimator, Noise
from scalor.nn.interface import Annealed, Bound, Model, Tracker
from scalor.presets import get_preset
from scalor.settings import setting
from scalor.systems import SYSTEMS, System, config_from_dict
from scalor.training import guards, pictures
from scalor.training.loop import Job, make_scenes, train_together
from scalor.training.step import TrainingStep, anneals
from tests.test_config import attributes_read
from tests.training.tiny import CPU, MODELS, differing, log_of, run, tensors, tiny

OTHERS = [name for name in SYSTEMS if name != "scalor"]
WITHOUT_OBJECTS = [name for name in OTHERS if not issubclass(SYSTEMS[name].model, Tracker)]
NOW = Annealed(torch.tensor(0.8), torch.tensor(0.1), cut_gradients=False)


@pytest.fixture(autouse=True)
def no_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import alone takes seconds."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)


# The registry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_is_found_and_built_by_its_name(name: str) -> None:
    system = systems.find(name)
    assert system.config.system == name
    model = systems.build(MODELS[name])
    assert type(model) is system.model
    assert model.config == MODELS[name]
    assert isinstance(model, Model)


@pytest.mark.parametrize("name", ["telepathy", "", None, 3, ["vrnn"]])
def test_a_system_that_there_is_not_is_refused(name: object) -> None:
    with pytest.raises(InputError) as caught:
        systems.find(name)
    assert str(caught.value) == f"system is {name!r}: there is no such system; choose from {', '.join(SYSTEMS)}."


@pytest.mark.parametrize("preset", ["vrnn-shapes-tiny", "vae-shapes-tiny"])
def test_a_preset_of_another_system_builds_its_model(preset: str) -> None:
    model = scalor.build(preset)
    assert model.config == get_preset(preset).model
    assert not isinstance(model, Tracker)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_setting_of_a_system_has_a_default_and_help_and_is_read(name: str) -> None:
    record = SYSTEMS[name].config
    for field in fields(record):
        assert field.default is not MISSING, field.name
        assert len(field.metadata["help"]) > 5, field.name
        assert "\n" not in field.metadata["help"], field.name
    assert {field.name for field in fields(record)} <= attributes_read()
    assert record().system == name


# Configs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_config_survives_a_round_trip_with_its_system(name: str) -> None:
    config = tiny(system=name)
    values = json.loads(json.dumps(config.to_dict()))
    assert values["system"] == config.system == name
    assert config_from_dict(values) == config


def test_a_table_without_a_system_is_of_scalor_as_all_old_ones_are() -> None:
    values = tiny().to_dict()
    del values["system"]
    assert config_from_dict(values) == tiny()
    assert checkpoint.read(checkpoint.find("shapes-md")).config.system == "scalor"


@pytest.mark.parametrize("name", OTHERS)
def test_a_table_without_a_model_takes_that_of_its_system(name: str) -> None:
    assert config_from_dict({"system": name}).model == SYSTEMS[name].config()


@pytest.mark.parametrize("name", OTHERS)
def test_a_table_of_another_system_knows_its_own_fields_alone(name: str) -> None:
    values = tiny(system=name).to_dict()
    values["model"]["wings"] = 3
    with pytest.raises(InputError, match=r"^model is \['wings'\]: these fields are unknown to this version\.$"):
        config_from_dict(values)


def test_scenes_must_fit_the_model_whichever_it_is() -> None:
    for name, words in (("vrnn", "one size, here 32x32"), ("vae", "multiples of 4")):
        with pytest.raises(InputError, match=rf"^test\.frame is \(30, 32\): .*{words}"):
            replace(tiny(system=name), test=SceneConfig(frame=(30, 32)))


# A learner that is not ours ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ToyConfig:
    """One picture for all frames."""

    system: ClassVar[str] = "toy"
    frame: tuple[int, int] = setting((32, 32), "height and width of every frame, pixels")

    def misfit(self, frame: tuple[int, int]) -> str | None:
        return None if frame == self.frame else "another size"


class ToyFilm(NamedTuple):
    frames: Tensor


class Toy(Model):
    """Learns the mean of all pixels."""

    reported = ("brightness",)

    def __init__(self, config: ToyConfig) -> None:
        super().__init__()
        self.config = config
        self.grey = nn.Parameter(torch.zeros(()))

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        return 2, 1

    def bound(self, video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
        image = video.image
        assert noise.normals.shape == (*image.shape[:2][::-1], 2)
        assert noise.uniforms.shape == (*image.shape[:2][::-1], 1)
        elbo = -(image - self.grey).square().sum((1, 2, 3, 4))
        return Bound(elbo, {"brightness": self.grey.expand(len(video))})

    def reconstruct(self, frames: object) -> ToyFilm:
        return ToyFilm(torch.zeros_like(check_frames(frames, (1, 1))) + self.grey.detach())

    def generate(
        self, frames: object, observe: int = 5, horizon: int = 5, *, estimator: Estimator | None = None
    ) -> ToyFilm:
        return self.reconstruct(check_frames(frames, (1, 1))[:, :1].expand(-1, observe + horizon, -1, -1, -1))

    def log_likelihood(self, frames: object, samples: int = 10) -> Tensor:
        return torch.zeros(len(check_frames(frames, (1, 1))))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ToyConfig:
    """A system among the others, for one test."""
    monkeypatch.setitem(SYSTEMS, "toy", System(ToyConfig, Toy))
    monkeypatch.setitem(MODELS, "toy", ToyConfig())
    return ToyConfig()


def test_a_step_trains_any_learner_and_reports_what_it_names(toy: ToyConfig) -> None:
    config = tiny(system="toy", learning_rate=0.02)
    step = TrainingStep(config, Toy(toy), make_scenes(config, "train", CPU), CPU)
    assert step.names == ("elbo", "brightness", "gradient_norm", "skipped")
    told = [dict(zip(step.names, step(n, anneals(config.train, n)).tolist(), strict=True)) for n in range(60)]
    mean = float(make_scenes(config, "train", CPU).clips(0, 32).frames.mean())
    assert told[0]["brightness"] == 0
    assert told[-1]["brightness"] == pytest.approx(mean, rel=0.3)
    assert all(line["gradient_norm"] > 0 and line["skipped"] == 0 for line in told)


def test_a_toy_is_trained_saved_loaded_resumed_and_evaluated(toy: ToyConfig, tmp_path: Path) -> None:
    result = run(tiny(4, system="toy", evaluate_every=2, evaluate_clips=1), tmp_path)
    assert isinstance(result.model, Toy)
    assert set(log_of(tmp_path)[0]) == {
        *("step", "elbo", "brightness", "gradient_norm", "skipped", "length", "temperature")
    }
    assert set(json.loads((tmp_path / "evaluations.jsonl").read_text().splitlines()[0])) == {"step", "seconds", "mse"}
    run(tiny(6, system="toy"), tmp_path / "whole")
    run(tiny(6, system="toy"), tmp_path, resume=True)
    assert differing(tensors(tmp_path), tensors(tmp_path / "whole")) == []
    model = scalor.load(tmp_path)
    measured = evaluate(model, tiny(system="toy"), clips=2, nll_samples=1, quiet=True)
    assert (measured.tracking, measured.nll, measured.clips) == (None, 0, 2)


# Training ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OTHERS)
def test_a_training_step_looks_at_no_value(name: str) -> None:
    """Tensors without values refuse to be read; a GPU could not capture a step that reads one.

    The CPU's own way to paste measures boxes; a GPU has another.
    """
    with forced("matmul"), FakeTensorMode():
        model = systems.build(MODELS[name])
        normals, uniforms = model.noise_per_frame((32, 32))
        noise = Noise(torch.empty(3, 2, normals), torch.empty(3, 2, uniforms))
        now = Annealed(torch.empty(()), torch.empty(()), cut_gradients=False)
        bound = model.bound(Observation(torch.empty(2, 3, 3, 32, 32)), noise, now)
        bound.elbo.mean().backward()
        assert bound.elbo.shape == (2,)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_bound_is_a_function_of_video_noise_and_annealed_values(name: str) -> None:
    torch.manual_seed(0)
    model, config = systems.build(MODELS[name]), tiny(system=name)
    frames = make_scenes(config, "train", CPU).clips(0, 2, 3).frames
    normals, uniforms = model.noise_per_frame((32, 32))

    def bound(seed: int) -> Tensor:
        torch.manual_seed(seed)
        noise = Noise(torch.randn(3, 2, normals), torch.rand(3, 2, uniforms))
        torch.manual_seed(99)
        found = model.bound(Observation(frames), noise, NOW)
        assert set(found.numbers) == set(model.reported)
        assert all(value.shape == (2,) for value in found.numbers.values())
        return found.elbo

    assert torch.equal(bound(1), bound(1))
    assert not torch.equal(bound(1), bound(2))


@pytest.mark.parametrize("name", OTHERS)
def test_going_on_is_as_if_it_had_never_stopped(name: str, tmp_path: Path) -> None:
    run(tiny(6, system=name), tmp_path / "whole")
    run(tiny(3, system=name), tmp_path / "parts")
    run(tiny(6, system=name), tmp_path / "parts", resume=True)
    for file in (checkpoint.MODEL_FILE, checkpoint.RESUME_FILE):
        assert differing(tensors(tmp_path / "whole", file), tensors(tmp_path / "parts", file)) == []
    assert log_of(tmp_path / "whole") == log_of(tmp_path / "parts")
    assert (tmp_path / "whole" / "config.json").read_text() == (tmp_path / "parts" / "config.json").read_text()


def test_systems_side_by_side_are_the_systems_alone(tmp_path: Path) -> None:
    jobs = [Job(tiny(4, system=name), tmp_path / name) for name in SYSTEMS]
    train_together(jobs, CPU, quiet=True)
    for name in SYSTEMS:
        run(tiny(4, system=name), tmp_path / "alone" / name)
        assert differing(tensors(tmp_path / name), tensors(tmp_path / "alone" / name)) == []


def test_a_run_of_one_system_is_not_gone_on_with_by_another(tmp_path: Path) -> None:
    run(tiny(2, system="vrnn"), tmp_path)
    with pytest.raises(InputError, match="another model, other scenes"):
        run(tiny(4, system="vae"), tmp_path, resume=True)


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_comes_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = systems.build(MODELS[name])
    scalor.save(model, tmp_path / "model.safetensors")
    back = scalor.load(tmp_path)
    assert isinstance(back, type(model))
    assert back.config == model.config
    assert not back.training
    assert differing(dict(model.state_dict()), dict(back.state_dict())) == []


@pytest.mark.parametrize("name", WITHOUT_OBJECTS)
def test_slots_are_refused_where_there_are_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    scalor.save(systems.build(MODELS[name]), path)
    with pytest.raises(InputError) as caught:
        scalor.load(path, slots=9)
    assert str(caught.value) == f"slots is 9: weights {path} are of a {name}, which has none."


@pytest.mark.parametrize("name", WITHOUT_OBJECTS)
def test_weights_without_objects_are_refused_where_objects_are_wanted(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    scalor.save(systems.build(MODELS[name]), path)
    with pytest.raises(InputError) as caught:
        checkpoint.load_tracker(path)
    assert str(caught.value) == (
        f"weights {path} are of a {name}, which sees frames and no objects: give weights of a system that tracks, "
        "such as shapes-md."
    )
    assert isinstance(checkpoint.load_tracker("shapes-md"), scalor.SCALOR)


@pytest.mark.parametrize("name", OTHERS)
def test_guards_and_pictures_are_of_objects_and_left_out_elsewhere(name: str, tmp_path: Path) -> None:
    config = tiny(system=name)
    assert guards.warnings(config, guards.FIRST_WARNING_STEP, {"elbo": 0.0}) == []

    class Unwanted:
        def add_image(self, *_: object, **__: object) -> None:
            raise AssertionError("a picture was drawn")

    album = pictures.Pictures(tmp_path, config, 0)
    album.writer = Unwanted()
    album.maybe(album.every, systems.build(config.model), make_scenes(config, "train", CPU))


# Evaluation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITHOUT_OBJECTS)
def test_a_system_without_objects_is_measured_by_its_frames(name: str) -> None:
    torch.manual_seed(0)
    config = tiny(system=name)
    model = systems.build(config.model)
    measured = evaluate(model, config, clips=3, batch=2, nll_samples=2, observe=4, quiet=True)
    values = json.loads(json.dumps(measured.to_dict()))
    assert measured.tracking is None
    assert set(values) == {"clips", "mse", "nll", "nll_samples", "forecast"}
    assert values["clips"] == 3
    assert 0 < values["mse"] < 1
    assert values["nll"] is not None
    assert len(values["forecast"]["mse"]) == len(values["forecast"]["mse_copy_last"]) == 2
    assert values["forecast"]["centre"] is values["forecast"]["lost"] is None


def test_a_system_with_objects_is_a_tracker() -> None:
    assert isinstance(systems.build(MODELS["scalor"]), Tracker)
    assert isinstance(MODELS["scalor"], ModelConfig)


# The command line -------------------------------------------------------------------------------------

TINY = {
    "vrnn-shapes-tiny": ["--model.channels", "[4, 4]", "--model.feature_dim", "8", "--model.latent_dim", "4"],
    "vae-shapes-tiny": ["--model.channels", "[4, 4]", "--model.growth", "[4]", "--model.latent_dim", "4"],
}
SHORT = ["--train.steps", "2", "--train.batch", "1", "--train.cooldown", "0", "--clips", "1", "--device", "cpu"]


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("preset", TINY)
def test_another_system_is_trained_evaluated_and_shown_by_its_preset(
    preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(capsys, "train", preset, "--out", tmp_path, *SHORT, *TINY[preset])
    assert "MSE 0." in shown
    assert "frames ahead" in shown
    assert "MOTA" not in shown
    metrics = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert 0 < metrics["mse"] < 1
    document = json.loads(said(capsys, "evaluate", tmp_path, "--clips", 1, "--nll-samples", 2, "--json"))
    assert document["metrics"]["mse"] == pytest.approx(metrics["mse"])
    assert document["metrics"]["nll_samples"] == 2
    assert "NLL" in said(capsys, "evaluate", tmp_path, "--clips", 1, "--nll-samples", 1)
    name = preset.split("-")[0]
    shown = said(capsys, "info", tmp_path)
    assert f"system       {name}\n" in shown
    assert "frames       32x32\n" in shown
    assert json.loads(said(capsys, "info", tmp_path, "--json"))["config"]["system"] == name
    assert f'"{name}"' in said(capsys, "presets", preset)
    assert json.loads(said(capsys, "presets", preset, "--json"))["system"] == name


def test_systems_with_and_without_objects_share_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SHORT, "--train.lengths", "[[0, 1]]", "--seeds", 0, 1]
    shown = said(capsys, "train", "shapes-tiny", "vrnn-shapes-tiny", "--out", tmp_path, *words).splitlines()
    assert len(shown) == 7
    assert shown[3].split()[0].endswith("vrnn-shapes-tiny-seed0")
    assert shown[3].split()[3:8] == ["-"] * 5
    assert shown[5].startswith("shapes-tiny, 2 seeds: strict MOTA")
    assert shown[6].startswith("vrnn-shapes-tiny, 2 seeds: MSE 0.")


def test_a_setting_of_another_system_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "vrnn-shapes-tiny", "--model.slots", "3"]) == 2
    assert "override is --model.slots: there is no such setting" in capsys.readouterr().err


def test_other_test_scenes_must_fit_the_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.safetensors"
    scalor.save(systems.build(MODELS["vrnn"]), path, tiny(system="vrnn"))
    assert main(["evaluate", str(path), "--preset", "shapes-md"]) == 2
    expected = "scalor: test.frame is (64, 64): a VRNN sees frames of one size, here 32x32 (model.frame).\n"
    assert capsys.readouterr().err == expected
