"""Laws of the bound and of its importance-weighted kin."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from scalor.data.observation import Observation
from scalor.model.elbo import KL_TERMS, explain
from scalor.model.scalor import PRESENCE_PRIOR, SCALOR
from scalor.nn.distributions import Estimator, Exact, Mode, Noise, Relaxed

from .worlds import VARIANTS, each, look, squares, tiny_model

pytestmark = pytest.mark.filterwarnings("ignore:out of slots")  # tiny worlds are crowded


def test_the_terms_sum_to_the_elbo() -> None:
    terms = tiny_model(background=True).elbo(Observation(squares(3, clips=2)), Relaxed(1.0)).terms
    assert tuple(terms.kl) == KL_TERMS
    assert tuple(terms.to_dict()) == ("log_likelihood", *KL_TERMS)
    torch.testing.assert_close(terms.elbo, terms.log_likelihood - sum(terms.kl.values()))
    for name, value in terms.kl.items():
        assert (value > 0).all(), name


@each(VARIANTS)
@pytest.mark.parametrize("estimator", [Mode(), Relaxed(0.5)], ids=["mode", "relaxed"])
def test_a_divergence_is_never_negative(changes: dict[str, Any], estimator: Estimator) -> None:
    terms = tiny_model(**changes).elbo(Observation(squares(4, clips=2)), estimator, presence_prior=0.1).terms
    for name, value in terms.to_dict().items():
        assert name == "log_likelihood" or (value >= 0).all(), name


def test_the_log_likelihood_is_that_of_independent_normal_pixels() -> None:
    model, image = tiny_model(sigma=0.3), squares(1)[:, 0]
    _, explained = look(model, model.start(1, image), image)
    picture = explained.rendering.image
    expected = torch.distributions.Normal(picture, 0.3).log_prob(image).sum((1, 2, 3))
    torch.testing.assert_close(explained.terms.log_likelihood, expected, rtol=1e-4, atol=0.01)
    torch.testing.assert_close(explained.activity.squared_error, (picture - image).square().mean((1, 2, 3)))


def test_frames_explained_together_cost_what_they_cost_one_by_one() -> None:
    """What the priors remember is handed on from one part of a clip to the next."""
    model, video = tiny_model(background=True), squares(5, clips=2)
    with torch.no_grad():
        whole = model.elbo(Observation(video), Mode())
        seen = whole.steps
        images, past, parts = Observation(video).time_first(), model.start_prior(2, video), []
        for part in (slice(0, 1), slice(1, 3), slice(3, 5)):
            parts.append(explain(model, images[part], seen[part], past, Mode(), PRESENCE_PRIOR))
            past = parts[-1].past
    for name, value in whole.terms.to_dict().items():
        together = torch.stack([part.terms.to_dict()[name] for part in parts]).sum(0)
        torch.testing.assert_close(together, value, rtol=1e-4, atol=1e-2)
    torch.testing.assert_close(past.objects, whole.past.objects)
    torch.testing.assert_close(torch.cat([p.rendering.image for p in parts]), whole.rendering.image)


def test_the_bound_of_a_batch_is_that_of_its_clips() -> None:
    model, video = tiny_model(background=True), squares(3, clips=3)
    batch = model.elbo(Observation(video), Mode()).terms.elbo
    alone = torch.cat([model.elbo(Observation(video[i : i + 1]), Mode()).terms.elbo for i in range(3)])
    torch.testing.assert_close(batch, alone, rtol=1e-4, atol=1e-2)


def test_a_presence_prior_may_be_a_number_or_a_tensor() -> None:
    model, video = tiny_model(), squares(2)
    number = model.elbo(Observation(video), Mode(), 0.03).terms.elbo
    torch.testing.assert_close(model.elbo(Observation(video), Mode(), torch.tensor(0.03)).terms.elbo, number)
    assert not torch.allclose(model.elbo(Observation(video), Mode(), 0.3).terms.elbo, number)


def dealt(model: SCALOR, video: Tensor, seed: int) -> Relaxed:
    """Training's estimator, its noise drawn beforehand."""
    random = torch.Generator().manual_seed(seed)
    normals, uniforms = model.noise_per_frame((video.shape[-2], video.shape[-1]))
    shape = (video.shape[1], video.shape[0])
    noise = Noise(torch.randn(*shape, normals, generator=random), torch.rand(*shape, uniforms, generator=random))
    return Relaxed(0.7, noise)


