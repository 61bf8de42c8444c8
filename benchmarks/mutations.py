"""`python -m benchmarks.mutations`: would the tests notice if a line were broken?

Breaks one line at a time in a copy of the repository, runs the tests of the folders it belongs to, and reports which
breakages were caught, and by which test. A breakage that survives is a promise that no test keeps.

At the end comes a control run: the tests that failed run again, all together, on the unbroken copy, and must pass.
A test that does not fails for a reason of its own, and its breakages count as not tested.

The file of `--json` is written after every breakage, so a run may be stopped at any time. `--again` goes on from it:
only breakages that it does not call caught are tested, and each row names the commit that it was measured at.
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
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from queue import Queue
from typing import Any

from benchmarks import report
from benchmarks.track_command import origin
from scalor import provenance

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
    commit: str


MUTATIONS = (
    # The model: what the paper says, and what docs/model.md says of departures from it.
    Mutation(
        "nn/distributions.py", "REJECTED_PRESENCE = 1e-8", "REJECTED_PRESENCE = 0.1", "nn/test_distributions.py nn"
    ),
    Mutation("nn/gradients.py", "ctx.times * usual / norm", "usual / norm", "nn/test_gradients.py nn"),
    Mutation("nn/gradients.py", "(numbers * gradient < 0)", "(numbers * gradient > 0)", "nn/test_gradients.py nn"),
    Mutation("model/elbo.py", "foreground.mask.detach()", "foreground.mask", "model/test_elbo.py model"),
    Mutation("model/background.py", "1 - foreground], 2)", "foreground], 2)", "model/test_elbo.py model"),
    Mutation("model/time_step.py", "frames - 0.5", "frames", "model/test_still.py model"),
    Mutation("model/time_step.py", "frames - video.still", "frames", "model/test_still.py model"),
    Mutation(
        "model/sighting.py", "(canvas[:, :, 0] > 0.5)", "(canvas[:, :, 0] > 0.1)", "model/test_rendering.py model"
    ),
    Mutation(
        "model/state.py",
        "difference <= most_difference",
        "difference <= 100 * most_difference",
        "model/test_state.py model",
    ),
    Mutation("model/state.py", "shared >= least_iou *", "shared >= 0.1 * least_iou *", "model/test_state.py model"),
    Mutation("model/state.py", "births[:, 0] - seated", "births[:, 0]", "model/test_state.py model"),
    Mutation("model/state.py", "before.next_id + seated", "before.next_id", "model/test_state.py model"),
    Mutation(
        "model/propagation.py", "gate * fresh.mean + (1 - gate)", "(1 - gate) * fresh.mean + gate", "test_departures.py"
    ),
    Mutation("model/propagation.py", "objects.z_depth + judged[..., :1]", "judged[..., :1]", "test_departures.py"),
    Mutation(
        "model/propagation.py",
        "typical * squashed[..., :2]",
        "2 * typical * squashed[..., :2]",
        "model/test_propagation.py model",
    ),
    Mutation("model/propagation.py", "sprite.shows & inside", "sprite.shows", "model/test_propagation.py model"),
    Mutation(
        "model/discovery.py",
        "presence * (1 - self.reject",
        "presence * (0 + self.reject",
        "model/test_discovery.py model",
    ),
    Mutation("model/discovery.py", "share >= self.config.sibling_cover", "share >= 2", "model/test_discovery.py model"),
    Mutation("model/rendering.py", "(1 - foreground.mask) * background", "background", "model/test_rendering.py model"),
    Mutation("model/geometry.py", "(x0 < frame[1])", "(x0 < frame[0])", "model/test_geometry.py model"),
    Mutation("kernels/plain_torch.py", "reach = 1 + 1 / samples", "reach = 1", "kernels/test_plain_torch.py kernels"),
    Mutation(
        "kernels/plain_torch.py", "align_corners=False", "align_corners=True", "kernels/test_plain_torch.py kernels"
    ),
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
    Mutation(
        "model/glimpses.py",
        "bias[3 * self.patch**2 :] += logit",
        "bias[3 * self.patch**2 :] += 0",
        "test_departures.py",
    ),
    Mutation(
        "model/rendering.py", "foreground.mask * foreground.colour", "foreground.colour", "model/test_rendering.py"
    ),
    Mutation("model/rendering.py", "canvas[:, 4:].clamp(max=1)", "canvas[:, 4:]", "model/test_rendering.py"),
    Mutation(
        "model/sighting.py", "tight_box(sprite.mask, objects.where)", "objects.where", "model/test_scalor.py model"
    ),
    Mutation(
        "model/geometry.py",
        "typical * (1 + size_range * squashed)",
        "typical * (1 + squashed)",
        "model/test_geometry.py model",
    ),
    Mutation(
        "presets/shapes_and_digits.py",
        "lengths=((0, 1), (2_500, 2)",
        "lengths=((0, 2), (2_500, 2)",
        "test_departures.py",
    ),
    Mutation(
        "presets/shapes_and_digits.py",
        "presence_prior=(0.1, 1e-4, 500)",
        "presence_prior=(0.1, 1e-2, 500)",
        "test_departures.py",
    ),
    Mutation(
        "presets/shapes_and_digits.py",
        "size_range=0.25,\n        inertia=True",
        "size_range=0.25,\n        inertia=False",
        "test_departures.py",
    ),
    # Scenes and their truth.
    Mutation("data/footage.py", "torch.where(mirrored, x.flip(1), x)", "x", "data/test_footage.py data fitting"),
    Mutation(
        "data/footage.py", "torch.where(mirrored, size[0] - right, left)", "left", "data/test_footage.py data fitting"
    ),
    Mutation(
        "data/footage.py", "torch.where(state == SEEN, inside, UNSEEN)", "inside", "data/test_footage.py data fitting"
    ),
    Mutation(
        "data/compositor.py", 'ours if name == "order" else ours[:, :length]', "ours", "data/test_compositor.py data"
    ),
    Mutation("data/compositor.py", "visible=visible", "visible=truth.visible", "data/test_compositor.py data"),
    Mutation("data/paths.py", "torch.where(joined, own.roll(1, 0), own)", "own", "data"),
    # Training and weights.
    Mutation(
        "training/step.py",
        "1 - torch.isfinite(norm).float()",
        "0 * torch.isfinite(norm).float()",
        "training/test_step.py training",
    ),
    Mutation("training/step.py", "number * self.config.train.batch", "number", "training/test_step.py training"),
    Mutation("checkpoint.py", "os.fsync(file.fileno())", "pass", "test_checkpoint.py training/test_kill.py"),
    Mutation("checkpoint.py", "os.replace(beside, path)", "beside.rename(path)", "test_checkpoint.py"),
    Mutation("checkpoint.py", "MAX_STEP = 0.1", "MAX_STEP = 1e9", "test_checkpoint_packed.py"),
    Mutation("provenance.py", "{head}-dirty", "{head}", "test_checkpoint.py"),
    # Metrics.
    Mutation(
        "boxes.py",
        "forbidden = 1 + cost[inside].max()",
        "forbidden = 0 * cost[inside].max()",
        "evaluation/test_matching.py evaluation",
    ),
    Mutation("boxes.py", "pred_area - intersection", "pred_area", "evaluation/test_matching.py evaluation"),
    Mutation("evaluation/matching.py", "NEAR_VIEW = 0.3", "NEAR_VIEW = 3.0", "evaluation/test_matching.py evaluation"),
    Mutation("evaluation/matching.py", "np.hypot(width, height)", "width", "evaluation/test_matching.py evaluation"),
    # From frames to tracks.
    Mutation(
        "tracking/identity.py",
        "PREDICTED_PRESENCE = 0.3",
        "PREDICTED_PRESENCE = 0.9",
        "tracking/test_identity.py tracking",
    ),
    Mutation(
        "tracking/identity.py", "DUPLICATE_COVER = 0.7", "DUPLICATE_COVER = 0.99", "tracking/test_identity.py tracking"
    ),
    Mutation("tracking/identity.py", "life.mean_presence >= self.likely", "True", "tracking/test_identity.py tracking"),
    Mutation(
        "tracking/identity.py",
        "(near[0] + 2 * self.middles[at] + near[1]) / 4",
        "near[0]",
        "tracking/test_identity.py tracking",
    ),
    Mutation("tracking/identity.py", "now - self.lag", "now", "tracking/test_identity.py tracking"),
    Mutation("tracking/kalman.py", "EARLY = 5", "EARLY = 500", "tracking/test_kalman.py tracking"),
    Mutation("tracking/kalman.py", "GATE = 1.0", "GATE = 3.0", "tracking/test_kalman.py tracking"),
    Mutation("tracking/sharpening.py", "MIN_PIECE = 0.1", "MIN_PIECE = 0.9", "tracking/test_sharpening.py tracking"),
    Mutation(
        "tracking/sharpening.py",
        "KEEP_SHARE = 0.05, 0.15",
        "KEEP_SHARE = 0.0, 0.15",
        "tracking/test_sharpening.py tracking",
    ),
    Mutation(
        "tracking/video_view.py",
        "CLIP_DENSITY_RATIO = 4",
        "CLIP_DENSITY_RATIO = 1",
        "tracking/test_video_view.py tracking",
    ),
    Mutation(
        "tracking/video_view.py", "TARGET_SIDE = 14.0", "TARGET_SIDE = 28.0", "tracking/test_video_view.py tracking"
    ),
    Mutation(
        "tracking/video_view.py",
        "amplify_difference(small, empty, self.contrast)",
        "small",
        "tracking/test_video_view.py tracking",
    ),
    Mutation("still/light.py", "picture - in_light(scene, light)", "picture - scene", "still/test_light.py still"),
    Mutation("still/foreground.py", "~darker | differs_in_colour(*there)", "~darker", "still/test_foreground.py still"),
    Mutation("camera/check.py", "MIN_REST_RATIO = 0.5", "MIN_REST_RATIO = 0.0", "camera/test_check.py camera"),
    Mutation(
        "fitting/scratch.py",
        "CLIP_SIZE_IN_OBJECTS = (2, 4)",
        "CLIP_SIZE_IN_OBJECTS = (1, 1)",
        "fitting/test_scratch.py fitting",
    ),
    Mutation("fitting/refine.py", "0.5 + 0.5 * self.usual", "1.0", "fitting/test_refine.py fitting"),
    Mutation(
        "fitting/pseudo_labels.py", "last[number] + apart", "last[number]", "fitting/test_pseudo_labels.py fitting"
    ),
    # What users meet.
    Mutation(
        "health/verdict.py",
        "sign * value >= sign * self.bad",
        "sign * value <= sign * self.bad",
        "health/test_verdict.py health",
    ),
    Mutation(
        "outputs/result_folder.py",
        'partial / "tracks.parquet"',
        'Path("/nowhere/tracks.parquet")',
        "outputs/test_result_folder.py outputs",
    ),
    Mutation("track_files.py", 'columns["frame"] + 1', 'columns["frame"]', "outputs/test_tables.py outputs"),
    Mutation(
        "outputs/mask_files.py", "FIRST_CHARACTER = 48", "FIRST_CHARACTER = 47", "outputs/test_mask_files.py outputs"
    ),
    Mutation(
        "video/containers.py",
        'stream.thread_type = "SLICE"',
        'stream.thread_type = "AUTO"',
        "video/test_containers.py video",
    ),
    Mutation("video/sources.py", "seconds >= self.end", "seconds > 1 + self.end", "video/test_sources.py video"),
    Mutation("cli/main.py", '{one_line(error)}", file=sys.stderr)', '{one_line(error)}")', "cli/test_refusals.py"),
    Mutation("__init__.py", '    "track",\n    "track_to_folder",\n]', "]", "test_api.py"),
    # More of every package.
    Mutation("camera/align.py", "MIN_SHARE_OF_FOUND = 0.4", "MIN_SHARE_OF_FOUND = 0.0", "camera"),
    Mutation(
        "camera/align.py",
        "mean = cv2.blur(values, (NORMALISATION_WINDOW, NORMALISATION_WINDOW))",
        "mean = 0 * values",
        "camera/test_align.py camera",
    ),
    Mutation(
        "camera/estimate.py", "self.agreement > MIN_AGREEMENT", "self.agreement > -1", "camera/test_estimate.py camera"
    ),
    Mutation("camera/estimate.py", "MIN_OVERLAP = 0.6", "MIN_OVERLAP = 0.1", "camera/test_estimate.py camera"),
    Mutation(
        "camera/stabilise.py",
        "move_boxes(invert(self.transform(number)), boxes)",
        "move_boxes(self.transform(number), boxes)",
        "camera/test_stabilise.py camera",
    ),
    Mutation("camera/stabilise.py", "MAX_VIEW_SIDES = 2.0", "MAX_VIEW_SIDES = 9.0", "camera/test_stabilise.py camera"),
    Mutation("camera/stabilise.py", "MAX_FAILED_SHARE = 0.2", "MAX_FAILED_SHARE = 1.0", "camera"),
    Mutation(
        "health/rules.py",
        "EXPLAINED_LIMITS = Limits(0.6, 0.33)",
        "EXPLAINED_LIMITS = Limits(0.6, 0.1)",
        "health/test_verdict.py test_promises.py",
    ),
    Mutation(
        "health/lifetimes.py",
        "min(math.hypot(dx, dy), math.hypot",
        "max(math.hypot(dx, dy), math.hypot",
        "health/test_lifetimes.py",
    ),
    Mutation("health/lifetimes.py", "BORDER_SIZES = 1.0", "BORDER_SIZES = 0.0", "health/test_lifetimes.py health"),
    Mutation(
        "health/coverage.py", "own = touch.sum(1) == 1", "own = touch.sum(1) >= 0", "health/test_coverage.py health"
    ),
    Mutation("health/monitor.py", "LIGHT_STEP = 0.05", "LIGHT_STEP = 0.5", "health/test_monitor.py"),
    Mutation("still/foreground.py", "MIN_SHADOW_LIGHT = 0.5", "MIN_SHADOW_LIGHT = 0.0", "still/test_foreground.py"),
    Mutation(
        "still/foreground.py",
        "NOISE_DEVIATIONS * noise_of(picture, background)",
        "0 * noise_of(picture, background)",
        "still/test_foreground.py still",
    ),
    Mutation(
        "still/median.py", "+ MODE_MARGIN, dense, median", "+ MODE_MARGIN, median, median", "still/test_median.py still"
    ),
    Mutation(
        "still/median.py", "middle = (len(pictures) - 1) // 2", "middle = len(pictures) - 1", "still/test_median.py"
    ),
    Mutation("still/light.py", "gain = np.clip(1 + sure *", "gain = np.clip(1 + 0 * sure *", "still/test_light.py"),
    Mutation(
        "still/epochs.py", "MIN_CHANGED_SHARE = 0.4", "MIN_CHANGED_SHARE = 2.0", "still/test_still_background.py still"
    ),
    Mutation("still/survey.py", "GROUP_AREAS = 1.8", "GROUP_AREAS = 99.0", "still/test_survey.py"),
    Mutation("still/survey.py", "/ scale / video.selection.stride", "/ scale", "still/test_survey.py"),
    Mutation(
        "fitting/refine.py",
        "math.prod(view.found.object_size) * lens.scales[0] * lens.scales[1]",
        "math.prod(view.found.object_size)",
        "fitting/test_refine.py",
    ),
    Mutation("many/videos.py", "jobs[shard[0] :: shard[1]]", "jobs[shard[0] + 1 :: shard[1]]", "many/test_videos.py"),
    Mutation("many/videos.py", "if MANIFEST in names or", "if", "many/test_videos.py"),
    Mutation("many/local.py", "waiting.append((worker.job, worker.attempt + 1))", "break", "many/test_run.py"),
    Mutation("many/local.py", "        os.kill(os.getpid(), signal.SIGTERM)\n", "", "many/test_run.py"),
    Mutation("many/worker.py", "            check_name(task, job, out, key)\n", "", "many/test_run.py"),
    Mutation("many/fitting_task.py", "        put_back(job, out, aside)\n", "", "many/test_fitting_task.py"),
    Mutation("many/store.py", "if place.name not in names:", "if False:", "many/test_run.py"),
    Mutation("many/tracking_task.py", 'before["key"] == key and', "False and", "many/test_run.py"),
    Mutation("many/run.py", "*earlier(summary.folder, summary.outcomes)", "", "many/test_run.py"),
    Mutation("evaluation/mota.py", "total += int(", "total = int(", "evaluation"),
    Mutation(
        "evaluation/score.py",
        'np.argsort(self.frame, kind="stable")',
        "np.arange(len(self.frame))",
        "evaluation/test_score.py",
    ),
    Mutation("still/survey.py", " - (times - 1) / 2", "", "still/test_survey.py"),
    Mutation("cli/track.py", "if asked is None else", "if asked else", "cli/test_track.py"),
    Mutation("fitting/fit.py", "MIN_GAIN = 0.01", "MIN_GAIN = -9.0", "cli/test_fit.py"),
    Mutation("fitting/fit.py", "value is not None and value is not False", "bool(value)", "cli/test_fit.py"),
    Mutation("checkpoint.py", "if model.origin is None:", "if True:", "test_checkpoint.py"),
    Mutation("presets/preset_registry.py", "    model.run = config\n", "", "test_checkpoint.py"),
    Mutation("reproduce/sections.py", "elif since is None:", "elif not since:", "reproduce/test_page.py"),
    Mutation("tracks.py", "readable = tables if", "readable = tables if not", "test_tracks.py"),
    Mutation(
        "fitting/scratch.py",
        "min(stride_for(found.speed, min(height, width)), max(1, frames // LENGTH))",
        "stride_for(found.speed, min(height, width))",
        "fitting/test_scratch.py",
    ),
    Mutation("fitting/pseudo_labels.py", "HIDDEN if row.hidden else SEEN", "SEEN", "fitting/test_pseudo_labels.py"),
    Mutation(
        "tracking/identity.py",
        "SETTINGS = LinkerSettings(patience=20",
        "SETTINGS = LinkerSettings(patience=5",
        "tracking/test_identity.py",
    ),
    Mutation(
        "tracking/identity.py",
        "PROOF, PROOF_SECONDS = 4, 0.3",
        "PROOF, PROOF_SECONDS = 1, 0.3",
        "tracking/test_identity.py",
    ),
    Mutation(
        "tracking/identity.py",
        "max(PROOF, min(round(PROOF_SECONDS * fps), lag // 2))",
        "PROOF",
        "tracking/test_identity.py",
    ),
    Mutation("tracking/identity.py", "LAG = 20", "LAG = 2", "tracking/test_identity.py test_promises.py"),
    Mutation(
        "tracking/identity.py",
        "share * (part[after] - part[before])",
        "0 * (part[after] - part[before])",
        "tracking/test_identity.py",
    ),
    Mutation(
        "tracking/identity.py",
        "FREE_DISTANCE, MAX_PRESENCE_ASKED = 0.7, 0.3, 0.92",
        "FREE_DISTANCE, MAX_PRESENCE_ASKED = 0.7, 0.3, 0.0",
        "tracking/test_identity.py",
    ),
    Mutation(
        "tracking/identity.py",
        "masks=np.stack([tracks.masks[shown == row].any(0)",
        "masks=np.stack([tracks.masks[shown == row].all(0)",
        "tracking/test_identity.py",
    ),
    Mutation(
        "tracking/kalman.py", "push = np.array([0.5, 1.0])", "push = np.array([0.0, 1.0])", "tracking/test_kalman.py"
    ),
    Mutation(
        "tracking/kalman.py", "spread - gain[:, :, None] * spread[:, None, 0, :]", "spread", "tracking/test_kalman.py"
    ),
    Mutation(
        "tracking/kalman.py",
        "self.settings.missed_cost * self.followed.missed",
        "0 * self.followed.missed",
        "tracking/test_kalman.py tracking",
    ),
    Mutation("tracking/kalman.py", "COLOUR_GATE = 0.2", "COLOUR_GATE = 9.0", "tracking/test_kalman.py classical"),
    Mutation(
        "tracking/post_processing.py", "LEAST_AREA = 0.12", "LEAST_AREA = 0.0", "tracking/test_follow.py tracking"
    ),
    Mutation("tracking/post_processing.py", "CERTAIN = 0.4", "CERTAIN = 1e9", "tracking/test_follow.py tracking"),
    Mutation("tracking/video_view.py", "MIN_SIDE = 8.0", "MIN_SIDE = 0.5", "tracking/test_video_view.py"),
    Mutation(
        "tracking/video_view.py",
        "SPARE_SLOTS, SLOTS_PER_OBJECT, MAX_SLOTS = 24, 3.0, 1024",
        "SPARE_SLOTS, SLOTS_PER_OBJECT, MAX_SLOTS = 0, 1.0, 1024",
        "tracking/test_video_view.py",
    ),
    Mutation("tracker_choice.py", "SLOTS_PER_PROPOSAL = 3", "SLOTS_PER_PROPOSAL = 3000", "test_tracker_choice.py"),
    Mutation("outputs/films.py", "TRAIL_SECONDS = 1.0", "TRAIL_SECONDS = 0.1", "outputs/test_films.py"),
    Mutation(
        "track_files.py",
        'columns["frame"] + 1, columns["id"]',
        'columns["frame"], columns["id"]',
        "outputs/test_tables.py test_tracks.py",
    ),
    Mutation("outputs/result_folder.py", "self.fps = fps / stride", "self.fps = fps", "outputs/test_result_folder.py"),
    Mutation("replacement.py", "os.replace(complete / name, folder / name)", "pass", "outputs test_files.py"),
    Mutation(
        "edits/apply.py",
        "rows.id[first], rows.id[second] = b, a",
        "rows.id[first], rows.id[second] = a, b",
        "edits/test_apply.py",
    ),
    Mutation("edits/apply.py", "if len(shared):", "if len(shared) > 10:", "edits/test_apply.py"),
    Mutation("edits/edit_log.py", "undone.clear()", "pass", "edits"),
    Mutation("edits/edit_log.py", "file.truncate(end)", "pass", "edits/test_edit_log.py"),
    Mutation(
        "edits/review.py",
        "JUMP_SIDES, JUMP_STEPS = 1.0, 5.0",
        "JUMP_SIDES, JUMP_STEPS = 100.0, 5.0",
        "edits/test_review.py",
    ),
    Mutation("settings.py", '"ge": operator.ge', '"ge": operator.gt', "test_settings.py"),
    Mutation("settings.py", "math.isfinite(value) and", "True and", "test_settings.py"),
    Mutation(
        "cli/main.py",
        'print(f"scalor: {one_line(error)}", file=sys.stderr)\n        return 2',
        'print(f"scalor: {one_line(error)}", file=sys.stderr)\n        return 1',
        "cli/test_refusals.py",
    ),
    Mutation("cli/overrides.py", "dataclasses.replace(config, test=other.test)", "config", "cli/test_commands.py cli"),
    Mutation("forecast.py", "None if sample else Mode()", "None", "cli/test_predict.py test_api.py"),
    Mutation("classical/detectors.py", "SMALLEST = 0.06", "SMALLEST = 0.9", "classical/test_detectors.py classical"),
    Mutation("classical/motion.py", "GHOST = 0.7", "GHOST = 0.0", "classical/test_motion.py"),
    Mutation("classical/motion.py", "SEVERAL = 1.8", "SEVERAL = 50.0", "classical/test_motion.py"),
    Mutation(
        "classical/tracker.py",
        "np.where(followed.missed > 0, PREDICTED_PRESENCE, 1.0)",
        "np.where(followed.missed > 0, 1.0, 1.0)",
        "classical/test_tracker.py",
    ),
    Mutation(
        "evaluation/mota.py",
        "self.misses + self.false_positives + self.switches, self.objects",
        "self.misses + self.false_positives, self.objects",
        "evaluation/test_mota.py",
    ),
    Mutation("evaluation/mota.py", "kept = kept[np.argsort(when[kept])]", "kept = kept", "evaluation/test_mota.py"),
    Mutation(
        "evaluation/hota.py",
        "ALPHAS = np.arange(0.05, 0.99, 0.05)",
        "ALPHAS = np.arange(0.1, 0.99, 0.05)",
        "evaluation/test_hota.py",
    ),
    Mutation(
        "training/guards.py", "most = 0.9 if length < FEW_FRAMES else 0.5", "most = 0.9", "training/test_guards.py"
    ),
    Mutation(
        "training/step.py", "loss = -elbo / video.values_per_clip", "loss = -elbo", "training/test_step.py training"
    ),
    Mutation("visual/colors.py", "np.where(ids[:, None] < 0, np.uint8(0), colors_of(ids))", "colors_of(ids)", "visual"),
    Mutation("visual/strips.py", "4 * gap if separator_after is not None else 0", "0", "visual/test_strips.py"),
    Mutation(
        "video/pixels.py",
        "LEVEL_PERCENTILES = (0.1, 99.9)",
        "LEVEL_PERCENTILES = (0.0, 100.0)",
        "video/test_images.py test_promises.py",
    ),
    Mutation("video/encoding.py", 'options = {"crf": "17"', 'options = {"crf": "40"', "video/test_encoding.py"),
    Mutation(
        "reproduce/results.py", "[one for one in row if not changed_since(one)] or row", "row", "reproduce/test_page.py"
    ),
    Mutation(
        "baselines/sqair/objective.py",
        "return replaced.logsumexp(2) - math.log(particles)",
        "return replaced.logsumexp(2)",
        "baselines/test_sqair_objective.py",
    ),
    Mutation(
        "baselines/sqair/objective.py",
        "stand_in = everyone.masked_fill(itself, 0).sum(2) / (particles - 1)",
        "stand_in = everyone.masked_fill(itself, 0).sum(2)",
        "baselines/test_sqair_objective.py",
    ),
    Mutation(
        "baselines/whole_frames.py",
        "weights.logsumexp(0) - math.log(samples)",
        "weights.logsumexp(0)",
        "baselines/test_vae.py",
    ),
    Mutation("video/reading.py", "MIN_SEEK_RATIO = 4", "MIN_SEEK_RATIO = 4000", "video/test_reading.py"),
    Mutation(
        "measures/kinematics.py",
        "length: np.ndarray = np.hypot(*samples.since_last(samples.place).T)",
        "length: np.ndarray = samples.since_last(samples.place)[:, 0]",
        "measures/test_kinematics.py",
    ),
    Mutation(
        "measures/displacement.py",
        "squared = ((path[lag:] - path[:-lag]) ** 2).sum(axis=1)",
        "squared = np.abs(path[lag:] - path[:-lag]).sum(axis=1)",
        "measures/test_displacement.py",
    ),
    Mutation(
        "measures/line_crossings.py", "MARGIN_SIZES = 0.25", "MARGIN_SIZES = 0.0", "measures/test_line_crossings.py"
    ),
    Mutation(
        "measures/regions.py", "points[:, 1] - y) < radius", "points[:, 1] - y) > radius", "measures/test_regions.py"
    ),
    Mutation(
        "exports/trackmate.py",
        "places = scale * (tracks.centre - 0.5)",
        "places = scale * tracks.centre",
        "exports/test_trackmate.py",
    ),
    Mutation(
        "exports/object_clip.py",
        "- sums[index - near]) / (2 * near + 1)[:, None]",
        "- sums[index - near]) / (2 * near)[:, None]",
        "exports/test_clip.py",
    ),
    Mutation(
        "viewer/chunks.py",
        "np.flatnonzero(np.diff(ids)) + 1)",
        "np.flatnonzero(np.diff(ids)))",
        "viewer/test_chunks.py",
    ),
    Mutation(
        "viewer/film.py",
        "(max(2, 2 * round(side * scale / 2)) for side in size)",
        "(max(2, round(side * scale)) for side in size)",
        "viewer/test_film.py",
    ),
    Mutation(
        "server/session.py",
        "return -(-len(self._frames) // chunks.CHUNK_FRAMES)",
        "return len(self._frames) // chunks.CHUNK_FRAMES",
        "server",
    ),
)
"""The breakages: more than 160, of every package."""


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
        raise ValueError(f"{mutation.file} holds {mutation.old!r} {times} times: write the mutation again.")
    return text.replace(mutation.old, mutation.new)


def pytest(folder: Path, *words: str) -> int:
    """Run tests of the copy. Return pytest's exit code."""
    cache = f"cache_dir={folder / '.cache'}"
    words = (sys.executable, "-m", "pytest", "-q", "-o", cache, "--cache-clear", *words)
    plain = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, "PYTHONPATH": str(folder), **plain}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=LONGEST_S).returncode


