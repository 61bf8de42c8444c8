"""The settings of a model for a video, from what was found in it."""

import math
from dataclasses import dataclass

from scalor.boxes import FLAT
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.still.survey import Survey
from scalor.video.resize import shrunken_size

AREA = 320.0
"""Pixels of an object as the model sees it: enough to tell one from another, few enough to be quick."""
LEAST_AREA = 100.0
"""Objects of fewer pixels are enlarged, so that they span several cells of several pixels."""
STEP = 0.12
"""Of the shorter side of an object: how far it should move from one frame to the next."""
LARGEST_STRIDE = 8
STRENGTH, MOST_STRENGTH, MOST_CONTRAST = 0.4, 0.7, 10.0
"""How much objects of AREA pixels should differ from the scene, in shares of full brightness, how much small ones, and
what may be done for it."""
SIGMA, LEAST_SIGMA = 0.25, 0.1
"""The pixels' noise for objects of AREA pixels and STRENGTH, and at least."""
CELLS = 2.5
"""Cells along a side of an object, at least."""
AROUND = (2, 4)
"""Heights and widths of an object that a training clip spans."""
SMALLEST_CLIP = 48
"""Pixels along a side."""
LENGTH, STEPS = 10, 6_000
SIZE_RANGE, SIZE_RANGE_IN_PERSPECTIVE = 0.5, 0.3
"""How much sizes vary. Less leaves no room for two in one box, once the near and the far are equally large."""


@dataclass(frozen=True)
class Choice:
    """What a person may say; what is left out follows from the video."""

    object_size: tuple[float, float] | None = None
    scale: float | None = None
    stride: int | None = None
    steps: int = STEPS


def choose(found: Survey, said: Choice, size: tuple[int, int], frames: int, footage: str) -> Config:
    """A whole config for a video of this height and width and so many frames, which are kept in a file."""
    height, width = said.object_size or found.object_size
    scale = said.scale or scale_for(height * width)
    stride = said.stride or min(stride_for(found.speed, min(height, width)), max(1, frames // LENGTH))
    object_size = (round(height * scale, 1), round(width * scale, 1))
    cell = (power_of_two_below(object_size[0] / CELLS), power_of_two_below(object_size[1] / CELLS))
    frame = tuple(
        min(room // step, math.ceil(max(SMALLEST_CLIP, count * side) / step)) * step
        for count, side, step, room in zip(AROUND, object_size, cell, shrunken_size(size, scale), strict=True)
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
    return Config(model, scene, scene, schedule(said.steps))


def schedule(steps: int) -> TrainConfig:
    """How a training of so many steps goes: single frames first, then longer and longer sequences."""
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
    """Large objects are shrunken to AREA pixels, tiny ones enlarged to LEAST_AREA, others left as they are."""
    shrunken, enlarged = math.sqrt(AREA / area), math.sqrt(LEAST_AREA / area)
    return round(min(shrunken, max(1.0, enlarged)), 3)


def stride_for(speed: float, side: float) -> int:
    """So many frames of the video that an object moves by about STEP of its shorter side."""
    return 1 if speed == 0 else min(LARGEST_STRIDE, max(1, round(STEP * side / speed)))


def sigma_for(strength: float, area: float) -> float:
    """The pixels' noise for objects of this strength as the model sees them. With less, large ones fall apart into
    pieces and blotches become objects; with more, small and faint ones are not worth their price (docs/log.md)."""
    worth = math.sqrt(area / AREA * strength / STRENGTH)
    return round(min(SIGMA, max(LEAST_SIGMA, SIGMA * worth)), 3)


def contrast_for(strength: float, area: float) -> float:
    """Faint objects are made stronger, so that they matter to a model whose pixels are noisy; small ones more, as they
    have fewer pixels to matter with."""
    wanted = min(MOST_STRENGTH, STRENGTH * math.sqrt(max(1.0, AREA / area)))
    return round(min(MOST_CONTRAST, max(1.0, wanted / strength)), 1) if strength else 1.0


def power_of_two_below(size: float) -> int:
    return max(2, 2 ** math.floor(math.log2(size))) if size > 2 else 2
