"""Pictures for papers and READMEs: rows of frames under each other, and videos beside each other.

Both accept any uint8 pictures (frames with boxes, reconstructions, label maps) and place them on white with their
names. Only drawing the names and writing files need pillow.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from scalor.errors import InputError, without_extra
from scalor.files import replacing

RED = (220, 38, 38)
WHITE = 255
INK = (40, 40, 40)


def strip(
    rows: Mapping[str, UInt8[np.ndarray, "_T _h _w 3"]],
    *,
    separator_after: int | None = None,
    columns: Sequence[str] | None = None,
    gap: int = 4,
) -> UInt8[np.ndarray, "H W 3"]:
    """Draw rows of frames under each other, with their names at the left.

    Parameters
    ----------
    rows : mapping of str to array
        Frames of each row, by name; equally many in every row. Smaller rows are enlarged to the size of the largest by
        a whole factor.
    separator_after : int, optional
        Number of observed frames. A red line separates them from the generated frames.
    columns : sequence of str, optional
        A heading for each frame.
    gap : int
        Space between frames, in pixels.

    Returns
    -------
    array
        The picture.
    """
    pictures = _same_size("rows", rows, gap)
    count, height, width = next(iter(pictures.values())).shape[:3]
    if separator_after is not None and not 0 < separator_after < count:
        raise InputError(
            f"separator_after is {separator_after} and there are {count} frames: give a number from 1 to "
            f"{count - 1}, or None for no line."
        )
    if columns is not None and len(columns) != count:
        raise InputError(f"columns has {len(columns)} headings and there are {count} frames: give one each.")
    size = _text_size(height)
    names = {name: _text(name, size) for name in pictures}
    headings = [_text(heading, size) for heading in columns or []]

    margin = 2 * gap
    left = margin + max(name.shape[1] for name in names.values()) + 2 * gap
    top = margin + (max(h.shape[0] for h in headings) + gap if headings else 0)
    line_room = 4 * gap if separator_after is not None else 0
    x_of = [left + t * (width + gap) + (line_room if t >= (separator_after or count) else 0) for t in range(count)]
    bottom = top + len(pictures) * (height + gap) - gap
    canvas = np.full((bottom + margin, x_of[-1] + width + margin, 3), WHITE, np.uint8)
    for row, (name, frames) in enumerate(pictures.items()):
        y = top + row * (height + gap)
        _paste(canvas, names[name], y + (height - names[name].shape[0]) // 2, margin)
        for t in range(count):
            _paste(canvas, frames[t], y, x_of[t])
    for t, heading in enumerate(headings):
        _paste(canvas, heading, margin, x_of[t] + max(0, width - heading.shape[1]) // 2)
    if separator_after is not None:
        thickness = max(2, gap // 2 + 1)
        x = (x_of[separator_after - 1] + width + x_of[separator_after] - thickness) // 2
        canvas[top - gap : bottom + gap, x : x + thickness] = RED
    return canvas


def side_by_side(
    videos: Mapping[str, UInt8[np.ndarray, "_T _h _w 3"]],
    *,
    generated_from: Mapping[str, int] | None = None,
    gap: int = 8,
) -> UInt8[np.ndarray, "T H W 3"]:
    """Draw videos beside each other, with a title over each.

    Parameters
    ----------
    videos : mapping of str to array
        Frames of each video, by title; equally many in every video. Smaller videos are enlarged to the size of the
        largest by a whole factor.
    generated_from : mapping of str to int, optional
        By title, the first frame that the model generated instead of observing it. From this frame on, the video has a
        red border.
    gap : int
        Space between videos, in pixels.

    Returns
    -------
    array
        The frames of the combined video.
    """
    generated_from = generated_from or {}
    pictures = _same_size("videos", videos, gap)
    for title in generated_from:
        if title not in pictures:
            raise InputError(f"generated_from names {title!r}: use one of {', '.join(map(repr, pictures))}.")
    count, height, width = next(iter(pictures.values())).shape[:3]
    titles = {title: _text(title, _text_size(height)) for title in pictures}
    top = gap + max(title.shape[0] for title in titles.values()) + gap
    # A title may be wider than the pictures. All columns are then widened, so that nothing is cut off.
    column = max(width, *(title.shape[1] for title in titles.values()))
    shape = (count, top + height + gap, gap + len(pictures) * (column + gap), 3)
    canvas = np.full(shape, WHITE, np.uint8)
    border = max(1, gap // 2)
    for i, (title, frames) in enumerate(pictures.items()):
        x = gap + i * (column + gap)
        canvas[:, gap : gap + titles[title].shape[0], x : x + titles[title].shape[1]] = titles[title]
        begin = generated_from.get(title, count)
        canvas[begin:, top - border : top + height + border, x - border : x + width + border] = RED
        canvas[:, top : top + height, x : x + width] = frames
    return canvas


def save_png(path: str | Path, picture: UInt8[np.ndarray, "H W 3"]) -> None:
    """Write a picture to a .png file, which appears only when it is complete."""
    try:
        from PIL import Image
    except ImportError as error:
        raise without_extra("writing a picture", "pillow") from error
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise InputError(f"path is {path}: give a file name that ends in .png.")
    with replacing(path) as temporary:
        Image.fromarray(picture).save(temporary, format="PNG", optimize=True)


def _same_size(
    field: str, named: Mapping[str, UInt8[np.ndarray, "_T _h _w 3"]], gap: int
) -> dict[str, UInt8[np.ndarray, "T H W 3"]]:
    """Enlarge all pictures to the tallest; raise InputError if sizes or numbers of frames do not match."""
    if gap < 1:
        raise InputError(f"gap is {gap}: give a number of pixels from 1.")
    if not named or any(not frames.size for frames in named.values()):
        raise InputError(f"{field} holds no frames: give at least one name with its frames.")
    for name, frames in named.items():
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
            raise InputError(
                f"{field}[{name!r}] is {frames.dtype} of shape {list(frames.shape)}: give uint8 [T, h, w, 3]."
            )
    tallest = max(named, key=lambda name: named[name].shape[1])
    count, height, width = named[tallest].shape[:3]
    enlarged = {}
    for name, frames in named.items():
        factor = height // frames.shape[1]
        if (len(frames), frames.shape[1] * factor, frames.shape[2] * factor) != (count, height, width):
            raise InputError(
                f"{field}[{name!r}] has {len(frames)} frames of {frames.shape[1]} x {frames.shape[2]} pixels "
                f"and {field}[{tallest!r}] has {count} of {height} x {width}: give equally many, of "
                "sizes that differ by a whole factor."
            )
        enlarged[name] = frames.repeat(factor, axis=1).repeat(factor, axis=2) if factor > 1 else frames
    return enlarged


def _text_size(height: int) -> int:
    """Return the font size for pictures of this height."""
    return min(20, max(12, height // 8))


def _text(text: str, size: int) -> UInt8[np.ndarray, "h w 3"]:
    """Draw dark text on white; all texts of one size have the same height, so lines align."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise without_extra("writing names into a picture", "pillow") from error
    font = ImageFont.load_default(size)
    width = max(1, int(np.ceil(font.getlength(text))))
    image = Image.new("RGB", (width, round(1.25 * size)), (WHITE,) * 3)
    ImageDraw.Draw(image).text((0, round(0.95 * size)), text, fill=INK, font=font, anchor="ls")
    return np.asarray(image)


def _paste(canvas: UInt8[np.ndarray, "H W 3"], picture: UInt8[np.ndarray, "h w 3"], top: int, left: int) -> None:
    """Copy the picture onto the canvas, cut off at the right edge."""
    height, width = picture.shape[:2]
    canvas[top : top + height, left : left + width] = picture[:, : canvas.shape[1] - left]


def to_bytes(frames: torch.Tensor) -> np.ndarray:
    """Convert [..., 3, H, W] in [0, 1] to uint8 [..., H, W, 3]."""
    picture: np.ndarray = (frames.clamp(0, 1).movedim(-3, -1) * 255).round().byte().cpu().numpy()
    return picture
