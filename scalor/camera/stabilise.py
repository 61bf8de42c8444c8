"""A video of a moving camera as a still camera would show it.

`CameraMotion` holds the position of each frame in one common view, and maps between the two. `stabilise` shows every
frame at its position. The parts of the view that a frame does not show are filled from other frames, so that nothing
moves in them.

>>> motion = estimate_motion(video)
>>> steady = stabilise(video, motion)
>>> StillBackground.of(steady)
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from scalor.camera.align import Similarity, compose, corners_of, for_pixels, invert, move, opencv
from scalor.errors import InputError
from scalor.still.median import median_of
from scalor.video.pixels import Picture
from scalor.video.reading import Video
from scalor.video.sources import Frame, Selection

MAX_VIEW_SIDES = 2.0
"""Largest height and width of the common view, in heights and widths of a frame. A larger view is scaled down. Tracking
in the view then costs at most four times the pixels of a frame."""
BLUR_BELOW_SCALE = 0.75
"""Scale below which a frame is blurred before it is drawn. Otherwise its fine lines would flicker."""

MAX_FAILED_SHARE = 0.2
"""Largest share of frames that may fail to be located. None failed where the footage shows a scene (four videos, seven
motions each). In an empty tank, where the errors were tens of pixels, the share was 0.45 to 0.8."""


@dataclass(frozen=True)
class CameraMotion:
    """The position of each frame in one common view, in which the scene stands still.

    >>> motion = estimate_motion(video)
    >>> for frame in video:
    ...     view, valid = motion.to_view(frame.index, frame.picture)
    ...     boxes = motion.boxes_to_frame(frame.index, find_objects(view))

    Coordinates are those of boxes: pixel i covers [i, i + 1).
    """

    transforms: Float[np.ndarray, "T 2 3"]
    """Similarities from (x, y, 1) in a frame to (x, y) in the view: rotation, zoom and shift."""
    indices: Int[np.ndarray, " T"]
    """Number of each frame in the video, in ascending order."""
    frame_size: tuple[int, int]
    """Height and width of a frame."""
    view_size: tuple[int, int]
    """Height and width of the view."""
    failed: Bool[np.ndarray, " T"]
    """Frames that could not be located; their positions are interpolated."""

    def __post_init__(self) -> None:
        assert self.transforms.shape == (len(self.indices), 2, 3), self.transforms.shape
        assert len(self.failed) == len(self.indices) > 0
        assert np.all(np.diff(self.indices) > 0)

    @cached_property
    def scales(self) -> Float[np.ndarray, " T"]:
        """Pixels of the view per pixel of each frame, along a side."""
        scales: np.ndarray = np.hypot(self.transforms[:, 0, 0], self.transforms[:, 1, 0])
        return scales

    @property
    def shift(self) -> tuple[float, float]:
        """Largest distance between the centres of frames, horizontally and vertically, in pixels of a frame."""
        height, width = self.frame_size
        centres = self.transforms @ np.array([width / 2, height / 2, 1])
        across, down = np.ptp(centres, axis=0) / np.median(self.scales)
        return float(across), float(down)

    @property
    def rotation(self) -> float:
        """Largest angle between two frames, in degrees."""
        angles = np.unwrap(np.arctan2(self.transforms[:, 1, 0], self.transforms[:, 0, 0]))
        return math.degrees(np.ptp(angles))

    @property
    def zoom(self) -> float:
        """Ratio of the size of objects in the closest frame to that in the widest one."""
        return float(self.scales.max() / self.scales.min())

    @property
    def failed_share(self) -> float:
        """Share of the frames that could not be located."""
        return float(self.failed.mean())

    @property
    def reliable(self) -> bool:
        """Whether enough frames could be located.

        If not, the scene shows too little, or too much moves in front of it.
        """
        return self.failed_share <= MAX_FAILED_SHARE

    def describe(self) -> str:
        """Return the motion in one sentence."""
        across, down = self.shift
        text = (
            f"the camera moves: up to {across:.0f} px sideways and {down:.0f} px up or down, "
            f"{self.rotation:.1f} degrees, zoom 1.00 to {self.zoom:.2f}"
        )
        return f"{text}; {self.failed_share:.0%} of the frames could not be placed" if self.failed.any() else text

    def transform(self, number: int) -> Similarity:
        """Return the similarity from frame `number` of the video to the view."""
        place = int(np.searchsorted(self.indices, number))
        if place == len(self.indices) or self.indices[place] != number:
            raise InputError(
                f"frame is {number}: the camera's motion is known for frames {self.indices[0]} to {self.indices[-1]} "
                "of the selection it was estimated on; choose one of these."
            )
        transform: np.ndarray = self.transforms[place]
        return transform

    def to_view(
        self, number: int, picture: UInt8[np.ndarray, "H W 3"]
    ) -> tuple[UInt8[np.ndarray, "h w 3"], Bool[np.ndarray, "h w"]]:
        """Return the frame drawn at its position in the view, on black, and the mask of the pixels that it fills."""
        if picture.shape[:2] != self.frame_size:
            raise InputError(
                f"picture is {picture.shape[1]} x {picture.shape[0]} pixels: give a whole frame of "
                f"{self.frame_size[1]} x {self.frame_size[0]}."
            )
        cv2 = opencv()
        transform = self.transform(number)
        scale = math.hypot(transform[0, 0], transform[1, 0])
        if scale < BLUR_BELOW_SCALE:
            picture = cv2.GaussianBlur(picture, (0, 0), 0.5 / scale)
        size = self.view_size[::-1]
        view = cv2.warpAffine(picture, for_pixels(transform), size, flags=cv2.INTER_LINEAR)
        filled = cv2.warpAffine(np.full(self.frame_size, 255, np.uint8), for_pixels(transform), size)
        return view, filled == 255

    def boxes_to_frame(self, number: int, boxes: Float[np.ndarray, "N 4"]) -> Float[np.ndarray, "N 4"]:
        """Convert boxes of the view (x0, y0, x1, y1) to pixels of the frame; they may extend beyond it."""
        return move_boxes(invert(self.transform(number)), boxes)

    def masks_to_frame(self, number: int, masks: Bool[np.ndarray, "N h w"]) -> Bool[np.ndarray, "N H W"]:
        """Convert masks of the view to masks of the frame."""
        cv2 = opencv()
        transform, size = for_pixels(self.transform(number)), self.frame_size[::-1]
        moved = np.zeros((len(masks), *self.frame_size), bool)
        for mask, target in zip(masks, moved, strict=True):
            # The transform is from the frame, whose pixels are filled, to the view: hence the inverse map.
            flags = cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP
            target[:] = cv2.warpAffine(mask.astype(np.uint8), transform, size, flags=flags)
        return moved


def in_common_view(
    places: Float[np.ndarray, "T 2 3"],
    indices: Int[np.ndarray, " T"],
    frame_size: tuple[int, int],
    failed: Bool[np.ndarray, " T"],
) -> CameraMotion:
    """Return the motion of frames whose positions relative to each other are known.

    The view contains all frames. Its scale is that of the median frame, unless the view would be too large.
    """
    scale = 1 / float(np.median(np.hypot(places[:, 0, 0], places[:, 1, 0])))
    corners = np.concatenate([move(place, corners_of(frame_size)) for place in places])
    low, extent = corners.min(0) * scale, np.ptp(corners, axis=0) * scale
    shrink = min(1.0, *(MAX_VIEW_SIDES * np.array(frame_size[::-1]) / extent))
    # Less than a twentieth of a pixel is estimation error and needs no further row.
    width, height = (max(1, math.ceil(side * shrink - 0.05)) for side in extent)
    to_view = np.column_stack([np.eye(2) * scale * shrink, -low * shrink])
    transforms = np.stack([compose(to_view, place) for place in places])
    return CameraMotion(transforms, indices, frame_size, (height, width), failed)


def move_boxes(similarity: Similarity, boxes: Float[np.ndarray, "N 4"]) -> Float[np.ndarray, "N 4"]:
    """Return the bounding boxes of the moved contents of the boxes.

    The content of a box is taken to be the ellipse within it. Boxes around the rotated corners would grow with every
    degree.
    """
    centres = move(similarity, (boxes[:, :2] + boxes[:, 2:]) / 2)
    sides = np.sqrt((boxes[:, 2:] - boxes[:, :2]) ** 2 @ similarity[:, :2].T ** 2)
    return np.concatenate([centres - sides / 2, centres + sides / 2], axis=1)


MAX_MOSAIC_FRAMES, MIN_MOSAIC_FRAMES, MAX_MOSAIC_BYTES = 24, 6, 2**29
"""Largest and smallest number of frames, spread over the video, whose median is the mosaic, and their largest memory in
bytes, which limits the number in between."""
ROWS_AT_ONCE = 64
"""Rows of the view that are sorted at once."""


@dataclass(frozen=True)
class StabilisedSource:
    """The common view of a video as a source of frames."""

    video: Video
    motion: CameraMotion
    mosaic: Picture
    """Image of the background for the parts of the view that a frame does not show."""

    @property
    def name(self) -> str:
        """Name of the video."""
        return self.video.name

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the view, pixels."""
        return self.motion.view_size

    @property
    def fps(self) -> float:
        """Frames per second of the video."""
        return self.video.fps

    @property
    def count(self) -> int | None:
        """Number of frames: unknown, because a moving camera's video is only read from its start."""
        return None  # it is only read sequentially

    @property
    def promised(self) -> int | None:
        """Smallest number of selected frames that the file promises."""
        return self.video.promised

    @property
    def lacking(self) -> str | None:
        """What the file lacks, in words."""
        return self.video.lacking

    def frames(self, selection: Selection) -> Iterator[Frame]:
        """Yield the frames of the video at their positions, with the mosaic around them.

        A stride larger than that of the video skips frames.
        """
        every = max(1, selection.stride // self.video.selection.stride)
        for frame in islice(self.video.whole_frames(), 0, None, every):
            yield replace(frame, picture=self.picture(frame))

    def near(self, times: Iterable[float], selection: Selection, run: int = 1) -> Iterator[Picture]:
        """Yield nothing: the view is only read sequentially."""
        return iter(())

    def picture(self, frame: Frame) -> Picture:
        """Return one frame at its position in the view."""
        view, valid = self.motion.to_view(frame.index, frame.picture)
        return np.where(valid[..., None], view, self.mosaic)


def stabilise(video: Video, motion: CameraMotion) -> Video:
    """Return the video in the view in which its scene stands still."""
    source = StabilisedSource(video, motion, mosaic_of(video, motion))
    return Video(source, Selection(stride=video.selection.stride))


def mosaic_of(video: Video, motion: CameraMotion) -> Picture:
    """Return the median, at each pixel of the view, of the frames that show it; black where none does."""
    height, width = motion.view_size
    count = max(MIN_MOSAIC_FRAMES, min(MAX_MOSAIC_FRAMES, MAX_MOSAIC_BYTES // (4 * height * width)))
    chosen = sorted(set(motion.indices[np.linspace(0, len(motion.indices) - 1, count).round().astype(int)].tolist()))
    views, valid = np.zeros((len(chosen), height, width, 3), np.uint8), np.zeros((len(chosen), height, width), bool)
    for frame in video.whole_frames():
        if frame.index in chosen:
            place = chosen.index(frame.index)
            views[place], valid[place] = motion.to_view(frame.index, frame.picture)
    mosaic = np.zeros(views.shape[1:], np.uint8)
    for top in range(0, len(mosaic), ROWS_AT_ONCE):
        rows = slice(top, top + ROWS_AT_ONCE)
        mosaic[rows] = median_of(views[:, rows], valid[:, rows, :, None])
    return mosaic
