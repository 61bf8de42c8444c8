"""The VRNN: what sees what, and that it learns laws that are known."""

from typing import Any

import pytest
import torch
from torch import Tensor

from scalor import InputError
from scalor.baselines.vrnn import VRNN, VRNNConfig
from scalor.nn.distributions import Exact, Mode

from .toys import LENGTH, SIGMA, exact_log_likelihood, going_round, train, wandering

SMALL: dict[str, Any] = {"channels": (8, 8), "feature_dim": 16, "state_dim": 8, "latent_dim": 4}


def small(seed: int = 0, **changes: Any) -> VRNN:
    torch.manual_seed(seed)
    return VRNN(VRNNConfig(**{"frame": (8, 12), **SMALL, **changes})).eval()


def video(clips: int = 2, length: int = 4, frame: tuple[int, int] = (8, 12)) -> Tensor:
    return torch.rand(clips, length, 3, *frame, generator=torch.Generator().manual_seed(1))


def unseen() -> torch.Generator:
    return torch.Generator().manual_seed(10**9)


# What sees what ---------------------------------------------------------------------------------------


def test_the_sizes_are_the_papers() -> None:
    model = VRNN(VRNNConfig())
    assert model.recurrence.hidden_size == 128
    assert model.noise_per_frame((64, 64)) == (128, 0)
    assert model.reconstruct(torch.rand(2, 3, 64, 64)).frames.shape == (1, 2, 3, 64, 64)


@pytest.mark.parametrize(
    ("frame", "channels"), [((8, 12), (8, 8)), ((16, 4), (4, 8)), ((6, 10), (5,)), ((8, 8), (4, 4, 4))]
)
def test_any_frame_that_the_strides_divide_will_do(frame: tuple[int, int], channels: tuple[int, ...]) -> None:
    model = small(frame=frame, channels=channels)
    assert model.generate(video(frame=frame), observe=3, horizon=2).frames.shape == (2, 5, 3, *frame)


@torch.no_grad()
def test_the_past_does_not_know_the_future_and_the_future_knows_the_past() -> None:
    model, images = small(), video(length=5).transpose(0, 1)
    other = images.clone()
    other[2] = 1 - other[2]
    before, after = model.infer(images, Mode()), model.infer(other, Mode())
    for one, two in ((before.kl, after.kl), (before.pictures, after.pictures)):
        assert torch.equal(one[:2], two[:2])
        assert not any(torch.equal(one[t], two[t]) for t in (2, 3, 4))


@torch.no_grad()
def test_the_state_sees_both_frame_and_latent_and_the_decoder_both_latent_and_state() -> None:
    model = small()
    look, z, state = torch.randn(1, 16), torch.randn(1, 4), model.start(1, torch.zeros(1))
    told = model.update_state(look, z, state)
    assert not torch.allclose(model.update_state(look + 1, z, state).hidden, told.hidden)
    assert not torch.allclose(model.update_state(look, z + 1, state).hidden, told.hidden)
    assert not torch.allclose(model.draw(z + 1, told.hidden), model.draw(z, told.hidden))
    assert not torch.allclose(model.draw(z, told.hidden + 1), model.draw(z, told.hidden))


def test_the_bound_is_the_likelihood_less_what_the_latents_cost() -> None:
    bound = small().elbo(video(), Exact())
    assert set(bound.numbers) == set(VRNN.reported)
    torch.testing.assert_close(bound.elbo, bound.numbers["log_likelihood"] - bound.numbers["kl"])
    closed = small().elbo(video(), Mode())
    assert (closed.numbers["kl"] > 0).all()


@pytest.mark.parametrize("cut", [False, True])
def test_cut_gradients_end_at_each_frame(cut: bool) -> None:
    images = video().transpose(0, 1).clone().requires_grad_()
    small().infer(images, Mode(), cut_gradients=cut).kl[2].sum().backward()
    assert images.grad is not None
    assert bool(images.grad[:2].any()) is not cut
    assert images.grad[2].any()
    assert not images.grad[3].any()


