"""From the weights of a training, or a classical tracker, to the figures of a table: one function a table."""

import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from scalor import checkpoint
from scalor.classical import tracker as classical
from scalor.classical.tracker import ClassicalTracker
from scalor.config import Config
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.nn.interface import Model
from scalor.presets import get_preset
from scalor.reproduce.catalogue import Cell
from scalor.reproduce.results import Document, Order
from scalor.tracks import Tracks

FORECAST_LENGTH = 20
"""Frames of a clip of which five are observed and the rest imagined."""
OBJECTS = (4, 8, 16, 32, 64)
TIMED_SCENES = "shapes-md"
"""The preset of the shapes that every timed system sees."""
TIMED_FRAMES = 60
"""Of which the later half counts: the first finds all objects, and on a GPU a graph is captured after some more."""


def measure(cell: Cell, folder: Path, order: Order) -> Document:
    """The whole document of a result, from the weights in a folder."""
    origin = checkpoint.read(folder / checkpoint.MODEL_FILE).provenance
    torch.manual_seed(report.TEST_SEED)
    start = time.monotonic()
    figures = MEASURES[cell.table](cell, folder, order)
    seconds = time.monotonic() - start
    return document(cell, order, figures, {"seconds": None, "side_by_side": None, **origin}, seconds)


def measure_classical(cell: Cell, order: Order) -> Document:
    """The whole document of a result for which nothing is trained."""
    scene = cell.config.test
    tracker = ClassicalTracker((scene.size, scene.size), cell.setting.detect)
    start = time.monotonic()
    tracking = classical.evaluate(tracker, scene, order.clips)
    seconds = time.monotonic() - start
    return document(cell, order, {"metrics": {**tracking.to_dict(), "mse": None}}, None, seconds)


def document(cell: Cell, order: Order, figures: Document, training: Document | None, seconds: float) -> Document:
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
    model: Model = checkpoint.load(folder / checkpoint.MODEL_FILE, order.device)
    return model


def evaluate(model: Model, config: Config[Any], order: Order, nll_samples: int = 0) -> Document:
    return report.evaluate(model, config, order.clips, nll_samples=nll_samples).to_dict()


def tracking(cell: Cell, folder: Path, order: Order) -> Document:
    return {"metrics": evaluate(load(folder, order), cell.config, order)}


def likelihood(cell: Cell, folder: Path, order: Order) -> Document:
    return {"metrics": evaluate(load(folder, order), cell.config, order, order.nll_samples)}


def ablation(cell: Cell, folder: Path, order: Order) -> Document:
    config = cell.config
    return {
        "rejection": config.model.rejection,
        "attention": config.model.attention,
        "metrics": evaluate(load(folder, order), config, order),
        "evaluations": evaluations(folder),
    }


def generation(cell: Cell, folder: Path, order: Order) -> Document:
    config = cell.config
    longer = replace(config, test=replace(config.test, length=FORECAST_LENGTH))
    metrics = evaluate(load(folder, order), longer, order)
    return {"metrics": metrics, "forecast": metrics["forecast"]}


def generalisation(cell: Cell, folder: Path, order: Order) -> Document:
    """On the test scenes and, where those are others, on unseen clips of the scenes that were trained on."""
    model, config = load(folder, order), cell.config
    figures = {"metrics": evaluate(model, config, order)}
    if config.test != config.scene:
        figures["metrics_as_trained"] = evaluate(model, replace(config, test=config.scene), order)
    return figures


def efficiency(cell: Cell, folder: Path, order: Order) -> Document:
    """Inference time where the setting is about a device, and else progress by training time."""
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
    return {"semi_synthetic": True, **likelihood(cell, folder, order)}


def evaluations(folder: Path) -> list[Document]:
    """What was measured in the course of a training."""
    path = folder / "evaluations.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines:
        raise InputError(
            f"{path} is not there or empty: copy it along with the weights, or move the folder away to train anew."
        )
    return [json.loads(line) for line in lines]


def speeds(folder: Path, device: torch.device) -> list[Document]:
    """Milliseconds from the moment a frame is handed over to the moment its tracks are there.

    One stream for each number of objects; they take turns, so that a device slow for a while is slow for all of them.
    """
    streams = {objects: stream(folder, objects, device) for objects in OBJECTS}
    times: dict[int, list[float]] = {objects: [] for objects in OBJECTS}
    tracks: dict[int, list[int]] = {objects: [] for objects in OBJECTS}
    with warnings.catch_warnings(action="ignore"):  # all slots may be full
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
    """The tracks of one clip, frame by frame, by a model with as many slots as there are objects."""
    model = checkpoint.load_tracker(folder / checkpoint.MODEL_FILE, device, slots=objects)
    scene = replace(get_preset(TIMED_SCENES).test, objects=(objects, objects), length=TIMED_FRAMES)
    return model.stream(iter(Scenes(scene, report.TEST_SEED, "test", device).clips(0).frames[0]))


MEASURES: dict[str, Callable[[Cell, Path, Order], Document]] = {
    "tracking": tracking,
    "likelihood": likelihood,
    "ablation": ablation,
    "generation": generation,
    "efficiency": efficiency,
    "generalisation": generalisation,
    "replay": replay,
}
