"""`VideoStretch`: the frames of a video between two times, with the numbers and times that they have in the whole."""

from collections.abc import Iterator
from dataclasses import replace

from scalor.video.reading import Video
from scalor.video.sources import Frame


class VideoStretch(Video):
    """The selected frames of a video from one time on, until another or the end of the selection.

    Of a video with a stride, the same frames are selected as in the whole.
    """

    def __init__(self, video: Video, begins: float, stops: float | None) -> None:
        super().__init__(video.source, video.selection)
        self.begins, self.stops = begins, video.selection.end if stops is None else stops

    @property
    def frames(self) -> int | None:
        """Approximate number of frames."""
        count = self.source.count
        part = replace(self.selection, start=self.begins, end=self.stops)
        return None if count is None else max(1, len(part.numbers(count, self.fps)))

    def whole_frames(self) -> Iterator[Frame]:
        """Iterate over the frames with their whole pictures."""
        head = next(super().whole_frames(), None)
        if head is None:
            return
        part = replace(self.selection, start=self.begins, end=self.stops, stride=1)
        for frame in self.source.frames(part):
            if (frame.index - head.index) % self.selection.stride == 0:
                yield frame
