"""`python -m benchmarks.many_videos`: many short videos with one and two workers, with processes and with Ray; faults.

    python -m benchmarks.many_videos speed     # throughput, whether the results are the same, a query over the store
    python -m benchmarks.many_videos store     # what a store of many videos takes: its manifest, its index, a query
    python -m benchmarks.many_videos faults    # workers, a node and the driver killed, a damaged video, a full disk

The videos are drawn: boxes that walk over a textured floor. For the throughput they are tracked in batches, and each
batch in all ways in turn, so that other work on the machine falls on all ways alike.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import plan, report
from scalor.many.index_page import write_index
from scalor.many.store import STORE, TABLES, VIDEO, finish_store, part, write
from scalor.many.video_records import RECORDS, VIDEOS, VideoOutcome
from scalor.replacement import PARTIAL
from scalor.video import write_video

RESULTS = Path(__file__).parent / "results"
SIZE = (64, 80)
FPS = 10
SAME = ("tracks.csv", "tracks_mot.txt", "counts.csv", "overlay.mp4", "trajectories.png", "tracks.parquet")
"""Files that must have the same bytes; reports and results.json hold the command line."""


@dataclass(frozen=True)
class Row:
    run: str
    seconds: float
    videos_per_s: float | None
    ratio: float | None
    """Throughput in multiples of the first run's."""
    done: int
    kept: int
    failed: int
    other: int | None
    """Videos whose files differ from those of the first run."""


def draw(folder: Path, videos: int, frames: int) -> None:
    """Write the videos."""
    folder.mkdir()
    height, width = SIZE
    for number in range(videos):
        chance = np.random.default_rng(number)
        floor = chance.integers(60, 90, (height, width, 3), dtype=np.uint8)
        noise = chance.integers(0, 12, (frames, 1, 1, 1), dtype=np.uint8)
        film = np.broadcast_to(floor, (frames, height, width, 3)) + noise
        for _ in range(3):
            row, speed, start = chance.integers(0, height - 18), chance.uniform(-3, 3), chance.uniform(0, width)
            colour = chance.integers(130, 255, 3)
            for t, picture in enumerate(film):
                x = int(start + speed * t) % (width - 12)
                picture[row : row + 18, x : x + 12] = colour
        write_video(folder / f"video{number:04}.mp4", film, FPS)


def command(videos: Path, out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "scalor", "track", str(videos), "--out", str(out), "--device", "cpu", "--json", *more]


def run(words: list[str]) -> tuple[float, dict[str, Any]]:
    """Run a command; return its time and its summary."""
    start = time.monotonic()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert done.returncode in (0, 1), done
    return time.monotonic() - start, json.loads(done.stdout)


def prints(out: Path) -> dict[str, str]:
    """Return a hash of the results of every video."""
    found = {}
    for folder in sorted((out / VIDEOS).iterdir()):
        parts = [(folder / name).read_bytes() for name in SAME if (folder / name).exists()]
        found[folder.name] = hashlib.sha256(b"".join(parts)).hexdigest() + str(len(parts))
    return found


def row_of(name: str, seconds: float, summary: dict[str, Any], out: Path, first: tuple[Row, Path] | None) -> Row:
    before = None if first is None else prints(first[1])
    now = prints(out)
    other = None if before is None else sum(now.get(key) != value for key, value in before.items())
    rate = summary["done"] / seconds if summary["done"] else None
    ratio = rate / first[0].videos_per_s if first and rate and first[0].videos_per_s else None
    return Row(name, seconds, rate, ratio, summary["done"], summary["kept"], summary["failed"], other)


@contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """Start a Ray cluster of nodes with one core each on this machine."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - by default its workers give way to all other programs
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(nodes - 1):
        made.add_node(num_cpus=1)
    try:
        yield made
    finally:
        made.shutdown()  # type: ignore[no-untyped-call]


QUERY = """
    SELECT verdict, count(DISTINCT track.video) AS videos, count(*) AS tracks, avg(mean_speed_px_per_s) AS speed
    FROM '{store}/measures/*/*.parquet' AS track
    JOIN '{store}/videos.parquet' AS facts ON facts.name = track.video
    GROUP BY verdict
