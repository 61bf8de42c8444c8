"""Draw tracks on frames: boxes, ids, trajectories, masks and a mark on newly discovered objects.

Each object id has one bright colour, the same in every picture. Hues advance by the golden ratio. Successive ids
therefore lie far apart on the colour circle, and a new id always falls into the widest gap between the earlier ones.
The circle is that of OKLCH, where equal steps look equally different. On the HSV circle, a third of all ids would be
some green.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int, Integer, UInt8
from torch import Tensor

from scalor.errors import InputError
from scalor.tracks import Tracks

GOLDEN = (5**0.5 - 1) / 2
"""Step in hue from one id to the next, as a fraction of the colour circle."""
FIRST_HUE = 0.08
"""Hue of id 0, a warm red, as a fraction of the colour circle."""
LIGHTNESS = 0.75
"""Mean lightness in OKLCH, 0 to 1."""
HUE_LIGHTNESS = 0.10
"""Variation of lightness with hue.

Yellow is brightest and blue darkest, as in a rainbow, because a dark yellow is olive and a light blue is pale.
"""
YELLOW = 0.3
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
    hue = (FIRST_HUE + GOLDEN * ids) % 1.0
    lightness = LIGHTNESS + HUE_LIGHTNESS * np.cos(2 * np.pi * (hue - YELLOW))
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


TARGET_SIDE = 512
"""Small frames are enlarged until their longer side has about this many pixels."""
MASK_STRENGTH = 0.5
"""Weight of the object's colour in the pixels of its mask, 0 to 1."""
INK = 16
"""Grey level of digits and of the rim around the discovery mark."""
WHITE = 255

# Digits of 3 x 5 dots: five rows of 3 bits each.
_DIGITS = {
    "0": (7, 5, 5, 5, 7),
    "1": (2, 6, 2, 2, 7),
    "2": (7, 1, 7, 4, 7),
    "3": (7, 1, 7, 1, 7),
    "4": (5, 5, 7, 1, 1),
    "5": (7, 4, 7, 1, 7),
    "6": (7, 4, 7, 5, 7),
    "7": (7, 1, 2, 2, 2),
    "8": (7, 5, 7, 5, 7),
    "9": (7, 5, 7, 1, 7),
}


def overlay(
    frames: Float[np.ndarray, "T 3 H W"] | Float[Tensor, "T 3 H W"],
    tracks: Tracks,
    *,
    scale: int | None = None,
    trails: int = 10,
    labels: bool = True,
    masks: bool = False,
    first: int = 0,
) -> UInt8[np.ndarray, "T h w 3"]:
    """Draw `tracks` on enlarged frames.

    Parameters
    ----------
    frames : array or Tensor
        Frames with values in [0, 1].
    tracks : Tracks
        Tracks of one clip, in pixels of the frames.
    scale : int, optional
        Factor by which frames are enlarged. By default, the longer side becomes about `TARGET_SIDE` pixels.
    trails : int
        Number of past frames over which the trajectories fade; 0 draws none.
    labels : bool
        Whether to draw ids. Objects whose box is shorter than the label get none.
    masks : bool
        Whether to tint the pixels of each object. The tracks must then hold masks.
    first : int
        Number, as in `tracks.frame`, of `frames[0]`. It allows a long video to be drawn in parts.

    Returns
    -------
    array
        Pictures as uint8; h and w are H and W times `scale`.
    """
    array = frames.detach().float().cpu().numpy() if isinstance(frames, Tensor) else frames
    _check(array, tracks, scale, trails, masks)
    height, width = tracks.size
    scale = scale or max(1, round(TARGET_SIDE / max(height, width)))
    longer = scale * max(height, width)
    thickness = 1 if longer < 300 else 2
    colors = colors_of(tracks.id)
    boxes = np.round(tracks.box * scale).astype(int)
    in_view = (boxes[:, 2:] > 0).all(axis=1) & (boxes[:, :2] < (width * scale, height * scale)).all(axis=1)
    centres = tracks.centre * scale
    starts, ends = _segments(tracks, trails)

    pictures = np.empty((len(array), height * scale, width * scale, 3), np.uint8)
    for t, picture in enumerate(pictures, start=first):
        rows = np.flatnonzero((tracks.frame == t) & in_view)
        frame = array[t - first]
        if masks and tracks.masks is not None:
            frame = _tinted(frame, tracks.masks[rows], colors[rows])
        _enlarge_into(picture, frame)
        age = t - tracks.frame[ends]
        recent = (age >= 0) & (age < trails)
        if recent.any():
            strength = 1 - age[recent] / trails
            a, b = starts[recent], ends[recent]
            _draw_lines(picture, centres[a], centres[b], colors[b], strength, thickness)
        for row in rows:
            _draw_box(picture, boxes[row], colors[row], thickness)
        # Labels and marks are drawn after all boxes, so that in a crowd no line crosses a number.
        for row in rows:
            if labels and boxes[row, 3] - boxes[row, 1] >= _label_height(_digit_size(longer)):
                _draw_label(picture, int(tracks.id[row]), boxes[row], colors[row], _digit_size(longer))
            if tracks.discovered[row]:
                _draw_mark(picture, centres[row], radius=2 + _digit_size(longer))
    return pictures


