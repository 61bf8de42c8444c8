"""Crops and pastes are bilinear sampling: the same numbers as `grid_sample`, without a canvas per object."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from scalor.kernels.plain_torch import crop_local, crop_matmul, paste_local, paste_matmul, paste_window
from tests.kernels.boxes import all_kinds, sized

FRAMES = [(16, 16), (9, 23), (31, 12), (1, 7)]
CROPS = [crop_matmul, crop_local]


def paste_in_whole_windows(glimpses: Tensor, where: Tensor, frame: tuple[int, int]) -> Tensor:
    return paste_local(glimpses, where, frame, frame)


PASTES = [paste_matmul, paste_in_whole_windows]


def sample(image: Tensor, scale: tuple[Tensor, Tensor], offset: tuple[Tensor, Tensor], out: tuple[int, int]) -> Tensor:
    """`grid_sample` of one image [C, h, w] by an axis-aligned affine grid."""
    zero = torch.zeros((), dtype=image.dtype)
    theta = torch.stack([torch.stack([scale[0], zero, offset[0]]), torch.stack([zero, scale[1], offset[1]])])
    grid = affine_grid(theta[None], [1, image.shape[0], *out], align_corners=False)
    return grid_sample(image[None], grid, mode="bilinear", padding_mode="zeros", align_corners=False)[0]


def crop_one(image: Tensor, box: Tensor, samples: int) -> Tensor:
    h, w = image.shape[-2:]
    x, y, width, height = box
    return sample(image, (width / w, height / h), (2 * x / w - 1, 2 * y / h - 1), (samples, samples))


def paste_one(glimpse: Tensor, box: Tensor, frame: tuple[int, int]) -> Tensor:
    h, w = frame
    x, y, width, height = box
    return sample(glimpse, (w / width, h / height), ((w - 2 * x) / width, (h - 2 * y) / height), frame)


@pytest.mark.parametrize("crop", CROPS)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("samples", [1, 5, 8])
def test_a_crop_is_a_grid_sample(crop: Callable[..., Tensor], frame: tuple[int, int], samples: int) -> None:
    where = all_kinds(2, 25, frame, seed=samples)
    image = torch.rand(2, 3, *frame, dtype=torch.float64)
    expected = torch.stack([torch.stack([crop_one(image[b], box, samples) for box in where[b]]) for b in range(2)])
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(crop(image, where, samples), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("paste", PASTES)
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("samples", [1, 5, 8])
def test_a_paste_is_the_sum_of_grid_samples(paste: Callable[..., Tensor], frame: tuple[int, int], samples: int) -> None:
    where = all_kinds(2, 12, frame, seed=samples)
    glimpses = torch.rand(2, 12, 2, samples, samples, dtype=torch.float64)
    each = [[paste_one(g, box, frame) for g, box in zip(glimpses[b], where[b], strict=True)] for b in range(2)]
    expected = torch.stack([torch.stack(layers).sum(0) for layers in each])
    torch.testing.assert_close(paste(glimpses, where, frame), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("crop", CROPS)
@pytest.mark.parametrize("paste", PASTES)
def test_a_crop_of_the_whole_frame_is_the_frame(crop: Callable[..., Tensor], paste: Callable[..., Tensor]) -> None:
    image = torch.rand(1, 3, 8, 8)
    whole = torch.tensor([[[4.0, 4.0, 8.0, 8.0]]])
    torch.testing.assert_close(crop(image, whole, 8)[:, 0], image)
    torch.testing.assert_close(paste(image[:, None], whole, (8, 8)), image)


@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e-3, 1e3, 1e30, 1e38])
def test_any_positive_size_gives_finite_numbers(size: float) -> None:
    where = torch.tensor([[[4.3, 3.9, size, 2.0], [3.0, 5.0, 2.0, size]]])
    for crop in CROPS:
        assert crop(torch.rand(1, 3, 8, 8), where, 4).isfinite().all()
    for paste in PASTES:
        assert paste(torch.rand(1, 2, 3, 4, 4), where, (8, 8)).isfinite().all()


@pytest.mark.parametrize("crop", CROPS)
def test_gradients_of_a_crop_are_right(crop: Callable[..., Tensor]) -> None:
    image = torch.rand(1, 2, 6, 7, dtype=torch.float64, requires_grad=True)
    where = all_kinds(1, 4, (6, 7), seed=3).requires_grad_()
    assert torch.autograd.gradcheck(lambda i, w: crop(i, w, 4), (image, where))


def test_gradients_of_a_paste_are_right() -> None:
    glimpses = torch.rand(1, 3, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    where = all_kinds(1, 3, (6, 7), seed=4).requires_grad_()
    assert torch.autograd.gradcheck(lambda g, w: paste_matmul(g, w, (6, 7)), (glimpses, where))


def test_gradients_of_a_paste_in_windows_are_right() -> None:
    frame = (19, 17)
    glimpses = torch.rand(1, 3, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    where = sized(1, 3, frame, (1.0, 4.0), seed=4).requires_grad_()
    window = paste_window(where, 4, frame)
    assert window is not None
    assert max(window) < 8
    assert torch.autograd.gradcheck(lambda g, w: paste_local(g, w, frame, window), (glimpses, where))


@pytest.mark.parametrize("samples", [3, 8])
@pytest.mark.parametrize("frame", [(64, 40), (33, 75)])
def test_windows_lose_nothing(frame: tuple[int, int], samples: int) -> None:
    where = sized(2, 300, frame, (0.2, 11.0), seed=samples)
    glimpses = torch.rand(2, 300, 2, samples, samples, dtype=torch.float64)
    window = paste_window(where, samples, frame)
    assert window is not None
    expected = paste_matmul(glimpses, where, frame)
    torch.testing.assert_close(paste_local(glimpses, where, frame, window), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("width", "height", "window"),
    [
        (6.0, 6.0, (8, 8)),
        (6.0, 12.0, (15, 8)),
        (28.0, 28.0, None),
        (1e38, 1.0, None),
        (float("inf"), 1.0, None),
        (float("nan"), 1.0, None),
    ],
)
def test_a_window_holds_the_largest_box_or_is_not_worth_it(
    width: float, height: float, window: tuple[int, int] | None
) -> None:
    where = torch.tensor([[[32.0, 32.0, 1.0, 1.0], [32.0, 32.0, width, height]]])
    assert paste_window(where, 8, (64, 64)) == window


def test_no_box_needs_no_window() -> None:
    assert paste_window(torch.rand(2, 0, 4), 8, (64, 64)) is None
    assert not paste_matmul(torch.rand(2, 0, 3, 8, 8), torch.rand(2, 0, 4), (16, 16)).any()


def test_a_box_that_is_not_a_number_is_seen() -> None:
    where = torch.tensor([[[float("nan"), 8.0, 4.0, 4.0]]])
    assert paste_local(torch.ones(1, 1, 1, 4, 4), where, (16, 16), (6, 6)).isnan().any()
    for crop in CROPS:
        assert crop(torch.ones(1, 1, 16, 16), where, 4).isnan().any()
