"""Commands, a save and a replacement of results, killed at every single system call that changes a file."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from safetensors import safe_open

from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.commands import LIMIT_S, command, forked
from benchmarks.torture.interrupts import Point, killed_at, points
from benchmarks.torture.kills import (
    Work,
    go_on,
    prepare_edits,
    prepare_fit,
    prepare_tracking,
    prepare_training,
    replace_results,
)
from benchmarks.torture.models import tiny_weights
from benchmarks.torture.outcomes import Outcome, judge

FRAMES = 6
"""Frames of the video that is tracked; enough for two objects."""
STEPS = 2
"""Steps of the training, with a save after each."""


@dataclass(frozen=True)
class Act:
    """A change of files in one step: afterwards all old files are there, or all new ones."""

    folder: Path
    """The folder before; a copy of it is changed."""
    change: Callable[[], int]
    finish: Callable[[], int] | None
    """Finishes what was interrupted, for folders where no exchange is possible."""
    new: dict[str, object]
    """What an undisturbed change leaves."""
    points: list[Point]


def write_results(text: str, names: tuple[str, ...]) -> int:
    """Replace the results in the folder `out`."""
    from scalor.replacement import replacing_together

    with replacing_together(Path("out"), ["a.txt", "b.txt", "c.txt"]) as partial_results:
        for name in names:
            (partial_results / name).write_text(text)
    return 0


def finish_replacement() -> int:
    """Finish an interrupted replacement, as the next run does."""
    from scalor import replacement

    replacement.finish_replacement(Path("out"))
    return 0


def save(value: float) -> int:
    """Save a checkpoint."""
    import torch

    from scalor import checkpoint
    from scalor.presets import get_preset

    checkpoint.write(Path("model.safetensors"), {"w": torch.full((64, 64), value)}, get_preset("shapes-tiny"), {})
    return 0


def pack(name: str) -> int:
    """Write a packed copy."""
    from scalor.cli.main import main

    return main(["pack", name, "--out", "packed.safetensors"])


def act(
    folder: Path, before: Callable[[], int], change: Callable[[], int], finish: Callable[[], int] | None = None
) -> Act:
    """Prepare the folder by what is done before, and list the calls of an undisturbed change."""
    home, copy = folder / "home", folder / "copy"
    home.mkdir(exist_ok=True)
    assert forked(before, home, LIMIT_S, {}).code == 0
    shutil.copytree(home, copy, symlinks=True)
    found = points(change, copy)
    return Act(home, change, finish, visible(copy), found)


def prepare_exchange(folder: Path) -> Act:
    """Results that take the place of earlier ones by an exchange of folders."""
    (folder / "home" / "out").mkdir(parents=True)
    (folder / "home" / "out" / "mine.csv").write_text("mine")
    first = partial(write_results, "old", ("a.txt", "b.txt", "c.txt"))
    return act(folder, first, partial(write_results, "new", ("a.txt", "b.txt")))


def prepare_one_by_one(folder: Path) -> Act:
    """Results in a folder that holds a folder of the user, so that no exchange is possible."""
    (folder / "home" / "out" / "notes").mkdir(parents=True)
    (folder / "home" / "out" / "notes" / "mine.txt").write_text("mine")
    first = partial(write_results, "old", ("a.txt", "b.txt", "c.txt"))
    return act(folder, first, partial(write_results, "new", ("a.txt", "b.txt")), finish_replacement)


def prepare_save(folder: Path) -> Act:
    """A checkpoint in the place of another one."""
    return act(folder, partial(save, 1.0), partial(save, 2.0))


def prepare_pack(folder: Path) -> Act:
    """A packed copy in the place of another one."""
    (folder / "home").mkdir()
    tiny_weights(folder).rename(folder / "home" / "w.safetensors")
    return act(folder, partial(pack, "shapes-md"), partial(pack, "w.safetensors"))


def act_case(act: Act, given: Try) -> Finding:
    """Kill a change at one call; all old files must be there, or all new ones, and the next run must work."""
    point = act.points[given.number]
    shutil.copytree(act.folder, given.home, dirs_exist_ok=True, symlinks=True)
    ended = killed_at(point, act.change, given.home)
    seen = point.text if ended is None else f"not reached: {point.text}"
    if ended is not None and ended.code != 0:
        return Finding(Outcome.WRONG, seen, f"exit {ended.code}: {ended.sentence[-300:]}")
    if act.finish is not None:
        forked(act.finish, given.home, LIMIT_S, {})
    now = visible(given.home)
    if now not in (visible(act.folder), act.new):
        mixed = {name: "new" if act.new.get(name) == data else "old" for name, data in now.items()}
        return Finding(Outcome.LOST, seen, f"neither all old nor all new: {mixed}")
    again = forked(act.change, given.home, LIMIT_S, {})
    if again.code != 0 or visible(given.home) != act.new:
        return Finding(Outcome.WRONG, seen, f"the next run is not right: {again.sentence[-300:]}")
    return Finding(Outcome.CLEAN, seen, kills=int(ended is None))


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


@dataclass(frozen=True)
class Interrupted:
    """A whole command and its calls that change a file."""

    work: Work
    points: list[Point]


def interrupted(prepare: Callable[[Path], Work], folder: Path) -> Interrupted:
    """List the calls of a command."""
    work = prepare(folder)
    copy = folder / "copy"
    shutil.copytree(work.folder, copy, symlinks=True)
    return Interrupted(work, points(partial(run_command, work.words), copy))


def run_command(words: list[str]) -> int:
    """Run a command in this process."""
    from scalor.cli.main import main

    return main(words)


def command_case(shared: Interrupted, given: Try) -> Finding:
    """Kill a command at one call, judge what it left, and let it run again."""
    point, work = shared.points[given.number], shared.work
    shutil.copytree(work.folder, given.home, dirs_exist_ok=True)
    attempts = [lambda words: killed_at(point, partial(run_command, list(words)), given.home)]
    if work.words[0] in ("train", "fit"):
        return go_on(work, given.home, point.text, attempts)
    found = replace_results(work, given.home, point.text, attempts)
    if found.outcome is Outcome.CLEAN and work.words[0] == "edit":
        ended = command(["edit", "tracked", "undo"], given.home)  # the log and the results fit together
        judged = judge(ended)
        if judged is not None:
            return Finding(Outcome.LOST, point.text, ended.sentence[-300:])
    return found


def count(shared: Act | Interrupted) -> int:
    """Return the number of calls at which it is killed."""
    return len(shared.points)


def act_campaign(name: str, prepare: Callable[[Path], Act]) -> Campaign:
    return Campaign(f"fault points of {name}", prepare, act_case, count=count)


def command_campaign(name: str, prepare: Callable[[Path], Work]) -> Campaign:
    return Campaign(
        f"fault points of {name}",
        partial(interrupted, prepare),
        command_case,
        count=count,
    )


CAMPAIGNS = (
    act_campaign("a replacement", prepare_exchange),
    act_campaign("a replacement, one by one", prepare_one_by_one),
    act_campaign("a save", prepare_save),
    act_campaign("pack", prepare_pack),
    command_campaign("track", partial(prepare_tracking, frames=FRAMES)),
    command_campaign("edit", partial(prepare_edits, frames=FRAMES)),
    command_campaign("train", partial(prepare_training, steps=STEPS)),
    command_campaign("fit", partial(prepare_fit, steps=STEPS)),
)
