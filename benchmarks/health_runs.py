"""Tracking runs of known quality, good and bad, for `python -m benchmarks.health`.

Films come with truth: real ones from the folder that SCALOR_DATA names, and made ones. Runs are what trackers say of a
film, with right and wrong settings, and the truth spoiled on purpose.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image

from scalor import checkpoint
from scalor.classical.tracker import PREFIX, named
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation.score import BoxRows, read_boxes
from scalor.pipeline import track
from scalor.presets import get_preset
from scalor.tracks import join_tracks
from scalor.video import Selection, open_video

PART = 300
"""Frames of each end of PETS: the first ones are for choosing limits, the last ones for the report."""
WALK_FPS = 10


@dataclass(frozen=True)
class Film:
    """A video with its truth, in memory."""

    name: str
    chosen_on: bool
    """Whether limits may be chosen on it; if not, it is for the report."""
    pictures: UInt8[np.ndarray, "T H W 3"]
    truth: BoxRows
    """Frames from 1 on."""
    fps: float
    object_size: tuple[float, float]
    """Height and width of the median true box."""


@dataclass(frozen=True)
class Run:
    """What is said of a film."""

    film: Film
    name: str
    rows: BoxRows
    object_size: tuple[float, float]
    """What the tracker was told, or the true one."""


def data() -> Path:
    if "SCALOR_DATA" not in os.environ:
        raise InputError("SCALOR_DATA is not set: give the folder that holds pets, tud_campus and cells_sim.")
    return Path(os.environ["SCALOR_DATA"])


def films() -> Iterator[Film]:
    """One after another: all of them would fill the memory."""
    yield pets("PETS, first part", True, 0)
    yield real("cells", True, data() / "cells_sim")
    yield shapes("shapes-ld", True, clip=0)
    yield walkers("walkers, first", True, seed=0)
    yield pets("PETS, last part", False, 795 - PART)
    yield real("TUD campus", False, data() / "tud_campus")
    yield shapes("shapes-md", False, clip=1)
    yield walkers("walkers, second", False, seed=1)


def film_of(name: str, chosen_on: bool, pictures: np.ndarray, truth: BoxRows, fps: float) -> Film:
    sides = np.median(truth.box[:, 2:] - truth.box[:, :2], 0)
    return Film(name, chosen_on, pictures, truth, fps, (float(sides[1]), float(sides[0])))


def pets(name: str, chosen_on: bool, start: int) -> Film:
    video = open_video(data() / "pets" / "vtest.avi", Selection(start=start / 10 if start else None))
    pictures = np.stack([frame.picture for frame in islice(video, PART)])
    rows = read_boxes(data() / "pets" / "gt.txt").within(start + 1, start + PART)
    return film_of(name, chosen_on, pictures, replace(rows, frame=rows.frame - start), video.fps)


def real(name: str, chosen_on: bool, folder: Path) -> Film:
    video = open_video(folder / "frames")
    pictures = np.stack([frame.picture for frame in video])
    return film_of(name, chosen_on, pictures, read_boxes(folder / "gt.txt"), video.fps)


def shapes(preset: str, chosen_on: bool, clip: int, frames: int = 60) -> Film:
    """Flat shapes on black."""
    made = Scenes(get_preset(preset).test, 0, "test").clips(clip, 1, frames)
    pictures = (made.frames[0].permute(0, 2, 3, 1) * 255).round().byte().numpy()
    truth = made.truth
    there = (truth.id[0] >= 0) & (truth.visible[0] > 0)
    frame, slot = (part.numpy() for part in torch.nonzero(there, as_tuple=True))
    id, box = truth.id[0].numpy()[frame, slot], truth.box[0].numpy()[frame, slot].astype(float)
    hidden = truth.visible[0].numpy()[frame, slot] < 0.2
    return film_of(preset, chosen_on, pictures, BoxRows(frame + 1, id + 1, box, 1.0 - hidden), 10)


def walkers(name: str, chosen_on: bool, seed: int, frames: int = 250, count: int = 8) -> Film:
    """Upright bodies that walk through a picture of smooth noise, in at one side and out at the other."""
    random, size = np.random.default_rng(seed), (240, 320)
    coarse = Image.fromarray(random.integers(90, 170, (12, 16, 3), np.uint8))
    scene = np.asarray(coarse.resize((size[1], size[0]), Image.Resampling.BICUBIC)).astype(int)
    pictures = np.stack([scene] * frames)
    rows: list[tuple[float, ...]] = []
    for walker in range(count * frames // 100):
        start, speed = int(random.integers(-80, frames - 30)), random.uniform(1.5, 4) * random.choice((-1, 1))
        wide, high = int(random.integers(10, 16)), int(random.integers(28, 40))
        top, colour = int(random.integers(5, size[0] - high - 5)), random.integers(0, 256, 3)
        if np.abs(colour - 130).max() < 60:
            colour = colour // 4
        for t in range(max(0, start), frames):
            left = (-wide if speed > 0 else size[1]) + speed * (t - start)
            if left < -wide or left > size[1]:
                break
            x0, x1 = max(0, round(left)), min(size[1], round(left) + wide)
            if x1 - x0 > 2:
                pictures[t, top : top + high // 4, x0 + wide // 4 : max(x0 + wide // 4, x1 - wide // 4)] = (
                    colour // 2 + 60
                )
                pictures[t, top + high // 4 : top + high, x0:x1] = colour
                rows.append((t + 1, walker + 1, x0, top, x1, top + high))
    noisy = pictures + random.integers(-6, 7, pictures.shape)
    table = np.array(rows)
    truth = BoxRows(table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2:], np.ones(len(table)))
    return film_of(name, chosen_on, noisy.clip(0, 255).astype(np.uint8), truth, WALK_FPS)


def brighter(film: Film) -> Film:
    """The same film with a step of light half way."""
    pictures = film.pictures.copy()
    half = len(pictures) // 2
    pictures[half:] = np.minimum(pictures[half:].astype(np.uint16) + 64, 255)
    return replace(film, name=f"{film.name}, light step", pictures=pictures)


def panned(film: Film) -> Film:
    """What a camera sees that turns to and fro."""
    length, height, width = film.pictures.shape[:3]
    view = (height * 2 // 3, width * 2 // 3)
    left = np.abs((2 * np.arange(length)) % (2 * (width - view[1])) - (width - view[1]))
    pictures = np.stack([one[: view[0], x : x + view[1]] for one, x in zip(film.pictures, left, strict=True)])
    return replace(film, name=f"{film.name}, panned", pictures=pictures, truth=seen_in(film.truth, left, view))


def seen_in(truth: BoxRows, left: np.ndarray, view: tuple[int, int]) -> BoxRows:
    box = truth.box - left[truth.frame - 1][:, None] * np.array([1, 0, 1, 0])
    middle = (box[:, :2] + box[:, 2:]) / 2
    return replace(truth, box=box).select(((middle > 0) & (middle < (view[1], view[0]))).all(1))


def resized(film: Film, factor: float, frames: int) -> Film:
    """The first frames of a film at another resolution."""
    size = tuple(round(factor * side) for side in film.pictures.shape[2:0:-1])
    pictures = np.stack([np.asarray(Image.fromarray(one).resize(size)) for one in film.pictures[:frames]])
    truth = film.truth.within(1, frames)
    larger = replace(truth, box=truth.box * factor)
    part = f"{frames} frames" if factor == 1 else f"x {factor:g}"
    return film_of(f"{film.name}, {part}", film.chosen_on, pictures, larger, film.fps)


def tracked(film: Film, weights: str, size: tuple[float, float] | None, kept: Path) -> Run:
    """What a tracker says; read from the folder `kept` where it is known already."""
    told = f" {size[0]:.0f}x{size[1]:.0f}" if size else ""
    name = f"{weights}{told}"
    key = hashlib.sha256(f"{film.name} {len(film.pictures)} {name}".encode()).hexdigest()[:16]
    path = kept / f"{key}.npz"
    if not path.exists():
        np.savez(path, **vars(follow_film(film, weights, size)))
    with np.load(path) as file:
        rows = BoxRows(**dict(file))
    return Run(film, name, rows, size or model_size(weights))


def model_size(weights: str) -> tuple[float, float]:
    """What a model takes for an object's size, in pixels of a video."""
    config = checkpoint.read(checkpoint.find(weights)).config
    height, width = config.model.object_size
    return height / config.scene.scale, width / config.scene.scale


