"""Stretches: one long video is tracked in overlapping parts by several workers, and the parts are joined.

>>> found = track_in_stretches("long.mp4", "tracked", stretches=4, workers=Workers(2))

Every worker measures the whole video (camera, background, objects), so all see the same scene, and then tracks its own
stretch. At last the ids are joined across the seams (`seams`), and one pass over the video writes the result folder.
"""

import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from scalor.errors import InputError
from scalor.files import open_folder
from scalor.many.run import run_jobs
from scalor.many.seams import Joined, join_stretches
from scalor.many.tracking_task import key_of
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, Tell
from scalor.many.workers import ALL_CORES, Workers
from scalor.outputs.mask_files import decode, encode
from scalor.pipeline import TrackedVideo, TrackingMethod, track_to_folder
from scalor.snapshots import read_snapshot, write_snapshot
from scalor.still.still_background import StillBackground
from scalor.tracker_choice import TrackerChoice
from scalor.tracking.follow import FrameMaker, Step, Streaming, follow, lens_of
from scalor.tracking.video_view import VideoView, look_at
from scalor.tracks import Tracks, join_tracks
from scalor.video.reading import Video, open_video
from scalor.video.sources import Selection
from scalor.video.stretch import VideoStretch

SHARED = 120
"""StretchTracks frames that neighbouring stretches share, half of them on each side of the seam."""
FOLDER = ".stretches"
"""Folder inside the result folder for the stretches. It is deleted at the end."""
CHOICE = ("weights", "object_size", "slots", "masks", "raw", "device")
PART = ("region", "start", "end")


@dataclass(frozen=True)
class StretchTracks:
    """The tracks of a stretch."""

    frame: Int[np.ndarray, " T"]
    """Numbers of its frames."""
    dropped: Int[np.ndarray, " T"]
    """Detections in each frame for which no slot was left."""
    tracks: Tracks
    """Tracks in pixels of the steady video, without masks."""
    masks: list[str] | None
    """The mask of each row, as `mask_files.encode` writes it."""


def track_in_stretches(
    video: str,
    out: str | Path,
    stretches: int,
    workers: Workers = ALL_CORES,
    quiet: bool = False,
    restart: bool = False,
    **options: Any,
) -> TrackedVideo:
    """Track one long video in overlapping stretches, several at the same time, into one result folder.

    Stretches that are complete are kept if the run is stopped, and the same call resumes the run.

    Parameters
    ----------
    video : str
        A video file, a folder or pattern of images, a TIFF stack, or a .npy or .npz file.
    out : str or Path
        Folder for the results.
    stretches : int
        Number of stretches. Each needs at least 120 frames.
    workers : Workers
        As for `track_many`.
    quiet : bool, default False
        Hide the progress.
    restart : bool, default False
        Start from the first frame, even if a stopped run could be resumed.
    **options
        Further arguments of `scalor.track_to_folder`.

    Returns
    -------
    TrackedVideo
        As `scalor.track_to_folder` returns it; `seconds` is the time of everything.

    Examples
    --------
    >>> found = track_in_stretches("long.mp4", "tracked", stretches=4, workers=Workers(2))
    >>> found.summary.objects
    """
    begun = time.monotonic()
    times = times_of(opened(video, options), stretches)
    folder = open_folder(out) / FOLDER
    jobs = [
        VideoJob(f"{number:04}", video, {**options, "times": times, "number": number}) for number in range(stretches)
    ]
    outcomes = run_jobs(STRETCH, jobs, open_folder(folder), workers, restart, quiet, "stretches")
    for one in outcomes:
        if one.state == "failed":
            raise InputError(f"stretch {one.name} of {video} failed: {one.reason}")
    method = TrackingMethod(f"in {stretches} stretches", Rejoining(folder, tuple(times[1:-1])))
    found = track_to_folder(video, out, quiet=quiet, restart=restart, method=method, **options)
    shutil.rmtree(folder)
    return replace(found, seconds=time.monotonic() - begun)


def opened(video: str, options: Mapping[str, Any]) -> Video:
    """Return the video with the part of it that is tracked."""
    choice = choice_of(options)
    part = Selection(**{name: options.get(name) for name in PART}, stride=options.get("stride") or choice.stride)
    return open_video(video, part, **({"fps": options["fps"]} if "fps" in options else {}))


def choice_of(options: Mapping[str, Any]) -> TrackerChoice:
    """Return the tracker that options name."""
    return TrackerChoice(**{"weights": "any", **{name: options[name] for name in CHOICE if name in options}})


def times_of(video: Video, stretches: int) -> list[float]:
    """Return the times in seconds at which stretches begin and the last one ends."""
    frames = video.frames
    if frames is None:
        raise InputError(f"{video.name} does not tell how long it is: leave --stretches out, or convert it to .mp4.")
    if frames < stretches * SHARED:
        raise InputError(
            f"stretches is {stretches} and {video.name} has {frames} frames to track: each stretch needs {SHARED}, so "
            f"give {max(1, frames // SHARED)} at most."
        )
    length = frames * video.selection.stride / video.fps
    start = video.selection.start or 0.0
    return [start + length * number / stretches for number in range(stretches + 1)]


