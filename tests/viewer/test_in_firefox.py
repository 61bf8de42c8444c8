"""The report opened as a file in Firefox."""

import io
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.viewer.firefox import Firefox, find_firefox
from tests.viewer.numbered import boxes_in_csv, number_in
from tests.viewer.screen import address_of


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    binary = find_firefox()
    if binary is None:
        pytest.skip("needs Firefox: install it (apt install firefox-esr)")
    made = Firefox(binary, tmp_path)
    yield made
    made.close()


def picture(firefox: Firefox) -> np.ndarray:
    """What the picture shows."""
    text = firefox.evaluate("scalor.page.stage.canvas.toDataURL()").split(",")[1]
    return np.array(Image.open(io.BytesIO(b64decode(text))).convert("RGB"))


def test_firefox_steps_plays_and_draws_the_boxes_of_the_frame(firefox: Firefox, tracked: Path) -> None:
    firefox.ask("WebDriver:Navigate", url=address_of(tracked))
    firefox.wait("page.player.film && drawn.boxes.length > 0")
    for frame in (0, 89, 44, 45, 16):
        firefox.evaluate(f"scalor.page.player.seek({frame})")
        firefox.wait(f"drawn.position === {frame} && page.player.seeking === null")
        scale = firefox.evaluate("scalor.drawn.scale")
        drawn = {box["id"]: box["x"] / scale for box in firefox.evaluate("scalor.drawn.boxes")}
        assert drawn == pytest.approx({n: box[0] for at, n, box in boxes_in_csv(tracked) if at == frame}, abs=0.1)
        assert number_in(picture(firefox)) == frame
    firefox.evaluate("scalor.page.act('on')")
    firefox.wait("drawn.position === 17 && page.player.seeking === null")
    assert number_in(picture(firefox)) == 17
    firefox.evaluate("scalor.page.act('play')")
    firefox.wait("drawn.position > 25")
    firefox.evaluate("scalor.page.act('play')")
    firefox.wait("!page.player.playing && page.player.seeking === null")
    assert number_in(picture(firefox)) == firefox.evaluate("scalor.drawn.position")
    assert firefox.evaluate("scalor.page.part('.message').hidden")
