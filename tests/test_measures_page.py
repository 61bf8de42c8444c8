"""docs/measures.md: its commands and Python run in the order of the page on a drawn scene whose truth is known."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest

from scalor.cli.main import main
from scalor.measures.measurements import OTHERS, TABLES
from tests.edits.drawn import MIXED, true_centres, write_results, write_scene

PAGE = (Path(__file__).parent.parent / "docs" / "measures.md").read_text()
COMMANDS = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^(scalor .*)$", PAGE, re.M)]
SCALE = 0.12


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the drawn video, tracked by a tracker that exchanged two ids, and the zones of the page."""
    monkeypatch.chdir(tmp_path)
    write_scene(Path("beetles.mp4"))
    write_results(Path("tracked"), Path("beetles.mp4"))
    (zones,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    Path("zones.json").write_text(zones)
    return tmp_path


def test_the_video_is_tracked(workshop: Path) -> None:
    (command,) = [words for words in COMMANDS if words[0] == "track"]
    assert main([*command[:-1], "own", "--device", "cpu"]) == 0
    assert Path("own/results.json").exists()


def test_the_way_to_a_calibrated_table_ends_at_the_truth(workshop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = []
    for words in COMMANDS:
        if words[0] != "track":
            assert main(words) == 0, words
            ran.append(words[0])
    assert [name for place, name in enumerate(ran) if name != ran[place - 1]] == ["edit", "measure", "export"]
    assert f"frame {MIXED:>6}  tracks 1 and 2" in capsys.readouterr().out
    motion = pandas.read_csv("measures/motion.csv")
    truth = true_centres()[motion["frame"], motion["id"] - 1]
    np.testing.assert_allclose(motion[["x_mm", "y_mm"]], SCALE * truth, atol=1e-4)
    table = pandas.read_csv("measures/per_track.csv").set_index("id")
    chord = 2 * 30 * np.sin(0.05)
    assert table["mean_speed_mm_per_s"].to_dict() == pytest.approx(
        {1: 30 * SCALE, 2: 30 * SCALE, 3: 10 * chord * SCALE}, rel=1e-4
    )
    assert table["name"].to_dict()[3] == "the dancer"
    counts = pandas.read_csv("measures/line_counts.csv").to_dict("records")
    assert [(one["forward"], one["backward"], one["came_back"]) for one in counts] == [(1, 2, 0)]
    zones = pandas.read_csv("measures/zones.csv").set_index(["zone", "id"])["inside_s"]
    assert zones["ring"].tolist() == pytest.approx([0, 0, 4])
    above = (true_centres()[:, :, 1] < 60).sum(axis=0) / 10
    assert zones["upper half"].tolist() == pytest.approx(above.tolist())
    for name in ("tracks_trackmate.xml", "tracks.geff", "tracks_cvat.xml", "tracks.xlsx", "clip_3.mp4"):
        assert Path(name).exists(), name
        assert name in PAGE


def test_the_python_of_the_page_runs(workshop: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {}
    exec(code, names)
    assert Path("notebook/heat_map.png").exists()
    assert len(names["fast"]) > 0  # type: ignore[arg-type]


def test_every_file_and_option_is_told_of() -> None:
    assert all(f"`{name}`" in PAGE for name in (*TABLES, *OTHERS, "edits.jsonl", "names.csv"))
    told = {"--mm-per-pixel", "--known-length", "--zones", "--anchor", "--smooth", "--margin", "--patience", "--video"}
    assert all(option in PAGE for option in told)
