"""The random variables against their definitions: Monte Carlo, sums to one, and the three estimators."""

import math

import pytest
import torch
from torch import Tensor

from scalor.nn.distributions import (
    REJECTED_PRESENCE,
    Exact,
    Mode,
    Noise,
    Normal,
    Relaxed,
    kl_bernoulli,
    kl_normal,
    log_prob_bernoulli,
    logit,
    positive,
)

DRAWS = 20_000
LOGITS = torch.tensor([-8.8, -3.0, -0.4, 0.0, 1.2, 4.0, 8.8], dtype=torch.float64)
Q = Normal(torch.tensor([0.0, 1.0, -2.0, 0.3]).double(), torch.tensor([1.0, 0.2, 1.5, 0.05]).double())
P = Normal(torch.tensor([0.0, -0.5, -1.0, 0.3]).double(), torch.tensor([1.0, 1.0, 0.7, 2.0]).double())


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def many(normal: Normal) -> Normal:
    return Normal(normal.mean.expand(DRAWS, -1), normal.std.expand(DRAWS, -1))


def assert_mean(draws: Tensor, expected: Tensor) -> None:
    """Within five standard errors of the mean over the first axis."""
    error = draws.std(0) / math.sqrt(len(draws))
    assert ((draws.mean(0) - expected).abs() <= 5 * error + 1e-9).all(), (draws.mean(0), expected, error)


def test_log_prob_is_that_of_a_normal() -> None:
    value = torch.randn(5, 4).double()
    expected = torch.distributions.Normal(Q.mean, Q.std).log_prob(value)
    torch.testing.assert_close(Q.log_prob(value), expected)


def test_kl_of_normals_is_the_mean_log_ratio() -> None:
    value = many(Q).sample()
    assert_mean(Q.log_prob(value) - P.log_prob(value), kl_normal(Q, P))


def test_kl_of_bernoullis_is_the_mean_log_ratio() -> None:
    q, p = torch.meshgrid(LOGITS, LOGITS, indexing="ij")
    chance = q.sigmoid()
    expected = chance * (log_prob_bernoulli(q, torch.ones_like(q)) - log_prob_bernoulli(p, torch.ones_like(p)))
    expected += (1 - chance) * (log_prob_bernoulli(q, torch.zeros_like(q)) - log_prob_bernoulli(p, torch.zeros_like(p)))
    torch.testing.assert_close(kl_bernoulli(q, p), expected, rtol=1e-9, atol=1e-9)
    middle = (q.abs() < 5) & (p.abs() < 5)  # rarer values hardly ever come up in a few draws
    value = (torch.rand(DRAWS, *q.shape) < chance).double()
    ratio = log_prob_bernoulli(q, value) - log_prob_bernoulli(p, value)
    assert_mean(ratio[:, middle], kl_bernoulli(q, p)[middle])


def test_kl_is_zero_between_equals_and_positive_otherwise() -> None:
    assert not kl_normal(Q, Q).any()
    assert not kl_bernoulli(LOGITS, LOGITS).abs().gt(1e-12).any()
    q, p = torch.meshgrid(LOGITS, LOGITS, indexing="ij")
    assert (kl_bernoulli(q, p)[q != p] > 0).all()
    assert (kl_normal(many(Q), Normal(torch.randn(DRAWS, 4).double(), many(P).std)) >= 0).all()


def test_bernoulli_probabilities_sum_to_one() -> None:
    zero, one = (log_prob_bernoulli(LOGITS, torch.full_like(LOGITS, v)).exp() for v in (0.0, 1.0))
    torch.testing.assert_close(zero + one, torch.ones_like(LOGITS))
    torch.testing.assert_close(one, LOGITS.sigmoid())


@pytest.mark.parametrize("chance", [REJECTED_PRESENCE, 1e-4, 0.1, 0.5, 0.99])
def test_the_logit_of_a_number_and_of_a_tensor_agree(chance: float) -> None:
    like = torch.zeros(2, 3, dtype=torch.float64)
    number, tensor = logit(chance, like), logit(torch.tensor(chance, dtype=torch.float64), like)
    assert number.shape == tensor.shape == like.shape
    torch.testing.assert_close(number, tensor)
    torch.testing.assert_close(number.sigmoid(), torch.full_like(like, chance))


