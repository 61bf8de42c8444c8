"""`ResultFolder`: the writer of all result files of a video."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from heapq import nlargest
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from jaxtyping import UInt8

from scalor.errors import InputError
from scalor.files import open_folder
from scalor.health import Health
from scalor.outputs.about import About, video_path
from scalor.outputs.films import EvenSample, OverlayFilm, jpeg, label_frame, mark_predicted
from scalor.outputs.html_report import HtmlReport
from scalor.outputs.mask_files import CocoFile, LabelTiff, encode
from scalor.outputs.resuming import SNAPSHOT, Resumption
from scalor.outputs.tables import ParquetTable, TrackedFrame, TrackTables, mean_counts, write_napari
from scalor.outputs.trajectories import ObjectPaths, TrackSummary, Trajectories, summarise_track
from scalor.replacement import replacing_together
from scalor.snapshots import read_snapshot, write_snapshot
from scalor.tracks import Tracks
from scalor.video import VideoWriter
from scalor.video.segments import SegmentedFilm
from scalor.viewer import writing
from scalor.viewer.chunks import TrackIndex, TrackSpan
from scalor.viewer.writing import ViewerWriter
from scalor.visual.plots import Line, Panel, save_plot
from scalor.visual.strips import save_png

FILES = {
    "report.html": "this page",
    "overlay.mp4": "the video with boxes, ids and trails; a white dot marks the first frame of a track, a red border "
    "a predicted frame",
    "tracks.csv": "one row per object and frame: frame in the original video (from 0), seconds, id (from 1), box x0 y0 "
    "x1 y1 and centre x y in pixels of the original video, confidence (0 to 1), discovered (1 in the first frame of a "
    "track)",
    "tracks.parquet": "the same columns, in full precision",
    "tracks_mot.txt": "MOTChallenge text: frame and id (from 1), left, top, width, height, confidence, -1, -1, -1",
    "tracks_napari.csv": "for napari's Tracks layer: track_id, t (frame in the original video), y, x, by id and t",
    "masks.json": "every object's pixels in COCO format (run lengths); image_id is the frame, track_id the object",
    "labels.tif": "one page per frame, lossless: a pixel's value is the id of the object it shows, 0 the background",
    "labels.mp4": "the same in colours, to look at",
    "counts.csv": "one row per frame: frame, seconds, objects in view",
    "counts.png": "objects in view over time",
    "trajectories.png": "the paths of all objects over a picture of the scene",
    "results.json": "facts about the results for other programs: size and rate of the video, command, date, health",
    "report_viewer": "folder of what the player of this page shows: a small video, boxes and masks",
}
"""Every file and folder that a result folder may hold, with the description that the report shows."""
SEGMENTS = "segments"
"""Folder for the segments of films, inside the hidden folder."""
KEPT = ("scene", "_frames", "_first_seconds", "_last_index", "_last_seconds")
"""Attributes of a `ResultFolder` that a snapshot holds."""
TABLE_TRACKS = 10
"""Number of tracks in the report's table of longest tracks."""
EMBEDDED_WIDTH = 1280
"""Largest width, in pixels, of the trajectories picture inside the report."""


@dataclass(frozen=True)
class Summary:
    """Summary of the contents of a result folder."""

    folder: Path
    frames: int
    objects: int
    """Number of ids."""
    rows: int
    """Number of objects, summed over frames."""
    files: tuple[Path, ...]


