"""TrackMate XML: read back by pytrackmate and by geff's converter, and equal to the tracks."""

import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from scalor.exports import ExportSource, write_trackmate
from scalor.measures import Calibration
from tests.edits.drawn import true_centres


@pytest.fixture
def written(source: ExportSource, tmp_path: Path) -> Path:
    write_trackmate(tmp_path / "out.xml", source)
    return tmp_path / "out.xml"


def test_pytrackmate_reads_the_same_tracks(written: Path, source: ExportSource) -> None:
    pytrackmate = pytest.importorskip("pytrackmate")
    read = pytrackmate.trackmate_peak_import(written, get_tracks=True)
    tracks = source.tracks
    assert len(read) == len(tracks)
    assert read["t_stamp"].tolist() == tracks.frame.tolist()
    np.testing.assert_allclose(read["t"], tracks.frame / 10)
    np.testing.assert_allclose(read[["x", "y"]], 0.5 * (tracks.centre - 0.5))
    assert (read["label"] + 1).tolist() == tracks.id.tolist()
    np.testing.assert_allclose(read["q"], tracks.confidence)


def test_geff_converts_it(written: Path, tmp_path: Path) -> None:
    geff = pytest.importorskip("geff")
    from geff.convert import from_trackmate_xml_to_geff

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from_trackmate_xml_to_geff(written, tmp_path / "converted.geff")
        graph, _ = geff.read(tmp_path / "converted.geff", backend="networkx")
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (118, 115)
    assert {data["TRACK_ID"] for _, data in graph.nodes(data=True)} == {1, 2, 3}


def test_what_the_file_says_of_the_scene(written: Path) -> None:
    root = ElementTree.parse(written).getroot()
    model, image = root.find("Model"), root.find("Settings/ImageData")
    assert model is not None
    assert image is not None
    assert (model.get("spatialunits"), model.get("timeunits")) == ("mm", "sec")
    assert [image.get(name) for name in ("filename", "width", "height", "nframes", "pixelwidth", "timeinterval")] == [
        *("discs.mp4", "160", "120", "40", "0.5", "0.1"),
    ]
    assert [track.get("name") for track in model.findall("AllTracks/Track")] == [
        *("Track_1", "Track_2", "a <dancer> & more"),
    ]
    spots = {spot.get("ID"): spot for spot in model.findall("AllSpots/SpotsInFrame/Spot")}
    for edge in model.findall("AllTracks/Track[@TRACK_ID='3']/Edge"):
        start, end = (spots[edge.get(f"SPOT_{end}_ID")] for end in ("SOURCE", "TARGET"))
        assert int(str(end.get("FRAME"))) == int(str(start.get("FRAME"))) + 1
        x, y = 0.5 * (true_centres()[int(str(end.get("FRAME"))), 2] - 0.5)
        assert (float(str(end.get("POSITION_X"))), float(str(end.get("POSITION_Y")))) == pytest.approx((x, y), abs=1e-3)
    # Every spot has every feature that is declared, and the other way round.
    declared = {str(one.get("feature")) for one in model.findall("FeatureDeclarations/SpotFeatures/Feature")}
    assert all(set(spot.attrib) == declared | {"ID", "name"} for spot in spots.values())
    assert [float(str(spot.get("RADIUS"))) for spot in spots.values()] == pytest.approx([3.0] * len(spots))


def test_a_single_box_is_a_spot_without_a_track(source: ExportSource, tmp_path: Path) -> None:
    single = replace(source, tracks=source.tracks.select(source.tracks.frame == 0), calibration=Calibration())
    write_trackmate(tmp_path / "one.xml", single)
    root = ElementTree.parse(tmp_path / "one.xml").getroot()
    assert len(root.findall("Model/AllSpots/SpotsInFrame/Spot")) == 3
    assert root.findall("Model/AllTracks/Track") == []
    assert root.find("Model").get("spatialunits") == "pixel"  # type: ignore[union-attr]
    nothing = replace(source, tracks=source.tracks.select(source.tracks.frame < 0))
    write_trackmate(tmp_path / "none.xml", nothing)
    assert ElementTree.parse(tmp_path / "none.xml").getroot().findall("Model/AllSpots/*") == []
