"""Boxes: corners, what touches the frame, and the tight box of a mask."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from scalor.kernels import paste
from scalor.model.geometry import corners, tight_box, touches_frame


def boxes(clips: int, count: int, frame: tuple[int, int], seed: int) -> Tensor:
    """Boxes of all kinds: inside, over the border, off the screen, tiny, and larger than the frame."""
    random = torch.Generator().manual_seed(seed)
    extent = torch.tensor([frame[1], frame[0]], dtype=torch.float64)
    centre = (2 * torch.rand(clips, count, 2, generator=random, dtype=torch.float64) - 0.5) * extent
    size = 0.5 + 2.5 * torch.rand(clips, count, 2, generator=random, dtype=torch.float64) ** 2 * extent
    return torch.cat([centre, size], -1)


def sample(image: Tensor, scale: tuple[Tensor, Tensor], offset: tuple[Tensor, Tensor], out: tuple[int, int]) -> Tensor:
    """`grid_sample` of one image [C, h, w] by an axis-aligned affine grid."""
    zero = torch.zeros((), dtype=image.dtype)
    theta = torch.stack(
        [torch.stack([scale[0], zero, offset[0]]), torch.stack([zero, scale[1], offset[1]])],
    )
    grid = affine_grid(theta[None], [1, image.shape[0], *out], align_corners=False)
    return grid_sample(image[None], grid, mode="bilinear", padding_mode="zeros", align_corners=False)[0]


def paste_one(glimpse: Tensor, box: Tensor, frame: tuple[int, int]) -> Tensor:
    h, w = frame
    x, y, width, height = box
    return sample(glimpse, (w / width, h / height), ((w - 2 * x) / width, (h - 2 * y) / height), frame)


def test_corners_are_half_a_size_from_the_centre() -> None:
    assert corners(torch.tensor([10.0, 20.0, 4.0, 6.0])).tolist() == [8, 17, 12, 23]


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (slice(0, 4), slice(0, 4), (10, 20, 18, 36)),
        (slice(1, 2), slice(3, 4), (16, 24, 18, 28)),
        (slice(0, 3), slice(1, 3), (12, 20, 16, 32)),
        (slice(0, 0), slice(0, 0), (10, 20, 18, 36)),
    ],
    ids=["full", "one pixel", "a part", "empty"],
)
def test_a_tight_box_spans_the_pixels_that_are_on(
    rows: slice, columns: slice, expected: tuple[float, float, float, float]
) -> None:
    mask = torch.full((1, 1, 1, 4, 4), 0.4)
    mask[..., rows, columns] = 0.6
    where = torch.tensor([[[14.0, 28.0, 8.0, 16.0]]])  # glimpse pixels of 2 by 4
    assert tight_box(mask, where)[0, 0].tolist() == list(expected)


def test_a_tight_box_spans_scattered_pixels() -> None:
    mask = torch.zeros(1, 1, 1, 4, 4)
    mask[0, 0, 0, 0, 2] = mask[0, 0, 0, 2, 1] = 1
    assert tight_box(mask, torch.tensor([[[2.0, 2.0, 4.0, 4.0]]]))[0, 0].tolist() == [1, 0, 3, 3]


def test_a_tight_box_lies_inside_its_box() -> None:
    where = boxes(2, 30, (16, 16), seed=8)
    box, tight = corners(where), tight_box(torch.rand(2, 30, 1, 6, 6), where)
    assert (tight[..., :2] >= box[..., :2] - 1e-9).all()
    assert (tight[..., 2:] <= box[..., 2:] + 1e-9).all()
    assert (tight[..., 2:] > tight[..., :2]).all()


@pytest.mark.parametrize(
    ("centre", "touches"),
    [
        ((10.0, 5.0), True),
        ((-1.9, 5.0), True),
        ((-2.0, 5.0), False),
        ((21.9, 5.0), True),
        ((22.0, 5.0), False),
        ((10.0, -2.9), True),
        ((10.0, -3.0), False),
        ((10.0, 12.9), True),
        ((10.0, 13.0), False),
    ],
)
def test_a_box_touches_the_frame_while_any_part_is_inside(centre: tuple[float, float], touches: bool) -> None:
    assert bool(touches_frame(torch.tensor([*centre, 4.0, 6.0]), (10, 20))) is touches


def test_a_box_that_draws_touches_the_frame() -> None:
    """What is declared gone must be invisible; hats reach half a glimpse pixel beyond the box, hence the margin."""
    where = boxes(1, 200, (16, 16), seed=2)
    drawn = paste(torch.ones(200, 1, 1, 8, 8, dtype=torch.float64), where[0][:, None], (16, 16)).amax((1, 2, 3))
    assert touches_frame(where[0], (16, 16))[drawn > 0.5].all()
