"""Make the files of a result folder again from edited tracks: tables, masks, pictures and report.

Masks keep their pixels: the object that they show gets the id of its box. A deleted box loses its mask; an added box
has none. The films need every picture of the video, so they are drawn again only when asked for.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from heapq import nlargest
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt8

from scalor.edits.apply import Edited
from scalor.errors import InputError
from scalor.outputs.about import About
from scalor.outputs.films import STILL_WIDTH, OverlayFilm, jpeg, label_frame, mark_predicted
from scalor.outputs.html_report import HtmlReport
from scalor.outputs.mask_files import CocoFile, LabelTiff, decode, encode
from scalor.outputs.result_folder import EMBEDDED_WIDTH, FILES, TABLE_TRACKS
from scalor.outputs.tables import ParquetTable, TrackedFrame, TrackTables, as_text, mean_counts, write_napari
from scalor.outputs.trajectories import ObjectPaths, TrackSummary, Trajectories, summarise_track
from scalor.tracks import Tracks
from scalor.video import Selection, VideoWriter, open_video
from scalor.video.resize import resize
from scalor.viewer import writing
from scalor.viewer.film import film_rate
from scalor.viewer.writing import ViewerWriter
from scalor.visual.plots import Line, Panel, save_plot
from scalor.visual.strips import save_png

FILMS = ("overlay.mp4", "labels.mp4")
NAMES_FILE = "names.csv"
REMADE = (*(name for name in FILES if name not in (*FILMS, "results.json")), NAMES_FILE)
"""Files that every edit makes again."""
NAMES = "the names that tracks were given: id, name"
STALE = "; it shows the ids from before the edits: `scalor edit FOLDER render` draws it again"
STILLS = 6
"""Number of pictures in the report."""
NO_PIXELS = "; boxes that were added by hand have no pixels"


class Interrupted(Exception):
    """Files were not made again, because a further edit came."""


@dataclass(frozen=True)
class Remake:
    """What the files are made from."""

    source: Path
    """Folder with the original files."""
    about: About
    original: Tracks
    edited: Edited
    times: dict[int, float]
    """Time of every tracked frame in seconds, by its number."""
    edits: int
    """Number of edits in effect."""
    video: str | Path | None = None
    """The video, if it is no longer where it was tracked."""
    tick: Callable[[], None] = lambda: None
    """Called at every frame; it may raise `Interrupted`."""
    stale: bool = False
    """Whether films that are not drawn again show other ids than these tracks."""

    def write(self, folder: Path, films: bool) -> None:
        """Write all files to a folder; the films only if asked for."""
        facts: dict[str, object] = {
            **self.about.facts,
            "edits": f"{self.edits}, in edits.jsonl; the files before them are in original/",
        }
        masks = self._masks()
        paths = ObjectPaths(folder / "rows")
        with ExitStack() as stack:
            tables = stack.enter_context(TrackTables(folder))
            parquet = None
            if ParquetTable.available():
                parquet = stack.enter_context(ParquetTable(folder / "tracks.parquet", self.about.size))
            viewer = self._viewer(folder, masks is not None)
            if viewer is not None:
                stack.enter_context(viewer)
            if masks is not None:
                coco = stack.enter_context(CocoFile(folder / "masks.json", facts))
                label_pages = stack.enter_context(LabelTiff(folder / "labels.tif"))
            if films:
                film = OverlayFilm(self.about.fps)
                overlay = stack.enter_context(VideoWriter(folder / "overlay.mp4", self.about.fps))
                if masks is not None:
                    label_film = stack.enter_context(VideoWriter(folder / "labels.mp4", self.about.fps))
            for frame in self._frames(masks, films):
                tables.add(frame)
                paths.add(frame)
                if parquet is not None:
                    parquet.add(frame)
                if viewer is not None:
                    viewer.add(frame.picture, frame.seconds, frame.index, frame.tracks)
                if masks is not None:
                    coco.add(frame)
                    label_pages.add(frame.labels, f"frame {frame.index}, {frame.seconds:.4f} s")
                if films:
                    overlay.write(self._marked(film.draw(frame), frame.index))
                if films and masks is not None:
                    label_film.write(label_frame(frame))
        if viewer is not None:
            viewer.finish(self.about.predicted_from, self.edited.names)
        self._write_names(folder / NAMES_FILE)
        self._write_report(folder, facts, paths, self._stills(masks), films)

    def _frames(self, masks: "_Masks | None", pictures: bool) -> Iterator[TrackedFrame]:
        """Yield every tracked frame with its edited tracks."""
        blank = np.zeros((*self.about.size, 3), np.uint8)
        for index, picture in self._pictures() if pictures else ((index, blank) for index in self.times):
            self.tick()
            yield TrackedFrame(picture, self.times[index], index, self._tracks_at(index, masks))

    def _tracks_at(self, index: int, masks: "_Masks | None") -> Tracks:
        """Return the edited tracks of a frame."""
        tracks = self.edited.tracks
        rows = np.arange(*np.searchsorted(tracks.frame, [index, index + 1]))
        if masks is None:
            return tracks.select(rows)
        # As tracked, the later row is on top where masks overlap; so masks keep the order they had.
        rows = rows[np.argsort(self.edited.origin[rows], kind="stable")]
        return replace(tracks.select(rows), masks=masks.of(self.edited.origin[rows]))

    def _marked(self, drawn: UInt8[np.ndarray, "h w 3"], index: int) -> UInt8[np.ndarray, "h w 3"]:
        """Return a drawn frame, marked if it was imagined."""
        return mark_predicted(drawn) if self.about.is_predicted(index) else drawn

    def _film(self) -> Path | None:
        """Return the film of the report's player, if it lies in the original results."""
        film = self.source / writing.FOLDER / writing.FILM
        return film if film.exists() and film.resolve().is_relative_to(self.source.resolve()) else None

    def _film_pictures(self, first: int = 0) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
        """Yield the pictures of the player's film in the size of the video, from a tracked frame on."""
        film = self._film()
        if film is not None:
            rate = float(film_rate(self.about.fps))
            for frame in open_video(film, Selection(start=max(0.0, (first - 0.5) / rate)), rate).whole_frames():
                yield resize(frame.picture, self.about.size)

    def _stills(self, masks: "_Masks | None") -> list[tuple[float, bytes]]:
        """Return the time and the JPEG file of a few frames with their tracks, from the film of the player."""
        frames, found = list(self.times), []
        for place in np.unique(np.linspace(0, len(frames) - 1, STILLS).round().astype(int)).tolist():
            try:
                picture = next(self._film_pictures(place))
            except (InputError, StopIteration):
                continue
            film, index = OverlayFilm(self.about.fps), frames[place]
            for earlier in frames[max(0, place - film.trails) : place]:
                film.pass_over(self._tracks_at(earlier, None))
            drawn = film.draw(TrackedFrame(picture, self.times[index], index, self._tracks_at(index, masks)))
            found.append((self.times[index], jpeg(self._marked(drawn, index), STILL_WIDTH)))
        return found

    def _viewer(self, folder: Path, masks: bool) -> ViewerWriter | None:
        """Return the writer of the data of the report's player, if the original results have them."""
        film = self._film()
        if film is None:
            return None
        size, fps = self.about.size, self.about.fps
        return ViewerWriter(folder / writing.FOLDER, size, fps, encode if masks else None, film)

    def _masks(self) -> "_Masks | None":
        path = self.source / "masks.json"
        return _Masks(path, self.original) if path.exists() else None

    def _pictures(self) -> Iterator[tuple[int, UInt8[np.ndarray, "H W 3"]]]:
        """Yield the number and the picture of every tracked frame."""
        if self.about.is_predicted(max(self.times)):  # the video does not hold imagined frames, but the film does
            yield from zip(self.times, self._film_pictures(), strict=True)
            return
        count = 0
        for frame in open_video(self._video(), Selection(), self.about.video_fps).whole_frames():
            if frame.index in self.times:
                if frame.picture.shape[:2] != self.about.size:
                    height, width = self.about.size
                    raise InputError(f"{self._video()} is not {width} x {height} pixels: name the video with --video.")
                count += 1
                yield frame.index, frame.picture
        if count < len(self.times):
            raise InputError(f"{self._video()} lacks {len(self.times) - count} tracked frames: name it with --video.")

    def _video(self) -> str | Path:
        return self.about.find_video(self.video)

    def _write_names(self, path: Path) -> None:
        if self.edited.names:
            with open(path, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(["id", "name"])
                writer.writerows((number, as_text(name)) for number, name in self.edited.names.items())

    def _write_report(
        self,
        folder: Path,
        facts: dict[str, object],
        paths: ObjectPaths,
        stills: list[tuple[float, bytes]],
        films: bool,
    ) -> None:
        """Write the napari table, the pictures and the report."""
        trajectories = Trajectories(scene_of(self.about, self.times, self.video))
        objects = 0

        def lives() -> Iterator[TrackSummary]:
            nonlocal objects
            with open(folder / "tracks_napari.csv", "w") as file:
                file.write("track_id,t,y,x\n")
                for number, pieces in paths.objects():
                    objects += 1
                    yield summarise_track(number, trajectories.add(number, write_napari(file, pieces)))

        longest = nlargest(TABLE_TRACKS, lives(), key=lambda life: (life.seconds, life.length))
        trajectories.label(longest)
        picture = trajectories.picture()
        save_png(folder / "trajectories.png", picture)
        if find_spec("matplotlib") is not None:
            counts = Line("objects in view", *mean_counts(folder / "counts.csv", len(self.times)))
            save_plot(folder / "counts.png", [[Panel("seconds", "objects", [counts])]], inches=(5.2, 2.4))
        plot = folder / "counts.png"
        times = list(self.times.values())
        predicted = [seconds for frame, seconds in self.times.items() if self.about.is_predicted(frame)]
        report = HtmlReport(
            facts=facts,
            size=self.about.size,
            frames=len(self.times),
            objects=objects,
            rows=paths.rows,
            seconds=(times[0], times[-1]),
            longest=longest,
            stills=stills,
            trajectories=jpeg(picture, EMBEDDED_WIDTH),
            counts=plot.read_bytes() if plot.exists() else None,
            files=self._descriptions(folder, films),
            health=self.about.health,
            stride=self.about.stride,
            predicted=len(predicted),
            predicted_from=min(predicted, default=math.inf),
        )
        (folder / "report.html").write_text(report.to_html(), encoding="utf-8")

    def _descriptions(self, folder: Path, films: bool) -> dict[str, str]:
        """Return the descriptions of all files for the report."""
        written = {name: text for name, text in FILES.items() if (folder / name).exists() or name == "report.html"}
        for name in ("masks.json", "labels.tif"):
            if name in written:
                written[name] += NO_PIXELS
        if not films:
            stale = STALE if self.stale else ""
            written |= {name: FILES[name] + stale for name in FILMS if (self.source / name).exists()}
        return written | ({NAMES_FILE: NAMES} if self.edited.names else {})


def scene_of(about: About, times: Mapping[int, float], video: str | Path | None = None) -> UInt8[np.ndarray, "H W 3"]:
    """Return the first tracked frame, or black if the video cannot be read."""
    try:
        seconds = next(iter(times.values()))
        opened = open_video(about.find_video(video), Selection(start=seconds), about.video_fps)
        picture: np.ndarray = next(opened.whole_frames()).picture
        if picture.shape[:2] == about.size:
            return picture
    except (InputError, StopIteration):
        pass
    return np.zeros((*about.size, 3), np.uint8)


class _Masks:
    """The masks of `masks.json`, by their row in the original tracks."""

    def __init__(self, path: Path, original: Tracks) -> None:
        self.size = original.size
        counts: dict[tuple[int, int], str] = {}
        try:
            for one in json.loads(path.read_bytes())["annotations"]:
                counts[one["image_id"], one["track_id"]] = one["segmentation"]["counts"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is damaged: track the video again with --masks.") from error
        keys = zip(original.frame.tolist(), original.id.tolist(), strict=True)
        self._counts = [counts.get(key) for key in keys]

    def of(self, origin: np.ndarray) -> Bool[np.ndarray, "n H W"]:
        """Return the masks of rows, given their rows in the original tracks; empty for added boxes."""
        masks = np.zeros((len(origin), *self.size), bool)
        for mask, row in zip(masks, origin.tolist(), strict=True):
            text = self._counts[row] if row >= 0 else None
            if text is not None:
                mask[:] = decode(text, self.size)
        return masks
