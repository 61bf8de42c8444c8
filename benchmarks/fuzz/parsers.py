"""Every parser of SCALOR as a function of bytes, with bytes that it accepts.

A parser may return, or raise InputError. Everything else that it raises is a mistake.
"""

import argparse
import io
import json
import math
import shlex
import struct
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from scalor.errors import InputError

Parse = Callable[[bytes], object]


@dataclass(frozen=True)
class Parser:
    """One parser."""

    parse: Parse
    seeds: tuple[bytes, ...]
    """Bytes that it accepts, from which fuzzing starts."""


def of_file(read: Callable[[Path], object], name: str) -> Parse:
    """Return a parser of bytes for a function that reads a file of this name."""

    def parse(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            return read(path)

    return parse


def as_text(data: bytes) -> str:
    """Return bytes as the text that a command line would hold."""
    return data.decode("utf-8", "surrogateescape").replace("\0", "")


def frames(path: Path) -> int:
    """Read a video to its end."""
    from scalor.video import open_video

    return sum(frame.picture.size for frame in open_video(path))


def saved(write: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a function writes to a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def checkpoint() -> bytes:
    """Return a small checkpoint."""
    import torch

    from scalor import checkpoint
    from scalor.presets import get_preset

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.safetensors"
        checkpoint.write(path, {"w": torch.ones(2, 2)}, get_preset("shapes-tiny"), {"step": 1})
        return path.read_bytes()


def snapshot() -> bytes:
    """Return a small snapshot."""
    from scalor.snapshots import write_snapshot

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        write_snapshot(path, {"a": "b"}, {"x": np.arange(3), "n": [1, 2.5, "t", None]})
        return path.read_bytes()


@cache
def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    from scalor.cli.options import parser

    return parser()


def parse_words(data: bytes) -> object:
    """Parse a command line."""
    from scalor.cli.main import split_overrides

    try:
        words = shlex.split(as_text(data))
    except ValueError:  # a quote that does not end
        return None
    plain, _ = split_overrides(words)
    try:
        return command_line().parse_known_args(plain)
    except SystemExit:  # --help, --version
        return None


def parse_override(data: bytes) -> object:
    """Apply a setting with a dotted name."""
    from scalor.cli.overrides import apply
    from scalor.presets import get_preset

    name, _, value = as_text(data).partition(" ")
    return apply(get_preset("shapes-tiny"), [f"--{name}", value])


def parse_values(data: bytes) -> object:
    """Read a value of the command line as every kind of value."""
    from scalor.cli import values

    for kind in (values.positive, values.natural, values.scale, values.minutes, values.probability, values.duration):
        try:
            kind(as_text(data))
        except argparse.ArgumentTypeError:
            continue
    try:
        return values.height_and_width(as_text(data))
    except argparse.ArgumentTypeError:
        return None


def parse_selection(data: bytes) -> object:
    """Make a selection of numbers of all kinds."""
    from scalor.video import Selection

    values = struct.unpack("<4q3d", data[:56].ljust(56, b"\0"))
    chosen = Selection((values[0], values[1], values[2], values[3]), values[4], values[5], 1 + abs(values[0]))
    chosen.check_region((48, 64), "a video")
    return chosen.numbers(1000, min(max(abs(values[6]), 0.001), 1000) if math.isfinite(values[6]) else 10)


def parse_line_of_log(data: bytes) -> object:
    """Read a line of a training's log."""
    from scalor.training.folder import step_of

    return step_of(data)


def parse_step(data: bytes) -> object:
    """Read an edit."""
    from scalor.edits.operations import step_from_dict

    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return step_from_dict(document)


@cache
def parsers() -> dict[str, Parser]:
    """Return all parsers by name."""
    from scalor import checkpoint as checkpoints
    from scalor.edits.edit_log import read_log
    from scalor.measures.drawings import read as read_drawings
    from scalor.measures.regions import read_regions
    from scalor.outputs.about import read_about
    from scalor.outputs.tables import read_counts
    from scalor.replacement import read_manifest
    from scalor.snapshots import read_snapshot
    from scalor.tracks import read_tracks
    from scalor.video.completeness import what_is_missing

    video = np.zeros((2, 4, 6, 3), np.uint8)
    archives = (saved(lambda file: np.savez(file, a=video)), saved(lambda file: np.savez_compressed(file, a=video)))
    log = b'{"scalor_edits": 1, "tracks_sha256": "x"}\n{"op": "swap", "a": 3, "b": 5, "frame": 12}\n'
    zone = {"name": "z", "polygon": [[0, 0], [3, 0], [3, 4]]}
    zones = json.dumps({"zones": [zone], "lines": [{"name": "l", "from": [0, 0], "to": [1, 1]}]}).encode()
    about = b'{"size": [4, 6], "fps": 5, "stride": 1, "video": null, "facts": {}, "health": null}'
    table = b"frame,id,x0,y0,x1,y1,confidence\n0,1,1,1,2,2,.5\n1,1,1.5,1,2.5,2,.5\n"
    mot = b"1,1,2,2,6,6,1,-1,-1,-1\n2,1,2,3,6,6,1\n"
    times = b"frame,seconds,objects\n0,0.0000,1\n1,0.1000,2\n"
    manifest = b'{"files": {"a": {"bytes": 1}}}'
    settings = (b"train.temperature [1.0, 0.3, 1500]", b"scene.frame 48x80", b"model.slots 3")
    lines = (b"track a.mp4 --start 1 --region 0 0 9 9", b"edit t swap 1 2 --from 3")
    beginnings = (
        *(b"RIFF\x10\0\0\0AVI ", b"GIF89a\1\0\1\0\0\0\0;", b"FLV\1\5\0\0\0\t\0\0\0\0"),
        b"\x1a\x45\xdf\xa3\x81\0\x18\x53\x80\x67\x81\0",
    )
    return {
        "tables of tracks": Parser(of_file(read_tracks, "t.csv"), (table,)),
        "MOTChallenge text": Parser(of_file(read_tracks, "t.txt"), (mot,)),
        "tables of times": Parser(of_file(read_counts, "counts.csv"), (times,)),
        "edit logs": Parser(of_file(read_log, "edits.jsonl"), (log,)),
        "edits": Parser(parse_step, (log.splitlines()[1],)),
        "zones": Parser(of_file(read_regions, "zones.json"), (zones,)),
        "drawings": Parser(of_file(lambda path: read_drawings(path.parent), "zones.json"), (zones,)),
        "results": Parser(of_file(lambda path: read_about(path.parent), "results.json"), (about,)),
        "manifests": Parser(of_file(lambda path: read_manifest(path.parent), ".scalor.json"), (manifest,)),
        "lines of a log": Parser(parse_line_of_log, (b'{"step": 3, "elbo": -1.5}',)),
        "settings": Parser(parse_override, settings),
        "values": Parser(parse_values, (b"12", b"1.5", b"9x9", b"0.5")),
        "selections": Parser(parse_selection, (struct.pack("<4q3d", 0, 0, 5, 5, 0.5, 1.5, 10),)),
        "command lines": Parser(parse_words, lines),
        "checkpoints": Parser(of_file(checkpoints.read, "w.safetensors"), (checkpoint(),)),
        "snapshots": Parser(of_file(lambda path: read_snapshot(path, []), "s"), (snapshot(),)),
        "npy": Parser(of_file(frames, "a.npy"), (saved(lambda file: np.save(file, video)),)),
        "npz": Parser(of_file(frames, "a.npz"), archives),
        "beginnings of videos": Parser(of_file(what_is_missing, "a"), beginnings),
    }


def try_one(parser: Parser, data: bytes) -> Exception | None:
    """Parse bytes; return the exception that should not have been, if any."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parser.parse(data)
    except InputError:
        return None
    except Exception as error:
        return error
    return None