def track_stretch(job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    """Track a stretch into a file; return the facts of its outcome."""
    import torch

    torch.set_num_threads(1)  # the results must not depend on the number of workers
    options = dict(job.options)
    times, number = options.pop("times"), options.pop("number")
    video, choice = opened(job.video, options), choice_of(options)
    view = look_at(video, choice.object_size, camera_may_move=choice.still)
    margin = SHARED / 2 * video.selection.stride / video.fps
    begins = times[number] - margin if number else times[0]
    stops = times[number + 1] + margin if number + 2 < len(times) else None
    part = VideoStretch(video, begins, stops)
    frames, dropped, rows, masks = [], [], [], []
    for step in follow(choice.load(view), replace(view, video=part), choice.masks, choice.raw):
        frames.append(step.frame.index)
        dropped.append(step.in_view.dropped)
        masks += [] if step.in_view.masks is None else [encode(mask) for mask in step.in_view.masks]
        rows.append(replace(step.in_view, masks=None).at(step.frame.index, step.frame.seconds))
        tell(len(frames), part.frames)
    tracks = join_tracks(rows)
    kept = StretchTracks(np.array(frames), np.array(dropped), tracks, masks if choice.masks else None)
    write_snapshot(file_of(job, out), {"stretch": job.name}, kept)
    return {"frames": len(frames), "objects": len(np.unique(tracks.id)), "rows": len(tracks)}


def file_of(job: VideoJob, out: Path) -> Path:
    """Return the file with the tracks of a stretch."""
    return out / f"{job.name}.stretch"


def products_of(job: VideoJob, out: Path) -> list[Path]:
    """Return the file with the tracks of a stretch."""
    return [file_of(job, out)]


STRETCH = Task("records", key_of, track_stretch, products_of)


@dataclass(frozen=True)
class Rejoining:
    """The tracking method in which the tracks come from the files of stretches."""

    folder: Path
    seams: tuple[float, ...]

    def __call__(self, tracker: Streaming, view: VideoView, masks: bool, raw: bool) -> "JoinedSteps":
        """Return the steps of the whole video."""
        paths = [self.folder / f"{number:04}.stretch" for number in range(len(self.seams) + 1)]
        parts: list[StretchTracks] = [read_snapshot(path, [StretchTracks, Tracks]) for path in paths]
        return JoinedSteps(
            tracker, view, parts, join_stretches([part.tracks for part in parts], self.seams), self.seams
        )


class JoinedSteps:
    """The frames of a video with the tracks of its stretches: what `TrackingPass` yields, without its model."""

    def __init__(
        self, tracker: Streaming, view: VideoView, parts: list[StretchTracks], joined: Joined, seams: tuple[float, ...]
    ) -> None:
        self.view, self.parts, self.joined = view, parts, joined
        self.seams = seams
        self.look = FrameMaker(view, lens_of(tracker, view))
        self.dropped = [dict(zip(part.frame.tolist(), part.dropped.tolist(), strict=True)) for part in parts]
        self.seen = 0

    def __iter__(self) -> Iterator[Step]:
        for number, frame in enumerate(self.view.video.whole_frames()):
            if number < self.seen:
                continue
            self.look(self.view.picture(frame))
            self.seen += 1
            part = int(np.searchsorted(self.seams, frame.seconds, side="right"))
            tracks = replace(self.tracks_at(frame.index), dropped=self.dropped[part].get(frame.index, 0))
            yield Step(frame, self.view.to_frame(tracks, frame), tracks, self.look.foreground, self.look.brighter)

    def tracks_at(self, frame: int) -> Tracks:
        """Return the tracks of a frame, with their masks if there are any."""
        whole = self.joined.tracks
        first, last = np.searchsorted(whole.frame, [frame, frame + 1])
        tracks = whole.select(np.arange(first, last))
        if self.parts[0].masks is None:
            return tracks
        masks = np.zeros((len(tracks), *tracks.size), bool)
        for mask, (part, row) in zip(masks, self.joined.origin[first:last].tolist(), strict=True):
            mask[:] = decode((self.parts[part].masks or [])[row], tracks.size)
        return replace(tracks, masks=masks)

    def save(self) -> dict[str, Any]:
        """Return the state after the last step."""
        look = self.look
        lights = [one.light for one in self.backgrounds()]
        values = {"brightness": look.brightness, "foreground": look.foreground, "brighter": look.brighter}
        return {"seen": self.seen, "lights": lights, **values}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `save` returned."""
        self.seen = state["seen"]
        for background, light in zip(self.backgrounds(), state["lights"], strict=True):
            background.light = light
        self.look.brightness, self.look.foreground = state["brightness"], state["foreground"]
        self.look.brighter = state["brighter"]

    def backgrounds(self) -> list[StillBackground]:
        """Return the backgrounds that follow the light from frame to frame."""
        return [one for one in (self.look.lens.behind, self.look.background) if one is not None]
