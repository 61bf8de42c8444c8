"""Damaged files that commands read back: tables of tracks, truth, edit logs, zones, results of other runs."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.torture import damage
from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.commands import command
from benchmarks.torture.outcomes import Outcome, judge
from benchmarks.torture.videos import pictures
from benchmarks.torture.weights import change_somewhere

FIELDS = ("", "nan", "inf", "-1", "1e308", "1000000000", "9" * 400, "x", '"', "1;2", "\x00", "\ud7ff", "0.5.5", "-0.0")
"""Words in the place of a number of a table."""
ROWS = 12
ZONES = {
    "zones": [{"name": "left", "polygon": [[0, 0], [30, 0], [30, 40]]}],
    "lines": [{"name": "door", "from": [32, 0], "to": [32, 48]}],
}
"""A zone and a line in the picture."""


@dataclass(frozen=True)
class Bases:
    """A folder with results that are right."""

    folder: Path
    uses: dict[str, list[list[str]]]
    """Commands that read a file, by the file."""


def change_field(data: bytes, random: Random) -> bytes:
    """Replace one field of a table."""
    lines = data.decode().splitlines()
    number = random.randrange(len(lines))
    fields = lines[number].split(",")
    fields[random.randrange(len(fields))] = random.choice(FIELDS)
    lines[number] = ",".join(fields)
    return ("\n".join(lines) + "\n").encode(errors="surrogatepass")


def change_rows(data: bytes, random: Random) -> bytes:
    """Repeat, drop or swap rows of a table, or fields of one row."""
    lines = data.decode().splitlines()
    number = random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            lines.insert(number, lines[number])
        case 1:
            del lines[number]
        case 2:
            random.shuffle(lines)
        case _:
            lines[number] = ",".join(lines[number].split(",")[:-1])
    return ("\n".join(lines) + "\n").encode()


def change_json(data: bytes, random: Random) -> bytes:
    """Change one value of a JSON document, or of one line of a log."""
    lines = data.decode().splitlines()
    try:
        return json.dumps(change_somewhere(json.loads(data), random)).encode()
    except ValueError:
        number = random.randrange(len(lines))
        lines[number] = json.dumps(change_somewhere(json.loads(lines[number]), random))
        return ("\n".join(lines) + "\n").encode()


def nest_deeply(data: bytes, random: Random) -> bytes:
    """Nest lists so deeply that a recursive reader runs out of stack."""
    return b"[" * random.choice((1_000, 100_000)) + random.choice((b"", b"]" * 1_000))


KINDS: dict[str, tuple[Callable[[bytes, Random], bytes], ...]] = {
    ".csv": (change_field, change_field, change_rows),
    ".txt": (change_field, change_field, change_rows),
    ".json": (change_json, change_json, nest_deeply),
    ".jsonl": (change_json, change_json, nest_deeply),
}
"""Damage by the kind of file; all of them are also damaged byte by byte."""


def prepare(folder: Path) -> Bases:
    """Make results, truth, edits and zones."""
    home = folder / "inputs"
    home.mkdir()
    np.save(home / "video.npy", pictures()[:ROWS])
    track = ["track", "video.npy", "--weights", "classical-colour", "--object-size", "10x10", "--out", "tracked"]
    ended = command(track, home)
    assert ended.code == 0, ended.err
    lines = (home / "tracked" / "tracks_mot.txt").read_text().splitlines()
    (home / "gt.txt").write_text("\n".join(lines[: 4 * ROWS]) + "\n")
    for name in ("tracks.csv", "tracks.parquet"):
        if (home / "tracked" / name).exists():
            shutil.copy(home / "tracked" / name, home / name)
    (home / "zones.json").write_text(json.dumps(ZONES))
    first, last = (f(int(line.split(",")[1]) for line in lines) for f in (min, max))
    for words in (["name", str(first), "one"], ["delete", str(last)]):
        ended = command(["edit", "tracked", *words], home)
        assert ended.code == 0, ended.err
    edit = ["edit", "tracked"]
    measure = ["measure", "tracked", "--out", "measures"]
    trackmate = ["export", "tracked", "--to", "trackmate"]
    any_use = [[*edit, "undo"], [*edit, "log"], [*edit, "crossings"], measure, trackmate]
    uses = {name: [["score", name, "--truth", "gt.txt"]] for name in ("tracks.csv", "tracks.parquet")}
    uses["gt.txt"] = [["score", "tracks.csv", "--truth", "gt.txt"]]
    uses["zones.json"] = [[*measure, "--zones", "zones.json"]]
    uses["tracked/edits.jsonl"] = [*any_use, [*edit, "name", str(first), "two"]]
    for name in ("tracks.csv", "counts.csv", "results.json"):
        uses[f"tracked/original/{name}"] = any_use
    uses["tracked/edited.json"] = any_use
    uses["tracked/.scalor.json"] = [track, *any_use]
    for name in ("tracks.csv", "counts.csv", "results.json", "names.csv", "report.html"):
        uses[f"tracked/{name}"] = [track, *any_use]
    return Bases(home, {name: found for name, found in uses.items() if (home / name).exists()})


def case(bases: Bases, given: Try) -> Finding:
    """Damage a file and run a command that reads it."""
    random, home = given.random, given.home
    shutil.copytree(bases.folder, home, dirs_exist_ok=True)
    name = random.choice(sorted(bases.uses))
    path = home / name
    kinds = KINDS.get(path.suffix, ())
    kind = random.choice(kinds) if kinds and random.random() < 0.6 else damage.pick(random)
    path.write_bytes(kind(path.read_bytes(), random))
    words = random.choice(bases.uses[name])
    before = contents(home)
    ended = command([*words, "--json"] if "score" in words else words, home)
    seen = f"{kind.__name__} {name}, {' '.join(words[:3])}"
    found = judge(ended)
    if found is None:
        return Finding(Outcome.CLEAN, seen)
    after = contents(home)
    gone = sorted(other for other in before if after.get(other) != before[other])
    if gone:
        return Finding(Outcome.LOST, seen, f"{found[1]}; refused, but these files have changed: {gone[:5]}")
    return Finding(found[0], seen, found[1])


CAMPAIGN = Campaign("files read back", prepare, case, share=2)