def test_clips_do_not_meet() -> None:
    model = small()
    both, alone = model.elbo(video(), Mode()).elbo, model.elbo(video()[1:], Mode()).elbo
    torch.testing.assert_close(both[1:], alone)


# What it learns ---------------------------------------------------------------------------------------


@torch.no_grad()
def test_more_samples_raise_the_likelihood_bound() -> None:
    model, clips = small(sigma=0.5), video(clips=64)
    one, few, many = (float(model.log_likelihood(clips, samples).mean()) for samples in (1, 5, 25))
    assert one < few < many


def test_a_linear_gaussian_world_is_learned_to_its_very_likelihood() -> None:
    """The state knows the frames so far, so a VRNN can learn the exact likelihood: 32 nats a clip.

    The best grey picture has 3 nats.
    """
    config = VRNNConfig(frame=(4, 4), channels=(16,), feature_dim=32, state_dim=16, latent_dim=2, sigma=SIGMA)
    model = train(config, wandering, steps=350)
    assert isinstance(model, VRNN)
    clips = wandering(400, LENGTH, unseen())
    with torch.no_grad():
        weights = torch.stack([model.elbo(clips, Exact()).elbo for _ in range(10)]).double()
    exact = exact_log_likelihood(clips)
    for bound in (weights.mean(0), weights.logsumexp(0) - torch.tensor(10.0).log()):
        difference = bound - exact
        error = float(difference.std()) / len(difference) ** 0.5
        assert -1.0 < float(difference.mean()) < 3 * error


def test_a_sequence_without_chance_is_continued() -> None:
    config = VRNNConfig(frame=(8, 8), channels=(16, 32), feature_dim=64, state_dim=32, latent_dim=4, sigma=0.1)
    model = train(config, going_round, steps=200, lengths=((0, 6),))
    clips = going_round(16, 10, unseen())
    for estimator in (Mode(), Exact()):
        imagined = model.generate(clips[:, :3], observe=3, horizon=7, estimator=estimator).frames
        assert float((imagined - clips).square().mean()) < 0.01
    assert float((clips[:, 3:] - clips[:, 2:3]).square().mean()) > 0.3  # what copying the last frame gives


def test_imagination_is_random_unless_the_most_likely_is_asked_for() -> None:
    model, clips = small(), video()

    def imagine(seed: int, **more: Any) -> Tensor:
        torch.manual_seed(seed)
        return model.generate(clips, observe=2, horizon=2, **more).frames

    assert torch.equal(imagine(0), imagine(0))
    assert torch.equal(imagine(0)[:, :2], imagine(1)[:, :2])
    assert not torch.equal(imagine(0)[:, 2:], imagine(1)[:, 2:])
    assert torch.equal(imagine(0, estimator=Mode()), imagine(1, estimator=Mode()))


# Refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("frame", (8, 10)), ("frame", (0, 8)), ("frame", (-4, 8))),
        *(("channels", ()), ("channels", (8, 0))),
        *((name, value) for name in ("feature_dim", "state_dim", "latent_dim") for value in (0, -1)),
        *(("sigma", value) for value in (0.0, -1.0, float("nan"), float("inf"))),
    ],
)
def test_a_size_that_cannot_be_is_refused_by_name_and_value(field: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        VRNNConfig(**{"frame": (8, 12), **SMALL, field: value})
    assert str(caught.value).startswith(f"model.{field} is {value!r}: ")


def test_frames_of_another_size_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"frames' shape is \[1, 2, 3, 8, 8\]: .* one size, here 8x12 \(model\.frame\)\.$"
    ):
        small().reconstruct(torch.rand(2, 3, 8, 8))


@pytest.mark.parametrize(("name", "value"), [("observe", 0), ("horizon", -1)])
def test_a_rollout_that_cannot_be_is_refused(name: str, value: int) -> None:
    steps = {"observe": 1, "horizon": 1, name: value}
    with pytest.raises(InputError, match=rf"^{name} is {value}: "):
        small().generate(video(), steps["observe"], steps["horizon"])


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match=r"^samples is 0: "):
        small().log_likelihood(video(), 0)
