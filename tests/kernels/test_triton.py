"""The Triton programs draw and read what the reference does, and send the same gradients back."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tests.kernels.boxes import all_kinds, sized

pytest.importorskip("triton")

from scalor.kernels import crop, forced, paste, plain_torch, triton_operators

Frame = tuple[int, int]


class Case(NamedTuple):
    where: Tensor
    channels: int
    samples: int
    frame: Frame


CASES = {
    "odd sizes": Case(all_kinds(2, 4, (11, 13), seed=1), 3, 12, (11, 13)),
    "several tiles": Case(sized(2, 2, (9, 17), (7.0, 12.0), seed=2), 5, 16, (9, 17)),
    "one object": Case(sized(1, 1, (9, 8), (4.0, 6.0), seed=3), 1, 16, (9, 8)),
    "heavy overlap": Case(torch.tensor([[4.1, 5.2, 6.3, 5.4]], dtype=torch.float64).repeat(1, 5, 1), 5, 4, (8, 10)),
    "smaller than a pixel": Case(sized(1, 12, (5, 6), (0.1, 0.9), seed=4), 3, 4, (5, 6)),
    "larger than the frame": Case(sized(1, 3, (7, 9), (12.0, 40.0), seed=5), 5, 12, (7, 9)),
    "on the pixel grid": Case(torch.tensor([[[5.0, 4.0, 4.0, 4.0], [6.0, 3.0, 8.0, 2.0]]]).double(), 2, 4, (8, 11)),
    "a narrow frame": Case(all_kinds(1, 4, (1, 9), seed=6), 1, 4, (1, 9)),
    "many channels": Case(sized(1, 2, (6, 6), (2.0, 5.0), seed=8), 37, 4, (6, 6)),
}


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    chosen: Case = request.param
    return chosen


@pytest.fixture(autouse=True)
def poisoned() -> Iterator[None]:
    """Memory that a program forgets to write holds not-a-number."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


def differentiated(work: Callable[..., Tensor], inputs: list[Tensor], pull: Tensor) -> list[Tensor]:
    """The result, and what `pull` on it sends to each input."""
    leaves = [value.detach().clone().requires_grad_() for value in inputs]
    result = work(*leaves)
    return [result.detach(), *torch.autograd.grad(result, leaves, pull.to(result))]


def assert_agree(names: list[str], found: list[Tensor], expected: list[Tensor], share: float = 1e-5) -> None:
    """Compare errors with the largest number, as sums of terms of both signs round.

    1e-5: positions of some ten pixels, in float32, times slopes of some ten samples a pixel.
    """
    for name, one, other in zip(names, found, expected, strict=True):
        error = (one.double().cpu() - other.cpu()).abs().max()
        assert error <= share * other.abs().max() + 1e-9, f"{name}: {error:.1e} of {other.abs().max():.1e}"


def test_a_paste_and_its_gradients_are_those_of_the_reference(case: Case, device: torch.device) -> None:
    where, c, p, frame = case
    glimpses = torch.randn(*where.shape[:2], c, p, p)
    pull = torch.randn(where.shape[0], c, *frame)
    expected = differentiated(
        lambda g, w: plain_torch.paste_matmul(g, w, frame), [glimpses.double(), where.float().double()], pull
    )
    with forced("triton"):
        found = differentiated(
            lambda g, w: paste(g, w, frame), [glimpses.to(device), where.float().to(device)], pull.to(device)
        )
    if frame[0] > 1 and not aligned(where):
        assert all(value.any() for value in expected)
    count = 2 if aligned(where) else 3  # at a kink any slope between those of either side is right
    assert_agree(["canvas", "to glimpses", "to where"][:count], found[:count], expected[:count])


def test_a_crop_and_its_gradients_are_those_of_the_reference(case: Case, device: torch.device) -> None:
    where, c, p, frame = case
    image = torch.randn(where.shape[0], c, *frame)
    pull = torch.randn(*where.shape[:2], c, p, p)
    expected = differentiated(
        lambda i, w: plain_torch.crop_matmul(i, w, p), [image.double(), where.float().double()], pull
    )
    with forced("triton"):
        found = differentiated(
            lambda i, w: crop(i, w, p), [image.to(device), where.float().to(device)], pull.to(device)
        )
    count = 2 if aligned(where) else 3
    assert_agree(["glimpses", "to image", "to where"][:count], found[:count], expected[:count])


