"""Measurement of trained models and classical trackers: one function per table."""

import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from scalor import checkpoint
from scalor.classical.tracker import ClassicalTracker
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.evaluation.looks import measure_looks
from scalor.evaluation.rollouts import evaluate_rollouts
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model
from scalor.presets import get_preset
from scalor.reproduce.catalogue import Cell
from scalor.reproduce.results import Document, Order
from scalor.tracks import Tracks

FORECAST_LENGTH = 20
"""Number of frames of a clip in the generation table: five are observed, the rest are generated."""
LOOKS_CLIPS = 128
"""Largest number of clips on which the looks of generated objects are compared."""
BALLS_OBSERVED = 10
"""Number of observed frames of an episode of bouncing balls, as in G-SWM; the rest is generated."""
OBJECTS = (4, 8, 16, 32, 64)
"""Numbers of objects, and of slots, with which inference is timed."""
TIMED_SCENES = "shapes-md"
"""Preset whose scenes every timed system tracks."""
TIMED_FRAMES = 60
"""Number of frames in a timed stream; only the second half counts.

The first frame discovers all objects, and on a GPU a CUDA graph is captured some frames later.
"""


def measure(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure the weights in a run folder; return the complete result document."""
    origin = checkpoint.read(folder / checkpoint.MODEL_FILE).provenance
    torch.manual_seed(report.TEST_SEED)
    start = time.monotonic()
    figures = MEASURES[cell.table](cell, folder, order)
    seconds = time.monotonic() - start
    return document(cell, order, figures, {"seconds": None, "side_by_side": None, **origin}, seconds)


def measure_classical(cell: Cell, order: Order) -> Document:
    """Measure a classical tracker; return the complete result document."""
    scene = cell.config.test
    tracker = ClassicalTracker((scene.size, scene.size), cell.setting.detect)
    start = time.monotonic()
    tracking = report.evaluate_tracker(tracker, scene, order.clips)
    seconds = time.monotonic() - start
    return document(cell, order, {"metrics": {**tracking.to_dict(), "mse": None}}, None, seconds)


def document(cell: Cell, order: Order, figures: Document, training: Document | None, seconds: float) -> Document:
    """Return a result document: the measured values with the provenance of training and measurement."""
    asked = order.asked(cell)
    here = checkpoint.provenance(cell.config, 0, order.device_of(cell))
    return {
        "table": cell.table,
        "setting": cell.setting.name,
        "preset": cell.setting.preset or cell.setting.name,
        "system": cell.setting.system,
        "seed": cell.seed,
        **figures,
        "training_provenance": training,
        "evaluation_provenance": {
            **{name: here[name] for name in ("command", "commit", "hardware", "torch", "date")},
            "seconds": seconds,
            "clips": asked["clips"],
            "nll_samples": asked["nll_samples"],
        },
        "asked": asked,
    }


def load(folder: Path, order: Order) -> Model:
    """Load the weights of a run to the device asked for."""
    model: Model = checkpoint.load(folder / checkpoint.MODEL_FILE, order.device)
    return model


def evaluate(model: Model, config: Config[Any], order: Order, nll_samples: int = 0) -> Document:
    """Evaluate a model on as many unseen clips as asked for."""
    return report.evaluate(model, config, order.clips, nll_samples=nll_samples).to_dict()


def tracking(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure tracking."""
    return {"metrics": evaluate(load(folder, order), cell.config, order)}


def likelihood(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure tracking and the likelihood of unseen clips."""
    return {"metrics": evaluate(load(folder, order), cell.config, order, order.nll_samples)}


def ablation(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure tracking with or without a mechanism of the model, at the end and during training."""
    config = cell.config
    return {
        "metrics": evaluate(load(folder, order), config, order),
        "evaluations": evaluations(folder),
    }


def generation(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure the forecast of clips, frame by frame, and whether sampled objects keep their looks."""
    model, config = load(folder, order), cell.config
    longer = replace(config, test=replace(config.test, length=FORECAST_LENGTH))
    metrics = evaluate(model, longer, order)
    assert isinstance(model, SCALOR)
    looks = measure_looks(model, config, min(order.clips, LOOKS_CLIPS))
    return {"metrics": metrics, "forecast": metrics["forecast"], "looks": asdict(looks)}


def balls(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure tracking of whole episodes of bouncing balls, and rollouts after some observed frames."""
    model, config = load(folder, order), cell.config
    assert isinstance(model, SCALOR)
    tracked = report.evaluate(model, config, order.clips, observe=config.test.length).to_dict()
    rollouts = evaluate_rollouts(model, config, order.clips, BALLS_OBSERVED)
    return {"metrics": tracked, "rollouts": asdict(rollouts)}


def generalisation(cell: Cell, folder: Path, order: Order) -> Document:
    """Evaluate on the test scenes and, if these differ, on unseen clips of the training scenes."""
    model, config = load(folder, order), cell.config
    figures = {"metrics": evaluate(model, config, order)}
    if config.test != config.scene:
        figures["metrics_as_trained"] = evaluate(model, replace(config, test=config.scene), order)
    return figures


def efficiency(cell: Cell, folder: Path, order: Order) -> Document:
    """Return inference times if the setting names a device, otherwise the evaluations during training."""
    if not cell.setting.device:
        return {"device": None, "speed": [], "training": evaluations(folder)}
    device = order.device_of(cell)
    return {
        "device": device.type,
        "threads": torch.get_num_threads(),
        "speed": speeds(folder, device),
        "training": [],
    }


def replay(cell: Cell, folder: Path, order: Order) -> Document:
    """Measure tracking and likelihood on drawn walkers that follow real tracks."""
    return {"semi_synthetic": True, **likelihood(cell, folder, order)}


def evaluations(folder: Path) -> list[Document]:
    """Read the evaluations that were made during a training."""
    path = folder / "evaluations.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines:
        raise InputError(
            f"{path} is missing or empty: copy it along with the weights, or move the folder away to train again."
        )
    return [json.loads(line) for line in lines]


def speeds(folder: Path, device: torch.device) -> list[Document]:
    """Measure the milliseconds from handing over a frame to receiving its tracks.

    There is one stream for each number of objects. The streams take turns, so that a temporary slowdown of the device
    affects all of them.
    """
    streams = {objects: stream(folder, objects, device) for objects in OBJECTS}
    times: dict[int, list[float]] = {objects: [] for objects in OBJECTS}
    tracks: dict[int, list[int]] = {objects: [] for objects in OBJECTS}
    with warnings.catch_warnings(action="ignore"):  # slots may run out
        for frame in range(TIMED_FRAMES):
            for objects, tracked in streams.items():
                start = time.perf_counter()
                found = next(tracked)
                if frame >= TIMED_FRAMES // 2:
                    times[objects].append(time.perf_counter() - start)
                    tracks[objects].append(len(found))
    return [
        {
            "objects": objects,
            "tracks": statistics.mean(tracks[objects]),
            "ms_per_frame": 1e3 * statistics.median(times[objects]),
        }
        for objects in OBJECTS
    ]


def stream(folder: Path, objects: int, device: torch.device) -> Iterator[Tracks]:
    """Track one clip frame by frame with a model that has as many slots as there are objects."""
    model = checkpoint.load_tracker(folder / checkpoint.MODEL_FILE, device, slots=objects)
    scene = replace(get_preset(TIMED_SCENES).test, objects=(objects, objects), length=TIMED_FRAMES)
    return model.stream(Scenes(scene, report.TEST_SEED, "test", device).clips(0).observation[0].unbind())


MEASURES: dict[str, Callable[[Cell, Path, Order], Document]] = {
    "tracking": tracking,
    "likelihood": likelihood,
    "ablation": ablation,
    "generation": generation,
    "efficiency": efficiency,
    "generalisation": generalisation,
    "replay": replay,
    "balls": balls,
}
