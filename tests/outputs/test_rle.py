"""Run lengths say what the mask says, in the letters that COCO's own tools write."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from scalor.outputs import rle

masks = arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12))
circle = np.add.outer((np.arange(40) - 20) ** 2, (np.arange(60) - 30) ** 2) < 250
stripes = np.add.outer(np.arange(7), np.arange(300)) % 150 < 75


@given(masks)
def test_a_mask_comes_back_as_it_went(mask: np.ndarray) -> None:
    assert np.array_equal(rle.decode(rle.encode(mask), mask.shape), mask)


@given(masks)
def test_runs_are_those_counted_pixel_by_pixel(mask: np.ndarray) -> None:
    counted = [(value, len(list(run))) for value, run in groupby(mask.T.ravel().tolist())]
    zeros_first = [0] * counted[0][0] + [length for _, length in counted]
    assert rle.runs(mask).tolist() == zeros_first


@given(st.lists(st.integers(0, 2**40)))
def test_counts_of_any_size_come_back_from_their_text(counts: list[int]) -> None:
    assert rle.from_text(rle.to_text(counts)) == counts


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (np.zeros((3, 4), bool), "<"),
        (np.ones((3, 4), bool), "0<"),
        (np.eye(5, dtype=bool), "0150000000"),
        (circle, "Xc09l06L2M4M2N2O0O2N2O000O2O0000000000000001N10001N2N101N2N3L3N4JSa0"),
        (stripes, "0Y?1l@1O1O1O1OZ?0f@1O1O1O1OZ?0f@1O1O1O1OZ?0f@1O1O1O1O1"),
    ],
)
def test_the_text_is_that_of_pycocotools(mask: np.ndarray, text: str) -> None:
    assert rle.encode(mask) == text
