"""`python -m benchmarks.viewer`: the report's player on a long video in a real browser, as a table and as JSON.

The video has 640 x 480 pixels and 30 frames a second; its pictures repeat. Objects come and go, so that all tracks
together fill the video evenly. The page is opened as a file.
"""

import argparse
import json
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.report import hardware, table
from scalor.outputs.html_report import HtmlReport
from scalor.provenance import commit, today
from scalor.tracks import Tracks
from scalor.viewer.film import KEY_FRAME_EVERY, FilmWriter
from scalor.viewer.writing import FILM, FOLDER, ViewerWriter

RESULT = Path(__file__).parent / "results" / "viewer.json"
SIZE = (480, 640)
FPS = 30
LOOP = 20 * KEY_FRAME_EVERY
"""Number of pictures until they repeat."""
SEEKS = 60
PLAYED_SECONDS = 8


@dataclass(frozen=True)
class ViewerRow:
    frames: int
    tracks: int
    in_view: float
    """Objects in a frame, on average."""
    data_mb: float
    """Size of the player's data without the video."""
    first_picture_s: float
    """From opening the page to the first picture with its boxes."""
    seek_ms: float
    """From a click on a random place of the timeline to its picture with its boxes: the median."""
    seek_95_ms: float
    played_fps: float
    """Frames a second that were shown at normal speed; the video has 30."""
    fast_fps: float
    """The same at eight times the speed, where frames are left out."""
    draw_ms: float
    """Time to draw a frame with boxes, ids and trails."""
    filter_ms: float
    """Time to filter and sort the table."""
    heap_mb: float
    """Memory of the page's program at the end, in Chromium."""


