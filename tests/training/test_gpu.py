"""On a GPU: steps that are captured, compiled or rounded to bf16 against plain ones, and captured tracking.

Run by hand where there is one: `python -m pytest tests/training/test_gpu.py -p no:cacheprovider`.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from scalor import SCALOR, systems
from scalor.baselines.sqair import SQAIR
from scalor.config import Config
from scalor.data.footage import Frames
from scalor.data.observation import Observation
from scalor.model import compiled as watching
from scalor.model.compiled import CapturedStep
from scalor.nn.records import copied
from scalor.nn.records import tensors as tensors_of
from scalor.tracks import Tracks, join_tracks
from scalor.training.folder import training_state
from scalor.training.loop import Job, make_scenes, train, train_together
from scalor.training.step import Anneals, Batch, TrainingStep, anneals
from tests.layers import linear
from tests.model.worlds import assert_same_tracks, squares, tiny_model

from .tiny import MODELS, log_of, tensors, tiny

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:out of slots"),  # tiny worlds are crowded
]

GPU = torch.device("cuda")
ROUNDING = 1e-3
"""Relative. Sums in another order differ by some 1e-6; a few steps of Adam, which divides by the gradient's size,
make more of it. A wrong step is off by far more: see the test of other noise."""


def settings(**more: object) -> Config:
    """Six steps of one, two and three frames."""
    given = {"lengths": ((0, 1), (2, 2), (4, 3)), "precision": "float32", "compile": False, **more}
    return tiny(6, **given)  # type: ignore[arg-type]


class PlainStep(TrainingStep):
    """A step that is neither captured nor compiled, wherever it runs."""

    def __call__(self, number: int, now: Anneals) -> Tensor:
        self.learning_rate.fill_(now.learning_rate)
        self.temperature.fill_(now.temperature)
        self.presence_prior.fill_(now.presence_prior)
        self.count_clips(number)
        video = self.scenes.clips(self.index, length=now.length).observation
        self.run(Batch(video, None), self.draw_noise(number, now), now)
        return self.metrics


def make(kind: type[TrainingStep], config: Config) -> TrainingStep:
    torch.manual_seed(config.train.seed)
    return kind(config, systems.build(config.model).to(GPU), make_scenes(config, "train", GPU), GPU)


def test_many_runs_side_by_side_are_each_what_they_would_be_alone(tmp_path: Path) -> None:
    """More of them than there are streams, each of which takes three."""
    configs = [settings(seed=seed) for seed in range(14)]
    train_together(
        [Job(config, tmp_path / str(place)) for place, config in enumerate(configs)], GPU, quiet=True, together=14
    )
    for place in (0, 11, 13):
        train(configs[place], tmp_path / "alone" / str(place), GPU, quiet=True)
        assert log_of(tmp_path / str(place)) == log_of(tmp_path / "alone" / str(place))


def take(step: TrainingStep, number: int) -> dict[str, float]:
    return dict(zip(step.names, step(number, anneals(step.config.train, number)).tolist(), strict=True))


def gradients(step: TrainingStep) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in step.model.named_parameters() if p.grad is not None}


def weights(step: TrainingStep) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in step.model.named_parameters()}


def assert_close(one: dict[str, float], other: dict[str, float], tolerance: float = ROUNDING) -> None:
    for name, value in one.items():
        assert other[name] == pytest.approx(value, rel=tolerance, abs=3e-5), name


def apart(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """The distance between two sets of tensors, as a share of their length."""
    assert one.keys() == other.keys()
    difference = torch.stack([(one[name] - other[name]).norm() for name in one]).norm()
    return float(difference / torch.stack([value.norm() for value in one.values()]).norm())


def travelled(before: dict[str, Tensor], after: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: after[name] - before[name] for name in before}


@pytest.mark.parametrize("system", MODELS)
def test_captured_steps_are_plain_steps(system: str) -> None:
    """Across changes of length, a jump ahead (other scenes than those drawn beforehand) and a jump back."""
    plain, captured = make(PlainStep, settings(system=system)), make(TrainingStep, settings(system=system))
    start = weights(plain)
    assert apart(start, weights(captured)) == 0
    lengths = []
    for number in (0, 1, 2, 3, 4, 5, 9, 4):
        expected = take(plain, number)
        assert_close(expected, take(captured, number))
        assert apart(gradients(plain), gradients(captured)) < ROUNDING
        assert expected["skipped"] == 0
        lengths.append(anneals(plain.config.train, number).length)
    assert lengths == [1, 1, 2, 2, 3, 3, 3, 3]
    way, other_way = (travelled(start, weights(step)) for step in (plain, captured))
    assert apart(way, other_way) < 0.02
    assert float(captured.bad_in_a_row) == 0


def test_footage_before_a_still_scene_is_learned_from_in_captured_and_compiled_steps(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    pictures, still = (random.integers(0, 256, shape).astype(np.uint8) for shape in ((8, 3, 40, 48), (1, 3, 40, 48)))
    kept = Frames(pictures, still, np.array([0]), np.array([0]), np.array([[3, 20, 20]]))
    kept.save(tmp_path / "footage.npz")
    config = settings()
    scene = replace(config.scene, kind="footage", footage=str(tmp_path / "footage.npz"))
    config = replace(config, model=replace(config.model, still=True), scene=scene, test=scene)
    compiled = replace(config, train=replace(config.train, compile=True))
    steps = [make(kind, one) for kind, one in ((PlainStep, config), (TrainingStep, config), (TrainingStep, compiled))]
    for number in (4, 5):  # after more steps a birth that rounding turns into none makes another world
        plain, captured, fast = (take(step, number) for step in steps)
        assert_close(plain, captured)
        assert_close(plain, fast)


def test_other_noise_is_told_apart() -> None:
    """So that the tolerance of the other tests means something."""
    one, other = make(PlainStep, settings()), make(PlainStep, settings())
    other.config = settings(seed=1)  # the noise is drawn from it; the scenes and the weights are those of seed 0
    expected, got = take(one, 4), take(other, 4)
    names = ("elbo", "log_likelihood", "kl_discovered_where", "kl_propagated_where", "squared_error")
    assert sum(got[name] != pytest.approx(expected[name], rel=5 * ROUNDING) for name in names) >= 3
    assert apart(gradients(one), gradients(other)) > 100 * ROUNDING


def test_a_step_captured_again_goes_on_as_if_never_left() -> None:
    """A step of another length in between gives the graph up; the optimiser stays."""
    plain, captured = make(PlainStep, settings()), make(TrainingStep, settings())
    for number in (4, 0, 4, 2, 5):
        assert_close(take(plain, number), take(captured, number))


def test_a_captured_step_that_is_not_finite_changes_nothing() -> None:
    step = make(TrainingStep, settings())
    take(step, 4)
    state = {name: tensor.clone() for name, tensor in {**step.model.state_dict(), **training_state(step)}.items()}
    bad = replace(anneals(step.config.train, 5), temperature=float("nan"))
    assert step(5, bad)[step.names.index("skipped")] == 1
    for name, tensor in {**step.model.state_dict(), **training_state(step)}.items():
        assert torch.equal(tensor, state[name]), name
    assert float(step.bad_in_a_row) == 1
    assert take(step, 5)["skipped"] == 0
    assert float(step.bad_in_a_row) == 0


@pytest.fixture(scope="module")
def compiled() -> Iterator[TrainingStep]:
    """Compiled once for all tests of this file: it takes longer than they do."""
    yield make(TrainingStep, settings(compile=True))
    torch.compiler.reset()


def test_a_compiled_step_agrees_with_a_plain_one(compiled: TrainingStep) -> None:
    plain = make(PlainStep, settings())
    assert compiled.bound != compiled.model.bound
    start = weights(plain)
    for number in (4, 5):
        expected, got = take(plain, number), take(compiled, number)
        assert expected["kl_propagated_what"] > 0
        assert_close(expected, got)
        assert apart(gradients(plain), gradients(compiled)) < 5 * ROUNDING
    assert apart(*(travelled(start, weights(step)) for step in (plain, compiled))) < 0.02


def test_a_compiled_step_of_sqair_agrees_with_a_plain_one() -> None:
    plain = make(PlainStep, settings(system="sqair"))
    compiled = make(TrainingStep, settings(system="sqair", compile=True))
    assert compiled.bound != compiled.model.bound
    for number in (4, 5):
        assert_close(take(plain, number), take(compiled, number))
    assert apart(gradients(plain), gradients(compiled)) < 5 * ROUNDING
    torch.compiler.reset()


def test_bf16_changes_a_step_by_no_more_than_its_rounding() -> None:
    """bf16 has eight bits: a value is off by up to 0.4 %, and a step by a few times that.

    Of many clips: in a few a birth that rounding turns into none would count for too much.
    """
    plain, rounded = make(PlainStep, settings(batch=32)), make(TrainingStep, settings(batch=32, precision="bf16"))
    expected, got = take(plain, 4), take(rounded, 4)
    for name in ("elbo", "log_likelihood", "kl_discovered_where", "kl_discovered_what", "squared_error"):
        assert got[name] == pytest.approx(expected[name], rel=0.02), name
        assert got[name] != expected[name], name
    assert 0 < apart(gradients(plain), gradients(rounded)) < 0.3
    assert all(value.dtype == torch.float32 for value in weights(rounded).values())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps without a disturbance."""
    folder = tmp_path_factory.mktemp("whole")
    train(settings(), folder, GPU, quiet=True)
    return folder


