"""Videos made worse on purpose, as H.264 files, with the truth adapted to what they now show.

A sabotage has up to five parts: which frames are shown in which order, walkers that are made to rest, where the camera
looks, what happens to the light, and how the file is written. `sabotages` lists those there are. Coordinates are
pixels; pixel i covers [i, i + 1).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path

import av
import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from scalor.errors import InputError
from scalor.evaluation.score import BoxRows
from scalor.files import replacing
from scalor.video.encoding import SMPTE170M

Picture = UInt8[np.ndarray, "H W 3"]

LEAST_IN_VIEW = 0.5
"""A box of which the new camera shows a smaller share is ignored in the scores, since there is no telling whether a
tracker should find it."""
COVERED = 0.7
"""An object of which a resting one covers a larger share is ignored in the scores."""
CRF = 18
"""Quality of the files (x264; lower is better): what is lost cannot be seen."""
REST_FROM, RESTING, REST_MARGIN = 0.25, 3, 4
"""Where in the video walkers come to rest, how many, and pixels around their boxes that stay with them."""


@dataclass(frozen=True)
class Part:
    """The part of a video to use: frames from `first` to `last`, of which some are scored, all numbered from 1."""

    first: int
    last: int
    scored: tuple[int, int]

    def __len__(self) -> int:
        return self.last - self.first + 1

    def from_lead(self, lead: int, frames: int) -> Int[np.ndarray, " T"]:
        """So many frames that begin `lead` frames before the scored ones, as far as there are any."""
        start = max(self.first, self.scored[0] - lead)
        return np.arange(start, min(start + frames - 1, self.last) + 1)


@dataclass(frozen=True)
class Stage:
    """What a sabotage has to know of the video that it spoils."""

    size: tuple[int, int]
    """Height and width."""
    order: Int[np.ndarray, " T"]
    """The original frame, from 1 on, that every new one shows; never falls."""
    scored: tuple[int, int]
    """First and last, new frames, from 1 on."""
    seed: int

    def random(self, *more: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *more])


@dataclass(frozen=True)
class Views:
    """Where original pixels go, frame by frame."""

    matrix: Float[np.ndarray, "T 2 3"]
    """x' = m00 x + m01 y + m02, y' = m10 x + m11 y + m12."""
    size: tuple[int, int]


Order = Callable[[Part, np.random.Generator], Int[np.ndarray, " T"]]
View = Callable[[Stage], Views]
Light = Callable[[Picture, int, Stage], Picture]


def every_frame(part: Part, random: np.random.Generator) -> Int[np.ndarray, " T"]:
    return np.arange(part.first, part.last + 1)


def affine(
    frames: int, a: object = 1, b: object = 0, x: object = 0, c: object = 0, d: object = 1, y: object = 0
) -> Float[np.ndarray, "T 2 3"]:
    """The matrices [[a, b, x], [c, d, y]], of numbers or of one number a frame."""
    cells = [np.broadcast_to(np.asarray(cell, float), frames) for cell in (a, b, x, c, d, y)]
    return np.stack(cells, 1).reshape(frames, 2, 3)


def as_it_is(stage: Stage) -> Views:
    return Views(affine(len(stage.order)), stage.size)


@dataclass(frozen=True)
class Sabotage:
    """One way to make a video worse; all that is not given stays as it was."""

    order: Order = every_frame
    view: View = as_it_is
    light: Light | None = None
    resting: bool = False
    """Some walkers stop, and stay where they are."""
    crf: int = CRF
    slower: int = 1
    """The frame rate is divided by it."""
    phone: bool = False
    """Stored lying on its side, with a note how to show it upright."""


@dataclass(frozen=True)
class Spoilt:
    """A sabotage of one video, ready to be written."""

    pictures: Iterator[Picture]
    truth: BoxRows
    """Numbered as the new video is."""
    scored: tuple[int, int]
    """First and last frame to score, from 1 on."""


def spoil(sabotage: Sabotage, pictures: Iterable[Picture], truth: BoxRows, part: Part, seed: int = 0) -> Spoilt:
    """Make a video worse, frame by frame, and the truth fit to it.

    pictures: the original video from its first frame on; it is read as the new one is asked for.

    >>> spoilt = spoil(SABOTAGES["pan"], iterate_frames("vtest.avi"), read_boxes("gt.txt"), Part(400, 795, (478, 795)))
    >>> write_film("pan.mp4", spoilt.pictures, fps=10)
    """
    pictures = iter(pictures)
    head = next(pictures)
    order = sabotage.order(part, np.random.default_rng(seed))
    shown = np.flatnonzero((order >= part.scored[0]) & (order <= part.scored[1])) + 1
    stage = Stage((head.shape[0], head.shape[1]), order, (int(shown[0]), int(shown[-1])), seed)
    views = sabotage.view(stage)
    rest_from = part.first + round(REST_FROM * len(part))
    resting = np.empty((0, 4))
    if sabotage.resting:
        truth, resting = with_resting(truth, rest_from, part.last)

    def drawn() -> Iterator[Picture]:
        ordered = in_order(held_in_place(chain([head], pictures), resting, rest_from), order)
        for t, picture in enumerate(ordered):
            looked = look(picture, views.matrix[t], views.size)
            yield looked if sabotage.light is None else sabotage.light(looked, t, stage)

    return Spoilt(drawn(), adapt(truth, order, views), stage.scored)


def in_order(pictures: Iterable[Picture], order: Int[np.ndarray, " T"]) -> Iterator[Picture]:
    """The frames that the order names, each as often as it does."""
    for number, picture in enumerate(pictures, 1):
        for _ in range(np.searchsorted(order, number), np.searchsorted(order, number, "right")):
            yield picture
        if number >= order[-1]:
            return


def adapt(truth: BoxRows, order: Int[np.ndarray, " T"], views: Views) -> BoxRows:
    """The truth of the new video: frames renumbered, boxes moved, scaled and cut at the border."""
    sources = [np.flatnonzero(truth.frame == number) for number in order]
    frame = np.repeat(np.arange(len(order)), [len(rows) for rows in sources])
    rows = truth.select(np.concatenate([np.empty(0, int), *sources]))
    moved = transform_boxes(rows.box, views.matrix[frame])
    cut = np.clip(moved, 0, [views.size[1], views.size[0]] * 2)
    in_view = area(cut) / np.maximum(area(moved), 1e-9)
    sure = np.where(in_view >= LEAST_IN_VIEW, rows.confidence, 0.0)
    return BoxRows(frame + 1, rows.id, cut, sure).select(area(cut) > 0)


def transform_boxes(box: Float[np.ndarray, "K 4"], matrix: Float[np.ndarray, "K 2 3"]) -> Float[np.ndarray, "K 4"]:
    """The boxes around the moved ellipses inside the boxes.

    They are right for scales, mirrors and quarter turns. Under small turns they are as tight as the box was, for a
    round thing that fills it.
    """
    half = (box[:, 2:] - box[:, :2]) / 2
    centre = (box[:, 2:] + box[:, :2]) / 2
    moved = np.einsum("kij,kj->ki", matrix[:, :, :2], centre) + matrix[:, :, 2]
    reach = np.sqrt(np.einsum("kij,kj->ki", matrix[:, :, :2] ** 2, half**2))
    return np.concatenate([moved - reach, moved + reach], 1)


def area(box: Float[np.ndarray, "K 4"]) -> Float[np.ndarray, " K"]:
    sides = np.maximum(box[:, 2:] - box[:, :2], 0)
    product: np.ndarray = sides[:, 0] * sides[:, 1]
    return product


def shared_area(boxes: Float[np.ndarray, "K 4"], box: Float[np.ndarray, "4"]) -> Float[np.ndarray, " K"]:
    return area(np.concatenate([np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])], 1))


def look(picture: Picture, matrix: Float[np.ndarray, "2 3"], size: tuple[int, int]) -> Picture:
    """The picture as the moved camera shows it."""
    (a, b, x), (c, d, y) = matrix
    height, width = size
    if (a, b, x, c, d, y) == (1, 0, 0, 0, 1, 0) and picture.shape[:2] == size:
        return picture
    image = Image.fromarray(picture)
    if b == c == 0 and a > 0 and d > 0:
        # Unlike `transform`, `resize` averages when it makes things smaller.
        corners = (-x / a, -y / d, (width - x) / a, (height - y) / d)
        box = np.clip(corners, 0, [image.width, image.height] * 2)
        return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC, tuple(box)))
    back = np.linalg.inv(np.array([[a, b, x], [c, d, y], [0, 0, 1]]))[:2].ravel()
    return np.asarray(image.transform((width, height), Image.Transform.AFFINE, tuple(back), Image.Resampling.BICUBIC))


def with_resting(truth: BoxRows, frame: int, last: int) -> tuple[BoxRows, Float[np.ndarray, "K 4"]]:
    """The truth with some walkers resting from a frame on, and their boxes.

    A resting walker keeps its id; the one that is seen to walk on from behind it has a new one. Who is hidden behind a
    resting walker is ignored.
    """
    here = truth.select((truth.frame == frame) & (truth.confidence != 0))
    alone = [row for row, box in enumerate(here.box) if np.count_nonzero(shared_area(here.box, box)) == 1]
    if not alone:
        raise InputError(f"the truth has nobody in frame {frame} who touches no other: choose other --frames.")
    resting = here.select(np.array(alone[:RESTING]))
    later, number, sure = truth.frame > frame, truth.id.copy(), truth.confidence.copy()
    for id, box in zip(resting.id, resting.box, strict=True):
        number[later & (truth.id == id)] = number.max() + 1
        sure[later & (shared_area(truth.box, box) > COVERED * area(truth.box))] = 0
    frames = np.repeat(np.arange(frame + 1, last + 1), len(resting.id))
    times = last - frame
    held = BoxRows(frames, np.tile(resting.id, times), np.tile(resting.box, (times, 1)), np.ones(len(frames)))
    return _joined(replace(truth, id=number, confidence=sure), held), resting.box


def _joined(a: BoxRows, b: BoxRows) -> BoxRows:
    both = zip((a.frame, a.id, a.box, a.confidence), (b.frame, b.id, b.box, b.confidence), strict=True)
    frame, number, box, sure = (np.concatenate(pair) for pair in both)
    return BoxRows(frame, number, box, sure)


def held_in_place(pictures: Iterable[Picture], boxes: Float[np.ndarray, "K 4"], frame: int) -> Iterator[Picture]:
    """What the boxes show at a frame stays there in all later ones."""
    low = np.maximum(np.floor(boxes[:, :2] - REST_MARGIN), 0).astype(int)
    high = np.ceil(boxes[:, 2:] + REST_MARGIN).astype(int)
    kept: Picture | None = None
    for number, picture in enumerate(pictures, 1):
        if number == frame:
            kept = picture
        elif kept is not None and len(boxes):
            picture = picture.copy()
            for (x0, y0), (x1, y1) in zip(low, high, strict=True):
                picture[y0:y1, x0:x1] = kept[y0:y1, x0:x1]
        yield picture


def write_film(path: Path, pictures: Iterable[Picture], fps: float, crf: int = CRF, phone: bool = False) -> None:
    """An .mp4 of H.264; with `phone` it is stored a quarter turn clockwise, and says that it is to be turned back."""
    pictures = iter(pictures)
    head = next(pictures)
    with replacing(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        # One thread: the same file on every machine.
        options = {"crf": str(crf), "preset": "veryfast", "threads": "1"}
        stream = container.add_stream("libx264", Fraction(fps).limit_denominator(1001), options, pix_fmt="yuv420p")
        stream.height, stream.width = head.shape[1::-1] if phone else head.shape[:2]
        stream.codec_context.colorspace = SMPTE170M
        if phone:
            stream.set_display_rotation(90)
        for picture in chain([head], pictures):
            stored = np.ascontiguousarray(np.rot90(picture, -1)) if phone else picture
            container.mux(stream.encode(av.VideoFrame.from_ndarray(stored, format="rgb24")))
        container.mux(stream.encode(None))


def write_truth(path: Path, truth: BoxRows) -> None:
    """MOTChallenge text."""
    left_top, sides = truth.box[:, :2], truth.box[:, 2:] - truth.box[:, :2]
    with replacing(path) as temporary, open(temporary, "w") as file:
        for frame, number, (x, y), (w, h), sure in zip(
            truth.frame, truth.id, left_top, sides, truth.confidence, strict=True
        ):
            file.write(f"{frame},{number},{x:.3f},{y:.3f},{w:.3f},{h:.3f},{sure:g},-1,-1,-1\n")
