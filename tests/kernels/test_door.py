"""One door: whatever does the work, the same numbers come out, in the promised dtype."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from scalor.kernels import Backend, crop, forced, paste, plain_torch
from tests.kernels.boxes import all_kinds, sized

FRAME = (40, 48)
BACKENDS: list[Backend] = ["matmul", "local"]


@pytest.fixture(params=["small", "all kinds"])
def where(request: pytest.FixtureRequest) -> Tensor:
    boxes = sized(2, 9, FRAME, (2.0, 6.0), seed=1) if request.param == "small" else all_kinds(2, 9, FRAME, seed=1)
    return boxes.float()


@pytest.mark.parametrize("backend", [None, *BACKENDS])
def test_every_version_gives_the_same_numbers(backend: Backend | None, where: Tensor) -> None:
    image, glimpses = torch.rand(2, 3, *FRAME), torch.rand(2, 9, 5, 8, 8)
    if backend is None:
        read, drawn = crop(image, where, 8), paste(glimpses, where, FRAME)
    else:
        with forced(backend):
            read, drawn = crop(image, where, 8), paste(glimpses, where, FRAME)
    # Float32 against float64: positions of some 50 pixels are rounded at the sixth digit.
    torch.testing.assert_close(
        read.double(), plain_torch.crop_matmul(image.double(), where.double(), 8), rtol=0, atol=2e-5
    )
    expected = plain_torch.paste_matmul(glimpses.double(), where.double(), FRAME)
    torch.testing.assert_close(drawn.double(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_crop_keeps_the_dtype_of_its_image_and_a_paste_is_wide(backend: Backend) -> None:
    where = sized(1, 4, FRAME, (2.0, 6.0), seed=1).float()
    kinds = [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64, torch.float64)]
    for narrow, wide in kinds:
        with forced(backend):
            assert crop(torch.rand(1, 3, *FRAME, dtype=narrow), where, 4).dtype == narrow
            assert paste(torch.rand(1, 4, 3, 4, 4, dtype=narrow), where, FRAME).dtype == wide


@pytest.mark.parametrize("backend", BACKENDS)
def test_autocast_changes_nothing(backend: Backend) -> None:
    where = sized(1, 4, FRAME, (2.0, 6.0), seed=1).float()
    image, glimpses = torch.rand(1, 3, *FRAME), torch.rand(1, 4, 3, 4, 4)
    with forced(backend):
        read, drawn = crop(image, where, 4), paste(glimpses, where, FRAME)
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(crop(image, where, 4), read)
            assert torch.equal(paste(glimpses, where, FRAME), drawn)


def test_no_object_and_no_clip_draw_nothing() -> None:
    for clips, count in [(2, 0), (0, 3), (0, 0)]:
        drawn = paste(torch.rand(clips, count, 3, 4, 4), torch.rand(clips, count, 4), FRAME)
        assert drawn.shape == (clips, 3, *FRAME)
        assert not drawn.any()
        assert crop(torch.rand(clips, 3, *FRAME), torch.rand(clips, count, 4), 4).shape == (clips, count, 3, 4, 4)


@pytest.mark.parametrize(
    "work",
    [
        lambda image, glimpses, where: crop(image, where, 4),
        lambda image, glimpses, where: paste(glimpses, where, FRAME),
    ],
    ids=["crop", "paste"],
)
def test_both_compile_into_one_graph(work: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    where = sized(1, 4, FRAME, (2.0, 6.0), seed=1).float()
    inputs = (torch.rand(1, 3, *FRAME), torch.rand(1, 4, 3, 4, 4), where)
    compiled = torch.compile(work, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs), work(*inputs))


def test_a_forced_version_is_let_go_again() -> None:
    from scalor import kernels

    with pytest.raises(RuntimeError, match="on purpose"), forced("matmul"), forced("local"):
        raise RuntimeError("on purpose")
    assert kernels._forced is None
