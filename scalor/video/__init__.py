"""Read video files, images and arrays as streams of frames; write .mp4 and .gif."""

from scalor.video.encoding import VideoWriter, write_video
from scalor.video.reading import Video, iterate_frames, open_video, read_video
from scalor.video.sources import Frame, Selection

__all__ = [
    "Frame",
    "Selection",
    "Video",
    "VideoWriter",
    "iterate_frames",
    "open_video",
    "read_video",
    "write_video",
]
