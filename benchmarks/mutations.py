"""`python -m benchmarks.mutations`: would the tests notice if a line were broken?

Breaks one line at a time in a copy of the repository, runs the tests of the folders it belongs to, and reports which
breakages were caught, and by which test. A breakage that survives is a promise that no test keeps.

Every caught breakage has a control run: the test that failed runs again on the unbroken copy and must pass there.
Otherwise the test fails for a reason of its own, and the breakage counts as not tested.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

from benchmarks import report
from benchmarks.track_command import origin

ROOT = Path(__file__).parent.parent
COPIED = ("scalor", "tests", "benchmarks", "docs", "README.md", "pyproject.toml")
LONGEST_S = 900
"""Seconds for the tests of one breakage."""
PASSED, FAILED, COLLECTION_FAILED = 0, 1, 2
"""Exit codes of pytest."""


@dataclass(frozen=True)
class Mutation:
    """A line to break: the only place where `old` stands in the file becomes `new`."""

    file: str
    old: str
    new: str
    tests: str
    """Paths below tests/, separated by blanks."""

    @property
    def name(self) -> str:
        return f"{self.file}: {self.old} -> {self.new}"


@dataclass(frozen=True)
class Row:
    """What the tests said of one breakage."""

    mutation: str
    result: str
    """caught, survived, too long, or not tested (the tests fail on the unbroken copy, too)."""
    by: str
    """The test that failed first."""
    seconds: float


MUTATIONS = (
    # The model: what the paper says, and what docs/model.md says of departures from it.
    Mutation("nn/distributions.py", "REJECTED_PRESENCE = 1e-8", "REJECTED_PRESENCE = 0.1", "nn model"),
    Mutation("nn/gradients.py", "ctx.times * usual / norm", "usual / norm", "nn"),
    Mutation("nn/gradients.py", "(numbers * gradient < 0)", "(numbers * gradient > 0)", "nn"),
    Mutation("model/elbo.py", "foreground.mask.detach()", "foreground.mask", "model"),
    Mutation("model/background.py", "1 - foreground], 2)", "foreground], 2)", "model"),
    Mutation("model/time_step.py", "frames - 0.5", "frames", "model"),
    Mutation("model/time_step.py", "frames - video.still", "frames", "model"),
    Mutation("model/sighting.py", "(canvas[:, :, 0] > 0.5)", "(canvas[:, :, 0] > 0.1)", "model"),
    Mutation("model/state.py", "difference <= most_difference", "difference <= 100 * most_difference", "model"),
    Mutation("model/state.py", "shared >= least_iou *", "shared >= 0.1 * least_iou *", "model"),
    Mutation("model/state.py", "births[:, 0] - seated", "births[:, 0]", "model"),
    Mutation("model/state.py", "before.next_id + seated", "before.next_id", "model"),
    Mutation(
        "model/propagation.py", "gate * fresh.mean + (1 - gate)", "(1 - gate) * fresh.mean + gate", "test_departures.py"
    ),
    Mutation("model/propagation.py", "objects.z_depth + judged[..., :1]", "judged[..., :1]", "test_departures.py"),
    Mutation("model/propagation.py", "typical * squashed[..., :2]", "2 * typical * squashed[..., :2]", "model"),
    Mutation("model/propagation.py", "sprite.shows & inside", "sprite.shows", "model"),
    Mutation("model/discovery.py", "presence * (1 - self.reject", "presence * (0 + self.reject", "model"),
    Mutation("model/discovery.py", "share >= self.config.sibling_cover", "share >= 2", "model"),
    Mutation("model/rendering.py", "(1 - foreground.mask) * background", "background", "model"),
    Mutation("model/geometry.py", "(x0 < frame[1])", "(x0 < frame[0])", "model"),
    Mutation("kernels/plain_torch.py", "reach = 1 + 1 / samples", "reach = 1", "kernels"),
    Mutation("kernels/plain_torch.py", "align_corners=False", "align_corners=True", "kernels"),
    # Departures from the paper, one by one (docs/model.md).
    Mutation("config.py", "attention_cells: int = setting(4", "attention_cells: int = setting(2", "test_departures.py"),
    Mutation(
        "config.py", "death_presence: float = setting(0.4", "death_presence: float = setting(0.1", "test_departures.py"
    ),
    Mutation("model/propagation.py", " * self.config.search_scale", "", "test_departures.py"),
    Mutation(
        "model/time_step.py",
        "self.config.slots if state.fresh else self.config.proposals",
        "self.config.slots",
        "test_departures.py",
    ),
    Mutation("model/time_step.py", "torch.ones_like(new.alive)", "new.alive", "test_departures.py"),
    Mutation(
        "model/time_step.py", "render_input(*propagated, entered)", "render_input(*propagated)", "test_departures.py"
    ),
    Mutation("model/propagation.py", "last[..., :latents] + change", "change", "test_departures.py"),
    Mutation("model/propagation.py", "presence + self.bias", "presence", "test_departures.py"),
    Mutation(
        "model/discovery.py", "(width, width, height, height)", "(width, width, 0, 2 * height)", "test_departures.py"
    ),
    Mutation("model/discovery.py", "> self.config.explained_mask", "> 0.9", "model/test_discovery.py"),
    Mutation("model/glimpses.py", "INITIAL_MASK_SHIFT = 1.5", "INITIAL_MASK_SHIFT = 0.0", "test_departures.py"),
    Mutation(
        "model/rendering.py", "foreground.mask * foreground.colour", "foreground.colour", "model/test_rendering.py"
    ),
    Mutation("model/rendering.py", "canvas[:, 4:].clamp(max=1)", "canvas[:, 4:]", "model/test_rendering.py"),
    Mutation(
        "model/sighting.py", "tight_box(sprite.mask, objects.where)", "objects.where", "model/test_scalor.py model"
    ),
    Mutation("model/geometry.py", "typical * (1 + size_range * squashed)", "typical * (1 + squashed)", "model"),
    Mutation("presets/recipes.py", "lengths=((0, 1), (2_500, 2)", "lengths=((0, 2), (2_500, 2)", "test_departures.py"),
    Mutation(
        "presets/recipes.py", "presence_prior=(0.1, 1e-4, 500)", "presence_prior=(0.1, 1e-2, 500)", "test_departures.py"
    ),
    Mutation(
        "presets/recipes.py",
        "size_range=0.25,\n        inertia=True",
        "size_range=0.25,\n        inertia=False",
        "test_departures.py",
    ),
    # Scenes and their truth.
    Mutation("data/footage.py", "torch.where(mirrored, x.flip(1), x)", "x", "data fitting"),
    Mutation("data/footage.py", "torch.where(mirrored, size[0] - right, left)", "left", "data fitting"),
    Mutation("data/footage.py", "torch.where(state == SEEN, inside, UNSEEN)", "inside", "data fitting"),
    Mutation("data/compositor.py", 'ours if name == "order" else ours[:, :length]', "ours", "data"),
    Mutation("data/compositor.py", "visible=visible", "visible=truth.visible", "data"),
    Mutation("data/paths.py", "torch.where(joined, own.roll(1, 0), own)", "own", "data"),
    # Training and weights.
    Mutation("training/step.py", "1 - torch.isfinite(norm).float()", "0 * torch.isfinite(norm).float()", "training"),
    Mutation("training/step.py", "number * self.config.train.batch", "number", "training"),
    Mutation("checkpoint.py", "os.fsync(file.fileno())", "pass", "test_checkpoint.py training/test_kill.py"),
    Mutation("checkpoint.py", "os.replace(beside, path)", "beside.rename(path)", "test_checkpoint.py"),
    Mutation("checkpoint.py", "MAX_STEP = 0.1", "MAX_STEP = 1e9", "test_checkpoint_packed.py"),
    Mutation("provenance.py", "{head}-dirty", "{head}", "test_checkpoint.py"),
    # Metrics.
    Mutation("boxes.py", "forbidden = 1 + cost[inside].max()", "forbidden = 0 * cost[inside].max()", "evaluation"),
    Mutation("boxes.py", "pred_area - intersection", "pred_area", "evaluation"),
    Mutation("evaluation/matching.py", "NEAR_VIEW = 0.3", "NEAR_VIEW = 3.0", "evaluation"),
    Mutation("evaluation/matching.py", "np.hypot(width, height)", "width", "evaluation"),
    # From frames to tracks.
    Mutation("tracking/identity.py", "PREDICTED_PRESENCE = 0.3", "PREDICTED_PRESENCE = 0.9", "tracking"),
    Mutation("tracking/identity.py", "DUPLICATE_COVER = 0.7", "DUPLICATE_COVER = 0.99", "tracking"),
    Mutation("tracking/identity.py", "life.mean_presence >= self.likely", "True", "tracking"),
    Mutation("tracking/identity.py", "(near[0] + 2 * self.middles[at] + near[1]) / 4", "near[0]", "tracking"),
    Mutation("tracking/identity.py", "now - self.lag", "now", "tracking"),
    Mutation("tracking/kalman.py", "EARLY = 5", "EARLY = 500", "tracking"),
    Mutation("tracking/kalman.py", "GATE = 1.0", "GATE = 3.0", "tracking"),
    Mutation("tracking/sharpening.py", "MIN_PIECE = 0.1", "MIN_PIECE = 0.9", "tracking"),
    Mutation("tracking/sharpening.py", "KEEP_SHARE = 0.05, 0.15", "KEEP_SHARE = 0.0, 0.15", "tracking"),
    Mutation("tracking/view.py", "CLIP_DENSITY_RATIO = 4", "CLIP_DENSITY_RATIO = 1", "tracking"),
    Mutation("tracking/view.py", "TARGET_SIDE = 14.0", "TARGET_SIDE = 28.0", "tracking"),
    Mutation("tracking/view.py", "amplify_difference(small, empty, self.contrast)", "small", "tracking"),
    Mutation("still/light.py", "picture - in_light(scene, light)", "picture - scene", "still"),
    Mutation("still/foreground.py", "~darker | differs_in_colour(*there)", "~darker", "still"),
    Mutation("camera/estimate.py", "RESTING = 0.5", "RESTING = 0.0", "camera"),
    Mutation("fitting/scratch.py", "CLIP_SIZE_IN_OBJECTS = (2, 4)", "CLIP_SIZE_IN_OBJECTS = (1, 1)", "fitting"),
    Mutation("fitting/refine.py", "0.5 + 0.5 * self.usual", "1.0", "fitting"),
    Mutation("fitting/pseudo_labels.py", "last[number] + apart", "last[number]", "fitting"),
    # What users meet.
    Mutation("health/verdict.py", "sign * value >= sign * self.bad", "sign * value <= sign * self.bad", "health"),
    Mutation("outputs/result_folder.py", 'partial / "tracks.parquet"', 'Path("/nowhere/tracks.parquet")', "outputs"),
    Mutation("track_files.py", 'columns["frame"] + 1', 'columns["frame"]', "outputs"),
    Mutation("outputs/mask_files.py", "FIRST_CHARACTER = 48", "FIRST_CHARACTER = 47", "outputs"),
    Mutation("video/containers.py", 'stream.thread_type = "SLICE"', 'stream.thread_type = "AUTO"', "video"),
    Mutation("video/sources.py", "seconds >= self.end", "seconds > 1 + self.end", "video"),
    Mutation("cli/main.py", '{error}", file=sys.stderr)', '{error}")', "cli/test_refusals.py"),
    Mutation("__init__.py", '    "track",\n    "track_to_folder",\n]', "]", "test_api.py"),
)
"""The breakages, 60 and more."""


def copy_of(folder: Path) -> Path:
    """Copy the repository, as far as tests need it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


