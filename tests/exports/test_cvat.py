"""CVAT XML: every box is where it was, and none is interpolated into a gap."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from scalor.exports import ExportSource, write_cvat


def shown(track: ElementTree.Element, last: int) -> dict[int, tuple[float, ...]]:
    """The boxes that CVAT shows: each key frame's until the next one, none after one that is outside."""
    boxes = sorted(track.findall("box"), key=lambda box: int(str(box.get("frame"))))
    assert len({box.get("frame") for box in boxes}) == len(boxes)
    seen: dict[int, tuple[float, ...]] = {}
    for box, after in zip(boxes, [*boxes[1:], None], strict=True):
        until = last if after is None else int(str(after.get("frame"))) - 1
        corners = tuple(float(str(box.get(name))) for name in ("xtl", "ytl", "xbr", "ybr"))
        if box.get("outside") == "0":
            seen |= dict.fromkeys(range(int(str(box.get("frame"))), until + 1), corners)
    return seen


def test_cvat_shows_every_box_where_it_was_and_no_other(source: ExportSource, tmp_path: Path) -> None:
    write_cvat(tmp_path / "out.xml", source)
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert root.findtext("version") == "1.1"
    assert root.findtext("meta/task/size") == "40"
    assert root.findtext("meta/task/original_size/width") == "160"
    tracks = source.tracks
    labels = {label.findtext("name") for label in root.findall("meta/task/labels/label")}
    for track, (number, rows) in zip(root.findall("track"), source.objects(), strict=True):
        assert track.get("label") in labels
        expected = {int(tracks.frame[row]): pytest.approx(tracks.box[row], abs=0.006) for row in rows}
        assert shown(track, 39) == expected
        attributes = {one.get("name"): one.text for one in track.findall("box")[0]}
        assert attributes == {"id": str(number), "name": source.names.get(number), "confidence": "0.9000"}
    assert 10 not in shown(root.findall("track")[1], 39)
    assert 12 in shown(root.findall("track")[1], 39)