@each(VARIANTS)
def test_the_same_noise_gives_the_same_bound_and_other_noise_another(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(4, clips=2)
    bounds: list[Tensor] = []
    with torch.no_grad():
        for seed in (1, 1, 2):
            torch.rand(len(bounds) + 1)  # what else is drawn does not matter
            bounds.append(model.elbo(Observation(video), dealt(model, video, seed)).terms.elbo)
    assert torch.equal(bounds[0], bounds[1])
    assert ((bounds[0] - bounds[2]).abs() > 1).all()


@pytest.mark.parametrize("background", [False, True])
def test_every_frame_has_noise_of_its_own(background: bool) -> None:
    """Other noise in the last frame changes what was made of that frame alone."""
    model, video = tiny_model(background=background), squares(3, clips=2)
    one, two = dealt(model, video, 1), dealt(model, video, 2)
    assert isinstance(one.noise, Noise)
    assert isinstance(two.noise, Noise)
    mixed = Noise(
        torch.cat([one.noise.normals[:2], two.noise.normals[2:]]),
        torch.cat([one.noise.uniforms[:2], two.noise.uniforms[2:]]),
    )
    with torch.no_grad():
        bound, other = (model.elbo(Observation(video), estimator) for estimator in (one, replace(one, noise=mixed)))
    for t in range(3):
        same = torch.equal(bound.steps[t].state.objects.latent, other.steps[t].state.objects.latent)
        assert same is (t < 2)
    pictures = [made.rendering.image.unflatten(0, (3, 2)) for made in (bound, other)]
    torch.testing.assert_close(pictures[1][:2], pictures[0][:2], rtol=0, atol=1e-5)
    assert not torch.allclose(pictures[1][2], pictures[0][2], atol=1e-3)


def test_noise_drawn_beforehand_gives_the_bounds_of_noise_drawn_when_needed() -> None:
    """In distribution: of every term, half of the values lie above the other's median and half within its quartiles.

    Counts, because a divergence has a long tail; the error of a share of 400 draws against 400 is about 0.035.
    """
    model, video = tiny_model(background=True), squares(3).expand(400, -1, -1, -1, -1)
    with torch.no_grad():
        ours = model.elbo(Observation(video), dealt(model, video, 1)).terms.to_dict()
        theirs = model.elbo(Observation(video), Relaxed(0.7)).terms.to_dict()
    for name, value in ours.items():
        low, median, high = theirs[name].quantile(torch.tensor([0.25, 0.5, 0.75]))
        assert low < high, name
        assert 0.35 < float((value > median).float().mean()) < 0.65, name
        assert 0.35 < float(((value > low) & (value < high)).float().mean()) < 0.65, name


@pytest.mark.parametrize("cut", [False, True])
@each(VARIANTS)
def test_gradients_reach_every_parameter(changes: dict[str, Any], cut: bool) -> None:
    model, video = tiny_model(**changes), squares(3, clips=2)
    torch.manual_seed(0)
    bound = model.elbo(Observation(video), Relaxed(1.0), presence_prior=0.1, cut_gradients=cut)
    assert torch.isfinite(bound.terms.elbo).all()
    (-bound.terms.elbo.mean()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


@each({name: VARIANTS[name] for name in ("plain", "background", "bare")})
def test_cut_gradients_end_at_each_frame(changes: dict[str, Any]) -> None:
    """With gradients cut, a frame's pixels matter to its own terms alone, as if the video ended with it."""
    model, video = tiny_model(**changes), squares(3)

    def first_frame_gradient(frames: int, cut: bool) -> Tensor:
        torch.manual_seed(0)
        leaf = video[:, :frames].clone().requires_grad_()
        bound = model.elbo(Observation(leaf), Relaxed(1.0), cut_gradients=cut)
        (gradient,) = torch.autograd.grad(bound.terms.elbo.sum(), leaf)
        return gradient[:, 0]

    alone = first_frame_gradient(1, cut=False)
    size = float(alone.abs().max())
    assert size > 0
    # Sums over three frames at once round otherwise than over one, and large gradients cancel to small ones.
    torch.testing.assert_close(first_frame_gradient(3, cut=True), alone, rtol=0, atol=1e-4 * size)
    assert (first_frame_gradient(3, cut=False) - alone).abs().max() > 0.1 * size


def test_cutting_gradients_does_not_change_the_bound() -> None:
    model, video = tiny_model(), squares(3)
    bounds = []
    for cut in (True, False):
        torch.manual_seed(0)
        bounds.append(model.elbo(Observation(video), Relaxed(1.0), cut_gradients=cut).terms.elbo)
    assert torch.equal(*bounds)


def test_evened_gradients_are_those_of_the_same_bound_with_less_of_a_few_objects() -> None:
    """A limit that nothing reaches changes nothing; one that is reached changes gradients and not the bound."""
    model, video = tiny_model(), squares(5, clips=2)

    def bound_and_gradient(times: float) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        bound = model.elbo(Observation(video), Relaxed(1.0), clip_object=times).terms.elbo
        gradients = torch.autograd.grad(bound.sum(), list(model.propagation.move.parameters()))
        return bound, torch.cat([gradient.flatten() for gradient in gradients])

    (bound, plain), (_, far), (same, near) = (bound_and_gradient(times) for times in (0.0, 1e9, 1.01))
    assert torch.equal(bound, same)
    torch.testing.assert_close(far, plain)
    assert (near - plain).norm() > 0.01 * plain.norm()


def test_the_importance_weighted_bound_is_above_the_mean_elbo() -> None:
    """By Jensen's inequality, draw for draw."""
    model, video = tiny_model(sigma=2.0), squares(2, clips=3)
    torch.manual_seed(3)
    weighted = model.log_likelihood(video, samples=8)
    torch.manual_seed(3)
    with torch.no_grad():
        singles = model.elbo(Observation(video.repeat(8, 1, 1, 1, 1)), Exact()).terms.elbo.view(8, 3)
    assert singles.std(0).min() > 0
    assert (weighted >= singles.mean(0)).all()
    torch.testing.assert_close(weighted, singles.logsumexp(0) - math.log(8))
    assert (weighted <= singles.amax(0)).all()


def test_the_importance_weighted_bound_rises_with_samples() -> None:
    model, video = tiny_model(sigma=2.0), squares(1).expand(48, -1, -1, -1, -1)
    torch.manual_seed(4)
    few, many = (model.log_likelihood(video, samples=samples) for samples in (1, 12))
    error = math.sqrt(float(few.var() + many.var()) / 48)
    assert many.mean() - few.mean() > 3 * error


def test_importance_weights_agree_with_plain_sampling_from_the_prior() -> None:
    """Both estimate p(frame): the weights of the posterior, and the pixels' likelihood under dreamed frames.

    The pixels are noisy and the posterior is wide, though not the prior, so that both estimates settle.
    """
    model = tiny_model(
        lively=False, frame=(16, 16), grid=(2, 2), slots=4, what_dim=2, sigma=2.0, object_size=(6.0, 6.0)
    )
    wide, rate, draws = 1.2015, 0.3, 10_000  # a raw std of 1.2015 is a std of 0.8
    with torch.no_grad():
        for layer in (model.discovery.heads, model.appearance.what):
            layer.weight.zero_()
            layer.bias.zero_()
        model.discovery.heads.bias[:6] = torch.tensor([0.05, 0.4, -0.4, 0.0, 0.0, 0.0])
        model.discovery.heads.bias[6:] = wide
        model.appearance.what.bias[:] = torch.tensor([0.4, 0.0, wide, wide])
        frame = squares(1, (16, 16))[:, 0].expand(draws, -1, -1, -1)
        torch.manual_seed(0)
        weighted = model.elbo(Observation(frame[:, None]), Exact(), rate).terms.elbo
        start, past = model.start(draws, frame), model.start_prior(draws, frame)
        *_, step = model.prior_step(start, past, (16, 16), rate, Exact())
        plain = torch.distributions.Normal(step.image, 2.0).log_prob(frame).sum((1, 2, 3))

    def estimate(logs: Tensor) -> tuple[float, float]:
        """Log of the mean weight, and its standard error."""
        weights = (logs - plain.max()).exp().double()
        return float(weights.mean().log()), float(weights.std() / weights.mean() / math.sqrt(draws))

    (ours, our_error), (reference, reference_error) = estimate(weighted), estimate(plain)
    error = math.hypot(our_error, reference_error)
    assert error < 0.15
    assert abs(ours - reference) < 4 * error


def test_activity_counts_what_happens() -> None:
    model, video = tiny_model(slots=3), squares(4, clips=2)
    with torch.no_grad():
        activity = model.elbo(Observation(video), Mode()).activity
    tracks = model.track(video)
    for clip in range(2):
        part = tracks.of_clip(clip)
        assert float(activity.objects[clip]) == pytest.approx(len(part) / 4)
        assert float(activity.discovered[clip]) == pytest.approx(part.discovered.sum() / 4)
    assert activity.turned_away.max() > 0
    assert ((activity.foreground > 0) & (activity.foreground <= 1)).all()


def test_the_background_sees_where_no_object_is_and_teaches_objects_nothing() -> None:
    """Its encoder gets one minus the foreground mask; its cost has no gradient by way of that mask."""
    model, seen = tiny_model(background=True), []
    assert model.background is not None
    model.background.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    explained = model.elbo(Observation(squares(3)), Exact())
    mask = explained.rendering.foreground.mask
    assert 0.05 < float(mask.mean()) < 0.95
    torch.testing.assert_close(seen[0][:, 3:], 1 - mask)
    weights = list(model.appearance.parameters())
    assert explained.terms.kl["kl_background"].requires_grad
    gradients = torch.autograd.grad(explained.terms.kl["kl_background"].sum(), weights, allow_unused=True)
    assert all(gradient is None for gradient in gradients)