def broken(text: str, mutation: Mutation) -> str:
    """Break the line. Raises ValueError where it stands nowhere or more than once."""
    if (times := text.count(mutation.old)) != 1:
        raise ValueError(f"{mutation.file} holds {mutation.old!r} {times} times: write the mutation anew.")
    return text.replace(mutation.old, mutation.new)


def pytest(folder: Path, tests: Sequence[str]) -> int:
    """Run tests of the copy until one fails. Return pytest's exit code."""
    cache = f"cache_dir={folder / '.cache'}"
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-o", cache, "--cache-clear", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=LONGEST_S).returncode


def first_failure(folder: Path) -> str:
    """Return the name of the test that failed in the last run, or of the file that could not be read."""
    path = folder / ".cache" / "v" / "cache" / "lastfailed"
    return next(iter(json.loads(path.read_text()))) if path.exists() else ""


def run(mutation: Mutation, folder: Path) -> Row:
    """Break, test, mend again, and repeat the test that failed."""
    path = folder / "scalor" / mutation.file
    whole = path.read_text()
    tests = [str(Path("tests") / name) for name in mutation.tests.split()]
    begun, by = time.perf_counter(), ""
    path.write_text(broken(whole, mutation))
    try:
        code = pytest(folder, tests)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        path.write_text(whole)
    if code is None:
        result = "too long"
    elif code == PASSED:
        result = "survived"
    else:
        by = first_failure(folder)
        fair = code in (FAILED, COLLECTION_FAILED) and by and pytest(folder, [by]) == PASSED
        result = "caught" if fair else "not tested"
    return Row(mutation.name, result, by, round(time.perf_counter() - begun, 1))


