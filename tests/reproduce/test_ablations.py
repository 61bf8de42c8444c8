"""Every setting of the ablation trains: single frames and pairs, at sizes that take no time."""

import math

import pytest
import torch

from scalor import systems
from scalor.data.scenes import Scenes
from scalor.reproduce.catalogue import ABLATION_PAPER, SETTINGS, TABLES
from scalor.training.step import TrainingStep, anneals

from .small import small


@pytest.mark.parametrize("name", TABLES["ablation"])
def test_a_setting_of_the_ablation_takes_steps_of_single_frames_and_of_pairs(name: str) -> None:
    config = small(SETTINGS[name].config(0))
    torch.manual_seed(0)
    device = torch.device("cpu")
    model = systems.build(config.model)
    step = TrainingStep(config, model, Scenes(config.scene, 0, "train", device), device)
    for number, length in ((0, 1), (2, 2)):
        now = anneals(config.train, number)
        values = dict(zip(step.names, step(number, now).tolist(), strict=True))
        assert now.length == length
        assert math.isfinite(values["elbo"])
        assert values["skipped"] == 0


def test_the_paper_s_ablation_has_none_of_our_remedies() -> None:
    for name in ABLATION_PAPER:
        config = SETTINGS[name].config(0)
        model, train = config.model, config.train
        assert (model.inertia, model.siblings, model.end_duplicates, model.search) == (False,) * 4
        assert (model.initial_mask, model.explained_error, train.clip_object, train.clip_usual) == (0,) * 4
        assert train.lengths == ((0, 10),)
