"""Guards speak for the numbers they watch, and hold their tongue otherwise."""

from dataclasses import replace

import pytest

from scalor.config import Config
from scalor.presets import get_preset
from scalor.training.guards import FIRST_WARNING_STEP, warnings

HEALTHY = {"objects": 4.0, "discovered": 0.2, "turned_away": 0.0, "crowded_out": 0.0}
CONFIG = get_preset("shapes-tiny")


def said(config: Config = CONFIG, step: int = FIRST_WARNING_STEP, **metrics: float) -> list[str]:
    return warnings(config, step, {**HEALTHY, **metrics})


def test_a_healthy_run_is_not_disturbed() -> None:
    assert said() == []
    assert said(objects=0.31, turned_away=0.05, crowded_out=0.5) == []


@pytest.mark.parametrize(
    ("metric", "value", "name", "remedy"),
    [
        ("objects", 0.29, "foreground collapse: 0.29 objects per frame", "model.object_size (7.0, 7.0)"),
        ("discovered", 3.7, "propagation collapse: 3.70 of 4.00 objects", "more steps of single frames"),
        ("turned_away", 0.06, "slots run out: 0.06 births per frame", "raise model.slots above 10"),
        ("crowded_out", 0.6, "proposals saturate: 0.60 cells per frame", "model.proposals 6"),
    ],
)
def test_each_guard_speaks_for_its_metric(metric: str, value: float, name: str, remedy: str) -> None:
    (sentence,) = warnings(CONFIG, FIRST_WARNING_STEP, {**HEALTHY, metric: value})
    assert sentence.startswith(name)
    assert remedy in sentence
    assert "Remed" in sentence


def test_a_collapse_calls_for_a_cut_of_objects_gradients_and_where_it_is_there_for_another_seed() -> None:
    assert "train.clip_object 3 (now 0)" in said(discovered=3.7)[0]
    cut = replace(CONFIG, train=replace(CONFIG.train, clip_object=3.0, seed=5))
    assert "another train.seed (now 5)" in said(cut, discovered=3.7)[0]


def test_several_troubles_are_several_sentences() -> None:
    assert len(said(objects=0.2, discovered=0.2, turned_away=1.0, crowded_out=1.0)) == 4


def test_an_untrained_model_gets_time() -> None:
    assert said(step=FIRST_WARNING_STEP - 1, objects=0.0, turned_away=1.0, crowded_out=1.0) == []


def test_full_slots_are_no_trouble_while_the_prior_still_falls() -> None:
    eager = replace(CONFIG, train=replace(CONFIG.train, presence_prior=(0.99, 0.01, FIRST_WARNING_STEP)))
    assert said(eager, turned_away=1.0, crowded_out=1.0) == []
    assert len(said(eager, objects=0.0, discovered=0.0, turned_away=1.0)) == 1
    assert len(said(eager, step=FIRST_WARNING_STEP + eager.train.log_every, turned_away=1.0, crowded_out=1.0)) == 2


def test_a_crowded_scene_collapses_sooner() -> None:
    crowd = replace(CONFIG, scene=replace(CONFIG.scene, objects=(50, 60)))
    assert len(said(crowd, objects=4.9)) == 1
    assert said(crowd, objects=5.1) == []


def test_a_background_is_the_first_suspect() -> None:
    over_textures = replace(CONFIG, model=replace(CONFIG.model, background=True))
    assert "the background explains everything" in said(over_textures, objects=0.0)[0]
    assert "nothing is found" in said(objects=0.0)[0]


def test_in_longer_sequences_half_of_the_objects_found_again_are_too_many() -> None:
    for length, sentences in ((2, 0), (3, 0), (4, 1), (10, 1)):
        config = replace(CONFIG, train=replace(CONFIG.train, lengths=((0, length),)))
        assert len(said(config, discovered=2.1)) == sentences
        assert said(config, discovered=1.9) == []


def test_in_single_frames_everything_is_found_again() -> None:
    single = replace(CONFIG, train=replace(CONFIG.train, lengths=((0, 1), (FIRST_WARNING_STEP, 2))))
    assert said(single, step=FIRST_WARNING_STEP, discovered=4.0) == []  # the stretch before had one frame a clip
    assert len(said(single, step=FIRST_WARNING_STEP + single.train.log_every, discovered=4.0)) == 1
