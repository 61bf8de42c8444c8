"""Proposals: where they may lie, and which are rejected because others explain them."""

import pytest
import torch
from torch import Tensor

from scalor.kernels import paste
from scalor.model.discovery import Discovery
from scalor.model.geometry import corners
from scalor.model.glimpses import Sprite
from scalor.model.latents import Latents
from scalor.nn.distributions import Mode

from .worlds import tiny_config, tiny_model


def proposals(mask: Tensor) -> Sprite:
    """Proposals that show the same mask [P, P]."""
    return Sprite(torch.rand(1, 3, 3, 8, 8), mask.expand(1, 3, 1, 8, 8))


WHERE = torch.tensor([[[8.0, 8.0, 8.0, 8.0], [24.0, 24.0, 8.0, 8.0], [12.0, 8.0, 8.0, 8.0]]])


def explained_box(x0: int, y0: int, x1: int, y1: int, value: float = 1.0) -> Tensor:
    explained = torch.zeros(1, 1, 32, 32)
    explained[..., y0:y1, x0:x1] = value
    return explained


def test_a_proposal_over_a_propagated_object_is_rejected_and_one_elsewhere_is_not() -> None:
    discovery = Discovery(tiny_config())
    rejected = discovery.reject(proposals(torch.ones(8, 8)), WHERE, explained_box(4, 4, 12, 12))
    assert rejected.tolist() == [[1, 0, 1]]  # the third is covered by half, more than tau


@pytest.mark.parametrize(("overlap", "expected"), [(0.3, 1.0), (0.49, 1.0), (0.51, 0.0), (0.9, 0.0)])
def test_the_explained_share_of_a_proposal_decides(overlap: float, expected: float) -> None:
    discovery = Discovery(tiny_config(rejection_overlap=overlap))
    half = discovery.reject(proposals(torch.ones(8, 8)), WHERE, explained_box(4, 4, 8, 12))
    assert half[0, 0] == expected


def test_only_the_pixels_of_a_mask_count() -> None:
    """The explained half is where the proposal shows nothing, so it stays; where it shows all it has, it goes."""
    discovery = Discovery(tiny_config())
    left = torch.zeros(8, 8)
    left[:, :2] = 1
    assert discovery.reject(proposals(left), WHERE, explained_box(8, 4, 12, 12))[0, 0] == 0
    assert discovery.reject(proposals(left), WHERE, explained_box(4, 4, 8, 12))[0, 0] == 1


def test_a_faint_explanation_explains_nothing() -> None:
    discovery = Discovery(tiny_config())
    assert not discovery.reject(proposals(torch.ones(8, 8)), WHERE, explained_box(0, 0, 32, 32, 0.05)).any()
    assert discovery.reject(proposals(torch.ones(8, 8)), WHERE, explained_box(0, 0, 32, 32, 0.2)).all()


def test_an_empty_mask_is_not_rejected() -> None:
    rejected = Discovery(tiny_config()).reject(proposals(torch.zeros(8, 8)), WHERE, explained_box(0, 0, 32, 32))
    assert not rejected.any()


def test_nothing_is_rejected_with_rejection_off() -> None:
    discovery = Discovery(tiny_config(rejection=False))
    assert not discovery.reject(proposals(torch.ones(8, 8)), WHERE, explained_box(0, 0, 32, 32)).any()


def discs(radius: float = 0.9, side: int = 8) -> Tensor:
    """A round mask [P, P]; the radius in halves of its box."""
    place = (torch.arange(side) + 0.5) / side * 2 - 1
    return ((place[:, None] ** 2 + place**2) <= radius**2).float()


@pytest.mark.parametrize(("apart", "goes"), [(0.0, 1), (1.0, 1), (2.0, 0), (4.0, 0), (20.0, 0)])
def test_of_proposals_that_found_one_object_the_most_present_stays(apart: float, goes: int) -> None:
    """Proposals come most present first. Those that merely touch or overlap both stay."""
    sprite = Sprite(torch.rand(1, 2, 3, 8, 8), discs().expand(1, 2, 1, 8, 8))
    where = torch.tensor([[[10.0, 10.0, 8.0, 8.0], [10.0 + apart, 10.0, 8.0, 8.0]]])
    assert Discovery(tiny_config(siblings=True)).doubled(sprite, where).tolist() == [[0, goes]]
    assert not Discovery(tiny_config(siblings=False)).doubled(sprite, where).any()


def test_a_large_proposal_outlives_a_small_one_before_it_but_not_the_other_way_round() -> None:
    sprite = Sprite(torch.rand(1, 2, 3, 8, 8), discs().expand(1, 2, 1, 8, 8))
    sizes = torch.tensor([[[10.0, 10.0, 4.0, 4.0], [10.0, 10.0, 12.0, 12.0]]])
    assert Discovery(tiny_config(siblings=True)).doubled(sprite, sizes).tolist() == [[0, 0]]
    assert Discovery(tiny_config(siblings=True)).doubled(sprite, sizes.flip(1)).tolist() == [[0, 1]]