def aligned(where: Tensor) -> bool:
    return bool((where == where.round()).all())


def test_at_a_kink_the_slope_is_that_of_one_side(device: torch.device) -> None:
    where, c, p, frame = CASES["on the pixel grid"]
    glimpses, pull = torch.randn(1, 2, c, p, p), torch.randn(1, c, *frame)
    image, pull_on_crop = torch.randn(1, c, *frame), torch.randn(1, 2, c, p, p)
    sides = [where + 1e-6 * torch.tensor([1.0, 1.0, 0, 0]), where - 1e-6 * torch.tensor([1.0, 1.0, 0, 0])]
    with forced("triton"):
        on_where = where.float().to(device)
        pasted = differentiated(lambda g, w: paste(g, w, frame), [glimpses.to(device), on_where], pull.to(device))
        read = differentiated(lambda i, w: crop(i, w, p), [image.to(device), on_where], pull_on_crop.to(device))
    for work, values, pulled, found in [
        (lambda g, w: plain_torch.paste_matmul(g, w, frame), glimpses, pull, pasted[2]),
        (lambda i, w: plain_torch.crop_matmul(i, w, p), image, pull_on_crop, read[2]),
    ]:
        slopes = torch.stack([differentiated(work, [values.double(), side], pulled)[2] for side in sides])
        nearest = (slopes - found.cpu()).abs().amin(0)[..., :2]
        assert nearest.max() < 1e-3


