"""`scalor measure`: a tracked, corrected folder becomes tables in millimetres whose values are known."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest

from scalor.edits import EditedFolder, Name, Swap
from scalor.measures import drawings
from tests.edits.drawn import FRAMES, MIXED, write_results, write_scene, write_tracked_scene

from .conftest import Say

ZONES = {
    "zones": [{"name": "ring", "circle": [80, 75, 40]}],
    "lines": [{"name": "middle", "from": [80, 120], "to": [80, 0]}],
}


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drawn scene, with the ids put right, written once."""
    home = write_tracked_scene(tmp_path_factory.mktemp("corrected"))
    (home / "zones.json").write_text(json.dumps(ZONES))
    folder = EditedFolder(home / "tracked")
    folder.do(Swap(1, 2, MIXED))
    folder.do(Name(3, "dancer"))
    return home


@pytest.fixture
def tracked(corrected: Path, tmp_path: Path) -> Path:
    """A copy of the drawn scene, with the ids put right."""
    shutil.copytree(corrected, tmp_path, dirs_exist_ok=True)
    return tmp_path / "tracked"


def test_the_drawn_scene_in_millimetres(tracked: Path, say: Say) -> None:
    told = say("measure", tracked, "--mm-per-pixel", 0.12, "--zones", "zones.json", "--json").document
    assert (told["tracks"], told["unit"]) == (3, "mm")
    # Disc 3 begins at the right of the ring and has walked 3.9 radians: across the lower half of the line once.
    assert told["line_counts"] == [
        {
            "line": "middle",
            "forward": 1,
            "backward": 2,
            "came_back": 0,
            "crossings_forward": 1,
            "crossings_backward": 2,
        }
    ]
    table = pandas.read_csv("measures/per_track.csv").set_index("id")
    assert table["mean_speed_mm_per_s"][1] == pytest.approx(3 * 10 * 0.12)
    assert table["mean_speed_mm_per_s"][2] == pytest.approx(3 * 10 * 0.12)
    assert table["mean_speed_mm_per_s"][3] == pytest.approx(2 * 30 * np.sin(0.05) * 10 * 0.12)
    assert table["name"][3] == "dancer"
    assert told["zones"] == [{"zone": "ring", "inside_s": pytest.approx(4), "objects": 1, "visits": 1}]
    document = json.loads(Path("measures/measures.json").read_text())
    assert document["origin"]["edits"] == 2
    assert len(pandas.read_csv("measures/motion.csv")) == 3 * FRAMES


def test_a_known_length_and_the_text(tracked: Path, say: Say) -> None:
    text = say("measure", tracked, "--known-length", 0, 0, 30, 40, 6, "--zones", "zones.json", "--out", "m").out
    assert text.splitlines()[0] == "3 tracks, mean speed 3.6 mm/s"
    assert "line middle: 1 forward, 2 backward, 0 came back" in text
    assert "zone ring: 4.0 s, 1 visits by 1 objects" in text
    assert "give --mm-per-pixel" in say("measure", tracked).out


def test_what_was_drawn_in_the_viewer_is_measured_with_unless_options_name_others(tracked: Path, say: Say) -> None:
    drawings.save_regions(tracked, ZONES)
    drawings.save_scale(tracked, {"known_length": [0, 0, 30, 40, 6]})
    text = say("measure", tracked).out
    assert text.splitlines()[0] == "3 tracks, mean speed 3.6 mm/s"
    assert "zone ring: 4.0 s" in text
    assert f"a pixel shows 0.12 mm, by {tracked / 'scale.json'}" in text
    assert f"zones and lines are those of {tracked / 'zones.json'}" in text
    Path("none.json").write_text("{}")
    other = say("measure", tracked, "--mm-per-pixel", 0.24, "--zones", "none.json", "--json").document
    assert (other["mm_per_pixel"], other["zones"], other["line_counts"]) == (0.24, [], [])
    say("export", tracked, "--to", "trackmate")
    assert 'pixelwidth="0.12"' in Path("tracks_trackmate.xml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mm-per-pixel", 0], "mm_per_pixel is 0"),
        (["--mm-per-pixel", "x"], "must be a number"),
        (["--mm-per-pixel", 1, "--known-length", 0, 0, 1, 1, 1], "leave one out"),
        (["--known-length", 1, 1, 1, 1, 1], "two different points"),
        (["--zones", "none.json"], "none.json cannot be read"),
        (["--smooth", -1], "smooth is -1"),
        (["--margin", -1], "margin is -1"),
        (["--patience", "nan"], "patience is nan"),
        (["--cell", 0], "cell is 0"),
        (["--mm-per-pixel", "1e20"], "mm_per_pixel is 1e+20"),
        (["--margin", "1e308"], "margin is 1e+308"),
        (["--cell", "1e308"], "cell is 1e+308"),
        (["--out", "x/" * 1000], "has 1000 parts: choose a shorter path with --out"),
        (["--lags", 0], "at least 1"),
        (["--anchor", "top"], "centre"),
    ],
)
def test_refusals(words: list[object], said: str, tracked: Path, say: Say) -> None:
    assert said in say("measure", tracked, *words).complaint


def test_measures_without_the_video(tmp_path: Path, say: Say) -> None:
    write_scene(tmp_path / "discs.mp4")
    write_results(tmp_path / "tracked", tmp_path / "discs.mp4", masks=False)
    Path("discs.mp4").unlink()
    say("measure", "tracked", "--mm-per-pixel", 0.12)
    assert Path("measures/heat_map.png").stat().st_size > 5000
