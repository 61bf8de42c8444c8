"""Births and deaths over long random lives: identities are unique, stable and never used again."""

from dataclasses import dataclass, fields, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from scalor.model.state import ObjectState, SceneState, end_duplicates, join


@dataclass(frozen=True)
class Day:
    """One frame of one clip: which slots die (if somebody is in them), and which proposals are born."""

    deaths: list[bool]
    births: list[bool]


@st.composite
def lives(draw: st.DrawFn) -> tuple[int, list[list[Day]]]:
    """The number of slots, and for every frame a day of each clip."""
    slots, clips = draw(st.integers(1, 6)), draw(st.integers(1, 2))

    def flags(count: int) -> st.SearchStrategy[list[bool]]:
        return st.lists(st.booleans(), min_size=count, max_size=count)

    days = []
    for _ in range(draw(st.integers(1, 12))):
        proposals = draw(st.integers(1, 8))  # the first frame may propose more than later ones
        days.append([Day(draw(flags(slots)), draw(flags(proposals))) for _ in range(clips)])
    return slots, days


def people(tags: Tensor, alive: Tensor) -> ObjectState:
    """Objects whose every field carries a tag, so that mixed-up fields show."""

    def field(width: int, scale: float) -> Tensor:
        return scale * tags[..., None] + torch.arange(width) / 16

    return ObjectState(field(4, 1), field(8, 2), field(1, 5), field(2, 6), alive[..., None])


def tag(objects: ObjectState) -> Tensor:
    return objects.where[..., 0]


def live(slots: int, days: list[list[Day]]) -> list[tuple[ObjectState, SceneState, ObjectState, SceneState]]:
    """Play a life; tags of proposals are numbered through, so every proposal that ever was has its own."""
    clips = len(days[0])
    objects = people(torch.zeros(clips, slots), torch.zeros(clips, slots))
    roster = SceneState.empty(clips, slots, 13, 2, torch.zeros(1))
    history, spent = [], 1
    for day in days:
        dying = torch.tensor([d.deaths for d in day]).float()[..., None]
        objects = ObjectState(
            **{f.name: getattr(objects, f.name) for f in fields(objects) if f.name != "alive"},
            alive=objects.alive * (1 - dying),
        )
        born = torch.tensor([d.births for d in day]).float()
        tags = spent + torch.arange(born.numel()).view(born.shape)
        spent += born.numel()
        newborn = people(tags.float(), born)
        joined = join(objects, roster, newborn)
        history.append((objects, roster, newborn, joined))
        objects, roster = joined.objects, joined
    return history


@settings(max_examples=40, deadline=None)
@given(lives())
def test_identities_are_unique_and_never_used_again(life: tuple[int, list[list[Day]]]) -> None:
    slots, days = life
    for clip in range(len(days[0])):
        known: dict[int, float] = {}
        gone: set[int] = set()
        for _, _, _, joined in live(slots, days):
            ids, tags = joined.id[clip].tolist(), tag(joined.objects)[clip].tolist()
            here = {i: t for i, t in zip(ids, tags, strict=True) if i >= 0}
            assert len(here) == sum(i >= 0 for i in ids)
            assert not gone & set(here)
            gone |= set(known) - set(here)
            for identity, owner in here.items():
                assert known.setdefault(identity, owner) == owner
        assert sorted(known) == list(range(len(known)))


@settings(max_examples=40, deadline=None)
@given(lives())
def test_an_object_keeps_its_slot_its_identity_and_its_fields(life: tuple[int, list[list[Day]]]) -> None:
    for before, roster, _, joined in live(*life):
        stays = before.alive[..., 0] > 0
        assert torch.equal(joined.id[stays], roster.id[stays])
        assert torch.equal(joined.objects.pack()[stays], before.pack()[stays])
        assert not joined.discovered[stays].any()


