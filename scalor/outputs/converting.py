"""Convert tracks to the types of other libraries."""

from importlib import import_module
from typing import Any

import numpy as np

from scalor.errors import InputError
from scalor.tracks import Tracks


def to_supervision(tracks: Tracks) -> Any:
    """Convert the tracks of one frame to `supervision.Detections`, for its annotators, zones and counters.

    Parameters
    ----------
    tracks : Tracks
        Tracks of a single frame, such as `tracks.select(tracks.frame == 0)`.

    Returns
    -------
    supervision.Detections
        Boxes are xyxy in pixels. The confidence is the presence. Every class is 0. Tracker ids count from 1 as in
        result files.
    """
    try:
        supervision = import_module("supervision")
    except ImportError as error:
        raise InputError("to_supervision needs the package supervision: run pip install supervision.") from error
    if len({*zip(tracks.clip.tolist(), tracks.frame.tolist(), strict=True)}) > 1:
        raise InputError(
            f"tracks hold {len(np.unique(tracks.frame))} frames of {len(np.unique(tracks.clip))} clips and Detections "
            "are of one: hand in one frame, such as tracks.select(tracks.frame == 0)."
        )
    return supervision.Detections(
        xyxy=tracks.box.astype(np.float32),
        mask=tracks.masks,
        confidence=tracks.presence.astype(np.float32),
        class_id=np.zeros(len(tracks), int),
        tracker_id=tracks.id + 1,
    )
