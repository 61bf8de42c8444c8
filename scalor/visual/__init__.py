"""Drawing: tracks on frames, strips of frames, plots."""

from scalor.visual.colors import colors_of, label_picture
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, side_by_side, strip

__all__ = [
    "colors_of",
    "label_picture",
    "overlay",
    "save_png",
    "side_by_side",
    "strip",
]
