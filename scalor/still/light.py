"""The light of a picture beside that of the scene: gain and offset of each colour, fitted to the pixels that agree.

Objects, and whatever else differs, are outliers of the fit. It looks at a few thousand pixels and so costs about a
millisecond, whatever the size of the picture.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8

Points = Float[np.ndarray, "3 P"]
"""Colours of some pixels, from 0 to 255."""

POINTS = 4_000
"""About how many pixels are looked at. Their noise is then divided by more than 60."""
UNCLIPPED = (4, 251)
"""Values from 0 to 255. Whatever is darker or brighter may have been cut off, and tells nothing of the light."""
CALM = 0.6
"""Of the pixels: those that agree best, by which first guesses are compared. The others may be objects."""
ROUNDS = 3
DOUBTFUL = 0.05
"""In shares of full brightness: where the light before is off by more, others are guessed too."""
GAINS = (0.1, 10.0)
"""Nothing beyond is believed."""
OUTLIER, TOLERANCE = 3.0, (4.0, 20.0)
"""A pixel agrees with the light if it is off by less than so many times the usual, within these levels out of 255."""
STIFFNESS = 100.0
"""Levels squared: the variance below which a scene is too plain to tell a gain from an offset, and the gain stays
near 1."""
BELIEVED = 0.35
"""Of the pixels: where fewer agree, the fit says nothing."""
INVISIBLE = 0.75
"""Levels out of 255: a smaller change of the light is left out."""


@dataclass(frozen=True)
class Light:
    """How a picture differs from the scene as a whole: `picture = gain * scene + offset`, a number for each colour."""

    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """In shares of full brightness."""
    agreeing: float = 1.0
    """Share of the pixels that this light explains."""
    remainder: float = 0.0
    """By how much the calmer pixels are off all the same, in shares of full brightness."""

    def table(self) -> UInt8[np.ndarray, "3 256"]:
        """The colour in this light for every colour of the scene."""
        colours = np.arange(256) * np.array(self.gain)[:, None] + 255 * np.array(self.offset)[:, None]
        table: np.ndarray = colours.round().clip(0, 255).astype(np.uint8)
        return table

    def applied(self, picture: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
        """A picture of the scene in this light."""
        if self.is_usual():
            return picture
        lit: np.ndarray = np.take(self.table().ravel(), picture + np.array([0, 256, 512], np.intp), mode="wrap")
        return lit

    def inverse(self) -> "Light":
        """Of the light that takes pictures in this one back to the scene."""
        gain = tuple(1 / one for one in self.gain)
        offset = tuple(-shift / one for shift, one in zip(self.offset, self.gain, strict=True))
        return Light(gain, offset, self.agreeing, self.remainder)  # type: ignore[arg-type]

    def is_usual(self) -> bool:
        """Whether nobody would see a difference."""
        ends = (255 * np.abs(np.array(self.offset)), 255 * np.abs(np.array(self.gain) + self.offset - 1))
        return max(float(end.max()) for end in ends) < INVISIBLE

    def brightness(self, scene: Points) -> float:
        """Mean of the scene in this light, in shares of full brightness."""
        return float((scene.mean(1) / 255 * self.gain + self.offset).mean())


USUAL = Light()


def points_of(picture: UInt8[np.ndarray, "H W 3"]) -> Points:
    """Colours of pixels on a regular grid over the picture."""
    step = max(1, round(math.sqrt(picture.shape[0] * picture.shape[1] / POINTS)))
    points = picture[step // 2 :: step, step // 2 :: step].transpose(2, 0, 1)
    return np.ascontiguousarray(points, np.float32).reshape(3, -1)


def fit_light(picture: Points, scene: Points, before: Light = USUAL) -> Light:
    """The light of a picture, of which `before` is a first guess; that itself where the picture says nothing."""
    low, high = UNCLIPPED
    clear = ((np.minimum(picture, scene) > low) & (np.maximum(picture, scene) < high)).all(0)
    if 1 - CALM < clear.mean() < 1:
        picture, scene = picture.compress(clear, 1), scene.compress(clear, 1)
    light = judged(picture, scene, before)
    if light.agreeing < BELIEVED or light.remainder > DOUBTFUL:
        light = min(light, *first_guesses(picture, scene), key=lambda guess: guess.remainder)
    for _ in range(ROUNDS):
        agrees = agreeing(apart(picture, scene, light))
        if agrees.mean() < BELIEVED:
            return Light(before.gain, before.offset, float(agrees.mean()), light.remainder)
        light = least_squares(picture, scene, agrees)
    return judged(picture, scene, light)


def first_guesses(picture: Points, scene: Points) -> list[Light]:
    """The usual light, a shift alone, and a gain alone."""
    shift, gain = np.median(picture - scene, 1), np.median(picture / np.maximum(scene, 1), 1)
    nothing, one = np.zeros(3), np.ones(3)
    return [judged(picture, scene, light_of(*guess)) for guess in ((one, nothing), (one, shift), (gain, nothing))]


def least_squares(picture: Points, scene: Points, agrees: Bool[np.ndarray, " P"]) -> Light:
    """Gain and offset for the pixels that agree, each colour alone."""
    weight = agrees / np.float32(agrees.sum())
    middle, usual = picture @ weight, scene @ weight
    empty = scene - usual[:, None]
    variance, shared = (empty * empty) @ weight, ((picture - middle[:, None]) * empty) @ weight
    sure = variance**2 / (variance**2 + STIFFNESS**2)
    gain = np.clip(1 + sure * (shared / np.maximum(variance, 1e-6) - 1), *GAINS)
    return light_of(gain, middle - gain * usual)


def light_of(gain: Float[np.ndarray, " 3"], offset: Float[np.ndarray, " 3"]) -> Light:
    """Of an offset in levels out of 255."""
    red, green, blue = (float(value) for value in gain)
    return Light((red, green, blue), (float(offset[0]) / 255, float(offset[1]) / 255, float(offset[2]) / 255))


def judged(picture: Points, scene: Points, light: Light) -> Light:
    """A light with how well it explains the picture."""
    off = apart(picture, scene, light)
    calm = float(np.partition(off, int(CALM * len(off)))[int(CALM * len(off))])
    return Light(light.gain, light.offset, float(agreeing(off).mean()), calm / 255)


def agreeing(off: Float[np.ndarray, " P"]) -> Bool[np.ndarray, " P"]:
    """Which pixels a light explains that are off by so many levels."""
    usual = float(np.partition(off, len(off) // 2)[len(off) // 2])
    explained: np.ndarray = off < min(max(OUTLIER * usual, TOLERANCE[0]), TOLERANCE[1])
    return explained


def apart(picture: Points, scene: Points, light: Light) -> Float[np.ndarray, " P"]:
    """Levels by which each pixel is off, of the colour that is farthest off."""
    off: np.ndarray = np.abs(picture - in_light(scene, light)).max(0)
    return off


def in_light(points: Points, light: Light) -> Points:
    gain, offset = np.array(light.gain, np.float32)[:, None], 255 * np.array(light.offset, np.float32)[:, None]
    return points * gain + offset