"""


def speed(folder: Path, videos: int, frames: int, batches: int) -> tuple[list[Row], dict[str, Any]]:
    draw(folder / "videos", videos, frames)
    every = sorted((folder / "videos").iterdir())
    lists = []
    for batch in range(batches):
        lists.append(folder / f"batch{batch}.csv")
        lists[-1].write_text("video\n" + "".join(f"videos/{video.name}\n" for video in every[batch::batches]))
    times: dict[str, list[float]] = {}
    with cluster(2) as made:
        ways = {
            "1 process": ["--jobs", "1"],
            "2 processes": ["--jobs", "2"],
            "Ray, 2 nodes": ["--engine", "ray", "--address", made.address],
        }
        for table in lists:
            for name, more in ways.items():
                seconds, summary = run(command(table, folder / name, *more))
                assert summary["done"] == len(table.read_text().split()) - 1
                times.setdefault(name, []).append(seconds)
    first: tuple[Row, Path] | None = None
    rows = []
    for name, parts in times.items():
        document = {"done": videos, "kept": 0, "failed": 0}
        rows.append(row_of(name, sum(parts), document, folder / name, first))
        first = first or (rows[0], folder / name)
    seconds, summary = run(command(folder / "videos", folder / "2 processes", "--jobs", "2"))
    rows.append(row_of("2 processes, again", seconds, summary, folder / "2 processes", first))
    return rows, {"seconds_of_batches": times, "query": query(folder / "2 processes" / "store")}


def query(store: Path) -> dict[str, Any]:
    """Time a query over the store of all videos; the fastest of five."""
    import duckdb

    times = []
    for _ in range(5):
        start = time.perf_counter()
        found = duckdb.execute(QUERY.format(store=store)).fetchall()
        times.append(time.perf_counter() - start)
    files = [path for path in store.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return {"query": QUERY, "answer": found, "seconds": min(times), "store_mib": size / 2**20, "files": len(files)}


@dataclass(frozen=True)
class StoreRow:
    videos: int
    files: int
    mib: float
    manifest_s: float
    """Time to write the table of videos and the manifest, which hashes every file."""
    index_s: float
    query_s: float
    """The fastest of five."""


def stores(folder: Path, frames: int, counts: Sequence[int], tracked: int = 4) -> list[StoreRow]:
    """Measure stores of more and more videos: a few are tracked, the others are copies under other names."""
    from pyarrow.parquet import read_table

    draw(folder / "videos", tracked, frames)
    _, summary = run(command(folder / "videos", folder / "few"))
    outcomes = [VideoOutcome(**one) for one in summary["videos"]]
    rows = []
    for count in counts:
        out, every = folder / str(count), []
        for number in range(count):
            one = outcomes[number % tracked]
            every.append(replace(one, name=f"copy{number:06}"))
            for table in TABLES:
                rows_of = read_table(part(folder / "few", table, one.name)).drop_columns([VIDEO])
                write(part(out, table, every[-1].name), rows_of, every[-1].name)
        start = time.perf_counter()
        finish_store(out, every)
        written = time.perf_counter()
        write_index(out, every)
        ended = time.perf_counter()
        asked = query(out / STORE)
        assert sum(videos for _, videos, *_ in asked["answer"]) == count
        sizes = asked["files"], asked["store_mib"]
        rows.append(StoreRow(count, *sizes, written - start, ended - written, asked["seconds"]))
    return rows


def children(process: int) -> list[int]:
    """Return the processes below a process, its workers among them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            number, parent = int(path.parent.name), int(path.read_text().rsplit(")", 1)[1].split()[1])
            found.append((number, parent))
    below = {process}
    for _ in range(3):
        below |= {number for number, parent in found if parent in below}
    return sorted(below - {process})


