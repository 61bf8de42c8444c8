"""Universal weights refined on one's own videos in minutes: by the evidence lower bound, and by what tracking finds.

>>> folder, device = Path("runs/ants"), torch.device("cpu")
>>> prepared = prepare(["ants.mp4"], folder, Selection(), Wish(minutes=10), 10, device, lambda config: config)
>>> train(prepared.config, folder, device)
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import torch

from scalor import checkpoint, systems
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.data.footage import Frames
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.fitting.fit import FOOTAGE_FILE, check_length, check_views
from scalor.fitting.keeping import save
from scalor.fitting.teaching import keep_and_label
from scalor.nn.schedule import anneals
from scalor.pipeline import load_for
from scalor.tracking.view import VideoView, is_universal, lens_for, look_at
from scalor.training.step import TrainingStep
from scalor.video import Selection, open_video

LENGTHS = ((0.0, 4), (0.6, 8))
"""Shares of the steps from which clips have so many frames."""
LONGEST = max(frames for _, frames in LENGTHS)
BATCH, LEARNING_RATE, CLIP_NORM = 10, 2e-4, 0.3
LESSON = 0.02
"""Weight of what the tracker itself has found, tidied up, beside the bound: as in the training of universal weights."""
FEWEST_STEPS, MOST_STEPS = 20, 20_000
TIMED = 3
"""Steps that are timed at each length, to know how many fit into the minutes."""
SPENT = 0.9
"""Of the minutes: the rest is for reading the video and for comparing at the end."""


@dataclass(frozen=True)
class Wish:
    """What a person may say; what is left out follows from the video and the machine."""

    minutes: float = 10.0
    steps: int | None = None
    """Instead of minutes."""
    object_size: tuple[float, float] | None = None
    stride: int | None = None
    weights: str = "any"
    """To start from."""


@dataclass(frozen=True)
class Prepared:
    """Ready to be trained."""

    config: Config
    views: list[VideoView]
    frames: int
    """Kept to learn from."""


def prepare(
    sources: Sequence[str],
    folder: Path,
    part: Selection,
    wish: Wish,
    fps: float,
    device: torch.device,
    change: Callable[[Config], Config],
) -> Prepared:
    """Look at the videos, keep frames of them in the folder, and plan as many steps as the minutes allow."""
    begun = time.monotonic()
    start = checkpoint.read(checkpoint.find(wish.weights)).config
    if not is_universal(start.scene):
        raise InputError(f"weights is {wish.weights!r}: refine universal weights, such as any, or a model fitted so.")
    selection = replace(part, stride=wish.stride or part.stride)
    views = [look_at(open_video(source, selection, fps), wish.object_size) for source in sources]
    check_views(views)
    for view in views:
        check_length(view.steady, LONGEST)
    config = settings(start.model, views[0], selection.stride, str(folder / FOOTAGE_FILE), wish)
    kept = (keep_and_label(view, config, load_for(view, wish.weights, device)) for view in views)
    frames = reduce(Frames.beside, kept)
    frames.check(config.scene)
    save(frames, folder / FOOTAGE_FILE)
    if frames.labels is None:  # nothing was found: the bound alone must find it
        config = replace(config, train=replace(config.train, lesson=0.0))
    config = change(config)
    if wish.steps is None:
        left = 60 * wish.minutes * SPENT - (time.monotonic() - begun)
        config = replace(config, train=schedule(steps_in(config, left, device), config.train))
        config = change(config)  # what a person says comes last
    return Prepared(config, views, len(frames.frames))


def settings(model: ModelConfig, view: VideoView, stride: int, footage: str, wish: Wish) -> Config:
    """The settings of a refinement: the universal model, and this video as it is looked at."""
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
        lesson=LESSON,
        start=wish.weights,
        log_every=10,
        picture_every=25,
        save_every=25,
    )
    return Config(fitted, scene, scene, schedule(wish.steps or FEWEST_STEPS, train))


def schedule(steps: int, train: TrainConfig) -> TrainConfig:
    """So many steps, the later ones of longer clips; the step size falls to zero from the first on."""
    lengths = {round(share * steps): frames for share, frames in LENGTHS}
    return replace(train, steps=steps, cooldown=steps, lengths=tuple(lengths.items()))


def steps_in(config: Config, seconds: float, device: torch.device) -> int:
    """How many steps fit into so many seconds, by timing a few of each length."""
    model = systems.build(config.model).to(device)
    checkpoint.fill_from(model, config.train.start)
    step = TrainingStep(config, model, Scenes(config.scene, config.train.seed, "train", device), device)
    cost, shares = 0.0, [share for share, _ in LENGTHS] + [1.0]
    for number, (_, length) in enumerate(LENGTHS):
        now = replace(anneals(config.train, 0), length=length, learning_rate=0.0)
        step(0, now)  # the first one also prepares
        begun = time.monotonic()
        for one in range(TIMED):
            step(one, now)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        cost += (shares[number + 1] - shares[number]) * (time.monotonic() - begun) / TIMED
    return min(MOST_STEPS, max(FEWEST_STEPS, int(seconds / cost)))