def failures(folder: Path) -> list[str]:
    """Return the names of the tests that failed in the last run, and of the files that could not be read."""
    path = folder / ".cache" / "v" / "cache" / "lastfailed"
    return list(json.loads(path.read_text())) if path.exists() else []


def run(mutation: Mutation, folder: Path) -> Row:
    """Break, test until a test fails, and mend again."""
    path = folder / "scalor" / mutation.file
    whole = path.read_text()
    begun, code, failed = time.perf_counter(), PASSED, [""]
    path.write_text(broken(whole, mutation))
    try:
        for tests in mutation.tests.split():  # the likeliest first, which often spares the others
            code = pytest(folder, "-x", str(Path("tests") / tests))
            if code != PASSED:
                break
        failed = failures(folder) or [""]
        known = code in (FAILED, COLLECTION_FAILED) and failed[0]
        result = "survived" if code == PASSED else "caught" if known else "not tested"
    except subprocess.TimeoutExpired:
        result = "too long"
    finally:
        path.write_text(whole)
    return Row(mutation.name, result, failed[0], round(time.perf_counter() - begun, 1), provenance.commit())


def base(test: str) -> str:
    """Return the name of a test without its parameters, which may come from the code and be others if it is broken."""
    return test.partition("[")[0]


def controlled(rows: Sequence[Row], folder: Path) -> list[Row]:
    """Repeat the tests that failed, on the unbroken copy. Return the rows, judged again."""
    caught = sorted({base(row.by) for row in rows if row.result == "caught"})
    wrong = set()
    if caught and pytest(folder, *caught) != PASSED:
        wrong = {base(test) for test in failures(folder)} or set(caught)
    unfair = {test for test in caught if any(one in (test, test.partition("::")[0]) for one in wrong)}
    return [replace(row, result="not tested") if base(row.by) in unfair else row for row in rows]


