"""Pictures and video files: tracks drawn on frames, figures, reading and writing videos."""

from scalor.visual.colors import colors_of, label_picture
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, side_by_side, strip
from scalor.visual.video import iterate_frames, read_video, write_video

__all__ = [
    "colors_of",
    "iterate_frames",
    "label_picture",
    "overlay",
    "read_video",
    "save_png",
    "side_by_side",
    "strip",
    "write_video",
]
