"""Damaged checkpoints: weights that are read, and runs that are resumed."""

import json
import os
import shutil
import signal
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.torture import damage
from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.commands import LIMIT_S, command, forked
from benchmarks.torture.models import TINY, tiny_weights
from benchmarks.torture.outcomes import Outcome, judge
from benchmarks.torture.videos import pictures

STEPS = 4
"""Steps of the run that is resumed."""
NAN = {"F32": struct.pack("<f", float("nan")), "F16": b"\x00\x7e"}
"""A number that is none, by the type of tensor."""
HOSTILE: tuple[Any, ...] = (
    *(
        None,
        True,
        "",
        "x" * 5000,
        -1,
        0,
        1,
        3,
        1e308,
        10**30,
        [],
        {},
        [[]],
        "NaN",
        "../../etc/passwd",
        "\x1b[31m\ud800",
    ),
)
"""Values that settings and headers never have."""


@dataclass(frozen=True)
class Bases:
    """The undamaged files."""

    weights: bytes
    packed: bytes
    run: Path
    """A run folder that was stopped before its end."""


def train(folder: Path, steps: int) -> list[str]:
    """Return the words of a short training."""
    words = ["train", "shapes-tiny", *TINY, "--train.steps", str(steps), "--clips", "1", "--device", "cpu"]
    return [*words, "--out", str(folder)]


def stop_after_save(words: list[str]) -> int:
    """Run a training that gets a stop signal when it saves for the first time."""
    from scalor.cli.main import main

    waiting = True

    def stop(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal waiting
        if waiting and event == "os.rename" and str(arguments[1]).endswith("resume.safetensors"):
            waiting = False
            os.kill(os.getpid(), signal.SIGTERM)

    sys.addaudithook(stop)
    return main(words)


def prepare(folder: Path) -> Bases:
    """Write weights, packed weights, and a run that can be resumed."""
    weights = tiny_weights(folder)
    command(["pack", str(weights), "--out", "packed.safetensors"], folder)
    words = train(folder / "run", STEPS)
    ended = forked(lambda: stop_after_save(words), folder, LIMIT_S, {})
    assert ended.code == 128 + signal.SIGTERM, ended
    np.save(folder / "video.npy", pictures()[:6])
    return Bases(weights.read_bytes(), (folder / "packed.safetensors").read_bytes(), folder / "run")


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header of a safetensors file, and the bytes of its tensors."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(header: dict[str, Any], tensors: bytes) -> bytes:
    """Return a safetensors file."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + tensors


def change_somewhere(value: Any, random: Random) -> Any:
    """Return a JSON value in which one value somewhere is hostile, missing or additional."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(sorted(value))
        changed = dict(value)
        match random.randrange(6):
            case 0:
                del changed[key]
            case 1:
                changed["no such name"] = changed.pop(key)
            case _:
                changed[key] = change_somewhere(value[key], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.7:
        changed_list = list(value)
        index = random.randrange(len(value))
        changed_list[index] = change_somewhere(value[index], random)
        return changed_list
    return random.choice(HOSTILE)


def change_header(data: bytes, random: Random) -> bytes:
    """Change one value of the header: of the settings, the provenance, or the layout of the tensors."""
    header, tensors = header_of(data)
    metadata = header["__metadata__"]
    part = random.choice(("config", "config", "provenance", "layout", "metadata"))
    if part in metadata:
        metadata[part] = json.dumps(change_somewhere(json.loads(metadata[part]), random))
    elif part == "metadata":
        key = random.choice(sorted(metadata))
        metadata[key] = random.choice(("", "{", "[" * 50_000, "null", "3", '"x"', "\x00", "scalor-999"))
    else:
        name = random.choice([key for key in header if key != "__metadata__"])
        header[name] = change_somewhere(header[name], random)
    return with_header(header, tensors)


def make_nan(data: bytes, random: Random) -> bytes:
    """Make one number of one tensor NaN."""
    header, tensors = header_of(data)
    floats = [name for name, about in header.items() if name != "__metadata__" and about["dtype"] in NAN]
    about = header[random.choice(floats)]
    number, (start, end) = NAN[about["dtype"]], about["data_offsets"]
    place = start + len(number) * random.randrange((end - start) // len(number))
    return with_header(header, tensors[:place] + number + tensors[place + len(number) :])


def change_tensor(data: bytes, random: Random) -> bytes:
    """Flip one bit of the tensors."""
    header, tensors = header_of(data)
    place = random.randrange(len(tensors))
    changed = tensors[:place] + bytes([tensors[place] ^ (1 << random.randrange(8))]) + tensors[place + 1 :]
    return with_header(header, changed)


def pick(random: Random) -> damage.Damage:
    """Choose a kind of damage."""
    return random.choice((damage.pick(random), change_header, change_header, make_nan, change_tensor))


def case(bases: Bases, given: Try) -> Finding:
    """Damage a checkpoint and use it."""
    random, home = given.random, given.home
    kind = pick(random)
    if random.random() < 0.4:
        return resume_case(bases, random, home, kind)
    name = random.choice(("weights", "packed"))
    (home / "w.safetensors").write_bytes(kind(getattr(bases, name), random))
    use = random.choice(("info", "track", "track", "pack"))
    words = {
        "info": ["info", "w.safetensors"],
        "track": ["track", str(bases.run.parent / "video.npy"), "--weights", "w.safetensors", "--out", "out", "--json"],
        "pack": ["pack", "w.safetensors", "--out", "p.safetensors"],
    }[use]
    seen = f"{kind.__name__} {name}, {use}"
    found = judge(ended := command(words, home))
    if found is not None:
        return Finding(found[0], seen, found[1])
    if "\x1b" in ended.out + ended.err:
        return Finding(Outcome.WRONG, seen, "a terminal escape of the file is printed")
    if kind in (make_nan, change_tensor):
        return Finding(Outcome.WRONG, seen, "changed weights are used, and nothing is said")
    return Finding(Outcome.CLEAN, seen)


def resume_case(bases: Bases, random: Random, home: Path, kind: damage.Damage) -> Finding:
    """Damage a file of a run folder and go on with the training."""
    run = home / "run"
    shutil.copytree(bases.run, run)
    name = random.choice([path.name for path in sorted(run.iterdir()) if path.is_file() and path.stat().st_size])
    if name.endswith(".safetensors"):
        (run / name).write_bytes(kind((run / name).read_bytes(), random))
    else:
        kind = damage.pick(random)
        (run / name).write_bytes(kind((run / name).read_bytes(), random))
    before = contents(run)
    seen = f"{kind.__name__} {name}, resume"
    found = judge(ended := command([*train(run, STEPS), "--resume"], home))
    if found is not None:
        after = contents(run)
        lost = [other for other in before if after.get(other) != before[other] and other != "log.jsonl"]
        if lost:
            return Finding(Outcome.LOST, seen, f"{found[1]}; changed although refused: {lost}")
        return Finding(found[0], seen, found[1])
    if kind in (make_nan, change_tensor) and name == "resume.safetensors":
        return Finding(Outcome.WRONG, seen, "a changed state is gone on with, and nothing is said")
    return Finding(Outcome.WARNED if "warning: " in ended.err else Outcome.CLEAN, seen)


CAMPAIGN = Campaign("damaged checkpoints", prepare, case, share=1.5)
