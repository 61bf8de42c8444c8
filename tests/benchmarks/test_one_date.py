"""All tables again: what is wanted, that it trains, measures and stops in time, and what is packed."""

import signal
import tarfile
import time
from pathlib import Path

import pytest

from benchmarks import one_date
from benchmarks.one_date import ORDER, Share, measure_what_ends, pack, train, trainings, wanted
from scalor import checkpoint
from scalor.reproduce import results
from scalor.reproduce.catalogue import SETTINGS, TABLES
from scalor.reproduce.results import changed_since, read_all
from tests.reproduce.small import cell, order, shrink_presets

ROOT = Path(__file__).parent.parent.parent


def test_everything_that_the_page_marks_is_wanted() -> None:
    named = {(table, name) for tables, settings, _ in ORDER for table in tables for name in settings}
    assert all(name in SETTINGS for _, name in named)
    documents = read_all(ROOT / "results")
    known = {(document["table"], document["setting"]) for document in documents}
    missing = {(table, name) for table, settings in TABLES.items() for name in settings} - known
    changed = {(document["table"], document["setting"]) for document in documents if changed_since(document)}
    alone = {(table, name) for table, name in changed if table == "efficiency"}  # timed with nothing beside it
    assert (missing | changed) - alone <= named


def test_what_is_there_is_not_wanted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = order(tmp_path)
    everything = wanted(asked)
    first = everything[0]
    assert (first.table, first.name) == ("tracking", "shapes-md-seed0")
    assert len(everything) == len(set(everything))
    results.write(first, asked, {"asked": asked.asked(first)})
    assert wanted(asked) == everything[1:]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_presets(monkeypatch)
    chosen = (
        (("tracking", "generalisation"), ("shapes-md", "shapes-length"), (0,)),
        (("tracking",), ("shapes-md",), (1,)),
    )
    monkeypatch.setattr(one_date, "ORDER", chosen)


def packed(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


@pytest.mark.usefixtures("few")
def test_one_training_serves_several_cells_and_all_are_measured_and_packed(tmp_path: Path) -> None:
    asked = order(tmp_path)
    assert [f"{one.table}/{one.name}" for one in wanted(asked)] == [
        "tracking/shapes-md-seed0",
        "tracking/shapes-length-seed0",
        "generalisation/shapes-length-seed0",
        "tracking/shapes-md-seed1",
    ]
    assert len(trainings(wanted(asked), asked.runs)) == 2
    train(asked, time.time() + 60)
    for number in range(2):
        measure_what_ends(asked, Share(number, 2), time.time() + 60)
    assert wanted(asked) == []
    paths = pack(asked, tmp_path / "out")
    names = [name for path in paths for name in packed(path)]
    assert "results/tracking/shapes-md-seed1.json" in names
    assert "runs/shapes-md-seed0/model.safetensors" in names
    assert len(names) == 5


@pytest.mark.usefixtures("few")
def test_no_packed_file_is_larger_than_allowed_unless_it_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = order(tmp_path)
    for seed in range(5):
        path = asked.path(cell("tracking", "md", seed))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("0" * 400)
    monkeypatch.setattr(one_date, "LARGEST", 1_000)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/one_date_7.tar").write_text("of an earlier go")
    paths = pack(asked, tmp_path / "out")
    assert [len(packed(path)) for path in paths] == [2, 2, 1]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [path.name for path in paths]


@pytest.mark.usefixtures("few")
def test_training_stops_in_time_and_goes_on_later(tmp_path: Path) -> None:
    asked = order(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    train(asked, time.time() + 0.2)
    assert signal.getsignal(signal.SIGTERM) == before
    measure_what_ends(asked, Share(0, 1), time.time())  # no time is left
    assert not (tmp_path / "results").exists()
    train(asked, time.time() + 60)
    assert all((folder / checkpoint.MODEL_FILE).exists() for folder in asked.runs.iterdir())
    assert all(one.finished for one in trainings(wanted(asked), asked.runs))
