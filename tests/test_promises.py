"""Numbers that the pages promise are those of the code; figures of the README are those that were measured."""

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from scalor.checkpoint import WEIGHTS
from scalor.cli.options import parser
from scalor.data import compositor, replay, scenes
from scalor.evaluation import iou_gate, pair_up, paper_gate, strict_gate
from scalor.evaluation.matching import NEAR_VIEW
from scalor.fitting.fit import MIN_GAIN
from scalor.fitting.refine import MINUTES
from scalor.health import coverage, monitor, rules
from scalor.presets import get_preset
from scalor.tracking import identity, video_view
from scalor.video.pixels import LEVEL_PERCENTILES

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORDS = {"a tenth": 0.1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "nine tenths": 0.9}


@cache
def page(name: str) -> str:
    """Return a page as one line, so that line breaks do not matter."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


def number(text: str) -> float:
    return WORDS[text] if text in WORDS else float(text.rstrip("."))


def asked(command: str, name: str) -> float:
    """Return the default of an option."""
    words = {"predict": ["predict", "a.mp4"]}[command]
    return float(getattr(parser().parse_args(words), name))


def default(function: Callable[..., object], name: str) -> float:
    return float(inspect.signature(function).parameters[name].default)


PROMISES: list[tuple[str, str, float]] = [
    # The page, its sentence with the number in brackets, and what the code has.
    ("README.md", r"`fit` takes (ten) minutes", MINUTES),
    ("docs/own_video.md", r"decides each frame (\d+) frames later", identity.LAG),
    ("docs/own_video.md", r"keeps the id of a hidden object for (\d+) frames", identity.SETTINGS.patience),
    ("docs/own_video.md", r"with a confidence of ([\d.]+) and no mask", identity.PREDICTED_PRESENCE),
    ("docs/own_video.md", r"detected in at least (\w+) frames", identity.PROOF),
    ("docs/own_video.md", r"for at least ([\d.]+) seconds", identity.PROOF_SECONDS),
    ("docs/own_video.md", r"presence of ([\d.]+) or more on average", identity.MIN_MEAN_PRESENCE),
    ("docs/own_video.md", r"`predict` observes the last (\w+) frames", asked("predict", "observe")),
    ("docs/own_video.md", r"percentiles ([\d.]+) and", LEVEL_PERCENTILES[0]),
    ("docs/own_video.md", r"percentiles [\d.]+ and ([\d.]+)", LEVEL_PERCENTILES[1]),
    ("docs/any_video.md", r"typical object is (\d+) px", video_view.TARGET_SIDE),
    ("docs/any_video.md", r"more than ([\d.]+) times as long as wide", video_view.MAX_ASPECT),
    ("docs/any_video.md", r"for up to (\d+) frames of occlusion", identity.SETTINGS.patience),
    ("docs/any_video.md", r"real H\.264 encoder \((\d+) % of the clips\)", 100 * compositor.RECORDED),
    ("docs/any_video.md", r"refined weights must be ahead by ([\d.]+)", MIN_GAIN),
    ("docs/scenes_and_metrics.md", r"extends ([\d.]+) s beyond", scenes.MARGIN),
    ("docs/scenes_and_metrics.md", r"velocity of ([\d.]+) to", scenes.SPEED_RANGE[0]),
    ("docs/scenes_and_metrics.md", r"velocity of [\d.]+ to ([\d.]+) s", scenes.SPEED_RANGE[1]),
    ("docs/scenes_and_metrics.md", r"Sizes vary by (\d+) %", 100 * scenes.JITTER),
    ("docs/scenes_and_metrics.md", r"squares of (\d+) pixels at eight places", replay.CROP),
    ("docs/scenes_and_metrics.md", r"the first (nine tenths) of the time", replay.TRAINING),
    ("docs/scenes_and_metrics.md", r"the median of (\d+) frames", replay.MEDIAN_OF),
    ("docs/scenes_and_metrics.md", r"at least ([\d.]+) of it is visible", default(pair_up, "minimum_visible")),
    ("docs/scenes_and_metrics.md", r"its presence is above ([\d.]+)", default(pair_up, "minimum_presence")),
    ("docs/scenes_and_metrics.md", r"centre lies within ([\d.]+) s of the view", NEAR_VIEW),
    ("docs/health.md", r"more than (\d+) % of full brightness", 100 * monitor.LIGHT_STEP),
    ("docs/health.md", r"with less than (a tenth) of foreground", coverage.EMPTY_SHARE),
    ("docs/health.md", r"fewer than (\d+) stand alone", rules.MIN_PAIRS_FOR_OK),
    ("docs/health.md", r"of at least (\d+) \|", rules.MIN_PAIRS_FOR_BAD),
    ("docs/health.md", r"an IoU of at least ([\d.]+) with the box around", coverage.MIN_FIT_IOU),
    ("docs/health.md", r"\(IoU ([\d.]+), or", coverage.DUPLICATE_IOU),
    ("docs/health.md", r"or (\d+) % of the smaller one", 100 * coverage.DUPLICATE_COVER),
]


@pytest.mark.parametrize(("name", "sentence", "ours"), PROMISES)
def test_a_number_of_a_page_is_that_of_the_code(name: str, sentence: str, ours: float) -> None:
    found = re.findall(sentence, page(name))
    assert found, f"{name} does not say {sentence!r} any more: write the promise again"
    assert [number(one) for one in found] == pytest.approx([ours] * len(found))


LIMITS = {
    "found": (rules.UNSEEN_LIMITS, 100),
    "explained": (rules.EXPLAINED_LIMITS, 100),
    "on_nothing": (rules.EMPTY_LIMITS, 100),
    "fit": (rules.FITTING_LIMITS, 100),
    "fill": (rules.FILL_LIMITS, 100),
    "size": (rules.SIZE_LIMITS, 1),
    "doubles": (rules.DUPLICATES_LIMITS, 100),
    "jumps": (rules.JUMPS_LIMITS, 100),
    "frames": (rules.MISSING_LIMITS, 100),
    "slots": (rules.DROPPED_LIMITS, 100),
    "foreground": (rules.FOREGROUND_LIMITS, 100),
}


@pytest.mark.parametrize("measure", LIMITS)
def test_the_limits_of_the_health_report_are_those_of_its_page(measure: str) -> None:
    (row,) = re.findall(rf"^\| `{measure}` \|.*$", (ROOT / "docs/health.md").read_text(), re.M)
    warn, bad = row.split("|")[3:5]
    limits, unit = LIMITS[measure]
    assert float(re.findall(r"[\d.]+", warn)[0]) == pytest.approx(unit * limits.warn)
    assert float(re.findall(r"[\d.]+", bad)[0]) == pytest.approx(unit * limits.bad)


def test_every_measure_of_the_health_report_is_on_its_page() -> None:
    told = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/health.md").read_text(), re.M)
    made = re.findall(r'return measure\(\s+"(\w+)"', inspect.getsource(rules))
    assert set(told) == set(made)
    assert set(LIMITS) <= set(told)


def test_the_densities_of_the_page_are_those_of_the_presets() -> None:
    rows = re.findall(r"^\| (`shapes-\w+`.*?) \| (\d+)-(\d+) \| ([\d.]+) \|$", scenes_page(), re.M)
    assert len(rows) == 5
    for names, fewest, most, size in rows:
        for name in re.findall(r"`([\w-]+)`", names):
            scene = get_preset(name).scene
            assert (scene.objects, scene.size) == ((int(fewest), int(most)), float(size)), name


def scenes_page() -> str:
    return (ROOT / "docs" / "scenes_and_metrics.md").read_text()


def test_the_gates_of_the_page_are_those_of_the_metrics() -> None:
    told = dict(re.findall(r"^\| (paper|strict|IoU) \| .*?([\d.]+)", scenes_page(), re.M))
    limits = {
        "paper": paper_gate(9.0).threshold / 9,
        "strict": strict_gate(9.0).threshold / 9,
        "IoU": iou_gate().threshold,
    }
    assert {name: float(value) for name, value in told.items()} == pytest.approx(limits)


def test_python_and_weights_are_as_the_readme_says() -> None:
    (python,) = re.findall(r"Python (3\.\d+) or newer", page("README.md"))
    assert PROJECT["requires-python"] == f">={python}"
    (megabytes,) = re.findall(r"weights are part of the package \(([\d.]+) MB\)", page("README.md"))
    assert (WEIGHTS / "any.safetensors").stat().st_size / 1e6 == pytest.approx(float(megabytes), abs=0.05)


@pytest.mark.parametrize(("video", "row"), [("pets", "PETS"), ("cells", "simulated cells"), ("campus", "TUD campus")])
def test_the_figures_of_the_readme_are_those_that_were_measured(video: str, row: str) -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "any-video.json").read_text())["rows"]
    (line,) = re.findall(rf"^\| {row}.*$", (ROOT / "README.md").read_text(), re.M)
    told = [re.findall(r"\.\d{3}", cell)[:3] for cell in line.split("|")[2:4]]
    for figures, tracker in zip(told, ("default", "classical-motion"), strict=True):
        (ours,) = [one for one in measured if one["video"] == video and one["tracker"] == tracker]
        assert [float(one) for one in figures] == pytest.approx([ours["MOTA"], ours["IDF1"], ours["HOTA"]], abs=6e-4)