@lru_cache(maxsize=4096)
def number_bitmap(number: int, size: int = 1) -> Bool[np.ndarray, "h w"]:
    """Return a bitmap of the digits of a number, 3 x 5 dots each; a dot is `size` pixels wide.

    The array is cached and shared between calls, so it must not be changed.
    """
    rows = [np.array([[bits >> 2 & 1, bits >> 1 & 1, bits & 1, 0] for bits in _DIGITS[d]]) for d in str(number)]
    bitmap = np.concatenate(rows, axis=1)[:, :-1].astype(bool)
    return bitmap.repeat(size, axis=0).repeat(size, axis=1)


def _check(frames: np.ndarray, tracks: Tracks, scale: int | None, trails: int, masks: bool) -> None:
    """Raise InputError for arguments of `overlay` that are invalid or do not belong together."""
    if frames.ndim != 4 or frames.shape[1] != 3 or frames.dtype.kind != "f":
        raise InputError(
            f"frames are {frames.dtype} of shape {list(frames.shape)}: hand in floats in [0, 1] of shape [T, 3, H, W]."
        )
    if frames.shape[2:] != tracks.size:
        raise InputError(
            f"frames are {frames.shape[2]} x {frames.shape[3]} pixels and tracks.size is {tracks.size[0]} x "
            f"{tracks.size[1]}: draw the tracks on the frames they were made from."
        )
    # Reconstructions may exceed [0, 1] slightly and are clipped. Values of 0 to 255 are an error.
    if frames.size and not (frames.min() >= -0.5 and frames.max() <= 1.5):
        raise InputError(f"frames hold values from {frames.min():g} to {frames.max():g}: scale them to [0, 1].")
    if len(tracks) and tracks.clip.min() != tracks.clip.max():
        raise InputError(f"tracks hold {len(np.unique(tracks.clip))} clips: draw one at a time with tracks.of_clip(i).")
    if scale is not None and scale < 1:
        raise InputError(f"scale is {scale}: give a whole number from 1, or None to choose it.")
    if trails < 0:
        raise InputError(f"trails is {trails}: give a number of frames from 0.")
    if masks and tracks.masks is None:
        raise InputError("masks is true but these tracks hold no masks: ask for masks when tracking.")


def _digit_size(longer: int) -> int:
    """Return the size of a digit's dots in pixels, for a picture with this longer side."""
    return 1 + sum(longer >= side for side in (160, 700, 1400))


def _label_height(size: int) -> int:
    """Return the height of a label in pixels: digits are five dots high, with one dot above and below."""
    return 7 * size


def _segments(tracks: Tracks, trails: int) -> tuple[Int[np.ndarray, " S"], Int[np.ndarray, " S"]]:
    """Return pairs of successive rows of one object, oldest first so that the newest is drawn on top."""
    order = np.lexsort((tracks.frame, tracks.id))
    starts, ends = order[:-1], order[1:]
    joined = tracks.id[starts] == tracks.id[ends]
    joined &= tracks.frame[ends] - tracks.frame[starts] <= trails
    starts, ends = starts[joined], ends[joined]
    oldest_first = np.argsort(tracks.frame[ends], kind="stable")
    return starts[oldest_first], ends[oldest_first]


def _tinted(
    frame: Float[np.ndarray, "3 H W"], masks: Bool[np.ndarray, "n H W"], colors: UInt8[np.ndarray, "n 3"]
) -> Float[np.ndarray, "3 H W"]:
    """Return the frame with each object's pixels blended with its colour."""
    frame = frame.copy()
    for mask, color in zip(masks, colors, strict=True):
        tint = color[:, None] / np.float32(255)
        frame[:, mask] = (1 - MASK_STRENGTH) * frame[:, mask] + MASK_STRENGTH * tint
    return frame


