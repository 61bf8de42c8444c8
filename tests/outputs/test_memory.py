"""Memory does not grow with the length of a video."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalor.outputs import ResultFolder
from scalor.outputs.films import EvenSample
from scalor.outputs.mask_files import CocoFile, LabelTiff
from scalor.outputs.tables import TrackedFrame, TrackTables
from scalor.outputs.trajectories import ObjectPaths
from scalor.visual.overlay import number_mask
from tests.outputs.stories import SIZE, shots

LIST_SLOT = 8
"""Bytes of the least that can be remembered of a frame."""
TRACKS = 1000
"""Bytes of a frame's Tracks without masks, or a little more; its picture has 12,000."""


def held() -> int:
    number_mask.cache_clear()  # of limited size, but not filled yet
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def again_and_again(count: int) -> Iterator[TrackedFrame]:
    """The same frames over and over, numbered on."""
    some = [(shot, shot.tracks) for shot in shots(60, masks=True)][20:]
    for index in range(count):
        shot, tracks = some[index % len(some)]
        yield TrackedFrame(shot.picture, index / 25, index, tracks)


Add = Callable[[TrackedFrame], None]


def tables(folder: Path, stack: ExitStack) -> tuple[Add, list[Any]]:
    made = stack.enter_context(TrackTables(folder))
    return made.add, [made._tracks, made._mot, made._counts]


def masks(folder: Path, stack: ExitStack) -> tuple[Add, list[Any]]:
    made = stack.enter_context(CocoFile(folder / "masks.json", {}))
    return made.add, [made._file, made._images]


def pages(folder: Path, stack: ExitStack) -> tuple[Add, list[Any]]:
    made = stack.enter_context(LabelTiff(folder / "labels.tif"))
    return lambda frame: made.add(frame.labels, f"frame {frame.index:06d}"), [made._writer.filehandle]


def paths(folder: Path, stack: ExitStack) -> tuple[Add, list[Any]]:
    return ObjectPaths(folder / "rows", block=64).add, []


def stills(folder: Path, stack: ExitStack) -> tuple[Add, list[Any]]:
    made, picture = EvenSample(), np.zeros((4, 4, 3), np.uint8)
    return lambda frame: made.add(picture, frame.seconds), []


@pytest.mark.parametrize(("writer", "early"), [(tables, 192), (masks, 192), (pages, 192), (stills, 192), (paths, 1536)])
def test_a_writer_remembers_less_than_a_list_slot_per_frame(writer: Any, early: int, tmp_path: Path) -> None:
    late = 4 * early  # where as many stills are kept
    with ExitStack() as stack:
        add, files = writer(tmp_path, stack)
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        at = {}
        for frame in again_and_again(late):
            add(frame)
            if frame.index + 1 in (early, late):
                for file in files:
                    file.flush()
                at[frame.index + 1] = held()
        assert at[late] - at[early] < (late - early) * LIST_SLOT, at


def test_a_result_folder_remembers_far_less_than_a_frame_per_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the encoder holds, tracemalloc does not see: it need not run.
    monkeypatch.setattr("scalor.outputs.result_folder.VideoWriter", Unwatched)
    monkeypatch.setattr("scalor.outputs.result_folder.ObjectPaths", partial(ObjectPaths, block=64))
    monkeypatch.setattr("scalor.outputs.tables.ROW_GROUP", 64)
    monkeypatch.setattr("scalor.viewer.writing.FilmWriter", Unwatched)
    monkeypatch.setattr("scalor.video.segments.join_films", lambda parts, path: path.touch())
    monkeypatch.setattr("scalor.viewer.chunks.CHUNK_FRAMES", 16)

    def memory(count: int) -> tuple[int, int]:
        """What is held when all frames have come in, and the most that ever was, until all is written."""
        tracemalloc.start()
        with ResultFolder(tmp_path, SIZE, 24, masks=True) as results:
            for shot in shots(count, masks=True):
                results.add(*shot)
            at_end = held()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return at_end, most

    memory(12)  # imports
    (at_end, most), (at_end_longer, most_longer) = memory(60), memory(360)
    # The player's index holds some 400 bytes of a track, and every fifth frame a new one comes in.
    assert at_end_longer - at_end < (360 - 60) * TRACKS / 3, (at_end, at_end_longer)
    assert most_longer - most < (360 - 60) * TRACKS * 1.25, (most, most_longer)


class Unwatched(nullcontext[None]):
    """A video that is not written."""

    def __init__(self, path: Path, fps: float) -> None:
        super().__init__()

    def __enter__(self) -> Any:
        return self

    def write(self, picture: np.ndarray) -> None:
        pass
