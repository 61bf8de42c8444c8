"""A page in a real browser, as tests see it."""

import io
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.viewer.numbered import SIZE

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """Path of Chromium: that of the variable CHROMIUM, or one that is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for path in map(shutil.which, BROWSERS) if path), None)


def missing() -> str | None:
    """What is missing for tests in a browser, or None."""
    if find_spec("playwright") is None:
        return "needs playwright: pip install playwright"
    if find_browser() is None:
        return "needs Chromium: install it (apt install chromium) or set the variable CHROMIUM to its path"
    return None


def launched() -> Iterator[Any]:
    """Yield a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield browser
        browser.close()


class Screen:
    """A page with the player, and what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}"))

    def open(self, address: str) -> "Screen":
        self.page.goto(address)
        self.wait("scalor.page.player.film && scalor.drawn.boxes.length > 0")
        return self

    def wait(self, condition: str) -> None:
        self.page.wait_for_function(f"() => {{ const {{page, drawn}} = scalor; return {condition}; }}", timeout=30_000)

    @property
    def position(self) -> int:
        return int(self.page.evaluate("scalor.drawn.position"))

    def seek(self, position: int) -> None:
        """Move the slider, as a hand would."""
        self.page.locator(".seek").fill(str(position))
        self.wait(f"drawn.position === {position} && page.player.seeking === null")

    def press(self, key: str, position: int | None = None) -> None:
        """Press a key, and wait for the frame that it leads to."""
        self.page.keyboard.press(key)
        if position is not None:
            self.wait(f"drawn.position === {position} && page.player.seeking === null")

    def drawn(self) -> dict[int, list[float]]:
        """The boxes that were drawn last, in pixels of the video, by id."""
        drawn = self.page.evaluate("scalor.drawn")
        scale, left, top = drawn["scale"], drawn["x"], drawn["y"]
        return {
            box["id"]: [
                (box["x"] - left) / scale,
                (box["y"] - top) / scale,
                (box["x"] - left + box["width"]) / scale,
                (box["y"] - top + box["height"]) / scale,
            ]
            for box in drawn["boxes"]
        }

    def picture(self) -> np.ndarray:
        """What the picture shows."""
        return np.array(Image.open(io.BytesIO(self.page.locator(".picture").screenshot())).convert("RGB"))

    def colour_at(self, x: float, y: float) -> np.ndarray:
        """Colour of the picture at a place of the video, when it is not enlarged."""
        shown = self.picture()
        scale = shown.shape[1] / SIZE[1]
        colour: np.ndarray = shown[round(y * scale), round(x * scale)].astype(int)
        return colour

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def ids_in_table(self) -> list[int]:
        found: list[int] = self.page.evaluate("""() => {
          const rows = [...document.querySelectorAll(".body .row:not([hidden])")];
          rows.sort((a, b) => Number(a.dataset.row) - Number(b.dataset.row));
          return rows.map((row) => parseInt(row.firstChild.textContent));
        }""")
        return found


def address_of(folder: Path) -> str:
    return (folder / "report.html").resolve().as_uri()