class ResultFolder:
    """Writer of the result files of one video, frame by frame, in memory that does not grow with its length.

    It is a context manager. The files appear together when the block ends without an error. Until then, and if the
    block fails, the folder keeps its earlier files.

    Parameters
    ----------
    path : str or Path
        Folder for the results. It is created if necessary.
    size : tuple of int
        Height and width of the original video.
    fps : float
        Frames per second of the original video.
    stride : int
        Number of original frames per frame added.
    masks : bool
        Whether to write masks as well. All tracks must then hold masks.
    scene : array, optional
        Picture to draw paths on, such as the background. By default, the first frame.
    facts : mapping, optional
        Origin of the results (video, command, weights, date), for the report and masks.json.
    inputs : iterable of str or Path, optional
        Files, folders or patterns of images that the run reads; results never replace them.
    resume : Resumption, optional
        How to resume a stopped run. By default, a stopped run leaves nothing.

    Examples
    --------
    >>> with ResultFolder("tracked", size=(480, 640), fps=25) as results:
    ...     for frame, tracks in ...:
    ...         results.add(frame.picture, frame.seconds, frame.index, tracks)
    >>> results.summary.objects
    """

    def __init__(
        self,
        path: str | Path,
        size: tuple[int, int],
        fps: float,
        *,
        stride: int = 1,
        masks: bool = False,
        scene: UInt8[np.ndarray, "H W 3"] | None = None,
        facts: Mapping[str, object] | None = None,
        inputs: Iterable[str | Path] = (),
        resume: Resumption | None = None,
    ) -> None:
        if not 0 < fps < float("inf") or stride < 1:
            raise InputError(f"fps is {fps} and stride is {stride}: give a rate above 0 and a stride from 1.")
        if scene is not None and scene.shape != (*size, 3):
            raise InputError(f"scene has shape {list(scene.shape)}: give a uint8 picture of shape {[*size, 3]}.")
        self.folder = open_folder(path)
        self.size = size
        self.fps = fps / stride
        self.stride = stride
        self.masks = masks
        self.scene = scene
        self.facts = dict(facts or {})
        self._inputs = [Path(path) for path in inputs]
        self.resume = resume
        self.saved: Any = None
        """State that `save` got in a run that was stopped, after the block has begun; None for a new run."""
        self.health: Health | None = None
        """Health of the tracks, for the report: how far they can be trusted. Set it before the block ends."""
        self._stack = ExitStack()
        self._summary: Summary | None = None

    @property
    def summary(self) -> Summary:
        """Summary of the files; available after the block has ended."""
        assert self._summary is not None, "the results are not complete yet"
        return self._summary

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            keep = None if self.resume is None else SNAPSHOT
            if self.resume is not None:
                self.resume.prepare(self.folder)
            partial = stack.enter_context(replacing_together(self.folder, FILES, self._inputs, keep))
            self._partial = partial
            before: dict[str, Any] = {}
            if self.resume is not None and (partial / SNAPSHOT).exists():
                before = read_snapshot(partial / SNAPSHOT, [Tracks, TrackIndex, TrackSpan, *self.resume.classes])
                self.saved, self.facts = before["caller"], before["facts"]
            # The stack is closed in reverse order: first the files below are closed, then `_finish` adds its own, then
            # all files are moved into place.
            stack.push(self._finish)
            self._paths = ObjectPaths(partial / "rows", saved=before.get("paths"))
            self._film = OverlayFilm(self.fps)
            self._stills = EvenSample()
            self._frames = self._predicted = 0
            self._first_predicted: int | None = None
            self._predicted_from = math.inf
            if before:
                self._film.restore(before["film"])
                self._stills.restore(before["stills"])
                for name in KEPT:
                    setattr(self, name, before[name])
            self._tables = stack.enter_context(TrackTables(partial, before.get("tables")))
            self._overlay = stack.enter_context(self._segmented("overlay.mp4", before.get("overlay", 0)))
            encoder = encode if self.masks else None
            self._viewer = stack.enter_context(
                ViewerWriter(
                    partial / writing.FOLDER,
                    self.size,
                    self.fps,
                    encoder,
                    segments=partial / SEGMENTS,
                    saved=before.get("viewer"),
                )
            )
            self._parquet = None
            if ParquetTable.available():
                table = ParquetTable(partial / "tracks.parquet", self.size, before.get("parquet"))
                self._parquet = stack.enter_context(table)
            if self.masks:
                self._coco = stack.enter_context(CocoFile(partial / "masks.json", self.facts, before.get("coco")))
                self._label_pages = stack.enter_context(LabelTiff(partial / "labels.tif", before.get("pages")))
                self._label_film = stack.enter_context(self._segmented("labels.mp4", before.get("label_film", 0)))
            self._stack = stack.pop_all()
        return self

    def _segmented(self, name: str, complete: int) -> SegmentedFilm:
        """Return the writer of a film in segments."""
        return SegmentedFilm(
            self._partial / name, self._partial / SEGMENTS, lambda path: VideoWriter(path, self.fps), complete
        )

    @property
    def frames(self) -> int:
        """Number of frames added so far, those of a stopped run included."""
        return self._frames

    def save(self, state: object) -> None:
        """Save a snapshot of everything so far, from which a stopped run can be resumed.

        It is possible every `segments.SEGMENT` frames, when the films are at the end of a segment.

        Parameters
        ----------
        state : object
            The caller's own state. The next run finds it in `saved`.
        """
        assert self.resume is not None
        everything = {
            "caller": state,
            "facts": self.facts,
            "tables": self._tables.save(),
            "paths": self._paths.save(),
            "film": self._film.save(),
            "stills": self._stills.save(),
            "overlay": self._overlay.save(),
            "viewer": self._viewer.save(),
            **{name: getattr(self, name) for name in KEPT},
        }
        if self._parquet is not None:
            everything["parquet"] = self._parquet.save()
        if self.masks:
            everything["coco"], everything["pages"] = self._coco.save(), self._label_pages.save()
            everything["label_film"] = self._label_film.save()
        write_snapshot(self._partial / SNAPSHOT, self.resume.key, everything)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._frames:
            empty = InputError(f"no frame was added to the results in {self.folder}: add at least one.")
            self._stack.__exit__(InputError, empty, None)
            raise empty
        self._stack.__exit__(kind, error, trace)

    def add(
        self, picture: UInt8[np.ndarray, "H W 3"], seconds: float, index: int, tracks: Tracks, predicted: bool = False
    ) -> None:
        """Add the next frame.

        Parameters
        ----------
        picture : array
            The frame in the original video.
        seconds : float
            Time of the frame in the original video.
        index : int
            Number of the frame in the original video, from 0.
        tracks : Tracks
            Tracks of this frame only, in pixels of the original video. `tracks.frame` and `tracks.seconds` are ignored,
            because a model counts only the frames it was given.
        predicted : bool
            Whether the frame was predicted and not observed. The report says so, and in `overlay.mp4` the frame has a
            red border. Predicted frames come last.
        """
        self._check(picture, index, tracks)
        frame = TrackedFrame(picture, seconds, index, tracks if self.masks else replace(tracks, masks=None))
        if not self._frames:
            self._first_seconds = seconds
            self.scene = picture.copy() if self.scene is None else self.scene
        self._tables.add(frame)
        self._paths.add(frame)
        if self._parquet is not None:
            self._parquet.add(frame)
        drawn = self._film.draw(frame)
        if predicted:
            drawn = mark_predicted(drawn)
            if not self._predicted:
                self._first_predicted, self._predicted_from = index, seconds
            self._predicted += 1
        self._overlay.write(drawn)
        self._stills.add(drawn, seconds)
        self._viewer.add(picture, seconds, index, frame.tracks)
        if self.masks:
            self._coco.add(frame)
            self._label_pages.add(frame.labels, f"frame {index}, {seconds:.4f} s")
            self._label_film.write(label_frame(frame))
        self._frames += 1
        self._last_index, self._last_seconds = index, seconds

    def _check(self, picture: np.ndarray, index: int, tracks: Tracks) -> None:
        """Raise InputError for a frame that cannot be added."""
        if picture.dtype != np.uint8 or picture.shape != (*self.size, 3):
            raise InputError(
                f"picture {index} is {picture.dtype} of shape {list(picture.shape)}: give uint8 {[*self.size, 3]}."
            )
        if tracks.size != self.size:
            raise InputError(
                f"tracks.size is {tracks.size[0]} x {tracks.size[1]} and the video has {self.size[0]} x {self.size[1]} "
                "pixels: bring the boxes to pixels of the original video."
            )
        if self._frames and index <= self._last_index:
            raise InputError(f"index is {index} after {self._last_index}: add frames in the order of the video.")
        if len(np.unique(tracks.id)) < len(tracks) or (len(tracks) and tracks.id.min() < 1):
            raise InputError(
                f"tracks at frame {index} hold the ids {tracks.id.tolist()}: give one frame of one clip, each id once "
                "and from 1."
            )
        if self.masks and tracks.masks is None:
            raise InputError(f"masks is true but the tracks at frame {index} hold none: ask for masks when tracking.")

    def _finish(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        """Write the files that need the whole video, unless the block failed: pictures, napari table and report."""
        if kind is not None:
            return
        partial = self._partial
        assert self.scene is not None
        trajectories = Trajectories(self.scene)
        objects, longest = self._follow(trajectories)
        trajectories.label(longest)
        paths = trajectories.picture()
        save_png(partial / "trajectories.png", paths)
        notes = []
        if find_spec("matplotlib") is not None:
            counts = Line("objects in view", *mean_counts(partial / "counts.csv", self._frames))
            save_plot(partial / "counts.png", [[Panel("seconds", "objects", [counts])]], inches=(5.2, 2.4))
        else:
            notes.append("counts.png is left out: it needs the package matplotlib; run pip install 'scalor[plots]'.")
            warnings.warn(notes[0], stacklevel=3)
        facts = {name: str(value) for name, value in self.facts.items()}
        video_fps = self.fps * self.stride
        about = About(self.size, video_fps, self.stride, facts, video_path(facts), self.health, self._first_predicted)
        about.write(partial)
        files = [name for name in FILES if name == "report.html" or (partial / name).exists()]
        report = HtmlReport(
            facts=self.facts,
            size=self.size,
            frames=self._frames,
            objects=objects,
            rows=self._paths.rows,
            seconds=(self._first_seconds, self._last_seconds),
            longest=longest,
            stills=self._stills.chosen(),
            trajectories=jpeg(paths, EMBEDDED_WIDTH),
            counts=None if notes else (partial / "counts.png").read_bytes(),
            files={name: FILES[name] for name in files},
            notes=notes,
            health=self.health,
            stride=self.stride,
            predicted=self._predicted,
            predicted_from=self._predicted_from,
        )
        # File names need not be UTF-8.
        (partial / "report.html").write_text(report.to_html(), encoding="utf-8", errors="backslashreplace")
        self._viewer.finish(self._first_predicted)
        placed = tuple(self.folder / name for name in files)
        self._summary = Summary(self.folder, self._frames, objects, self._paths.rows, placed)

    def _follow(self, trajectories: Trajectories) -> tuple[int, list[TrackSummary]]:
        """Write and draw the paths of all objects in one pass; return their number and the longest tracks."""
        count = 0

        def lives() -> Iterator[TrackSummary]:
            nonlocal count
            with open(self._partial / "tracks_napari.csv", "w") as file:
                file.write("track_id,t,y,x\n")
                for number, pieces in self._paths.objects():
                    count += 1
                    yield summarise_track(number, trajectories.add(number, write_napari(file, pieces)))

        longest = nlargest(TABLE_TRACKS, lives(), key=lambda life: (life.seconds, life.length))
        return count, longest