def follow_film(film: Film, weights: str, size: tuple[float, float] | None) -> BoxRows:
    if weights.startswith(PREFIX):
        assert size is not None
        frames = (picture.transpose(2, 0, 1).astype(np.float32) / 255 for picture in film.pictures)
        tracks = join_tracks(list(named(weights, size).stream(frames)))
    else:
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "film.npy", film.pictures)
            tracks = track(Path(folder) / "film.npy", weights, device="cpu", quiet=True)
    return BoxRows(tracks.frame + 1, tracks.id, tracks.box, tracks.confidence)


Spoil = Callable[[BoxRows, np.random.Generator, float], BoxRows]
"""From rows, chance and frames a second to worse rows."""


def jittered(share: float) -> Spoil:
    """Each side of a box moves by so much of its length, one standard deviation."""

    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        moved = rows.box + random.normal(0, share, rows.box.shape) * sides(rows)
        ordered = np.concatenate([np.minimum(moved[:, :2], moved[:, 2:]), np.maximum(moved[:, :2], moved[:, 2:])], 1)
        return replace(rows, box=ordered)

    return spoil


def shifted(share: float) -> Spoil:
    return lambda rows, random, fps: replace(rows, box=rows.box + share * sides(rows) * np.array([1, 0.5, 1, 0.5]))