def workers_of(process: int) -> list[int]:
    """Return the workers: children of the fork server, which is a child of the driver."""
    direct = set()
    for number in children(process):
        with suppress(OSError, ValueError):
            parent = int(Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent != process and is_worker(number):
                direct.add(number)
    return sorted(direct)


def is_worker(number: int) -> bool:
    """Return whether a process is a worker, and not a program that a worker runs."""
    with suppress(OSError):
        return "forkserver" in Path(f"/proc/{number}/cmdline").read_text()
    return False


def started(words: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def records(out: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (out / RECORDS).glob("*.json")}


def faults(folder: Path, videos: int, frames: int, kills: int, seed: int) -> list[Row]:
    chance = random.Random(seed)
    draw(folder / "videos", videos, frames)
    cut = folder / "videos" / "broken.mp4"
    cut.write_bytes((folder / "videos" / "video0000.mp4").read_bytes()[:3000])
    seconds, summary = run(command(folder / "videos", folder / "whole", "--jobs", "2"))
    rows = [row_of("undisturbed", seconds, summary, folder / "whole", None)]
    first = (rows[0], folder / "whole")

    out = folder / "kills"
    start = time.monotonic()
    process, killed = started(command(folder / "videos", out, "--jobs", "2")), 0
    before: dict[str, str] = {}
    while process.poll() is None:
        time.sleep(chance.uniform(0.2, 1.5) * rows[0].seconds / max(1, kills))
        if killed < kills and (found := workers_of(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(found), signal.SIGKILL)
                killed += 1
        if killed == kills // 2 and not before:
            before = records(out)
            process.kill()
            process.wait()
            process = started(command(folder / "videos", out, "--jobs", "2"))
    document = json.loads(process.communicate()[0])
    after = records(out)
    lost = sum(after.get(name) != text for name, text in before.items())  # tracked again although they were done
    retried = sum(one["attempts"] - 1 for one in document["videos"])
    name = f"{killed} workers and the driver killed ({retried} retries after that), {lost} of {len(before)} done again"
    rows.append(row_of(name, time.monotonic() - start, document, out, first))
    seconds, summary = run(command(folder / "videos", out, "--jobs", "2"))
    rows.append(row_of("the same command again", seconds, summary, out, first))

    out = folder / "node"
    with cluster(2) as made:
        node = made.add_node(num_cpus=1)
        start = time.monotonic()
        process = started(command(folder / "videos", out, "--engine", "ray", "--address", made.address))
        while process.poll() is None and len(records(out)) < videos // 3:
            time.sleep(0.2)
        at_work = [path.name for path in (out / VIDEOS).glob("*") if (path / PARTIAL).exists()]
        assert process.poll() is None, "the run was over before the node could be killed: give more videos"
        made.remove_node(node, allow_graceful=False)
        document = json.loads(process.communicate()[0])
        name = f"a node of Ray killed, one of three with {len(at_work)} videos at work"
        rows.append(row_of(name, time.monotonic() - start, document, out, first))

    size = sum(path.stat().st_size for path in first[1].rglob("*") if path.is_file())
    if (full := full_disk(folder, max(1, size // 3 // 2**20))) is not None:
        out = full / "results"
        seconds, summary = run(command(folder / "videos", out, "--jobs", "2"))
        rows.append(row_of("full disk", seconds, summary, out, first))
        whole = folder / "after"
        shutil.copytree(out, whole)
        seconds, summary = run(command(folder / "videos", whole, "--jobs", "2"))
        rows.append(row_of("and with room again", seconds, summary, whole, first))
        subprocess.run(["umount", str(full)], check=False)
    return rows


def full_disk(folder: Path, mebibytes: int) -> Path | None:
    """Return a file system with room for a few videos; None if this process may not mount one."""
    place = folder / "small disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(place)], capture_output=True
    )
    return place if made.returncode == 0 else None


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_videos", description=__doc__)
    parser.add_argument("what", choices=("speed", "store", "faults"))
    parser.add_argument("--videos", type=int, default=200)
    parser.add_argument("--frames", type=int, default=24, help="frames of a video")
    parser.add_argument("--batches", type=int, default=4, help="parts in which all ways take turns")
    parser.add_argument("--kills", type=int, default=30, help="workers to kill")
    parser.add_argument("--seed", type=int, default=0, help="seed of the kills")
    parser.add_argument("--out", type=Path, default=None, help="JSON file")
    asked = parser.parse_args(words)
    origin = report.provenance(plan.CPU, words)
    del origin["settings"]
    origin["command"] = origin["command"].replace("benchmarks", "benchmarks.many_videos", 1)
    rows: Sequence[Any]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.what == "speed":
            rows, more = speed(folder, asked.videos, asked.frames, asked.batches)
            origin |= more
        elif asked.what == "store":
            rows = stores(folder, asked.frames, (200, 2_000, 10_000))
        else:
            rows = faults(folder, asked.videos, asked.frames, asked.kills, asked.seed)
    out = asked.out or RESULTS / f"cpu-many-videos-{asked.what}.json"
    report.write(out, {"rows": [asdict(row) for row in rows], **origin})
    print(f"{origin['command']}\ncommit {origin['commit']}, {origin['date']}\n\n{report.table(rows)}\n\n-> {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
