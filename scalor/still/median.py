"""Medians of frames, which show the background if every pixel is covered by objects for less than half of the time.

`common_picture` is the background of a whole video, `RunningBackground` that of the frames so far.
"""

import numpy as np
from jaxtyping import Bool, Float, UInt8

from scalor.video.pixels import Picture

EQUAL_LEVELS = 12
"""Largest difference, in levels out of 255, between values that are equal up to noise."""
MODE_SHARE = 0.3
"""Share of the frames that must show about the same value for that value to be common."""
CROWDED_SHARE = 0.3
"""Share of the frames that differ from the median of a pixel, above which another value may be more common."""
MODE_MARGIN = 0.05
"""Share of the frames by which another value must be more common than the median to replace it."""
RUNNING_FRAMES = 25
"""Largest number of frames whose median is the running background."""
LONGEST_STRIDE = 16
"""Largest distance between two of these frames."""


def median_of(
    pictures: UInt8[np.ndarray, "N *shape"], shown: Bool[np.ndarray, "N *mask"] | None = None
) -> UInt8[np.ndarray, "*shape"]:
    """Return the median of each pixel, the lower of two middle values.

    With `shown`, only the pictures that show a pixel count, and pixels that none shows are 0.
    """
    if shown is None:
        middle = (len(pictures) - 1) // 2
        median: np.ndarray = np.partition(pictures, middle, 0)[middle]
        return median
    ordered = np.sort(np.where(shown, pictures, 255), axis=0)  # pixels that are not shown come last
    middles = np.maximum(shown.sum(0) - 1, 0) // 2
    median = np.take_along_axis(ordered, np.broadcast_to(middles, ordered.shape[1:])[None], 0)[0]
    return np.where(shown.any(0), median, 0)


def common_picture(pictures: UInt8[np.ndarray, "N H W 3"]) -> Picture:
    """Return the most common value of each pixel: the median, unless another value is in more frames."""
    common: np.ndarray = np.empty(pictures.shape[1:], np.uint8)
    for row in range(len(common)):  # row by row, because sorting makes copies
        values = pictures[:, row].reshape(len(pictures), -1)
        median = median_of(values)
        crowded = _share_near(values, median) < 1 - CROWDED_SHARE
        if crowded.any():
            median[crowded] = _most_common(values[:, crowded], median[crowded])
        common[row] = median.reshape(common.shape[1:])
    return common


def _most_common(values: UInt8[np.ndarray, "N P"], median: UInt8[np.ndarray, " P"]) -> UInt8[np.ndarray, " P"]:
    """Return the most common value of each column, which is its median unless another value is clearly more common.

    The other value is the middle of the narrowest range that holds a share of MODE_SHARE of the values.
    """
    ordered = np.sort(values, 0)
    held = max(2, round(MODE_SHARE * len(values)))
    width = ordered[held - 1 :] - ordered[: len(values) - held + 1]
    dense: np.ndarray = ordered[width.argmin(0) + held // 2, np.arange(values.shape[1])]
    return np.where(_share_near(values, dense) > _share_near(values, median) + MODE_MARGIN, dense, median)


def _share_near(values: UInt8[np.ndarray, "N P"], value: UInt8[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
    """Return the share of the values of each column that equal a given value up to noise."""
    share: np.ndarray = (np.maximum(values, value) - np.minimum(values, value) <= EQUAL_LEVELS).mean(0)
    return share


class RunningBackground:
    """The background of a video whose frames arrive one by one: the median of earlier frames.

    The distance between these frames grows with the length of the video.
    """

    def __init__(self) -> None:
        self.pictures: list[np.ndarray] = []
        self.stride, self._frames = 1, 0
        self._median = np.zeros(0, np.uint8)

    def at(self, picture: UInt8[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape"]:
        """Add the next frame and return the background.

        It is the same array as before where the background has not changed.
        """
        if self._frames % self.stride == 0:
            self.pictures.append(picture)
            if len(self.pictures) > RUNNING_FRAMES:
                far = self.stride == LONGEST_STRIDE
                self.pictures = self.pictures[1:] if far else self.pictures[::2]
                self.stride *= 1 if far else 2
            self._median = median_of(np.stack(self.pictures))
        self._frames += 1
        return self._median
