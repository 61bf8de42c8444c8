"""Pictures of a run in TensorBoard."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import scalor
from scalor.data.observation import Observation
from scalor.training.loop import make_scenes
from scalor.training.pictures import views

from .tiny import CPU, differing, log_of, run, tensors, tiny


def test_pictures_go_to_tensorboard_and_do_not_disturb_the_training(whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run(tiny(4, picture_every=3), tmp_path)
    run(tiny(6, picture_every=3), tmp_path, resume=True)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["images"]) == {"clip", "glimpses"}
    for name in ("clip", "glimpses"):
        assert [picture.step for picture in events.Images(name)] == [3, 6]
        assert all(picture.encoded_image_string.startswith(b"\x89PNG") for picture in events.Images(name))
    assert differing(tensors(whole), tensors(tmp_path)) == []
    assert log_of(tmp_path) == log_of(whole)


def test_a_clip_is_drawn_frame_by_frame_and_its_objects_one_by_one(whole: Path) -> None:
    model, config = scalor.load(whole), tiny()
    with torch.no_grad():
        # It has not learned yet that there is anything to see, and its masks are faint.
        model.discovery.heads.bias[0] = 0.3
        model.appearance.decoder.start_masks(-config.model.initial_mask)
    frames = make_scenes(config, "train", CPU).clips(0, 1).observation[0]
    pictures = views(model, frames)
    side = config.model.glimpse
    assert pictures["glimpses"].shape == (config.model.slots * side, len(frames) * side, 3)
    assert all(picture.dtype == np.uint8 and picture.max() > 0 for picture in pictures.values())
    # A clip of one frame, as the first steps of a training have, cannot be tracked but can be drawn.
    assert views(model, frames[:1])["glimpses"].shape == (config.model.slots * side, side, 3)


def test_a_clip_with_the_still_scene_behind_it_is_drawn_too() -> None:
    config = replace(tiny().model, still=True)
    image, still = torch.rand(2, 3, 3, *config.frame)
    frames = Observation(image, still, torch.ones(3, config.frame[0]))
    assert views(scalor.SCALOR(config), frames)["clip"].ndim == 3
