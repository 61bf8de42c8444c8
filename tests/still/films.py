"""Videos of things of a known size before a scene that stands still."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from scalor.video import Video, open_video

SIZE = (96, 128)


def street(seed: int = 0, size: tuple[int, int] = SIZE) -> np.ndarray:
    """A scene with colours and texture, from 60 to 160."""
    random = np.random.default_rng(seed)
    coarse = random.uniform(60, 160, (size[0] // 8, size[1] // 8, 3))
    return np.kron(coarse, np.ones((8, 8, 1))) + random.uniform(-6, 6, (*size, 3))


def plain(level: float = 120, size: tuple[int, int] = SIZE) -> np.ndarray:
    """An even grey scene."""
    return np.full((*size, 3), float(level))


def ellipse(centre: tuple[float, float], height: float, width: float, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Where it is; `centre` is x and y."""
    row, column = np.mgrid[: size[0], : size[1]] + 0.5
    inside: np.ndarray = ((column - centre[0]) / (width / 2)) ** 2 + ((row - centre[1]) / (height / 2)) ** 2 < 1
    return inside


def film(
    path: Path,
    scene: np.ndarray,
    draw: Callable[[np.ndarray, int], None],
    light: Callable[[int], float] = lambda t: 1.0,
    frames: int = 48,
    noise: float = 1.5,
) -> Video:
    """Every frame is the scene, with what `draw` puts into it, times its light, with noise of one value for grey."""
    random = np.random.default_rng(1)
    pictures = []
    for t in range(frames):
        picture = scene.copy()
        draw(picture, t)
        pictures.append(light(t) * picture + random.normal(0, noise, (*scene.shape[:2], 1)))
    np.save(path, np.stack(pictures).round().clip(0, 255).astype(np.uint8))
    return open_video(path)


def walking_boxes(
    path: Path, size: tuple[int, int] = (16, 8), speed: float = 2, objects: int = 3, frames: int = 60
) -> Path:
    """Bright boxes that walk to the right over a noisy grey scene and come back in on the left."""
    random = np.random.default_rng(0)
    scene = random.integers(60, 140, (96, 128, 3))
    pictures = np.repeat(scene[None], frames, 0) + random.integers(-3, 4, (frames, 96, 128, 3))
    for number in range(objects):
        top = 8 + number * 28
        for t in range(frames):
            left = round((37 * number + speed * t) % 160) - 16
            x0, x1 = max(left, 0), max(left + size[1], 0)
            pictures[t, top : top + size[0], x0:x1] = (250, 30 * number, 20)
    np.save(path, pictures.clip(0, 255).astype(np.uint8))
    return path
