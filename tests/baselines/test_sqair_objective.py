"""VIMCO against enumeration, and the importance-weighted bound against a likelihood known exactly."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from scalor.baselines.sqair.objective import bound_without, importance_weighted_bound, vimco_surrogate
from scalor.nn.distributions import Normal, log_prob_bernoulli


class Coins:
    """Two coins, the second loaded by the first; a model that scores every outcome, and its own parameter.

    q's parameters also enter the weight through -log q, as in a variational bound.
    """

    def __init__(self, seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        self.q = torch.randn(3, generator=random, dtype=torch.float64).requires_grad_()
        self.p = torch.randn(4, generator=random, dtype=torch.float64).requires_grad_()

    @property
    def parameters(self) -> list[Tensor]:
        return [self.q, self.p]

    def log_choices(self, coins: Tensor) -> Tensor:
        first, second = coins.unbind(-1)
        return log_prob_bernoulli(self.q[0].expand_as(first), first) + log_prob_bernoulli(
            self.q[1] + self.q[2] * first, second
        )

    def log_weights(self, coins: Tensor) -> Tensor:
        outcome = (2 * coins[..., 0] + coins[..., 1]).long()
        return 3 * self.p[outcome] - self.log_choices(coins)

    def all_draws(self, particles: int) -> Tensor:
        """[4^k, k, 2]: whatever the particles may draw."""
        outcomes = list(itertools.product([0.0, 1.0], repeat=2))
        return torch.tensor(list(itertools.product(outcomes, repeat=particles)), dtype=torch.float64)


def gradients(of: Tensor, coins: Coins) -> Tensor:
    return torch.cat(torch.autograd.grad(of, coins.parameters, retain_graph=True))


@pytest.mark.parametrize("particles", [2, 3, 4])
def test_the_expected_gradient_is_the_exact_gradient_of_the_expected_bound(particles: int) -> None:
    coins = Coins(particles)
    draws = coins.all_draws(particles)
    log_choices, log_weights = coins.log_choices(draws), coins.log_weights(draws)
    probability = log_choices.sum(1).exp()
    torch.testing.assert_close(probability.sum(), torch.ones_like(probability[0]))
    exact = gradients((probability * importance_weighted_bound(log_weights)).sum(), coins)
    estimate = gradients((probability.detach() * vimco_surrogate(log_weights, log_choices)).sum(), coins)
    torch.testing.assert_close(estimate, exact, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_it_varies_less_than_the_plain_score_function(seed: int) -> None:
    """Where the bound is some nats from zero, as that of any frame is: what all weights share cancels."""
    coins = Coins(seed)
    draws = coins.all_draws(3)
    log_choices, log_weights = coins.log_choices(draws), coins.log_weights(draws)
    probability = log_choices.detach().sum(1).exp()

    def variance(surrogate: Tensor) -> float:
        each = torch.stack([gradients(one, coins) for one in surrogate])
        average = (probability[:, None] * each).sum(0)
        return float((probability[:, None] * (each - average).square()).sum())

    def plain(log_weights: Tensor) -> Tensor:
        bound = importance_weighted_bound(log_weights)
        return bound + bound.detach() * log_choices.sum(1)

    vimco = variance(vimco_surrogate(log_weights, log_choices))
    assert vimco < variance(plain(log_weights - 10)) / 5
    assert variance(vimco_surrogate(log_weights - 10, log_choices)) == pytest.approx(vimco)


def test_reparameterised_latents_beside_discrete_ones_get_the_exact_gradient() -> None:
    """A coin shifts a normal whose mean is learned; noise on a fine grid stands in for the integral over it."""
    logit, shift = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True).unbind()
    noise = Normal.standard(torch.zeros((), dtype=torch.float64))
    grid = torch.linspace(-6, 6, 61, dtype=torch.float64)
    density = noise.log_prob(grid).exp()
    density = density / density.sum()
    coins = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2)), dtype=torch.float64)
    draws = [t.flatten() for t in torch.meshgrid(torch.arange(4), torch.arange(61), torch.arange(61), indexing="ij")]
    coin, one, two = coins[draws[0]], grid[draws[1]], grid[draws[2]]
    value = coin * shift + torch.stack([one, two], 1)  # [S, 2]
    # The logit itself depends on a continuous latent, as that of a later choice does.
    log_choices = log_prob_bernoulli(logit + 0.5 * shift * torch.stack([one, two], 1), coin)
    log_weights = -0.5 * (value - 1) ** 2 - log_choices
    weight = density[draws[1]] * density[draws[2]]
    probability = weight * log_choices.sum(1).exp()
    expected = (probability * importance_weighted_bound(log_weights)).sum()
    estimate = (probability.detach() * vimco_surrogate(log_weights, log_choices)).sum()
    for parameter in (logit, shift):
        (exact,) = torch.autograd.grad(expected, parameter, retain_graph=True)
        (vimco,) = torch.autograd.grad(estimate, parameter, retain_graph=True)
        torch.testing.assert_close(vimco, exact, rtol=1e-10, atol=1e-12)


def test_a_particle_has_no_say_in_its_own_baseline() -> None:
    log_weights = torch.tensor([[0.0, -1.0, 2.0]], requires_grad=True)
    for particle in range(3):
        (slope,) = torch.autograd.grad(bound_without(log_weights)[0, particle], log_weights)
        assert slope[0, particle] == 0
        assert (slope[0, [i for i in range(3) if i != particle]] > 0).all()


def test_baselines_by_hand() -> None:
    log_weights = torch.tensor([[1.0, 4.0, 16.0]]).log()
    torch.testing.assert_close(bound_without(log_weights)[0].exp(), torch.tensor([28.0, 21.0, 7.0]) / 3)


def test_weights_of_very_different_size_stay_finite() -> None:
    log_weights = torch.tensor([[-5e4, -1e3, 0.0]], requires_grad=True)
    surrogate = vimco_surrogate(log_weights, torch.zeros(1, 3, requires_grad=True))
    surrogate.sum().backward()
    assert log_weights.grad is not None
    assert torch.isfinite(surrogate).all()
    assert torch.isfinite(log_weights.grad).all()


def test_its_value_is_the_bound() -> None:
    log_weights, log_choices = torch.randn(5, 4), torch.randn(5, 4)
    torch.testing.assert_close(vimco_surrogate(log_weights, log_choices), importance_weighted_bound(log_weights))


def test_one_particle_has_no_baseline() -> None:
    with pytest.raises(AssertionError, match="no others"):
        vimco_surrogate(torch.zeros(2, 1), torch.zeros(2, 1))


def test_the_bound_rises_with_the_particles_and_stays_below_the_likelihood() -> None:
    """The latent z ~ N(0, 1) and x ~ N(z, s^2), so x ~ N(0, 1 + s^2); q is a poor guess at z given x."""
    noise, x, draws = 0.5, 1.3, 40_000
    random = torch.Generator().manual_seed(0)
    q = Normal(torch.tensor(0.6), torch.tensor(0.8))
    truth = float(Normal(torch.tensor(0.0), torch.tensor(math.hypot(1, noise))).log_prob(torch.tensor(x)))
    bounds = []
    for particles in (1, 2, 5, 20, 100):
        z = q.mean + q.std * torch.randn(draws, particles, generator=random)
        log_p = Normal.standard(z).log_prob(z) + Normal(z, torch.full_like(z, noise)).log_prob(torch.full_like(z, x))
        bounds.append(float(importance_weighted_bound(log_p - q.log_prob(z)).mean()))
    assert bounds == sorted(bounds)
    assert all(bound < truth for bound in bounds)
    assert truth - bounds[-1] < 0.01 < 0.1 < truth - bounds[0]
    # With the true posterior every single weight is the likelihood.
    posterior = Normal(torch.tensor(x / (1 + noise**2)), torch.tensor(noise / math.hypot(1, noise)))
    z = posterior.mean + posterior.std * torch.randn(10, 3, generator=random)
    log_p = Normal.standard(z).log_prob(z) + Normal(z, torch.full_like(z, noise)).log_prob(torch.full_like(z, x))
    exact = importance_weighted_bound(log_p - posterior.log_prob(z))
    torch.testing.assert_close(exact, torch.full((10,), truth))
