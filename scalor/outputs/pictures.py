"""Pictures of a whole video: `trajectories.png` (every path over the scene) and `counts.png` (counts over time)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from scalor.errors import without_extra
from scalor.outputs.by_object import TrackSummary
from scalor.visual.colors import colors_of
from scalor.visual.plots import Line, Panel, save_plot

SMALLEST, LARGEST = 960, 1920
"""Smallest and largest length of the longer side of `trajectories.png`, in pixels."""
FINE = 2
"""Supersampling factor: paths are drawn this many times larger and then reduced, which smooths their edges."""
DIMMED = 0.45
"""Brightness of the scene under the paths, as a fraction of the original."""
INK = (16, 16, 16)


class Trajectories:
    """Paths over a darkened grey picture of the scene, each in the colour of its object with a dot at its end."""

    def __init__(self, scene: UInt8[np.ndarray, "H W 3"]) -> None:
        try:
            from PIL import Image, ImageDraw
        except ImportError as error:
            raise without_extra("drawing trajectories", "pillow") from error
        height, width = scene.shape[:2]
        longer = max(height, width)
        self.scale = FINE * min(max(longer, SMALLEST), LARGEST) / longer
        grey = Image.fromarray(scene).convert("L").point(lambda level: level * DIMMED)
        size = (max(1, round(width * self.scale)), max(1, round(height * self.scale)))
        sharp = Image.Resampling.NEAREST if longer < SMALLEST / 4 else Image.Resampling.BICUBIC
        self._image = grey.resize(size, sharp).convert("RGB")
        self._draw = ImageDraw.Draw(self._image)
        self.thickness = max(2, round(max(size) / 350))

    def add(self, number: int, pieces: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Draw an object's path; yield its rows unchanged, as `ObjectPaths.objects` returns them."""
        color = tuple(colors_of(np.array(number)).tolist())
        end = np.empty((0, 2))
        for rows in pieces:
            points = np.concatenate([end, self.scale * np.stack([rows["x"], rows["y"]], axis=1)])
            self._draw.line(self._thinned(points).ravel().tolist(), fill=color, width=self.thickness, joint="curve")
            end = points[-1:]
            yield rows
        (x, y), radius = end[0], 1.7 * self.thickness
        self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color, outline=INK, width=FINE)

    def _thinned(self, points: Float[np.ndarray, "P 2"]) -> Float[np.ndarray, "p 2"]:
        """Drop points that move by less than the line's thickness, because objects at rest would take long to draw."""
        cells = np.floor(2 * points / self.thickness)
        moved = (cells[1:] != cells[:-1]).any(axis=1)
        return points[np.concatenate([[True], moved[:-1], [True]])] if len(points) > 2 else points

    def label(self, lives: Iterable[TrackSummary]) -> None:
        """Write the ids of these objects at the ends of their paths."""
        from PIL import ImageFont

        size = 10 * self.thickness
        font = ImageFont.load_default(size)
        for life in lives:
            text = str(life.id)
            left, top, right, bottom = font.getbbox(text, stroke_width=FINE)
            x, y = self.scale * life.end[0] + 2.5 * self.thickness, self.scale * life.end[1] - size / 2
            # Many paths end at the edge of the picture; the number must stay inside.
            x = min(max(x, -left), self._image.width - right)
            y = min(max(y, -top), self._image.height - bottom)
            color = tuple(colors_of(np.array(life.id)).tolist())
            self._draw.text((x, y), text, fill=color, font=font, stroke_width=FINE, stroke_fill=INK)

    def picture(self) -> UInt8[np.ndarray, "h w 3"]:
        """Return the picture, reduced by the supersampling factor."""
        size = (max(1, self._image.width // FINE), max(1, self._image.height // FINE))
        return np.asarray(self._image.resize(size))


def draw_counts(path: Path, seconds: list[float], objects: list[float]) -> None:
    """Write a plot of the objects in view over time to a .png file."""
    save_plot(path, [[Panel("seconds", "objects", [Line("objects in view", seconds, objects)])]], inches=(5.2, 2.4))