def write_film(path: Path, frames: int) -> None:
    """Write a film of any length whose pictures repeat: its packets are copied."""
    import av

    rng = np.random.default_rng(0)
    ground = rng.integers(60, 160, (*SIZE, 3), np.uint8)
    ground = ground.reshape(SIZE[0] // 8, 8, SIZE[1] // 8, 8, 3).mean(axis=(1, 3)).astype(np.uint8)
    ground = ground.repeat(8, axis=0).repeat(8, axis=1)
    loop = path.with_name("loop.mp4")
    with FilmWriter(loop, Fraction(FPS)) as film:
        for t in range(LOOP):
            picture = ground.copy()
            for k in range(20):
                x, y = (37 * k + 3 * t) % (SIZE[1] - 20), (23 * k + t) % (SIZE[0] - 20)
                picture[y : y + 20, x : x + 20] = 40 + 9 * k
            film.write(picture)
    with av.open(loop) as source, av.open(path, "w", format="mp4", options={"movflags": "faststart"}) as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        packets = [(bytes(packet), packet.is_keyframe) for packet in source.demux(video=0) if packet.size]
        for t in range(frames):
            content, key = packets[t % LOOP]
            packet = av.Packet(content)
            packet.pts = packet.dts = t
            packet.duration = 1
            packet.time_base = Fraction(1, FPS)
            packet.is_keyframe = key
            packet.stream = stream
            target.mux(packet)
    loop.unlink()


def write_page(folder: Path, frames: int, tracks: int, life: int) -> float:
    """Write a report with its data; return the average number of objects in view."""
    film = folder / FILM
    write_film(film, frames)
    born = np.linspace(1 - life, frames, tracks, endpoint=False).astype(int)
    rows = 0
    with ViewerWriter(folder / FOLDER, SIZE, FPS, film=film) as viewer:
        for t in range(frames):
            ids = np.flatnonzero((born <= t) & (t < born + life))
            x = bouncing(13.7 * ids + 1.3 * (t - born[ids]), SIZE[1] - 24)
            y = 20 + bouncing(71.3 * ids + 30 * np.sin((t - born[ids]) / 40), SIZE[0] - 70)
            viewer.add(np.empty((0, 0, 3), np.uint8), t / FPS, t, as_tracks(t, ids + 1, x, y))
            rows += len(ids)
        viewer.finish()
    report = HtmlReport(
        facts={"video": "long.mp4"},
        size=SIZE,
        frames=frames,
        objects=tracks,
        rows=rows,
        seconds=(0, frames / FPS),
        longest=[],
        stills=[],
        trajectories=b"",
        counts=None,
        files={},
    )
    (folder / "report.html").write_text(report.to_html(), encoding="utf-8")
    return rows / frames


def bouncing(places: np.ndarray, room: float) -> np.ndarray:
    """Return places on a line as places between two walls that reflect."""
    return np.asarray(room - np.abs(places % (2 * room) - room))


def as_tracks(t: int, ids: np.ndarray, x: np.ndarray, y: np.ndarray) -> Tracks:
    """Return the tracks of a frame."""
    count = len(ids)
    return Tracks(
        clip=np.zeros(count, int),
        frame=np.full(count, t),
        id=ids,
        box=np.stack([x, y, x + 22, y + 40], axis=1),
        confidence=np.full(count, 0.9),
        discovered=np.zeros(count, bool),
        size=SIZE,
    )


def measure(folder: Path, frames: int, tracks: int, in_view: float, chromium: str) -> ViewerRow:
    """Open the page and use it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        options = ["--no-sandbox", "--enable-precise-memory-info"]
        browser = started.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        begun = time.perf_counter()
        page.goto((folder / "report.html").as_uri())
        page.wait_for_function("() => window.scalor && scalor.page.player.film && scalor.drawn.boxes.length > 0")
        first = time.perf_counter() - begun
        seeks = page.evaluate(SEEKING, [SEEKS, frames])
        normal = page.evaluate(PLAYING, [1, PLAYED_SECONDS])
        fast = page.evaluate(PLAYING, [8, PLAYED_SECONDS])
        draw = page.evaluate(DRAWING)
        filtering = page.evaluate(FILTERING)
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        browser.close()
    data = sum(file.stat().st_size for file in (folder / FOLDER).iterdir() if file.name != FILM) / 1e6
    return ViewerRow(
        frames=frames,
        tracks=tracks,
        in_view=in_view,
        data_mb=data,
        first_picture_s=first,
        seek_ms=statistics.median(seeks),
        seek_95_ms=sorted(seeks)[int(0.95 * len(seeks))],
        played_fps=normal,
        fast_fps=fast,
        draw_ms=draw,
        filter_ms=filtering,
        heap_mb=heap,
    )


SEEKING = """async ([count, frames]) => {
  const { page } = scalor;
  const times = [];
  let seed = 1;
  for (let i = 0; i < count; i++) {
    seed = (seed * 16807) % 2147483647;
    const to = seed % frames;
    const begun = performance.now();
    page.player.seek(to);
    while (scalor.drawn.position !== to || !scalor.drawn.boxes.length || page.player.seeking !== null) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    times.push(performance.now() - begun);
  }
  return times;
}"""
PLAYING = """async ([speed, seconds]) => {
  const { page } = scalor;
  page.player.setSpeed(speed);
  page.player.seek(0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  page.player.play();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  let shown = 0;
  const show = page.player.show;
  page.player.show = (position) => { show(position); shown += scalor.drawn.boxes.length > 0; };
  const begun = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  const rate = (1000 * shown) / (performance.now() - begun);
  page.player.show = show;
  page.player.pause();
  await new Promise((resolve) => setTimeout(resolve, 300));
  return rate;
}"""
DRAWING = """() => {
  const { page } = scalor;
  const run = () => page.stage.draw(page.player.position, true);
  run();
  const begun = performance.now();
  for (let i = 0; i < 200; i++) run();
  return (performance.now() - begun) / 200;
}"""
FILTERING = """() => {
  const { table } = scalor.page;
  const begun = performance.now();
  for (let i = 0; i < 20; i++) {
    table.filter.value = `seconds>${i}`;
    table.update();
  }
  table.filter.value = "";
  table.update();
  return (performance.now() - begun) / 21;
}"""


def main(words: Sequence[str]) -> None:
    from tests.viewer.screen import find_browser

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--tracks", type=int, nargs="+", default=[1_000, 5_000])
    parser.add_argument("--life", type=int, default=2_000, help="frames from the first to the last of a track")
    chosen = parser.parse_args(words)
    chromium = find_browser()
    if chromium is None:
        sys.exit("needs Chromium: install it or set the variable CHROMIUM to its path")
    rows = []
    for tracks in chosen.tracks:
        with tempfile.TemporaryDirectory() as name:
            in_view = write_page(Path(name), chosen.frames, tracks, chosen.life)
            rows.append(measure(Path(name), chosen.frames, tracks, in_view, chromium))
        print(table(rows), flush=True)
    document: dict[str, Any] = {
        "title": "The report's player on a long video, opened as a file in headless Chromium.",
        "rows": [asdict(row) for row in rows],
        "command": shlex.join(["python", "-m", "benchmarks.viewer", *words]),
        "commit": commit(),
        "date": today(),
        "hardware": hardware(torch.device("cpu")),
        "playwright": version("playwright"),
    }
    RESULT.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
