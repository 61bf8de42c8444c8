"""What there is to reproduce, and the names it goes by."""

from collections.abc import Sequence

import pytest

from scalor.errors import InputError
from scalor.presets import PRESETS, get_preset
from scalor.reproduce.catalogue import (
    CLASSICAL,
    COMPARED,
    CURVE_POINTS,
    DENSITIES,
    DEVICES,
    REMEDIES,
    SETTINGS,
    SYSTEMS,
    TABLES,
    choose,
    differing_field,
    scenes_of,
)


def names(tables: Sequence[str], settings: Sequence[str] = (), seeds: Sequence[int] = (0,)) -> list[str]:
    return [f"{cell.table}/{cell.name}" for cell in choose(tables, settings, seeds)]


def test_every_setting_of_a_table_is_there_and_is_a_preset() -> None:
    for settings in TABLES.values():
        assert all(name in SETTINGS for name in settings)
    for name, setting in SETTINGS.items():
        assert (setting.preset or name) in PRESETS
        assert any(name in settings for settings in TABLES.values())


def test_a_table_comes_with_all_its_settings_and_every_seed() -> None:
    found = names(["generation"], seeds=[0, 5])
    settings = ("shapes-md", "shapes-background", "mnist-md")
    assert found == [f"generation/{name}-seed{seed}" for name in settings for seed in (0, 5)]


def test_all_is_every_table_in_order() -> None:
    assert list(dict.fromkeys(name.split("/")[0] for name in names(["all"]))) == list(TABLES)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("md", "shapes-md"),
        ("shapes-md", "shapes-md"),
        ("mnist-md", "mnist-md"),
        ("paper-md", "paper-shapes-md"),
        ("paper-shapes-vhd", "paper-shapes-vhd"),
        ("background", "shapes-background"),
        ("length", "shapes-length"),
        ("sqair-vld", "sqair-shapes-vld"),
        ("md-classical-colour", "shapes-md-classical-colour"),
    ],
)
def test_the_word_shapes_may_be_left_out(said: str, meant: str) -> None:
    assert names(["tracking"], [said]) == [f"tracking/{meant}-seed0"]


def test_a_setting_is_measured_in_those_tables_that_have_it() -> None:
    assert names(["tracking", "generation", "ablation"], ["md"]) == [
        "tracking/shapes-md-seed0",
        "generation/shapes-md-seed0",
    ]


def test_nothing_is_measured_twice() -> None:
    assert names(["tracking", "tracking"], ["md", "shapes-md"], [1, 1]) == ["tracking/shapes-md-seed1"]


@pytest.mark.parametrize(
    ("tables", "settings", "sentence"),
    [
        (["trackng"], [], "table is 'trackng': there is no such table here; did you mean tracking."),
        (["pages"], [], "table is 'pages': there is no such table here; did you mean page."),
        (["tracking"], ["mdd"], "setting is 'mdd': there is no such setting here; did you mean md."),
        (["ablation"], ["neither"], "setting is 'neither': there is no such setting here; did you mean "),
        (["efficiency"], ["md"], "setting is 'md': there is no such setting here; did you mean md-"),
        (["generation"], ["zzz"], "choose from md, mnist-md, background, shapes-md, shapes-background."),
    ],
)
def test_an_unknown_name_suggests_another(tables: list[str], settings: list[str], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        choose(tables, settings, [0])
    assert sentence in str(error.value)


def test_classical_trackers_are_measured_once_on_the_scenes_of_the_presets() -> None:
    cells = [cell for cell in choose(["tracking"], [], [3, 4]) if cell.setting.detect]
    assert len(cells) == len(COMPARED) * len(CLASSICAL)
    assert {cell.seed for cell in cells} == {0}
    assert {cell.setting.system for cell in cells} == {"classical, colour", "classical, foreground"}
    for cell in cells:
        assert cell.config.test == get_preset(cell.setting.preset).test


def test_likelihoods_are_of_every_system_on_every_density_that_it_can_be_trained_on() -> None:
    found: dict[str, list[str]] = {system: [] for system in SYSTEMS.values()}
    for name in TABLES["likelihood"]:
        found[SETTINGS[name].system].append(scenes_of(name))
    assert found["SCALOR"] == found["VRNN"] == found["sequential VAE"] == list(DENSITIES)
    assert found["SQAIR"] == ["shapes-vld", "shapes-ld", "mnist-vld"]


def test_other_systems_are_trained_on_the_same_scenes_and_on_as_many_clips_or_twice_as_many() -> None:
    for name in (*TABLES["likelihood"], *TABLES["replay"]):
        setting = SETTINGS[name]
        config, ours = setting.config(5), SETTINGS[scenes_of(name)].config(5)
        assert SYSTEMS[config.system] == setting.system
        assert (config.scene, config.test, config.train.seed) == (ours.scene, ours.test, 5)
        clips, our_clips = (train.steps * train.batch for train in (config.train, ours.train))
        assert clips == 2 * our_clips if config.system == "sqair" else clips >= our_clips


def test_inference_is_timed_on_every_kind_of_device_with_the_weights_of_a_preset() -> None:
    timed = [SETTINGS[name] for name in TABLES["efficiency"] if SETTINGS[name].device]
    assert {(setting.system, setting.device) for setting in timed} == {
        (system, device) for system in ("SCALOR", "SQAIR") for device in DEVICES
    }
    for setting in timed:
        assert differing_field(setting.config(0), get_preset(setting.preset)) is None


def test_each_remedy_left_out_changes_one_setting_of_ours() -> None:
    ours = get_preset("shapes-ablation")
    for name, (_, changes) in REMEDIES.items():
        (field, value), config = changes[0], SETTINGS[f"shapes-ablation-{name}"].config(0)
        section, name = field.split(".")
        assert len(changes) == 1
        assert differing_field(config, ours) == field
        assert getattr(getattr(config, section), name) == value


def test_the_ablation_is_two_presets_with_mechanisms_switched_off() -> None:
    configs = {cell.setting.name: cell.config for cell in choose(["ablation"], [], [0])}
    switches = {name: (config.model.rejection, config.model.attention) for name, config in configs.items()}
    for preset in ("paper-shapes-ablation", "shapes-ablation"):
        assert switches[preset] == (True, True)
        assert switches[f"{preset}-rejection"] == (True, False)
        assert switches[f"{preset}-attention"] == (False, True)
        assert switches[f"{preset}-neither"] == (False, False)
    for config in configs.values():
        assert config.scene == get_preset("shapes-ablation").scene
        assert config.train.steps // config.train.evaluate_every == CURVE_POINTS


def test_evaluations_on_the_way_make_no_other_training() -> None:
    for cell in choose(["efficiency"], ["mnist-vld", "sqair-mnist-vld"], [0]):
        assert cell.config.train.evaluate_every > 0
        assert differing_field(cell.config, get_preset(cell.setting.name)) is None
