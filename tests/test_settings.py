"""Every declared range is enforced: in Python, in a table of plain values, and on the command line."""

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from scalor.cli import overrides
from scalor.cli.main import main
from scalor.config import Config, SceneConfig, TrainConfig
from scalor.errors import MOST_SHOWN, InputError, shown
from scalor.presets import get_preset
from scalor.settings import LARGEST_INT, Range, Settings, build_record, convert, setting
from scalor.systems import SYSTEMS

PRESET_OF = {name: "shapes-tiny" if name == "scalor" else f"{name}-shapes-tiny" for name in SYSTEMS}


class Wrong(NamedTuple):
    """A value that a setting must refuse."""

    record: type[Any]
    preset: str
    section: str
    field: str
    value: Any
    bad: Any
    """The number or the text in the value that is out of range."""


def outside(allowed: Range, hint: type) -> Iterator[Any]:
    """Yield values of a type just outside of a range, and numbers that are never allowed."""
    step = 1 if hint is int else 1e-6
    for bound, beyond in ((allowed.ge, -step), (allowed.gt, 0), (allowed.le, step), (allowed.lt, 0)):
        if bound is not None:
            assert not isinstance(bound, tuple)
            yield hint(bound + beyond)
    if allowed.multiple_of:
        yield allowed.multiple_of + 1
    if allowed.choices:
        yield f"{next(iter(allowed.choices))}?"
    if hint is int:
        yield LARGEST_INT + 1
    if hint is float:
        yield from (math.nan, math.inf, -math.inf)


