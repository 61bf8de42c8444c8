"""Which of two models follows a video better, told without labels.

>>> first, second = label_free_score(view, one), label_free_score(view, other)

A model is good that explains what moves, sees nothing where nothing moves, keeps its ids, and gives most of its objects
the shape that most of what moves has: pieces and groups have others.
"""

import itertools
from dataclasses import dataclass, replace

from scalor.health import HealthMonitor
from scalor.nn.interface import Tracker
from scalor.tracking.follow import follow, lens_of, monitor_for, usual_sizes
from scalor.tracking.identity import unlikeness
from scalor.tracking.view import VideoView
from scalor.video.reading import Video

COMPARED = 200
"""Frames in a row by which models are compared."""
UNUSUAL = 0.8
"""How far a box may be from the usual shape (the logarithms of its width and height)."""


@dataclass(frozen=True)
class LabelFreeScore:
    """How well a model follows a part of a video, from 0 to 1 each."""

    explained: float
    """Share of the moving pixels that lie in boxes."""
    on_something: float
    """Share of the boxes in which something moves."""
    lasting: float
    """Share of the ids that did not begin in the middle of the view, or in the place of another."""
    usual: float
    """Share of the boxes that have about the usual shape."""

    @property
    def total(self) -> float:
        """The harmonic mean of the first two. A quarter of it is at stake for ids that do not last, and half of it for
        unusual shapes."""
        both = self.explained + self.on_something
        found = 2 * self.explained * self.on_something / both if both else 0.0
        return found * (0.75 + 0.25 * self.lasting) * (0.5 + 0.5 * self.usual)


def label_free_score(view: VideoView, tracker: Tracker) -> LabelFreeScore:
    """Follow a part of the video and measure it."""
    monitor = monitor_for(tracker, view)
    assert isinstance(monitor, HealthMonitor)
    found, lens, boxes, usual = view.found, lens_of(tracker, view), 0, 0
    for step in itertools.islice(follow(tracker, part_of(view)), COMPARED):
        if step.foreground is not None:
            monitor.step(step.frame.index, step.foreground, step.in_view, step.brighter)
        if found is not None and len(step.in_view):
            sizes = usual_sizes(step.in_view, found.object_size, found.perspective, lens)
            boxes += len(sizes)
            usual += int((unlikeness(step.in_view.box, sizes, found.any_direction) < UNUSUAL).sum())
    facts = monitor.facts()
    broken = (facts.appeared + facts.replaced) / max(1, facts.ids)
    on_something = 1 - (facts.empty or 0.0)
    return LabelFreeScore(facts.explained or 0.0, on_something, max(0.0, 1 - broken), usual / max(1, boxes))


def part_of(view: VideoView) -> VideoView:
    """The middle of a long video."""
    video = view.video
    if view.motion is not None or video.frames is None or video.frames <= COMPARED:
        return view
    first, stride = video.selection.start or 0.0, video.selection.stride
    start = first + (video.frames - COMPARED) // 2 * stride / video.fps
    later = Video(video._source, replace(video.selection, start=start))
    return replace(view, video=later, steady=later)
