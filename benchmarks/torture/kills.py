"""Commands killed at random moments, and what is then in their folders.

The moments are of processor time, so that a busy machine does not move them. The kernel ends a process whose timer of
processor time has run out as it does by SIGKILL: nothing of the process runs any more.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.torture.campaign import Campaign, Finding, Try, contents
from benchmarks.torture.commands import LIMIT_S, command, forked
from benchmarks.torture.models import TINY
from benchmarks.torture.outcomes import Ended, Outcome, judge
from benchmarks.torture.videos import FRAMES, pictures

MOST_KILLS = 3
"""Kills of one training, one after the other."""


@dataclass(frozen=True)
class Work:
    """A command, its processor time, and what it leaves if nothing disturbs it."""

    words: list[str]
    seconds: float
    folder: Path
    """A folder to run it in; a copy of it is used."""
    before: dict[str, bytes]
    after: dict[str, bytes]


def measured(words: list[str], folder: Path, out: str) -> Work:
    """Run a command in a copy of a folder, undisturbed."""
    copy = Path(tempfile.mkdtemp(dir=folder.parent)) / folder.name
    shutil.copytree(folder, copy)
    before = contents(copy / out)
    start = children_time()
    ended = command(words, copy)
    seconds = children_time() - start
    assert ended.code == 0, ended
    return Work(words, seconds, folder, before, contents(copy / out))


def children_time() -> float:
    """Return the processor time of all children that ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def killed(words: Sequence[str], folder: Path, seconds: float, stop: int | None = None) -> Ended | None:
    """Run a command and kill it after some processor time, or send it a signal then that asks it to stop.

    Return how it ended, or None if it was killed.
    """

    def work() -> int:
        from scalor.cli.main import main

        if stop is not None:
            signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), stop))
        signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-6))
        return main(list(words))

    ended = forked(work, folder, LIMIT_S, {})
    return None if ended.code == -signal.SIGPROF else ended


def prepare_training(folder: Path, steps: int = 6) -> Work:
    """Train a tiny model, undisturbed."""
    home = folder / "home"
    home.mkdir()
    words = ["train", "shapes-tiny", *TINY, "--train.steps", str(steps), "--train.save_every", "1", "--clips", "1"]
    return measured([*words, "--device", "cpu", "--out", "run"], home, "run")


def prepare_fit(folder: Path, steps: int = 6) -> Work:
    """Fit a tiny model to a small video, undisturbed."""
    home = folder / "home"
    home.mkdir()
    np.save(home / "video.npy", pictures())
    words = [
        "fit",
        "video.npy",
        "--scratch",
        "--steps",
        str(steps),
        "--object-size",
        "10x10",
        "--train.save_every",
        "1",
    ]
    small = ["--train.batch", "2", "--model.slots", "4", "--train.lengths", "[[0, 1], [2, 2]]"]
    return measured([*words, *small, "--device", "cpu", "--out", "run"], home, "run")


def weights_of(data: bytes) -> dict[str, bytes]:
    """Return the bytes of every tensor of a model file; its header holds times, which differ."""
    from safetensors.numpy import load

    return {name: tensor.tobytes() for name, tensor in load(data).items()}


def resumed(words: list[str]) -> list[str]:
    """Return the words that go on with a run; `fit` takes its settings from the run folder."""
    if words[0] == "train":
        return [*words, "--resume"]
    return ["fit", "video.npy", "--resume", "--device", "cpu", "--out", "run"]


Attempt = Callable[[Sequence[str]], Ended | None]
"""Runs a command and perhaps kills it. Returns how it ended, or None if it was killed."""


def training_case(work: Work, given: Try) -> Finding:
    """Kill a training up to three times, go on each time, and compare its weights with those of an undisturbed one."""
    shutil.copytree(work.folder, given.home, dirs_exist_ok=True)
    times = [given.random.uniform(0, work.seconds) for _ in range(given.random.randint(1, MOST_KILLS))]
    seen = f"{work.words[0]} killed after " + ", ".join(f"{seconds:.3f}" for seconds in times) + " s"
    attempts = [partial(killed, folder=given.home, seconds=seconds) for seconds in times]
    return go_on(work, given.home, seen, attempts)


def go_on(work: Work, home: Path, seen: str, attempts: Sequence[Attempt]) -> Finding:
    """Go on with a training after each attempt that is killed, and at last undisturbed; judge what it leaves."""
    run = home / "run"
    kills = 0
    everything: list[Attempt] = [*attempts, partial(command, folder=home)]
    for number, attempt in enumerate(everything):
        begun = (run / "chosen.json").exists() if work.words[0] == "fit" else (run / "resume.safetensors").exists()
        words = resumed(work.words) if begun and number else work.words
        saved = sorted(run.glob("*.safetensors"))
        ended = attempt(words)
        if ended is None:
            kills += 1
            lost = [path.name for path in saved if not path.exists()]
            if lost:
                return Finding(Outcome.LOST, seen, f"gone after a kill: {lost}")
            continue
        if (found := judge(ended)) is not None:
            return Finding(Outcome.LOST if found[0] is Outcome.WARNED else found[0], seen, ended.sentence[-300:])
        break
    left = [path.name for path in home.iterdir() if path.name.startswith(".")]
    if left:
        return Finding(Outcome.WRONG, seen, f"left behind: {left}")
    model = weights_of((run / "model.safetensors").read_bytes())
    if model != weights_of(work.after["model.safetensors"]):
        return Finding(Outcome.WRONG, seen, "the weights differ from those of an undisturbed run")
    return Finding(Outcome.CLEAN, seen, kills=kills)


