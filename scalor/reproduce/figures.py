"""The paper's figures, drawn from our own models and result files.

`FIGURES[name].draw(models, results, out)` writes a PNG. A figure of a model shows clip `CLIP` of the preset's test
scenes, which was not selected by its appearance. A plot shows the results of `scalor reproduce` (see `curves`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from scalor import checkpoint
from scalor.boxes import centre_distances
from scalor.data.clip import Clip
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation.report import TEST_SEED
from scalor.files import open_folder
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Mode
from scalor.nn.interface import Tracker
from scalor.presets import get_preset
from scalor.reproduce.catalogue import locate
from scalor.reproduce.curves import ablation_curves, efficiency_curves, prediction_curves
from scalor.reproduce.rows import (
    WIDTH,
    Picture,
    enlarged,
    enlargement,
    frames_of,
    gallery,
    infer_clip,
    label_maps,
    owned,
    renamed,
    truth_tracks,
)
from scalor.tracks import Tracks
from scalor.visual.overlay import overlay
from scalor.visual.plots import Panel, save_plot
from scalor.visual.strips import save_png, to_bytes

CLIP = 0
"""Index of the test clip that is shown. It was not selected by its appearance."""
SEED = 0
"""Random seed of all generated frames."""
OBSERVE, HORIZON = 5, 10
"""Number of observed frames and of generated frames."""
LASTING = 30
"""Number of sampled frames in the figures of looks that last."""
ZOOM, APART = 32, 3
"""Side of the window around a crossing, pixels of the scene; number of frames shown before and after it."""
PLOT_INCHES = (8.0, 2.7)
"""Width of a plot, and height of each of its rows."""
Models = Mapping[str, Tracker]


@dataclass(frozen=True)
class Figure:
    """A figure: the models it needs, and a function that draws it."""

    presets: tuple[str, ...]
    """Presets whose weights it needs; empty for a plot of results."""
    draw: Callable[[Models, Path, Path], None]
    """Function of the models by preset, the folder of results, and the PNG file to write."""


def shown_clip(preset: str, length: int | None = None) -> Clip:
    """Return the test clip that figures of a preset show."""
    return Scenes(get_preset(preset).test, TEST_SEED, "test").clips(CLIP, 1, length)


def tracking(model: SCALOR, preset: str, ids: bool = True) -> Picture:
    """Draw input, tracks with discoveries marked, reconstruction, the objects one by one, and their masks.

    Without `ids` only colours distinguish the objects: in dense scenes, numbers would cover them.
    """
    seen = infer_clip(model, shown_clip(preset).observation)
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
    seen = infer_clip(model, shown_clip(preset).observation)
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


def lasting(model: SCALOR, preset: str) -> Picture:
    """Draw two samples of 30 frames after five observed ones, and a scene from scratch, to see how looks last."""
    clip = shown_clip(preset, OBSERVE)
    shown = [OBSERVE - 1 + ahead for ahead in (0, 1, 5, 10, 20, LASTING)]
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        futures = [model.generate(clip.observation, OBSERVE, LASTING) for _ in range(2)]
        dream = model.imagine(OBSERVE + LASTING)
    films = {**{f"sample {i + 1}": future for i, future in enumerate(futures)}, "from scratch": dream}
    rows = {
        name: enlarged(to_bytes(film.frames[0]), enlargement(film.tracks, len(shown))) for name, film in films.items()
    }
    return frames_of(rows, shown)


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
    seen = infer_clip(model, shown_clip(preset).observation)
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
    seen = infer_clip(model, clip.observation)
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
            models[preset] = checkpoint.load_tracker(training.folder / checkpoint.MODEL_FILE, device)
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
    "lasting-shapes-md": of_model("shapes-md", lasting),
    "lasting-mnist-md": of_model("mnist-md", lasting),
    "balls": of_model("balls-two-layer", conditional),
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
    "replay-learned": of_model("grand-central-replay", background),
    "prediction": of_results(prediction_curves),
}
