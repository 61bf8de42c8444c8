"""`python -m benchmarks.fuzz --seconds 60`: coverage-guided fuzzing of every parser, with atheris where it installs.

    python -m benchmarks.fuzz --only zones settings --seconds 600

Inputs that raise anything but InputError are kept in `tests/benchmarks/inputs`, one for each place that raises, and the
tests try them for ever. Every parser is fuzzed in a process of its own; the exit code is 1 if anything was found.
"""

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.fuzz import by_lines
from benchmarks.track_command import origin

ROOT = Path(__file__).parent.parent.parent
INPUTS = ROOT / "tests" / "benchmarks" / "inputs"
LONGEST, SLOWEST_S, MOST_MIB = 4096, 20, 4096
"""Bytes of an input; seconds and memory that a parser may take for it."""


@dataclass(frozen=True)
class Row:
    parser: str
    tried: int
    found: int
    """Places that raise what they should not."""
    ended: str
    """How the process ended: "well", or with a hang, exhausted memory or a crash."""


def place_of(error: BaseException) -> str:
    """Return where an exception was raised, to tell findings apart."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/scalor/" in frame.filename]
    return f"{type(error).__name__} {Path(last.filename).name}:{last.name} {own[-1].lineno if own else 0}"


def engine() -> str:
    """Return what looks for new inputs: "atheris", or "lines" where that is not installed."""
    return "atheris" if find_spec("atheris") else "lines"


def child(name: str, seconds: float, seed: int, folder: Path) -> None:
    """Fuzz one parser; with atheris, the process ends in here, as libFuzzer has it."""
    if engine() == "atheris":
        import atheris

        with atheris.instrument_imports(include=["scalor"]):
            from benchmarks.fuzz.parsers import parsers, try_one

            parser = parsers()[name]
            for data in parser.seeds:  # some modules are loaded when they are needed
                parser.parse(data)
    else:
        from benchmarks.fuzz.parsers import parsers, try_one

        memory = address_space() + MOST_MIB * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        parser = parsers()[name]
    places: dict[str, str] = {}
    tried = 0

    def write() -> None:
        (folder / "result.json").write_text(json.dumps({"tried": tried, "places": places}))

    def one(data: bytes) -> None:
        nonlocal tried
        tried += 1
        error: BaseException | None
        try:
            error = try_one(parser, data)
        except by_lines.TooSlow as slow:
            error = slow
        if error is not None and (place := place_of(error)) not in places:
            places[place] = keep(name, data)
        if error is not None or tried % 500 == 0 or tried & (tried - 1) == 0:
            write()

    if engine() == "lines":
        by_lines.fuzz(one, parser.seeds, seconds, seed, LONGEST, SLOWEST_S, ROOT / "scalor")
        write()
        return
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(parser.seeds):
        (corpus / str(number)).write_bytes(data)
    limits = [f"-max_len={LONGEST}", f"-timeout={SLOWEST_S}", f"-rss_limit_mb={MOST_MIB}", f"-seed={seed + 1}"]
    words = [f"-max_total_time={seconds:.0f}", f"-artifact_prefix={folder}/", *limits, str(corpus)]
    atheris.Setup(["fuzz", *words], one)
    atheris.Fuzz()


def address_space() -> int:
    """Return the address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def keep(name: str, data: bytes) -> str:
    """Keep an input for the tests; return the name of its file."""
    path = INPUTS / name.replace(" ", "-") / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path.name


def fuzz(name: str, seconds: float, seed: int) -> Row:
    """Fuzz one parser in a process of its own."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        words = [sys.executable, "-m", "benchmarks.fuzz", "--child", name, "--folder", text]
        done = subprocess.run([*words, "--seconds", str(seconds), "--seed", str(seed)], capture_output=True, text=True)
        path = folder / "result.json"
        result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"tried": 0, "places": {}}
        for artifact in [*folder.glob("crash-*"), *folder.glob("timeout-*"), *folder.glob("oom-*")]:
            keep(name, artifact.read_bytes())
    for place, file in result["places"].items():
        print(f"{name}: {place}: {file}", flush=True)
    ended = "well" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1][:80]}"
    return Row(name, result["tried"], len(result["places"]), ended)


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="for every parser (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], help="parsers whose names contain one of these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.child:
        child(asked.child, asked.seconds, asked.seed, asked.folder)
        return 0
    from benchmarks.fuzz.parsers import parsers

    names = [name for name in parsers() if any(word in name for word in asked.only)]
    rows = [fuzz(name, asked.seconds, asked.seed) for name in names]
    print(report.table(rows))
    if asked.json:
        figures = {"engine": engine(), "rows": [asdict(row) for row in rows]}
        report.write(asked.json, {**figures, **origin("fuzz", words, asked.seed)})
    return int(any(row.found or row.ended != "well" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