def earlier(file: Path) -> list[Row]:
    """Return the rows of a file of results, if there is one, whose breakages were caught and are still in the list."""
    if not file.exists():
        return []
    names, columns = {one.name for one in MUTATIONS}, {field.name for field in fields(Row)}
    rows = [Row(**row) for row in json.loads(file.read_text())["rows"] if row.keys() == columns]
    return [row for row in rows if row.result == "caught" and row.mutation in names]


def document(rows: Sequence[Row], words: Sequence[str], whole: bool) -> dict[str, Any]:
    """Return the results as they are written. `whole` tells that all were tested and the control run was made."""
    order = {one.name: number for number, one in enumerate(MUTATIONS)}
    rows = sorted(rows, key=lambda row: order[row.mutation])
    counts = Counter(row.result for row in rows)
    return {"whole": whole, "results": counts, "rows": [asdict(row) for row in rows], **origin("mutations", words, 0)}


def main(words: Sequence[str] | None = None) -> int:
    """Print a table and write the JSON. Return 1 if a breakage was not tested."""
    words = sys.argv[1:] if words is None else words
    asked = arguments(words)
    known = earlier(asked.json) if asked.again else []
    chosen = [one for one in MUTATIONS if all(word in one.name for word in asked.only)]
    chosen = [one for one in chosen if one.name not in {row.mutation for row in known}]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as parent:
        folders: Queue[Path] = Queue()
        for number in range(asked.jobs):
            folders.put(copy_of(Path(parent) / str(number)))

        def one(mutation: Mutation) -> Row:
            folder = folders.get()
            try:
                return run(mutation, folder)
            finally:
                folders.put(folder)

        with ThreadPoolExecutor(asked.jobs) as pool:
            for row in pool.map(one, chosen):
                print(f"{row.result:<10} {row.seconds:6.1f} s  {row.mutation}  {row.by}", file=sys.stderr, flush=True)
                rows.append(row)
                if asked.json:
                    report.write(asked.json, document([*known, *rows], words, whole=False))
        rows = [*known, *controlled(rows, folders.get())]
    told = document(rows, words, whole=True)
    if asked.json:
        report.write(asked.json, told)
    print(f"{told['command']}\ncommit {told['commit']}, {told['date']}\n\n{report.table(rows)}")
    print(f"\n{told['results']['caught']} of {len(rows)} caught")
    return int(told["results"]["not tested"] > 0)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutations", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="breakages with all of these words")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the repository that are tested side by side")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--again", action="store_true", help="test only what the file of --json does not call caught")
    asked = parser.parse_args(words)
    if asked.again and not asked.json:
        parser.error("--again goes on from the file of --json: name it.")
    return asked


if __name__ == "__main__":
    sys.exit(main())
