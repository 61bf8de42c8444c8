"""Laws of tracking. Weights are random; `worlds.tiny_model` tunes them until objects come and go."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from scalor.nn.distributions import Exact
from scalor.tracks import Tracks, join_tracks
from tests.layers import linear

from .worlds import VARIANTS, assert_same_tracks, each, look, see, squares, tiny_model, tune

pytestmark = pytest.mark.filterwarnings("ignore:out of slots")  # tiny worlds are crowded


@each(VARIANTS)
def test_the_tiny_world_is_eventful(changes: dict[str, Any]) -> None:
    """Laws say little where nothing happens: here objects are born at once and later, and they move and die."""
    tracks = tiny_model(**changes).track(squares(8, clips=4))
    dead, moves = set(), []
    for clip in range(4):
        part = tracks.of_clip(clip)
        ids = [set(part.id[part.frame == t].tolist()) for t in range(8)]
        assert 0 < len(ids[0]) < 6
        assert ids[7] - ids[0]
        dead |= {(clip, identity) for identity in ids[0] - ids[7]}
        lives = [part.centre[part.id == identity] for identity in set().union(*ids)]
        assert max(map(len, lives)) > 4
        moves += [step for life in lives for step in np.diff(life, axis=0)]
    assert dead
    assert 0.5 < np.abs(moves).mean() < 5  # of at most 8
    assert tracks.box[:, 0].std() > 4


@each(VARIANTS)
def test_a_video_streamed_frame_by_frame_gives_the_tracks_of_the_whole(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(6)
    whole = model.track(video[0], masks=True)
    parts = list(model.stream(list(video[0]), masks=True))
    assert [set(part.frame.tolist()) <= {t} for t, part in enumerate(parts)] == [True] * 6
    streamed = join_tracks(parts)
    assert_same_tracks(streamed, whole)
    assert whole.masks is not None
    assert streamed.masks is not None
    assert (streamed.masks != whole.masks).mean() < 1e-4
    assert len(whole) > 6


def test_a_stream_is_read_one_frame_at_a_time() -> None:
    taken = []

    def camera() -> Any:
        for t, frame in enumerate(squares(4)[0]):
            taken.append(t)
            yield frame

    for t, _ in enumerate(tiny_model().stream(camera())):
        assert taken == list(range(t + 1))


@each(VARIANTS)
def test_the_clips_of_a_batch_are_tracked_as_if_alone(changes: dict[str, Any]) -> None:
    model, video = tiny_model(**changes), squares(3, clips=3)  # rounding grows with every frame
    batch = model.track(video)
    for clip in range(3):
        together, alone = batch.of_clip(clip), model.track(video[clip])
        assert_same_tracks(replace(together, clip=together.clip - clip), alone, tolerance=0.05)
        assert len(alone) > 4


def test_tracking_leaves_nothing_behind() -> None:
    """Neither another video nor a stream in between changes what a model says, nor its weights."""
    model, video, other = tiny_model(background=True), squares(4), squares(4, seed=5)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    first = model.track(video)
    here, there = model.stream(list(video[0])), model.stream(list(other[0]))
    parts = []
    for _ in range(4):
        parts.append(next(here))
        next(there)
    assert_same_tracks(join_tracks(parts), first)
    model.generate(other, observe=2, horizon=2)
    again = model.track(video)
    assert np.array_equal(first.box, again.box)
    assert np.array_equal(first.id, again.id)
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name]), name


def test_arrays_and_tensors_give_the_same_tracks() -> None:
    model, video = tiny_model(), squares(3)[0]
    for other in (video.numpy(), video.double(), video.numpy().astype(np.float64)):
        assert_same_tracks(model.track(other), model.track(video))


def test_tracks_are_sorted_and_identities_belong_to_one_life() -> None:
    tracks = tiny_model().track(squares(12, clips=2))
    rows = list(zip(tracks.clip, tracks.frame, tracks.id, strict=True))
    assert rows == sorted(set(rows))
    for clip in (0, 1):
        part = tracks.of_clip(clip)
        for identity in np.unique(part.id):
            mine = part.select(part.id == identity)
            assert np.array_equal(mine.frame, mine.frame[0] + np.arange(len(mine)))
            assert mine.discovered.tolist() == [True] + [False] * (len(mine) - 1)
    assert ((tracks.confidence >= 0) & (tracks.confidence <= 1)).all()
    assert (tracks.box[:, 2:] > tracks.box[:, :2]).all()
    assert (np.unique(tracks.frame * 2 + tracks.clip, return_counts=True)[1] <= 6).all()


def test_masks_are_disjoint_and_lie_in_the_frame() -> None:
    tracks = tiny_model(frame=(32, 40), grid=(4, 5)).track(squares(6, (32, 40), clips=2), masks=True)
    assert tracks.masks is not None
    assert tracks.masks.dtype == np.bool_
    assert tracks.masks.shape == (len(tracks), 32, 40)
    assert tracks.masks.any((1, 2)).mean() > 0.3
    for clip in range(2):
        for frame in range(6):
            owners = tracks.masks[(tracks.clip == clip) & (tracks.frame == frame)].sum(0)
            assert owners.max(initial=0) <= 1
    rows, columns = np.arange(32) + 0.5, np.arange(40) + 0.5
    for mask, (x0, y0, x1, y1) in zip(tracks.masks, tracks.box, strict=True):
        assert not mask[(rows < y0 - 2) | (rows > y1 + 2)].any()  # up to the blur of stretching 8 px to the box
        assert not mask[:, (columns < x0 - 2) | (columns > x1 + 2)].any()


def test_masks_are_given_only_when_asked_for() -> None:
    assert tiny_model().track(squares(2)).masks is None


def test_running_out_of_slots_is_said_aloud() -> None:
    video = squares(4)
    with pytest.warns(UserWarning, match=r"^out of slots: .* as all 1 slots were taken\. Remedy: .*slots="):
        tiny_model(slots=1).track(video)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_model(slots=60).track(video)


def test_an_object_that_shows_nothing_is_neither_born_nor_kept() -> None:
    model, video = tiny_model(), squares(3)
    state = see(model, video[:, :2])
    assert state.objects.alive.any()
    with torch.no_grad():
        linear(model.appearance.decoder.each).bias[-4:] -= 100  # the mask of a patch of 2 by 2, after its colours
    assert not see(model, video).objects.alive.any()
    assert not look(model, state, video[:, 2])[0].state.objects.alive.any()
    assert not model.prior_step(state, model.start_prior(1, video), (32, 32), 1.0, Exact())[0].objects.alive.any()


@pytest.mark.parametrize("size", [(32, 48), (16, 64), (64, 64), (8, 8)])
@pytest.mark.parametrize("changes", [{}, {"background": True}], ids=["black", "background"])
def test_frames_of_another_size_are_tracked_too(size: tuple[int, int], changes: dict[str, Any]) -> None:
    model = tiny_model(slots=30, **changes)
    tracks = model.track(squares(3, (max(8, size[0]), max(8, size[1])), count=8), masks=True)
    assert tracks.size == size
    assert tracks.masks is not None
    assert tracks.masks.shape[1:] == size
    rollout = model.generate(squares(3, size), observe=2, horizon=1)
    assert rollout.frames.shape == (1, 3, 3, *size)


def test_a_scene_moved_by_whole_cells_gives_moved_tracks() -> None:
    """Nothing in the model sees an absolute position, so what it says moves with what it sees.

    Only the zero padding of convolutions tells where the border is. Each 3x3 convolution lets it creep one cell
    further in: two in the encoder, one per frame in the ConvLSTM and one in discovery, and a tracker sees two
    cells around its object. Frames of 24x24 cells keep the middle out of its reach for two frames: content and
    compared objects stay 7 cells from every border. There are slots for all cells, so that whatever
    happens near the border turns nobody away.
    """
    cell, cells, shift = 8, 24, (2, -1)
    side = cell * cells
    model = tiny_model(slots=cells**2, proposals=cells**2)
    squares_here = torch.zeros(1, 2, 3, side, side)
    small = squares(2, (32, 32), count=5)
    squares_here[..., 80:112, 80:112] = small
    # Random heads may call black a thing or not; halfway between what they say of a crowd is a good threshold.
    crowd = squares(2, (96, 96), count=40)
    tune(model, model.discovery.from_features, crowd, dict.fromkeys(range(8), (0.0, 1.0)))
    tune(model, model.discovery.heads, crowd, {0: (0.0, 0.4)})
    moved = torch.roll(squares_here, (shift[1] * cell, shift[0] * cell), (-2, -1))
    offset = np.array([shift[0] * cell, shift[1] * cell] * 2)

    def middle(tracks: Tracks, by: np.ndarray) -> dict[tuple[int, ...], Tracks]:
        """Lives in the middle of the scene, named by frame and rounded first place."""
        box = tracks.box - by
        x, y = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
        inside = (abs(x - 96) < 20) & (abs(y - 96) < 20)
        lives = {}
        for identity in np.unique(tracks.id[inside]):
            life = replace(tracks, box=box).select(tracks.id == identity)
            lives[(int(life.frame[0]), *np.round(life.box[0] * 10).astype(int).tolist())] = life
        return lives

    here, there = middle(model.track(squares_here), np.zeros(4)), middle(model.track(moved), offset)
    assert len(here) >= 5
    assert any(len(life) == 2 for life in here.values())
    assert len(np.unique([life.presence[0].round(3) for life in here.values()])) > 3  # content, not sameness
    assert here.keys() == there.keys()
    for name, life in here.items():
        assert life.frame.tolist() == there[name].frame.tolist()
        np.testing.assert_allclose(life.box, there[name].box, atol=1e-2)
        np.testing.assert_allclose(life.presence, there[name].presence, atol=1e-3)
