"""Objects keep their ids across the seams of stretches."""

import numpy as np

from scalor.many.seams import join_stretches
from scalor.tracks import Tracks

SIZE = (100, 400)


def stretch(*rows: tuple[int, int, float], size: float = 20) -> Tracks:
    """Tracks of one stretch from rows of frame, id and x; frames are 0.1 s apart."""
    frame, number, x = (np.array(column) for column in zip(*sorted(rows), strict=True))
    box = np.stack([x, np.full(len(x), 10.0), x + size, np.full(len(x), 10.0 + size)], 1)
    nothing = np.zeros(len(x))
    return Tracks(nothing.astype(int), frame, number, box, nothing + 0.5, nothing > 0, SIZE)


def walk(number: int, start: float, frames: range) -> list[tuple[int, int, float]]:
    return [(frame, number, start + 2 * frame) for frame in frames]


def test_an_object_keeps_its_id_and_others_get_new_ones() -> None:
    early = stretch(*walk(7, 0, range(30)), *walk(3, 100, range(5, 30)), *walk(9, 300, range(8)))
    late = stretch(*walk(1, 100.5, range(20, 50)), *walk(2, 0, range(20, 50)), *walk(3, 200, range(40, 50)))
    joined = join_stretches([early, late], [2.5])
    tracks = joined.tracks
    assert joined.continued == (2,)
    found = dict(tracks.by_track())
    assert list(found) == [1, 2, 3, 4]
    np.testing.assert_array_equal(found[1].frame, np.arange(50))
    np.testing.assert_allclose(found[1].box[:, 0], 2 * np.arange(50))
    np.testing.assert_array_equal(found[2].frame, np.arange(8))
    np.testing.assert_array_equal(found[3].frame, np.arange(5, 50))
    np.testing.assert_allclose(found[3].box[:, 0], 100 + 2 * np.arange(5, 50) + 0.5 * (np.arange(5, 50) >= 25))
    np.testing.assert_array_equal(found[4].frame, np.arange(40, 50))
    assert tracks.discovered.sum() == 4
    assert all(rows.discovered[0] for rows in found.values())
    for row, (part, source) in enumerate(joined.origin.tolist()):
        np.testing.assert_array_equal(tracks.box[row], (early, late)[part].box[source])


def test_tracks_that_meet_for_a_few_frames_are_not_one_object() -> None:
    early = stretch(*walk(1, 0, range(30)))
    crossing = [(frame, 1, 80 - 2.0 * (frame - 20)) for frame in range(20, 50)]
    joined = join_stretches([early, stretch(*crossing)], [2.5])
    assert joined.continued == (0,)
    assert len(np.unique(joined.tracks.id)) == 2


def test_an_object_that_only_the_other_stretch_saw_near_the_seam_is_dropped_there() -> None:
    early = stretch(*walk(1, 0, range(30)), *walk(2, 300, range(26, 30)))
    late = stretch(*walk(1, 0, range(20, 50)), *walk(2, 200, range(20, 24)))
    joined = join_stretches([early, late], [2.5])
    assert set(joined.tracks.id.tolist()) == {1}
    assert len(joined.tracks) == 50


def test_an_id_goes_through_several_stretches() -> None:
    parts = [stretch(*walk(5 - place, 0, range(20 * place, 20 * place + 30))) for place in range(4)]
    joined = join_stretches(parts, [2.5, 4.5, 6.5])
    assert joined.continued == (1, 1, 1)
    assert set(joined.tracks.id.tolist()) == {1}
    np.testing.assert_array_equal(joined.tracks.frame, np.arange(90))


def test_stretches_without_objects_are_joined() -> None:
    early = stretch(*walk(1, 0, range(30)))
    nothing = early.select(np.zeros(len(early), bool))
    assert len(join_stretches([nothing, nothing], [2.5]).tracks) == 0
    joined = join_stretches([early, nothing, early.at(60, 6.0).select(np.arange(1))], [2.5, 4.5])
    assert joined.tracks.id.tolist() == [1] * 25 + [2]
