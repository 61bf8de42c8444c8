"""The model learns, and the shipped weights track."""

from dataclasses import replace

import pytest
import torch

import scalor
from scalor import checkpoint
from scalor.data.scenes import Scenes
from scalor.evaluation import evaluate_tracks
from scalor.presets import get_preset
from scalor.training.step import TrainingStep, anneals


@pytest.mark.slow
def test_some_hundred_steps_explain_two_thirds_of_what_a_black_frame_leaves() -> None:
    """Blobs that are not yet objects leave more than half, and training rests there for a while before it finds them;
    once it does, much less than a third is left."""
    config = get_preset("shapes-tiny")
    config = replace(config, train=replace(config.train, lengths=((0, 1),), batch=8))
    torch.manual_seed(0)
    device = torch.device("cpu")
    scenes = Scenes(config.scene, 0, "train")
    step = TrainingStep(config, scalor.SCALOR(config.model), scenes, device)
    black = scenes.clips(0, 64, 1).frames.square().mean()
    errors = [
        float(step(number, anneals(config.train, number))[step.names.index("squared_error")]) for number in range(500)
    ]
    assert sum(errors[-50:]) / 50 < black / 3


def test_the_shipped_weights_track_unseen_clips() -> None:
    config = checkpoint.read(checkpoint.find("shapes-md")).config
    clip = Scenes(config.test, config.train.seed, "test").clips(500, 8)
    report = evaluate_tracks(scalor.load("shapes-md").track(clip.frames), clip.truth, config.test.size)
    assert report.strict.mota > 0.75
    assert report.count_mae < 0.15


def test_shipped_weights_are_small_and_say_where_they_come_from() -> None:
    files = list(checkpoint.WEIGHTS.glob("*.safetensors"))
    assert files
    assert all(file.stat().st_size < 3e6 for file in files)
    for file in files:
        origin = checkpoint.read(file).provenance
        assert all(origin[name] for name in ("command", "commit", "step", "hardware", "date"))
        assert "seed" in origin
