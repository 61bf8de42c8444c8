"""Laws of imagined videos."""

from typing import Any

import numpy as np
import pytest
import torch

from scalor.nn.distributions import Mode
from scalor.nn.interface import Rollout

from .worlds import VARIANTS, assert_same_tracks, each, per_frame, squares, tiny_model

pytestmark = pytest.mark.filterwarnings("ignore:out of slots")  # tiny worlds are crowded


def assert_same_start(one: Rollout, other: Rollout, frames: int) -> None:
    torch.testing.assert_close(one.frames[:, :frames], other.frames[:, :frames], rtol=0, atol=1e-5)
    torch.testing.assert_close(one.background[:, :frames], other.background[:, :frames], rtol=0, atol=1e-5)
    first, second = (tracks.select(tracks.frame < frames) for tracks in (one.tracks, other.tracks))
    assert_same_tracks(first, second)


@each({name: VARIANTS[name] for name in ("plain", "background")})
def test_what_is_observed_is_reconstructed(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(6, clips=2)
    seen, gone_on = model.reconstruct(video), model.generate(video, observe=3, horizon=4, discovery_rate=0.5)
    assert seen.frames.shape == (2, 6, 3, 32, 32)
    assert gone_on.frames.shape == (2, 7, 3, 32, 32)
    assert_same_start(gone_on, seen, 3)
    assert_same_tracks(seen.tracks, model.track(video))
    assert ((gone_on.frames >= 0) & (gone_on.frames <= 1)).all()
    assert bool(seen.background.any()) is model.config.background


def test_the_future_does_not_peek_at_the_frames_after_the_observed() -> None:
    model, video = tiny_model(background=True), squares(6)
    other = video.clone()
    other[:, 3:] = 1 - other[:, 3:]
    one, two = (model.generate(v, observe=3, horizon=3, estimator=Mode()) for v in (video, other))
    assert torch.equal(one.frames, two.frames)
    assert np.array_equal(one.tracks.box, two.tracks.box)


def test_without_discovery_no_identity_is_new_in_the_future() -> None:
    torch.manual_seed(0)
    tracks = tiny_model().generate(squares(4, clips=4), observe=3, horizon=5).tracks
    for clip in range(4):
        part = tracks.of_clip(clip)
        seen, future = part.select(part.frame < 3), part.select(part.frame >= 3)
        assert len(future) > 0
        assert set(future.id) <= set(seen.id)
        assert not future.discovered.any()


def test_with_discovery_new_identities_appear_in_the_future() -> None:
    torch.manual_seed(0)
    tracks = tiny_model(slots=20).generate(squares(4), observe=3, horizon=3, discovery_rate=1.0).tracks
    seen, future = tracks.select(tracks.frame < 3), tracks.select(tracks.frame >= 3)
    assert set(future.id) - set(seen.id)
    assert future.id.max() > seen.id.max()


def test_objects_go_on_from_where_they_were_last_seen() -> None:
    """A jump between the last seen and the first imagined frame is at most a typical size, as between all frames."""
    tracks = tiny_model().generate(squares(3), observe=3, horizon=3).tracks
    for identity in np.unique(tracks.id):
        life = tracks.select(tracks.id == identity)
        assert (abs(np.diff(life.centre, axis=0)) <= 8 + 8 * 0.75 * 2).all()


@pytest.mark.parametrize("changes", [{}, {"background": True}], ids=["black", "background"])
def test_a_world_is_imagined_from_nothing(changes: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = tiny_model(**changes)
    rollout = model.imagine(horizon=4, clips=3, discovery_rate=0.4)
    assert rollout.frames.shape == rollout.background.shape == (3, 4, 3, 32, 32)
    assert ((rollout.frames >= 0) & (rollout.frames <= 1)).all()
    tracks = rollout.tracks
    assert set(tracks.clip) == {0, 1, 2}
    assert tracks.frame.max() < 4
    assert len(tracks.select(tracks.frame == 0)) > 3
    assert tracks.select(tracks.frame == 0).discovered.all()
    for clip in range(3):
        part = tracks.of_clip(clip)
        first = part.id[part.frame == 0]
        assert len(set(first)) == len(first)
        assert set(part.id) == set(first)  # later_rate is 0


def test_nothing_is_imagined_at_rate_0_and_newcomers_at_a_later_rate() -> None:
    model = tiny_model(slots=20)
    empty = model.imagine(horizon=3, discovery_rate=0.0)
    assert len(empty.tracks) == 0
    assert not empty.frames.any()
    later = model.imagine(horizon=3, discovery_rate=0.0, later_rate=1.0).tracks
    assert len(later.select(later.frame == 0)) == 0
    assert len(later.select(later.frame == 1)) > 0


def test_every_slot_has_its_own_picture() -> None:
    model, video = tiny_model(slots=9), squares(3, clips=2)
    pictures = model.object_pictures(video)
    assert pictures.shape == (2, 3, 9, 3, 8, 8)
    shown = pictures.flatten(3).amax(-1) > 0
    tracks = model.track(video)
    for clip in range(2):
        assert shown[clip].sum(-1).tolist() == per_frame(tracks.of_clip(clip), 3)
