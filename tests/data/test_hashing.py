"""Draws depend on what they are for and on nothing else, and they are spread evenly."""

import pytest
import torch

from scalor.data.hashing import between, fold, key, mix, uniform, whole
from scalor.errors import InputError


def test_a_draw_does_not_depend_on_its_neighbours_in_the_batch() -> None:
    together = uniform(key(3, "train", torch.arange(50)), 4)
    alone = torch.cat([uniform(key(3, "train", torch.tensor([index])), 4) for index in range(50)])
    assert torch.equal(together, alone)


def test_a_draw_has_one_known_value_on_every_machine() -> None:
    keys = fold(key(7, "test", torch.tensor([0, 1, 2**33])), 5)
    assert mix(12345) == int(mix(torch.tensor(12345)))
    assert keys.tolist() == [2859034819, 3610045949, 2859034819]


def test_seeds_splits_indices_objects_and_draws_all_matter() -> None:
    index = torch.arange(1000)
    base = key(0, "train", index)
    others = (key(1, "train", index), key(0, "test", index), key(0, "train", index + 1000), fold(base, 0))
    first = uniform(base, 0)
    for different in (*(uniform(other, 0) for other in others), uniform(base, 1)):
        assert (first == different).float().mean() < 0.01
        assert torch.corrcoef(torch.stack((first, different)))[0, 1].abs() < 0.12


def test_mixing_is_one_to_one() -> None:
    values = torch.arange(200_000)
    assert len(set(mix(values).tolist())) == len(values)
    assert len(set(key(0, "train", values).tolist())) == len(values)


def test_draws_are_uniform() -> None:
    draws = uniform(fold(key(0, "train", torch.arange(400)), torch.arange(100)[:, None]), 2)
    assert draws.min() >= 0
    assert draws.max() < 1
    counts = torch.histc(draws, 20, 0, 1)  # 2,000 expected in each, 45 either way by chance
    assert (counts - 2000).abs().max() < 200
    assert abs(between(key(0, "test", torch.arange(20_000)), 1, 2.0, 4.0).mean() - 3) < 0.02


def test_whole_draws_reach_every_value_and_no_other() -> None:
    draws = whole(key(0, "train", torch.arange(2000)), 0, 7)
    assert set(draws.tolist()) == set(range(7))


def test_an_unknown_split_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="split is 'valid': choose train or test"):
        key(0, "valid", torch.arange(2))
