"""A selection takes what it says, and says what it cannot take."""

from typing import Any

import pytest

from scalor.errors import InputError
from scalor.video import Selection


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"region": (10, 0, 5, 9)}, r"region is \(10, 0, 5, 9\): x0 must be from 0 to below x1"),
        ({"region": (0, 3, 5, 3)}, r"region is \(0, 3, 5, 3\): x0 must be"),
        ({"region": (-1, 0, 5, 9)}, r"region is \(-1, 0, 5, 9\): x0 must be"),
        ({"region": (0, 0, 5)}, r"region is \(0, 0, 5\): give four whole numbers"),
        ({"region": (0, 0, 5.5, 9)}, r"region is \(0, 0, 5\.5, 9\): give four whole numbers"),
        ({"start": -1}, "start is -1: give seconds from the first frame, 0 or more"),
        ({"start": float("nan")}, "start is nan: give seconds"),
        ({"end": float("inf")}, "end is inf: give seconds"),
        ({"end": "9"}, "end is '9': give seconds"),
        ({"start": 5, "end": 5}, "end is 5: give a time after the start, which is 5"),
        ({"end": 0}, "end is 0: give a time after the start, which is 0"),
        ({"stride": 0}, "stride is 0: give a whole number from 1"),
        ({"stride": 1.5}, r"stride is 1\.5: give a whole number"),
        ({"stride": True}, "stride is True: give a whole number"),
    ],
)
def test_each_field_is_checked(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Selection(**fields)


@pytest.mark.parametrize(("stride", "words"), [(1, "every frame"), (2, "one frame in 2")])
def test_a_stride_in_words(stride: int, words: str) -> None:
    assert Selection(stride=stride).which_frames == words


def test_times_of_any_size_select_frames() -> None:
    assert Selection(end=1e308).numbers(40, 1000) == range(40)
    assert len(Selection(start=1e308).numbers(40, 1000)) == 0


def test_a_region_must_lie_in_the_picture() -> None:
    Selection(region=(0, 0, 64, 48)).check_region((48, 64), "a.mp4")
    sentence = r"region is \(0, 0, 48, 64\): a\.mp4 is 64 x 48 pixels; stay within \(0, 0, 64, 48\)"
    with pytest.raises(InputError, match=sentence):
        Selection(region=(0, 0, 48, 64)).check_region((48, 64), "a.mp4")


@pytest.mark.parametrize(
    ("selection", "numbers"),
    [
        (Selection(), [0, 1, 2, 3, 4]),
        (Selection(stride=2), [0, 2, 4]),
        (Selection(start=0.3), [3, 4]),
        (Selection(end=0.3), [0, 1, 2]),
        (Selection(start=0.05, end=0.31, stride=2), [1, 3]),
        (Selection(start=9), []),
    ],
)
def test_frames_at_a_constant_rate_are_known_by_number(selection: Selection, numbers: list[int]) -> None:
    assert list(selection.numbers(5, fps=10)) == numbers
    times = [number / 10 for number in range(5)]
    inside = [t for t, time in enumerate(times) if not selection.is_before(time) and not selection.is_after(time)]
    assert inside[:: selection.stride] == numbers
