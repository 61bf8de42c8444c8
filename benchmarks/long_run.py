"""`python -m benchmarks.long_run --data DIR --frames 10000`: is tracking as good, and as small, late in a long video?

Plays the PETS video (`DIR/pets/vtest.avi` and `gt.txt`) forward and backward in turn, so that nothing ever jumps, as
one long H.264 file, runs `scalor track` on it, and prints scores and the memory of that process for every thousand
frames.
(`benchmarks.long_video` is about time and memory alone, with synthetic shapes and within one process.)
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import numpy as np
from av.video.frame import VideoFrame
from jaxtyping import Int

from benchmarks import report
from benchmarks.spoiling import CRF, Picture, write_truth
from benchmarks.track_command import Tracked, finished, gate_figures, origin, print_failures, words_for
from scalor.errors import InputError
from scalor.evaluation.score import BoxRows, read_boxes, score
from scalor.files import replacing
from scalor.video import open_video
from scalor.video.encoding import SMPTE170M

OUT = Path(tempfile.gettempdir()) / "scalor-long-run"
FRAMES, PIECE = 10_000, 1_000
LOOK_EVERY_S = 0.2
"""Between two looks at the process: short beside the time that a thousand frames take."""
TAIL = 4096
"""Bytes at the end of a table within which its last whole line lies."""


@dataclass(frozen=True)
class Row:
    frames: str
    """First and last, from 1 on."""
    MOTA: float | None
    IDF1: float | None
    HOTA: float | None
    """At an IoU of .5, as the two before it."""
    mib: float | None
    """Resident memory of the process when it had written these frames."""


def to_and_fro(length: int, frames: int) -> Int[np.ndarray, " T"]:
    """The frames, from 0 on, of a video played forward and backward in turn; its ends are not shown twice.

    >>> to_and_fro(3, 6)
    array([0, 1, 2, 1, 0, 1])
    """
    period = max(1, 2 * (length - 1))
    place = np.arange(frames) % period
    return np.minimum(place, period - place)


def long_truth(truth: BoxRows, length: int, frames: int) -> BoxRows:
    """The truth of the long video.

    Who is in view when the direction turns keeps its id. Who comes back after having left gets a new one.
    """
    order = to_and_fro(length, frames)
    rows_of = [np.flatnonzero(truth.frame == number + 1) for number in range(length)]
    current: dict[int, int] = {}
    count = 0
    picked, shown, names = [], [], []
    for time_, source in enumerate(order):
        ids = truth.id[rows_of[source]].tolist()
        if time_ and time_ % (length - 1) == 0:
            stay = set(ids) & set(truth.id[rows_of[order[time_ - 1]]].tolist())
            current = {id: name for id, name in current.items() if id in stay}
        for row, id in zip(rows_of[source], ids, strict=True):
            if id not in current:
                count += 1
                current[id] = count
            picked.append(row)
            shown.append(time_ + 1)
            names.append(current[id])
    chosen = truth.select(np.array(picked, int))
    return BoxRows(np.array(shown, int), np.array(names, int), chosen.box, chosen.confidence)


def write_long(path: Path, pictures: Iterable[Picture], fps: float, frames: int) -> int:
    """The long video. Only one round is compressed, its bytes are repeated. How many frames the original has."""
    # Smaller than RGB: all frames are in memory, since half of them are shown backward.
    originals = [
        VideoFrame.from_ndarray(picture, format="rgb24").reformat(format="yuv420p")
        for picture in islice(pictures, frames)
    ]
    order = to_and_fro(len(originals), min(frames, max(1, 2 * (len(originals) - 1))))
    rate = Fraction(fps).limit_denominator(1001)
    with replacing(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        # Without frames that refer to later ones, every packet is one frame, in the order in which they are shown.
        options = {"crf": str(CRF), "preset": "veryfast", "threads": "1", "bf": "0"}
        stream = container.add_stream("libx264", rate, options, pix_fmt="yuv420p")
        stream.height, stream.width = originals[0].height, originals[0].width
        stream.codec_context.colorspace = SMPTE170M
        packets = [packet for source in order for packet in stream.encode(originals[source])] + stream.encode(None)
        whole = [(bytes(packet), packet.is_keyframe) for packet in packets]
        for number in range(frames):
            data, key = whole[number % len(order)]
            packet = av.Packet(data)
            packet.stream, packet.time_base, packet.is_keyframe = stream, 1 / rate, key
            packet.pts = packet.dts = number
            packet.duration = 1
            container.mux(packet)
    return len(originals)


def watch(video: Path, folder: Path, weights: str | None, marks: Sequence[int]) -> tuple[Tracked, dict[int, float]]:
    """Run `scalor track`, and note its memory, MiB, when it has written so many frames."""
    words = words_for(video, folder, weights)
    found: dict[int, float] = {}
    begun, start = time.time(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, "-m", "scalor", *words], stdout=printed, stderr=said)
        last = None
        try:
            while process.poll() is None:
                time.sleep(LOOK_EVERY_S)
                last = resident_mib(process.pid) or last
                written = frames_written(folder, begun)
                for mark in marks:
                    if mark <= written and last is not None:
                        found.setdefault(mark, last)
        finally:
            process.kill()  # where this program is stopped; it has ended otherwise
            process.wait()
        seconds = time.perf_counter() - start
        texts = []
        for file in (printed, said):
            file.seek(0)
            texts.append(file.read())
    tracked = finished(folder, words, seconds, process.returncode, *texts)
    if last is not None:  # the last lines of a table appear only when it is closed
        found.setdefault(marks[-1], last)
    return tracked, found


def resident_mib(process: int) -> float | None:
    """Memory of a running process in use, as the Linux kernel keeps it."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return None


