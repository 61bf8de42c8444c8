"""The schedule as a pure function of the step: endpoints, monotony, lengths and the cooldown."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalor.config import TrainConfig
from scalor.nn.schedule import anneals, progress

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