def assert_same_run(one: Path, other: Path) -> None:
    lines, other_lines = log_of(one), log_of(other)
    assert [line["step"] for line in lines] == [line["step"] for line in other_lines] == [1, 2, 3, 4, 5, 6]
    for line, other_line in zip(lines, other_lines, strict=True):
        assert_close(line, other_line)
    assert apart(tensors(one), tensors(other)) < 1e-3


def test_a_seed_gives_one_loss_curve(whole: Path, tmp_path: Path) -> None:
    train(settings(), tmp_path / "again", GPU, quiet=True)
    assert_same_run(whole, tmp_path / "again")
    train(settings(seed=1), tmp_path / "other", GPU, quiet=True)
    elbos = [[line["elbo"] for line in log_of(folder)] for folder in (whole, tmp_path / "other")]
    assert elbos[1] != pytest.approx(elbos[0], rel=3 * ROUNDING)


@pytest.mark.parametrize("steps", [2, 3])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(whole: Path, tmp_path: Path, steps: int) -> None:
    """At a change of length, and between two changes."""
    config = settings()
    stopped = tiny(steps, lengths=config.train.lengths, precision="float32", compile=False)
    train(stopped, tmp_path, GPU, quiet=True)
    train(config, tmp_path, GPU, resume=True, quiet=True)
    assert_same_run(whole, tmp_path)