def frames_written(folder: Path, since: float) -> int:
    """How far the tables have come that are being written somewhere in a folder."""
    reached = 0
    for name in ("tracks.csv", "counts.csv"):
        for path in folder.rglob(name):
            with suppress(OSError, ValueError):
                if path.stat().st_mtime < since:
                    continue
                with open(path, "rb") as file:
                    file.seek(max(0, path.stat().st_size - TAIL))
                    # After the last line break a line may be half written.
                    *lines, _ = [b"", *file.read().split(b"\n")]
                reached = max(reached, int(lines[-1].split(b",")[0]) + 1)
    return reached


def measure(data: Path, frames: int, piece: int, weights: str | None, out: Path) -> tuple[Tracked, list[Row]]:
    out.mkdir(parents=True, exist_ok=True)
    source = open_video(data / "pets" / "vtest.avi")
    video, truth = out / f"long-{frames}.mp4", out / f"long-{frames}.txt"
    length = write_long(video, (frame.picture for frame in source), source.fps, frames)
    write_truth(truth, long_truth(read_boxes(data / "pets" / "gt.txt"), length, frames))
    pieces = [(first, min(first + piece - 1, frames)) for first in range(1, frames + 1, piece)]
    tracked, memory = watch(video, out / "tracked", weights, [last for _, last in pieces])
    rows = []
    for first, last in pieces:
        scores = None if tracked.error else score(tracked.folder / "tracks.csv", truth, (first, last))
        figures = gate_figures(scores, "iou .5")
        rows.append(Row(f"{first}-{last}", figures["mota"], figures["idf1"], figures["hota"], memory.get(last)))
    return tracked, rows


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_run", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds pets/vtest.avi and pets/gt.txt")
    parser.add_argument("--frames", type=int, default=FRAMES, help="length of the video (default: %(default)s)")
    parser.add_argument(
        "--piece", type=int, default=PIECE, help="frames that are scored together (default: %(default)s)"
    )
    parser.add_argument("--weights", help="as `scalor track` takes them (default: its own)")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for video and tracks (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    asked = parser.parse_args(words)
    if asked.frames < 1 or asked.piece < 1:
        parser.error(f"--frames is {asked.frames} and --piece is {asked.piece}: give numbers from 1")
    told = origin("long_run", words, 0)
    try:
        tracked, rows = measure(asked.data, asked.frames, asked.piece, asked.weights, asked.out)
    except InputError as error:
        print(f"benchmarks.long_run: {error}", file=sys.stderr)
        return 2
    seconds = round(tracked.seconds, 1)
    print(f"{told['command']}\ncommit {told['commit']}, {told['date']}\n\n{report.table(rows)}")
    print(f"\n{seconds} s, verdict: {tracked.verdict}")
    print_failures([tracked.told()])
    if asked.json:
        document = {**tracked.told(), "seconds": seconds, "rows": [asdict(row) for row in rows], **told}
        report.write(asked.json, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
