"""`EditedFolder`: a result folder with its edit log, its tracks after the edits, and its files made again from them."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from scalor.edits.apply import Edited, apply_traced
from scalor.edits.edit_log import LOG_FILE, Entry, append, in_effect, read_log
from scalor.edits.operations import Add, Edit, Name, Redo, Split, Step, Undo, check_step
from scalor.edits.remake import FILMS, REMADE, Remake, scene_of
from scalor.errors import InputError
from scalor.files import folder_lock
from scalor.outputs.about import ABOUT_FILE, About, read_about
from scalor.outputs.tables import read_counts
from scalor.replacement import replacing_together, settle
from scalor.tracks import Tracks, read_tracks
from scalor.viewer.writing import link_or_copy

STATE_FILE = "edited.json"
"""File that tells how much of the log the other files follow."""
ORIGINAL = "original"
"""Folder inside the result folder that keeps the files as they were before the first edit."""

LARGE = (*FILMS, "masks.json", "labels.tif")


class EditedFolder:
    """A folder that `scalor track` wrote, to correct its tracks.

    Edits are appended to `edits.jsonl` in the folder. The files as they were tracked are kept in `original/`; all files
    of the folder are made again from those and the log.

    Parameters
    ----------
    path : str or Path
        The folder.

    Examples
    --------
    >>> folder = EditedFolder("tracked")
    >>> entry = folder.do(Swap(1, 2, frame=20))
    >>> folder.edits
    [Swap(a=1, b=2, frame=20)]
    >>> entry = folder.undo()
    >>> table = folder.tracks.to_dataframe()
    """

    def __init__(self, path: str | Path) -> None:
        self.folder = Path(path)
        settle(self.folder)
        if not (self.folder / "tracks.csv").is_file():
            raise InputError(f"{path} holds no tracks.csv: give a folder that `scalor track` wrote.")
        self._check_links()
        self.about: About = read_about(self.source)
        self._check_same()
        self._check_log(read_log(self.folder / LOG_FILE, self._sha256))
        self._edited: Edited | None = None

    def _check_links(self) -> None:
        """Raise InputError if a file of the results is a link out of the folder: it would be read, or copied here."""
        within = self.folder.resolve()
        for place in (self.folder, self.folder / ORIGINAL):
            files = [place / name for name in (*REMADE, *FILMS, ABOUT_FILE, LOG_FILE)]
            for path in [place, *files, *(inner for file in files if file.is_dir() for inner in file.iterdir())]:
                if path != self.folder and path.is_symlink() and not path.resolve().is_relative_to(within):
                    raise InputError(f"{path} leads out of the folder: copy it there.")

    def _check_same(self) -> None:
        """Raise InputError if the folder was tracked again after its edits."""
        if self.source == self.folder:
            return
        ours, theirs = (folder / ABOUT_FILE for folder in (self.folder, self.source))
        if not ours.exists() or ours.read_bytes() != theirs.read_bytes():
            raise InputError(
                f"{self.folder} was tracked again after its tracks were edited: move {LOG_FILE} and {ORIGINAL}/ away "
                "to start again."
            )

    def _check_log(self, entries: list[Entry]) -> None:
        """Raise InputError if the log has fewer entries than the files follow: edits would be lost without a word."""
        written = self._state.entries or 0
        if len(entries) < written:
            raise InputError(
                f"{self.folder / LOG_FILE} has {len(entries)} of {written} entries: it is cut short; restore it from a "
                f"copy, or delete {STATE_FILE} to go on without the others."
            )

    @property
    def _state(self) -> "_State":
        path = self.folder / STATE_FILE
        if not path.exists():
            return _State(0)
        try:
            state = json.loads(path.read_bytes())
            return _State(int(state["entries"]), str(state.get("tracks_sha256")), max(0, int(state.get("films", 0))))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            return _State(None)

    @property
    def source(self) -> Path:
        """The folder with the files as they were tracked."""
        whole = self.folder / ORIGINAL
        return whole if whole.is_dir() else self.folder

    @cached_property
    def original(self) -> Tracks:
        """The tracks before all edits."""
        return read_tracks(self.source / "tracks.csv", size=self.about.size)

    @cached_property
    def times(self) -> dict[int, float]:
        """Time of every tracked frame in seconds, by the number of the frame."""
        path = self.source / "counts.csv"
        times = read_counts(path)
        missing = sorted(set(self.original.frame.tolist()) - times.keys())
        if missing:
            raise InputError(f"{path} lacks frame {missing[0]}, which has tracks: restore it from a copy.")
        return times

    @cached_property
    def _sha256(self) -> str:
        return _sha256(self.source / "tracks.csv")

    @property
    def entries(self) -> list[Entry]:
        """All entries of the log."""
        return read_log(self.folder / LOG_FILE, self._sha256)

    @property
    def edits(self) -> list[Edit]:
        """The edits in effect."""
        return in_effect(self._steps)

    @property
    def edited(self) -> Edited:
        """The tracks after the edits in effect, with the origin of every row, the names, and the next free id."""
        if self._edited is None:
            self._edited = self._apply(self.edits)
        return self._edited

    @property
    def tracks(self) -> Tracks:
        """The tracks after the edits in effect."""
        return self.edited.tracks

    @property
    def names(self) -> dict[int, str]:
        """The names of tracks, by id."""
        return self.edited.names

    def do(self, step: Step, write: bool = True) -> Entry:
        """Append a step to the log and make the files again.

        Parameters
        ----------
        step : Swap, Merge, Split, Delete, Name, Add, Undo or Redo
            A `Split` or `Add` without an id gets the next free one, which the log records.
        write : bool, default True
            Whether to make the files of the folder again. After several edits without it, call `write`.

        Returns
        -------
        Entry
            The new entry of the log.

        Raises
        ------
        InputError
            If the step is not possible. Nothing is changed then.
        """
        if not write:
            with folder_lock(self.folder):
                planned, _, edited = self._plan(step)
                self._keep_original()
                return self._append(planned, edited)
        with self._replacing(FILMS if self._would_be_original(step) else ()) as partial:
            planned, edits, edited = self._plan(step)
            self._keep_original()
            self._remake(partial, [*self._steps, planned], edits, edited)
            return self._append(planned, edited)

    def undo(self, write: bool = True) -> Entry:
        """Take back the last edit in effect."""
        return self.do(Undo(), write)

    def redo(self, write: bool = True) -> Entry:
        """Repeat the last edit taken back."""
        return self.do(Redo(), write)

    def write(
        self, video: str | Path | None = None, films: bool = False, tick: Callable[[], None] = lambda: None
    ) -> None:
        """Make the files of the folder again from the original tracks and the log.

        Parameters
        ----------
        video : str or Path, optional
            The video, if it is no longer where it was tracked.
        films : bool, default False
            Whether to draw overlay.mp4 and labels.mp4 as well. It reads the whole video.
        tick : callable, optional
            Called at every frame, for a progress bar. If it raises an exception, all files are as they were.
        """
        with self._replacing(FILMS if films or not self.edits else ()) as partial:
            self._edited = None
            self._keep_original()
            self._remake(partial, self._steps, self.edits, self.edited, video, films, tick)

    @property
    def stale(self) -> bool:
        """Whether the files lag behind the log: after `do` without writing, or a kill. `write` makes them again."""
        entries, state = len(self.entries), self._state
        if state.entries != entries:
            return True
        tracked_again = _sha256(self.folder / "tracks.csv") == self._sha256
        return entries > 0 and tracked_again and state.tracks_sha256 != self._sha256

    @property
    def stale_films(self) -> list[str]:
        """The films that show other ids or boxes than the edited tracks, until `write(films=True)`."""
        if _show_the_same(self._steps, self._state.films):
            return []
        return [name for name in FILMS if (self.folder / name).exists()]

    def scene(self, video: str | Path | None = None) -> UInt8[np.ndarray, "H W 3"]:
        """Return the first tracked frame, or black if the video cannot be read."""
        return scene_of(self.about, self.times, video)

    def _would_be_original(self, step: Step) -> bool:
        """Return whether no edit is in effect after a step."""
        return isinstance(step, Undo) and len(self.edits) == 1

    @contextmanager
    def _replacing(self, more: tuple[str, ...]) -> Iterator[Path]:
        with replacing_together(self.folder, [*REMADE, *more, STATE_FILE]) as partial:
            yield partial

    @property
    def _steps(self) -> list[Step]:
        return [entry.step for entry in self.entries]

    def _plan(self, step: Step) -> tuple[Step, list[Edit], Edited]:
        """Return a step with its id, the edits in effect after it, and the tracks then; raise if it is impossible."""
        check_step(step)
        steps = self._steps
        self._edited = None
        if isinstance(step, Add):
            self._check_frame(step.frame)
        if isinstance(step, Add) and step.id is None:
            step = replace(step, id=self._next_id(steps))
        if isinstance(step, Split) and step.new is None:
            step = replace(step, new=self._next_id(steps))
        edits = in_effect([*steps, step])
        return step, edits, self._apply(edits)

    def _next_id(self, steps: list[Step]) -> int:
        """Return an id that no track has or had, not even in edits that were undone."""
        given = [step.new for step in steps if isinstance(step, Split)]
        given += [step.id for step in steps if isinstance(step, Add)]
        return max([self.edited.next_id, *(number + 1 for number in given if number is not None)])

    def _check_frame(self, frame: int) -> None:
        if frame not in self.times:
            frames = list(self.times)
            raise InputError(
                f"frame {frame} was not tracked: the tracked frames go from {frames[0]} to {frames[-1]}"
                + (f" in steps of {self.about.stride}." if self.about.stride > 1 else ".")
            )

    def _append(self, step: Step, edited: Edited) -> Entry:
        entry = append(self.folder / LOG_FILE, step, self._sha256)
        self._edited = edited
        return entry

    def _apply(self, edits: list[Edit]) -> Edited:
        try:
            edited = apply_traced(self.original, edits)
        except InputError as error:
            if edits and len(edits) == len(self.edits):  # the log itself
                raise InputError(f"{self.folder / LOG_FILE}: {error}") from error
            raise
        seconds = np.array([self.times[frame] for frame in edited.tracks.frame.tolist()], float)
        return replace(edited, tracks=replace(edited.tracks, seconds=seconds)) if edits else edited

    def _keep_original(self) -> None:
        """Keep the files as they are in `original/`, unless they are there."""
        if self.source != self.folder:
            return
        whole, partial = self.folder / ORIGINAL, self.folder / f".{ORIGINAL}"
        partial.unlink() if partial.is_symlink() else shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for name in (*REMADE, *FILMS, ABOUT_FILE):
            if (self.folder / name).exists():
                _copy(self.folder / name, partial / name)
        partial.rename(whole)

    def _remake(
        self,
        partial: Path,
        steps: Sequence[Step],
        edits: list[Edit],
        edited: Edited,
        video: str | Path | None = None,
        films: bool = False,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Write all files after these steps of the log to a folder, and how much of the log they follow."""
        drawn = len(steps) if films or not edits else self._state.films
        if edits:
            stale = not _show_the_same(steps, drawn)
            remake = Remake(self.source, self.about, self.original, edited, self.times, len(edits), video, tick, stale)
            remake.write(partial, films)
        else:
            for name in (*REMADE, *FILMS):
                if (self.source / name).exists():
                    _copy(self.source / name, partial / name)
        state = _State(len(steps), _sha256(partial / "tracks.csv"), drawn)
        (partial / STATE_FILE).write_text(json.dumps(asdict(state)) + "\n")


@dataclass(frozen=True)
class _State:
    """How much of the log the files of a folder follow."""

    entries: int | None
    """Number of entries, or None if that is unknown."""
    tracks_sha256: str = ""
    """SHA-256 of the tracks that were made then."""
    films: int = 0
    """Number of entries that the films follow."""


def _show_the_same(steps: Sequence[Step], drawn: int) -> bool:
    """Return whether films that were drawn after so many steps show the tracks after all steps. They show no names."""
    now, then = (
        [edit for edit in in_effect(part) if not isinstance(edit, Name)]
        for part in (steps, steps[: min(drawn, len(steps))])
    )
    return now == then


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a folder. Large files that nobody edits by hand get a second name where that is possible."""
    if source.is_dir():
        shutil.copytree(source, target, copy_function=link_or_copy)
        return
    if source.name in LARGE:
        link_or_copy(source, target)
        return
    shutil.copy2(source, target)
