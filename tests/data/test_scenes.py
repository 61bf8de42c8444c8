"""Laws of the synthetic scenes: what moves where, who covers whom, and what the truth says about it."""

from dataclasses import fields, replace

import pytest
import torch

from scalor.config import SceneConfig
from scalor.data.clip import Clip
from scalor.data.layers import compose
from scalor.data.scenes import Scenes
from scalor.errors import InputError

VERY_LOW = SceneConfig(objects=(2, 4), size=14.0)
LOW = SceneConfig(objects=(8, 11), size=12.0)
MEDIUM = SceneConfig()
BUSY = replace(MEDIUM, background=True, births=(0, 4), objects=(5, 8))


def assert_same(one: Clip, other: Clip) -> None:
    assert torch.equal(one.frames, other.frames)
    for field in fields(one.truth):
        assert torch.equal(getattr(one.truth, field.name), getattr(other.truth, field.name)), field.name


def part(clip: Clip, b: int, length: int) -> Clip:
    truth = {
        field.name: getattr(clip.truth, field.name)[b : b + 1, : None if field.name == "order" else length]
        for field in fields(clip.truth)
    }
    return Clip(clip.observation[b : b + 1, :length], replace(clip.truth, **truth))


@pytest.mark.parametrize("config", [MEDIUM, BUSY, replace(LOW, steer=True)], ids=["plain", "busy", "steer"])
def test_a_clip_is_the_same_in_any_batch_and_of_any_length(config: SceneConfig) -> None:
    scenes = Scenes(config, seed=5)
    batch = scenes.clips(torch.tensor([9, 2, 7]))
    assert_same(part(batch, 1, 10), scenes.clips(2))
    assert_same(part(batch, 2, 4), scenes.clips(torch.tensor([7]), length=4))
    assert_same(part(scenes.clips(9, length=20), 0, 10), part(batch, 0, 10))
    assert_same(part(Scenes(config, seed=5).clips(6, 3), 1, 10), part(batch, 2, 10))


def test_seeds_splits_and_indices_give_different_clips() -> None:
    frames = Scenes(MEDIUM, 0).clips(0, 2).frames
    for other in (Scenes(MEDIUM, 1), Scenes(MEDIUM, 0, "test")):
        assert not torch.equal(frames, other.clips(0, 2).frames)
    assert not torch.equal(frames[0], frames[1])


def test_no_tensor_is_ever_read_back() -> None:
    """A meta tensor has no values, so whatever would wait for a value fails; shapes must come out anyway."""
    clip = Scenes(BUSY, 0, device="meta").clips(0, 3)
    assert clip.frames.shape == (3, 10, 3, 64, 64)
    assert clip.truth.id.shape == (3, 10, 16)


def test_pixels_and_visible_shares_are_between_0_and_1() -> None:
    for config in (MEDIUM, BUSY):
        clip = Scenes(config, 0).clips(0, 4)
        for values in (clip.frames, clip.truth.visible):
            assert values.min() >= 0
            assert values.max() <= 1
        assert clip.truth.visible[clip.truth.id < 0].max() == 0


def test_centres_stay_in_the_environment_and_reach_its_walls() -> None:
    config = replace(LOW, frame=(40, 72))
    centre = Scenes(config, 0).clips(0, 25, length=20).truth.centre
    margin = 0.6 * config.size
    for axis, side in enumerate((72, 40)):
        assert centre[..., axis].min() >= -margin - 1e-4
        assert centre[..., axis].max() <= side + margin + 1e-4
        assert centre[..., axis].min() < -margin + 0.5
        assert centre[..., axis].max() > side + margin - 0.5


def test_away_from_the_walls_speeds_are_constant_and_in_range() -> None:
    centre = Scenes(LOW, 0).clips(0, 20).truth.centre
    steps = centre.diff(dim=1)  # [B, T - 1, N, 2]
    # A reflection changes a component only within one step, 0.3 s, of a wall.
    free = ((centre > 0) & (centre < 64)).all(-1).all(1)  # [B, N]
    speed = steps.norm(dim=-1).movedim(1, 2)[free]
    assert len(speed) > 50
    assert speed.min() >= 0.1 * LOW.size - 1e-3
    assert speed.max() <= 0.3 * LOW.size + 1e-3
    assert speed.std(-1).max() < 1e-3
    assert speed.mean(-1).max() - speed.mean(-1).min() > 0.15 * LOW.size


def test_the_box_is_centred_and_of_the_objects_size() -> None:
    truth = Scenes(MEDIUM, 0).clips(0, 4).truth
    low, high = truth.box[..., :2], truth.box[..., 2:]
    assert torch.allclose((low + high) / 2, truth.centre, atol=1e-4)
    assert torch.allclose((high - low)[:, :1].expand_as(low), high - low, atol=1e-4)
    side = (high - low).amax(-1)
    assert side.min() > 0.9 * 0.8 * 9 - 1e-3
    assert side.max() < 1.1 * 1.14 * 9


