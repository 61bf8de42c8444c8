"""Lighting of an image relative to the background: gain and offset of each colour, fitted to the pixels that agree.

Objects, and anything else that differs, are outliers of the fit. The fit uses a few thousand pixels, so it takes about
a millisecond, whatever the size of the image.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8

Points = Float[np.ndarray, "3 P"]
"""Colours of some pixels, from 0 to 255."""

SAMPLED_PIXELS = 4_000
"""Approximate number of pixels that are used. Their noise is then divided by more than 60."""
UNCLIPPED_RANGE = (4, 251)
"""Range of values, from 0 to 255, that are used. Darker or brighter values may be clipped and carry no information
about the lighting."""
CALM_SHARE = 0.6
"""Share of the pixels, those that agree best, by which first guesses are compared. The others may be objects."""
FIT_ROUNDS = 3
"""Rounds of least squares, each on the pixels that agree with the previous fit."""
DOUBTFUL_RESIDUAL = 0.05
"""Residual of the previous lighting, as a share of full brightness, above which other guesses are tried too."""
GAIN_RANGE = (0.1, 10.0)
"""Smallest and largest gain."""
OUTLIER_RATIO, TOLERANCE_RANGE = 3.0, (4.0, 20.0)
"""A pixel agrees with the lighting if its residual is less than OUTLIER_RATIO times the median one. This limit is kept
within TOLERANCE_RANGE, in levels out of 255."""
FLAT_VARIANCE = 100.0
"""Variance in squared levels below which a background is too uniform to tell a gain from an offset. The gain then stays
near 1."""
MIN_FIT_SHARE = 0.35
"""Smallest share of agreeing pixels of a valid fit."""
INVISIBLE_CHANGE = 0.75
"""Smallest change of the lighting, in levels out of 255, that is corrected."""


@dataclass(frozen=True)
class Light:
    """Lighting of an image relative to the background.

    For each colour, `picture = gain * scene + offset`.
    """

    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Offset as a share of full brightness."""
    agreeing: float = 1.0
    """Share of the pixels that this lighting explains."""
    remainder: float = 0.0
    """Residual, as a share of full brightness, that the best share of the pixels (CALM_SHARE) stays below."""

    def table(self) -> UInt8[np.ndarray, "3 256"]:
        """Return the value in this lighting of every value of the background."""
        colours = np.arange(256) * np.array(self.gain)[:, None] + 255 * np.array(self.offset)[:, None]
        table: np.ndarray = colours.round().clip(0, 255).astype(np.uint8)
        return table

    def applied(self, picture: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return an image of the background as it looks in this lighting."""
        if self.is_usual():
            return picture
        lit: np.ndarray = np.take(self.table().ravel(), picture + np.array([0, 256, 512], np.intp), mode="wrap")
        return lit

    def inverse(self) -> "Light":
        """Return the lighting that undoes this one."""
        gain = tuple(1 / one for one in self.gain)
        offset = tuple(-shift / one for shift, one in zip(self.offset, self.gain, strict=True))
        return Light(gain, offset, self.agreeing, self.remainder)  # type: ignore[arg-type]

    def is_usual(self) -> bool:
        """Return whether the change is too small to be visible."""
        ends = (255 * np.abs(np.array(self.offset)), 255 * np.abs(np.array(self.gain) + self.offset - 1))
        return max(float(end.max()) for end in ends) < INVISIBLE_CHANGE

    def brightness(self, scene: Points) -> float:
        """Return the mean of the background in this lighting, as a share of full brightness."""
        return float((scene.mean(1) / 255 * self.gain + self.offset).mean())


IDENTITY_LIGHT = Light()
"""The lighting of the background itself."""


def points_of(picture: UInt8[np.ndarray, "H W 3"]) -> Points:
    """Return the colours of pixels on a regular grid over the image."""
    step = max(1, round(math.sqrt(picture.shape[0] * picture.shape[1] / SAMPLED_PIXELS)))
    points = picture[step // 2 :: step, step // 2 :: step].transpose(2, 0, 1)
    return np.ascontiguousarray(points, np.float32).reshape(3, -1)


def fit_light(picture: Points, scene: Points, before: Light = IDENTITY_LIGHT) -> Light:
    """Fit the lighting of an image, starting from the guess `before`.

    If too few pixels agree, return the guess itself.
    """
    low, high = UNCLIPPED_RANGE
    clear = ((np.minimum(picture, scene) > low) & (np.maximum(picture, scene) < high)).all(0)
    if 1 - CALM_SHARE < clear.mean() < 1:
        picture, scene = picture.compress(clear, 1), scene.compress(clear, 1)
    light = judged(picture, scene, before)
    if light.agreeing < MIN_FIT_SHARE or light.remainder > DOUBTFUL_RESIDUAL:
        light = min(light, *first_guesses(picture, scene), key=lambda guess: guess.remainder)
    for _ in range(FIT_ROUNDS):
        agrees = agreeing(apart(picture, scene, light))
        if agrees.mean() < MIN_FIT_SHARE:
            return Light(before.gain, before.offset, float(agrees.mean()), light.remainder)
        light = least_squares(picture, scene, agrees)
    return judged(picture, scene, light)


def first_guesses(picture: Points, scene: Points) -> list[Light]:
    """Return three guesses: no change, an offset alone, and a gain alone."""
    shift, gain = np.median(picture - scene, 1), np.median(picture / np.maximum(scene, 1), 1)
    nothing, one = np.zeros(3), np.ones(3)
    return [judged(picture, scene, light_of(*guess)) for guess in ((one, nothing), (one, shift), (gain, nothing))]


def least_squares(picture: Points, scene: Points, agrees: Bool[np.ndarray, " P"]) -> Light:
    """Fit gain and offset to the pixels that agree, separately for each colour."""
    weight = agrees / np.float32(agrees.sum())
    middle, usual = picture @ weight, scene @ weight
    empty = scene - usual[:, None]
    variance, shared = (empty * empty) @ weight, ((picture - middle[:, None]) * empty) @ weight
    sure = variance**2 / (variance**2 + FLAT_VARIANCE**2)
    gain = np.clip(1 + sure * (shared / np.maximum(variance, 1e-6) - 1), *GAIN_RANGE)
    return light_of(gain, middle - gain * usual)


def light_of(gain: Float[np.ndarray, " 3"], offset: Float[np.ndarray, " 3"]) -> Light:
    """Return the lighting with this gain, and this offset in levels out of 255."""
    red, green, blue = (float(value) for value in gain)
    return Light((red, green, blue), (float(offset[0]) / 255, float(offset[1]) / 255, float(offset[2]) / 255))


def judged(picture: Points, scene: Points, light: Light) -> Light:
    """Return a lighting with measures of how well it explains the image."""
    off = apart(picture, scene, light)
    calm = float(np.partition(off, int(CALM_SHARE * len(off)))[int(CALM_SHARE * len(off))])
    return Light(light.gain, light.offset, float(agreeing(off).mean()), calm / 255)


def agreeing(off: Float[np.ndarray, " P"]) -> Bool[np.ndarray, " P"]:
    """Return which pixels a lighting explains, given their residuals in levels out of 255."""
    usual = float(np.partition(off, len(off) // 2)[len(off) // 2])
    explained: np.ndarray = off < min(max(OUTLIER_RATIO * usual, TOLERANCE_RANGE[0]), TOLERANCE_RANGE[1])
    return explained


def apart(picture: Points, scene: Points, light: Light) -> Float[np.ndarray, " P"]:
    """Return the residual of each pixel in levels out of 255, in the channel that differs most."""
    off: np.ndarray = np.abs(picture - in_light(scene, light)).max(0)
    return off


def in_light(points: Points, light: Light) -> Points:
    """Return the points as they look in this lighting."""
    gain, offset = np.array(light.gain, np.float32)[:, None], 255 * np.array(light.offset, np.float32)[:, None]
    return points * gain + offset
