"""Bouncing balls obey the laws of the data sets that they are modelled on."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import torch

from scalor.config import SceneConfig
from scalor.data import balls
from scalor.data.balls import EPISODE, PALETTE, SPEED, Balls, BallState, rounds_of_pairs
from scalor.data.clip import Clip
from scalor.data.scenes import Scenes
from scalor.errors import InputError

OCCLUSION = SceneConfig(kind="balls", objects=(3, 3), size=16.0, length=EPISODE)
INTERACTION = replace(OCCLUSION, collide=True)
TWO_LAYER = replace(INTERACTION, objects=(6, 6), depths=2)
DENSE = replace(INTERACTION, objects=(16, 16), size=10.0, depths=2)
ALL = [OCCLUSION, INTERACTION, TWO_LAYER, DENSE]


@pytest.fixture(autouse=True, scope="module")
def few_episodes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balls, "EPISODES", {"train": 24, "test": 8})
        yield


@cache
def made(config: SceneConfig, split: str = "test") -> Balls:
    return Balls(config, 3, split, torch.device("cpu"))


def whole(config: SceneConfig) -> Clip:
    return Scenes(config, 3, "test").clips(0, 8)


def apart(path: torch.Tensor) -> torch.Tensor:
    """Distances of all pairs, [N, N, E, T]."""
    distance: torch.Tensor = (path[:, None] - path[None]).norm(dim=-1)
    return distance


@pytest.mark.parametrize("config", ALL)
def test_balls_stay_within_the_walls(config: SceneConfig) -> None:
    path, radius = made(config).path, config.size / 2
    slack = SPEED * len(path) ** 0.5 / balls.SUBSTEPS  # the furthest that a ball gets within one substep
    assert path.shape == (config.objects[0], 8, EPISODE, 2)
    assert float(path.min()) > radius - slack
    assert float(path.max()) < 64 - radius + slack


@pytest.mark.parametrize("config", ALL)
def test_every_ball_begins_with_the_same_speed(config: SceneConfig) -> None:
    path = made(config).path
    steps = (path[:, :, 1] - path[:, :, 0]).norm(dim=-1)
    assert float(steps.median()) == pytest.approx(SPEED, rel=1e-3)  # but for those that hit something at once


@pytest.mark.parametrize("config", [INTERACTION, TWO_LAYER, DENSE])
def test_balls_of_one_depth_hardly_overlap_and_none_touch_at_first(config: SceneConfig) -> None:
    scenes = made(config)
    distance = apart(scenes.path)
    count, reach = len(distance), config.size
    others = ~torch.eye(count, dtype=torch.bool)
    assert float(distance[others][..., 0].min()) >= reach
    alike = (scenes.depth[:, None] == scenes.depth[None]) & others
    assert float(distance[alike].min()) > 0.75 * reach  # three balls may meet within one substep
    assert float((distance[alike] < reach - 0.6).float().mean()) < 0.01


@pytest.mark.parametrize("config", [OCCLUSION, TWO_LAYER, DENSE])
def test_balls_that_do_not_collide_pass_over_each_other(config: SceneConfig) -> None:
    scenes = made(config)
    alike = scenes.depth[:, None] == scenes.depth[None] if config.collide else torch.zeros(3, 3, dtype=torch.bool)
    other = ~alike & ~torch.eye(len(alike), dtype=torch.bool)
    assert float(apart(scenes.path)[other].min()) < 0.3 * config.size


@pytest.mark.parametrize("config", [INTERACTION, DENSE])
def test_a_collision_keeps_momentum_and_energy(config: SceneConfig) -> None:
    scenes = made(config)
    torch.manual_seed(0)
    count = len(scenes.path)
    ahead, velocity = 20 + 24 * torch.rand(count, 50, 2), SPEED * torch.randn(count, 50, 2)
    after = scenes.bounce(ahead, velocity)
    assert not torch.allclose(after, velocity)
    for depth in (0, config.depths - 1):
        own = scenes.depth == depth
        torch.testing.assert_close(after[own].sum(0), velocity[own].sum(0), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(after[own].square().sum((0, 2)), velocity[own].square().sum((0, 2)))


@pytest.mark.parametrize("depth", [[0, 0, 0], [0, 0, 0, 1, 1, 1], [0] * 8 + [1] * 8, [0, 0], [0]])
def test_rounds_have_every_pair_of_one_depth_once_and_a_ball_once_a_round(depth: list[int]) -> None:
    rounds = rounds_of_pairs(depth)
    pairs = [frozenset(pair) for one, other in rounds for pair in zip(one.tolist(), other.tolist(), strict=True)]
    expected = {frozenset((a, b)) for a in range(len(depth)) for b in range(a) if depth[a] == depth[b]}
    assert len(pairs) == len(expected)
    assert set(pairs) == expected
    for one, other in rounds:
        assert len({*one.tolist(), *other.tolist()}) == 2 * len(one)


def test_a_head_on_collision_exchanges_the_velocities_and_a_parting_pair_is_left_alone() -> None:
    scenes = made(replace(INTERACTION, objects=(2, 2)))
    centre = torch.tensor([[[20.0, 30.0]], [[35.0, 30.0]]])
    velocity = torch.tensor([[[3.0, 1.0]], [[-3.0, 0.0]]])
    assert scenes.bounce(centre, velocity).tolist() == [[[-3.0, 1.0]], [[3.0, 0.0]]]
    assert torch.equal(scenes.bounce(centre, -velocity), -velocity)


def test_a_wall_reflects_one_part_of_the_velocity() -> None:
    scenes = made(OCCLUSION)
    state = BallState(torch.tensor([[[8.1, 30.0]], [[30.0, 55.9]]]), torch.tensor([[[-3.0, 1.0]], [[1.0, 3.0]]]))
    moved = scenes.move(state, torch.tensor([64.0, 64.0]), 0.1)
    assert moved.velocity.tolist() == [[[3.0, 1.0]], [[1.0, -3.0]]]
    torch.testing.assert_close(moved.centre, state.centre + 0.1 * moved.velocity)


def test_colours_are_those_of_the_data_sets() -> None:
    different, any_colours, layers = (made(config).colour for config in (OCCLUSION, INTERACTION, TWO_LAYER))
    for episode in range(8):
        assert len({tuple(colour) for colour in different[:, episode].tolist()}) == 3
    assert {tuple(colour) for colour in any_colours.flatten(0, 1).tolist()} == set(PALETTE)
    assert layers[:, 0].tolist() == [[0, 0, 1]] * 3 + [[1, 0, 0]] * 3  # blue is behind


def test_a_frame_shows_what_its_truth_says() -> None:
    clip = whole(TWO_LAYER)
    frames, truth = clip.frames, clip.truth
    assert truth.order.tolist() == [[5, 4, 3, 2, 1, 0]] * 8  # the last ones, which are red, are in front
    for clip_number, time in ((0, 0), (3, 57)):
        owner = truth.owner[clip_number, time]
        for ball in range(6):
            shown = frames[clip_number, time][:, owner == ball].mean(1)
            assert shown[2 if ball < 3 else 0] > 0.8
            assert shown[1] < 0.05
        assert float(frames[clip_number, time][:, owner < 0].max()) <= 0.5
    side = truth.box[..., 2:] - truth.box[..., :2]
    torch.testing.assert_close(side, torch.full_like(side, 16.0), atol=1e-4, rtol=0)
    assert set(truth.id.unique().tolist()) == set(range(6))  # nothing leaves the view


def test_the_same_index_gives_the_same_clip_and_training_clips_are_windows_of_episodes() -> None:
    config = replace(INTERACTION, length=10)
    one, again = Scenes(config, 3, "train"), Scenes(config, 3, "train")
    clip, same = one.clips(5, 3), again.clips(torch.tensor([5, 6, 7]))
    assert torch.equal(clip.frames, same.frames)
    assert torch.equal(one.clips(5, 1, length=4).frames, clip.frames[:1, :4])
    path = made(config, "train").path
    centre = clip.truth.centre[0].transpose(0, 1)  # [N, T, 2]
    starts = (path[:, :, :91] - centre[:, None, :1]).norm(dim=-1).amax(0)
    assert float(starts.min()) == 0  # the clip begins somewhere in an episode
    assert not torch.equal(Scenes(config, 4, "train").clips(5, 1).frames, clip.frames[:1])


@pytest.mark.parametrize(
    ("change", "name"),
    [({"objects": (2, 3)}, "objects"), ({"length": 101}, "length"), ({"objects": (40, 40)}, "size")],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    change: dict[str, object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balls, "ATTEMPTS", 50)
    with pytest.raises(InputError, match=f"scene.{name} is"):
        made(replace(INTERACTION, **change))  # type: ignore[arg-type]
