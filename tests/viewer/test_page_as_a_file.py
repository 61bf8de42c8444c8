"""The report opened as a file in a real browser: it shows the right frame with the right boxes."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalor.visual.colors import colors_of
from tests.viewer.numbered import FRAMES, SIZE, boxes_in_csv, number_in, tracks_at, write_results
from tests.viewer.screen import Screen, address_of


def test_boxes_and_picture_are_those_of_the_frame(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    expected: dict[int, dict[int, tuple[float, float, float, float]]] = {}
    for frame, number, box in boxes_in_csv(tracked):
        expected.setdefault(frame, {})[number] = box
    for frame in (0, 89, 1, 44, 45, 14, 15, 16, 63, 30):
        screen.seek(frame)
        drawn = screen.drawn()
        assert drawn.keys() == expected[frame].keys()
        for number, box in expected[frame].items():
            assert drawn[number] == pytest.approx(box, abs=0.01)
        assert number_in(screen.picture()) == frame
        assert f"frame {frame}" in screen.text(".time")


def test_keys_step_by_single_frames(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    position = 0
    for key, by in [("ArrowRight", 1)] * 5 + [("ArrowLeft", -1)] * 2 + [("Shift+ArrowRight", 10), (".", 1), (",", -1)]:
        position += by
        screen.press(key, position)
        assert number_in(screen.picture()) == position
    screen.press("End", FRAMES - 1)
    screen.press("ArrowRight", FRAMES - 1)
    screen.press("Home", 0)


def test_steps_in_quick_succession_are_all_done(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    for _ in range(25):
        screen.page.keyboard.press("ArrowRight")
    screen.wait("drawn.position === 25 && page.player.seeking === null")
    assert number_in(screen.picture()) == 25


def test_playback_draws_the_frame_that_it_shows(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.page.evaluate("""() => {
      const {page} = scalor;
      window.played = [];
      const show = page.player.show;
      page.player.show = (position) => { show(position); window.played.push(position); };
    }""")
    screen.press(" ")
    screen.wait("drawn.position > 20")
    screen.press(" ")
    screen.wait("!page.player.playing && page.player.seeking === null")
    played = screen.page.evaluate("played")
    assert len(set(played)) > 10
    assert played == sorted(played)
    assert number_in(screen.picture()) == screen.position
    assert screen.page.locator("[data-do=play]").get_attribute("aria-label") == "Play"


def test_masks_are_drawn_where_they_are_in_their_colours(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.seek(30)
    for layer in ("trails", "marks", "ids"):
        screen.page.locator(f"[data-layer={layer}]").click()
    for row in range(4):
        x0, y0, *_ = tracks_at(30).box[row]
        color = colors_of(tracks_at(30).id[row : row + 1])[0].astype(int)
        tinted = screen.colour_at(x0 + 17, y0 + 12)
        assert np.abs(tinted - (110 + color) / 2).max() < 14
    screen.page.locator("[data-layer=masks]").click()
    assert np.abs(screen.colour_at(x0 + 17, y0 + 12) - 110).max() < 6


def test_every_layer_can_be_hidden(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.seek(45)
    before = screen.picture()
    for layer, key in {"boxes": "b", "masks": "m", "ids": "i", "trails": "t", "marks": "d"}.items():
        button = screen.page.locator(f"[data-layer={layer}]")
        assert button.get_attribute("aria-pressed") == "true"
        screen.press(key)
        assert button.get_attribute("aria-pressed") == "false"
        after = screen.picture()
        assert (before != after).any(), layer
        before = after
    assert screen.drawn() == {}
    below = before[before.shape[0] // 4 : -15, 15:-15]  # without the rounded corners
    assert np.abs(below.astype(int) - 110).max() < 12


def test_the_table_is_sorted_filtered_and_leads_to_tracks(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    assert screen.ids_in_table() == [1, 2, 3, 4, 5]
    screen.page.locator(".head button", has_text="path").click()
    assert screen.ids_in_table()[0] in (1, 5)
    screen.page.locator(".head button", has_text="id").click()
    screen.page.locator(".head button", has_text="id").click()
    assert screen.ids_in_table() == [5, 4, 3, 2, 1]
    screen.page.locator(".filter").fill("seconds<2")
    assert screen.ids_in_table() == [5, 1]
    assert screen.text(".found") == "2 of 5"
    screen.page.locator(".body .row", has_text="5").first.click()
    screen.wait(f"drawn.position === {FRAMES // 2} && page.stage.selected === 5")
    screen.page.locator(".filter").fill("now")
    assert screen.ids_in_table() == [5, 4, 3, 2]


def test_follow_keeps_the_object_in_the_middle(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.page.locator(".body .row").nth(1).dblclick()
    screen.wait("page.stage.following && page.stage.zoom > 1")
    screen.seek(70)
    drawn = screen.page.evaluate("scalor.drawn")
    (box,) = [box for box in drawn["boxes"] if box["id"] == 2]
    wide = screen.page.evaluate("scalor.page.stage.canvas.width")
    assert box["x"] + box["width"] / 2 == pytest.approx(wide / 2, abs=2)
    x0, y0, x1, y1 = tracks_at(70).box[list(tracks_at(70).id).index(2)]
    assert screen.drawn()[2] == pytest.approx([x0, y0, x1, y1], abs=0.01)


def test_a_click_on_an_object_chooses_it_and_hovering_tells_its_numbers(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.seek(10)
    place = screen.page.locator(".picture").bounding_box()
    x0, y0, *_ = tracks_at(10).box[2]
    scale = place["width"] / SIZE[1]
    at = (place["x"] + (x0 + 17) * scale, place["y"] + (y0 + 12) * scale)
    screen.page.mouse.move(*at)
    told = screen.text(".hover")
    assert "id 3" in told
    assert "size 34.5 \u00d7 24.8 px" in told
    assert "speed 75.0 px/s" in told
    screen.page.mouse.click(*at)
    assert screen.page.evaluate("scalor.page.stage.selected") == 3
    assert screen.page.locator("[role=row][aria-selected=true]").count() == 1


def test_the_label_of_a_box_that_is_cut_off_stays_in_the_picture(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.seek(60)
    labels = screen.page.evaluate("""() => {
      const {stage} = scalor.page;
      const found = [];
      stage.context.fillText = (text, x, y) => found.push([text, x * stage.view.scale + stage.view.x]);
      Object.assign(stage, {zoom: 4, centre: {x: 160, y: 110}});
      scalor.page.draw();
      return found;
    }""")
    assert screen.drawn()[2][0] < 110  # the left edge of the view; no other box is in it
    ((text, x),) = labels
    assert text == "2"
    assert 0 < x < 20


def test_the_timeline_scrolls_to_tracks_in_view(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.page.evaluate("""() => {
      const track = (k) => ({id: k, name: "", spans: [Math.floor(k / 3), Math.floor(k / 3) + 1]});
      scalor.page.timeline.order(Array.from({length: 200}, (_, k) => track(k)));
    }""")
    screen.page.evaluate("scalor.page.table.update = () => {}")
    tops = []
    for position in (40, 41, 3):
        screen.seek(position)
        tops.append(screen.page.evaluate("scalor.page.timeline.scroller.scrollTop") / 8)
    assert tops[0] == tops[1] == pytest.approx(3 * 39, abs=1)
    assert tops[2] <= 3 * 3


def test_a_click_on_the_timeline_leads_there(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.page.locator(".under").scroll_into_view_if_needed()
    place = screen.page.locator(".bars").bounding_box()
    screen.page.mouse.click(place["x"] + 0.75 * place["width"], place["y"] + 8 * 4 + 3)
    screen.wait("Math.abs(drawn.position - 67) <= 1 && page.stage.selected === 5")
    cursor = screen.page.locator(".cursor").bounding_box()
    assert cursor["x"] == pytest.approx(place["x"] + 0.75 * place["width"], abs=8)


def test_imagined_frames_are_marked(browser: Any, screen: Screen, tmp_path: Path) -> None:
    screen.open(address_of(write_results(tmp_path / "predicted", predicted_from=60)))
    screen.seek(59)
    assert "imagined" not in screen.text(".time")
    border = screen.picture()[-2, 20:-20].astype(int)
    assert np.abs(border - 110).max() < 12
    screen.seek(60)
    assert "imagined" in screen.text(".time")
    border = screen.picture()[-2, 20:-20].astype(int)
    assert (np.abs(border - (242, 184, 75)).max(axis=1) < 30).mean() > 0.4


def test_without_its_folder_the_report_says_so_and_shows_the_rest(browser: Any, tracked: Path, tmp_path: Path) -> None:
    shutil.copy(tracked / "report.html", tmp_path / "report.html")
    page = browser.new_page()
    page.goto(address_of(tmp_path))
    page.locator(".player .message").wait_for()
    assert "needs the folder report_viewer beside this page" in page.locator(".player .message").inner_text()
    assert page.locator(".stills img").first.is_visible()
    page.close()


def test_without_a_video_that_plays_tracks_are_shown_all_the_same(browser: Any, tracked: Path, tmp_path: Path) -> None:
    shutil.copytree(tracked, tmp_path / "copy")
    (tmp_path / "copy" / "report_viewer" / "video.mp4").write_bytes(b"no video")
    page = browser.new_page()
    page.goto(address_of(tmp_path / "copy"))
    page.locator(".player .message:not([hidden])").wait_for()
    assert "cannot play the video" in page.locator(".player .message").inner_text()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => scalor.drawn.position === 1 && scalor.drawn.boxes.length === 4")
    page.keyboard.press(" ")
    page.wait_for_function("() => scalor.drawn.position > 10")
    page.close()


def test_a_screen_reader_hears_what_is_shown(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    screen.press("ArrowRight", 1)
    screen.page.wait_for_function("() => document.querySelector('.live').textContent.includes('frame 1')")
    assert "4 objects in view" in screen.page.locator(".live").text_content()
    unnamed = screen.page.evaluate("""() => {
      const all = document.querySelectorAll(".player :is(button, input, canvas, select)");
      const named = (one) => one.getAttribute("aria-label") || /[a-z]/i.test(one.textContent);
      return [...all].filter((one) => !one.closest("dialog") && !named(one)).length;
    }""")
    assert unnamed == 0
    assert screen.page.locator("[role=grid]").get_attribute("aria-rowcount") == "6"
    screen.page.locator("[role=grid]").focus()
    screen.page.keyboard.press("ArrowDown")
    screen.page.keyboard.press("ArrowDown")
    chosen = screen.page.locator("[role=grid]").get_attribute("aria-activedescendant")
    assert screen.page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_every_text_stands_out_from_its_ground(browser: Any, tracked: Path, scheme: str) -> None:
    page = browser.new_context(color_scheme=scheme).new_page()
    page.goto(address_of(tracked))
    page.wait_for_function("() => scalor.drawn.boxes.length > 0")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate(f"({(Path(__file__).parent / 'faint_texts.js').read_text()})(4.5)") == []
    assert len(page.evaluate(f"({(Path(__file__).parent / 'faint_texts.js').read_text()})(12)")) > 5
    page.close()


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_colours_follow_the_system_and_the_button(browser: Any, tracked: Path, scheme: str) -> None:
    page = browser.new_context(color_scheme=scheme).new_page()
    page.goto(address_of(tracked))
    brightness = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert (page.evaluate(brightness) < 100) == (scheme == "dark")
    page.locator("[data-do=theme]").click()
    assert (page.evaluate(brightness) < 100) == (scheme == "light")
    page.close()


def test_on_a_phone_nothing_is_wider_than_the_screen(browser: Any, tracked: Path) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 700}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(address_of(tracked))
    page.wait_for_function("() => scalor.drawn.boxes.length > 0")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.locator(".picture").bounding_box()["width"] > 300
    context.close()


def test_colours_of_ids_are_those_of_the_other_pictures(screen: Screen, tracked: Path) -> None:
    screen.open(address_of(tracked))
    ids = np.arange(1, 200)
    screen.page.evaluate("scalor.page.stage.layers.ids = false")
    found = screen.page.evaluate("(ids) => ids.map((id) => scalor.colour(id))", ids.tolist())
    assert np.abs(np.array(found) - colors_of(ids)).max() <= 1
