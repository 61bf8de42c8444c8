"""Help: every command explains itself, with units and defaults."""

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

import scalor
from scalor.cli.main import main
from scalor.config import Config

COMMANDS = (
    "train",
    "fit",
    "track",
    "predict",
    "score",
    "edit",
    "measure",
    "export",
    "view",
    "generate",
    "evaluate",
    "reproduce",
    "presets",
    "demo",
    "pack",
    "info",
)


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words] if "--help-all" in words else [*words, "--help"])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    return " ".join(out.split())


def test_the_front_page_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    page = help_of(capsys)
    assert all(command in page for command in COMMANDS)
    assert "--json" in page


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "train",
            [
                "(default: runs/PRESET)",
                "several train side by side",
                "--seeds SEED [SEED ...] train every preset with each of these seeds, side by side",
                "unseen clips to evaluate on at the end (default: 64)",
                "(default: auto)",
            ],
        ),
        (
            "track",
            [
                *("(default: any)", "(default: tracked)", "(default: auto)", "[T, H, W, 3]", ".npy", "TIFF"),
                "--region X0 Y0 X1 Y1 part of the picture to look at, pixels",
                "which hold no times (default: 10)",
                "track every so many frames (default: as the model was fitted)",
            ],
        ),
        (
            "fit",
            [
                "(default: runs/VIDEO; with --each: runs)",
                "universal weights (default: 10)",
                "(default: measured)",
                "--scale SCALE",
            ],
        ),
        ("score", ["tracks.csv of `scalor track`", "--frames FIRST-LAST", "as far as the truth goes"]),
        ("pack", ["a quarter of the size", ".safetensors file to write"]),
        (
            "generate",
            ["number of observed frames (default: 5)", "frames to generate (default: 5)", "a quarter of it"],
        ),
        ("evaluate", ["clips; the benchmark uses 1000 (default: 64)", "0: none (default: 0)", "(default: auto)"]),
        ("presets", ["print all settings of this preset"]),
        ("demo", ["clips for the metrics (default: 16)", "(default: demo)"]),
        ("info", ["shipped name, run folder or .safetensors file"]),
    ],
)
def test_every_command_tells_its_options_and_defaults(
    command: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page = help_of(capsys, command)
    for words in [*said, "--json"]:
        assert words in page
    assert "None" not in page
    assert "False)" not in page


def test_train_lists_every_setting_with_its_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    page = help_of(capsys, "train", "--help-all")
    for section in dataclasses.fields(Config):
        for field in dataclasses.fields(getattr(Config(), section.name)):
            assert f"--{section.name}.{field.name} " in page
            assert field.metadata["help"] in page
    assert "--model.slots 32 K, the most objects followed at once" in page
    assert "--model.object_size [9.0, 9.0] typical height and width of an object, pixels" in page


def run_module(*words: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scalor", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(scalor.__file__).parent.parent,
    )


def test_the_module_is_the_command_line() -> None:
    bad = run_module("presets", "shapes-tinny")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "scalor: preset is 'shapes-tinny': there is no such preset; did you mean shapes-tiny.\n"


def test_a_reader_who_has_seen_enough_is_no_error() -> None:
    """As in `scalor presets | head -1`, with a reader that is gone before the first line."""
    shell = f"set -o pipefail; {sys.executable} -m scalor presets | true"
    ended = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, cwd=Path(scalor.__file__).parent.parent
    )
    assert ended.stderr == ""
    assert ended.returncode in (0, 141)


def test_a_full_disk_behind_stdout_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        ended = run_module("presets", stdout=full)
    assert ended.returncode == 2
    assert ended.stderr == "scalor: the output cannot be used: No space left on device.\n"