def test_a_standard_deviation_is_always_positive() -> None:
    raw = torch.linspace(-200, 200, 401)
    assert (positive(raw) > 0).all()
    assert (positive(raw).diff() >= 0).all()
    assert 0.2 < float(positive(torch.zeros(()))) < 0.4


@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0, torch.tensor(2.0)])
def test_relaxed_presence_lies_between_0_and_1(temperature: float | Tensor) -> None:
    draws = Relaxed(temperature).presence(LOGITS.float().expand(DRAWS, -1))
    assert ((draws >= 0) & (draws <= 1)).all()
    inner = draws[:, 2:5]  # moderate logits; beyond them a float rounds to 0 or 1
    if float(temperature) >= 1:
        assert ((inner > 0) & (inner < 1)).all()


def test_cold_relaxed_presence_comes_up_with_its_probability() -> None:
    draws = Relaxed(0.01).presence(LOGITS[1:6].expand(DRAWS, -1))
    assert_mean(draws, LOGITS[1:6].sigmoid())
    assert ((draws < 0.01) | (draws > 0.99)).double().mean() > 0.95


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_relaxed_presence_is_above_one_half_with_its_probability(temperature: float) -> None:
    """At any temperature: the relaxation bends values, it does not move the middle."""
    draws = Relaxed(temperature).presence(LOGITS[1:6].expand(DRAWS, -1))
    assert_mean((draws > 0.5).double(), LOGITS[1:6].sigmoid())


def test_gradients_pass_through_relaxed_draws() -> None:
    mean, std, logits = (torch.full((3,), 0.5, requires_grad=True) for _ in range(3))
    relaxed = Relaxed(0.5)
    (relaxed.normal(Normal(mean, std)).sum() + relaxed.presence(logits).sum()).backward()
    for leaf in (mean, std, logits):
        assert leaf.grad is not None
        assert leaf.grad.abs().min() > 0


@pytest.mark.parametrize("estimator", [Relaxed(1.0), Exact()])
def test_draws_have_the_mean_and_spread_of_their_normal(estimator: Relaxed | Exact) -> None:
    draws = estimator.normal(many(Q))
    assert_mean(draws, Q.mean)
    torch.testing.assert_close(draws.std(0), Q.std, rtol=0.05, atol=0)


def drawn(count: int, clips: int = 3, frames: int = 2) -> Noise:
    return Noise(torch.randn(frames, clips, count), torch.rand(frames, clips, count))


def test_noise_is_dealt_in_order_and_each_number_once() -> None:
    noise = drawn(12)
    for frame in (0, 1, 0):  # a frame's noise can be asked for again
        share = noise.at(frame)
        normals = [share.normal(torch.empty(3, *shape)) for shape in ((5,), (2, 3), (1, 1))]
        uniforms = [share.uniform(torch.empty(3, 4)) for _ in range(3)]
        assert [part.shape for part in normals] == [(3, 5), (3, 2, 3), (3, 1, 1)]
        assert torch.equal(torch.cat([part.flatten(1) for part in normals], 1), noise.normals[frame])
        assert torch.equal(torch.cat(uniforms, 1), noise.uniforms[frame])


def test_more_noise_than_was_drawn_is_refused() -> None:
    share = drawn(7).at(0)
    share.normal(torch.empty(3, 2, 3))
    for ask in (share.normal, share.uniform):
        with pytest.raises(AssertionError, match="more noise is asked for than was drawn"):
            ask(torch.empty(3, 8))
    with pytest.raises(AssertionError, match="more noise"):
        share.normal(torch.empty(3, 2))
    assert share.normal(torch.empty(3, 1)).shape == (3, 1)
    with pytest.raises(IndexError):
        drawn(7).at(2)


def test_the_same_noise_gives_the_same_draws() -> None:
    noise, q, logits = drawn(7), Normal(torch.randn(3, 7), torch.rand(3, 7)), torch.randn(3, 7)
    draws = []
    for frame in (0, 0, 1):
        relaxed = Relaxed(0.5, noise).at(frame)
        draws.append((relaxed.normal(q), relaxed.presence(logits)))
    for first, second, other in zip(*draws, strict=True):
        assert torch.equal(first, second)
        assert not (first == other).any()
    assert torch.equal(draws[0][0], q.mean + q.std * noise.normals[0])


