"""`python -m benchmarks.overlay`: how long does it take to draw 50 objects on a frame of 1920 x 1080 pixels?

Prints the median processor time of `OverlayFilm.draw`, which draws every frame of `overlay.mp4`, in milliseconds. To
compare two working trees, run the file of one with PYTHONPATH set to each of them in turn.
"""

import time

import numpy as np

from scalor.outputs.films import OverlayFilm
from scalor.outputs.tables import TrackedFrame
from scalor.tracks import Tracks

OBJECTS, FRAMES, REPEATS = 50, 60, 30
HEIGHT, WIDTH = 1080, 1920


def frames() -> list[TrackedFrame]:
    """Return frames of boxes of 40 x 90 pixels that move at constant speeds over noise."""
    random = np.random.default_rng(0)
    picture = random.integers(60, 160, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    start = random.uniform((100, 100), (WIDTH - 100, HEIGHT - 100), (OBJECTS, 2))
    speed = random.normal(0, 3, (OBJECTS, 2))
    none = np.zeros(OBJECTS, int)
    made = []
    for t in range(FRAMES):
        centre = start + t * speed
        box = np.tile(centre, 2) + np.array([-20, -45, 20, 45])
        tracks = Tracks(none, none + t, np.arange(1, OBJECTS + 1), box, none + 1.0, none > 0, (HEIGHT, WIDTH))
        made.append(TrackedFrame(picture, t / 25, t, tracks))
    return made


def main() -> None:
    film, times = OverlayFilm(25), []
    for frame in frames():
        start = time.process_time()
        film.draw(frame)
        times.append(time.process_time() - start)
    print(f"{1000 * np.median(times[-REPEATS:]):.1f} ms a frame")


if __name__ == "__main__":
    main()