def scaled(factor: float) -> Spoil:
    out = (factor - 1) / 2 * np.array([-1, -1, 1, 1])
    return lambda rows, random, fps: replace(rows, box=rows.box + out * sides(rows))


def fewer_ids(share: float) -> Spoil:
    """So many of the objects are never found."""

    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        ids = np.unique(rows.id)
        return rows.select(~np.isin(rows.id, random.choice(ids, round(share * len(ids)), replace=False)))

    return spoil


def flickering(share: float) -> Spoil:
    """So many rows are missing, here and there."""
    return lambda rows, random, fps: rows.select(random.random(len(rows.id)) >= share)


def renamed(seconds: float) -> Spoil:
    """Every object gets a new id after so long, not all at once."""

    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        period = max(1, round(seconds * fps))
        return replace(rows, id=rows.id * 10_000 + (rows.frame + 7 * rows.id) // period)

    return spoil


def swapped(seconds: float) -> Spoil:
    """Objects exchange their ids after so long."""

    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        period, id = max(1, round(seconds * fps)), rows.id.copy()
        for start in range(period + 1, int(rows.frame.max()) + 1, period):
            now = (rows.frame >= start) & (rows.frame < start + period)
            present = np.unique(rows.id[now])
            other = random.permutation(present)
            id[now] = other[np.searchsorted(present, rows.id[now])]
        return replace(rows, id=id)

    return spoil


def with_false(share: float, still: bool) -> Spoil:
    """So many boxes more, of usual sizes, where nothing is: at one place for good, or at a new one in each frame."""

    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        more = rows.select(random.random(len(rows.id)) < share)
        low, high = rows.box.min(0), rows.box.max(0)
        who = more.id if still else np.arange(len(more.id))
        place = np.random.default_rng(0).uniform(low[:2], high[2:], (int(who.max(initial=0)) + 1, 2))[who]
        side = more.box[:, 2:] - more.box[:, :2]
        box = np.concatenate([place, place + side], 1)
        id = rows.id.max() + 1 + who
        return joined(rows, replace(more, box=box, id=id))

    return spoil


def doubled(share: float) -> Spoil:
    """So many objects have a second box, a little aside."""

    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        ids = np.unique(rows.id)
        more = rows.select(np.isin(rows.id, random.choice(ids, round(share * len(ids)), replace=False)))
        box = more.box + 0.12 * sides(more)
        return joined(rows, replace(more, box=box, id=more.id + rows.id.max() + 1))

    return spoil


def late(seconds: float) -> Spoil:
    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        moved = replace(rows, frame=rows.frame + max(1, round(seconds * fps)))
        return moved.within(1, int(rows.frame.max()))

    return spoil


def one_after_another(*spoils: Spoil) -> Spoil:
    def spoil(rows: BoxRows, random: np.random.Generator, fps: float) -> BoxRows:
        for one in spoils:
            rows = one(rows, random, fps)
        return rows

    return spoil


def sides(rows: BoxRows) -> Float[np.ndarray, "K 4"]:
    """Width, height, width and height of each box."""
    side = rows.box[:, 2:] - rows.box[:, :2]
    return np.concatenate([side, side], 1)


def joined(one: BoxRows, other: BoxRows) -> BoxRows:
    both = [np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("frame", "id", "box", "confidence")]
    rows = BoxRows(*both)
    return rows.select(np.lexsort((rows.id, rows.frame)))


SPOILS: dict[str, Spoil] = {
    "truth": scaled(1.0),
    "jitter 5 %": jittered(0.05),
    "jitter 10 %": jittered(0.1),
    "jitter 25 %": jittered(0.25),
    "shifted by 15 %": shifted(0.15),
    "shifted by 60 %": shifted(0.6),
    "half as large": scaled(0.5),
    "0.8 as large": scaled(0.8),
    "1.2 as large": scaled(1.2),
    "twice as large": scaled(2.0),
    "a quarter of objects missing": fewer_ids(0.25),
    "60 % of objects missing": fewer_ids(0.6),
    "85 % of objects missing": fewer_ids(0.85),
    "20 % of rows missing": flickering(0.2),
    "60 % of rows missing": flickering(0.6),
    "new ids every 5 s": renamed(5),
    "new ids every second": renamed(1),
    "new ids every frame": renamed(0.1),
    "ids swapped every second": swapped(1),
    "ids swapped every .3 s": swapped(0.3),
    "a third false, resting": with_false(0.33, still=True),
    "as many false, resting": with_false(1.0, still=True),
    "as many false, flickering": with_false(0.99, still=False),
    "a fifth doubled": doubled(0.2),
    "all doubled": doubled(1.0),
    "late by .2 s": late(0.2),
    "late by 2 s": late(2.0),
    "a little of all": one_after_another(jittered(0.07), flickering(0.1), fewer_ids(0.1), renamed(5)),
    "much of all": one_after_another(jittered(0.15), flickering(0.3), fewer_ids(0.3), renamed(1)),
}
