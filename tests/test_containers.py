"""The files for containers agree with the package. There is no Docker here: they are read, not built."""

import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTRUCTIONS = ("FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "ENTRYPOINT", "CMD")
FILES = ("Dockerfile", "Dockerfile.cuda")


def instructions(name: str) -> list[tuple[str, str]]:
    """Return the instructions of a file with their arguments."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def installed(name: str) -> list[list[str]]:
    """Return what each `pip install` of a file installs, with its options."""
    found = []
    for instruction, words in instructions(name):
        if instruction == "RUN" and words.startswith("pip install"):
            plain = re.sub(r"\$\{\w+:\+[^}]*\}", "", words)
            found.append(shlex.split(plain)[2:])
    return found


@pytest.mark.parametrize("name", FILES)
def test_instructions_are_known_and_in_order(name: str) -> None:
    found = [instruction for instruction, _ in instructions(name)]
    assert set(found) <= set(INSTRUCTIONS)
    assert found[0] == "FROM"
    assert found[-2:] == ["ENTRYPOINT", "CMD"]
    base = dict(instructions(name))["FROM"]
    major, minor = map(int, re.fullmatch(r"python:(\d+)\.(\d+)-slim", base).groups())  # type: ignore[union-attr]
    assert (major, minor) >= tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_copied_exist_and_are_not_left_out(name: str) -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = {word for instruction, words in instructions(name) if instruction == "COPY" for word in words.split()[:-1]}
    assert copied == set(kept)
    for word in copied:
        assert (ROOT / word).exists(), word
        assert any(fnmatch(word, pattern) for pattern in kept)
    # What the build of the package reads is there.
    assert {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "scalor"} <= copied


@pytest.mark.parametrize("name", FILES)
def test_what_is_installed_is_an_extra_or_has_one_version(name: str) -> None:
    versions = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    for words in installed(name):
        assert words[:3] == ["--no-cache-dir", "--constraint", "constraints.txt"]
        for package in words[3:]:
            whole = re.fullmatch(r"\.\[([\w,]+)\]", package)
            if whole is None:
                assert package in versions
            else:
                assert set(whole[1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert dict(instructions(name))["ENTRYPOINT"] == '["scalor"]'
    assert "scalor" in PROJECT["scripts"]


def test_the_command_runs_with_the_copied_files_alone(tmp_path: Path) -> None:
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line.startswith("!"):
            (tmp_path / line[1:]).symlink_to(ROOT / line[1:])
    module, function = PROJECT["scripts"]["scalor"].split(":")
    code = f"import sys; from {module} import {function}; sys.exit({function}(['presets']))"
    work = tmp_path / "work"
    work.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=work, env={"PYTHONPATH": str(tmp_path)}
    )
    assert run.returncode == 0, run.stderr
    assert "shapes-tiny" in run.stdout
