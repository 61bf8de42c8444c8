"""Evaluation of classical trackers on the test scenes of models."""

import sys

from tqdm import tqdm

from scalor.classical.tracker import ClassicalTracker
from scalor.config import SceneConfig
from scalor.data.scenes import Scenes
from scalor.evaluation import TrackingCounts, TrackingReport, count_tracks
from scalor.evaluation.report import TEST_SEED

BATCH = 32
"""Number of clips tracked at a time."""


def evaluate(tracker: ClassicalTracker, scene: SceneConfig, clips: int) -> TrackingReport:
    """Return the tracking metrics on the first `clips` clips of the test scenes, on which models are also tested."""
    scenes, counts = Scenes(scene, TEST_SEED, "test"), TrackingCounts()
    for first in tqdm(range(0, clips, BATCH), file=sys.stderr, unit="batch", leave=False):
        clip = scenes.clips(first, min(BATCH, clips - first))
        counts += count_tracks(tracker.track(clip.frames), clip.truth, scene.size)
    return counts.report()
