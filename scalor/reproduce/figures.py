"""The paper's figures, drawn from our own models and result files.

`FIGURES[name].draw(models, results, out)` writes a PNG. A figure of a model shows clip `CLIP` of the preset's test
scenes, which was not selected by its appearance. A plot shows the results of `scalor reproduce` (see `curves`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from scalor import checkpoint
from scalor.boxes import assign, centre_distances
from scalor.data.clip import Clip
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation.report import TEST_SEED
from scalor.files import open_folder
from scalor.model.scalor import SCALOR
from scalor.model.sighting import gather_tracks
from scalor.nn.distributions import Mode
from scalor.nn.interface import Tracker
from scalor.presets import get_preset
from scalor.reproduce.catalogue import locate
from scalor.reproduce.curves import ablation_curves, efficiency_curves, prediction_curves
from scalor.tracks import Tracks
from scalor.visual.colors import colors_of, label_picture
from scalor.visual.overlay import overlay
from scalor.visual.plots import Panel, save_plot
from scalor.visual.strips import save_png, strip, to_bytes

CLIP = 0
"""Index of the test clip that is shown. It was not selected by its appearance."""
SEED = 0
"""Random seed of all generated frames."""
OBSERVE, HORIZON = 5, 10
"""Number of observed frames and of generated frames."""
WIDTH = 1152
"""Largest width of all frames of a row together, pixels. Ids and names are still legible at a width of 800."""
GALLERY = 4
"""Rows and columns of the grid that shows objects one by one."""
ZOOM, APART = 32, 3
"""Side of the window around a crossing, pixels of the scene; number of frames shown before and after it."""
PLOT_INCHES = (8.0, 2.7)
"""Width of a plot, and height of each of its rows."""

Picture = UInt8[np.ndarray, "H W 3"]
Models = Mapping[str, Tracker]


@dataclass(frozen=True)
class Figure:
    """A figure: the models it needs, and a function that draws it."""

    presets: tuple[str, ...]
    """Presets whose weights it needs; empty for a plot of results."""
    draw: Callable[[Models, Path, Path], None]
    """Function of the models by preset, the folder of results, and the PNG file to write."""


class Watched(NamedTuple):
    """A clip and what a model infers from it."""

    frames: Float[Tensor, "T 3 H W"]
    reconstruction: Float[Tensor, "T 3 H W"]
    background: Float[Tensor, "T 3 H W"]
    objects: Float[Tensor, "T 3 H W"]
    """Rendering of all objects over black."""
    tracks: Tracks
    own: list[dict[int, Float[np.ndarray, "3 P P"]]]
    """Rendering of each object alone over black, by id, for each frame."""


@torch.inference_mode()
def watch(model: SCALOR, frames: Observation) -> Watched:
    """Run the model on one clip, [1, T]."""
    video = model.receive(frames, minimum=2)
    painting = model.elbo(video, Mode()).painting
    sightings, own = [], []
    for state, sighting in model.watch(video.unbind(1), masks=True):
        sprite = model.appearance.draw(state.objects.z_what)
        ids, pictures = sighting.id[0].tolist(), (sprite.colour * sprite.mask)[0].cpu().numpy()
        own.append({number + 1: picture for number, picture in zip(ids, pictures, strict=True) if number >= 0})
        sightings.append(sighting)
    picture, behind = painting.picture, painting.background
    return Watched(
        video.image[0],
        picture.clamp(0, 1),
        torch.zeros_like(picture) if behind is None else behind,
        painting.foreground.mask * painting.foreground.colour,
        gather_tracks(sightings, video.size),
        own,
    )


def shown_clip(preset: str, length: int | None = None) -> Clip:
    """Return the test clip that figures of a preset show."""
    return Scenes(get_preset(preset).test, TEST_SEED, "test").clips(CLIP, 1, length)


def tracking(model: SCALOR, preset: str, ids: bool = True) -> Picture:
    """Draw input, tracks with discoveries marked, reconstruction, the objects one by one, and their masks.

    Without `ids` only colours distinguish the objects: in dense scenes, numbers would cover them.
    """
    seen = watch(model, shown_clip(preset).observation)
    shown = (0, 3, 6, 9)
    scale = enlargement(seen.tracks, len(shown))
    rows = {
        "input": to_bytes(seen.frames),
        "tracks": overlay(seen.frames, seen.tracks, scale=scale, labels=ids),
        "reconstruction": to_bytes(seen.reconstruction),
        "objects": gallery(seen, (scale * seen.tracks.size[0], scale * seen.tracks.size[1])),
        "masks": label_maps(seen.tracks, len(seen.frames)),
    }
    return frames_of(rows, shown)


def plain_tracking(model: Tracker, preset: str, shown: Sequence[int] = (0, 3, 6, 9)) -> Picture:
    """Draw input, tracks with discoveries marked, reconstruction and masks, for any system that tracks objects."""
    clip = shown_clip(preset).observation
    frames, tracks = clip.image[0], model.track(clip, masks=True)
    rows = {
        "input": to_bytes(frames),
        "tracks": overlay(frames, tracks, scale=enlargement(tracks, len(shown))),
        "reconstruction": to_bytes(model.reconstruct(clip).frames[0]),
        "masks": label_maps(tracks, len(frames)),
    }
    return frames_of(rows, shown)


def background(model: SCALOR, preset: str) -> Picture:
    """Draw a scene decomposed into its background and its objects."""
    seen = watch(model, shown_clip(preset).observation)
    shown = (0, 3, 6, 9)
    rows = {
        "input": to_bytes(seen.frames),
        "tracks": overlay(seen.frames, seen.tracks, scale=enlargement(seen.tracks, len(shown)), labels=False),
        "reconstruction": to_bytes(seen.reconstruction),
        "background": to_bytes(seen.background),
        "objects": to_bytes(seen.objects),
    }
    return frames_of(rows, shown)


def conditional(model: SCALOR, preset: str) -> Picture:
    """Draw conditional generation: the ground truth, the most likely future and two samples.

    The model observes five frames and generates ten. True objects have the colours of the tracks they are matched to in
    the last observed frame.
    """
    clip = shown_clip(preset, OBSERVE + HORIZON)
    shown = range(0, OBSERVE + HORIZON, 2)
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        likely = model.generate(clip.observation, OBSERVE, HORIZON, estimator=Mode())
        samples = [model.generate(clip.observation, OBSERVE, HORIZON) for _ in range(2)]
    truth = renamed(truth_tracks(clip), likely.tracks, OBSERVE - 1)
    rows = {"truth": with_paths(clip.frames[0], truth, len(shown))}
    for name, future in zip(("most likely", "sample 1", "sample 2"), (likely, *samples), strict=True):
        rows[name] = with_paths(future.frames[0], future.tracks, len(shown))
    if model.background:
        rows["background"] = to_bytes(likely.background[0])
    return frames_of(rows, shown, separator_after=sum(t < OBSERVE for t in shown))


def with_paths(frames: Float[Tensor, "T 3 H W"], tracks: Tracks, columns: int) -> UInt8[np.ndarray, "T h w 3"]:
    """Draw only trajectories onto frames: boxes are shrunk to points, and discoveries are not marked."""
    points = replace(tracks, box=np.tile(tracks.centre, 2), discovered=np.zeros_like(tracks.discovered))
    return overlay(frames, points, scale=enlargement(tracks, columns), labels=False, trails=OBSERVE + HORIZON)


def scratch(plain: SCALOR, scenic: SCALOR) -> Picture:
    """Draw scenes generated without any observation, by a model without a background and by one with a background."""
    length = 8
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        dreams = plain.imagine(length, clips=3)
        scenes = scenic.imagine(length, clips=2)
    rows = {f"sample {i + 1}": to_bytes(frames) for i, frames in enumerate(dreams.frames)}
    for i, pair in enumerate(zip(scenes.frames, scenes.background, strict=True)):
        rows[f"scene {i + 1}"], rows[f"background {i + 1}"] = (to_bytes(frames) for frames in pair)
    scale = enlargement(dreams.tracks, length)
    return frames_of({name: enlarged(row, scale) for name, row in rows.items()}, range(length))


def dense_discovery(model: SCALOR, preset: str) -> Picture:
    """Draw the frames in which groups of new objects appear, each with the frame after it.

    Discovered and propagated objects are in separate rows, which show the visible pixels of the objects.
    """
    births = get_preset(preset).test.births
    seen = watch(model, shown_clip(preset).observation)
    shown = [t + after for t in births for after in (0, 1)]
    tracks, scale = seen.tracks, enlargement(seen.tracks, len(shown))
    found = tracks.select(tracks.discovered)
    rows = {
        "tracks": overlay(seen.frames, tracks, scale=scale, labels=False, trails=0),
        "new tracks": overlay(seen.frames, replace(found, discovered=~found.discovered), scale=scale, trails=0),
        "new objects": to_bytes(seen.reconstruction * owned(found, seen.frames)),
        "old objects": to_bytes(seen.reconstruction * owned(tracks.select(~tracks.discovered), seen.frames)),
    }
    return frames_of(rows, shown)


def occlusion(model: SCALOR, preset: str) -> Picture:
    """Draw a window around a crossing of two objects, to compare identities before, during and after it.

    Boxes are those of the two objects, and of every track that is matched to one of them in some frame.
    """
    clip = shown_clip(preset)
    middle, pair = crossing(clip)
    shown = range(middle - APART, middle + APART + 1)
    seen = watch(model, clip.observation)
    truth = truth_tracks(clip)
    two = np.isin(truth.id, clip.truth.id[0, middle, pair].numpy() + 1)
    names = [renamed(truth, seen.tracks, t).id for t in shown]
    followers = np.concatenate([name[two & (truth.frame == t)] for name, t in zip(names, shown, strict=True)])
    scale = WIDTH // len(shown) // ZOOM
    place = clip.truth.centre[0, middle, pair].mean(0).numpy()  # x, y
    corner = np.clip(place - ZOOM / 2, 0, np.array(seen.tracks.size[::-1]) - ZOOM)
    left, top = np.round(scale * corner).astype(int)

    def zoomed(frames: np.ndarray) -> np.ndarray:
        large = enlarged(frames, scale * seen.tracks.size[0] // frames.shape[1])
        return large[:, top : top + scale * ZOOM, left : left + scale * ZOOM]

    true = replace(truth, id=names[0]).select(two)
    tracks = seen.tracks.select(np.isin(seen.tracks.id, followers))
    rows = {
        "truth": overlay(seen.frames, true, scale=scale, trails=0),
        "tracks": overlay(seen.frames, tracks, scale=scale, trails=0),
        "reconstruction": to_bytes(seen.reconstruction),
        "masks": label_maps(seen.tracks, len(seen.frames)),
    }
    return frames_of({name: zoomed(row) for name, row in rows.items()}, shown)


def crossing(clip: Clip) -> tuple[int, list[int]]:
    """Return the frame in which two objects come closest, and their indices.

    Both must be more than 70 % visible `APART` frames before and after.
    """
    truth = clip.truth
    centre, seen = truth.centre[0].numpy(), ((truth.id >= 0) & (truth.visible > 0.7))[0].numpy()
    best: tuple[float, int, list[int]] = (np.inf, APART, [0, 1])
    for t in range(APART, len(seen) - APART):
        apart = seen[t - APART] & seen[t + APART]
        distance = np.where(np.outer(apart, apart), centre_distances(centre[t], centre[t]), np.inf)
        np.fill_diagonal(distance, np.inf)
        one, other = divmod(int(distance.argmin()), len(distance))
        best = min(best, (float(distance[one, other]), t, [one, other]))
    return best[1], best[2]


def truth_tracks(clip: Clip) -> Tracks:
    """Return the ground truth of the first clip as tracks; objects less than 20 % visible are left out."""
    truth = clip.truth
    frame, which = torch.nonzero((truth.id[0] >= 0) & (truth.visible[0] >= 0.2), as_tuple=True)
    return Tracks(
        clip=np.zeros(len(frame), np.int64),
        frame=frame.numpy(),
        id=truth.id[0, frame, which].numpy() + 1,
        box=truth.box[0, frame, which].numpy(),
        confidence=np.ones(len(frame), np.float32),
        discovered=np.zeros(len(frame), bool),
        size=(clip.frames.shape[-2], clip.frames.shape[-1]),
    )


def renamed(truth: Tracks, tracks: Tracks, frame: int) -> Tracks:
    """Return the true tracks with the ids of the tracks they are matched to in a frame.

    They are matched by the distance of centres. True tracks without a match get unused ids.
    """
    true, found = (one.select(one.frame == frame) for one in (truth, tracks))
    distance = centre_distances(true.centre, found.centre)
    reach = (true.box[:, 2:] - true.box[:, :2]).max(axis=1, keepdims=True) / 2
    partner = assign(np.where(distance <= reach, distance, np.inf))
    names = {int(old): int(found.id[j]) for old, j in zip(true.id, partner, strict=True) if j >= 0}
    free = int(tracks.id.max(initial=0)) + 1
    for old in np.unique(truth.id).tolist():
        names.setdefault(old, free + len(names))
    return replace(truth, id=np.array([names[int(old)] for old in truth.id], np.int64))


def gallery(seen: Watched, size: tuple[int, int]) -> UInt8[np.ndarray, "T h w 3"]:
    """Draw the longest tracks, each in a grid cell framed in its colour; a cell is empty while its object is absent."""
    ids, lives = np.unique(seen.tracks.id, return_counts=True)
    longest = ids[np.argsort(-lives, kind="stable")][: GALLERY**2]
    cell = min(size) // GALLERY
    canvas = np.zeros((len(seen.own), *size, 3), np.uint8)
    for place, number in enumerate(sorted(longest.tolist())):
        top, left = place // GALLERY * cell, place % GALLERY * cell
        for picture, own in zip(canvas, seen.own, strict=True):
            if number not in own:
                continue
            sample = np.arange(cell) * own[number].shape[-1] // cell
            patch = to_bytes(torch.from_numpy(own[number]))[sample][:, sample]
            patch[[0, 1, -2, -1]] = patch[:, [0, 1, -2, -1]] = colors_of(np.array(number))
            picture[top : top + cell, left : left + cell] = patch
    return canvas


def label_maps(tracks: Tracks, frames: int) -> UInt8[np.ndarray, "T H W 3"]:
    """Draw the visible mask of every object in its colour."""
    assert tracks.masks is not None
    labels = np.full((frames, *tracks.size), -1)
    for mask, frame, number in zip(tracks.masks, tracks.frame, tracks.id, strict=True):
        labels[frame][mask] = number
    return label_picture(labels)


def owned(tracks: Tracks, frames: Float[Tensor, "T 3 H W"]) -> Float[Tensor, "T 1 H W"]:
    """Return 1 for the pixels in the visible mask of one of the tracks, else 0."""
    assert tracks.masks is not None
    mask = torch.zeros_like(frames[:, :1])
    for one, frame in zip(torch.from_numpy(tracks.masks).to(frames.device), tracks.frame, strict=True):
        mask[frame, 0, one] = 1
    return mask


def enlargement(tracks: Tracks, columns: int) -> int:
    """Return the whole factor by which frames are enlarged so that a row is at most WIDTH wide."""
    return max(1, WIDTH // columns // max(tracks.size))


def enlarged(frames: UInt8[np.ndarray, "T H W 3"], scale: int) -> UInt8[np.ndarray, "T h w 3"]:
    return frames.repeat(scale, axis=1).repeat(scale, axis=2)


def frames_of(rows: Mapping[str, np.ndarray], shown: Sequence[int], separator_after: int | None = None) -> Picture:
    """Draw a strip of the frames at the indices `shown`, with headings that count from 1."""
    return strip(
        {name: row[list(shown)] for name, row in rows.items()},
        columns=[f"t = {t + 1}" for t in shown],
        separator_after=separator_after,
    )


def draw_all(runs: Path, results: Path, out: Path, device: torch.device) -> tuple[list[Path], list[str]]:
    """Draw every figure whose models (seed 0) or results exist.

    Return the files, and one sentence for each figure that was left out.
    """
    models, refused = {}, {}
    for preset in dict.fromkeys(preset for figure in FIGURES.values() for preset in figure.presets):
        try:
            training = locate(get_preset(preset), runs)
        except InputError as error:
            refused[preset] = error
            continue
        if training.finished:
            models[preset] = checkpoint.load(training.folder / checkpoint.MODEL_FILE, device)
    open_folder(out)
    drawn, left_out = [], []
    for name, figure in FIGURES.items():
        reasons = [refused[preset] for preset in figure.presets if preset in refused]
        try:
            if reasons:
                raise reasons[0]
            figure.draw(models, results, out / f"{name}.png")
            drawn.append(out / f"{name}.png")
        except InputError as error:
            left_out.append(f"{name}: left out; {error}")
    return drawn, left_out


def need(models: Models, preset: str) -> Tracker:
    """Return the model of a preset; raise an error if there is none."""
    if preset not in models:
        raise InputError(f"this figure needs a model of {preset}: train one with `scalor train {preset} --seeds 0`.")
    return models[preset]


def of_model(preset: str, picture: Callable[[Any, str], Picture]) -> Figure:
    """Return a figure of one model. The preset determines the model's type, so it is `Any` here."""
    return Figure((preset,), lambda models, results, out: save_png(out, picture(need(models, preset), preset)))