def test_the_box_hugs_what_is_drawn() -> None:
    clip = Scenes(SceneConfig(objects=(1, 1), size=16.0), 0).clips(0, 40, length=1)
    lit = clip.frames[:, 0].amax(1) > 0.4  # [B, H, W]
    box = clip.truth.box[:, 0, 0]
    inside = ((box >= 0) & (box <= 64)).all(-1)
    assert inside.sum() > 10
    for columns, x0, x1 in ((lit.any(1), 0, 2), (lit.any(2), 1, 3)):
        first = columns.byte().argmax(-1)
        last = 64 - columns.flip(-1).byte().argmax(-1)
        assert (first - box[:, x0])[inside].abs().max() < 1.3
        assert (last - box[:, x1])[inside].abs().max() < 1.3


def test_a_lone_object_fully_in_view_is_fully_visible() -> None:
    truth = Scenes(SceneConfig(objects=(1, 1)), 0).clips(0, 50).truth
    margin = 1.0  # half a pixel of soft rim
    inside = ((truth.box > margin) & (truth.box < 64 - margin)).all(-1)
    assert inside.sum() > 100
    assert (truth.visible[inside] == 1).all()


def test_the_owner_map_agrees_with_the_visible_shares() -> None:
    truth = Scenes(LOW, 0).clips(0, 8).truth
    owned = torch.stack([(truth.owner == n).sum((-2, -1)) for n in range(11)], -1)  # [B, T, N]
    assert (owned[truth.visible == 0] == 0).all()
    assert (owned[truth.id < 0] == 0).all()
    assert owned.sum() == (truth.owner >= 0).sum()
    # At nearly full visibility an object owns its area: a third to two thirds of its size squared.
    shown = owned[truth.visible > 0.97] / LOW.size**2
    assert shown.min() > 0.51 * 0.81 * 0.85
    assert shown.max() < 0.64 * 1.21 * 1.15


def test_colour_is_where_an_owner_is() -> None:
    clip = Scenes(MEDIUM, 0).clips(0, 4)
    brightness = clip.frames.amax(2)
    assert brightness[clip.truth.owner >= 0].min() > 0.25
    # The background has a larger share than any object, but two soft rims together may outshine it.
    assert brightness[clip.truth.owner < 0].max() < 0.75
    assert brightness[clip.truth.owner < 0].mean() < 0.05


def test_depth_orders_are_random_permutations() -> None:
    order = Scenes(MEDIUM, 0).clips(0, 50, length=1).truth.order
    assert (order.sort(-1).values == torch.arange(24)).all()
    assert order.float().mean(0).sub(11.5).abs().max() < 4.5  # 4.5 is 4.6 times the spread of the mean


