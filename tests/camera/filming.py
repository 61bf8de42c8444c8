"""Footage with a known camera: a window that moves over a large textured scene, with discs that move before it."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from scalor.camera.align import Similarity, compose, corners_of, for_pixels, invert, move
from scalor.camera.stabilise import CameraMotion
from scalor.video.reading import Video, open_video

HEIGHT, WIDTH = 180, 240
MIDDLE = np.array([240.0, 180.0])


def scene(seed: int = 0) -> np.ndarray:
    """A texture of 360 x 480 pixels, with blobs from a few to some tens of pixels."""
    rng = np.random.default_rng(seed)
    picture = np.zeros((360, 480, 3), np.float32)
    for sigma in (2, 5, 15):
        noise = cv2.GaussianBlur(rng.normal(size=picture.shape).astype(np.float32), (0, 0), sigma)
        picture += noise / noise.std()
    return np.clip(picture * 25 + 120, 0, 255).astype(np.uint8)


def pose(x: float = 0, y: float = 0, degrees: float = 0, zoom: float = 1) -> Similarity:
    """From a frame to the scene, for a camera that looks this far from the scene's middle."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / zoom
    return np.column_stack([turn, np.add(MIDDLE, (x, y)) - turn @ (WIDTH / 2, HEIGHT / 2)])


def film(
    poses: Sequence[Similarity], discs: int = 6, flicker: float = 0.0, noise: float = 2.0, seed: int = 0
) -> np.ndarray:
    """Frames [T, H, W, 3] of a camera with these poses."""
    rng = np.random.default_rng(seed)
    background = scene(seed)
    place, speed = rng.uniform(80, 300, (discs, 2)), rng.uniform(-3, 3, (discs, 2))
    frames = []
    for turn in poses:
        place = place + speed
        picture = background.copy()
        for number, centre in enumerate(place):
            cv2.circle(picture, (int(centre[0]), int(centre[1])), 14, (40 * number % 255, 250, 30), -1)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        seen = cv2.warpAffine(picture, for_pixels(turn), (WIDTH, HEIGHT), flags=flags, borderMode=cv2.BORDER_REFLECT)
        light = 1 + flicker * rng.normal()
        frames.append(np.clip(seen * light + noise * rng.normal(size=seen.shape), 0, 255).astype(np.uint8))
    return np.stack(frames)


def as_video(folder: Path, frames: np.ndarray) -> Video:
    np.save(folder / "film.npy", frames)
    return open_video(folder / "film.npy")


def errors(motion: CameraMotion, poses: Sequence[Similarity]) -> np.ndarray:
    """Pixels by which each frame is misplaced. Where the view lies in the scene is told by the first frame."""
    view_to_scene = compose(poses[0], invert(motion.transforms[0]))
    corners = corners_of((HEIGHT, WIDTH))
    return np.array(
        [
            np.hypot(*(move(compose(invert(true), compose(view_to_scene, found)), corners) - corners).T).max()
            for found, true in zip(motion.transforms, poses, strict=True)
        ]
    )
