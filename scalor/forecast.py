"""Forecast how a video of a camera that stands still continues: used by the command line and by `import scalor`.

>>> future = scalor.predict("ants.mp4", seconds=1)
>>> future.frames.shape, future.tracks
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from scalor.checkpoint import StrPath
from scalor.config import FPS
from scalor.data.observation import Observation
from scalor.errors import InputError, require
from scalor.model.scalor import SCALOR
from scalor.nn.distributions import Mode
from scalor.nn.interface import Model, Rollout
from scalor.outputs import ResultFolder
from scalor.provenance import provenance_of
from scalor.tracker_choice import TrackerChoice, load_sized
from scalor.tracking.follow import scene_of
from scalor.tracking.video_view import Lens, lens_for, look_at
from scalor.tracks import Tracks, join_tracks
from scalor.video.reading import Video, open_video
from scalor.video.sources import Frame, Selection
from scalor.visual.colors import label_picture
from scalor.visual.overlay import overlay
from scalor.visual.strips import save_png, strip, to_bytes

SHOWN = 5
"""Largest number of observed frames in the strip, and of generated frames."""
ENLARGED = 200
"""Approximate longer side of a frame in the strip, pixels."""
MOST_AHEAD, MOST_BYTES = 10_000, 1 << 32
"""Largest number of generated frames, and their largest size."""


@dataclass(frozen=True)
class Prediction:
    """The last observed frames of a video and those that a model generated after them. T is the number of both.

    Attributes
    ----------
    frames : uint8 array [T, H, W, 3]
        The observed frames, then the generated ones, in pixels of the video.
    observed : int
        Number of observed frames.
    seconds : float array [T]
        Time of each frame in the video.
    index : int array [T]
        Number of each frame in the video, from 0.
    tracks : Tracks
        The objects in all frames, in pixels of the video. `tracks.frame` has the numbers in `index`.

    Examples
    --------
    >>> prediction = scalor.predict("walkers.mp4", seconds=1)
    >>> future = prediction.tracks.select(prediction.tracks.frame >= prediction.index[prediction.observed])
    """

    frames: UInt8[np.ndarray, "T H W 3"]
    observed: int
    seconds: Float[np.ndarray, " T"]
    index: np.ndarray
    tracks: Tracks
    _parts: "PredictionParts"

    @property
    def future(self) -> UInt8[np.ndarray, "t H W 3"]:
        """The generated frames alone."""
        future: np.ndarray = self.frames[self.observed :]
        return future

    def strip(self) -> UInt8[np.ndarray, "h w 3"]:
        """Return a picture of the last observed and first generated frames.

        Its rows are the ground truth (if the video is long enough), the rendering, the background and the masks.

        Examples
        --------
        >>> picture = scalor.predict("ants.mp4").strip()
        """
        return draw_strip(self._parts)

    def save(self, folder: str | Path, facts: Mapping[str, object] | None = None) -> tuple[Path, ...]:
        """Write all result files of the observed and generated frames, and `strip.png`; return the result files.

        Parameters
        ----------
        folder : str or Path
            The folder. It is created if necessary.
        facts : mapping, optional
            Origin of the results, for the report. Default: video, weights, command, commit and date.

        Examples
        --------
        >>> scalor.predict("ants.mp4", seconds=2).save("predicted")
        """
        parts = self._parts
        last = self.frames[self.observed - 1]
        size, selection = self.tracks.size, parts.video.selection
        with ResultFolder(
            folder, size, parts.video.fps, stride=selection.stride, facts=facts or parts.facts, scene=last
        ) as results:
            rows = zip(self.frames, self.seconds.tolist(), self.index.tolist(), strict=True)
            for t, (picture, seconds, index) in enumerate(rows):
                tracks = self.tracks.select(self.tracks.frame == index)
                results.add(picture, seconds, index, tracks, predicted=t >= self.observed)
        save_png(Path(folder) / "strip.png", self.strip())
        return results.summary.files


@dataclass(frozen=True)
class PredictionParts:
    """The inputs of a prediction, and what the model generated from them."""

    video: Video
    lens: Lens
    seen: list[Frame]
    """The observed frames."""
    truth: list[Frame]
    """The frames after them, as far as the video has them."""
    rollout: Rollout
    """The rendering of all frames, in pixels of the model's frames."""
    facts: dict[str, str]