def test_siblings_are_told_by_the_pixels_of_their_masks() -> None:
    """The same as on a canvas, where the masks of all proposals before one are painted at ten times the size."""
    torch.manual_seed(3)
    count, fine = 12, 10
    centre, size = 4 + 16 * torch.rand(2, count, 2), 5 + 5 * torch.rand(2, count, 2)
    where = torch.cat([centre, size], -1)
    radius = 0.5 + 0.5 * torch.rand(2, count)
    mask = torch.stack([torch.stack([discs(float(r), 16) for r in clip]) for clip in radius])[:, :, None]
    config = tiny_config(glimpse=16, siblings=True)
    doubled = Discovery(config).doubled(Sprite(torch.rand(2, count, 3, 16, 16), mask), where)
    canvas = (24 * fine, 24 * fine)
    assert 0 < doubled.sum() < doubled.numel() / 2
    for b in range(2):
        on = paste(mask[b][:, None], fine * where[b][:, None], canvas)[:, 0] > 0.5
        for j in range(1, count):
            share = (on[j] & on[:j].any(0)).sum() / on[j].sum()
            if abs(share - config.sibling_cover) > 0.05:  # pixels of a glimpse are coarse
                assert bool(doubled[b, j]) is bool(share > config.sibling_cover)


@pytest.mark.parametrize("siblings", [True, False])
def test_a_sibling_is_not_followed_but_as_present_as_before(siblings: bool) -> None:
    """So it is still drawn and still paid for."""
    sprite = Sprite(torch.rand(1, 2, 3, 8, 8), discs().expand(1, 2, 1, 8, 8))
    where, presence = torch.tensor([[[10.0, 10.0, 8.0, 8.0]] * 2]), torch.tensor([[[0.9], [0.8]]])
    born = Discovery(tiny_config(siblings=siblings)).newborn(
        where, Latents.unpack(torch.zeros(1, 2, 9)), presence, sprite
    )
    assert born.alive[0, :, 0].tolist() == [1, 0 if siblings else 1]
    assert torch.equal(born.presence, presence)


def test_an_explained_frame_discovers_nothing() -> None:
    """Of what lies inside the frame and shows itself: nothing explains what is beyond the border."""
    model = tiny_model()
    for explained, some in ((torch.zeros(2, 1, 32, 32), True), (torch.ones(2, 1, 32, 32), False)):
        prepared, image = torch.randn(2, 16, 8), torch.rand(2, 3, 32, 32)
        objects, sprite, proposals = model.discovery(prepared, explained, image, model.appearance, 16, Mode())
        box = corners(objects.where)
        inside = ((box >= 0) & (box <= 32)).all(-1) & (sprite.mask.amax((2, 3, 4)) > 0.3)
        assert inside.any()
        assert bool(objects.alive[inside].any()) is some
        assert bool(proposals.rejected.any()) is not some


def test_a_proposal_stays_within_a_cell_of_its_own_and_its_size_in_range() -> None:
    config = tiny_config(frame=(24, 40), grid=(4, 5), object_size=(6.0, 10.0), size_range=0.4)
    discovery, cells = Discovery(config), torch.arange(20)[None]
    for scale in (0.0, 1.0, 100.0):
        where = discovery.place(scale * torch.randn(1, 20, 4), cells, columns=5)[0]
        middle = torch.stack([(cells[0] % 5 + 0.5) * 8, (cells[0] // 5 + 0.5) * 6], -1)
        assert ((where[:, :2] - middle).abs() <= torch.tensor([8.0, 6.0]) + 1e-4).all()
        assert (where[:, 2] >= 6 - 1e-4).all()
        assert (where[:, 2] <= 14 + 1e-4).all()
        assert (where[:, 3] >= 3.6 - 1e-4).all()
        assert (where[:, 3] <= 8.4 + 1e-4).all()
        if scale == 0:
            assert torch.equal(where, torch.cat([middle, torch.tensor([10.0, 6.0]).expand(20, 2)], -1))


def test_proposals_come_most_present_first() -> None:
    model = tiny_model(rejection=False)
    objects, sprite, _ = model.discovery(
        torch.randn(2, 16, 8),
        torch.zeros(2, 1, 32, 32),
        torch.rand(2, 3, 32, 32),
        model.appearance,
        16,
        Mode(),
    )
    presence = objects.presence[..., 0]
    assert (presence.diff() <= 0).all()
    shows = sprite.mask.amax((2, 3, 4)) > 0.3
    assert torch.equal(objects.alive[..., 0], ((presence > 0.7) & shows).float())
    assert 0 < objects.alive.mean() < 1
    assert not objects.z_where[..., :2].any()  # a newborn has not moved
