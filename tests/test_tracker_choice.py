"""A model is loaded with room for the objects of a video."""

import numpy as np
import pytest

from scalor.model.scalor import SCALOR
from scalor.tracker_choice import load_for
from scalor.tracking.video_view import look_at
from scalor.video import open_video


@pytest.mark.parametrize(("slots", "proposals"), [(12, 8), (120, 40)])
def test_a_third_of_the_slots_of_universal_weights_can_be_filled_in_any_frame(slots: int, proposals: int) -> None:
    frames = np.random.default_rng(0).integers(60, 140, (8, 48, 64, 3), np.uint8)
    model = load_for(look_at(open_video(frames)), "any", "cpu", slots)
    assert isinstance(model, SCALOR)
    assert (model.config.slots, model.config.proposals) == (slots, proposals)
