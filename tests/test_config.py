"""Settings check themselves, survive a round trip, and every one of them is used and explained."""

import ast
import json
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import pytest

import scalor
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig, missing_settings
from scalor.errors import InputError
from scalor.presets import PRESETS
from scalor.settings import convert
from scalor.systems import config_from_dict

RECORDS: dict[str, type] = {"model": ModelConfig, "scene": SceneConfig, "train": TrainConfig}
WRONG: list[tuple[str, str, Any]] = [
    ("model", "frame", (63, 64)),
    ("model", "frame", (64, 60)),
    ("scene", "objects", (5, 3)),
    ("scene", "perspective", (0.0, -1.0)),
    ("scene", "still", True),
    ("scene", "recorded", 3),
    ("train", "lengths", ((1, 2),)),
    ("train", "lengths", ((0, 2), (5, 3), (5, 4))),
    ("train", "lengths", ((0, 2), (9, 3), (5, 4))),
    ("train", "colour_counts", (5, 3)),
]
"""Values in range that do not fit together, or to the other settings."""


@pytest.mark.parametrize(("record", "field", "value"), WRONG, ids=lambda value: str(value))
def test_settings_that_do_not_fit_together_are_refused_by_name_and_value(record: str, field: str, value: Any) -> None:
    with pytest.raises(InputError) as error:
        RECORDS[record](**{field: value})
    assert str(error.value).startswith(f"{record}.{field} is {value!r}: ")
    assert str(error.value).endswith(".")


def test_a_frame_that_cells_do_not_divide_suggests_one() -> None:
    with pytest.raises(InputError, match=r"height 62 must be a multiple of the 8 cells.*for example 64"):
        ModelConfig(frame=(62, 64))


@pytest.mark.parametrize("name", ["scene", "test"])
def test_scenes_must_fit_the_cells_of_the_model(name: str) -> None:
    wrong: dict[str, Any] = {name: SceneConfig(frame=(64, 60))}
    right: dict[str, Any] = {name: SceneConfig(frame=(64, 128))}
    with pytest.raises(InputError, match=rf"^{name}\.frame is \(64, 60\): the width 60 .* 8 px cells"):
        replace(Config(), **wrong)
    assert replace(Config(), **right)


def test_the_longest_sequence_must_fit_into_a_clip() -> None:
    with pytest.raises(InputError, match=r"^train\.lengths is .*longest sequence, 12, .*scene\.length 10"):
        Config(train=TrainConfig(lengths=((0, 12), (10, 3))))


def test_a_cell_is_the_frame_divided_by_the_grid() -> None:
    assert ModelConfig(frame=(48, 80), grid=(6, 20)).cell == (8, 4)


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        ModelConfig().slots = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", PRESETS)
def test_a_config_survives_a_round_trip_through_json(name: str) -> None:
    config = PRESETS[name]()
    assert config_from_dict(config.to_dict()) == config
    assert config_from_dict(json.loads(json.dumps(config.to_dict()))) == config


def changed(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        for key in path[:-1]:
            values = values[key]
        values[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed("model", "wings", value=2), ["model is", "wings", "unknown"]),
        (changed("wings", value=2), ["config is", "wings", "unknown"]),
        (changed("model", value=3), ["model is 3", "table"]),
        (changed("model", "slots", value=2.5), ["model.slots is 2.5", "whole number"]),
        (changed("model", "slots", value=True), ["model.slots is True", "whole number"]),
        (changed("model", "slots", value="8"), ["model.slots is '8'", "whole number"]),
        (changed("model", "slots", value=0), ["model.slots is 0", "at least 1"]),
        (changed("model", "sigma", value="small"), ["model.sigma is 'small'", "number"]),
        (changed("model", "sigma", value=None), ["model.sigma is None", "number"]),
        (changed("model", "rejection", value=1), ["model.rejection is 1", "true or false"]),
        (changed("scene", "kind", value=7), ["scene.kind is 7", "word"]),
        (changed("model", "frame", value=64), ["model.frame is 64", "list"]),
        (changed("model", "frame", value=[64]), ["model.frame is [64]", "2 values"]),
        (changed("model", "frame", value=[64, 64.5]), ["model.frame", "64.5", "whole number"]),
        (changed("train", "lengths", value=[[0, 2], [5]]), ["train.lengths", "[5]", "2 values"]),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_wrong_table_is_refused_by_name_and_value(change: Callable[[dict[str, Any]], None], words: list[str]) -> None:
    values = Config().to_dict()
    change(values)
    with pytest.raises(InputError) as error:
        config_from_dict(values)
    for word in words:
        assert word in str(error.value)


def test_a_missing_field_takes_its_default_so_that_old_checkpoints_load() -> None:
    values: dict[str, Any] = Config().to_dict()
    del values["model"]["slots"], values["scene"]
    assert config_from_dict(values) == Config()


def test_settings_that_an_old_table_does_not_record_are_named() -> None:
    table: dict[str, Any] = Config().to_dict()
    assert missing_settings(Config(), table) == ()
    del table["model"]["slots"], table["train"]["epsilon"], table["test"]
    found = missing_settings(config_from_dict(table), table)
    assert found[0] == "model.slots"
    assert found[-1] == "train.epsilon"
    assert set(found[1:-1]) == {f"test.{field.name}" for field in fields(SceneConfig)}


def test_whole_numbers_are_taken_where_a_number_is_wanted() -> None:
    assert convert(float, 3, "x") == 3.0
    assert isinstance(convert(float, 3, "x"), float)
    assert convert(tuple[float, ...], [1, 2.5], "x") == (1.0, 2.5)


def attributes_read() -> set[str]:
    """Names after a dot anywhere in the package, outside the checks of the config itself."""
    names = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef) and node.name == "__post_init__":
            return
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for file in Path(scalor.__file__).parent.rglob("*.py"):
        visit(ast.parse(file.read_text()))
    return names


@pytest.mark.parametrize("record", [*RECORDS.values(), Config], ids=lambda record: record.__name__)
def test_every_setting_is_read_somewhere(record: type) -> None:
    assert {field.name for field in fields(record)} <= attributes_read()


@pytest.mark.parametrize("record", RECORDS.values(), ids=lambda record: record.__name__)
def test_every_setting_has_a_default_and_a_sentence_of_help(record: type) -> None:
    for field in fields(record):
        assert field.default is not MISSING, field.name
        assert len(field.metadata["help"]) > 5, field.name
        assert "\n" not in field.metadata["help"], field.name


def test_a_variant_is_a_replace_away() -> None:
    config = Config()
    variant = replace(config, model=replace(config.model, slots=5))
    assert variant.model.slots == 5
    assert replace(variant, model=config.model) == config
