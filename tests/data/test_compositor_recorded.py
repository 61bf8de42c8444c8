"""The bank of clips that went through a real H.264 encoder."""

import numpy as np
import pytest
import torch

from scalor.config import SceneConfig
from scalor.data.compositor import Compositor, RecordedClips, round_trip

CONFIG = SceneConfig(kind="composed", frame=(32, 32), length=3, objects=(1, 4), size=12.0)


@pytest.fixture(scope="module")
def compositor() -> Compositor:
    return Compositor(CONFIG, 0, "train", torch.device("cpu"))


def test_a_round_trip_keeps_the_frames_and_loses_more_at_a_worse_quality(compositor: Compositor) -> None:
    clip = compositor.compose(torch.arange(4), 3, compress=False)
    pictures = clip.frames.permute(0, 1, 3, 4, 2).mul(255).byte().numpy()
    lost = []
    for quality in (5, 40):
        decoded = np.stack([round_trip(one, quality) for one in pictures])
        assert decoded.shape == pictures.shape
        lost.append(np.abs(decoded.astype(int) - pictures).mean())
    assert 0 < lost[0] < 8
    assert lost[1] > 1.5 * lost[0]


def test_chosen_clips_are_those_of_the_bank_with_their_truth_and_all_others_stay(compositor: Compositor) -> None:
    bank = RecordedClips(iter([compositor.compose(torch.arange(10, 13), 3, compress=False)]), seed=0)
    original = compositor.compose(torch.arange(10, 13), 3, compress=False)
    clip = compositor.compose(torch.arange(2), 2)
    mixed = bank.replace(clip, torch.tensor([True, False]), torch.tensor([2, 0]))
    assert torch.equal(mixed.frames[1], clip.frames[1])
    assert torch.equal(mixed.truth.box[1], clip.truth.box[1])
    assert torch.equal(mixed.truth.box[0], original.truth.box[2, :2])
    assert torch.equal(mixed.truth.owner[0], original.truth.owner[2, :2])
    for name in ("still", "ruler"):
        ours, theirs = (getattr(one.observation, name) for one in (mixed, original))
        assert torch.equal(ours[0], theirs[2, :2])
        assert torch.equal(ours[1], getattr(clip.observation, name)[1])
    apart = (mixed.frames[0] - original.frames[2, :2]).abs().mean()
    assert 0 < float(apart) < 0.1


def test_a_compositor_with_a_bank_gives_the_same_clips_again() -> None:
    recorded = SceneConfig(kind="composed", frame=(32, 32), length=2, objects=(1, 4), size=12.0, recorded=3)
    first, again = (Compositor(recorded, 1, "train", torch.device("cpu")) for _ in range(2))
    index = torch.arange(12)
    assert torch.equal(first.clips(index, 2).frames, again.clips(index, 2).frames)
    from_bank = (first.clips(index, 2).frames != first.compose(index, 2).frames).flatten(1).any(1)
    assert 0 < int(from_bank.sum()) < 12
