"""`scalor view` in a real browser: edits show at once, stay after a reload, and are in the files."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from scalor.edits import EditedFolder
from scalor.measures import drawn_calibration, read_regions
from tests.outputs.stories import contents
from tests.viewer.numbered import FRAMES, SIZE, boxes_in_csv, number_in, tracks_at, write_results
from tests.viewer.screen import Screen


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(tmp_path_factory.mktemp("made") / "tracked", video="<img src=x onerror=alert(1)>.mp4")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "tracked")
    return tmp_path / "tracked"


class Served:
    """A running `scalor view`."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "scalor", "view", str(folder), "--port", "0", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = ""
        while not said.rstrip().endswith("}"):
            line = self.process.stdout.readline()
            assert line, "scalor view ended"
            said += line
        self.address = json.loads(said)["address"]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    running = Served(folder)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()


@pytest.fixture(scope="module")
def only_looked_at(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running `scalor view` for tests that edit nothing. At the end, no file has changed."""
    folder = tmp_path_factory.mktemp("looked_at") / "tracked"
    shutil.copytree(made, folder)
    before = contents(folder)
    running = Served(folder)
    yield running
    assert running.stop() == 0
    assert contents(folder) == before


def choose(screen: Screen, number: int, more: bool = False) -> None:
    """Click on the object in the picture."""
    place = screen.page.locator(".picture").bounding_box()
    x0, y0, x1, y1 = screen.drawn()[number]
    scale = place["width"] / SIZE[1]
    at = {"x": (x0 + x1) / 2 * scale, "y": (y0 + y1) / 2 * scale}
    screen.page.locator(".picture").click(position=at, modifiers=["Shift"] if more else [])


def edit(screen: Screen, name: str, said: str) -> None:
    """Press the button of an edit, and wait for what it says."""
    screen.page.locator(f"[data-edit={name}]").click()
    screen.page.locator(".edits [role=status]", has_text=said).wait_for(timeout=30_000)


def test_a_session_of_edits(served: Served, folder: Path, screen: Screen) -> None:
    as_tracked = contents(folder)
    screen.open(served.address)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32,}/", served.address)
    screen.seek(30)
    assert number_in(screen.picture()) == 30
    before = screen.drawn()

    choose(screen, 2)
    choose(screen, 3, more=True)
    edit(screen, "swap", "swap 2 and 3 from frame 30")
    screen.wait("page.store.index.edits.length === 1 && drawn.boxes.length === 4")
    after = screen.drawn()
    assert (after[2], after[3]) == (before[3], before[2])
    screen.seek(29)
    assert screen.drawn()[2] == pytest.approx(list(tracks_at(29).box[1]), abs=0.01)

    choose(screen, 4)
    edit(screen, "split", "split 4 from frame 29 as 6")
    screen.wait("drawn.boxes.some((box) => box.id === 6)")
    screen.seek(28)
    assert sorted(screen.drawn()) == [1, 2, 3, 4]

    choose(screen, 4)
    screen.page.locator("[data-edit=merge]").click()
    screen.page.locator(".filter").fill("6")
    screen.page.locator(".body .row", has_text="6").first.click()
    screen.page.locator(".edits [role=status]", has_text="merge 6 into 4").wait_for()
    screen.page.locator(".filter").fill("")

    edit(screen, "undo", "undo: merge 6 into 4")
    screen.press("Control+y")
    screen.page.locator(".edits [role=status]", has_text="redo: merge 6 into 4").wait_for()
    edit(screen, "undo", "undo: merge 6 into 4")
    screen.press("Control+z")
    screen.page.locator(".edits [role=status]", has_text="undo: split 4").wait_for()
    assert screen.ids_in_table() == [1, 2, 3, 4, 5]

    choose(screen, 1)
    edit(screen, "delete", "delete 1")
    screen.wait("drawn.boxes.length === 3")

    screen.page.reload()
    screen.wait("page.player.film && drawn.boxes.length === 3")
    assert screen.ids_in_table() == [2, 3, 4, 5]
    screen.seek(30)
    assert screen.drawn()[2] == before[3]

    assert served.stop() == 0
    rows = {(frame, number): box for frame, number, box in boxes_in_csv(folder)}
    assert {number for _, number in rows} == {2, 3, 4, 5}
    assert rows[30, 2] == pytest.approx(list(tracks_at(30).box[2]), abs=1e-3)
    assert rows[29, 2] == pytest.approx(list(tracks_at(29).box[1]), abs=1e-3)
    assert len(EditedFolder(folder).edits) == 2
    now = contents(folder)
    kept = {name.removeprefix("original/"): file for name, file in now.items() if name.startswith("original/")}
    assert {"tracks.csv", "masks.json", "report.html", "report_viewer/rows-0.js"} <= kept.keys()
    assert {name for name, file in kept.items() if file != as_tracked[name]} == set()
    added = {name for name in now.keys() - as_tracked.keys() if not name.startswith("original")}
    assert added == {"edits.jsonl", "edited.json"}
    same = {name for name, file in as_tracked.items() if now[name] == file and "." in name}
    assert same == {"results.json", "report_viewer/video.mp4", "overlay.mp4", "labels.mp4"}


def test_a_name_is_text_whatever_it_holds(served: Served, folder: Path, screen: Screen) -> None:
    screen.open(served.address)
    screen.page.locator(".body .row").first.click()
    name = "</script><img src=x onerror=alert(1)>"
    screen.page.locator("[data-edit=name]").click()
    screen.page.locator(".ask input").fill(name)
    screen.page.keyboard.press("Enter")
    screen.page.locator(".body .row", has_text=name).wait_for()
    assert screen.page.locator(".player img, main img").count() == 0
    assert served.stop() == 0
    screen.open((folder / "report.html").as_uri())
    assert name in screen.text(".body")
    assert screen.page.locator("h1").inner_text() == "Objects in <img src=x onerror=alert(1)>.mp4"


def test_a_missing_box_is_drawn(served: Served, folder: Path, screen: Screen) -> None:
    screen.open(served.address)
    screen.seek(7)
    screen.page.locator("[data-edit=add]").click()
    place = screen.page.locator(".picture").bounding_box()
    scale = place["width"] / SIZE[1]
    screen.page.mouse.move(place["x"] + 200 * scale, place["y"] + 50 * scale)
    screen.page.mouse.down()
    screen.page.mouse.move(place["x"] + 220 * scale, place["y"] + 70 * scale, steps=4)
    screen.page.mouse.move(place["x"] + 240 * scale, place["y"] + 90 * scale, steps=4)
    screen.page.mouse.up()
    screen.wait("drawn.boxes.some((box) => box.id === 6)")
    assert screen.drawn()[6] == pytest.approx([200, 50, 240, 90], abs=1.5)
    assert served.stop() == 0
    assert [frame for frame, number, _ in boxes_in_csv(folder) if number == 6] == [7]


def test_the_next_doubtful_place_is_gone_to(only_looked_at: Served, screen: Screen) -> None:
    screen.open(only_looked_at.address)
    edit(screen, "crossing", "none")
    places = screen.page.evaluate("scalor.page.store.load('doubts')")
    assert len({place["frame"] for place in places}) < len(places)  # some are in the same frame
    for place in places:
        edit(screen, "doubt", place["text"])
        screen.wait(f"drawn.position === {place['position']} && page.stage.selected === {place['ids'][0]}")
    edit(screen, "doubt", "from the start: ")
    screen.seek(FRAMES // 2 - 3)
    edit(screen, "doubt", "track 1 ends inside the picture")
    screen.wait(f"drawn.position === {FRAMES // 2 - 1} && page.stage.selected === 1")


def test_the_next_crossing_is_gone_to_with_both_objects_chosen(served: Served, screen: Screen) -> None:
    screen.open(served.address)
    x0, y0, x1, y1 = tracks_at(20).box[1].tolist()
    box = [x0 + 5, y0 + 5, x1 + 5, y1 + 5]
    screen.page.evaluate("(box) => scalor.page.editor.send({op: 'add', frame: 20, box})", box)
    edit(screen, "crossing", "frame 20: tracks 2 and 6 are near")
    screen.wait("drawn.position === 20 && page.stage.selected === 2 && page.stage.others.has(6)")
    screen.press("Shift+Delete")
    screen.page.locator(".edits [role=status]", has_text="delete 2 from frame 20 to frame 20").wait_for()
    screen.press("Control+z")
    screen.wait("drawn.boxes.length === 5 && page.editor.unsaved === 0")
    screen.page.evaluate("scalor.page.choose(2, false), scalor.page.choose(6, true)")
    edit(screen, "swap", "swap 2 and 6 from frame 20")
    screen.wait("drawn.boxes.length === 5")
    assert screen.drawn()[2] == pytest.approx(box, abs=0.01)


def test_an_impossible_edit_is_said(only_looked_at: Served, screen: Screen) -> None:
    screen.open(only_looked_at.address)
    choose(screen, 1)
    choose(screen, 2, more=True)
    edit(screen, "merge", "both have a box in")
    assert screen.page.locator("[data-edit=undo]").is_disabled()
    screen.wrong = [text for text in screen.wrong if "400" not in text]  # Chromium tells of the answer's status


def test_a_page_of_another_origin_reads_and_changes_nothing(only_looked_at: Served, browser: object) -> None:
    page = browser.new_page()  # type: ignore[attr-defined]
    page.goto("data:text/html,<p>another page</p>")
    ask = "(address) => fetch(address + 'data/index').then(() => 'read', () => 'refused')"
    assert page.evaluate(ask, only_looked_at.address) == "refused"
    send = (
        "(address) => fetch(address + 'edit', {method: 'POST', mode: 'no-cors', body: '{\"op\":\"delete\",\"id\":1}'})"
    )
    page.evaluate(f"(address) => ({send})(address).catch(() => null)", only_looked_at.address)
    page.close()


def test_a_line_a_zone_and_a_known_length_are_drawn(served: Served, folder: Path, screen: Screen) -> None:
    screen.open(served.address)
    place = screen.page.locator(".picture").bounding_box()
    scale = place["width"] / SIZE[1]

    def click(x: float, y: float) -> None:
        screen.page.locator(".picture").click(position={"x": x * scale, "y": y * scale})

    def answer(text: str) -> None:
        screen.page.wait_for_function("() => document.activeElement === document.querySelector('.ask input')")
        screen.page.keyboard.type(text)
        screen.page.keyboard.press("Enter")

    screen.page.locator("[data-edit=line]").click()
    click(100, 60)
    click(100, 200)
    answer("gate")
    screen.wait("page.store.index.lines.length === 1")
    screen.page.locator("[data-edit=zone]").click()
    for x, y in ((150, 70), (300, 70), (300, 180)):
        click(x, y)
    screen.page.keyboard.press("Enter")
    answer("nest")
    screen.wait("page.store.index.zones.length === 1")
    screen.page.locator("[data-edit=scale]").click()
    click(50, 100)
    click(250, 100)
    answer("400")
    screen.wait("page.store.index.scale && Math.abs(page.store.index.scale.mm_per_pixel - 2) < 0.02")
    regions = read_regions(folder / "zones.json")
    assert regions.lines[0].end == pytest.approx((100, 200), abs=1)
    assert np.allclose(regions.zones[0].polygon, [(150, 70), (300, 70), (300, 180)], atol=1)
    scale = drawn_calibration(folder)
    assert scale is not None
    assert scale.mm_per_pixel == pytest.approx(2, abs=0.02)
    assert "scalor measure FOLDER uses it" in screen.text(".edits [role=status]")
    assert "mm/s" in screen.text(".head")
    screen.page.locator(".filter").fill("speed>200")  # 30 frames a second, 2.5 and 3.5 px a frame, 2 mm a pixel
    assert screen.ids_in_table() == [4]
    assert served.stop() == 0


def test_files_that_cannot_be_made_again_are_told_of_on_the_page(served: Served, folder: Path, screen: Screen) -> None:
    screen.open(served.address)
    (folder / "report.html").write_text("changed by hand")
    screen.page.evaluate("scalor.page.editor.send({op: 'delete', id: 2})")
    screen.page.locator(".message", has_text="could not be made again: ").wait_for(timeout=30_000)
    assert "report.html was changed" in screen.text(".message")
    assert served.stop() == 2
