"""Line counts, zone times and speeds keep the tolerances that the page on measures states."""

import json
from pathlib import Path

import pytest

from benchmarks import measures

pytest.importorskip("supervision")


def test_counts_are_exact_and_times_and_speeds_within_their_tolerances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "RESULT", tmp_path / "measures.json")
    measures.main(["--walkers", "40", "--seed", "1", "--no-video"])
    rows = {row["tracks"]: row for row in json.loads((tmp_path / "measures.json").read_text())["rows"]}
    truth = rows["truth"]
    assert (truth["forward"], truth["backward"], truth["came_back"]) == (20, 16, 4)
    for jitter in measures.JITTER:
        row = rows[f"jitter {jitter:g} px"]
        for name in ("forward", "backward", "came_back", "crossings_forward", "crossings_backward"):
            assert row[name] == truth[name], (jitter, name)
        assert row["zone_error_s"] < 0.1
        assert row["smoothed_speed_error_percent"] < 2
    assert rows["jitter 0 px"]["speed_error_percent"] < 1e-6
    assert rows["jitter 0 px"]["zone_error_s"] < 1 / measures.FPS
    assert rows["jitter 0 px, supervision"]["crossings_forward"] == truth["crossings_forward"]
    assert rows["jitter 2 px, supervision, centres"]["crossings_forward"] > truth["crossings_forward"]