def test_more_boxes_than_a_program_holds_at_once(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = (8, 8)
    where = sized(1, 7, frame, (2.0, 5.0), seed=7).float()
    glimpses, image = torch.randn(1, 7, 1, 4, 4), torch.randn(1, 1, *frame)
    monkeypatch.setattr(triton_operators, "HELD", 2)
    with forced("triton"):
        drawn = paste(glimpses.to(device), where.float().to(device), frame)
        found = differentiated(
            lambda i, w: crop(i, w, 4), [image.to(device), where.float().to(device)], glimpses.to(device)
        )
    expected = differentiated(
        lambda i, w: plain_torch.crop_matmul(i, w, 4), [image.double(), where.float().double()], glimpses
    )
    assert_agree(["glimpses", "to image", "to where"], found, expected)
    assert_agree(["canvas"], [drawn], [plain_torch.paste_matmul(glimpses.double(), where.float().double(), frame)])


def test_bfloat16_comes_in_and_only_a_paste_is_wide(device: torch.device) -> None:
    where, c, p, frame = CASES["several tiles"]
    glimpses = torch.randn(*where.shape[:2], c, p, p).bfloat16()
    image = torch.randn(where.shape[0], c, *frame).bfloat16()
    pull, pull_on_crop = torch.randn(where.shape[0], c, *frame), torch.randn_like(glimpses)
    box = where.float()
    with forced("triton"):
        pasted = differentiated(lambda g, w: paste(g, w, frame), [glimpses.to(device), box.to(device)], pull.to(device))
        read = differentiated(lambda i, w: crop(i, w, p), [image.to(device), box.to(device)], pull_on_crop.to(device))
    assert [value.dtype for value in pasted] == [torch.float32, torch.bfloat16, torch.float32]
    assert [value.dtype for value in read] == [torch.bfloat16, torch.bfloat16, torch.float32]
    expected = differentiated(
        lambda g, w: plain_torch.paste_matmul(g, w, frame), [glimpses.double(), box.double()], pull
    )
    assert_agree(["canvas", "to where"], pasted[::2], expected[::2])
    assert_agree(["to glimpses"], pasted[1:2], expected[1:2], share=2**-7)  # eight bits, which the interpreter cuts off
    expected = differentiated(
        lambda i, w: plain_torch.crop_matmul(i, w, p), [image.double(), box.double()], pull_on_crop
    )
    assert_agree(["to where"], read[2:], expected[2:])
    assert_agree(["glimpses", "to image"], read[:2], expected[:2], share=2**-7)


def test_boxes_off_the_screen_read_write_and_learn_nothing(device: torch.device) -> None:
    away = torch.tensor([[[-20.0, 4.0, 6.0, 6.0], [4.0, 30.0, 6.0, 6.0], [1e30, 4.0, 1e3, 6.0]]], device=device)
    with forced("triton"):
        pasted = differentiated(
            lambda g, w: paste(g, w, (8, 8)),
            [torch.ones(1, 3, 3, 4, 4, device=device), away],
            torch.ones(1, 3, 8, 8, device=device),
        )
        read = differentiated(
            lambda i, w: crop(i, w, 4),
            [torch.ones(1, 3, 8, 8, device=device), away],
            torch.ones(1, 3, 3, 4, 4, device=device),
        )
    for value in (*pasted, *read):
        assert not value.any()


@pytest.mark.parametrize(("clips", "count"), [(2, 0), (0, 3), (0, 0)])
def test_no_object_and_no_clip_need_no_program(clips: int, count: int, device: torch.device) -> None:
    where = torch.rand(clips, count, 4, device=device)
    with forced("triton"):
        pasted = differentiated(
            lambda g, w: paste(g, w, (9, 8)),
            [torch.rand(clips, count, 3, 4, 4, device=device), where],
            torch.ones(clips, 3, 9, 8, device=device),
        )
        read = differentiated(
            lambda i, w: crop(i, w, 4),
            [torch.rand(clips, 3, 9, 8, device=device), where],
            torch.ones(clips, count, 3, 4, 4, device=device),
        )
    shapes = [(clips, 3, 9, 8), (clips, count, 3, 4, 4), (clips, count, 4)]
    assert [value.shape for value in pasted] == shapes
    assert [value.shape for value in read] == [shapes[1], shapes[0], shapes[2]]
    assert not any(value.any() for value in (*pasted, *read))


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1e3, 1e30])
def test_any_positive_size_gives_finite_numbers(size: float, device: torch.device) -> None:
    where = torch.tensor([[[4.3, 3.9, size, 2.0], [3.0, 5.0, 2.0, size]]], device=device)
    with forced("triton"):
        assert paste(torch.rand(1, 2, 3, 4, 4, device=device), where, (8, 8)).isfinite().all()
        assert crop(torch.rand(1, 3, 8, 8, device=device), where, 4).isfinite().all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_box_that_is_not_a_number_is_seen(device: torch.device) -> None:
    where = torch.tensor([[[float("nan"), 8.0, 4.0, 4.0]]], device=device)
    with forced("triton"):
        assert paste(torch.ones(1, 1, 1, 4, 4, device=device), where, (16, 16)).isnan().any()
        assert crop(torch.ones(1, 1, 16, 16, device=device), where, 4).isnan().any()


def test_inputs_may_lie_anywhere_in_memory(device: torch.device) -> None:
    where = sized(2, 3, (9, 10), (3.0, 6.0), seed=9).float().to(device)
    video = torch.rand(2, 4, 3, 9, 10, device=device)
    turned = torch.rand(2, 9, 10, 3, device=device).permute(0, 3, 1, 2)
    glimpses = torch.rand(2, 3, 4, 4, 2, device=device).permute(0, 1, 4, 2, 3)
    spread = torch.rand(2, 3, 8, device=device)[..., ::2] + where
    with forced("triton"):
        for image in (video[:, 1], turned, torch.rand(1, 3, 9, 10, device=device).expand(2, -1, -1, -1)):
            assert torch.equal(crop(image, where, 4), crop(image.contiguous(), where, 4))
        apart = spread.repeat_interleave(2, -1)[..., ::2]
        assert not apart.is_contiguous()
        drawn = paste(glimpses.contiguous(), spread.contiguous(), (9, 10))
        assert torch.equal(paste(glimpses, apart, (9, 10)), drawn)


def test_every_run_gives_the_same_bits(device: torch.device) -> None:
    where, c, p, frame = CASES["heavy overlap"]
    glimpses, image = torch.randn(1, 5, c, p, p, device=device), torch.randn(1, c, *frame, device=device)
    box = where.float().to(device)

    def once() -> list[Tensor]:
        with forced("triton"):
            pasted = differentiated(lambda g, w: paste(g, w, frame), [glimpses, box], image)
            return pasted + differentiated(lambda i, w: crop(i, w, p), [image, box], glimpses)

    assert all(torch.equal(one, other) for one, other in zip(once(), once(), strict=True))


