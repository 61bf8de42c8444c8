"""Fit a model to one's own videos: refine universal weights, or train from random weights.

>>> run = scalor.fit("ants.mp4", out="runs/ants", minutes=10)
>>> tracks = scalor.track("ants.mp4", weights=run)

`prepare` reads the videos and chooses the settings; `Preparation.train` trains, and keeps the better weights.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
import torch
from numpy.typing import ArrayLike

from scalor import checkpoint
from scalor.checkpoint import StrPath
from scalor.config import FPS, Config
from scalor.errors import InputError
from scalor.files import as_json, open_folder
from scalor.fitting import refine, scratch
from scalor.fitting.options import FitOptions, PreparedTraining
from scalor.fitting.refine import LabelFreeScore, label_free_score
from scalor.nn import ranks
from scalor.pipeline import load_for
from scalor.settings import with_values
from scalor.systems import config_from_dict
from scalor.tracking.video_view import look_at
from scalor.training.folder import write_text
from scalor.training.loop import train
from scalor.video import Selection, open_video

CHOSEN_FILE = "chosen.json"
"""File in the run folder with the videos, the part of them and the settings."""
MIN_GAIN = 0.01
"""Smallest gain of the label-free score for which refined weights are kept. Smaller differences are noise."""

ARRAY_FILE = "video.npy"
"""File in the run folder with the video, if it was given as an array."""

Change: TypeAlias = Callable[[Config], Config]
Videos: TypeAlias = str | Path | Sequence[str | Path] | ArrayLike


@dataclass(frozen=True)
class Comparison:
    """The refined weights compared with the initial ones on the first video, without labels."""

    before: LabelFreeScore
    after: LabelFreeScore
    start: str
    """Name of the initial weights."""

    @property
    def better(self) -> bool:
        """Whether the refined weights are clearly better. If not, the run folder holds the initial ones."""
        return self.after.total > self.before.total + MIN_GAIN

    def to_dict(self) -> dict[str, object]:
        """Return both scores, and `refined` or the name of the initial weights, for JSON."""
        kept = "refined" if self.better else self.start
        return {"before": vars(self.before), "after": vars(self.after), "kept": kept}


@dataclass(frozen=True)
class Fitted(os.PathLike[str]):
    """A finished or stopped fit. It can be given wherever weights are expected.

    Examples
    --------
    >>> run = scalor.fit("ants.mp4", out="runs/ants")
    >>> tracks = scalor.track("ants.mp4", weights=run)
    """

    folder: Path
    """The run folder."""
    config: Config
    step: int
    """Number of training steps."""
    seconds: float
    """Time of the training."""
    stopped: int | None
    """Number of the signal that stopped the training; None if it is complete."""
    compared: Comparison | None
    """The comparison of a refinement with the initial weights; None if there was none."""

    def __fspath__(self) -> str:
        return str(self.folder)


@dataclass(frozen=True)
class Preparation:
    """A fit that is ready to train."""

    folder: Path
    device: torch.device
    config: Config
    videos: tuple[str, ...]
    part: Selection
    """Part of the videos to learn from."""
    fps: float
    prepared: PreparedTraining | None
    """What was measured in the videos; None if the fit is resumed, and in all ranks but the first."""

    def train(self, quiet: bool = False) -> Fitted:
        """Train until the end or a stop signal, then keep the better of the refined and the initial weights."""
        resume = (self.folder / checkpoint.RESUME_FILE).exists()
        result = train(self.config, self.folder, self.device, resume, quiet)
        compared = None
        if self.config.train.start and not result.stopped and ranks.is_first():
            compared = self._keep_the_better()
        return Fitted(self.folder, self.config, result.step, result.seconds, result.stopped, compared)

    def _keep_the_better(self) -> Comparison:
        """Compare the refined weights with the initial ones, and write the better ones to the run folder."""
        start, scene = self.config.train.start, self.config.scene
        part = Selection(self.part.region, self.part.start, self.part.end, scene.stride)
        view = look_at(open_video(self.videos[0], part, self.fps), scene.object_size)
        before, after = (
            label_free_score(view, load_for(view, weights, self.device)) for weights in (start, self.folder)
        )
        compared = Comparison(before, after, start)
        if not compared.better:
            checkpoint.copy_weights(start, self.folder / checkpoint.MODEL_FILE, self.config)
        return compared


def fit(
    video: Videos,
    out: str | Path | None = None,
    minutes: float | None = None,
    *,
    steps: int | None = None,
    weights: StrPath | None = None,
    scratch: bool = False,
    object_size: tuple[float, float] | None = None,
    scale: float | None = None,
    stride: int | None = None,
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    fps: float | None = None,
    settings: Mapping[str, object] | None = None,
    resume: bool = False,
    device: str | torch.device = "auto",
    quiet: bool = False,
) -> Fitted:
    """Refine universal weights on your own videos, or train from random weights, as the command `scalor fit` does.

    Parameters
    ----------
    video : str, Path, list of them, or array
        One or more videos of one size, as for `scalor.track`. An array is written to the run folder.
    out : str or Path, optional
        The run folder. Default: `runs/` and the name of the first video. An array has no name, so it needs one.
    minutes : float, optional
        Time of the refinement. Default: 10.
    steps : int, optional
        Number of training steps, instead of `minutes`.
    weights : str or Path, optional
        Universal weights, or a run folder of an earlier fit, to start from. Default: `any`.
    scratch : bool, default False
        Train from random weights, as the paper does. It takes hours on a CPU.
    object_size : tuple of float, optional
        Typical height and width of an object, pixels of the video. Default: measured.
    scale : float, optional
        With `scratch`: shrink or enlarge the video by this factor. Default: by the size of the objects.
    stride : int, optional
        Learn from every n-th frame. Default: all; with `scratch` by the speed of the objects.
    region, start, end, fps
        The part of the videos to learn from, as for `scalor.track`.
    settings : mapping, optional
        Values of any settings by their dotted names, such as `{"train.batch": 4}`.
    resume : bool, default False
        Continue the run in the folder `out`.
    device : str, default "auto"
        `cpu`, `cuda`, `cuda:1`, or `auto` (the GPU if there is one, otherwise the CPU).
    quiet : bool, default False
        Hide the progress bars.

    Returns
    -------
    Fitted
        The run folder and the outcome. It can be given wherever weights are expected.

    Raises
    ------
    InputError
        If a video cannot be read, if parameters exclude each other, or if the folder holds a run already.

    Examples
    --------
    >>> run = scalor.fit("ants.mp4", out="runs/ants", minutes=10)
    >>> tracks = scalor.track("ants.mp4", weights=run)
    """
    options = FitOptions(
        minutes=minutes,
        steps=steps,
        weights=weights,
        scratch=scratch,
        object_size=object_size,
        scale=scale,
        stride=stride,
    )
    part = Selection(region, start, end)

    def change(config: Config) -> Config:
        return with_values(config, settings or {})

    if resume:
        given = {**vars(options), "region": region, "start": start, "end": end, "fps": fps}
        check_resumed([*(settings or {}), *(name for name, value in given.items() if is_given(value))])
        ready = resumed(folder_for(video, out), device)
    else:
        fps = FPS if fps is None else fps
        files = as_files(video, folder_for(video, out), fps)
        ready = prepare(files, out, options, part, fps, change, device, quiet)
    return ready.train(quiet)


def prepare(
    videos: Sequence[str],
    out: str | Path | None,
    options: FitOptions,
    part: Selection,
    fps: float,
    change: Change,
    device: str | torch.device = "auto",
    quiet: bool = False,
) -> Preparation:
    """Read the videos, choose the settings, and write both to a new run folder.

    `change` applies the user's own settings to the chosen ones. See `fit` for the other parameters.
    The first rank reads and writes for all, and all of them together time the steps.
    """
    folder = folder_for(videos, out)
    chosen_device = checkpoint.pick_device(device)
    prepared = None
    with ranks.all_or_none(chosen_device):
        if ranks.is_first():
            claim(folder)
            if options.scratch:
                prepared = scratch.prepare(videos, folder, part, options, fps, change, quiet)
            else:
                prepared = refine.prepare(videos, folder, part, options, fps, chosen_device, change, quiet)
    found = ranks.from_first(None if prepared is None else (prepared.config, prepared.seconds))
    assert found is not None  # the first rank has prepared the fit
    config = refine.planned(*found, chosen_device, change)
    if prepared is not None:
        prepared = replace(prepared, config=config)
        document = {
            "videos": list(videos),
            "part": {"region": part.region, "start": part.start, "end": part.end, "fps": fps},
            "config": config.to_dict(),
        }
        write_text(folder / CHOSEN_FILE, as_json(document))
    return Preparation(folder, chosen_device, config, tuple(videos), part, fps, prepared)


def resumed(folder: Path, device: str | torch.device = "auto") -> Preparation:
    """Return a run of `fit` to continue, with the settings it began with."""
    chosen = folder / CHOSEN_FILE
    if not chosen.exists():
        raise InputError(f"folder {folder} holds no run to resume: leave --resume out, or correct --out.")
    document = json.loads(chosen.read_text())
    part = document.get("part", {})  # older runs have none
    region = part.get("region")
    selection = Selection(None if region is None else tuple(region), part.get("start"), part.get("end"))
    config = config_from_dict(document["config"])
    videos = tuple(document["videos"])
    return Preparation(
        folder, checkpoint.pick_device(device), config, videos, selection, part.get("fps", FPS), prepared=None
    )


def is_given(value: object) -> bool:
    """Return whether the user gave an option: the defaults are None and, of switches, False."""
    return value is not None and value is not False


def check_resumed(given: Sequence[str]) -> None:
    """Raise InputError if any setting is given for a run to continue."""
    if given:
        raise InputError(f"{given[0]} is given with --resume: a resumed run keeps its settings, so leave it out.")


def claim(folder: Path) -> None:
    """Create a run folder, or raise InputError if it holds a run already."""
    if (folder / CHOSEN_FILE).exists():
        raise InputError(f"folder {folder} holds a run: continue it with --resume or choose another with --out.")
    open_folder(folder)


def as_files(video: Videos, folder: Path, fps: float) -> list[str]:
    """Return the files of the videos. An array is written to the run folder, so that the fit can be resumed."""
    if isinstance(video, str | Path):
        return [str(video)]
    if are_paths(video):
        return [str(one) for one in video]
    open_video(cast(ArrayLike, video), fps=fps)  # raises InputError for anything but a video
    claim(folder)
    np.save(folder / ARRAY_FILE, np.asarray(video))
    return [str(folder / ARRAY_FILE)]


def folder_for(video: Videos, out: str | Path | None) -> Path:
    """Return the run folder. Default: `runs` and the name of the first video."""
    if out is not None:
        return Path(out)
    if isinstance(video, str | Path):
        return Path("runs") / name_of(str(video))
    if are_paths(video):
        return Path("runs") / name_of(str(video[0]))
    raise InputError("out is not given: a fit to an array has no name; give the folder of the run.")


def are_paths(video: Any) -> TypeGuard[Sequence[str | Path]]:
    """Return whether these are several paths, not an array."""
    return isinstance(video, list | tuple) and bool(video) and all(isinstance(one, str | Path) for one in video)


def name_of(video: str) -> str:
    """Return the name of a run: that of the video, or for a pattern that of its folder."""
    path = Path(video)
    name = path.parent.name if any(sign in path.name for sign in "*?[") else path.stem
    if not name or name == "..":
        raise InputError(f"video is {video!r}, which gives the run no name: choose its folder with --out.")
    return name