def predict(
    video: str | Path | ArrayLike,
    weights: StrPath | Model = "any",
    seconds: float = 1.0,
    sample: bool = False,
    *,
    at: float | None = None,
    observe: int = 5,
    seed: int = 0,
    region: tuple[int, int, int, int] | None = None,
    start: float | None = None,
    end: float | None = None,
    stride: int | None = None,
    fps: float = FPS,
    slots: int | None = None,
    device: str | torch.device = "auto",
) -> Prediction:
    """Generate the continuation of a video, as the command `scalor predict` does. The camera must stand still.

    Parameters
    ----------
    video : str, Path or array
        As for `scalor.track`.
    weights : str, Path or Model, default "any"
        A shipped name, a run folder, a checkpoint file or a loaded model; of a SCALOR.
    seconds : float, default 1
        How much to generate.
    sample : bool, default False
        Draw one of the possible futures at random. By default, the most likely one is returned.
    at : float, optional
        Time from which on to generate; the frames before it are observed. Default: the end of the video.
    observe : int, default 5
        Number of frames to observe.
    seed : int, default 0
        Seed of the random numbers.
    region, start, end, stride, fps, slots, device
        As for `scalor.track`.

    Returns
    -------
    Prediction
        The observed and generated frames and their tracks.

    Raises
    ------
    InputError
        If the video or the weights cannot be read, if the video has too few frames, or if its camera moves.

    Examples
    --------
    >>> future = scalor.predict("ants.mp4", seconds=2)
    >>> future.save("predicted")
    >>> others = [scalor.predict("ants.mp4", sample=True, seed=seed) for seed in range(3)]
    """
    require(0 < seconds < float("inf"), "seconds", seconds, "give a time above 0")
    require(observe >= 1, "observe", observe, "give a number of frames from 1")
    choice = TrackerChoice(weights, slots=slots, device=device)
    if choice.classical:
        raise InputError(
            f"weights is {choice.name!r}: a classical tracker generates nothing; give weights of a SCALOR."
        )
    opened = open_video(video, Selection(region, start, end, choice.stride if stride is None else stride), fps)
    horizon = frames_ahead(opened, seconds)
    seen, truth = split_frames(opened, at, observe, horizon)
    view = look_at(opened)
    if view.camera is not None and view.camera.moves:
        raise InputError(
            f"the camera of {opened.name} moves, and predictions need a camera that stands still: choose a part in "
            "which it does, with --start and --end."
        )
    model = load_sized(view, weights, device, slots)
    if not isinstance(model, SCALOR):
        raise InputError(f"weights {choice.name} are of a {model.config.system}: give weights of a SCALOR.")
    lens = lens_for(view, model.config, scene_of(model))
    torch.manual_seed(seed)
    frames = Observation.stack([lens.to_frame(frame.picture) for frame in seen])
    rollout = model.generate(frames, len(seen), horizon, estimator=None if sample else Mode(), masks=True)
    name = str(video) if isinstance(video, str | Path) else opened.name
    facts = provenance_of(name, choice.name) | {"frames": f"{len(seen)} observed, then {horizon} predicted"}
    if truth:
        facts["background"] = "estimated from the whole video, frames after the observed ones included"
    return in_video_pixels(PredictionParts(opened, lens, seen, truth, rollout, facts))


def frames_ahead(video: Video, seconds: float) -> int:
    """Return the number of frames of a time ahead. Raise InputError if they do not fit into memory."""
    rate = video.fps / video.selection.stride
    most = min(MOST_AHEAD, MOST_BYTES // (3 * math.prod(video.full_size))) / rate
    require(seconds <= most, "seconds", seconds, f"give at most {most:.6g}, for all frames are held in memory")
    return max(1, round(seconds * rate))


def in_video_pixels(parts: PredictionParts) -> Prediction:
    """Return a prediction in pixels of the video."""
    frames = list(all_frames(parts))
    tracks = [
        parts.lens.to_original(replace(parts.rollout.tracks.select(parts.rollout.tracks.frame == t), masks=None)).at(
            frame.index, frame.seconds
        )
        for t, frame in enumerate(frames)
    ]
    return Prediction(
        np.stack([frame.picture for frame in frames]),
        len(parts.seen),
        np.array([frame.seconds for frame in frames]),
        np.array([frame.index for frame in frames]),
        join_tracks(tracks),
        parts,
    )


def split_frames(video: Video, at: float | None, observe: int, horizon: int) -> tuple[list[Frame], list[Frame]]:
    """Return the last `observe` frames before the second `at`, and at most `horizon` true frames after it.

    `at` None means the end of the video.
    """
    seen: deque[Frame] = deque(maxlen=observe)
    frames = video.whole_frames()
    truth: list[Frame] = []
    for frame in frames:
        if at is not None and frame.seconds >= at:
            truth = [frame, *islice(frames, horizon - 1)]
            break
        seen.append(frame)
    if len(seen) < observe:
        raise InputError(
            f"--observe is {observe}: {video.name} has {len(seen)} frames before {'its end' if at is None else at}; "
            "choose fewer, or a later --at."
        )
    return list(seen), truth


def all_frames(parts: PredictionParts) -> Iterator[Frame]:
    """Yield the observed frames, then the generated ones in pixels of the video."""
    yield from parts.seen
    last, step = parts.seen[-1], parts.video.selection.stride
    for ahead, drawn in enumerate(parts.rollout.frames[0, len(parts.seen) :], 1):
        picture = parts.lens.to_picture(drawn, last.picture)
        yield Frame(picture, last.index + ahead * step, last.seconds + ahead * step / parts.video.fps)


def draw_strip(parts: PredictionParts) -> UInt8[np.ndarray, "h w 3"]:
    """Draw the last observed and first generated frames: ground truth, rendering, background and masks."""
    seen, rollout = parts.seen, parts.rollout
    observed, horizon = min(SHOWN, len(seen)), min(SHOWN, rollout.frames.shape[1] - len(seen))
    shown = slice(len(seen) - observed, len(seen) + horizon)
    frames = rollout.frames[0, shown]
    tracks = rollout.tracks
    tracks = tracks.select((tracks.frame >= shown.start) & (tracks.frame < shown.stop))
    labels = np.full((len(frames), *tracks.size), -1)
    assert tracks.masks is not None
    for row in range(len(tracks)):
        labels[tracks.frame[row] - shown.start][tracks.masks[row]] = tracks.id[row]
    scale = max(1, ENLARGED // max(tracks.size))
    real = [parts.lens.to_frame(frame.picture).image for frame in [*seen[-observed:], *parts.truth[:horizon]]]
    rows = {
        "imagined": overlay(frames.cpu().numpy(), tracks, scale=scale, labels=False, first=shown.start),
        "picture": to_bytes(frames),
        "background": to_bytes(rollout.background[0, shown]),
        "masks": label_picture(labels),
    }
    if len(real) == len(frames):
        rows = {"truth": to_bytes(torch.stack(real)), **rows}
    return strip(rows, separator_after=observed)
