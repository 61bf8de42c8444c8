"""Links, anchors and commands of the documentation: all of them lead somewhere, and the command line accepts them."""

import argparse
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import scalor.model
import scalor.nn
from scalor.cli import overrides
from scalor.cli.main import split_overrides
from scalor.cli.options import parser
from scalor.config import Config
from scalor.errors import InputError
from scalor.settings import fields_of
from scalor.tracks import Tracks

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
DATED = ("log.md", "CHANGELOG.md")
"""Pages that quote commands of earlier versions, whose options may have changed since."""


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


def without_code(text: str) -> str:
    return re.sub(r"```.*?```", "", text, flags=re.S)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        goal = page.parent / path if path else page
        if not goal.exists() or (anchor and anchor not in anchors(goal)):
            broken.append(link)
    return broken


def commands(text: str) -> list[str]:
    """The `scalor ...` commands of a page: lines of its code blocks, and inline code."""
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.S)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    inline = [" ".join(code.split()) for code in re.findall(r"`(scalor [^`]+)`", without_code(text))]
    return [line for line in [*lines, *inline] if re.match(r"scalor [a-z]", line)]


def known() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    return next(dict(action.choices) for action in parser()._actions if isinstance(action.choices, dict))


def left_out(command: argparse.ArgumentParser) -> list[str]:
    """Values for the required arguments of a command, which a sentence may leave out, as in `scalor fit --scratch`."""
    words: list[str] = []
    for action in command._actions:
        if action.required:
            value = next(iter(action.choices)) if action.choices else "1"
            words += [*action.option_strings[:1], str(value)]
    return words


def refusal(command: str) -> str | None:
    """Why the command line refuses a command, also when its required arguments are added; None if it does not."""
    words, dotted = split_overrides(shlex.split(command)[1:])
    name = words[0]
    if name not in known():
        return f"there is no command {name}"
    if words == [name]:
        return None
    reason = None
    for given in (words, [*words, *left_out(known()[name])]):
        try:
            arguments, unknown = parser().parse_known_args(given)
            if unknown or (dotted and arguments.command not in ("train", "fit")):
                return f"{[*unknown, *dotted][0]} is unknown"
            for setting, _ in overrides.pairs(dotted):
                if setting not in fields_of(Config()):
                    return f"--{setting} is unknown"
            return None
        except InputError as error:
            reason = reason or str(error)
        except SystemExit:  # --help
            return None
    return reason


@pytest.mark.parametrize("page", names(PAGES))
def test_links_and_anchors_lead_somewhere(page: str) -> None:
    assert broken_links(ROOT / page) == []


@pytest.mark.parametrize("page", names([page for page in PAGES if page.name not in DATED]))
def test_the_command_line_accepts_every_command(page: str) -> None:
    found = commands((ROOT / page).read_text())
    assert {command: said for command in found if (said := refusal(command))} == {}


def missing_files(text: str) -> list[str]:
    """The files and folders of the repository that a page names and that are not there."""
    named = re.findall(r"`((?:scalor|tests|benchmarks|docs)/[\w./*-]*)`", text)
    return [name for name in named if not any(ROOT.glob(name.rstrip("/")))]


def unknown_settings(text: str) -> list[str]:
    """The settings that a page names, such as `train.lengths`, and that no system has."""
    named = re.findall(r"`(?:--)?((?:model|scene|test|train)\.(?!py|safetensors)\w+\b)(?!\()", text)
    return [name for name in named if name not in fields_of(Config())]


@pytest.mark.parametrize("page", names([page for page in PAGES if page.name not in DATED]))
def test_files_and_settings_of_the_pages_are_there(page: str) -> None:
    text = (ROOT / page).read_text()
    assert missing_files(text) == []
    assert unknown_settings(text) == []


def names_of_the_model() -> set[str]:
    """Every module, class and function of the model and of what it is made of; members as `Class.member`."""
    found: set[str] = set()
    for package in (scalor.model, scalor.nn):
        for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            short = info.name.split(".")[-1]
            for name, value in vars(module).items():
                found |= {name, f"{short}.{name}"}
                members = {*dir(value), *getattr(value, "__annotations__", {})} if isinstance(value, type) else set()
                found |= {f"{name}.{member}" for member in members}
    return found


def test_the_names_on_the_page_of_the_model_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "model.md").read_text()
    files = {path.name for folder in ("model", "nn") for path in (ROOT / "scalor" / folder).rglob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", text)) <= files
    named = set(re.findall(r"`([A-Z]\w+(?:\.\w+)?|[a-z_]+\.(?!py`)\w+)`", text)) - {"P", "D", "M"}
    settings = {name for name in named if name in fields_of(Config())}
    assert named - settings - names_of_the_model() == set()


def test_the_checks_find_what_they_look_for(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    prose = "# One, two\n[a](#one-two) [b](#three) [c](nowhere.md) `scalor fit --scratsh`\n"
    text = f"{prose}```\nscalor track a.mp4 # b\n```\n"
    page.write_text(text)
    assert broken_links(page) == ["#three", "nowhere.md"]
    assert commands(text) == ["scalor track a.mp4", "scalor fit --scratsh"]
    assert missing_files("`scalor/model/elbo.py` `scalor/nothing.py` `tests/`") == ["scalor/nothing.py"]
    assert unknown_settings("`model.slots` `train.slots`") == ["train.slots"]
    assert refusal("scalor track a.mp4") is None
    assert refusal("scalor fit --scratsh") == "--scratsh is unknown"
    assert refusal("scalor train shapes-md --model.slot 4") == "--model.slot is unknown"
    assert refusal("scalor trak a.mp4") == "there is no command trak"
    assert refusal("scalor score --frames 1-2") is None
    assert refusal("scalor track a.mp4 --slots 0") is not None


def test_the_python_of_the_health_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "health.md").read_text(), re.S)
    foreground, empty = np.zeros((144, 192), np.bool_), np.zeros(0, int)
    nothing = Tracks(empty, empty, empty, np.zeros((0, 4)), np.zeros(0), empty.astype(bool), (576, 768))
    exec(code, {"frames": [(foreground, nothing)] * 795})
    assert capsys.readouterr().out.startswith("health: ")
