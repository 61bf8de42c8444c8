"""Composed clips: every clip another world, with a truth that agrees with its pixels."""

from dataclasses import replace

import pytest
import torch

from scalor.config import SceneConfig
from scalor.data import bodies
from scalor.data.clip import Clip
from scalor.data.compositor import Compositor, Division
from scalor.data.disturbances import NoiseBank, compressed, cosines, light, scenes
from scalor.data.hashing import fold, key
from scalor.data.paths import paths
from scalor.data.scenes import Scenes
from tests.model.worlds import parts

CONFIG = SceneConfig(kind="composed", length=8, objects=(0, 12), size=18.0)


@pytest.fixture(scope="module")
def clips() -> Clip:
    return Scenes(CONFIG, seed=3).clips(0, 24)


def test_a_clip_is_the_same_in_any_batch_and_at_any_length(clips: Clip) -> None:
    again = Scenes(CONFIG, seed=3).clips(torch.tensor([5, 2]), length=3)
    assert torch.allclose(again.frames[1], clips.frames[2, :3], atol=1e-5)
    assert torch.equal(again.truth.id[0], clips.truth.id[5, :3])


def test_other_seeds_and_splits_have_other_clips(clips: Clip) -> None:
    for other in (Scenes(CONFIG, seed=4), Scenes(CONFIG, seed=3, split="test")):
        assert not torch.allclose(other.clips(0, 2, length=2).frames, clips.frames[:2, :2], atol=0.05)


def test_frames_come_with_the_empty_scene_and_a_flat_ruler(clips: Clip) -> None:
    assert clips.frames.shape == (24, 8, 3, 64, 64)
    assert float(clips.frames.min()) >= 0
    assert float(clips.frames.max()) <= 1
    _, still, ruler = parts(clips.observation)
    assert torch.equal(still[:, 0], still[:, 7])
    assert (ruler == 1).all()


def test_clips_have_from_none_to_all_objects(clips: Clip) -> None:
    count = (clips.truth.id >= 0).any(1).sum(-1)
    assert count.min() <= 1
    assert count.max() >= 8


def test_a_pixel_that_shows_an_object_lies_in_its_box(clips: Clip) -> None:
    truth = clips.truth
    clip, t, row, column = (truth.owner >= 0).nonzero(as_tuple=True)
    box = truth.box[clip, t, truth.owner[clip, t, row, column]]
    # The soft edge of a thing may reach a little beyond where it is opaque by half.
    inside = (column + 1.5 > box[:, 0]) & (column - 0.5 < box[:, 2]) & (row + 1.5 > box[:, 1]) & (row - 0.5 < box[:, 3])
    assert inside.float().mean() > 0.99


def test_what_is_visible_differs_from_the_empty_scene(clips: Clip) -> None:
    """Noise and light aside: the pixels of visible objects differ far more than the others do."""
    image, still, _ = parts(clips.observation)
    apart = (image - still).abs().amax(2)
    shown = torch.zeros_like(apart, dtype=torch.bool)
    for number in range(12):
        visible = clips.truth.visible[:, :, number] > 0.5
        shown |= (clips.truth.owner == number) & visible[..., None, None]
    assert apart[shown].median() > 3 * apart[clips.truth.owner < 0].median()


def test_things_move_in_many_ways_and_some_rest() -> None:
    clip = key(0, "train", torch.arange(400))
    keys = torch.stack([clip + n for n in range(4)])
    ways = paths(clip, keys, torch.full((4, 400), 18.0), 12, (64, 64))
    steps = ways.centre.diff(dim=2).norm(dim=-1)  # [N, B, T]
    resting = (steps.amax(-1) < 1e-3).float().mean()
    assert 0.08 < float(resting) < 0.2
    assert float(steps.amax()) < 18.0 * 0.6 * 3.5
    stops = (steps.amin(-1) < 0.1 * steps.amax(-1)) & (steps.amax(-1) > 0.5)
    assert float(stops.float().mean()) > 0.05


def test_pairs_meet() -> None:
    clip = key(1, "train", torch.arange(300))
    keys = torch.stack([clip * 7 + n for n in range(2)])
    centre = paths(clip, keys, torch.full((2, 300), 12.0), 12, (64, 64)).centre
    nearest = (centre[0] - centre[1]).norm(dim=-1).amin(-1)
    assert 0.3 < float((nearest < 12).float().mean()) < 0.8


def test_every_kind_of_body_occurs_within_the_sizes_that_are_promised() -> None:
    clip = key(0, "train", torch.arange(500))
    built = bodies.build(clip, torch.stack([clip + n for n in range(3)]), 18.0)
    share = torch.bincount(built.kind.flatten(), minlength=5) / built.kind.numel()
    assert torch.allclose(share, torch.tensor(bodies.SHARES), atol=0.06)
    assert float(2 * built.half.max()) <= bodies.LARGEST
    assert float(2 * built.half.min()) >= bodies.SMALLEST