def prepare_tracking(folder: Path, frames: int = FRAMES) -> Work:
    """Track a video into a folder that holds the results of another one."""
    home = folder / "home"
    home.mkdir()
    np.save(home / "old.npy", pictures()[::-1][: frames // 2])
    np.save(home / "video.npy", pictures()[:frames])
    more = ["--weights", "classical-colour", "--object-size", "10x10", "--out", "tracked"]
    ended = command(["track", "old.npy", *more], home)
    assert ended.code == 0, ended
    return measured(["track", "video.npy", *more], home, "tracked")


def prepare_edits(folder: Path, frames: int = FRAMES) -> Work:
    """Track a video and name an object."""
    work = prepare_tracking(folder, frames)
    ended = command(["edit", "tracked", "name", "1", "one"], work.folder)
    assert ended.code == 0, ended
    return measured(["edit", "tracked", "delete", "2"], work.folder, "tracked")


IGNORED = (".partial", ".complete", ".original", "original", "edits.jsonl")
"""What is no result: hidden folders of a run that was killed, the files before all edits, and the log of edits."""


def results(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the results alone, without the absolute path of the video, which differs from copy to copy."""
    kept = {name: data for name, data in files.items() if name.split("/")[0] not in IGNORED}
    about = json.loads(kept["results.json"])
    manifest = json.loads(kept[".scalor.json"])
    if manifest["files"].pop("results.json") != describe(kept["results.json"]):
        raise ValueError("results.json is not the one of the manifest")
    about.pop("video")
    return {**kept, "results.json": json.dumps(about).encode(), ".scalor.json": json.dumps(manifest).encode()}


def describe(data: bytes) -> dict[str, object]:
    """Return what the manifest says of a file."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def results_case(work: Work, given: Try) -> Finding:
    """Kill a command that replaces results: all old ones are there, or all new ones; and it runs again.

    Tracking is killed up to three times, one after the other.
    """
    shutil.copytree(work.folder, given.home, dirs_exist_ok=True)
    count = given.random.randint(1, MOST_KILLS) if work.words[0] == "track" else 1
    # half of the kills are near the end, where files take their places
    parts = [given.random.uniform(0.9 * (given.random.random() < 0.5), 1.02) for _ in range(count)]
    seen = f"{work.words[0]} killed after " + ", ".join(f"{part * work.seconds:.3f}" for part in parts)
    attempts = [partial(killed, folder=given.home, seconds=part * work.seconds) for part in parts]
    return replace_results(work, given.home, f"{seen} of {work.seconds:.3f} s", attempts)


def replace_results(work: Work, home: Path, seen: str, attempts: Sequence[Attempt]) -> Finding:
    """Run a command that replaces results, until an attempt is not killed, and judge what each of them leaves."""
    kills = 0
    for attempt in attempts:
        ended = attempt(work.words)
        if ended is not None and (found := judge(ended)) is not None:
            return Finding(found[0], seen, ended.sentence[-300:])
        if work.words[0] == "edit":  # the log is read, and an interrupted move is finished
            found = judge(looked := command(["edit", "tracked", "log"], home))
            if found is not None:
                return Finding(Outcome.LOST, seen, looked.sentence[-300:])
        if (lost := mixed(work, home)) is not None:
            return Finding(Outcome.LOST, seen, lost)
        if ended is not None:
            break
        kills += 1
    tracked = home / "tracked"
    if work.words[0] == "track":
        found = judge(again := command(work.words, home))
        if found is not None or results(contents(tracked)) != results(work.after):
            return Finding(Outcome.WRONG, seen, f"a further run is not right: {again.sentence[-300:]}")
        left = [path.name for path in (*home.iterdir(), *tracked.iterdir()) if path.name.startswith(".")]
        if left != [".scalor.json"]:
            return Finding(Outcome.WRONG, seen, f"left behind: {left}")
    return Finding(Outcome.CLEAN, seen, kills=kills)


def mixed(work: Work, home: Path) -> str | None:
    """Return in words which results are neither all old nor all new, or None."""
    try:
        now = results(contents(home / "tracked"))
    except (ValueError, KeyError) as error:
        return f"old and new files are mixed: {error!r}"
    if now in (results(work.before), results(work.after)):
        return None
    old = [name for name, data in now.items() if work.before.get(name) == data]
    new = [name for name, data in now.items() if work.after.get(name) == data]
    return f"old: {old}; new: {new}; of {sorted(now)}"


CAMPAIGNS = (
    Campaign("kills of train", prepare_training, training_case, share=4),
    Campaign("kills of fit", prepare_fit, training_case, share=1.5),
    Campaign("kills of track", prepare_tracking, results_case, share=4),
    Campaign("kills of edit", prepare_edits, results_case),
)
