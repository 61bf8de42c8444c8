"""The histogram's median against the exact one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalor.health.facts import Tally


def test_nothing_counted_has_no_median() -> None:
    assert Tally().median() is None


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=99).filter(lambda values: len(values) % 2 == 1))
def test_the_median_is_right_to_a_few_hundredths(values: list[float]) -> None:
    tally = Tally()
    tally.add(np.array(values))
    assert tally.median() == pytest.approx(np.median(values), rel=0.03)


def test_a_weight_counts_as_often() -> None:
    weighted, repeated = Tally(), Tally()
    weighted.add(np.array([2.0, 9.0]), np.array([1.0, 4.0]))
    repeated.add(np.array([2.0, 9.0, 9.0, 9.0, 9.0]))
    assert np.array_equal(weighted.weight, repeated.weight)


def test_parts_add_up_to_the_whole() -> None:
    values = np.random.default_rng(0).lognormal(size=50)
    whole, parts = Tally(), Tally()
    whole.add(values)
    parts.add(values[:20])
    parts.add(values[20:])
    assert np.array_equal(whole.weight, parts.weight)


def test_numbers_beyond_its_range_are_counted_at_its_ends() -> None:
    tally = Tally()
    tally.add(np.array([0.0, 0.0, 1e30]))
    assert tally.total == 3
    assert tally.median() == pytest.approx(2**-12)
