"""Refine universal weights on one's own videos in a given number of minutes, and keep the better weights.

The refinement maximises the evidence lower bound (ELBO), together with a supervised loss on labels that tracking with
the universal weights provides (`pseudo_labels`).

>>> folder, device = Path("runs/ants"), torch.device("cpu")
>>> prepared = prepare(["ants.mp4"], folder, Selection(), FitOptions(minutes=10), 10, device, lambda config: config)
>>> config = planned(prepared.config, prepared.seconds, device, lambda config: config)
>>> train(config, folder, device)

Afterwards `label_free_score` compares how well two models track the video. A good model covers the foreground with
boxes, has no boxes elsewhere, keeps its ids, and gives most boxes the typical shape of the moving objects. Boxes on
parts of objects or on groups of objects have other shapes.
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import torch

from scalor import checkpoint, systems
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.data.footage import FOOTAGE_FILE, Frames
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.fitting.options import FitOptions, PreparedTraining
from scalor.fitting.pseudo_labels import keep_and_label, save
from scalor.fitting.scratch import check_length, check_views
from scalor.health import HealthMonitor
from scalor.nn import ranks
from scalor.nn.interface import Tracker
from scalor.pipeline import load_for
from scalor.tracking.follow import follow, lens_of, monitor_for
from scalor.tracking.identity import shape_distance
from scalor.tracking.post_processing import usual_sizes
from scalor.tracking.video_view import VideoView, is_universal, lens_for, look_at
from scalor.training.step import TrainingStep, anneals
from scalor.video import Selection, open_video

MINUTES = 10.0
"""Default duration of a refinement, minutes."""
LENGTHS = ((0.0, 4), (0.6, 8))
"""Schedule of the clip length: pairs of the share of the steps from which it holds, and the number of frames."""
LONGEST = max(frames for _, frames in LENGTHS)
"""Largest clip length in frames."""
BATCH, LEARNING_RATE, CLIP_NORM = 10, 2e-4, 0.3
"""Clips in a step, step size of Adam, and largest norm of the gradient."""
SUPERVISED_WEIGHT = 0.02
"""Weight of the supervised loss on the tracker's own labels, beside the ELBO. The training of the universal weights has
the same weight."""
FEWEST_STEPS, MOST_STEPS = 20, 20_000
"""Smallest and largest number of steps that the available time gives."""
TIMED_STEPS = 3
"""Number of steps that are timed at each clip length, to predict how many fit into the available time."""
TIME_SHARE = 0.9
"""Share of the available time for preparation and training. The rest is for reading the video again and comparing the
weights at the end."""


def prepare(
    sources: Sequence[str],
    folder: Path,
    part: Selection,
    options: FitOptions,
    fps: float,
    device: torch.device,
    change: Callable[[Config], Config],
    quiet: bool = False,
) -> PreparedTraining:
    """Survey and track the videos, save the training frames, and choose all settings but the number of steps.

    Parameters
    ----------
    sources : sequence of str
        Videos, as `open_video` takes them. All must have one size.
    folder : Path
        Run folder, in which the frames are saved.
    part : Selection
        Part of the videos to use.
    options : FitOptions
        Options given by the user.
    fps : float
        Frames a second of sources that do not state their own.
    device : torch.device
        Device of the tracking.
    change : callable
        Function that applies the user's overrides to the chosen config.
    quiet : bool
        Hide the progress bar.
    """
    begun = time.monotonic()
    start = checkpoint.read(checkpoint.find(options.start)).config
    if not is_universal(start.scene):
        raise InputError(
            f"weights is {options.start!r}: give universal weights, such as any, or weights refined from them."
        )
    selection = replace(part, stride=options.stride or part.stride)
    views = [look_at(open_video(source, selection, fps), options.object_size) for source in sources]
    check_views(views)
    for view in views:
        check_length(view.steady, LONGEST)
    config = settings(start.model, views[0], selection.stride, str(folder / FOOTAGE_FILE), options)
    ranks.check_batch(change(config).train.batch)
    kept = (keep_and_label(view, config, load_for(view, options.start, device), quiet) for view in views)
    frames = reduce(Frames.beside, kept)
    frames.check(config.scene)
    save(frames, folder / FOOTAGE_FILE)
    if frames.labels is None:  # nothing was found, so there are no labels: train with the ELBO alone
        config = replace(config, train=replace(config.train, lesson=0.0))
    left = 60 * (options.minutes or MINUTES) * TIME_SHARE - (time.monotonic() - begun)
    return PreparedTraining(change(config), views, len(frames.frames), None if options.steps else left)


def planned(config: Config, seconds: float | None, device: torch.device, change: Callable[[Config], Config]) -> Config:
    """Return the config with as many steps as fit into so many seconds; without a time, return it unchanged.

    All ranks call this function together, because the timed steps are those of the training: each rank has its part of
    the batch, and they average their gradients. All return the config that the first one finds.
    """
    if seconds is None:
        return config
    steps = ranks.from_first(steps_in(config, seconds, device))
    return change(replace(config, train=schedule(steps, config.train)))  # the user's overrides last


def settings(model: ModelConfig, view: VideoView, stride: int, footage: str, options: FitOptions) -> Config:
    """Return the config of a refinement: the universal model at the scale and contrast of this view.

    `stride` is the distance between training frames, and `footage` the file that holds them.
    """
    assert view.found is not None
    lens = lens_for(view, model, SceneConfig(kind="composed"))
    height, width = lens.seen
    cell = model.cell
    frame = (min(model.frame[0], height // cell[0] * cell[0]), min(model.frame[1], width // cell[1] * cell[1]))
    if min(frame) <= 0:
        raise InputError(
            f"{view.video.name} is seen at {width}x{height} pixels, smaller than a cell: give a larger one."
        )
    scene = SceneConfig(
        kind="footage",
        frame=frame,
        length=LONGEST,
        objects=(0, model.slots),
        size=math.sqrt(math.prod(view.found.object_size) * lens.scales[0] * lens.scales[1]),
        footage=footage,
        scale=lens.scale,
        stretch=lens.stretch,
        contrast=lens.contrast,
        object_size=view.found.object_size,
        video_size=view.steady.full_size,
        stride=stride,
    )
    fitted = replace(model, frame=frame, grid=(frame[0] // cell[0], frame[1] // cell[1]))
    train = TrainConfig(
        batch=BATCH,
        learning_rate=LEARNING_RATE,
        clip_norm=CLIP_NORM,
        clip_object=3.0,
        temperature=(0.3, 0.3, 0),
        presence_prior=(0.01, 0.01, 0),
        lesson=SUPERVISED_WEIGHT,
        start=options.start,
        log_every=10,
        picture_every=25,
        save_every=25,
    )
    return Config(fitted, scene, scene, schedule(options.steps or FEWEST_STEPS, train))


def schedule(steps: int, train: TrainConfig) -> TrainConfig:
    """Return `train` with a schedule for a number of steps.

    Later steps have longer clips. The step size falls to zero from the first step on.
    """
    lengths = {round(share * steps): frames for share, frames in LENGTHS}
    return replace(train, steps=steps, cooldown=steps, lengths=tuple(lengths.items()))


def steps_in(config: Config, seconds: float, device: torch.device) -> int:
    """Return how many steps fit into so many seconds, by timing TIMED_STEPS steps at each clip length.

    The timed steps have a learning rate of zero.
    """
    with ranks.all_or_none(device):
        model = systems.build(config.model).to(device)
        checkpoint.fill_from(model, config.train.start)
        step = TrainingStep(config, model, Scenes(config.scene, config.train.seed, "train", device), device)
    cost, shares = 0.0, [share for share, _ in LENGTHS] + [1.0]
    for number, (_, length) in enumerate(LENGTHS):
        now = replace(anneals(config.train, 0), length=length, learning_rate=0.0)
        step(0, now)  # not timed: on a GPU, the first step of each length compiles and captures
        begun = time.monotonic()
        for one in range(TIMED_STEPS):
            step(one, now)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        cost += (shares[number + 1] - shares[number]) * (time.monotonic() - begun) / TIMED_STEPS
    return min(MOST_STEPS, max(FEWEST_STEPS, int(seconds / cost)))


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
    for step in itertools.islice(follow(tracker, middle_of(view)), COMPARED):
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


def middle_of(view: VideoView) -> VideoView:
    """Return a view of the COMPARED frames in the middle of a long video.

    The view is returned unchanged if the video is short, if its length is unknown or if its camera moves.
    """
    video = view.video
    if view.motion is not None or video.frames is None or video.frames <= COMPARED:
        return view
    first, stride = video.selection.start or 0.0, video.selection.stride
    start = first + (video.frames - COMPARED) // 2 * stride / video.fps
    later = video.selected(start=start)
    return replace(view, video=later, steady=later)
