"""Post-processing of a model's tracks: duplicate removal, sharper boxes, implausible boxes dropped, long-term ids."""

import numpy as np
from jaxtyping import Float

from scalor.boxes import Perspective, sizes_at
from scalor.still.still_background import StillBackground
from scalor.still.survey import Survey
from scalor.tracking.identity import LAG, MIN_MEAN_PRESENCE, Identities, believable, merge_duplicates
from scalor.tracking.sharpening import Sharpener
from scalor.tracking.video_view import Lens
from scalor.tracks import Tracks
from scalor.video.pixels import Picture

LEAST_AREA = 0.12
"""Smallest box area that is kept, as a share of a typical object's box area at the same place. Smaller boxes show a
piece of something that flutters."""
CERTAIN = 0.4
"""Survey confidence from which on the typical size counts as fully known."""


class PostProcessor:
    """Post-processing for models of a still camera: duplicate removal, sharper boxes, long-term ids.

    It works frame by frame.
    """

    def __init__(
        self,
        object_size: tuple[float, float],
        lens: Lens,
        found: Survey | None = None,
        lag: int = LAG,
        fps: float = 0.0,
    ) -> None:
        """Set up the post-processing of one video.

        Parameters
        ----------
        object_size
            Typical height and width in pixels of the video.
        lens
            The lens through which the model sees the video.
        found
            The survey of the video, for universal weights and those refined from them; None for other weights.
        lag
            Frames to wait before a frame is decided.
        fps
            Frames per second.
        """
        assert lens.background is not None
        self.object_size, self.lens, self.found = object_size, lens, found
        self.perspective = lens.perspective if found is None else found.perspective
        self.background = StillBackground(lens.background.epochs)
        self.sharpen = None
        # At full resolution there is nothing to sharpen, and small, faint objects would be dropped (docs/log.md).
        if lens.scale < 1:
            still, corner = lens.background.still, lens.corners[:2]
            self.sharpen = (
                Sharpener(still, object_size, corner, lens.contrast)
                if found is None
                else Sharpener(still, object_size, corner, 1.0, found.test)
            )
        likely, any_direction = (0.0, False) if found is None else (MIN_MEAN_PRESENCE, found.any_direction)
        self.identities = Identities(object_size, lens.corners, lag, likely, any_direction, fps)

    def step(self, tracks: Tracks, picture: Picture) -> list[Tracks]:
        """Add the tracks of the next frame and return the frames that are decided by now."""
        seen = self.merge_duplicates(tracks)
        if self.sharpen:
            x0, y0, x1, y1 = self.lens.corners
            behind = self.background.at(picture[y0:y1, x0:x1])
            seen = self.merge_duplicates(self.sharpen(seen, picture, behind))
        return self.identities.step(self.believable(seen))

    def finish(self) -> list[Tracks]:
        """Return the remaining frames, after the end of the video."""
        return self.identities.finish()

    def merge_duplicates(self, tracks: Tracks) -> Tracks:
        """Merge the tracks that show the same object."""
        return merge_duplicates(tracks, self.usual(tracks))

    def believable(self, tracks: Tracks) -> Tracks:
        """Return the tracks that are large enough to be objects and present enough for their shape.

        Without a survey, all tracks are returned.
        """
        if self.found is None:
            return tracks
        usual = self.usual(tracks)
        large = (tracks.box[:, 2:] - tracks.box[:, :2]).prod(1) >= LEAST_AREA * usual.prod(1)
        certainty = min(1.0, self.found.confidence / CERTAIN)
        return tracks.select(large & believable(tracks, usual, self.found.any_direction, certainty))

    def usual(self, tracks: Tracks) -> Float[np.ndarray, "N 2"]:
        """Return the typical width and height of an object at the place of each track."""
        return usual_sizes(tracks, self.object_size, self.perspective, self.lens)


def usual_sizes(
    tracks: Tracks, object_size: tuple[float, float], perspective: Perspective, lens: Lens
) -> Float[np.ndarray, "N 2"]:
    """Return the typical width and height of an object at the place of each track, in pixels of the video."""
    _, top, _, bottom = lens.corners
    row = tracks.box[:, 1::2].mean(1) - top
    sizes: np.ndarray = sizes_at(row, bottom - top, perspective)[:, None] * np.array(object_size[::-1])
    return sizes