def test_daughters_start_where_their_mothers_are() -> None:
    made = Compositor(CONFIG, 0, "train", torch.device("cpu"))
    clip = key(0, "train", torch.arange(200))
    number = torch.arange(12)[:, None]
    division = made.division(clip, number)
    assert isinstance(division, Division)
    assert 0.05 < float(division.child.float().mean()) < 0.2
    assert not division.child[0::2].any()  # only every second thing comes from the one before it
    keys = torch.stack([clip + n for n in range(12)])
    body = made.build(clip, keys)
    ways = made.ways(clip, keys, body, division)
    child, where = division.child.nonzero(as_tuple=True)
    when = division.when[child, where].clamp(max=CONFIG.length - 1)
    apart = (ways.centre[child, where, when] - ways.centre[child - 1, where, when]).norm(dim=-1)
    assert (apart <= 0.5 * body.side[child, where] + 1e-3).all()


def test_scenes_are_pictures_of_many_tones() -> None:
    picture, tone = scenes(key(0, "train", torch.arange(100)), (32, 32))
    assert picture.shape == (100, 3, 32, 32)
    assert float(tone.min()) < 0.2
    assert float(tone.max()) > 0.8
    assert float(picture.std((1, 2, 3)).min()) < 0.03 < 0.1 < float(picture.std((1, 2, 3)).max())


def test_light_is_mostly_steady() -> None:
    factor = light(key(0, "train", torch.arange(500)), 10)
    steady = (factor - 1).abs().amax(1) < 1e-6
    assert 0.35 < float(steady.float().mean()) < 0.7
    assert float(factor.min()) >= 0.7
    assert float(factor.max()) <= 1.3


def test_a_codec_keeps_what_is_strong_and_drops_what_is_faint() -> None:
    clip = key(0, "train", torch.arange(60))
    frames = torch.full((60, 3, 3, 16, 16), 0.5)
    frames[:, 1:, :, 4:12, 4:12] = 1.0
    frames = frames + 0.002 * torch.randn(frames.shape, generator=torch.Generator().manual_seed(0))
    decoded = compressed(clip, frames, cosines(torch.device("cpu")))
    changed = (decoded - frames).abs().amax((1, 2, 3, 4)) > 1e-4
    assert 0.25 < float(changed.float().mean()) < 0.55  # only some clips
    assert float((decoded - frames).abs().mean()) < 0.05
    matrix = cosines(torch.device("cpu"))
    assert torch.allclose(matrix @ matrix.T, torch.eye(8), atol=1e-5)


def test_noise_is_normal_and_of_the_clips_own_strength() -> None:
    noise = NoiseBank(torch.device("cpu"))(key(0, "train", torch.arange(50)), 4, (32, 32))
    deviation = noise.std((1, 2, 3, 4))
    assert float(deviation.max()) < 0.075
    assert float(deviation.min()) < 0.01
    strongest = int(deviation.argmax())
    assert abs(float(noise[strongest].mean())) < 0.1 * float(deviation[strongest])


def test_fewer_objects_can_be_asked_for() -> None:
    few = Scenes(replace(CONFIG, objects=(1, 2)), seed=0).clips(0, 6, length=2)
    assert few.truth.id.shape[-1] == 2


def test_companions_keep_their_distance_and_others_do_not() -> None:
    clip = key(0, "train", torch.arange(400))
    keys = fold(clip, torch.arange(2)[:, None])
    centre = paths(clip, keys, torch.full((2, 400), 10.0), 12, (64, 64)).centre
    apart = (centre[0] - centre[1]).norm(dim=-1)
    together = (apart - apart[:, :1]).abs().amax(1) < 1e-3
    far = apart[together, 0] / 10
    assert 0.15 < float(together.float().mean()) < 0.35
    assert float((far < 1.25).float().mean()) > 0.8, "things that rest are also always equally far apart"


def test_an_object_that_looks_like_the_scene_behind_it_counts_as_hidden() -> None:
    """Nothing covers it, and yet its visible share is small: a tracker cannot be asked to find it."""
    clip = Compositor(CONFIG, 0, "train", torch.device("cpu")).compose(torch.arange(64), 2)
    truth = clip.truth
    assert bool(((truth.visible >= 0) & (truth.visible <= 1 + 1e-5)).all())
    side = (truth.box[..., 2:] - truth.box[..., :2]).prod(-1)
    own = torch.stack([(truth.owner == number).flatten(2).sum(-1) for number in range(truth.id.shape[2])], -1)
    uncovered = (truth.id >= 0) & (own > 0.45 * side) & (side > 60)
    assert bool((truth.visible[uncovered] > 0.9).any())
    assert bool((truth.visible[uncovered] < 0.25).any())
