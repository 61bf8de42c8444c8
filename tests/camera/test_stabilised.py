"""A video of a moving camera becomes one in which the scene stands still."""

from pathlib import Path

import numpy as np

from scalor.camera import estimate_motion
from scalor.camera.stabilised import mosaic_of, stabilise
from scalor.video import open_video


def panned(tmp_path: Path) -> tuple[np.ndarray, Path]:
    """A scene of smooth random patches, over which a window moves to the right by 2 px a frame."""
    from scipy import ndimage

    noise = np.random.default_rng(0).normal(size=(140, 260, 3))
    smooth = ndimage.gaussian_filter(noise, (2, 2, 0))
    scene = ((smooth - smooth.min()) / np.ptp(smooth) * 255).astype(np.uint8)
    frames = np.stack([scene[10:130, 10 + 2 * t : 170 + 2 * t] for t in range(30)])
    np.save(tmp_path / "pan.npy", frames)
    return scene, tmp_path / "pan.npy"


def test_the_scene_stands_still_in_the_common_view(tmp_path: Path) -> None:
    _, path = panned(tmp_path)
    video = open_video(path)
    motion = estimate_motion(video)
    steady = stabilise(video, motion)
    pictures = np.stack([frame.picture for frame in steady]).astype(float)
    assert pictures.shape[1:3] == motion.view_size
    assert motion.view_size[1] > 160 + 50  # all that any frame shows
    inner = pictures[:, 5:-5, 5:-5]
    assert np.abs(inner - np.median(inner, 0)).mean() < 4
    still = np.stack([frame.picture for frame in video]).astype(float)
    assert np.abs(still - np.median(still, 0)).mean() > 12


def test_what_no_frame_shows_of_the_view_is_filled_by_other_frames(tmp_path: Path) -> None:
    scene, path = panned(tmp_path)
    video = open_video(path)
    motion = estimate_motion(video)
    mosaic = mosaic_of(video, motion).astype(float)
    # The view begins with the first frame's corner: the mosaic is the scene from there on.
    height, width = mosaic.shape[:2]
    expected = scene[10 : 10 + height, 10 : 10 + width].astype(float)
    rows, columns = min(height, len(expected)) - 4, min(width, expected.shape[1]) - 4
    assert np.abs(mosaic[4:rows, 4:columns] - expected[4:rows, 4:columns]).mean() < 12