@pytest.mark.filterwarnings("ignore")  # the checks themselves use what torch deprecates
@pytest.mark.parametrize("name", ["paste", "paste_backward", "crop", "crop_to_where", "crop_to_image"])
def test_torch_finds_no_fault_with_the_operators(name: str, device: torch.device) -> None:
    where = sized(1, 2, (5, 6), (2.0, 4.0), seed=1).float().to(device)
    glimpses, image = torch.rand(1, 2, 2, 4, 4, device=device), torch.rand(1, 2, 5, 6, device=device)
    learnt = where.clone().requires_grad_()
    inputs = {
        "paste": (glimpses.clone().requires_grad_(), learnt, 5, 6),
        "paste_backward": (image, glimpses, where),
        "crop": (image.clone().requires_grad_(), learnt, 4),
        "crop_to_where": (glimpses, image, where),
        "crop_to_image": (glimpses, where, 5, 6),
    }
    assert all(
        fault == "SUCCESS"
        for fault in torch.library.opcheck(getattr(triton_operators, f"_{name}"), inputs[name]).values()
    )


def test_both_compile_into_one_graph_with_their_gradients(device: torch.device) -> None:
    where = sized(1, 3, (9, 8), (3.0, 5.0), seed=2).float().to(device)
    image = torch.rand(1, 3, 9, 8, device=device)

    def around(image: Tensor, where: Tensor) -> Tensor:
        return paste(crop(image, where, 4).sin(), where * 1.1, (9, 8))

    pull = torch.randn(1, 3, 9, 8, device=device)
    with forced("triton"):
        expected = differentiated(around, [image, where], pull)
        found = differentiated(torch.compile(around, fullgraph=True, backend="aot_eager"), [image, where], pull)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_programs_compile_for_a_gpu_without_one() -> None:
    """The interpreter allows more than the compiler does. In a process of its own, as this one may interpret."""
    script = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from scalor.kernels import triton_kernels

for value, objects, c, p in [("*fp32", "i32", 5, 16), ("*bf16", "constexpr", 1, 12)]:
    wide = {name: "*fp32" for name in ("where", "canvas", "to_where")}
    narrow = {name: value for name in ("glimpses", "image", "gradient", "to_glimpses", "to_image")}
    sizes = {"C": c, "P": p, "H": 64, "W": 48, "SIDE": 8, "SAMPLES": 256, "SPREAD": 2, "STEPS": 2}
    sizes |= {"HELD": 64} if objects == "i32" else {"HELD": 1, "N": 1}
    for kernel in vars(triton_kernels).values():
        if not getattr(kernel, "__name__", "").endswith("_kernel"):
            continue
        constants = {name: size for name, size in sizes.items() if name in kernel.arg_names}
        kinds = wide | narrow | {"N": objects, "clip_stride": "i32"} | dict.fromkeys(constants, "constexpr")
        source = ASTSource(kernel, {name: kinds[name] for name in kernel.arg_names}, constants)
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
        print(kernel.__name__, len(made.asm["ptx"]))
"""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 10


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_captured_graph_replays_with_new_boxes() -> None:
    frame = (64, 64)
    static = sized(4, 16, frame, (8.0, 14.0), seed=1).float().cuda().requires_grad_()
    glimpses = torch.rand(4, 16, 5, 16, 16, device="cuda", requires_grad=True)
    pull = torch.randn(4, 5, *frame, device="cuda")

    def step() -> tuple[Tensor, ...]:
        drawn = paste(glimpses, static, frame)
        read = crop(drawn[:, :3], static, 16)
        return (drawn, read, *torch.autograd.grad([drawn, read], [glimpses, static], [pull, torch.ones_like(read)]))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        static.copy_(sized(4, 16, frame, (3.0, 30.0), seed=2))
    graph.replay()
    for one, other in zip(captured, step(), strict=True):
        assert torch.equal(one, other)
