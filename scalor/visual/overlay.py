"""Draw tracks on frames: boxes, ids, trajectories, masks and a mark on newly discovered objects."""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from scalor.errors import InputError, without_extra
from scalor.tracks import Tracks
from scalor.visual.colors import colors_of

TARGET_SIDE = 512
"""Small frames are enlarged until their longer side has about this many pixels."""
MASK_STRENGTH = 0.5
"""Weight of the object's colour in the pixels of its mask, 0 to 1."""
INK = 16
"""Grey level of ids and of the rim around the discovery mark."""
WHITE = 255
THIN_BELOW = 300
"""Pictures whose longer side has fewer pixels have lines of one pixel, larger ones of two."""


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

    Examples
    --------
    >>> pictures = overlay(frames, model.track(frames))
    >>> write_video("tracked.mp4", pictures, fps=25)
    """
    array = frames.detach().float().cpu().numpy() if isinstance(frames, Tensor) else frames
    _check(array, tracks, scale, trails, masks)
    height, width = tracks.size
    scale = scale or scale_for(tracks.size)
    pictures = np.empty((len(array), height * scale, width * scale, 3), np.uint8)
    for number, frame in enumerate(array):
        picture = np.clip(frame * 255 + 0.5, 0, 255).astype(np.uint8).transpose(1, 2, 0)
        if masks and tracks.masks is not None:
            picture = picture.copy()
            for row in np.flatnonzero(tracks.frame == first + number):
                inside = tracks.masks[row]
                picture[inside] = tinted(picture[inside], colors_of(tracks.id[[row]]))
        pictures[number] = draw_tracks(picture, tracks, first + number, scale=scale, trails=trails, labels=labels)
    return pictures


def draw_tracks(
    picture: UInt8[np.ndarray, "H W 3"],
    tracks: Tracks,
    frame: int,
    *,
    scale: int | None = None,
    trails: int = 10,
    labels: bool = True,
) -> UInt8[np.ndarray, "h w 3"]:
    """Draw the tracks of one frame, and the trajectories that lead to it, on an enlarged picture.

    The parameters are those of `overlay`; `frame` is the number of the picture, as in `tracks.frame`.
    """
    scale = scale or scale_for(tracks.size)
    canvas: np.ndarray = picture.repeat(scale, axis=0).repeat(scale, axis=1) if scale > 1 else picture.copy()
    longer = max(canvas.shape)
    thickness = 1 if longer < THIN_BELOW else 2
    _draw_trails(canvas, tracks, frame, trails, scale, thickness)
    boxes = np.round(tracks.box * scale).astype(int)
    in_view = (boxes[:, 2:] > 0).all(axis=1) & (boxes[:, :2] < (canvas.shape[1], canvas.shape[0])).all(axis=1)
    rows = np.flatnonzero((tracks.frame == frame) & in_view)
    colors = colors_of(tracks.id[rows])
    for row, color in zip(rows, colors, strict=True):
        _draw_box(canvas, boxes[row], color, thickness)
    # Labels and marks are drawn after all boxes, so that in a crowd no line crosses a number.
    for row, color in zip(rows, colors, strict=True):
        if labels:
            _draw_label(canvas, int(tracks.id[row]), boxes[row], color, 8 + longer // 100)
        if tracks.discovered[row]:
            _draw_mark(canvas, scale * tracks.centre[row], radius=3 + longer // 512)
    return canvas


def scale_for(size: tuple[int, int]) -> int:
    """Return the factor by which frames of this height and width are enlarged."""
    return max(1, round(TARGET_SIDE / max(size)))


def tinted(pixels: UInt8[np.ndarray, "P 3"], colors: UInt8[np.ndarray, "*P 3"]) -> UInt8[np.ndarray, "P 3"]:
    """Return the pixels of masks blended with the colours of their objects."""
    blended: np.ndarray = ((1 - MASK_STRENGTH) * pixels + MASK_STRENGTH * colors).astype(np.uint8)
    return blended


def _check(frames: np.ndarray, tracks: Tracks, scale: int | None, trails: int, masks: bool) -> None:
    """Raise InputError for arguments of `overlay` that are invalid or do not belong together."""
    if frames.ndim != 4 or frames.shape[1] != 3 or frames.dtype.kind != "f":
        raise InputError(
            f"frames are {frames.dtype} of shape {list(frames.shape)}: give floats in [0, 1] of shape [T, 3, H, W]."
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


def _draw_trails(
    picture: UInt8[np.ndarray, "h w 3"], tracks: Tracks, frame: int, trails: int, scale: int, thickness: int
) -> None:
    """Draw straight lines between successive places of each object, fainter the older they are."""
    starts, ends = _segments(tracks, trails)
    age = frame - tracks.frame[ends]
    recent = (age >= 0) & (age < trails)
    if recent.any():
        starts, ends, strength = starts[recent], ends[recent], 1 - age[recent] / trails
        centres = tracks.centre * scale
        _draw_lines(picture, centres[starts], centres[ends], colors_of(tracks.id[ends]), strength, thickness)


def _segments(tracks: Tracks, trails: int) -> tuple[Int[np.ndarray, " S"], Int[np.ndarray, " S"]]:
    """Return pairs of successive rows of one object, oldest first so that the newest is drawn on top."""
    order = np.lexsort((tracks.frame, tracks.id))
    starts, ends = order[:-1], order[1:]
    joined = tracks.id[starts] == tracks.id[ends]
    joined &= tracks.frame[ends] - tracks.frame[starts] <= trails
    starts, ends = starts[joined], ends[joined]
    oldest_first = np.argsort(tracks.frame[ends], kind="stable")
    return starts[oldest_first], ends[oldest_first]


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
    font_size: int,
) -> None:
    """Draw an id on a rectangle of its colour, above the box or, at the upper edge of the picture, just inside it.

    A box that is shorter than the label gets none.
    """
    ink = number_mask(number, font_size)
    height, width = ink.shape
    x0, y0, _, y1 = box.tolist()
    if y1 - y0 < height:
        return
    top = y0 - height if y0 >= height else max(y0, 0)
    left = min(max(x0, 0), max(picture.shape[1] - width, 0))
    place = picture[top : top + height, left : left + width]
    place[:] = (color + ink[..., None] * (INK - color.astype(np.float32)))[: place.shape[0], : place.shape[1]]


@lru_cache(maxsize=4096)
def number_mask(number: int, font_size: int) -> Float[np.ndarray, "h w"]:
    """Return the share of each pixel of a label that its digits cover, from 0 to 1.

    The array is cached and shared between calls, so it must not be changed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise without_extra("drawing ids", "pillow") from error
    font = ImageFont.load_default(font_size)
    _, top, _, bottom = font.getbbox("0123456789", anchor="ls")
    width, height = round(font.getlength(str(number))) + 6, round(bottom - top) + 6
    label = Image.new("L", (width, height))
    ImageDraw.Draw(label).text((width / 2, height / 2), str(number), fill=255, font=font, anchor="mm")
    return np.asarray(label) / np.float32(255)


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
