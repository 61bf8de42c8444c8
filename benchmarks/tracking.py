"""What tracking costs: by the number of objects, one stream and many clips at once.

A stream is timed from the moment a frame is handed over to the moment its tracks are there, as numbers on the host.
Only the later half of the frames counts: the first frame finds all objects, and a GPU's graph is captured after some
more.
"""

import statistics
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from benchmarks import subjects
from benchmarks.plan import Plan, crowd_config, training_config
from benchmarks.timing import Memory, clean_up, seconds
from benchmarks.training import by
from scalor.config import Config, SceneConfig
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.model import reference
from scalor.model.scalor import SCALOR
from scalor.tracks import Tracks


@dataclass(frozen=True)
class ObjectsRow:
    objects: int
    frame: str
    live: float
    """Tracks a frame."""
    ms_per_frame: float
    """One stream."""
    against_fewest: float
    """Times the cost of the first row."""
    us_per_object: float
    mib_peak: float | None
    kib_per_object: float | None
    together_ms_per_frame: float | None
    """Many clips at once: the time a frame of one clip takes."""
    together_frames_per_s: float | None
    dense_ms_per_frame: float | None
    """The yardstick, one stream, without the making of tracks."""


@dataclass(frozen=True)
class SceneRow:
    scene: str
    clips: int
    live: float
    ms_per_frame: float
    """The time a frame of one clip takes."""
    frames_per_s: float
    weights: str


def by_objects(plan: Plan) -> list[ObjectsRow]:
    """Milliseconds a frame against the number of objects, all slots full, frames in the device's memory."""
    rows: list[ObjectsRow] = []
    for objects in plan.objects:
        config = crowd_config(plan, objects)
        clean_up(plan.where)
        video = clips(config.test, plan, 1)
        memory = Memory(plan.where)  # of weights, state and work; not of the frames
        model = subjects.make(config.model, plan.where, plan.seed, crowd=True).model.eval()
        memory.forget_peak()
        took, live = time_stream(model, video[0])
        # A process gives memory back when it likes: next to so little of it, that means nothing on the CPU.
        peak = memory.peak_bytes() if plan.device == "cuda" else None
        many = time_together(model, config.test, plan) if objects <= plan.together_up_to else None
        rows.append(
            ObjectsRow(
                objects=objects,
                frame=by(config.test.frame),
                live=live,
                ms_per_frame=1e3 * took,
                against_fewest=1e3 * took / rows[0].ms_per_frame if rows else 1.0,
                us_per_object=1e6 * took / objects,
                mib_peak=None if peak is None else peak / 2**20,
                kib_per_object=None if peak is None else peak / 2**10 / objects,
                together_ms_per_frame=None if many is None else 1e3 * many,
                together_frames_per_s=None if many is None else 1 / many,
                dense_ms_per_frame=1e3 * time_dense(model, video, plan) if objects <= plan.dense_up_to else None,
            )
        )
    return rows


def scenes(plan: Plan) -> list[SceneRow]:
    """Frames a second on shapes-md: one stream from the host's memory, and many clips at once."""
    config: Config = training_config(plan, "shapes-md")
    clean_up(plan.where)
    model, weights = subjects.make(config.model, plan.where, plan.seed)
    model.eval()
    took, live = time_stream(model, clips(config.test, plan, 1)[0].to("cpu"))
    rows = [SceneRow("shapes-md", 1, live, 1e3 * took, 1 / took, weights)]
    many = time_together(model, config.test, plan)
    with quiet():
        tracks = model.track(clips(config.test, plan, plan.together))
    live = len(tracks.id) / (plan.together * plan.frames)
    return [*rows, SceneRow("shapes-md", plan.together, live, 1e3 * many, 1 / many, weights)]


def time_stream(model: SCALOR, frames: Observation) -> tuple[float, float]:
    """Seconds a frame of one stream, and the number of tracks in it."""
    times, live = [], []
    with quiet():
        stream: Iterator[Tracks] = model.stream(frames.unbind())
        for _ in range(len(frames)):
            start = time.perf_counter()
            tracks = next(stream)
            times.append(time.perf_counter() - start)
            live.append(len(tracks.id))
    later = len(times) // 2
    return statistics.median(times[later:]), statistics.mean(live[later:])


def time_together(model: SCALOR, scene: SceneConfig, plan: Plan) -> float:
    """Seconds a frame of one clip when many are tracked at once, in the later half of the frames."""
    with torch.inference_mode():
        seen = model.watch(clips(scene, plan, plan.together).unbind(1))
        times = [seconds(lambda: next(seen), plan.where) for _ in range(plan.frames)]
    return statistics.median(times[len(times) // 2 :]) / plan.together


def time_dense(model: SCALOR, video: Observation, plan: Plan) -> float:
    """Seconds a frame of the yardstick's stream, after the first frames."""
    states = reference.track(model, video[:, :8].unbind(1))
    times = [seconds(lambda: next(states), plan.where) for _ in range(min(8, video.image.shape[1]))]
    return statistics.median(times[len(times) // 2 :])


def clips(scene: SceneConfig, plan: Plan, count: int) -> Observation:
    return Scenes(scene, plan.seed, "test", plan.where).clips(0, count, plan.frames).observation


def quiet() -> warnings.catch_warnings:
    """All slots are full on purpose."""
    return warnings.catch_warnings(action="ignore")