def of_results(rows: Callable[[Path], list[list[Panel]]]) -> Figure:
    """Return a figure that plots results."""

    def draw(models: Models, results: Path, out: Path) -> None:
        panels = rows(results)
        width, height = PLOT_INCHES
        save_plot(out, panels, (width / max(1, len(panels[0])), height))

    return Figure((), draw)


def of_two_models(plain: str, scenic: str, picture: Callable[[Any, Any], Picture]) -> Figure:
    """Return a figure of two models: one without a background, one with it."""

    def draw(models: Models, results: Path, out: Path) -> None:
        save_png(out, picture(need(models, plain), need(models, scenic)))

    return Figure((plain, scenic), draw)


FIGURES: dict[str, Figure] = {
    "tracking-shapes-md": of_model("shapes-md", tracking),
    "tracking-shapes-hd": of_model("shapes-hd", partial(tracking, ids=False)),
    "tracking-shapes-vhd": of_model("shapes-vhd", partial(tracking, ids=False)),
    "tracking-mnist-md": of_model("mnist-md", tracking),
    "tracking-sqair-shapes-ld": of_model("sqair-shapes-ld", plain_tracking),
    "tracking-sqair-mnist-vld": of_model("sqair-mnist-vld", plain_tracking),
    "background": of_model("shapes-background", background),
    "conditional-shapes-md": of_model("shapes-md", conditional),
    "conditional-mnist-md": of_model("mnist-md", conditional),
    "conditional-background": of_model("shapes-background", conditional),
    "scratch": of_two_models("shapes-md", "shapes-background", scratch),
    "ablation": of_results(ablation_curves),
    "dense-discovery": of_model("shapes-dense-discovery", dense_discovery),
    "occlusion": of_model("mnist-occlusion", occlusion),
    # Few objects stay in view for all frames of these clips, so objects are not shown one by one.
    "length": of_model("shapes-length", partial(plain_tracking, shown=(0, 4, 9, 14, 19))),
    "crowd": of_model("shapes-crowd", partial(tracking, ids=False)),
    "unseen-digits": of_model("mnist-unseen", tracking),
    "efficiency": of_results(efficiency_curves),
    "replay": of_model("grand-central-replay-still", background),
    "prediction": of_results(prediction_curves),
}