@settings(max_examples=40, deadline=None)
@given(lives())
def test_births_are_seated_best_first_on_the_free_slots(life: tuple[int, list[list[Day]]]) -> None:
    for before, roster, newborn, joined in live(*life):
        for clip in range(len(before.alive)):
            free = (before.alive[clip, :, 0] == 0).nonzero()[:, 0].tolist()
            born = (newborn.alive[clip, :, 0] > 0).nonzero()[:, 0].tolist()
            seated = list(zip(free, born, strict=False))
            assert joined.discovered[clip].nonzero()[:, 0].tolist() == [slot for slot, _ in seated]
            for number, (slot, proposal) in enumerate(seated):
                assert torch.equal(joined.objects.pack()[clip, slot], newborn.pack()[clip, proposal])
                assert joined.id[clip, slot] == roster.next_id[clip] + number
            assert joined.turned_away[clip] == len(born) - len(seated)
            assert joined.next_id[clip] == roster.next_id[clip] + len(seated)


@settings(max_examples=40, deadline=None)
@given(lives())
def test_a_slot_has_an_identity_exactly_when_it_is_alive(life: tuple[int, list[list[Day]]]) -> None:
    slots, days = life
    for _, _, _, joined in live(slots, days):
        assert torch.equal(joined.id >= 0, joined.objects.alive[..., 0] > 0)
        assert (joined.id[joined.id < 0] == -1).all()
        assert (joined.objects.alive.sum((1, 2)) <= slots).all()
        assert joined.objects.alive.shape[1] == slots


@settings(max_examples=20, deadline=None)
@given(lives())
def test_clips_of_a_batch_do_not_meet(life: tuple[int, list[list[Day]]]) -> None:
    slots, days = life
    for clip in range(len(days[0])):
        alone = live(slots, [[day[clip]] for day in days])
        for (*_, one), (*_, many) in zip(alone, live(slots, days), strict=True):
            assert torch.equal(one.id[0], many.id[clip])
            assert torch.equal(one.discovered[0], many.discovered[clip])
            assert one.turned_away[0] == many.turned_away[clip]


def test_unpacking_a_pack_gives_the_objects_back() -> None:
    objects = people(torch.rand(2, 5), torch.ones(2, 5))
    again = objects.unpack(objects.pack())
    for field in fields(objects):
        assert torch.equal(getattr(objects, field.name), getattr(again, field.name)), field.name


def test_padding_adds_empty_slots_and_the_first_give_the_objects_back() -> None:
    objects = people(torch.rand(2, 3), torch.ones(2, 3))
    wider = objects.padded(5)
    assert wider.where.shape[:2] == (2, 5)
    assert torch.equal(wider.first(3).pack(), objects.pack())
    assert not wider.alive[:, 3:].any()
    assert (wider.where[:, 3:, 2:] > 0).all()  # arithmetic on empty slots stays finite
    assert torch.equal(wider.first(2).pack(), objects.pack()[:, :2])
    assert objects.padded(3) is objects


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        ([[0, 1, 2, 3], [-1, -1, -1, -1]], 4),
        ([[0, -1, 2, -1], [5, -1, -1, -1]], 3),
        ([[-1, -1, -1, -1], [-1, 7, -1, -1]], 2),
        ([[0, -1, -1, -1], [0, -1, -1, -1]], 1),
        ([[-1, -1, -1, -1], [-1, -1, -1, -1]], 1),
    ],
    ids=["full", "a gap", "one clip is empty", "the first alone", "nobody"],
)
def test_only_slots_after_the_last_object_of_any_clip_are_left_out(ids: list[list[int]], count: int) -> None:
    known = torch.tensor(ids)
    objects = people(torch.rand(2, 4), (known >= 0).float())
    state = SceneState(objects, known, torch.full((2,), 8), torch.rand(2, 4) > 0.5, torch.zeros(2))
    fewer = state.occupied()
    assert torch.equal(fewer.objects.pack(), objects.pack()[:, :count])
    assert torch.equal(fewer.discovered, state.discovered[:, :count])
    assert torch.equal(fewer.id, known)  # ids of all slots are kept
    assert not (known[:, count:] >= 0).any()


