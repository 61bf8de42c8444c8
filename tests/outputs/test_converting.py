"""Tracks become supervision's Detections."""

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.outputs import to_supervision
from scalor.tracks import join_tracks
from tests.outputs.stories import SIZE, shots


@dataclass
class Detections:
    """As strict about shapes as supervision's."""

    xyxy: np.ndarray
    mask: np.ndarray | None = None
    confidence: np.ndarray | None = None
    class_id: np.ndarray | None = None
    tracker_id: np.ndarray | None = None

    def __post_init__(self) -> None:
        count = len(self.xyxy)
        assert self.xyxy.shape == (count, 4)
        assert self.mask is None or (self.mask.shape == (count, *SIZE) and self.mask.dtype == bool)
        for values in (self.confidence, self.class_id, self.tracker_id):
            assert values is None or values.shape == (count,)


@pytest.fixture
def _supervision(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("supervision")
    module.Detections = Detections
    monkeypatch.setitem(sys.modules, "supervision", module)


@pytest.mark.usefixtures("_supervision")
@pytest.mark.parametrize("masks", [False, True])
def test_detections_hold_the_boxes_masks_and_ids_of_a_frame(masks: bool) -> None:
    for shot in shots(9, masks=masks):
        tracks = shot.tracks
        detections = to_supervision(tracks)
        assert np.allclose(detections.xyxy, tracks.box)
        assert np.allclose(detections.confidence, tracks.presence)
        assert np.array_equal(detections.tracker_id, tracks.id + 1)
        assert detections.class_id.tolist() == [0] * len(tracks)
        assert (detections.mask is None) == (not masks)
        if tracks.masks is not None:
            assert np.array_equal(detections.mask, tracks.masks)


@pytest.mark.usefixtures("_supervision")
def test_several_frames_are_refused() -> None:
    tracks = join_tracks([shot.tracks for shot in shots(9)])
    with pytest.raises(InputError, match=r"tracks hold 8 frames of 1 clips .* hand in one frame"):
        to_supervision(tracks)


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "supervision", None)
    (shot,) = shots(1)
    with pytest.raises(InputError, match="needs the package supervision: run pip install supervision"):
        to_supervision(shot.tracks)
