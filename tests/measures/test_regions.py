"""Zones and lines: what is inside, and a file that is read strictly."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalor.errors import InputError
from scalor.measures import CountingLine, Regions, Zone, read_regions

FILE = {
    "zones": [
        {"name": "nest", "polygon": [[10, 10], [90, 10], [50, 80]]},
        {"name": "food", "circle": [200, 120, 30]},
        {"name": "left", "rectangle": [0, 0, 320, 480]},
    ],
    "lines": [{"name": "gate", "from": [320, 480], "to": [320, 0]}],
}


def test_the_file_of_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "zones.json").write_text(json.dumps(FILE))
    assert read_regions(tmp_path / "zones.json") == Regions(
        (
            Zone("nest", ((10, 10), (90, 10), (50, 80))),
            Zone("food", circle=(200, 120, 30)),
            Zone.rectangle("left", 0, 0, 320, 480),
        ),
        (CountingLine("gate", (320, 480), (320, 0)),),
    )
    (tmp_path / "zones.json").write_text("{}")
    assert read_regions(tmp_path / "zones.json") == Regions()


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=20))
def test_a_rectangle_holds_what_lies_between_its_sides(points: list[tuple[float, float]]) -> None:
    zone = Zone.rectangle("box", -20, -10, 30, 40)
    inside = [-20 < x < 30 and -10 < y < 40 for x, y in points if x not in (-20, 30) and y not in (-10, 40)]
    kept = np.array([(x, y) for x, y in points if x not in (-20, 30) and y not in (-10, 40)]).reshape(-1, 2)
    assert zone.contains(kept).tolist() == inside


@settings(deadline=None)
@given(st.floats(-np.pi, np.pi), st.floats(-100, 100), st.booleans())
def test_a_polygon_may_be_turned_moved_and_walked_backwards(angle: float, shift: float, back: bool) -> None:
    corners = np.array([[0, 0], [40, 0], [40, 40], [20, 10], [0, 40]])
    points = np.random.default_rng(0).uniform(-10, 50, (200, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = (corners @ turn.T + shift)[:: -1 if back else 1]
    zone = Zone("w", tuple((float(x), float(y)) for x, y in corners))
    other = Zone("w", tuple((float(x), float(y)) for x, y in moved))
    assert np.array_equal(zone.contains(points), other.contains(points @ turn.T + shift))
    assert 0 < zone.contains(points).mean() < 1


def test_a_fine_polygon_is_a_circle() -> None:
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    around = Zone("around", tuple((float(50 + 20 * np.cos(a)), float(50 + 20 * np.sin(a))) for a in angle))
    points = np.random.default_rng(0).uniform(20, 80, (1000, 2))
    near = np.abs(np.hypot(*(points - 50).T) - 20) < 0.01
    assert np.array_equal(around.contains(points)[~near], Zone("o", circle=(50, 50, 20)).contains(points)[~near])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([], "give an object"),
        ({"zone": []}, "a field 'zone'"),
        ({"zones": {}}, "must be lists"),
        ({"zones": [5]}, "a zone is 5"),
        ({"zones": [{"circle": [1, 2, 3]}]}, "an object with a name"),
        ({"zones": [{"name": "a"}]}, "zone 'a' has 0 shapes"),
        ({"zones": [{"name": "a", "circle": [1, 2, 3], "rectangle": [1, 2, 3, 4]}]}, "2 shapes"),
        ({"zones": [{"name": "a", "square": [1, 2, 3]}]}, "a field 'square'"),
        ({"zones": [{"name": "a", "circle": [1, 2]}]}, "give 3 finite numbers"),
        ({"zones": [{"name": "a", "circle": [1, 2, 0]}]}, "radius 0"),
        ({"zones": [{"name": "a", "circle": [1, 2, True]}]}, "finite numbers"),
        ({"zones": [{"name": "a", "rectangle": [3, 2, 1, 4]}]}, "x0 < x1"),
        ({"zones": [{"name": "a", "polygon": [[1, 2], [3, 4]]}]}, "three points"),
        ({"zones": [{"name": "a", "polygon": [[1, 2], [3, 4], [5]]}]}, "give 2 finite numbers"),
        ({"zones": [{"name": "a", "polygon": 7}]}, "list of points"),
        ({"zones": [{"name": "", "circle": [1, 2, 3]}]}, "a name of one line"),
        ({"zones": [{"name": "a", "circle": [1, 2, 3]}] * 2}, "two zones have the name 'a'"),
        ({"lines": [{"name": "a", "from": [1, 2]}]}, "no 'to'"),
        ({"lines": [{"name": "a", "from": [1, 2], "to": [1, 2]}]}, "two different points"),
        ({"lines": [{"name": "a", "from": [1, 2], "to": [1, "x"]}]}, "finite numbers"),
        ({"lines": [{"name": "a", "from": [1, 2], "to": [1, 3], "by": 2}]}, "a field 'by'"),
    ],
)
def test_a_file_that_is_wrong_is_told_in_a_sentence(change: object, said: str, tmp_path: Path) -> None:
    (tmp_path / "zones.json").write_text(json.dumps(change))
    with pytest.raises(InputError, match=r"zones\.json: ") as told:
        read_regions(tmp_path / "zones.json")
    assert said in str(told.value)
    assert str(told.value).endswith(".")


def test_a_file_that_is_none_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_regions(tmp_path / "none.json")
    (tmp_path / "zones.json").write_bytes(b"\xff{")
    with pytest.raises(InputError, match="is not JSON"):
        read_regions(tmp_path / "zones.json")
    (tmp_path / "zones.json").write_text('{"lines": [{"name": "a", "from": [NaN, 2], "to": [1, 2]}]}')
    with pytest.raises(InputError, match="finite"):
        read_regions(tmp_path / "zones.json")
