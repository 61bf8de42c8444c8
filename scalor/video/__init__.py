"""Video files: anything that moves, read as a stream of frames; .mp4 and .gif written."""

from scalor.video.reading import iterate_frames, read_video
from scalor.video.writing import VideoWriter, write_video

__all__ = ["VideoWriter", "iterate_frames", "read_video", "write_video"]
