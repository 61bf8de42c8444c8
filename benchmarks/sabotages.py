"""The ways in which `python -m benchmarks.sabotage` makes a video worse, by name."""

import numpy as np
from jaxtyping import Float, Int
from PIL import Image, ImageFilter
from scipy.ndimage import gaussian_filter1d

from benchmarks.spoiling import Order, Part, Picture, Sabotage, Stage, View, Views, affine

STEP, GAIN_FROM, GAIN_TO, FLICKER, DARK, NOISE = 0.25, 0.6, 1.3, 0.1, 0.25, 0.08
"""Shares of full brightness, or factors."""
BLUR = 2.5
"""Standard deviation, pixels."""
HARSH_CRF = 45
"""Quality of a file in which blocks can be seen."""
PAN_WINDOW, PAN_SPEED = 2 / 3, 2
"""Share of the picture's sides that the panning camera shows (512x384 of 768x576), and pixels a frame."""
SHAKE, SHAKE_FRAMES = 8, 5
"""The farthest that a shaken camera looks aside, pixels; frames over which a smooth shake is smooth."""
ZOOM = 1.4
"""The enlargement at the end."""
TURN, TURN_FRAMES, TURN_MARGIN = 2.0, 200, 1.05
"""Degrees, frames of a whole swing, and an enlargement that hides the empty corners."""
DROPPED = 0.2
"""Share of the frames that are missing."""
LARGE, LARGE_FRAMES, LARGE_LEAD = 5, 150, 30
"""4K: the factor, how many frames, and how many of them come before the scored ones."""
STILL = 0.6
"""Share of its time that a frozen video stands still."""


def every_nth(n: int) -> Order:
    return lambda part, random: np.arange(part.first, part.last + 1, n)


def some_missing(part: Part, random: np.random.Generator) -> Int[np.ndarray, " T"]:
    frames = np.arange(part.first, part.last + 1)
    missing = random.choice(frames, round(DROPPED * len(frames)), replace=False)
    return np.setdiff1d(frames, missing)


