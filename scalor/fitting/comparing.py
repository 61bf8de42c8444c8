"""Compare how well models track a video, without labels.

>>> first, second = label_free_score(view, one), label_free_score(view, other)

A good model covers the foreground with boxes, has no boxes elsewhere, keeps its ids, and gives most boxes the typical
shape of the moving objects. Boxes on parts of objects or on groups of objects have other shapes.
"""

import itertools
from dataclasses import dataclass, replace

from scalor.health import HealthMonitor
from scalor.nn.interface import Tracker
from scalor.tracking.follow import follow, lens_of, monitor_for, usual_sizes
from scalor.tracking.identity import shape_distance
from scalor.tracking.view import VideoView
from scalor.video.reading import Video

COMPARED = 600
"""Number of consecutive frames on which models are compared."""
MAX_SHAPE_DISTANCE = 0.8
"""Distance from the typical shape below which a box is typical, in logarithms of width and height."""


@dataclass(frozen=True)
class LabelFreeScore:
    """Scores of a model on a part of a video, each from 0 to 1."""

    explained: float
    """Share of the foreground pixels that lie in boxes."""
    on_something: float
    """Share of the boxes that contain foreground."""
    lasting: float
    """Share of the ids that neither began in the middle of the view nor replaced another id."""
    usual: float
    """Share of the boxes of about the typical shape."""

    @property
    def total(self) -> float:
        """The overall score: the harmonic mean of `explained` and `on_something`, reduced for two reasons.

        Ids that do not last reduce it by up to a quarter, and boxes of other shapes by up to a half.
        """
        both = self.explained + self.on_something
        found = 2 * self.explained * self.on_something / both if both else 0.0
        return found * (0.75 + 0.25 * self.lasting) * (0.5 + 0.5 * self.usual)


def label_free_score(view: VideoView, tracker: Tracker) -> LabelFreeScore:
    """Track up to COMPARED frames of the video and return the scores. Long videos are tracked in the middle."""
    monitor = monitor_for(tracker, view)
    assert isinstance(monitor, HealthMonitor)
    found, lens, boxes, usual = view.found, lens_of(tracker, view), 0, 0
    for step in itertools.islice(follow(tracker, part_of(view)), COMPARED):
        if step.foreground is not None:
            monitor.step(step.frame.index, step.foreground, step.in_view, step.brighter)
        if found is not None and len(step.in_view):
            sizes = usual_sizes(step.in_view, found.object_size, found.perspective, lens)
            boxes += len(sizes)
            usual += int((shape_distance(step.in_view.box, sizes, found.any_direction) < MAX_SHAPE_DISTANCE).sum())
    facts = monitor.facts()
    broken = (facts.appeared + facts.replaced) / max(1, facts.ids)
    on_something = 1 - (facts.empty or 0.0)
    return LabelFreeScore(facts.explained or 0.0, on_something, max(0.0, 1 - broken), usual / max(1, boxes))


def part_of(view: VideoView) -> VideoView:
    """Return a view of the COMPARED frames in the middle of a long video.

    The view is returned unchanged if the video is short, if its length is unknown or if its camera moves.
    """
    video = view.video
    if view.motion is not None or video.frames is None or video.frames <= COMPARED:
        return view
    first, stride = video.selection.start or 0.0, video.selection.stride
    start = first + (video.frames - COMPARED) // 2 * stride / video.fps
    later = Video(video._source, replace(video.selection, start=start))
    return replace(view, video=later, steady=later)