@settings(max_examples=40, deadline=None)
@given(lives())
def test_births_are_seated_the_same_when_empty_slots_at_the_end_were_left_out(
    life: tuple[int, list[list[Day]]],
) -> None:
    for before, roster, newborn, joined in live(*life):
        taken = (before.alive[..., 0] > 0).any(0).nonzero()[:, 0].tolist()
        again = join(before.first(max(taken, default=0) + 1), roster, newborn)
        assert torch.equal(again.id, joined.id)
        assert torch.equal(again.next_id, joined.next_id)
        assert torch.equal(again.discovered, joined.discovered)
        assert torch.equal(again.turned_away, joined.turned_away)
        there = joined.id >= 0
        assert torch.equal(again.objects.pack()[there], joined.objects.pack()[there])
        assert torch.equal(again.objects.alive, joined.objects.alive)


def seated(ids: list[int], places: list[tuple[float, float]], looks: list[float]) -> SceneState:
    """Squares of side 8 of one plain look each, all just discovered; an id of -1 is an empty slot."""
    count = len(ids)
    known = torch.tensor([ids])
    objects = people(torch.zeros(1, count), (known >= 0).float())
    where = torch.cat([torch.tensor([places]), torch.full((1, count, 2), 8.0)], -1)
    what = torch.tensor(looks)[None, :, None].expand(1, count, 3)
    latent = torch.cat([objects.z_where, what, objects.z_depth], -1)
    objects = replace(objects, where=where, latent=latent)
    return SceneState(objects, known, torch.tensor([max(ids) + 1]), known >= 0, torch.zeros(1))


HERE, NEARBY, AWAY = (10.0, 10.0), (11.0, 10.0), (30.0, 10.0)
HALF_OVER, LESS_OVER = (12.5, 10.0), (13.0, 10.0)
"""Squares there share .52 and .45 of their union with one at HERE; the limit is .5."""


@pytest.mark.parametrize(
    ("ids", "places", "looks", "left"),
    [
        ([0, 1], [HERE, NEARBY], [1.0, 1.1], [0, -1]),
        ([5, 2], [HERE, NEARBY], [1.0, 1.1], [-1, 2]),
        ([0, 1], [HERE, AWAY], [1.0, 1.0], [0, 1]),
        ([0, 1], [HERE, HALF_OVER], [1.0, 1.0], [0, -1]),
        ([0, 1], [HERE, LESS_OVER], [1.0, 1.0], [0, 1]),
        ([0, 1], [HERE, HERE], [1.0, -1.0], [0, 1]),
        ([-1, 1], [HERE, HERE], [1.0, 1.0], [-1, 1]),
        ([3, 1, 2], [HERE, HERE, HERE], [0.0, 0.0, 0.0], [-1, 1, -1]),
        ([0, -1, 4, 7], [HERE, HERE, AWAY, AWAY], [0.0, 0.0, 0.0, 0.1], [0, -1, 4, -1]),
    ],
    ids=[
        "alike",
        "any slots",
        "elsewhere",
        "half over",
        "less than half over",
        "another look",
        "an empty slot",
        "three",
        "two pairs",
    ],
)
def test_of_two_alike_at_one_place_the_younger_ends(
    ids: list[int], places: list[tuple[float, float]], looks: list[float], left: list[int]
) -> None:
    before = seated(ids, places, looks)
    after = end_duplicates(before, 0.5, 0.1)
    assert after.id[0].tolist() == left
    assert (after.objects.alive[0, :, 0] > 0).tolist() == [i >= 0 for i in left]
    assert after.discovered[0].tolist() == [i >= 0 for i in left]
    assert torch.equal(after.next_id, before.next_id)  # an ended identity is not used again
    assert torch.equal(after.objects.where, before.objects.where)
    again = end_duplicates(after, 0.5, 0.1)
    assert torch.equal(again.id, after.id)