def main(words: Sequence[str] | None = None) -> int:
    """Print a table and write the JSON. Return 1 if a breakage was not tested."""
    words = sys.argv[1:] if words is None else words
    asked = arguments(words)
    chosen = [one for one in MUTATIONS if all(word in one.name for word in asked.only)]
    with tempfile.TemporaryDirectory() as parent:
        folders: Queue[Path] = Queue()
        for number in range(asked.jobs):
            folders.put(copy_of(Path(parent) / str(number)))

        def one(mutation: Mutation) -> Row:
            folder = folders.get()
            try:
                row = run(mutation, folder)
            finally:
                folders.put(folder)
            print(f"{row.result:<10} {row.seconds:6.1f} s  {row.mutation}  {row.by}", file=sys.stderr, flush=True)
            return row

        with ThreadPoolExecutor(asked.jobs) as pool:
            rows = list(pool.map(one, chosen))
    told = origin("mutations", words, 0)
    counts = Counter(row.result for row in rows)
    if asked.json:
        report.write(asked.json, {"results": counts, "rows": [asdict(row) for row in rows], **told})
    print(f"{told['command']}\ncommit {told['commit']}, {told['date']}\n\n{report.table(rows)}")
    print(f"\n{counts['caught']} of {len(rows)} caught")
    return int(counts["not tested"] > 0)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="breakages with all of these words")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the repository that are tested side by side")
    parser.add_argument("--json", type=Path, help="file for the results")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
