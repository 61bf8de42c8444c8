"""Prepare the training of a model from scratch on one's own videos: from videos to settings and training frames.

The settings are chosen from a survey of the video.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice
from pathlib import Path

from scalor.boxes import FLAT
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.data.footage import FOOTAGE_FILE, Frames
from scalor.errors import InputError
from scalor.fitting.options import FitOptions, PreparedTraining
from scalor.fitting.pseudo_labels import keep, save
from scalor.nn import ranks
from scalor.still.survey import Survey
from scalor.tracking.video_view import VideoView, look_at
from scalor.video import Selection, Video, open_video
from scalor.video.resize import scaled_size

AREA = 320.0
"""Largest area of a typical object at the model's scale, in square pixels. It is large enough to tell objects apart and
small enough to be fast."""
LEAST_AREA = 100.0
"""Smallest area of a typical object at the model's scale, in square pixels. Smaller objects are enlarged, so that they
span several cells of several pixels."""
STEP = 0.12
"""Distance that an object should move from one frame to the next, as a share of its shorter side."""
SMALLEST_SIDE, LARGEST_SIDE = 2, 512
"""Sides of objects, in pixels of the model's frames, that a training from scratch takes."""
LARGEST_STRIDE = 8
"""Largest stride that is chosen automatically."""
STRENGTH, MOST_STRENGTH, MOST_CONTRAST = 0.4, 0.7, 10.0
"""Wanted difference between objects and background, as a share of full brightness: for objects of AREA pixels, and the
largest one, for smaller objects. The third number is the largest factor by which the difference is amplified."""
SIGMA, LEAST_SIGMA = 0.25, 0.1
"""Standard deviation of the likelihood of a pixel: for objects of AREA pixels and STRENGTH, which is also the largest
value, and the smallest value."""
CELLS = 2.5
"""Smallest number of grid cells along a side of an object, as far as cells of at least 2 pixels allow."""
CLIP_SIZE_IN_OBJECTS = (2, 4)
"""Height and width of a training clip, in heights and widths of an object."""
SMALLEST_CLIP = 48
"""Smallest side of a training clip, in pixels."""
LENGTH, STEPS = 10, 6_000
"""Frames of a training clip, and default number of optimiser steps."""
SIZE_RANGE, SIZE_RANGE_IN_PERSPECTIVE = 0.5, 0.3
"""Values of `model.size_range` without and with a perspective. The perspective already accounts for the difference
between near and far objects; with the smaller range, no box has room for two objects."""


