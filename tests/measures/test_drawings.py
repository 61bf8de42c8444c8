"""What is drawn on the page is what `scalor measure` reads."""

from pathlib import Path

import pytest

from scalor.errors import InputError
from scalor.measures import Calibration, drawings, read_regions

REGIONS = {
    "zones": [{"name": "nest", "polygon": [[1, 2], [30, 2], [30, 40.5]]}],
    "lines": [{"name": "gate", "from": [5, 5], "to": [5, 90]}],
}


def test_zones_and_lines_are_read_by_measure_and_by_the_page(tmp_path: Path) -> None:
    drawings.save_regions(tmp_path, REGIONS)
    read = read_regions(tmp_path / "zones.json")
    assert (read.zones[0].name, read.zones[0].polygon[2]) == ("nest", (30, 40.5))
    assert (read.lines[0].start, read.lines[0].end) == ((5, 5), (5, 90))
    assert drawings.read(tmp_path) == {**REGIONS, "scale": None}


def test_a_known_length_gives_the_size_of_a_pixel(tmp_path: Path) -> None:
    drawings.save_scale(tmp_path, {"known_length": [10, 20, 40, 60, 25]})
    scale = drawings.read(tmp_path)["scale"]
    assert scale == {"known_length": [10, 20, 40, 60, 25], "mm_per_pixel": 0.5}
    assert drawings.drawn_calibration(tmp_path) == Calibration(0.5)


def test_nothing_drawn_is_nothing_and_a_damaged_file_is_told_of(tmp_path: Path) -> None:
    assert (drawings.drawn_calibration(tmp_path), drawings.drawn_regions(tmp_path)) == (None, None)
    for name, read in (("scale.json", drawings.drawn_calibration), ("zones.json", drawings.drawn_regions)):
        (tmp_path / name).write_text("[")
        with pytest.raises(InputError, match=name):
            read(tmp_path)


@pytest.mark.parametrize("document", [None, [], {"zones": 3}, {"zones": [{"name": "a", "polygon": [[0]]}]}, {"x": 1}])
def test_what_measure_would_refuse_is_not_saved(document: object, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        drawings.save_regions(tmp_path, document)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("known", [None, [1, 2, 3], [1, 2, 1, 2, 5], [0, 0, 9, 9, 0], [0, 0, 9, 9, "5"]])
def test_a_length_that_gives_no_scale_is_not_saved(known: object, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        drawings.save_scale(tmp_path, {"known_length": known})
    assert list(tmp_path.iterdir()) == []
