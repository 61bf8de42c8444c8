"""Tracks become supervision's Detections."""

import sys

import numpy as np
import pytest
import supervision

from scalor.errors import InputError
from scalor.outputs import to_supervision
from scalor.tracks import join_tracks
from tests.outputs.stories import SIZE, shots


@pytest.mark.parametrize("masks", [False, True])
def test_detections_hold_the_boxes_masks_and_ids_of_a_frame(masks: bool) -> None:
    for shot in shots(9, masks=masks):
        tracks = shot.tracks
        detections = to_supervision(tracks)
        assert isinstance(detections, supervision.Detections)
        assert detections.confidence is not None
        assert detections.tracker_id is not None
        assert detections.class_id is not None
        assert np.allclose(detections.xyxy, tracks.box)
        assert np.allclose(detections.confidence, tracks.presence)
        assert np.array_equal(detections.tracker_id, tracks.id + 1)
        assert detections.class_id.tolist() == [0] * len(tracks)
        assert (detections.mask is None) == (not masks)
        if tracks.masks is not None:
            assert np.array_equal(np.asarray(detections.mask), tracks.masks)


def test_supervision_draws_the_detections_where_the_objects_are() -> None:
    shot = list(shots(9))[-1]
    blank = np.zeros((*SIZE, 3), np.uint8)
    drawn = supervision.BoxAnnotator(thickness=1).annotate(blank.copy(), to_supervision(shot.tracks))
    x0, _, x1, _ = shot.tracks.box.round().astype(int).T
    lit = np.flatnonzero(drawn.any((0, 2)))
    assert (lit.min(), lit.max()) == pytest.approx((x0.min(), x1.max()), abs=1)


def test_several_frames_are_refused() -> None:
    tracks = join_tracks([shot.tracks for shot in shots(9)])
    with pytest.raises(InputError, match=r"tracks hold 8 frames of 1 clips .* hand in one frame"):
        to_supervision(tracks)


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "supervision", None)
    (shot,) = shots(1)
    with pytest.raises(InputError, match="needs the package supervision: run pip install supervision"):
        to_supervision(shot.tracks)