@pytest.mark.parametrize("temperature", [0.3, 1.0, torch.tensor(2.0)])
def test_noise_drawn_beforehand_is_distributed_like_noise_drawn_when_needed(temperature: float | Tensor) -> None:
    noise = Noise(torch.randn(1, DRAWS, 4).double(), torch.rand(1, DRAWS, 7).double())
    dealt, plain = Relaxed(temperature, noise).at(0), Relaxed(temperature).at(0)
    draws, other = dealt.normal(many(Q)), plain.normal(many(Q))
    assert draws.shape == other.shape
    assert_mean(draws, Q.mean)
    torch.testing.assert_close(draws.std(0), Q.std, rtol=0.05, atol=0)
    logits = LOGITS.expand(DRAWS, -1)
    here, there = dealt.presence(logits), plain.presence(logits)
    assert here.shape == there.shape
    assert_mean(here - there, torch.zeros(7))
    assert_mean(here.square() - there.square(), torch.zeros(7))


def test_noise_of_exactly_0_and_1_gives_finite_presence() -> None:
    noise = Noise(torch.zeros(1, 2, 0), torch.tensor([[[0.0], [1.0]]]))
    logits = torch.zeros(2, 1, requires_grad=True)
    presence = Relaxed(0.5, noise).at(0).presence(logits)
    (gradient,) = torch.autograd.grad(presence.sum(), logits)
    assert presence[0] < 0.01
    assert presence[1] > 0.99
    assert gradient.isfinite().all()


def test_the_mode_is_the_mean_and_the_probability() -> None:
    assert torch.equal(Mode().normal(Q), Q.mean)
    assert torch.equal(Mode().presence(LOGITS), LOGITS.sigmoid())


def test_exact_presence_is_0_or_1_with_its_probability() -> None:
    draws = Exact().presence(LOGITS[1:6].expand(DRAWS, -1))
    assert set(draws.unique().tolist()) == {0.0, 1.0}
    assert_mean(draws, LOGITS[1:6].sigmoid())


def test_exact_costs_average_to_the_kl() -> None:
    exact, q, p = Exact(), many(Q), many(P)
    assert_mean(exact.normal_cost(q, p, exact.normal(q)), kl_normal(Q, P))
    logits, prior = LOGITS[1:6].expand(DRAWS, -1), torch.zeros(DRAWS, 5).double() - 1
    assert_mean(exact.presence_cost(logits, prior, exact.presence(logits)), kl_bernoulli(logits[0], prior[0]))


@pytest.mark.parametrize("estimator", [Relaxed(1.0), Mode()])
def test_analytic_costs_are_kl_divergences_whatever_was_drawn(estimator: Relaxed | Mode) -> None:
    for value in (torch.zeros(4), torch.randn(4)):
        assert torch.equal(estimator.normal_cost(Q, P, value), kl_normal(Q, P))
    prior = torch.full_like(LOGITS, -1.0)
    assert torch.equal(estimator.presence_cost(LOGITS, prior, torch.rand(7)), kl_bernoulli(LOGITS, prior))


def test_a_rejected_proposal_pays_as_if_it_should_have_stayed_silent() -> None:
    prior = torch.full_like(LOGITS, -2.0)
    paid = Mode().presence_cost(LOGITS, prior, LOGITS) + Mode().rejection_cost(LOGITS, prior)
    torch.testing.assert_close(paid, kl_bernoulli(LOGITS, logit(REJECTED_PRESENCE, LOGITS)))
    assert not Exact().rejection_cost(LOGITS, prior).any()


def test_only_exact_charges_a_rejected_proposal_for_its_latents() -> None:
    proposed, accepted = torch.ones(2), torch.tensor([1.0, 0.0])
    assert torch.equal(Exact().charged(proposed, accepted), proposed)
    assert torch.equal(Mode().charged(proposed, accepted), accepted)
    assert torch.equal(Relaxed(1.0).charged(proposed, accepted), accepted)


def test_a_sure_proposal_that_is_rejected_pays_a_lot() -> None:
    """So much that discovery learns to stay silent where propagation explains what is seen."""
    sure, prior = torch.full((1,), 2.0), torch.full((1,), -2.0)
    paid = Mode().presence_cost(sure, prior, sure) + Mode().rejection_cost(sure, prior)
    assert float(paid) > 15  # nats