def standing_still(part: Part, random: np.random.Generator) -> Int[np.ndarray, " T"]:
    """About as many frames as before, most of which show one moment of the scored part."""
    moving = max(2, round((1 - STILL) * len(part)))
    frames = part.from_lead(moving // 5, moving)
    held = np.full(round(len(frames) * STILL / (1 - STILL)), frames[len(frames) // 2])
    return np.sort(np.concatenate([frames, held]))


def few_frames(part: Part, random: np.random.Generator) -> Int[np.ndarray, " T"]:
    return part.from_lead(LARGE_LEAD, LARGE_FRAMES)


def mirrored(stage: Stage) -> Views:
    return Views(affine(len(stage.order), a=-1, x=stage.size[1]), stage.size)


def resized(factor: float) -> View:
    def view(stage: Stage) -> Views:
        height, width = stage.size
        return Views(affine(len(stage.order), a=factor, d=factor), (even(factor * height), even(factor * width)))

    return view


def panning(stage: Stage) -> Views:
    """A window that goes to and fro."""
    height, width = (even(PAN_WINDOW * side) for side in stage.size)
    room = stage.size[1] - width
    way = (PAN_SPEED * np.arange(len(stage.order))) % (2 * room)
    left = np.minimum(way, 2 * room - way)
    return Views(affine(len(stage.order), x=-left, y=-(stage.size[0] - height) // 2), (height, width))


def shaken_smoothly(stage: Stage) -> Views:
    path = gaussian_filter1d(stage.random().normal(size=(2, len(stage.order))), SHAKE_FRAMES)
    return shifted(stage, SHAKE * path / np.abs(path).max())


def shaken_in_jumps(stage: Stage) -> Views:
    return shifted(stage, stage.random().integers(-SHAKE, SHAKE + 1, (2, len(stage.order))))


def shifted(stage: Stage, path: Float[np.ndarray, "2 T"] | Int[np.ndarray, "2 T"]) -> Views:
    """A window that leaves room for the shake all around."""
    size = (stage.size[0] - 2 * SHAKE, stage.size[1] - 2 * SHAKE)
    return Views(affine(len(stage.order), x=path[0] - SHAKE, y=path[1] - SHAKE), size)


def zooming(stage: Stage) -> Views:
    return about_centre(stage, np.linspace(1, ZOOM, len(stage.order)), np.zeros(len(stage.order)))


def turning(stage: Stage) -> Views:
    times = np.arange(len(stage.order))
    angle = np.deg2rad(TURN) * np.sin(2 * np.pi * times / TURN_FRAMES)
    return about_centre(stage, np.full(len(times), TURN_MARGIN), angle)


def about_centre(stage: Stage, scale: Float[np.ndarray, " T"], angle: Float[np.ndarray, " T"]) -> Views:
    y, x = stage.size[0] / 2, stage.size[1] / 2
    a, b = scale * np.cos(angle), scale * np.sin(angle)
    return Views(affine(len(scale), a, -b, x - a * x + b * y, b, a, y - b * x - a * y), stage.size)


def even(length: float) -> int:
    """The nearest even number: H.264 files have no other sides."""
    return 2 * max(1, round(length / 2))


def brighter(picture: Picture, gain: float, plus: float = 0.0) -> Picture:
    levels = np.clip(np.arange(256) * gain + 255 * plus, 0, 255).round().astype(np.uint8)
    lit: Picture = levels[picture]
    return lit


def light_step(picture: Picture, t: int, stage: Stage) -> Picture:
    """From the middle of the scored frames on."""
    return brighter(picture, 1, STEP) if t + 1 >= sum(stage.scored) / 2 else picture


def light_drift(picture: Picture, t: int, stage: Stage) -> Picture:
    return brighter(picture, GAIN_FROM + (GAIN_TO - GAIN_FROM) * t / max(1, len(stage.order) - 1))


def flickering(picture: Picture, t: int, stage: Stage) -> Picture:
    return brighter(picture, stage.random(t).uniform(1 - FLICKER, 1 + FLICKER))


def darkened(picture: Picture, t: int, stage: Stage) -> Picture:
    return brighter(picture, DARK)


def noisy(picture: Picture, t: int, stage: Stage) -> Picture:
    noise = 255 * NOISE * stage.random(t).standard_normal(picture.shape, np.float32)
    grainy: Picture = np.clip(picture + noise, 0, 255).round().astype(np.uint8)
    return grainy


def without_colour(picture: Picture, t: int, stage: Stage) -> Picture:
    return np.asarray(Image.fromarray(picture).convert("L").convert("RGB"))


def blurred(picture: Picture, t: int, stage: Stage) -> Picture:
    return np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(BLUR)))


SABOTAGES = {
    "none": Sabotage(),
    "light-step": Sabotage(light=light_step),
    "light-drift": Sabotage(light=light_drift),
    "flicker": Sabotage(light=flickering),
    "dark": Sabotage(light=darkened),
    "grey": Sabotage(light=without_colour),
    "noise": Sabotage(light=noisy),
    "blurred": Sabotage(light=blurred),
    "compressed": Sabotage(crf=HARSH_CRF),
    "pan": Sabotage(view=panning),
    "shake-smooth": Sabotage(view=shaken_smoothly),
    "shake-jerky": Sabotage(view=shaken_in_jumps),
    "zoom": Sabotage(view=zooming),
    "rotation": Sabotage(view=turning),
    "mirrored": Sabotage(view=mirrored),
    "phone": Sabotage(phone=True),
    "half-size": Sabotage(view=resized(0.5)),
    "double-size": Sabotage(view=resized(2)),
    "4k": Sabotage(order=few_frames, view=resized(LARGE)),
    "dropped": Sabotage(order=some_missing),
    "half-rate": Sabotage(order=every_nth(2), slower=2),
    "quarter-rate": Sabotage(order=every_nth(4), slower=4),
    "frozen": Sabotage(order=standing_still),
    "resting": Sabotage(resting=True),
}
