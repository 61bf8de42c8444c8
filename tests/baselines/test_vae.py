"""The sequential VAE: what sees what, and that it learns laws that are known."""

from typing import Any

import pytest
import torch
from torch import Tensor

from scalor import InputError
from scalor.baselines.vae import SequentialVAE, VAEConfig
from scalor.nn.distributions import Exact, Mode

from .toys import LENGTH, SIGMA, exact_log_likelihood, going_round, train, wandering

SMALL: dict[str, Any] = {"channels": (8, 8), "growth": (8, 8), "state_dim": 8, "latent_dim": 4}


def small(seed: int = 0, **changes: Any) -> SequentialVAE:
    torch.manual_seed(seed)
    return SequentialVAE(VAEConfig(**{"frame": (8, 12), **SMALL, **changes})).eval()


def video(clips: int = 2, length: int = 4, frame: tuple[int, int] = (8, 12)) -> Tensor:
    return torch.rand(clips, length, 3, *frame, generator=torch.Generator().manual_seed(1))


def unseen() -> torch.Generator:
    return torch.Generator().manual_seed(10**9)


# What sees what ---------------------------------------------------------------------------------------


def test_the_latent_is_the_papers() -> None:
    assert SequentialVAE(VAEConfig()).noise_per_frame((64, 64)) == (64, 0)


@pytest.mark.parametrize("frame", [(8, 12), (16, 8), (32, 36)])
def test_one_model_sees_frames_of_any_size_that_the_strides_divide(frame: tuple[int, int]) -> None:
    assert small().generate(video(frame=frame), observe=3, horizon=2).frames.shape == (2, 5, 3, *frame)


@torch.no_grad()
def test_a_frame_is_drawn_from_its_own_latent_and_paid_for_by_those_before() -> None:
    model, images = small(), video(length=5).transpose(0, 1)
    other = images.clone()
    other[2] = 1 - other[2]
    before, after = model.infer(images, Mode()), model.infer(other, Mode())
    same = [torch.equal(before.pictures[t], after.pictures[t]) for t in range(5)]
    assert same == [True, True, False, True, True]
    assert [torch.equal(before.kl[t], after.kl[t]) for t in range(5)] == [True, True, False, False, False]


@torch.no_grad()
def test_the_first_latent_is_a_standard_normal() -> None:
    model, images = small(), video(length=1).transpose(0, 1)
    mean, raw = model.posterior(torch.nn.functional.adaptive_avg_pool2d(model.encoder(images[0]), 4).flatten(1)).chunk(
        2, -1
    )
    std = torch.nn.functional.softplus(raw - 1) + 1e-3
    q = torch.distributions.Normal(mean, std)
    cost = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(model.infer(images, Mode()).kl[0], cost)


def test_the_bound_is_the_likelihood_less_what_the_latents_cost() -> None:
    bound = small().elbo(video(), Exact())
    assert set(bound.numbers) == set(SequentialVAE.reported)
    torch.testing.assert_close(bound.elbo, bound.numbers["log_likelihood"] - bound.numbers["kl"])
    assert (small().elbo(video(), Mode()).numbers["kl"] > 0).all()


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
def test_the_likelihood_bound_is_the_logarithm_of_the_mean_weight() -> None:
    model = small()
    torch.manual_seed(0)
    bound = model.log_likelihood(video(), 3)
    torch.manual_seed(0)
    weights = torch.stack([model.elbo(video(), Exact()).elbo for _ in range(3)]).double()
    largest = weights.max()
    torch.testing.assert_close(bound.double(), (weights - largest).exp().mean(0).log() + largest)


@torch.no_grad()
def test_more_samples_raise_the_likelihood_bound() -> None:
    model, clips = small(sigma=0.5), video(clips=64)
    one, few, many = (float(model.log_likelihood(clips, samples).mean()) for samples in (1, 5, 25))
    assert one < few < many


def test_a_linear_gaussian_world_is_learned_almost_to_its_likelihood() -> None:
    """A posterior that sees one frame alone leaves some 0.2 of the 32 nats a clip.

    The best grey picture has 3 nats.
    """
    config = VAEConfig(frame=(4, 4), channels=(16,), growth=(8,), latent_dim=2, state_dim=16, sigma=SIGMA)
    model = train(config, wandering, steps=350)
    assert isinstance(model, SequentialVAE)
    clips = wandering(400, LENGTH, unseen())
    with torch.no_grad():
        weights = torch.stack([model.elbo(clips, Exact()).elbo for _ in range(10)]).double()
    exact = exact_log_likelihood(clips)
    for bound in (weights.mean(0), weights.logsumexp(0) - torch.tensor(10.0).log()):
        difference = bound - exact
        error = float(difference.std()) / len(difference) ** 0.5
        assert -1.5 < float(difference.mean()) < 3 * error


def test_a_sequence_without_chance_is_continued() -> None:
    config = VAEConfig(frame=(8, 8), channels=(16, 32), growth=(16,), latent_dim=4, state_dim=32, sigma=0.1)
    model = train(config, going_round, steps=250, lengths=((0, 6),))
    clips = going_round(16, 10, unseen())
    imagined = model.generate(clips[:, :3], observe=3, horizon=7, estimator=Mode()).frames
    assert float((imagined - clips).square().mean()) < 0.03
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
        *((name, value) for name in ("channels", "growth") for value in ((), (8, 0))),
        *((name, value) for name in ("state_dim", "latent_dim") for value in (0, -1)),
        *(("sigma", value) for value in (0.0, -1.0, float("nan"), float("inf"))),
    ],
)
def test_a_size_that_cannot_be_is_refused_by_name_and_value(field: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        VAEConfig(**{"frame": (8, 12), **SMALL, field: value})
    assert str(caught.value).startswith(f"model.{field} is {value!r}: ")


def test_frames_that_the_strides_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match=r"frames' shape is \[1, 2, 3, 8, 10\]: .* multiples of 4\.$"):
        small().reconstruct(torch.rand(2, 3, 8, 10))


@pytest.mark.parametrize(("name", "value"), [("observe", 0), ("horizon", -1)])
def test_a_rollout_that_cannot_be_is_refused(name: str, value: int) -> None:
    steps = {"observe": 1, "horizon": 1, name: value}
    with pytest.raises(InputError, match=rf"^{name} is {value}: "):
        small().generate(video(), steps["observe"], steps["horizon"])


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match=r"^samples is 0: "):
        small().log_likelihood(video(), 0)
