"""All measures at once, and the files that hold them."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from PIL import Image

from scalor.files import print_json
from scalor.measures import Calibration, CountingLine, Measurements, Regions, Zone, measure
from scalor.measures.measurements import OTHERS, TABLES
from tests.edits.drawn import SIZE, mixed_ids, tracks_of, true_centres
from tests.measures.walks import circle, line, table

REGIONS = Regions(
    (Zone.rectangle("left half", 0, 0, 80, 120), Zone("ring", circle=(80, 75, 32))),
    (CountingLine("middle", (80, 120), (80, 0)),),
)


@pytest.fixture
def measured() -> Measurements:
    paths = np.stack([line(30), circle(40, 0.1, 50)])
    return measure(table(paths), Calibration(0.5), REGIONS, size=(200, 260), names={1: "queen"})


def test_every_table_is_written_and_read_as_it_is(measured: Measurements, tmp_path: Path) -> None:
    measured.save(tmp_path / "out", facts={"video": "ants.mp4"})
    assert {path.name for path in (tmp_path / "out").iterdir() if path.name[0] != "."} == {*TABLES, *OTHERS}
    for name in TABLES:
        read = pandas.read_csv(tmp_path / "out" / name, keep_default_na=name != "per_track.csv", na_values=[""])
        frame = getattr(measured, name.removesuffix(".csv"))
        assert list(read) == list(frame)
        assert len(read) == len(frame)
        for column in read.select_dtypes("number"):
            np.testing.assert_allclose(read[column], frame[column].astype(float), rtol=1e-5)
    heat = np.loadtxt(tmp_path / "out" / "heat_map.csv", delimiter=",")
    np.testing.assert_allclose(heat, measured.heat_map, rtol=1e-5)
    document = json.loads((tmp_path / "out" / "measures.json").read_text())
    assert (document["unit"], document["mm_per_pixel"]) == ("mm", 0.5)
    assert document["origin"] == {"video": "ants.mp4"}
    assert document["zones"][1] == {"name": "ring", "polygon": [], "circle": [80, 75, 32]}
    assert document["lines"] == [{"name": "middle", "from": [80, 120], "to": [80, 0]}]
    assert Image.open(tmp_path / "out" / "heat_map.png").width > 500
    print_json(document)


def test_every_column_with_a_length_or_time_names_its_unit(measured: Measurements) -> None:
    units = ("_mm", "_mm_per_s", "_mm2", "_s", "_deg", "_deg_per_s", "_share")
    counts = {"frame", "id", "nearest_id", "name", "first_frame", "last_frame", "boxes", "objects", "pairs", "visits"}
    counts |= {"zone", "line", "direction", "ended", "forward", "backward", "came_back", "in_left half", "in_ring"}
    counts |= {"crossings_forward", "crossings_backward", "straightness", "alignment", "seconds"}
    for name in TABLES:
        for column in getattr(measured, name.removesuffix(".csv")):
            assert column in counts or column.endswith(units), (name, column)


def test_counts_in_zones_are_those_of_each_frame(measured: Measurements) -> None:
    inside = (measured.samples.pixels[:, 0] < 80) & (measured.samples.pixels[:, 1] < 120)
    per_frame = [int(inside[measured.samples.frame == frame].sum()) for frame in range(50)]
    assert measured.per_frame["in_left half"].tolist() == per_frame


def test_tracks_and_their_table_measure_the_same() -> None:
    tracks = tracks_of(true_centres(), mixed_ids())
    frame = pandas.DataFrame({"frame": tracks.frame, "seconds": tracks.frame / 10, "id": tracks.id})
    frame[["x0", "y0", "x1", "y1"]] = tracks.box
    one, two = (measure(given, regions=REGIONS, size=SIZE) for given in (tracks, frame))
    for name in TABLES:
        pandas.testing.assert_frame_equal(*(getattr(m, name.removesuffix(".csv")) for m in (one, two)))
    assert measure(tracks).size == SIZE
    assert measure(frame).heat_map.sum() == pytest.approx(one.heat_map.sum())


def test_nothing_can_be_measured_too() -> None:
    nothing = measure(table(line(30)[None]).iloc[:0], regions=REGIONS)
    assert all(len(getattr(nothing, name.removesuffix(".csv"))) == 0 for name in TABLES if name != "line_counts.csv")
    assert nothing.line_counts.to_numpy().tolist() == [["middle", 0, 0, 0, 0, 0]]
