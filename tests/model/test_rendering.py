"""Laws of the renderer: order does not matter, nearness does, and the dense form of the paper agrees."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from scalor.model import rendering
from scalor.model.glimpses import Sprite
from scalor.model.rendering import compose, render_input
from scalor.model.sighting import visible_masks
from scalor.model.state import ObjectState

from .test_geometry import paste_one
from .worlds import all_alive, random_objects, random_sprite

FRAME = (20, 28)


def draw(objects: ObjectState, sprite: Sprite, frame: tuple[int, int]) -> Sprite:
    return rendering.draw(render_input(objects, sprite), frame)


def coverage(objects: ObjectState, sprite: Sprite, frame: tuple[int, int]) -> Tensor:
    return rendering.coverage(render_input(objects, sprite), frame)


def at_depth(objects: ObjectState, depth: Tensor) -> ObjectState:
    return replace(objects, latent=torch.cat([objects.latent[..., :-1].to(depth.dtype), depth], -1))


def full(clips: int, count: int, **values: Tensor) -> ObjectState:
    """Objects that fill the frame, alive and present, unless told otherwise."""
    objects = all_alive(random_objects(clips, count, FRAME))
    where = torch.tensor([FRAME[1] / 2, FRAME[0] / 2, 2 * FRAME[1], 2 * FRAME[0]]).expand(clips, count, 4)
    return replace(objects, **{"where": where, "presence": torch.ones(clips, count, 1), **values})


def plain(colours: list[tuple[float, float, float]], mask: float = 1.0) -> Sprite:
    colour = torch.tensor(colours)[None, :, :, None, None].expand(1, -1, -1, 8, 8)
    return Sprite(colour, torch.full((1, len(colours), 1, 8, 8), mask))


def dense(objects: ObjectState, sprite: Sprite, frame: tuple[int, int]) -> Sprite:
    """Algorithm 3 as written: a whole canvas per object, weights normalised over objects at every pixel."""
    colours, masks = [], []
    for b in range(objects.where.shape[0]):
        layers, covers, weights = [], [], []
        for n in range(objects.where.shape[1]):
            seen = float(objects.presence[b, n] * objects.alive[b, n])
            opacity = sprite.mask[b, n].double() * seen
            box = objects.where[b, n].double()
            canvas = paste_one(torch.cat([sprite.colour[b, n].double() * opacity, opacity]), box, frame)
            layers.append(canvas[:3] / canvas[3:].clamp(min=1e-12))
            covers.append(canvas[3:])
            weights.append(canvas[3:] * torch.sigmoid(-objects.z_depth[b, n].double()))
        gamma = torch.stack(weights) / (torch.stack(weights).sum(0) + 1e-5)
        colours.append((gamma * torch.stack(layers)).sum(0))
        masks.append(torch.stack(covers).sum(0).clamp(max=1))
    return Sprite(torch.stack(colours), torch.stack(masks))


def test_the_renderer_agrees_with_a_canvas_per_object() -> None:
    objects, sprite = random_objects(2, 15, FRAME), random_sprite(2, 15)
    expected, drawn = dense(objects, sprite, FRAME), draw(objects, sprite, FRAME)
    assert 0.1 < expected.mask.mean() < 1
    torch.testing.assert_close(drawn.colour.double(), expected.colour, rtol=0, atol=1e-4)
    torch.testing.assert_close(drawn.mask.double(), expected.mask, rtol=0, atol=1e-5)
    torch.testing.assert_close(coverage(objects, sprite, FRAME).double(), expected.mask, rtol=0, atol=1e-5)


def test_the_order_of_objects_does_not_matter() -> None:
    objects, sprite = random_objects(2, 9, FRAME), random_sprite(2, 9)
    order = torch.randperm(9)
    shuffled = objects.unpack(objects.pack()[:, order])
    drawn, again = draw(objects, sprite, FRAME), draw(shuffled, Sprite(*(s[:, order] for s in sprite)), FRAME)
    torch.testing.assert_close(again.mask, drawn.mask, rtol=0, atol=1e-5)
    torch.testing.assert_close(again.colour, drawn.colour, rtol=0, atol=1e-5)


@pytest.mark.parametrize("field", ["alive", "presence"])
def test_the_dead_and_the_absent_draw_nothing(field: str) -> None:
    objects, sprite = all_alive(random_objects(2, 6, FRAME)), random_sprite(2, 6)
    gone = torch.ones(2, 6, 1)
    gone[:, ::2] = 0
    partly = replace(objects, **{field: getattr(objects, field) * gone})
    rest = objects.unpack(objects.pack()[:, 1::2])
    one, other = draw(partly, sprite, FRAME), draw(rest, Sprite(*(s[:, 1::2] for s in sprite)), FRAME)
    torch.testing.assert_close(one.mask, other.mask, rtol=0, atol=1e-5)
    torch.testing.assert_close(one.colour, other.colour, rtol=0, atol=1e-5)
    nothing = draw(replace(objects, **{field: torch.zeros(2, 6, 1)}), sprite, FRAME)
    assert not nothing.mask.any()
    assert not compose(nothing, None).image.any()
    assert not coverage(replace(objects, **{field: torch.zeros(2, 6, 1)}), sprite, FRAME).any()


def test_a_nearer_object_hides_a_farther_one() -> None:
    depth = torch.tensor([[[-6.0], [6.0]]])
    near, far = (1.0, 0.2, 0.0), (0.0, 0.9, 1.0)
    for order in ([0, 1], [1, 0]):
        objects = at_depth(full(1, 2), depth[:, order])
        picture = compose(draw(objects, plain([(near, far)[i] for i in order]), FRAME), None).image
        centre = picture[0, :, FRAME[0] // 2, FRAME[1] // 2]
        torch.testing.assert_close(centre, torch.tensor(near), rtol=0, atol=0.01)


def test_nearness_weighs_by_the_sigmoid_of_minus_depth() -> None:
    depth = torch.tensor([[[0.3], [-1.1]]])
    weights = torch.sigmoid(-depth[0, :, 0])
    colours = torch.tensor([[1.0, 0.2, 0.0], [0.0, 0.9, 1.0]])
    picture = compose(draw(at_depth(full(1, 2), depth), plain([(1.0, 0.2, 0.0), (0.0, 0.9, 1.0)]), FRAME), None).image
    expected = (weights[:, None] * colours).sum(0) / weights.sum()
    torch.testing.assert_close(picture[0, :, 10, 14], expected, rtol=0, atol=1e-4)


def test_room_for_more_objects_changes_nothing() -> None:
    shown = render_input(random_objects(2, 5, FRAME), random_sprite(2, 5))
    wider = shown.padded(9)
    assert wider.where.shape == (2, 9, 4)
    drawn, again = rendering.draw(shown, FRAME), rendering.draw(wider, FRAME)
    torch.testing.assert_close(again, drawn, rtol=0, atol=1e-6)


def test_the_mask_never_exceeds_one() -> None:
    objects, sprite = full(2, 12), random_sprite(2, 12)
    for mask in (draw(objects, sprite, FRAME).mask, coverage(objects, sprite, FRAME)):
        assert mask.max() <= 1 + 1e-6
        assert mask.max() > 0.999
        assert mask.min() >= 0


def test_the_background_shows_where_objects_do_not_cover() -> None:
    objects, sprite = random_objects(2, 5, FRAME), random_sprite(2, 5)
    drawn, behind = draw(objects, sprite, FRAME), torch.rand(2, 3, *FRAME)
    picture = compose(drawn, behind).image
    open_air = (drawn.mask == 0).expand_as(picture)
    assert open_air.any()
    assert torch.equal(picture[open_air], behind[open_air])
    torch.testing.assert_close(picture, drawn.mask * drawn.colour + (1 - drawn.mask) * behind)


def test_gradients_of_the_picture_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """In double precision all the way; cover stays below 1, away from the corner of its clamp."""
    random = torch.Generator().manual_seed(5)
    frame, count = (6, 7), 3
    objects = all_alive(random_objects(1, count, frame, seed=1))
    monkeypatch.setattr(Tensor, "float", lambda self: self)

    def uniform(*shape: int, low: float = 0.05, high: float = 0.95) -> Tensor:
        values = low + (high - low) * torch.rand(*shape, generator=random, dtype=torch.float64)
        return values.requires_grad_()

    colour, mask = uniform(1, count, 3, 4, 4), uniform(1, count, 1, 4, 4)
    presence, depth = uniform(1, count, 1, low=0.1, high=0.3), uniform(1, count, 1, low=-2, high=2)
    where = torch.tensor([[[2.3, 1.9, 3.7, 4.1], [4.6, 3.3, 5.3, 3.9], [3.1, 4.2, 9.7, 2.3]]], dtype=torch.float64)
    behind = torch.rand(1, 3, *frame, generator=random, dtype=torch.float64)

    def picture(colour: Tensor, mask: Tensor, where: Tensor, depth: Tensor, presence: Tensor) -> Tensor:
        state = replace(at_depth(objects, depth), where=where, presence=presence)
        drawn = draw(state, Sprite(colour, mask), frame)
        assert drawn.mask.max() < 1
        assert drawn.mask.max() > 0.2
        return compose(drawn, behind).image

    assert torch.autograd.gradcheck(picture, (colour, mask, where.requires_grad_(), depth, presence), atol=1e-4)


def test_a_pixel_covered_twice_asks_for_no_more_and_no_less_cover() -> None:
    """Its objects still learn from its colour."""
    presence = torch.ones(1, 2, 1, requires_grad=True)
    crowded = draw(full(1, 2, presence=presence), plain([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]), FRAME)
    assert crowded.mask[0, 0, 10, 14] == 1
    (gradient,) = torch.autograd.grad(crowded.mask[0, 0, 10, 14], presence, retain_graph=True)
    assert not gradient.any()
    (gradient,) = torch.autograd.grad(crowded.colour[0, 0, 10, 14], presence)
    assert gradient.all()


@pytest.mark.parametrize(("opacity", "seen"), [(0.2, False), (0.45, False), (0.55, True), (0.9, True)])
def test_a_pixel_shows_an_object_whose_mask_covers_more_than_half_of_it(opacity: float, seen: bool) -> None:
    objects, sprite = all_alive(random_objects(1, 1, (32, 32))), random_sprite(1, 1)
    objects = replace(objects, where=torch.tensor([[[16.0, 16.0, 16.0, 16.0]]]), presence=torch.ones(1, 1, 1))
    masks = visible_masks(render_input(objects, sprite._replace(mask=torch.full_like(sprite.mask, opacity))), (32, 32))
    assert bool(masks[0, 0, 14:18, 14:18].all()) == seen
    assert bool(masks.any()) == seen


def front_to_back(objects: ObjectState, sprite: Sprite, sharpness: float = 50.0) -> Sprite:
    return rendering.draw(render_input(objects, sprite), FRAME, sharpness)


def test_from_front_to_back_each_object_covers_its_share_of_what_is_left() -> None:
    """The "over" operator: of three half-opaque objects a half, a quarter and an eighth show."""
    depth = torch.tensor([[[0.0], [-2.0], [2.0]]])
    colours = torch.eye(3)
    drawn = front_to_back(at_depth(full(1, 3), depth), plain([tuple(c) for c in colours.tolist()], mask=0.5))
    picture = compose(drawn, None).image[0, :, 10, 14]
    torch.testing.assert_close(picture, torch.tensor([0.25, 0.5, 0.125]), rtol=0, atol=1e-4)
    torch.testing.assert_close(drawn.mask[0, 0, 10, 14], torch.tensor(0.875), rtol=0, atol=1e-4)


def test_from_front_to_back_a_hidden_object_may_have_any_colour() -> None:
    depth = torch.tensor([[[-2.0], [2.0]]])
    one, other = (
        compose(front_to_back(at_depth(full(1, 2), depth), plain([(0.2, 0.9, 0.4), hidden])), None).image
        for hidden in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    )
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_equal_depths_share_a_pixel() -> None:
    drawn = front_to_back(at_depth(full(1, 2), torch.zeros(1, 2, 1)), plain([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]))
    torch.testing.assert_close(
        compose(drawn, None).image[0, :, 10, 14], torch.tensor([0.5, 0.0, 0.5]), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("sharpness", [0.0, 4.0])
def test_objects_that_do_not_overlap_are_drawn_alike_in_both_ways(sharpness: float) -> None:
    where = torch.tensor([[[5.0, 10.0, 6.0, 6.0], [20.0, 10.0, 6.0, 6.0]]])
    objects, sprite = full(1, 2, where=where), random_sprite(1, 2)
    drawn = rendering.draw(render_input(objects, sprite), FRAME, sharpness)
    torch.testing.assert_close(
        compose(drawn, None).image, compose(draw(objects, sprite, FRAME), None).image, rtol=0, atol=1e-4
    )


def test_a_depth_learns_from_what_shows_where_two_objects_overlap() -> None:
    depth = torch.zeros(1, 2, 1, requires_grad=True)
    drawn = front_to_back(at_depth(full(1, 2), depth), plain([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]), sharpness=4.0)
    compose(drawn, None).image[0, 0, 10, 14].backward()
    assert depth.grad is not None
    assert depth.grad[0, 0, 0] < 0 < depth.grad[0, 1, 0]  # the nearer the first, the redder
