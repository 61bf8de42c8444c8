"""What is said in several files of the project is the same in all of them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import scalor

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    """Return the packages of requirements, without their versions."""
    return {re.split(r"[\[><=;! ]", line)[0].lower() for line in requirements}


def test_the_version_stands_in_the_package_and_elsewhere_it_is_the_same() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert f"\nversion: {scalor.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    released = re.findall(r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert released[0] == scalor.__version__


def test_every_extra_that_an_error_message_names_is_there() -> None:
    asked = {
        extra
        for file in (ROOT / "scalor").rglob("*.py")
        for extra in re.findall(r"pip install '?scalor\[(\w+)\]", file.read_text())
    }
    assert asked
    assert asked <= set(EXTRAS)


def test_what_may_be_missing_at_run_time_is_there_in_tests() -> None:
    """So that no test of an optional package is skipped or runs against an imitation."""
    wanted = {name for extra in ("video", "train", "plots", "trackpy") for name in names(EXTRAS[extra])}
    included = re.search(r"scalor\[(.*)\]", EXTRAS["dev"][0])
    assert included is not None
    given = names(EXTRAS["dev"]) | {name for extra in included[1].split(",") for name in names(EXTRAS[extra])}
    assert wanted <= given
    assert {"pandas", "pyarrow", "supervision", "tifffile"} <= given


@pytest.mark.parametrize("tool", ["ruff", "mypy", "import-linter", "torch", "triton"])
def test_tools_whose_releases_break_checks_have_one_version(tool: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert len([line for line in lines if re.fullmatch(rf"{tool}==[\d.]+", line)]) == 1


def test_the_hooks_of_a_commit_are_the_checks_of_make() -> None:
    make = re.findall(r"^\t\$\(BIN\)/(ruff check|ruff format|mypy|lint-imports)", (ROOT / "Makefile").read_text(), re.M)
    hooks = re.findall(r"entry: \.venv/bin/(ruff check|ruff format|mypy|lint-imports)", hook_file())
    assert make == hooks == ["ruff check", "ruff format", "mypy", "lint-imports"]


def hook_file() -> str:
    return (ROOT / ".pre-commit-config.yaml").read_text()
