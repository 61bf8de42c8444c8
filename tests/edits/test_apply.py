"""Laws of edits: what is undone is as before, no box is lost, and a frame never holds an id twice."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.edits import Add, Delete, Edit, Merge, Name, Redo, Split, Step, Swap, Undo, apply, in_effect, names_after
from scalor.edits.apply import apply_traced
from scalor.errors import InputError
from scalor.tracks import Tracks
from tests.edits.drawn import tracks_of


@st.composite
def some_tracks(draw: st.DrawFn) -> Tracks:
    """Up to five tracks in up to eight frames, each present in any of them."""
    frames, count = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    seen = np.array(draw(st.lists(st.booleans(), min_size=frames * count, max_size=frames * count)))
    centres = np.random.default_rng(draw(st.integers(0, 9))).uniform(10, 90, (frames, count, 2))
    whole = tracks_of(centres, np.tile(np.arange(1, count + 1), (frames, 1)), (100, 100), 5)
    kept = whole.select(seen)
    begins = np.zeros(len(kept), bool)
    begins[np.unique(kept.id, return_index=True)[1]] = True
    kept.discovered[:] = begins
    return kept


ids, frames = st.integers(1, 8), st.integers(0, 9)
edits = st.one_of(
    st.builds(Swap, ids, ids, frames),
    st.builds(Merge, ids, ids),
    st.builds(Split, ids, frames),
    st.builds(Delete, ids, st.none() | frames, st.none() | frames),
    st.builds(Name, ids, st.sampled_from(["", "queen", "worker"])),
    st.builds(Add, frames, st.just((1.0, 2.0, 3.0, 4.0)), st.none() | ids),
)


def possible(tracks: Tracks, wanted: list[Edit]) -> list[Edit]:
    """Those of the edits that can be applied, one after the other."""
    done: list[Edit] = []
    for edit in wanted:
        try:
            apply(tracks, [*done, edit])
        except InputError:
            continue
        done.append(edit)
    return done


def same(one: Tracks, two: Tracks) -> bool:
    """Whether all columns are equal."""
    return all(np.array_equal(getattr(one, field.name), getattr(two, field.name)) for field in fields(Tracks))


def keys(tracks: Tracks) -> list[tuple[int, int]]:
    return list(zip(tracks.frame.tolist(), tracks.id.tolist(), strict=True))


@settings(deadline=None)
@given(some_tracks(), st.lists(edits, max_size=8))
def test_a_frame_holds_an_id_once_and_rows_are_in_order(tracks: Tracks, wanted: list[Edit]) -> None:
    edited = apply(tracks, possible(tracks, wanted))
    assert keys(edited) == sorted(set(keys(edited)))


@settings(deadline=None)
@given(some_tracks(), st.lists(edits, max_size=8))
def test_the_first_frame_of_a_track_is_the_discovered_one(tracks: Tracks, wanted: list[Edit]) -> None:
    edited = apply(tracks, possible(tracks, wanted))
    first = {number: int(edited.frame[edited.id == number].min()) for number in np.unique(edited.id).tolist()}
    assert {
        (int(n), int(f)) for n, f in zip(edited.id[edited.discovered], edited.frame[edited.discovered], strict=True)
    } == {*first.items()}


@settings(deadline=None)
@given(some_tracks(), st.lists(edits, max_size=6), st.lists(edits, min_size=1, max_size=4))
def test_undo_restores_and_redo_repeats(tracks: Tracks, before: list[Edit], after: list[Edit]) -> None:
    done = possible(tracks, before + after)
    kept = len(possible(tracks, before))
    back: list[Step] = [*done, *[Undo()] * (len(done) - kept)]
    assert same(apply(tracks, in_effect(back)), apply(tracks, done[:kept]))
    assert same(apply(tracks, in_effect([*back, *[Redo()] * (len(done) - kept)])), apply(tracks, done))
    assert apply(tracks, in_effect([*done, *[Undo()] * len(done)])) is tracks


@settings(deadline=None)
@given(some_tracks(), ids, ids, frames)
def test_a_swap_twice_is_no_change(tracks: Tracks, a: int, b: int, frame: int) -> None:
    swap = Swap(a, b, frame)
    if possible(tracks, [swap]):
        assert same(apply(tracks, [swap, swap]), tracks)


@settings(deadline=None)
@given(some_tracks(), st.lists(edits, max_size=6))
def test_only_delete_and_add_change_the_boxes(tracks: Tracks, wanted: list[Edit]) -> None:
    done = possible(tracks, [edit for edit in wanted if not isinstance(edit, Add | Delete)])
    edited = apply_traced(tracks, done)
    assert sorted(edited.origin.tolist()) == list(range(len(tracks)))
    assert np.array_equal(edited.tracks.box, tracks.box[edited.origin])
    assert np.array_equal(edited.tracks.frame, tracks.frame[edited.origin])


@settings(deadline=None)
@given(some_tracks(), ids, ids)
def test_merge_keeps_every_box_or_is_refused(tracks: Tracks, keep: int, other: int) -> None:
    mine, theirs = (set(tracks.frame[tracks.id == number].tolist()) for number in (keep, other))
    merged = possible(tracks, [Merge(keep, other)])
    assert bool(merged) == (keep != other and bool(mine) and bool(theirs) and not mine & theirs)
    if merged:
        edited = apply(tracks, merged)
        assert set(edited.frame[edited.id == keep].tolist()) == mine | theirs
        assert other not in edited.id


@settings(deadline=None)
@given(some_tracks(), ids, frames)
def test_a_split_is_undone_by_a_merge(tracks: Tracks, number: int, frame: int) -> None:
    if possible(tracks, [Split(number, frame)]):
        new = apply_traced(tracks, []).next_id
        split = apply(tracks, [Split(number, frame)])
        assert set(split.frame[split.id == new].tolist()) == {
            f for f in tracks.frame[tracks.id == number].tolist() if f >= frame
        }
        assert same(apply(tracks, [Split(number, frame), Merge(number, new)]), tracks)


def test_an_edit_after_an_undo_ends_the_chance_of_a_redo() -> None:
    assert in_effect([Name(1, "a"), Undo(), Name(1, "b")]) == [Name(1, "b")]
    with pytest.raises(InputError, match="nothing to redo"):
        in_effect([Name(1, "a"), Undo(), Name(1, "b"), Redo()])


STORY = tracks_of(np.full((4, 2, 2), 50.0), np.tile([1, 2], (4, 1)))


@pytest.mark.parametrize(
    ("edit", "rows"),
    [
        (Delete(1), [(f, 2) for f in range(4)]),
        (Delete(1, 1, 2), [(0, 1), (0, 2), (1, 2), (2, 2), (3, 1), (3, 2)]),
        (Delete(2, last=1), [(0, 1), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]),
        (Swap(1, 9, 0), None),
        (Add(2, (0, 0, 5, 5)), [*keys(STORY)[:6], (2, 3), *keys(STORY)[6:]]),
        (Add(2, (0, 0, 5, 5), id=1), None),
        (Add(2, (5, 0, 5, 5)), None),
        (Merge(1, 2), None),
        (Split(1, 0), None),
        (Split(1, 4), None),
        (Split(1, 2, new=2), None),
        (Delete(1, 7), None),
        (Name(3, "queen"), None),
    ],
)
def test_the_rows_after_an_edit(edit: Edit, rows: list[tuple[int, int]] | None) -> None:
    if rows is None:
        with pytest.raises(InputError):
            apply(STORY, [edit])
    else:
        assert keys(apply(STORY, [edit])) == rows


def test_a_swap_exchanges_two_ids_from_its_frame_on() -> None:
    story = tracks_of(np.array([[[10.0, 10], [50, 50]]] * 4), np.tile([1, 2], (4, 1)))
    edited = apply(story, [Swap(1, 2, 2)])
    assert keys(edited) == keys(story)
    assert edited.centre[edited.id == 1].tolist() == [[10, 10], [10, 10], [50, 50], [50, 50]]


def test_an_added_box_has_confidence_one_and_an_empty_mask() -> None:
    masks = np.ones((8, 10, 10), bool)
    story = Tracks(**{**vars(STORY), "masks": masks})
    edited = apply(story, [Add(2, (1, 2, 3, 4), id=7)])
    (row,) = np.flatnonzero(edited.id == 7)
    assert edited.box[row].tolist() == [1, 2, 3, 4]
    assert edited.presence[row] == 1
    assert edited.discovered[row]
    assert edited.masks is not None
    assert edited.masks.reshape(9, -1).all(axis=1).tolist() == [i != row for i in range(9)]
    assert not edited.masks[row].any()


def test_names_stay_with_their_ids() -> None:
    story = tracks_of(np.full((6, 2, 2), 50.0), np.tile([1, 2], (6, 1)))
    named: list[Edit] = [Name(1, "queen"), Name(2, "worker")]
    assert names_after(story, named) == {1: "queen", 2: "worker"}
    assert names_after(story, [*named, Swap(1, 2, 3)]) == {1: "queen", 2: "worker"}
    assert names_after(story, [*named, Name(1, "")]) == {2: "worker"}
    assert names_after(story, [*named, Delete(2)]) == {1: "queen"}
    apart: list[Edit] = [Split(1, 3), *named[1:], Name(3, "late"), Merge(1, 3)]
    assert names_after(story, apart) == {1: "late", 2: "worker"}
    assert names_after(story, [named[0], *apart]) == {1: "queen", 2: "worker"}


def test_tracks_of_several_clips_are_refused() -> None:
    clips = Tracks(**{**vars(STORY), "clip": np.arange(8)})
    with pytest.raises(InputError, match="clips"):
        apply(clips, [])


def test_an_added_box_has_the_time_of_its_frame() -> None:
    story = STORY.select(STORY.frame != 1)
    for frame in (0, 1, 3, 7):
        edited = apply(story, [Add(frame, (1, 2, 3, 4), id=7)])
        assert edited.seconds[edited.id == 7].tolist() == [pytest.approx(frame / 10)]
    one = story.select(story.frame == 0)
    assert apply(one, [Add(5, (1, 2, 3, 4))]).seconds.tolist() == [0, 0, 0.5]