def _enlarge_into(picture: UInt8[np.ndarray, "h w 3"], frame: Float[np.ndarray, "3 H W"]) -> None:
    """Write the frame, enlarged by a whole factor, into the picture."""
    height, width = frame.shape[1:]
    scale = picture.shape[0] // height
    small = np.clip(frame * 255 + 0.5, 0, 255).astype(np.uint8).transpose(1, 2, 0)
    # Widening first lets the second step copy whole rows of memory, much faster than pixel by pixel.
    wide = small.repeat(scale, axis=1) if scale > 1 else small
    picture.reshape(height, scale, scale * width, 3)[:] = wide[:, None]


def _draw_lines(
    picture: UInt8[np.ndarray, "h w 3"],
    start: Float[np.ndarray, "S 2"],
    end: Float[np.ndarray, "S 2"],
    colors: UInt8[np.ndarray, "S 3"],
    strength: Float[np.ndarray, " S"],
    thickness: int,
) -> None:
    """Draw all lines of a frame at once, each as points at most one pixel apart."""
    counts = np.ceil(np.abs(end - start).max(axis=1)).astype(int) + 1
    line = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(len(line)) - np.repeat(np.cumsum(counts) - counts, counts)
    share = (step / np.maximum(counts - 1, 1)[line])[:, None]
    points = np.floor(start[line] + share * (end - start)[line] - (thickness - 1) / 2).astype(int)
    brush = np.stack(np.meshgrid(np.arange(thickness), np.arange(thickness)), -1).reshape(-1, 2)
    x, y = (points[:, None] + brush).reshape(-1, 2).T
    line = line.repeat(len(brush))
    inside = (x >= 0) & (y >= 0) & (x < picture.shape[1]) & (y < picture.shape[0])
    x, y, line = x[inside], y[inside], line[inside]
    weight = strength[line, None]
    picture[y, x] = ((1 - weight) * picture[y, x] + weight * colors[line]).astype(np.uint8)


def _draw_box(
    picture: UInt8[np.ndarray, "h w 3"],
    box: Int[np.ndarray, "4"],
    color: UInt8[np.ndarray, "3"],
    thickness: int,
) -> None:
    """Draw an outline whose outer edge is the box; sides outside the picture are not drawn."""
    x0, y0, x1, y1 = (int(v) for v in box)
    for top, bottom in ((y0, y0 + thickness), (y1 - thickness, y1)):
        picture[max(top, 0) : max(bottom, 0), max(x0, 0) : max(x1, 0)] = color
    for left, right in ((x0, x0 + thickness), (x1 - thickness, x1)):
        picture[max(y0, 0) : max(y1, 0), max(left, 0) : max(right, 0)] = color


def _draw_label(
    picture: UInt8[np.ndarray, "h w 3"],
    number: int,
    box: Int[np.ndarray, "4"],
    color: UInt8[np.ndarray, "3"],
    size: int,
) -> None:
    """Draw dark digits on a rectangle of the object's colour, above the box or, at the upper edge, just inside it."""
    figures = number_bitmap(number, size)
    height, width = _label_height(size), figures.shape[1] + 2 * size
    x0, y0 = int(box[0]), int(box[1])
    top = y0 - height if y0 >= height else max(y0, 0)
    left = min(max(x0, 0), max(picture.shape[1] - width, 0))
    picture[top : top + height, left : left + width] = color
    _stamp(picture, figures, top + size, left + size, INK)


def _draw_mark(picture: UInt8[np.ndarray, "h w 3"], centre: Float[np.ndarray, "2"], radius: int) -> None:
    """Draw a small white disc, as in the paper's figures, with a dark rim that makes it visible on white objects."""
    x, y = (int(v) for v in np.floor(centre))
    _stamp(picture, _disc(radius + 1), y - radius - 1, x - radius - 1, INK)
    _stamp(picture, _disc(radius), y - radius, x - radius, WHITE)


def _stamp(
    picture: UInt8[np.ndarray, "h w 3"], shape: Bool[np.ndarray, "a b"], top: int, left: int, level: int
) -> None:
    """Paint a grey level where `shape` is true; parts outside the picture are not drawn."""
    y0, x0 = max(top, 0), max(left, 0)
    y1, x1 = min(top + shape.shape[0], picture.shape[0]), min(left + shape.shape[1], picture.shape[1])
    if y0 < y1 and x0 < x1:
        picture[y0:y1, x0:x1][shape[y0 - top : y1 - top, x0 - left : x1 - left]] = level


@lru_cache
def _disc(radius: int) -> Bool[np.ndarray, "d d"]:
    offset = np.arange(-radius, radius + 1)
    disc: np.ndarray = offset[:, None] ** 2 + offset**2 <= (radius + 0.4) ** 2
    return disc
