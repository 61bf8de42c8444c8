"""Frames followed one by one, and the records that are kept between them. Graphs themselves: `training/test_gpu.py`."""

import pytest
import torch
from torch import Tensor

from scalor.baselines.sqair import SQAIR, Scene, SQAIRConfig
from scalor.model.captured import copied, follow_frames, tensors
from scalor.model.scalor import TrackingState
from scalor.model.sighting import Sighting

from .worlds import squares, tiny_model

Records = TrackingState | Scene | Sighting


def records() -> dict[str, Records]:
    """What trackers keep between frames and say of one."""
    image = squares(1).unbind(1)[0]
    model = tiny_model()
    kept, sighting = model.see(model.begin(image), image)
    return {"scalor": kept, "sqair": SQAIR(SQAIRConfig(frame=(32, 32))).start(2, image), "sighting": sighting}


@pytest.mark.parametrize("name", ["scalor", "sqair", "sighting"])
def test_a_copy_is_the_same_record_and_shares_no_memory(name: str) -> None:
    with torch.inference_mode():
        record = records()[name]
        own = copied(record)
        assert type(own) is type(record)
        before = [tensor.clone() for tensor in tensors(record)]
        for tensor in tensors(own):
            tensor.fill_(1) if tensor.dtype == torch.bool else tensor.add_(7)
        assert len(before) == len(tensors(own)) >= 5
        for tensor, was in zip(tensors(record), before, strict=True):
            assert torch.equal(tensor, was)


def test_what_is_no_tensor_is_kept_as_it_is() -> None:
    with torch.inference_mode():
        kept = records()["scalor"]
        assert isinstance(kept, TrackingState)
        assert copied(kept).state.fresh == kept.state.fresh
        sighting = records()["sighting"]
        assert isinstance(sighting, Sighting)
        assert copied(sighting).masks is None


def test_frames_are_followed_from_the_first_on_each_from_the_state_after_the_last() -> None:
    nobody = Sighting(*(torch.zeros(1) for _ in range(5)), None)

    def step(state: tuple[Tensor], image: Tensor) -> tuple[tuple[Tensor], Sighting]:
        return (10 * state[0] + image,), nobody

    states = [state for (state,), _ in follow_frames(lambda image: (image + 1,), step, map(torch.tensor, (1, 2, 3)))]
    assert [int(state) for state in states] == [21, 212, 2123]
