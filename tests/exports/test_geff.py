"""GEFF: valid by its own package, and the same graph when it is read back."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.exports import ExportSource, write_geff

geff = pytest.importorskip("geff")


def test_the_package_reads_a_valid_graph_with_all_that_was_tracked(source: ExportSource, tmp_path: Path) -> None:
    write_geff(tmp_path / "out.geff", source)
    geff.validate_structure(tmp_path / "out.geff")
    graph, metadata = geff.read(tmp_path / "out.geff", backend="networkx", structure_validation=True)
    tracks = source.tracks
    assert graph.number_of_nodes() == len(tracks)
    for row, node in graph.nodes(data=True):
        assert (node["t"], node["track_id"]) == (tracks.frame[row], tracks.id[row])
        assert (node["x"], node["y"]) == pytest.approx(tracks.centre[row])
        assert (node["width"], node["height"]) == pytest.approx((12, 12))
        assert node["seconds"] == pytest.approx(tracks.frame[row] / 10)
    for start, end in graph.edges:
        assert tracks.id[start] == tracks.id[end]
        assert tracks.frame[start] < tracks.frame[end]
    assert graph.number_of_edges() == len(tracks) - 3
    assert metadata.directed
    time, _, across = metadata.axes
    assert (time.scale, time.scaled_unit, time.max) == (pytest.approx(0.1), "second", 39)
    assert (across.name, across.scale, across.scaled_unit) == ("x", 0.5, "millimeter")
    assert metadata.track_node_props == {"tracklet": "track_id", "lineage": "track_id"}
    assert metadata.extra["scalor"]["names"] == {"3": "a <dancer> & more"}


def test_data_and_tracks_are_valid(source: ExportSource, tmp_path: Path) -> None:
    from geff.core_io import read_to_memory
    from geff.validate.data import ValidationConfig, validate_data

    write_geff(tmp_path / "out.geff", source)
    validate_data(read_to_memory(tmp_path / "out.geff"), ValidationConfig(graph=True, tracklet=True, lineage=True))


def test_it_replaces_a_geff_folder_and_nothing_else(source: ExportSource, tmp_path: Path) -> None:
    for _ in range(2):
        write_geff(tmp_path / "out.geff", source)
    nothing = replace(source, tracks=source.tracks.select(np.zeros(len(source.tracks), bool)))
    write_geff(tmp_path / "out.geff", nothing)
    geff.validate_structure(tmp_path / "out.geff")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["discs.mp4", "out.geff", "tracked"]
    with pytest.raises(InputError, match="is not a GEFF folder"):
        write_geff(tmp_path / "tracked", source)
    with pytest.raises(InputError, match="cannot be written"):
        write_geff(tmp_path / "discs.mp4" / "out.geff", source)
