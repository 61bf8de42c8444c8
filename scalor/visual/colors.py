"""Colours of objects: each object id has one bright colour, the same in every picture.

Hues advance by the golden ratio. Successive ids therefore lie far apart on the colour circle, and a new id always falls
into the widest gap between the earlier ones. The circle is that of OKLCH, where equal steps look equally different. On
the HSV circle, a third of all ids would be some green.
"""

import numpy as np
from jaxtyping import Integer, UInt8

HUE_STEP = (5**0.5 - 1) / 2
"""Step in hue from one id to the next, as a fraction of the colour circle."""
FIRST_HUE = 0.08
"""Hue of id 0, a warm red, as a fraction of the colour circle."""
LIGHTNESS = 0.75
"""Mean lightness in OKLCH, 0 to 1."""
HUE_LIGHTNESS = 0.10
"""Variation of lightness with hue.

Yellow is brightest and blue darkest, as in a rainbow, because a dark yellow is olive and a light blue is pale.
"""
LIGHTEST_HUE = 0.3
"""Hue of the greatest lightness, as a fraction of the colour circle."""
ID_LIGHTNESS = np.array([0.0, 0.08, -0.08])
"""Lightness offsets, cycled by id. They separate ids 8 or 13 apart, whose hues are similar."""
CHROMA = 0.16
"""Chroma in OKLCH: the highest that a screen can show for most hues. Above it, clipping makes similar hues equal."""

# OKLab to linear sRGB: Björn Ottosson, https://bottosson.github.io/posts/oklab/
_OKLAB_TO_LMS = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
)
_LMS_TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def colors_of(ids: Integer[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape 3"]:
    """Return the RGB colours of object ids."""
    hue = (FIRST_HUE + HUE_STEP * ids) % 1.0
    lightness = LIGHTNESS + HUE_LIGHTNESS * np.cos(2 * np.pi * (hue - LIGHTEST_HUE))
    lightness = lightness + ID_LIGHTNESS[ids % len(ID_LIGHTNESS)]
    angle = 2 * np.pi * hue
    oklab = np.stack([lightness, CHROMA * np.cos(angle), CHROMA * np.sin(angle)], axis=-1)
    linear = np.clip((oklab @ _OKLAB_TO_LMS.T) ** 3 @ _LMS_TO_RGB.T, 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    colors: np.ndarray = np.round(255 * srgb).astype(np.uint8)
    return colors


def label_picture(labels: Integer[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape 3"]:
    """Return an integer label map as a picture: each id in its colour, negative labels (the background) in black."""
    # A label map has many pixels and few ids, so colours are computed once per id and then looked up.
    ids, index = np.unique(labels, return_inverse=True)
    palette = np.where(ids[:, None] < 0, np.uint8(0), colors_of(ids))
    picture: np.ndarray = palette[index.reshape(labels.shape)]
    return picture