def test_the_front_object_owns_the_overlap() -> None:
    alpha = torch.tensor([[[1.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]).view(2, 1, 1, 2, 2)
    place = torch.arange(4).view(2, 2).expand(2, 1, 1, 2, 2).contiguous()
    red_before_green = torch.tensor([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]])
    layers = compose(alpha, place, torch.tensor([[1], [0]]), red_before_green.movedim(-1, 0)[..., None, None, None], 4)
    assert layers.colours.T.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert layers.heaviest.tolist() == [1, 1, -1, 0]
    assert layers.area.flatten().tolist() == [2, 1]
    assert layers.open_share.tolist() == [0, 0, 1, 0]


def test_no_hidden_object_is_in_front_of_the_one_that_owns_its_centre() -> None:
    truth = Scenes(LOW, 0).clips(0, 20).truth
    x, y = truth.centre.floor().long().unbind(-1)  # [B, T, N]
    inside = (x >= 0) & (x < 64) & (y >= 0) & (y < 64) & (truth.id >= 0)
    at = (y.clamp(0, 63) * 64 + x.clamp(0, 63)).flatten(2)
    owner = truth.owner.flatten(2).gather(2, at)
    order = truth.order[:, None].expand_as(at)
    # A centre lies deep inside its object, so whoever owns it is that object or one in front of it.
    assert (order.gather(2, owner.clamp(min=0)) <= order)[inside].all()
    assert (owner[inside] >= 0).all()


def test_who_left_the_view_returns_under_a_new_id() -> None:
    truth = Scenes(SceneConfig(objects=(8, 11), size=8.0, frame=(32, 32)), 0).clips(0, 24, length=40).truth
    ids = truth.id.movedim(1, 2).flatten(0, 1)  # [B * N, T]
    returns = 0
    for track in ids.tolist():
        visits: list[int] = []
        for before, now in zip([-1, *track], track, strict=False):
            if now >= 0:
                assert before in (-1, now), "an id changes only out of view"
                if before == -1:
                    assert now not in visits, "an id never comes back"
                    visits.append(now)
        returns += max(0, len(visits) - 1)
    assert returns > 20


def test_an_object_out_of_view_touches_no_pixel() -> None:
    truth = Scenes(LOW, 0).clips(0, 20).truth
    apart = (truth.box[..., :2] > 64.5).any(-1) | (truth.box[..., 2:] < -0.5).any(-1)
    assert apart.any()
    assert (truth.id[apart] == -1).all()


def test_ids_are_unique_within_a_frame_and_an_object() -> None:
    truth = Scenes(MEDIUM, 0).clips(0, 10, length=30).truth
    number = torch.arange(24).expand_as(truth.id)
    seen = truth.id >= 0
    assert (truth.id % 24 == number)[seen].all()


def test_the_number_of_objects_varies_between_its_bounds() -> None:
    truth = Scenes(SceneConfig(objects=(2, 5), size=4.0), 0).clips(0, 150, length=12).truth
    ever = (truth.id >= 0).any(1).sum(-1)
    assert ever.max() == 5
    assert ever.min() == 2
    assert abs(ever.float().mean() - 3.5) < 0.3


@pytest.mark.parametrize(("config", "average"), [(VERY_LOW, 2.9), (LOW, 8.0), (MEDIUM, 20.0)])
def test_about_as_many_objects_are_in_view_as_in_the_paper(config: SceneConfig, average: float) -> None:
    truth = Scenes(config, 0, "test").clips(0, 60, length=3).truth
    assert abs((truth.id >= 0).sum(-1).float().mean() / average - 1) < 0.15


def test_groups_are_born_in_view_at_their_frames() -> None:
    config = SceneConfig(objects=(10, 15), births=(0, 4, 8))
    truth = Scenes(config, 0).clips(0, 30).truth
    assert truth.id.shape[-1] == 45
    present = (truth.id >= 0).view(30, 10, 3, 15).sum(-1)  # [B, T, groups]
    for group, birth in enumerate(config.births):
        assert (present[:, :birth, group] == 0).all()
        assert present[:, birth, group].min() >= (10 if birth else 5)
        assert present[:, birth, group].max() <= 15
    born = truth.centre[:, 4, 15:30]
    assert born.min() >= 0
    assert born.max() <= 64


def test_steering_makes_objects_cover_each_other_more() -> None:
    def hidden(config: SceneConfig) -> float:
        truth = Scenes(config, 0).clips(0, 12).truth
        inside = ((truth.box > 1) & (truth.box < 63)).all(-1) & (truth.id >= 0)
        return float((truth.visible[inside] < 0.5).float().mean())

    for config in (VERY_LOW, LOW):
        assert hidden(replace(config, steer=True)) > 1.5 * hidden(config)


def test_backgrounds_fill_the_frame_behind_the_objects() -> None:
    plain, moving = (Scenes(replace(LOW, background=on), 0).clips(0, 2) for on in (False, True))
    assert torch.equal(plain.truth.owner, moving.truth.owner)
    assert plain.frames.amax(2).min() == 0
    assert moving.frames.amax(2).min() > 0.1
    assert moving.frames.amax(2)[moving.truth.owner < 0].max() < 0.85
    assert (plain.frames <= moving.frames).all()


def test_crowds_in_large_frames_are_drawn() -> None:
    clip = Scenes(SceneConfig(frame=(256, 256), objects=(300, 300), size=7.0), 0).clips(0, length=2)
    assert (clip.truth.id >= 0).sum(-1).min() > 270
    assert clip.truth.owner.max() > 250


def test_an_empty_length_is_refused() -> None:
    with pytest.raises(InputError, match="length is 0"):
        Scenes(MEDIUM, 0).clips(0, length=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_captured_graph_draws_the_same_clips_as_the_cpu() -> None:
    scenes = Scenes(BUSY, 0, device="cuda")
    index = torch.arange(4, device="cuda")
    scenes.clips(index)  # warms up what a capture must not start
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        clip = scenes.clips(index)
    index += 10
    graph.replay()
    expected = Scenes(BUSY, 0).clips(10, 4)
    # Sines differ in the last bit between devices, and a rounding step is 1/4096.
    assert (clip.frames.cpu() - expected.frames).abs().max() < 0.01
    assert torch.equal(clip.truth.id.cpu(), expected.truth.id)
    assert torch.allclose(clip.truth.visible.cpu(), expected.truth.visible, atol=0.01)
