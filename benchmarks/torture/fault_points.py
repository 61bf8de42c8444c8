"""A save and a replacement of results, killed at every single system call that changes a file.

`strace` kills the process when it enters the n-th such call, for every n until none is left.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open

from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.outcomes import Outcome

CALLS = (
    *("open", "openat", "creat", "write", "pwrite64", "writev", "rename", "renameat", "renameat2", "link", "linkat"),
    *("symlink", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "truncate", "ftruncate", "fallocate", "fsync"),
    *("fdatasync", "chmod", "fchmod", "fchmodat", "utimensat", "sendfile", "copy_file_range"),
)
"""System calls that may change a file; opening one to read is among them, which costs nothing but time."""
ROOT = Path(__file__).parent.parent.parent
REPLACE = """
import sys
from pathlib import Path
from scalor.replacement import replacing_together
with replacing_together(Path("out"), ["a.txt", "b.txt", "c.txt"]) as partial:
    for name in sys.argv[1:]:
        (partial / name).write_text("new")
"""
FINISH = """
from pathlib import Path
from scalor.replacement import finish_replacement
finish_replacement(Path("out"))
"""
SAVE = """
import torch
from scalor import checkpoint
from scalor.presets import get_preset
from pathlib import Path
torch.set_num_threads(1)
print("ready", flush=True)
checkpoint.write(Path("model.safetensors"), {"w": torch.full((64, 64), VALUE)}, get_preset("shapes-tiny"), {})
"""


@dataclass(frozen=True)
class Program:
    """A small program, and a folder that it changes."""

    text: str
    words: tuple[str, ...]
    folder: Path
    finish: str = ""
    """A program that finishes what was interrupted, for folders where no exchange is possible."""
    first: int = 1
    """The first of the calls that belong to the work and not to the start of Python."""
    last: int = 1


def environment() -> dict[str, str]:
    """Return the environment of the programs: no byte code is written."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


def python(text: str, words: tuple[str, ...], folder: Path) -> None:
    """Run a program undisturbed."""
    subprocess.run([sys.executable, "-c", text, *words], cwd=folder, env=environment(), check=True, capture_output=True)


def calls(program: Program) -> list[str]:
    """Return the calls of an undisturbed run, a line each."""
    copy = program.folder.with_name("counted")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(program.folder, copy, symlinks=True)
    log = copy.with_name("calls.txt")
    command = ["strace", "-f", "--seccomp-bpf", "-o", str(log), "-e", f"trace={existing()}"]
    words = [*command, sys.executable, "-c", program.text, *program.words]
    subprocess.run(words, cwd=copy, env=environment(), check=True, capture_output=True)
    lines = [line for line in log.read_text().splitlines() if "(" in line]
    main = lines[0].split()[0]  # strace counts the calls of every thread for itself
    return [line for line in lines if line.split()[0] == main]


def existing() -> str:
    """Return the calls as strace wants them; a question mark allows calls that this machine does not have."""
    return ",".join(f"?{call}" for call in CALLS)


@dataclass(frozen=True)
class Prepare:
    """Makes the folder before the program, and counts its calls."""

    text: str
    new: tuple[str, ...]
    begin: str
    """What stands in the first call that belongs to the work."""
    own_folder: bool = False
    """Whether the user has a folder among the results, so that no exchange is possible."""

    def __call__(self, folder: Path) -> Program:
        if shutil.which("strace") is None:
            raise SystemExit("fault points need strace: install it, or leave them out with --only.")
        home = folder / "home"
        (home / "out").mkdir(parents=True)
        (home / "out" / "mine.csv").write_text("mine")
        if self.own_folder:
            (home / "out" / "notes").mkdir()
            (home / "out" / "notes" / "mine.txt").write_text("mine")
        if self.text is REPLACE:
            python(self.text.replace('"new"', '"old"'), ("a.txt", "b.txt", "c.txt"), home)
        else:
            python(self.text.replace("VALUE", "1.0"), (), home)
        text = self.text.replace("VALUE", "2.0")
        program = Program(text, self.new, home, FINISH if self.own_folder else "")
        lines = calls(program)
        first = next(number for number, line in enumerate(lines, 1) if self.begin in line)
        return Program(text, self.new, home, program.finish, first, len(lines) + 1)


def case(program: Program, given: Try) -> Finding:
    """Kill the program at one call; all old files must be there, or all new ones, and the next run must work."""
    number = program.first + given.number
    shutil.copytree(program.folder, given.home, dirs_exist_ok=True, symlinks=True)
    inject = f"inject={existing()}:signal=SIGKILL:when={number}"
    command = ["strace", "-f", "--seccomp-bpf", "-o", "calls.txt", "-e", f"trace={existing()}", "-e", inject]
    words = [*command, sys.executable, "-c", program.text, *program.words]
    done = subprocess.run(words, cwd=given.home, env=environment(), capture_output=True, text=True)
    lines = (given.home / "calls.txt").read_text().splitlines()
    at = next((line for line in reversed(lines) if "(" in line), "")[:100]
    (given.home / "calls.txt").unlink()
    seen = f"killed at call {number}: {at}"
    if done.returncode == 0 and number < program.last:
        seen = f"not killed at call {number}, as there were fewer this time"
    if program.finish:
        python(program.finish, (), given.home)
    now, old = visible(given.home), visible(program.folder)
    fresh = given.home / "fresh"
    shutil.copytree(program.folder, fresh, symlinks=True)
    python(program.text, program.words, fresh)
    new = visible(fresh)
    if now not in (old, new):
        mixed = {name: "old" if old.get(name) == data else "new" for name, data in now.items()}
        return Finding(Outcome.LOST, seen, f"neither all old nor all new: {mixed}")
    shutil.rmtree(fresh)
    try:
        python(program.text, program.words, given.home)
    except subprocess.CalledProcessError as error:
        return Finding(Outcome.WRONG, seen, f"the next run fails: {error.stderr.decode()[-300:]}")
    if visible(given.home) != new:
        return Finding(Outcome.WRONG, seen, "the next run does not give the new files")
    return Finding(Outcome.CLEAN, seen)


def visible(folder: Path) -> dict[str, object]:
    """Return all files but those in hidden folders and temporary files of a save; of weights, what they hold."""
    found: dict[str, object] = {}
    for name, data in contents(folder).items():
        hidden = any(part.startswith(".") and part != ".scalor.json" for part in name.split("/"))
        if not hidden and not name.endswith(".part"):
            found[name] = held(folder / name) if name.endswith(".safetensors") else data
    return found


def held(path: Path) -> object:
    """Return the header and the tensors of a file; their order in the file is not fixed."""
    with safe_open(path, "np") as file:
        return file.metadata(), {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118 (no mapping)


def count(program: Program) -> int:
    """Return the number of calls, and one more: a run that is not killed."""
    return program.last - program.first + 1


CAMPAIGNS = (
    Campaign("fault points of a replacement", Prepare(REPLACE, ("a.txt", "b.txt"), ".partial"), case, count=count),
    Campaign(
        "fault points of a replacement, one by one",
        Prepare(REPLACE, ("a.txt", "b.txt"), ".partial", own_folder=True),
        case,
        count=count,
    ),
    Campaign("fault points of a save", Prepare(SAVE, (), "ready"), case, count=count),
)
