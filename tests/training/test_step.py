"""The schedule as a pure function of the step: endpoints, monotony, lengths and the cooldown."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from scalor import SCALOR, Config
from scalor.config import TrainConfig
from scalor.data.scenes import Scenes
from scalor.training.folder import training_state
from scalor.training.loop import make_scenes
from scalor.training.step import TrainingStep, anneals, progress

from .tiny import CPU, differing, tiny

TRAIN = TrainConfig(
    steps=1_000,
    learning_rate=0.01,
    cooldown=200,
    lengths=((0, 1), (100, 2), (300, 5)),
    temperature=(1.0, 0.3, 400),
    presence_prior=(0.1, 1e-4, 500),
    gradients_through_time=50,
)


@given(st.integers(0, 1_000))
def test_the_same_step_gives_the_same_values(step: int) -> None:
    assert anneals(TRAIN, step) == anneals(TRAIN, step)


def test_values_start_and_end_as_configured() -> None:
    first, last = anneals(TRAIN, 0), anneals(TRAIN, 999)
    assert (first.temperature, last.temperature) == pytest.approx((1.0, 0.3))
    assert (first.presence_prior, last.presence_prior) == pytest.approx((0.1, 1e-4))
    assert (first.length, last.length) == (1, 5)
    assert first.learning_rate == 0.01
    assert anneals(TRAIN, 400).temperature == pytest.approx(0.3)
    assert anneals(TRAIN, 399).temperature > 0.3
    assert anneals(TRAIN, 500).presence_prior == pytest.approx(1e-4)
    assert anneals(TRAIN, 499).presence_prior > 1.001e-4


@given(st.integers(0, 999))
def test_values_only_go_one_way(step: int) -> None:
    now, then = anneals(TRAIN, step), anneals(TRAIN, step + 1)
    assert then.temperature <= now.temperature
    assert then.presence_prior <= now.presence_prior
    assert then.learning_rate <= now.learning_rate
    assert then.length >= now.length
    assert then.cut_gradients <= now.cut_gradients
    assert 0.3 <= now.temperature <= 1
    assert 1e-4 * (1 - 1e-9) <= now.presence_prior <= 0.1 * (1 + 1e-9)


def test_the_temperature_falls_evenly_and_the_odds_of_the_prior_by_equal_factors() -> None:
    assert anneals(TRAIN, 200).temperature == pytest.approx(0.65)
    prior = anneals(TRAIN, 250).presence_prior
    assert prior / (1 - prior) == pytest.approx(math.sqrt(0.1 / 0.9 * 1e-4 / 0.9999))


@pytest.mark.parametrize(("step", "length"), [(0, 1), (99, 1), (100, 2), (299, 2), (300, 5), (10_000, 5)])
def test_a_length_holds_from_its_first_step_on(step: int, length: int) -> None:
    assert anneals(TRAIN, step).length == length


def test_gradients_are_cut_until_their_step() -> None:
    assert [anneals(TRAIN, step).cut_gradients for step in (0, 49, 50, 999)] == [True, True, False, False]
    assert not anneals(TrainConfig(gradients_through_time=0), 0).cut_gradients


def test_colour_begins_to_count_between_its_two_steps_and_always_counts_without_them() -> None:
    train = TrainConfig(colour_counts=(100, 200))
    assert [anneals(train, step).colour_counts for step in (0, 100, 150, 200, 900)] == [0, 0, 0.5, 1, 1]
    assert anneals(TrainConfig(), 0).colour_counts == 1


def test_parts_are_learned_alone_until_their_step() -> None:
    assert [anneals(TrainConfig(parts_first=3), step).parts_alone for step in (0, 2, 3)] == [True, True, False]


def test_the_cooldown_reaches_zero_only_at_the_end() -> None:
    rates = [anneals(TRAIN, step).learning_rate for step in range(1_001)]
    assert set(rates[:801]) == {0.01}
    assert all(later < earlier for earlier, later in pairwise(rates[800:]))
    assert min(rates[:1_000]) > 0
    assert rates[1_000] == 0
    assert rates[900] == pytest.approx(0.005)


def test_without_a_cooldown_the_step_size_stays() -> None:
    train = TrainConfig(cooldown=0, learning_rate=0.02)
    assert {anneals(train, step).learning_rate for step in (0, 5_000, 9_999)} == {0.02}


def test_a_schedule_of_no_steps_is_at_its_end() -> None:
    assert progress(0, 0) == 1
    train = TrainConfig(temperature=(1.0, 0.5, 0), presence_prior=(0.1, 0.01, 0))
    assert anneals(train, 0).temperature == 0.5
    assert anneals(train, 0).presence_prior == pytest.approx(0.01)


class SometimesBroken:
    """Scenes in which the frames of some steps are not numbers."""

    def __init__(self, scenes: Scenes, batch: int, broken: set[int]) -> None:
        self.scenes, self.batch, self.broken = scenes, batch, broken

    def clips(self, index: Tensor, length: int) -> Any:
        clip = self.scenes.clips(index, length=length)
        if int(index[0]) // self.batch in self.broken:
            clip.frames.fill_(float("nan"))
        return clip


def make_step(broken: set[int] | None = None, config: Config | None = None) -> TrainingStep:
    config = config or tiny()
    torch.manual_seed(0)
    step = TrainingStep(config, SCALOR(config.model), make_scenes(config, "train", CPU), CPU)
    step.scenes = SometimesBroken(step.scenes, config.train.batch, broken or set())  # type: ignore[assignment]
    return step


def take(step: TrainingStep, number: int) -> dict[str, float]:
    return dict(zip(step.names, step(number, anneals(step.config.train, number)).tolist(), strict=True))


def everything(step: TrainingStep) -> dict[str, Tensor]:
    """Weights and optimiser, as they are now."""
    state = {**step.model.state_dict(), **training_state(step)}
    return {name: tensor.clone() for name, tensor in state.items()}


def test_a_step_changes_the_weights_and_reports_finite_numbers() -> None:
    step = make_step()
    before = everything(step)
    metrics = take(step, 3)
    assert len(differing(before, everything(step))) > len(before) / 2
    assert torch.tensor(list(metrics.values())).isfinite().all()
    assert metrics["skipped"] == 0
    assert metrics["gradient_norm"] > 0


def test_making_the_optimiser_changes_no_weight() -> None:
    config = tiny()
    torch.manual_seed(0)
    untouched = SCALOR(config.model)
    assert differing(dict(untouched.state_dict()), dict(make_step().model.state_dict())) == []


@pytest.mark.parametrize("number", [0, 3])
def test_a_step_that_is_not_finite_leaves_weights_and_optimiser_untouched(number: int) -> None:
    step = make_step(broken={number})
    for before in range(number):
        take(step, before)
    state = everything(step)
    assert take(step, number)["skipped"] == 1
    assert differing(state, everything(step)) == []
    assert float(step.bad_in_a_row) == 1


def test_after_a_step_that_is_not_finite_learning_goes_on() -> None:
    step = make_step(broken={1, 2})
    assert [take(step, number)["skipped"] for number in range(5)] == [0, 1, 1, 0, 0]
    assert float(step.bad_in_a_row) == 0
    assert all(tensor.isfinite().all() for tensor in everything(step).values())


def test_bad_steps_in_a_row_are_counted() -> None:
    step = make_step(broken={0, 1, 2})
    counts = []
    for number in range(4):
        take(step, number)
        counts.append(float(step.bad_in_a_row))
    assert counts == [1, 2, 3, 0]


def test_the_gradient_is_clipped() -> None:
    config = tiny(clip_norm=1e-12)
    torch.manual_seed(0)
    step = TrainingStep(config, SCALOR(config.model), make_scenes(config, "train", CPU), CPU)
    assert take(step, 3)["gradient_norm"] > 1e-12
    grads = torch.cat([p.grad.flatten() for p in step.model.parameters() if p.grad is not None])
    assert float(grads.norm()) <= 1.01e-12


def test_a_gradient_far_from_the_usual_is_cut_to_a_few_times_it() -> None:
    """The same batch, with its bound a thousand times as steep: clipped, it moves Adam's mean by three usual norms."""
    step = make_step(config=tiny(clip_norm=1e9, clip_usual=3.0))
    for number in range(5):
        take(step, number)
    usual = float(step.usual_norm)
    before = first_moments(step)
    hooks = [parameter.register_hook(lambda gradient: 1e3 * gradient) for parameter in step.model.parameters()]
    norm = take(step, 5)["gradient_norm"]
    for hook in hooks:
        hook.remove()
    assert norm > 100 * usual
    added = torch.cat([new - 0.9 * old for new, old in zip(first_moments(step), before, strict=True)])
    torch.testing.assert_close(float(added.norm()), 0.1 * 3 * usual, rtol=1e-3, atol=0)
    assert float(step.usual_norm) < 1.03 * usual


def first_moments(step: TrainingStep) -> list[Tensor]:
    return [step.optimizer.state[p]["exp_avg"].flatten().clone() for p in step.model.parameters()]


def test_what_is_usual_is_learned_from_the_first_gradient_and_never_from_one_that_is_not_finite() -> None:
    step = make_step(broken={1}, config=tiny(clip_norm=1e9, clip_usual_rate=0.3))
    first = take(step, 0)["gradient_norm"]
    torch.testing.assert_close(float(step.usual_norm), first)
    take(step, 1)
    torch.testing.assert_close(float(step.usual_norm), first)
    hook = next(step.model.parameters()).register_hook(lambda gradient: gradient * float("inf"))
    take(step, 2)
    hook.remove()
    torch.testing.assert_close(float(step.usual_norm), first)
    second = take(step, 3)["gradient_norm"]
    torch.testing.assert_close(float(step.usual_norm), first**0.7 * second**0.3)
