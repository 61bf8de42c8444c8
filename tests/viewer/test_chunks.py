"""Data of the viewer's page: what is packed is what comes out, and tracks are summarised across chunks."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalor.outputs import ResultFolder
from scalor.outputs.mask_files import decode
from scalor.viewer.chunks import Chunk, TrackIndex, from_script, packed, script
from tests.outputs.stories import SIZE, shots


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(b64decode(text), kind)


def chunk(start: int, frames: list[dict[int, float]]) -> Chunk:
    """A chunk from each frame's ids and the x of their boxes."""
    ids = [number for frame in frames for number in frame]
    x = np.array([x for frame in frames for x in frame.values()])
    box = np.stack([x, 0 * x, x + 2, 0 * x + 2], axis=1).reshape(-1, 4)
    offsets = np.cumsum([0, *map(len, frames)])
    return Chunk(start, offsets, np.array(ids, int), box, np.full(len(ids), 0.5), np.zeros(len(ids), bool))


def test_a_track_goes_on_through_chunks_and_its_gaps_are_kept() -> None:
    index = TrackIndex()
    index.add(chunk(0, [{7: 0.0}, {7: 3.0, 2: 50.0}]))
    index.add(chunk(2, [{7: 4.0}, {}, {}]))
    index.add(chunk(5, [{2: 50.0}, {7: 6.0, 2: 53.0}]))
    document = index.document()
    assert document["starts"] == [0, 2, 5]
    assert numbers(document["counts"], "<u4").tolist() == [1, 2, 1, 0, 0, 1, 2]
    assert document["tracks"] == {
        "id": [7, 2],
        "spans": [[0, 2, 6, 6], [1, 1, 5, 6]],
        "rows": [4, 3],
        "confidence": [0.5, 0.5],
        "length": [6.0, 3.0],
    }


@pytest.mark.parametrize("cuts", [[12], [5, 12], [1, 2, 3, 11, 12]])
def test_the_summary_does_not_depend_on_the_chunks(cuts: list[int]) -> None:
    rng = np.random.default_rng(3)
    frames = [{int(k): float(rng.random()) for k in np.flatnonzero(rng.random(6) < 0.6)} for _ in range(12)]
    whole, parts = TrackIndex(), TrackIndex()
    whole.add(chunk(0, frames))
    for start, stop in zip([0, *cuts], cuts, strict=False):
        parts.add(chunk(start, frames[start:stop]))
    expected, found = whole.document(), parts.document()
    assert found["tracks"] == expected["tracks"]
    assert found["counts"] == expected["counts"]


def test_a_name_with_markup_passes_through_a_script_unharmed() -> None:
    value = {"title": '</script><script>alert("1")</script>);\u2028'}
    text = script("index", value)
    assert text.isascii()
    assert from_script(text) == value


def read(folder: Path, name: str) -> Any:
    text = (folder / "report_viewer" / f"{name}.js").read_text()
    assert text.startswith(f"scalorData({json.dumps(name)},")
    return from_script(text)


def test_a_result_folder_holds_every_box_and_mask_for_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalor.viewer.chunks.CHUNK_FRAMES", 8)
    with ResultFolder(tmp_path, SIZE, 24, masks=True, stride=3) as results:
        for t, shot in enumerate(shots(30, masks=True, stride=3, first=6)):
            results.add(*shot, predicted=t >= 20)
    index = read(tmp_path, "index")
    assert index["size"] == list(SIZE) == index["masks"]
    assert index["rate"] == [8, 1]
    assert index["starts"] == [0, 8, 16, 24]
    assert index["predicted"] == 20
    expected = list(shots(30, masks=True, stride=3, first=6))
    assert numbers(index["frame"], "<i4").tolist() == [shot.index for shot in expected]
    assert numbers(index["seconds"], "<f8").tolist() == [shot.seconds for shot in expected]
    for k, start in enumerate(index["starts"]):
        rows, masks = read(tmp_path, f"rows-{k}"), read(tmp_path, f"masks-{k}")
        offsets = numbers(rows["offsets"], "<u4")
        for t, shot in enumerate(expected[start : start + 8]):
            here = slice(offsets[t], offsets[t + 1])
            assert numbers(rows["id"], "<i4")[here].tolist() == shot.tracks.id.tolist()
            assert np.allclose(numbers(rows["box"], "<f4").reshape(-1, 4)[here], shot.tracks.box, atol=1e-4)
            assert numbers(rows["discovered"], "u1")[here].tolist() == shot.tracks.discovered.tolist()
            assert shot.tracks.masks is not None
            for text, mask in zip(masks[here], shot.tracks.masks, strict=True):
                assert np.array_equal(decode(text, SIZE), mask)


def test_packed_numbers_are_little_endian() -> None:
    assert packed([1], "<i4") == "AQAAAA=="
