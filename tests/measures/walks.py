"""Tables of tracks along known paths."""

import numpy as np
import pandas


def table(paths: np.ndarray, fps: float = 10.0, side: float = 4.0, stride: int = 1) -> pandas.DataFrame:
    """Tracks of objects along paths [N, T, 2] in pixels, in boxes of `side` pixels, with ids from 1."""
    count, frames = paths.shape[:2]
    frame = np.tile(stride * np.arange(frames), count)
    x, y = paths.reshape(-1, 2).T
    return pandas.DataFrame(
        {
            "frame": frame,
            "seconds": frame / fps,
            "id": np.repeat(np.arange(1, count + 1), frames),
            "x0": x - side / 2,
            "y0": y - side / 2,
            "x1": x + side / 2,
            "y1": y + side / 2,
        }
    )


def line(speed: float, heading_deg: float = 0.0, frames: int = 50, fps: float = 10.0) -> np.ndarray:
    """A straight path from (100, 100) at `speed` pixels per second; 90 degrees is up."""
    away = speed * np.arange(frames) / fps
    angle = np.radians(heading_deg)
    return 100 + np.stack([away * np.cos(angle), -away * np.sin(angle)], 1)


def circle(radius: float, turns_per_s: float, frames: int = 100, fps: float = 10.0) -> np.ndarray:
    """A circle around (100, 100), counter-clockwise as one sees it."""
    angle = 2 * np.pi * turns_per_s * np.arange(frames) / fps
    return 100 + radius * np.stack([np.cos(angle), -np.sin(angle)], 1)


def brownian(count: int, frames: int, diffusion: float, fps: float, seed: int = 0) -> np.ndarray:
    """Paths whose steps are independent, of variance 2 D dt along each axis."""
    steps = np.random.default_rng(seed).normal(0, np.sqrt(2 * diffusion / fps), (count, frames, 2))
    return np.cumsum(steps, axis=1)
