"""Command lines made at random from the options that every command declares, with values that nobody means."""

import argparse
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.commands import command
from benchmarks.torture.models import TINY, tiny_weights
from benchmarks.torture.outcomes import Outcome, judge
from benchmarks.torture.videos import pictures

NUMBERS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "3.7",
        "-0",
        "1e308",
        "1e-300",
        "nan",
        "inf",
        "-inf",
        "99999999999999999999",
        "0x10",
        "1_000",
    ),
    *("1e12", "9" * 5000, "٣", "1,5", ""),
)
"""Words where a number is expected."""
WORDS = (
    *(
        "",
        " ",
        "-",
        "--",
        "x",
        "None",
        "null",
        "true",
        "[]",
        "[1,2",
        '{"a": 1}',
        "[[0,1],[2]]",
        "*",
        "%s%n",
        "💥",
        "\udcff",
    ),
    *("\x1b[31mred", "a\nb", "../..", ".", "/dev/null", "/dev/zero", "/nonexistent/x", "x" * 300, "x/" * 2000, "‮evil"),
    *("concat:a|b", "http://localhost:1/x.mp4", "file:video.npy", "pipe:0", "fifo", "folder", "weights.safetensors"),
)
"""Words where anything is expected."""
GOOD = {
    "video": "video.npy",
    "videos": "video.npy",
    "weights": "weights.safetensors",
    "preset": "shapes-tiny",
    "name": "shapes-tiny",
    "tracks": "tracks.csv",
    "truth": "gt.txt",
    "folder": "tracked",
    "out": "out",
    "device": "cpu",
}
"""Values that work, by the name of the argument."""
SLOW = {
    "train": [*TINY, "--train.steps", "2", "--clips", "1"],
    "fit": ["--steps", "2"],
    "evaluate": ["--clips", "1"],
    "reproduce": ["--clips", "1"],
}
"""Words that make a command short, unless the case overrides them."""
SKIPPED = ("demo", "reproduce", "view", "ray")
"""Commands that take long whatever they are told, or that serve until they are stopped; an engine that does so."""


def prepare(folder: Path) -> Path:
    """Write inputs that work. Return their folder."""
    home = folder / "inputs"
    home.mkdir()
    tiny_weights(home).rename(home / "weights.safetensors")
    np.save(home / "video.npy", pictures()[:5])
    ended = command(["track", "video.npy", "--weights", "weights.safetensors", "--out", "tracked"], home)
    assert ended.code == 0, ended.err
    (home / "tracks.csv").write_bytes((home / "tracked" / "tracks.csv").read_bytes())
    (home / "gt.txt").write_text("1,1,2,2,6,6,1\n2,1,3,2,6,6,1\n")
    (home / "folder").mkdir()
    return home


@cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command."""
    from scalor.cli.options import parser

    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {name: sub for name, sub in commands.choices.items() if name not in SKIPPED}


def value(action: argparse.Action, random: Random) -> str:
    """Return a value for an argument: one that works, a number, or a word."""
    kind = random.random()
    if kind < 0.5:
        if action.choices:
            return str(random.choice([choice for choice in action.choices if choice not in SKIPPED]))
        return GOOD.get(action.dest, str(random.choice((1, 2, 5))))
    return random.choice(NUMBERS if kind < 0.75 else WORDS)


def line(name: str, sub: argparse.ArgumentParser, random: Random) -> list[str]:
    """Return the words of a command: some options, some positional arguments, some settings, in any order."""
    parts: list[list[str]] = []
    for action in sub._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            chosen = random.choice(sorted(action.choices))
            parts.append([chosen, *line(chosen, action.choices[chosen], random)])
        elif not action.option_strings:
            count = random.choice((0, 1, 1, 1, 1, 1, 2)) if random.random() < 0.3 else 1
            parts += [[GOOD.get(action.dest, "") if random.random() < 0.7 else value(action, random)]] * count
        elif random.random() < 0.25:
            many = 0 if action.nargs == 0 else action.nargs if isinstance(action.nargs, int) else 1
            parts.append([random.choice(action.option_strings), *(value(action, random) for _ in range(many))])
    parts += settings(name, random)
    if random.random() < 0.1:
        random.shuffle(parts)
    return [word for part in parts for word in part]


def settings(name: str, random: Random) -> Iterator[list[str]]:
    """Yield settings with a dotted name."""
    if name not in ("train", "fit"):
        return
    from scalor.presets import get_preset
    from scalor.settings import fields_of

    names = sorted(fields_of(get_preset("shapes-tiny")))
    for _ in range(random.choice((0, 1, 1, 2))):
        chosen = random.choice(names) if random.random() < 0.9 else "model.no_such"
        yield [f"--{chosen}", random.choice(NUMBERS + WORDS)]


def inputs(home: Path) -> dict[str, bytes]:
    """Return the bytes of the files that no refused command may change."""
    names = ("video.npy", "gt.txt", "tracks.csv", "weights.safetensors")
    return {**contents(home / "tracked"), **{name: (home / name).read_bytes() for name in names}}


def case(folder: Path, given: Try) -> Finding:
    """Run a command line in a folder with inputs that work."""
    random, home = given.random, given.home
    shutil.copytree(folder, home, dirs_exist_ok=True)
    os.mkfifo(home / "fifo")
    name = random.choice(sorted(parsers()))
    words = [name, *SLOW.get(name, []), *line(name, parsers()[name], random)]
    before = inputs(home)
    ended = command(words, home, patient=True)
    seen = " ".join(ascii(word)[1:-1] if len(word) < 60 else ascii(word[:20])[1:-1] + "..." for word in words)
    found = judge(ended)
    after = inputs(home)
    if "\x1b[31m" in ended.out + ended.err:
        return Finding(Outcome.WRONG, seen, "a terminal escape of an argument is printed")
    if found is not None and before != after:
        gone = sorted(path for path in before if after.get(path) != before[path])
        return Finding(Outcome.LOST, seen, f"{found[1]}; refused, but these files have changed: {gone}")
    if found is not None:
        return Finding(found[0], seen, found[1])
    return Finding(Outcome.CLEAN, seen)


CAMPAIGN = Campaign("command lines", prepare, case, share=4)
