"""Damaged videos of every container, tracked: what is missing must be told."""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from benchmarks.torture import damage
from benchmarks.torture.campaign import Campaign, Finding, Try
from benchmarks.torture.commands import command
from benchmarks.torture.models import tiny_weights
from benchmarks.torture.outcomes import Outcome, judge

FRAMES, HEIGHT, WIDTH, FPS = 24, 48, 64, 8
FILMS = {
    "h264.mp4": ("libx264", "yuv420p"),
    "mpeg4.mp4": ("mpeg4", "yuv420p"),
    "h264.mkv": ("libx264", "yuv420p"),
    "ffv1.mkv": ("ffv1", "yuv420p"),
    "mjpeg.mov": ("mjpeg", "yuvj420p"),
    "mpeg4.avi": ("mpeg4", "yuv420p"),
    "mjpeg.avi": ("mjpeg", "yuvj420p"),
    "raw.avi": ("rawvideo", "yuv420p"),
    "vp9.webm": ("libvpx-vp9", "yuv420p"),
    "mpeg2.ts": ("mpeg2video", "yuv420p"),
    "mpeg1.mpg": ("mpeg1video", "yuv420p"),
    "flv1.flv": ("flv", "yuv420p"),
    "wmv2.wmv": ("wmv2", "yuv420p"),
}
"""Files with their codec and pixel format."""
LOOSE = 1
"""Frames that may be missing untold: files that are whole count them loosely."""
PROMISE_NOTHING = (".ts", ".mpg")
"""Streams without a header that says how long they are: nobody can tell that their end is missing."""


@dataclass(frozen=True)
class Bases:
    """The undamaged videos."""

    weights: Path
    videos: dict[str, bytes]
    """Files by name; for a folder of images, the images one after the other."""
    images: list[bytes]


def pictures() -> np.ndarray:
    """Return a video of discs that move, uint8 [T, H, W, 3]."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    video = np.zeros((FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    for t in range(FRAMES):
        for k in range(4):
            cx, cy = (8 + 13 * k + 1.5 * t) % WIDTH, (10 + 9 * k + (-1) ** k * t) % HEIGHT
            video[t][np.hypot(x - cx, y - cy) < 5] = (80 + 50 * k, 250 - 60 * k, 120)
    return video


def write_film(path: Path, codec: str, pixels: str, frames: np.ndarray) -> None:
    """Write a video file with PyAV."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(25 if codec.startswith("mpeg") else FPS))
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels  # type: ignore[union-attr]
        for frame in frames:
            for packet in stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")):  # type: ignore[union-attr, arg-type]
                container.mux(packet)
        container.mux(stream.encode(None))  # type: ignore[union-attr]


def prepare(folder: Path) -> Bases:
    """Write one undamaged video of every kind."""
    frames = pictures()
    videos: dict[str, bytes] = {}
    for name, (codec, pixels) in FILMS.items():
        write_film(folder / name, codec, pixels, frames)
        videos[name] = (folder / name).read_bytes()
    images = [Image.fromarray(frame) for frame in frames]
    images[0].save(folder / "a.gif", save_all=True, append_images=images[1:], duration=125, loop=0)
    for name, compression in (("a.tif", None), ("lzw.tif", "tiff_lzw")):
        images[0].save(folder / name, save_all=True, append_images=images[1:], compression=compression)
    np.save(folder / "a.npy", frames)
    np.savez(folder / "a.npz", frames=frames)
    np.savez_compressed(folder / "packed.npz", frames=frames)
    for name in ("a.gif", "a.tif", "lzw.tif", "a.npy", "a.npz", "packed.npz"):
        videos[name] = (folder / name).read_bytes()
    pages = []
    for number, image in enumerate(images):
        path = folder / f"{number:02d}.{('png', 'jpg')[number % 2]}"
        image.save(path)
        pages.append(path.read_bytes())
    return Bases(tiny_weights(folder), videos, pages)


def case(bases: Bases, given: Try) -> Finding:
    """Damage one video and track it."""
    random, home = given.random, given.home
    kind = damage.pick(random)
    if random.random() < 0.1:
        return images_case(bases, random, home, kind)
    name = random.choice(sorted(bases.videos))
    data = kind(bases.videos[name], random)
    called = name if random.random() < 0.9 else "x" + random.choice((".mp4", ".avi", ".gif", ".tif", ".npy", ".npz"))
    (home / called).write_bytes(data)
    seen = f"{kind.__name__} {name}" + (f" named {called}" if called != name else "")
    promised = FRAMES if not name.endswith(PROMISE_NOTHING) and len(data) > 0 else 0
    return track(bases, random, home, called, seen, promised)


def images_case(bases: Bases, random: Random, home: Path, kind: damage.Damage) -> Finding:
    """Damage some images of a folder and track it."""
    (home / "frames").mkdir()
    damaged = set(random.sample(range(FRAMES), random.choice((1, 1, 3))))
    for number, data in enumerate(bases.images):
        path = home / "frames" / f"{number:02d}.{('png', 'jpg')[number % 2]}"
        path.write_bytes(kind(data, random) if number in damaged else data)
    return track(bases, random, home, "frames", f"{kind.__name__} {len(damaged)} images of a folder", FRAMES)


def track(bases: Bases, random: Random, home: Path, video: str, seen: str, promised: int) -> Finding:
    """Track a damaged video and judge what came out."""
    more = [["--masks"], ["--stride", "2"], ["--start", "1"], []][random.choices(range(4), (1, 1, 1, 7))[0]]
    words = ["track", video, "--weights", str(bases.weights), "--json", "--out", "out", *more]
    ended = command(words, home)
    found = judge(ended)
    if found is not None:
        leftovers = sorted(path.name for path in (home / "out").glob("*")) if (home / "out").exists() else []
        if leftovers and found[0] is Outcome.WARNED:
            return Finding(Outcome.WRONG, seen, f"refused, but out/ holds {leftovers[:5]}")
        return Finding(found[0], seen, found[1])
    try:
        document = json.loads(ended.out)
        rows = (home / "out" / "counts.csv").read_text().count("\n") - 1
    except (ValueError, OSError) as error:
        return Finding(Outcome.WRONG, seen, f"the results cannot be read: {error}")
    if rows != document["frames"]:
        return Finding(Outcome.WRONG, seen, f"counts.csv has {rows} rows for {document['frames']} frames")
    expected = promised - LOOSE if not more or more == ["--masks"] else 0
    measures = (document["health"] or {"measures": []})["measures"]
    told = "warning: " in ended.err or any(one["name"] == "frames" and one["level"] != "ok" for one in measures)
    if document["frames"] < expected and not told:
        return Finding(Outcome.WRONG, seen, f"{document['frames']} of {promised} frames, and nothing is said")
    return Finding(Outcome.WARNED if told else Outcome.CLEAN, seen)


CAMPAIGN = Campaign("damaged videos", prepare, case, share=6)