def spoilt(hint: Any, allowed: Range, value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield copies of a value with one number or text replaced by one out of range, and what it was replaced by."""
    if get_origin(hint) is not tuple:
        yield from ((bad, bad) for bad in outside(allowed, hint))
        return
    inner = get_args(hint)
    if inner[-1] is Ellipsis and not value:
        value = (3,)
    for index, item in enumerate(value):
        kind, limits = (inner[0], allowed) if inner[-1] is Ellipsis else (inner[index], allowed.place(index))
        for changed, bad in spoilt(kind, limits, item):
            yield (*value[:index], changed, *value[index + 1 :]), bad
    if inner[-1] is Ellipsis and allowed.shortest:
        yield (), ()


def wrong_values() -> Iterator[Wrong]:
    """Yield values out of range for every setting of every record."""
    sections: list[tuple[type[Any], str, tuple[str, ...]]] = [
        (SYSTEMS[system].config, preset, ("model",)) for system, preset in PRESET_OF.items()
    ]
    sections += [(SceneConfig, "shapes-tiny", ("scene", "test")), (TrainConfig, "shapes-tiny", ("train",))]
    for record, preset, names in sections:
        for field in dataclasses.fields(record):
            hint = get_type_hints(record)[field.name]
            for section in names:
                for value, bad in spoilt(hint, field.metadata["range"], field.default):
                    yield Wrong(record, preset, section, field.name, value, bad)


WRONG = list(wrong_values())


def test_there_are_many_of_them() -> None:
    assert len(WRONG) > 300


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.section}.{wrong.field}={wrong.value}")
def test_a_value_out_of_range_is_refused_by_name_and_value(wrong: Wrong, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as refused:
        wrong.record(**{wrong.field: wrong.value})
    name = f"{wrong.record.section}.{wrong.field}"
    assert str(refused.value).startswith(f"{name} is {wrong.bad!r}: ") or f"{wrong.bad!r} must" in str(refused.value)
    with pytest.raises(InputError) as refused:
        build_record(wrong.record, {wrong.field: wrong.value}, wrong.section)
    complaint = str(refused.value)
    assert complaint.startswith(f"{wrong.section}.{wrong.field} is ")
    words = [f"--{wrong.section}.{wrong.field}", json.dumps(wrong.value)]
    assert main(["train", wrong.preset, "--out", "/dev/null/nowhere", *words]) == 2
    assert capsys.readouterr().err == f"scalor: {complaint}\n"


def test_every_number_has_a_range_and_every_default_lies_in_it() -> None:
    free = {"perspective"}  # one end may be negative: objects at that edge are beyond the horizon
    for system in SYSTEMS:
        for record in (SYSTEMS[system].config, SceneConfig, TrainConfig):
            record()
            for field in dataclasses.fields(record):
                is_number = any(kind in str(get_type_hints(record)[field.name]) for kind in ("int", "float"))
                assert (field.metadata["range"] != Range()) or not is_number or field.name in free, field.name


@pytest.mark.parametrize(
    ("allowed", "inside", "outside", "words"),
    [
        (Range(ge=1), (1, 2), (0, -1), "at least 1"),
        (Range(ge=1, le=3), (1, 3), (0, 4), "at least 1 and at most 3"),
        (Range(gt=0), (0.1,), (0, -1, math.inf, math.nan), "positive"),
        (Range(gt=0, lt=1), (0.1, 0.9), (0, 1), "between 0 and 1"),
        (Range(gt=1, also=0), (0, 1.5), (1, 0.5), "0, or above 1"),
        (Range(ge=4, multiple_of=4), (4, 8), (0, 6), "at least 4 and a multiple of 4"),
        (Range(choices=("a", "b")), ("a", "b"), ("c", ""), "one of a, b"),
        (Range(lt=0.5), (0.4, -9), (0.5,), "below 0.5"),
        (Range(), (0, -1e300), (math.inf,), ""),
    ],
)
def test_a_range_says_what_it_allows(allowed: Range, inside: Any, outside: Any, words: str) -> None:
    assert all(map(allowed.holds, inside))
    assert not any(map(allowed.holds, outside))
    assert str(allowed) == words


def test_each_place_of_a_tuple_has_its_own_bounds() -> None:
    allowed = Range(ge=(0, 1), le=9)
    assert allowed.place(0) == Range(ge=0, le=9)
    assert allowed.place(1) == Range(ge=1, le=9)


@dataclasses.dataclass(frozen=True)
class Toy(Settings):
    """Two settings that depend on each other."""

    low: float = setting(0.0, "lower end", ge=0)
    high: float = setting(1.0, "upper end", ge=0)

    def check(self) -> None:
        if self.low > self.high:
            raise InputError("model.low is too high.")


def test_settings_that_depend_on_each_other_are_checked_after_their_ranges() -> None:
    assert Toy(0.5, 0.5).low == 0.5
    with pytest.raises(InputError, match="too high"):
        Toy(2.0)
    with pytest.raises(InputError, match=r"^model\.high is -1\.0: it must be at least 0 and finite\.$"):
        Toy(2.0, -1.0)


def test_numbers_of_numpy_and_lists_become_plain_values() -> None:
    toy = Toy(np.float32(0.5), np.int64(1))  # type: ignore[arg-type]
    assert [type(value) for value in (toy.low, toy.high)] == [float, float]
    scene = SceneConfig(frame=[32, np.int32(64)])  # type: ignore[arg-type]
    assert scene.frame == (32, 64)
    assert json.loads(json.dumps(Config(scene=replace_frame(scene)).to_dict()))["scene"]["frame"] == [64, 64]


def replace_frame(scene: SceneConfig) -> SceneConfig:
    return dataclasses.replace(scene, frame=(64, 64))


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        *((int, value) for value in (2.0, "2", True, np.True_, None)),
        *((float, value) for value in ("2", True, None)),
        (bool, 1),
        (str, 1),
        *((tuple[int, int], value) for value in (3, (1,), "12")),
        (tuple[int, ...], (1, 2.5)),
        (tuple[float, float], None),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(hint: Any, value: Any) -> None:
    with pytest.raises(InputError, match=r"^x is .*: give "):
        convert(hint, value, "x")


@pytest.mark.parametrize(
    "number", ["9" * 20, "-" + "9" * 20, "9" * 5_000, "1e999", "[" * 100_000, "1" + "0" * 400], ids=len
)
@pytest.mark.parametrize("name", ["train.seed", "train.learning_rate", "train.lengths"])
def test_numbers_beyond_all_limits_are_refused_in_one_short_sentence(
    name: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "shapes-tiny", "--out", "/dev/null/nowhere", f"--{name}={number}"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"scalor: {name} is ")
    assert len(complaint) < 2 * MOST_SHOWN
    assert complaint.count("\n") == 1


def test_a_long_value_is_cut_off() -> None:
    assert shown("a" * 1_000) == "'" + "a" * (MOST_SHOWN - 1) + "..."
    assert shown(10**5_000) == "a number of thousands of digits"
    assert shown((1, 2)) == "(1, 2)"


def test_overrides_of_settings_that_depend_on_each_other_apply_together() -> None:
    config = overrides.apply(get_preset("shapes-tiny"), ["--model.grid", "5x5", "--model.frame", "40x40"])
    assert (config.model.grid, config.model.frame) == ((5, 5), (40, 40))
