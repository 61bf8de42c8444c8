"""`report.html`: the results on one page, with a player that reads the folder beside it."""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from scalor.health import Health
from scalor.outputs.trajectories import TrackSummary
from scalor.video import Selection
from scalor.viewer import assembly
from scalor.visual.colors import colors_of

STYLE = """
:root { color-scheme: light; --ink: #1c2430; --soft: #5d6878; --line: #e3e7ee; --paper: #f5f7fa; --accent: #0b63b5;
  --card: #fff; --ok: #17602b; --ok-paper: #e2f3e6; --warn: #7a4f00; --warn-paper: #fdf1d3; --bad: #8c1c13;
  --bad-paper: #fbe0de; }
:root[data-theme="dark"] { color-scheme: dark; --ink: #e4e9f0; --soft: #98a4b5; --line: #313b49; --paper: #12171e;
  --accent: #6fb1f5; --card: #1b222c; --ok: #8fdca4; --ok-paper: #17361f; --warn: #f0c877; --warn-paper: #3b2d0d;
  --bad: #f5a39c; --bad-paper: #451a17; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI",
  Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 0.75rem; }
p { margin: 0.25rem 0 0.75rem; }
a { color: var(--accent); }
.lead, .note, figcaption { color: var(--soft); }
.note, figcaption { font-size: 0.875rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; }
.facts { display: flex; flex-wrap: wrap; gap: 0.2rem 1.25rem; list-style: none; margin: 0.5rem 0 1rem; padding: 0;
  color: var(--soft); }
.facts b { color: var(--ink); }
.chip { border-radius: 0.35rem; padding: 0.05rem 0.5rem; font-size: 0.875rem; font-weight: 700; }
section { padding: 1rem; margin: 1rem 0; overflow: hidden; }
figure { margin: 0; }
img { display: block; max-width: 100%; height: auto; border-radius: 0.35rem; }
.wide img { margin: 0 auto; max-height: 40rem; }
.plot img { margin: 0 auto; width: 42rem; }
.stills { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 0.75rem; }
.stills img { width: 100%; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: 0.875rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr:last-child td { border-bottom: 0; }
i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 50%; margin-right: 0.5rem; }
dl { display: grid; grid-template-columns: minmax(5rem, max-content) 1fr; gap: 0.35rem 1rem; margin: 0; }
dt { color: var(--soft); overflow-wrap: anywhere; }
dd { margin: 0; overflow-wrap: anywhere; }
.health ul { list-style: none; margin: 0 0 0.5rem; padding: 0; }
.health li { margin: 0.35rem 0; }
.chip.ok { background: var(--ok-paper); color: var(--ok); }
.chip.warn { background: var(--warn-paper); color: var(--warn); }
.chip.bad { background: var(--bad-paper); color: var(--bad); }
.health summary { color: var(--soft); font-size: 0.875rem; cursor: pointer; }
code { font: 0.875em ui-monospace, "DejaVu Sans Mono", monospace; }
@media (max-width: 36rem) {
  .files { grid-template-columns: 1fr; gap: 0; }
  .files dd { margin-bottom: 0.6rem; }
  .stills { grid-template-columns: 1fr 1fr; gap: 0.5rem; }
  th, td { padding: 0.35rem 0.3rem; }
  th { white-space: normal; vertical-align: bottom; line-height: 1.2; }
}
"""

VERDICTS = {"good": "ok", "doubtful": "warn", "not to be trusted": "bad"}
"""Level of each verdict, for its colour."""