def choose(found: Survey, options: FitOptions, size: tuple[int, int], frames: int, footage: str) -> Config:
    """Return the full config for a video.

    Parameters
    ----------
    found : Survey
        Survey of the video.
    options : FitOptions
        Options given by the user.
    size : tuple of int
        Height and width of the video, in pixels.
    frames : int
        Number of frames of the video, which limits the stride.
    footage : str
        File in which the training frames are kept.
    """
    height, width = options.object_size or found.object_size
    scale = options.scale or scale_for(height * width)
    stride = options.stride or min(stride_for(found.speed, min(height, width)), max(1, frames // LENGTH))
    object_size = (round(height * scale, 1), round(width * scale, 1))
    if min(object_size) < SMALLEST_SIDE or max(object_size) > LARGEST_SIDE:
        raise InputError(
            f"scale is {scale:g}, so the model would see objects of {object_size[0]:g}x{object_size[1]:g} px: give a "
            f"scale at which their sides are from {SMALLEST_SIDE} to {LARGEST_SIDE} px."
        )
    cell = (power_of_two_below(object_size[0] / CELLS), power_of_two_below(object_size[1] / CELLS))
    frame = tuple(
        min(room // step, math.ceil(max(SMALLEST_CLIP, count * side) / step)) * step
        for count, side, step, room in zip(
            CLIP_SIZE_IN_OBJECTS, object_size, cell, scaled_size(size, scale), strict=True
        )
    )
    contrast = contrast_for(found.strength, math.prod(object_size))
    slots = round(math.prod(frame) / math.prod(object_size)) + 4
    scene = SceneConfig(
        kind="footage",
        frame=(frame[0], frame[1]),
        length=LENGTH,
        objects=(0, slots),
        size=math.sqrt(math.prod(object_size)),
        footage=footage,
        scale=scale,
        perspective=found.perspective,
        stride=stride,
        contrast=contrast,
    )
    model = ModelConfig(
        frame=scene.frame,
        grid=(frame[0] // cell[0], frame[1] // cell[1]),
        slots=slots,
        proposals=slots // 2,
        object_size=object_size,
        size_range=SIZE_RANGE if found.perspective == FLAT else SIZE_RANGE_IN_PERSPECTIVE,
        inertia=True,
        still=True,
        sigma=sigma_for(found.strength * contrast, math.prod(object_size)),
    )
    return Config(model, scene, scene, schedule(options.steps or STEPS))


def schedule(steps: int) -> TrainConfig:
    """Return the training schedule for a number of steps: single frames first, then longer and longer sequences."""
    starts = [round(share * steps) for share in (0, 0.25, 0.42, 0.67)]
    return TrainConfig(
        steps=steps,
        cooldown=steps // 4,
        clip_usual=3.0,
        clip_object=3.0,
        lengths=tuple(dict(zip(starts, (1, 2, 4, LENGTH), strict=True)).items()),
        temperature=(1.0, 0.3, steps // 2),
        batch=32,
        presence_prior=(0.1, 0.01, steps // 6),
        save_every=250,
    )


def scale_for(area: float) -> float:
    """Return the scale that shrinks large objects to AREA pixels and enlarges tiny ones to LEAST_AREA.

    Objects between the two keep their size.
    """
    shrunken, enlarged = math.sqrt(AREA / area), math.sqrt(LEAST_AREA / area)
    return round(min(shrunken, max(1.0, enlarged)), 3)


def stride_for(speed: float, side: float) -> int:
    """Return the stride at which an object moves by about STEP of its shorter side from frame to frame."""
    return 1 if speed == 0 else min(LARGEST_STRIDE, max(1, round(STEP * side / speed)))


def sigma_for(strength: float, area: float) -> float:
    """Return the standard deviation of the pixel likelihood for objects of this strength and area at the model's scale.

    If it is too small, large objects break into pieces and noise is explained by objects. If it is too large, small and
    faint objects improve the likelihood by less than their KL divergence costs (docs/log.md).
    """
    worth = math.sqrt(area / AREA * strength / STRENGTH)
    return round(min(SIGMA, max(LEAST_SIGMA, SIGMA * worth)), 3)


def contrast_for(strength: float, area: float) -> float:
    """Return the factor by which the difference from the background is amplified.

    Faint objects need it because the pixel likelihood is noisy. Small objects need more of it because they have fewer
    pixels.
    """
    wanted = min(MOST_STRENGTH, STRENGTH * math.sqrt(max(1.0, AREA / area)))
    return round(min(MOST_CONTRAST, max(1.0, wanted / strength)), 1) if strength else 1.0


def power_of_two_below(size: float) -> int:
    """Return the largest power of two that is at most `size`, but at least 2."""
    return max(2, 2 ** math.floor(math.log2(size))) if size > 2 else 2


def prepare(
    sources: Sequence[str],
    folder: Path,
    part: Selection,
    options: FitOptions,
    fps: float,
    change: Callable[[Config], Config],
    quiet: bool = False,
) -> PreparedTraining:
    """Survey the videos, choose the settings and save the training frames in the run folder.

    Parameters
    ----------
    sources : sequence of str
        Videos, as `open_video` takes them. All must have one size.
    folder : Path
        Run folder, in which the frames are saved.
    part : Selection
        Part of the videos to use. Its stride is ignored.
    options : FitOptions
        Options given by the user.
    fps : float
        Frames a second of sources that do not state their own.
    change : callable
        Function that applies the user's overrides to the chosen config.
    quiet : bool
        Hide the progress bar.
    """
    views = [look_at(open_video(source, replace(part, stride=1), fps), options.object_size) for source in sources]
    check_views(views)
    found = views[0].found
    assert found is not None
    shortest = min(first_frames(view.steady, LARGEST_STRIDE * LENGTH) for view in views)
    config = change(choose(found, options, views[0].steady.size, shortest, str(folder / FOOTAGE_FILE)))
    ranks.check_batch(config.train.batch)
    strided = [at_stride(view, config.scene.stride) for view in views]
    for view in strided:
        check_length(view.steady, config.scene.length)
    frames = reduce(Frames.beside, (keep(view, config, quiet) for view in strided))
    frames.check(config.scene)
    save(frames, folder / FOOTAGE_FILE)
    return PreparedTraining(config, views, len(frames.frames))


def check_views(views: Sequence[VideoView]) -> None:
    """Raise an InputError if nothing moves in a video, or if the videos differ in size."""
    for view in views:
        if view.found is None:
            raise InputError(
                f"{view.video.name} shows nothing that moves: choose another part of it with --start, --end or "
                "--region, or give --object-size if the objects are very small."
            )
        one, first = view.steady.size, views[0].steady.size
        if one != first:
            raise InputError(
                f"{view.video.name} has {one[1]}x{one[0]} pixels and {views[0].video.name} {first[1]}x{first[0]}: fit "
                "videos of one size together, or one after the other."
            )


def at_stride(view: VideoView, stride: int) -> VideoView:
    """Return the view with its steady video at this stride."""
    selection = view.video.selection
    if stride == selection.stride:
        return view
    return replace(view, steady=view.steady.selected(stride=stride))


def check_length(video: Video, length: int) -> None:
    """Raise an InputError if a video is too short for a clip of `length` frames."""
    frames = first_frames(video, length)
    if frames < length:
        raise InputError(
            f"{video.name} has {frames} frames at stride {video.selection.stride} and a clip needs {length}: give a "
            "longer video or part of it, or a smaller --stride."
        )


def first_frames(video: Video, most: int) -> int:
    """Return the number of frames of a video, but at most `most`. No more frames than that are read."""
    return sum(1 for _ in islice(video, most))
