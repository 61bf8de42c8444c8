"""No object gets far more gradient from later frames than objects usually do, and a limit can be left again."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scalor.nn.gradients import even, walled


def passed_on(gradient: Tensor, times: float) -> Tensor:
    """What comes out of `even` backwards where this goes in."""
    values = torch.randn(gradient.shape).requires_grad_()
    assert torch.equal(even(values, times), values)
    even(values, times).backward(gradient)
    assert values.grad is not None
    return values.grad


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), times=st.floats(1.1, 10), clips=st.integers(1, 3), objects=st.integers(1, 5))
def test_no_gradient_is_longer_than_so_many_usual_ones_and_shorter_ones_are_left_alone(
    seed: int, times: float, clips: int, objects: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    length = torch.exp(3 * torch.randn(clips, objects, 1, generator=random))
    length = length * (torch.rand(clips, objects, 1, generator=random) > 0.3)
    gradient = length * torch.nn.functional.normalize(torch.randn(clips, objects, 4, generator=random), dim=-1)
    got = passed_on(gradient, times)
    norms = length[length > 0]
    most = times * float(norms.log().mean().exp()) if len(norms) else 0.0
    wanted = gradient * torch.where(length > most, most / length, 1)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-7)


def test_one_object_that_runs_away_does_not_silence_the_others() -> None:
    gradient = torch.ones(2, 50, 3)
    gradient[0, 0] = 1e6
    got = passed_on(gradient, 3.0)
    torch.testing.assert_close(got[1], gradient[1])
    assert 3 < float(got[0, 0].norm() / got[1, 0].norm()) < 4


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_so_and_is_not_hidden(broken: float) -> None:
    gradient = torch.ones(1, 3, 2)
    gradient[0, 1, 0] = broken
    assert not passed_on(gradient, 3.0).isfinite().all()


def test_a_loss_can_pull_a_number_back_from_the_wall_but_not_push_it_further() -> None:
    """However far behind it lies. Descending goes against the gradient."""
    numbers = torch.tensor([-40.0, -3.0, 0.0, 3.0, 40.0], requires_grad=True)
    kept = walled(numbers, 5.0)
    assert kept.tolist() == [-5, -3, 0, 3, 5]
    for pull, wanted in ((1.0, [0, 1, 1, 1, 1]), (-1.0, [-1, -1, -1, -1, 0])):
        (gradient,) = torch.autograd.grad(pull * kept.sum(), numbers, retain_graph=True)
        assert gradient.tolist() == wanted