@dataclass(frozen=True)
class HtmlReport:
    """Contents of the report."""

    facts: Mapping[str, object]
    """Origin of the results (video, command, weights, date and so on), in display order."""
    size: tuple[int, int]
    """Height and width of the video."""
    frames: int
    objects: int
    """Number of ids."""
    rows: int
    """Number of objects, summed over frames."""
    seconds: tuple[float, float]
    """Times of the first and of the last frame."""
    longest: Sequence[TrackSummary]
    stills: Sequence[tuple[float, bytes]]
    """Time in seconds and JPEG file of each picture."""
    trajectories: bytes
    """JPEG file of the trajectories picture."""
    counts: bytes | None
    """PNG file of the counts plot, or None if it could not be drawn."""
    files: Mapping[str, str]
    """Description of each file, by file name."""
    notes: Sequence[str] = ()
    stride: int = 1
    """Step from one tracked frame to the next in the video."""
    predicted: int = 0
    """Number of the last frames that were predicted and not observed."""
    predicted_from: float = math.inf
    """Time of the first of these frames."""
    health: Health | None = None
    """Health of the tracks: how far they can be trusted. None if it was not measured."""
    player: str = "report_viewer"
    """Folder, beside the report, of the data that the player shows."""

    def to_html(self) -> str:
        """Return the whole page. It needs no other file except the player's data."""
        title = f"Objects in {Path(str(self.facts['video'])).name}" if "video" in self.facts else "Objects found"
        sections = [
            assembly.elements("files", self.player),
            self._health(),
            self._stills(),
            self._trajectories(),
            self._counts(),
            self._table(),
            self._files(),
            self._facts(),
        ]
        return "\n".join(
            [
                '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                f'<meta http-equiv="Content-Security-Policy" content="{assembly.policy("files")}">',
                f"<title>{escape(title)}</title>\n<style>{STYLE}{assembly.style()}</style>\n</head>\n<body>\n<main>",
                f"<h1>{escape(title)}</h1>",
                f'<p class="lead">{self._lead()}</p>',
                self._numbers(),
                *sections,
                f"</main>\n<script>{assembly.program()}</script>\n</body>\n</html>\n",
            ]
        )

    def _lead(self) -> str:
        if not self.predicted:
            return "Found and tracked by SCALOR, without labels."
        observed = self.frames - self.predicted
        return (
            f"SCALOR observed the first {observed} of these {self.frames} frames and imagined the other "
            f"{self.predicted}: from {clock(self.predicted_from)} on, pictures, boxes and counts are predictions."
        )

    def _numbers(self) -> str:
        first, last = self.seconds
        height, width = self.size
        numbers = {
            "ids" if self.objects != 1 else "id": f"{self.objects:,}",
            "in view on average": f"{self.rows / self.frames:.1f}",
            **self._frame_numbers(),
            "long": clock(last - first),
            "pixels": f"{width}&thinsp;&times;&thinsp;{height}",
        }
        items = [f"<li><b>{value}</b> {what}</li>" for what, value in numbers.items()]
        if self.health is not None:
            verdict = self.health.verdict
            items.append(
                f'<li>can be trusted? <a class="chip {VERDICTS[verdict]}" href="#health">{escape(verdict)}</a></li>'
            )
        return f'<ul class="facts">{"".join(items)}</ul>'

    def _frame_numbers(self) -> dict[str, str]:
        if self.predicted:
            return {"frames observed": f"{self.frames - self.predicted:,}", "frames imagined": f"{self.predicted:,}"}
        of_video = f" ({Selection(stride=self.stride).which_frames} of the video)" if self.stride > 1 else ""
        return {f"frames{of_video}" if self.frames != 1 else "frame": f"{self.frames:,}"}

    def _health(self) -> str:
        if self.health is None:
            return ""
        marks = {"ok": "OK", "warn": "check", "bad": "problem"}
        ordered = sorted(self.health.measures, key=lambda one: ("bad", "warn", "ok").index(one.level))
        items = [
            f'<li><b class="chip {one.level}">{marks[one.level]}</b> {escape(one.sentence)} {escape(one.remedy)}</li>'
            for one in ordered
        ]
        trouble = sum(one.level != "ok" for one in self.health.measures)
        return (
            f'<section class="health" id="health"><h2>Can these tracks be trusted? '
            f'<span class="chip {VERDICTS[self.health.verdict]}">{escape(self.health.verdict)}</span></h2>'
            f"<ul>{''.join(items[:trouble])}</ul><details><summary>Checks without a problem</summary>"
            f"<ul>{''.join(items[trouble:])}</ul></details></section>"
        )

    def _stills(self) -> str:
        figures = [
            f'<figure><img alt="frame with its tracks at {clock(seconds)}" src="{data_uri(picture, "jpeg")}">'
            f"<figcaption>{clock(seconds)}{', imagined' * (seconds >= self.predicted_from)}</figcaption></figure>"
            for seconds, picture in self.stills
        ]
        return f'<section><h2>Frames with their tracks</h2><div class="stills">{"".join(figures)}</div></section>'

    def _trajectories(self) -> str:
        picture = data_uri(self.trajectories, "jpeg")
        return (
            f'<section class="wide"><h2>Paths</h2><figure><img alt="paths of all objects" src="{picture}"><figcaption>'
            "Each path has the colour of its object and ends in a dot. Numbers are the ids of the longest tracks."
            "</figcaption></figure></section>"
        )

    def _counts(self) -> str:
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        plot = ""
        if self.counts is not None:
            plot = f'<img alt="objects in view over time" src="{data_uri(self.counts, "png")}">'
        return f'<section class="plot"><h2>Objects in view over time</h2>{plot}{notes}</section>'

    def _table(self) -> str:
        if not self.longest:
            return '<section><h2>Longest tracks</h2><p class="note">Nothing was found in this video.</p></section>'
        lines = [
            f'<tr><td><i style="background:{hexadecimal(life.id)}"></i>{life.id}</td><td>{clock(life.first)}</td>'
            f"<td>{clock(life.last)}</td><td>{life.seconds:,.1f}</td><td>{life.length:,.0f}</td></tr>"
            for life in self.longest
        ]
        head = "<tr><th>id</th><th>first frame at</th><th>last frame at</th><th>seconds</th><th>path (px)</th></tr>"
        return (
            f'<section><h2>Longest tracks</h2><div class="scroll"><table><thead>{head}</thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div></section>"
        )

    def _files(self) -> str:
        items = [
            f'<dt><a href="{escape(name)}"><code>{escape(name)}</code></a></dt><dd>{escape(what)}</dd>'
            for name, what in self.files.items()
        ]
        return f'<section><h2>Files</h2><dl class="files">{"".join(items)}</dl></section>'

    def _facts(self) -> str:
        if not self.facts:
            return ""
        items = [
            f"<dt>{escape(name)}</dt><dd><code>{escape(str(value))}</code></dd>" for name, value in self.facts.items()
        ]
        return f"<section><h2>How these results were made</h2><dl>{''.join(items)}</dl></section>"


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, such as 0:07.2 for 7.25, with hours if there are any."""
    tenths = int(10 * seconds + 1e-6)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest / 10:04.1f}" if hours else f"{minutes}:{rest / 10:04.1f}"


def hexadecimal(number: int) -> str:
    """Return the colour of an object id as a CSS colour."""
    return "#" + bytes(colors_of(np.array(number))).hex()


def data_uri(file: bytes, kind: str) -> str:
    """Return an image file of the given kind, such as "png", as a data URI."""
    return f"data:image/{kind};base64,{b64encode(file).decode('ascii')}"