class CountedCapture(CapturedStep[Any]):
    """Says how often it was made and called."""

    made = called = 0

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        CountedCapture.made += 1

    def __call__(self, image: Observation):  # type: ignore[no-untyped-def]
        CountedCapture.called += 1
        return super().__call__(image)


def follow(model: SCALOR | SQAIR, video: Tensor, streamed: bool) -> Tracks:
    """A clip by `stream`, or a batch by `track`."""
    return join_tracks(list(model.stream(list(video[0]), masks=True))) if streamed else model.track(video, masks=True)


@pytest.mark.parametrize("streamed", [True, False], ids=["a stream", "a batch"])
def test_a_long_clip_is_tracked_the_same_when_it_is_captured(monkeypatch: pytest.MonkeyPatch, streamed: bool) -> None:
    """Both begin alike; only the last frames come from the graph, before rounding can grow into another world."""
    before, last = watching.FRAMES_BEFORE_CAPTURE, 5
    model = tiny_model(slots=12).to(GPU)
    video = squares(before + last, clips=1 if streamed else 3, count=12).to(GPU)
    monkeypatch.setattr(watching, "CapturedStep", CountedCapture)
    CountedCapture.made = CountedCapture.called = 0
    captured = follow(model, video, streamed)
    assert (CountedCapture.made, CountedCapture.called) == (1, last)
    monkeypatch.setattr(watching, "FRAMES_BEFORE_CAPTURE", 10**9)
    plain = follow(model, video, streamed)
    assert CountedCapture.made == 1
    assert_same_tracks(captured, plain)
    late = plain.select(plain.frame >= before)
    assert late.discovered.any()
    assert not late.discovered.all()
    assert captured.masks is not None
    assert plain.masks is not None
    assert (captured.masks != plain.masks).mean() < 1e-3


@pytest.mark.parametrize("clips", [1, 3])
@pytest.mark.parametrize("masks", [False, True])
def test_every_captured_frame_is_a_plain_step_from_where_the_graph_stood(clips: int, masks: bool) -> None:
    model = tiny_model(slots=12).to(GPU)
    images = Observation(squares(16, clips=clips).to(GPU)).unbind(1)
    step = partial(model.see, masks=masks)
    ids, kept, expected = set(), [], []
    with torch.inference_mode():
        state = model.begin(images[0])
        for image in images[:2]:
            state, _ = step(state, image)
        captured = CapturedStep(step, state, images[2])
        for image in images[2:]:
            after, sighting = step(copied(captured.state), image)
            state, seen = captured(image)
            for part, other in zip(tensors_of(state), tensors_of(after), strict=True):
                torch.testing.assert_close(part, other, rtol=0, atol=1e-4)
            kept.append(seen)
            expected.append(sighting)
            ids |= set(after[0].id.flatten().tolist())
        for seen, sighting in zip(kept, expected, strict=True):  # what was handed out has not changed since
            assert torch.equal(seen.id, sighting.id)
            torch.testing.assert_close(seen.box, sighting.box, rtol=0, atol=1e-3)
            assert (seen.masks is None) == (sighting.masks is None) == (not masks)
            if seen.masks is not None and sighting.masks is not None:
                assert (seen.masks != sighting.masks).float().mean() < 1e-3
    assert len(ids) > 8


def test_sqair_tracks_the_same_when_it_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    before, last = watching.FRAMES_BEFORE_CAPTURE, 5
    torch.manual_seed(0)
    model = systems.build(MODELS["sqair"]).to(GPU).eval()
    assert isinstance(model, SQAIR)
    with torch.no_grad():
        linear(model.appearance.decoder).bias.add_(model.config.darkness)  # untrained glimpses are dark
    video = squares(before + last, count=2).to(GPU)
    monkeypatch.setattr(watching, "CapturedStep", CountedCapture)
    CountedCapture.made = CountedCapture.called = 0
    captured = follow(model, video, streamed=True)
    assert (CountedCapture.made, CountedCapture.called) == (1, last)
    monkeypatch.setattr(watching, "FRAMES_BEFORE_CAPTURE", 10**9)
    assert_same_tracks(captured, follow(model, video, streamed=True))
    assert len(captured)
