"""Frames from outside: what is taken, and for everything else one sentence that says what and how to mend it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from scalor.data.observation import Observation, check_frames, check_image, check_observation
from scalor.errors import InputError
from scalor.model.scalor import SCALOR
from tests.model.worlds import tiny_model

CELL = (8, 8)


def clip(*shape: int, value: float = 0.5) -> np.ndarray:
    return np.full(shape, value, dtype=np.float32)


def with_pixel(value: float) -> np.ndarray:
    frames = clip(4, 3, 16, 24)
    frames[1, 2, 3, 4] = value
    return frames


BAD: dict[str, tuple[object, list[str]]] = {
    "8-bit": (np.zeros((4, 3, 16, 24), np.uint8), ["uint8", "floats in [0, 1]", "divided by 255"]),
    "8-bit tensor": (torch.zeros(4, 3, 16, 24, dtype=torch.uint8), ["uint8", "floats in [0, 1]"]),
    "whole numbers": (np.zeros((4, 3, 16, 24), np.int64), ["int64", "floats in [0, 1]"]),
    "truth values": (np.zeros((4, 3, 16, 24), bool), ["bool", "floats in [0, 1]"]),
    "complex": (np.zeros((4, 3, 16, 24), np.complex64), ["complex64", "floats in [0, 1]"]),
    "words": (np.array(["a", "b"]), ["type", "numbers"]),
    "objects": (np.array([None, 1], dtype=object), ["object", "numbers"]),
    "one image": (clip(3, 16, 24), ["[3, 16, 24]", "[T, 3, H, W]"]),
    "six dimensions": (clip(1, 1, 4, 3, 16, 24), ["[1, 1, 4, 3, 16, 24]", "[B, T, 3, H, W]"]),
    "colour last": (clip(4, 16, 24, 3), ["[4, 16, 24, 3]", "colour before height"]),
    "grey": (clip(4, 1, 16, 24), ["[4, 1, 16, 24]", "[T, 3, H, W]"]),
    "colour before time": (clip(1, 3, 4, 16, 24), ["[1, 3, 4, 16, 24]", "[B, T, 3, H, W]"]),
    "a number": (np.array(0.5, np.float32), ["shape", "[T, 3, H, W]"]),
    "not a number": (with_pixel(np.nan), ["NaN", "nan_to_num"]),
    "infinite": (with_pixel(np.inf), ["infinite", "nan_to_num"]),
    "above one": (with_pixel(1.5), ["0.5 to 1.5", "[0, 1]", "255"]),
    "below zero": (with_pixel(-0.25), ["-0.25 to 0.5", "[0, 1]"]),
    "no frames": (clip(0, 3, 16, 24), ["[0, 3, 16, 24]", "at least 2 frames"]),
    "one frame": (clip(1, 3, 16, 24), ["[1, 3, 16, 24]", "at least 2 frames"]),
    "no clips": (clip(0, 4, 3, 16, 24), ["[0, 4, 3, 16, 24]"]),
    "odd height": (clip(4, 3, 17, 24), ["height 17", "8 px", "for example 16"]),
    "odd width": (clip(4, 3, 16, 30), ["width 30", "8 px", "for example 32"]),
    "smaller than a cell": (clip(4, 3, 16, 2), ["width 2", "8 px", "for example 8"]),
    "no height": (clip(4, 3, 0, 24), ["height 0", "for example 8"]),
    "a list": ([[[0.5]]], ["list", "numpy array or a torch tensor"]),
    "nothing": (None, ["NoneType", "numpy array or a torch tensor"]),
    "a path": ("video.mp4", ["str", "numpy array or a torch tensor"]),
}


@pytest.mark.parametrize(("frames", "words"), BAD.values(), ids=BAD)
def test_bad_frames_are_refused_in_one_sentence(frames: object, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        check_frames(frames, CELL)
    sentence = str(error.value)
    assert sentence.startswith("frames ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    for word in words:
        assert word in sentence, sentence


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4", "longdouble"])
def test_floats_of_any_kind_are_taken_or_refused_in_words(dtype: str) -> None:
    frames = clip(4, 3, 16, 24).astype(dtype)
    try:
        taken = check_frames(frames, CELL)
    except InputError as error:
        assert str(frames.dtype) in str(error)  # noqa: PT017
    else:
        assert torch.equal(taken, torch.full((1, 4, 3, 16, 24), 0.5))


@pytest.mark.parametrize(
    ("change", "shape"),
    [
        (lambda frames: frames, (1, 4, 3, 16, 24)),
        (lambda frames: np.stack([frames, frames]), (2, 4, 3, 16, 24)),
        (lambda frames: torch.from_numpy(frames).double(), (1, 4, 3, 16, 24)),
        (lambda frames: frames[::-1, :, ::2, ::-1], (1, 4, 3, 8, 24)),
        (lambda frames: np.moveaxis(np.ascontiguousarray(np.moveaxis(frames, 1, -1)), -1, 1), (1, 4, 3, 16, 24)),
    ],
    ids=["one clip", "a batch", "double tensor", "reversed view", "channels-last view"],
)
def test_good_frames_come_back_as_a_float_batch(
    change: Callable[[np.ndarray], np.ndarray | Tensor], shape: tuple[int, ...]
) -> None:
    given = change(np.random.default_rng(0).random((4, 3, 16, 24), np.float32))
    taken = check_frames(given, CELL)
    assert taken.dtype == torch.float32
    assert taken.shape == shape
    expected = given if isinstance(given, Tensor) else torch.from_numpy(np.ascontiguousarray(given))
    assert torch.equal(taken.flatten(), expected.float().flatten())


def test_pixels_of_exactly_0_and_1_are_fine() -> None:
    frames = clip(2, 3, 8, 8, value=0.0)
    frames[1] = 1
    assert check_frames(frames, CELL).max() == 1


ONE: dict[str, tuple[object, str]] = {
    "a list": ([1.0], "frame is a list: give a numpy array or a torch tensor [3, H, W]."),
    "no colours": (clip(16, 24), "frame has shape [16, 24]: give one frame, [3, H, W]."),
    "a clip": (clip(4, 3, 16, 24), "frame has shape [4, 3, 16, 24]: give one frame, [3, H, W]."),
    "above one": (
        clip(3, 16, 24, value=2),
        "frames ranges from 2 to 2: pixels must lie in [0, 1]; divide 8-bit values by 255.",
    ),
}


@pytest.mark.parametrize(("frame", "sentence"), ONE.values(), ids=ONE)
def test_a_bad_frame_of_a_stream_is_refused_in_one_sentence(frame: object, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        check_image(frame, CELL)
    assert str(error.value) == sentence


def observed(frames: int = 4) -> Observation:
    image, still = torch.rand(2, frames, 3, 16, 24).unbind()
    return Observation(image, still, torch.linspace(0.5, 3, 16).expand(frames, -1))


def same(one: Observation, other: Observation) -> bool:
    fields = ((getattr(each, name) for each in (one, other)) for name in ("image", "still", "ruler"))
    return all(a is b is None or torch.equal(a, b) for a, b in fields)


def test_a_good_image_of_a_stream_comes_back_as_one_of_a_single_clip() -> None:
    given = np.random.default_rng(0).random((3, 16, 24), np.float32)
    for frame in (given, torch.from_numpy(given), Observation(torch.from_numpy(given))):
        assert same(check_image(frame, CELL), Observation(torch.from_numpy(given)[None]))
    behind = observed()[0]
    assert same(check_image(behind, CELL, still=True), behind.map(lambda part: part[None]))
    assert same(check_image(behind, CELL), Observation(behind.image[None]))


def test_a_background_and_a_ruler_are_kept_where_they_are_needed() -> None:
    given = observed()
    assert same(check_observation(given, CELL, still=True), given.map(lambda part: part[None]))
    assert same(check_observation(given, CELL), Observation(given.image[None]))


def without(**changes: Tensor | None) -> Observation:
    return replace(observed(), **changes)  # type: ignore[arg-type]


BAD_SCENES: dict[str, tuple[object, str]] = {
    "an array": (torch.rand(4, 3, 16, 24), "without a background"),
    "no background": (without(still=None), "without a background"),
    "no ruler": (without(ruler=None), "without a background"),
    "a smaller background": (without(still=torch.rand(4, 3, 8, 8)), r"still \[1, 4, 3, 8, 8\]"),
    "a ruler of columns": (without(ruler=torch.ones(4, 24)), r"ruler \[1, 4, 24\]"),
    "a bright background": (without(still=torch.full((4, 3, 16, 24), 2.0)), "still ranges from 2 to 2"),
    "a ruler of nothing": (without(ruler=torch.zeros(4, 16)), "ruler ranges from 0 to 0"),
    "an endless ruler": (without(ruler=torch.full((4, 16), torch.inf)), "ruler ranges from inf to inf"),
}


@pytest.mark.parametrize(("frames", "words"), BAD_SCENES.values(), ids=BAD_SCENES)
def test_a_still_camera_needs_a_background_and_a_ruler_for_each_image(frames: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_observation(frames, CELL, still=True)


def test_an_index_applies_to_all_that_is_observed() -> None:
    given = observed()
    assert same(given[1:3], Observation(*(getattr(given, name)[1:3] for name in ("image", "still", "ruler"))))
    assert same(Observation.stack(given.unbind()), given)
    batch = Observation.stack([given, observed()])
    assert same(Observation.stack(batch.unbind(1)), batch.time_first())
    assert batch.size == (16, 24)
    assert (batch.values_per_clip, Observation(batch.image).values_per_clip) == (7 * 4 * 16 * 24, 3 * 4 * 16 * 24)


@pytest.mark.parametrize("call", [SCALOR.track, SCALOR.reconstruct, SCALOR.log_likelihood, SCALOR.object_pictures])
def test_every_way_in_has_the_same_door(call: Callable[[SCALOR, object], object]) -> None:
    model = tiny_model()
    for bad in (clip(4, 3, 32, 33), clip(4, 3, 32, 32, value=2.0), [1], np.zeros((4, 3, 32, 32), np.uint8)):
        with pytest.raises(InputError, match=r"^frames "):
            call(model, bad)


def test_generation_wants_as_many_frames_as_it_observes() -> None:
    with pytest.raises(InputError, match="at least 5 frames"):
        tiny_model().generate(clip(4, 3, 32, 32), observe=5)


@pytest.mark.parametrize(
    "bad",
    [clip(3, 32, 33), clip(32, 32, 3), clip(3, 32, 32, value=7.0), np.zeros((3, 32, 32), np.uint8), "frame.png", [1.0]],
    ids=["size", "colour last", "range", "8-bit", "a path", "a list"],
)
def test_a_stream_refuses_a_bad_frame_in_one_sentence(bad: object) -> None:
    with pytest.raises(InputError, match=r"^frame"):
        list(tiny_model().stream([bad]))


def test_a_stream_refuses_a_frame_of_another_size() -> None:
    stream = tiny_model().stream([clip(3, 32, 32), clip(3, 32, 40)])
    next(stream)
    with pytest.raises(InputError, match=r"40.*32|32.*40"):
        next(stream)
