"""One optimiser step: it learns, and a step that is not finite changes nothing at all."""

from typing import Any

import pytest
import torch
from torch import Tensor

from scalor import SCALOR, Config
from scalor.data.scenes import Scenes
from scalor.nn.schedule import anneals
from scalor.training.folder import training_state
from scalor.training.loop import make_scenes
from scalor.training.step import TrainingStep

from .tiny import CPU, differing, tiny


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
    step = make_step(broken={1}, config=tiny(clip_norm=1e9))
    first = take(step, 0)["gradient_norm"]
    torch.testing.assert_close(float(step.usual_norm), first)
    take(step, 1)
    torch.testing.assert_close(float(step.usual_norm), first)
    hook = next(step.model.parameters()).register_hook(lambda gradient: gradient * float("inf"))
    take(step, 2)
    hook.remove()
    torch.testing.assert_close(float(step.usual_norm), first)
    second = take(step, 3)["gradient_norm"]
    torch.testing.assert_close(float(step.usual_norm), first**0.98 * second**0.02)
