"""The report needs nothing but itself, and says what it was given."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from scalor.outputs.html_report import HtmlReport, clock
from scalor.outputs.trajectories import TrackSummary

REPORT = HtmlReport(
    facts={"video": "/films/ants <&> bees.mp4", "command": "scalor track 'a b.mp4' --out \"x\"", "seed": 3},
    size=(480, 640),
    frames=1200,
    objects=31,
    rows=6000,
    seconds=(2.0, 50.0),
    longest=[TrackSummary(4, 2.0, 49.5, 1180, 1234.5, (3, 4)), TrackSummary(9, 3723.0, 3724.0, 5, 0.2, (3, 4))],
    stills=[(2.0, b"jpeg"), (26.0, b"jpeg")],
    trajectories=b"jpeg",
    counts=b"png",
    files={"tracks.csv": "one row per object & frame"},
)


class Reader(HTMLParser):
    """Collects what a browser would fetch, and checks that tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("link", "iframe", "object", "embed")
        values = dict(attrs)
        self.fetched += [values["src"] or ""] if "src" in values else []
        self.links += [values["href"] or ""] if "href" in values else []
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open[-1:] != ["script"] else ""


def test_the_page_is_well_formed_and_fetches_nothing() -> None:
    page = REPORT.to_html()
    read = Reader(page)
    assert len(read.fetched) == 4
    assert all(source.startswith("data:image/") for source in read.fetched)
    assert not re.search(r"https?:|url\(|@import", page)
    assert re.findall(r"<script[^>]*>", page) == ["<script>"]
    assert "width=device-width" in page


def test_names_with_markup_in_them_are_shown_as_they_are() -> None:
    read = Reader(REPORT.to_html())
    assert "Objects in ants <&> bees.mp4" in read.text
    assert "scalor track 'a b.mp4' --out \"x\"" in read.text
    assert "one row per object & frame" in read.text
    assert read.links == ["tracks.csv"]


def test_the_numbers_are_there() -> None:
    text = Reader(REPORT.to_html()).text
    for shown in ("31", "1,200", "5.0", "0:48.0", "0:02.0", "0:49.5", "47.5", "1,234", "1:02:03.0"):
        assert shown in text, shown


def test_predicted_frames_are_told_from_observed_ones() -> None:
    assert "predict" not in Reader(REPORT.to_html()).text
    text = Reader(replace(REPORT, predicted=800, predicted_from=18.0).to_html()).text
    assert "observed the first 400 of these 1200 frames and imagined the other 800: from 0:18.0 on" in text
    assert "400 frames observed" in text
    assert "800 frames imagined" in text
    assert "0:26.0, imagined" in text
    assert "0:02.0, imagined" not in text


def test_what_is_missing_is_said() -> None:
    nothing = replace(REPORT, objects=0, rows=0, longest=[], counts=None, notes=["counts.png is left out"], facts={})
    text = Reader(nothing.to_html()).text
    assert "Nothing was found" in text
    assert "counts.png is left out" in text
    assert "Objects found" in text


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0:00.0"), (7.25, "0:07.2"), (59.96, "0:59.9"), (60, "1:00.0"), (36_000.1, "10:00:00.1")]
)
def test_times_read_as_on_a_clock(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown
