"""What a run of the benchmark measures: the sizes, how often, on what. The whole plan stands in every result."""

from dataclasses import dataclass, replace

import torch

from scalor.config import Config, SceneConfig
from scalor.presets import get_preset

NATURAL = "natural sizes"


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    device: str
    seed: int = 0
    tiny: bool = False
    """Shrink everything, to see that the benchmark runs."""
    length: int = 10
    """T, frames in a training sequence."""
    batch: int = 16
    batches: tuple[int, ...] = (16, 64, 256)
    warmup: int = 5
    """Training steps before the clock runs, beyond the first."""
    rounds: int = 7
    """The median of so many rounds is reported."""
    steps: int = 10
    """Training steps in a round."""
    side_by_side: tuple[int, ...] = (1, 2, 4)
    """Trainings in one process, each on a stream of its own."""
    densities: tuple[tuple[str, int | None], ...] = (("shapes-md", None), (NATURAL, None))
    """Scenes in which ours is compared with the dense yardstick, and the batch (None: the scene's own)."""
    dense_rounds: int = 5
    dense_up_to: int = 1_024
    """Objects up to which the yardstick tracks beside ours: its canvases take gigabytes."""
    objects: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 1_024)
    frames: int = 60
    """Frames of a clip that is tracked."""
    together: int = 16
    """Clips tracked at once where throughput is asked for."""
    together_up_to: int = 1_024
    """Objects up to which many clips are tracked at once."""
    curve: int = 50
    """Steps of the loss curve that is made twice."""
    quality_steps: int = 2_000
    """Steps of the trainings that are compared by how well they track."""
    quality_seeds: tuple[int, ...] = (0, 1)
    quality_clips: int = 64
    calls: int = 20
    """Calls of a kernel in a round."""

    @property
    def where(self) -> torch.device:
        return torch.device(self.device)


GPU = Plan("cuda")
CPU = Plan(
    "cpu",
    warmup=0,
    rounds=3,
    steps=1,
    densities=(("shapes-md", 16), (NATURAL, 2)),
    dense_rounds=3,
    dense_up_to=256,
    frames=10,
    together_up_to=64,
    curve=3,
    calls=1,
)


def shrunk(plan: Plan) -> Plan:
    """The same sections in seconds, for the tests: the figures mean nothing."""
    return replace(
        plan,
        tiny=True,
        length=2,
        batch=2,
        batches=(1, 2),
        warmup=0,
        rounds=1,
        steps=1,
        side_by_side=(1, 2),
        densities=(("shapes-md", 1),),
        dense_rounds=1,
        dense_up_to=2,
        objects=(2, 4),
        frames=4,
        together=2,
        together_up_to=2,
        curve=2,
        quality_steps=2,
        quality_seeds=(0,),
        quality_clips=1,
        calls=1,
    )


def training_config(plan: Plan, preset: str, background: bool = False, batch: int | None = None) -> Config:
    """A preset as it is measured: one length, one batch."""
    config = get_preset(preset)
    scene = replace(config.scene, background=background, length=plan.length)
    config = replace(
        config,
        model=replace(config.model, background=background),
        scene=scene,
        test=scene,
        train=replace(config.train, batch=batch or plan.batch, lengths=((0, plan.length),), seed=plan.seed),
    )
    return shrink_config(config) if plan.tiny else config


def scene_config(plan: Plan, scene: str, batch: int | None = None) -> Config:
    """A preset by name, or the natural sizes."""
    return natural_config(plan, batch) if scene == NATURAL else training_config(plan, scene, batch=batch)


def natural_config(plan: Plan, batch: int | None = None) -> Config:
    """The paper's natural scenes by their sizes: 128x128, 45 objects, glimpses of 32, background, batch 20."""
    config = training_config(plan, "shapes-md", background=True, batch=batch or 20)
    if plan.tiny:
        return config
    scene = replace(config.scene, frame=(128, 128), objects=(45, 45), size=12.0)
    model = replace(
        config.model, frame=(128, 128), grid=(8, 8), slots=48, proposals=16, object_size=(12.0, 12.0), glimpse=32
    )
    return replace(config, model=model, scene=scene, test=scene)


def crowd_config(plan: Plan, objects: int) -> Config:
    """So many objects of 9 px, and as many slots. Beyond 64 the frame grows, so that they still find room."""
    side = next(side for limit, side in ((64, 64), (256, 128), (640, 256), (10**9, 512)) if objects <= limit)
    config = training_config(plan, "shapes-md")
    scene = replace(config.scene, frame=(side, side), objects=(objects, objects), length=plan.frames)
    if plan.tiny:
        scene = replace(scene, frame=(32, 32))
    # Proposals side by side that would be told to be siblings must fill the slots.
    model = replace(config.model, slots=objects, proposals=min(16, objects), siblings=False)
    return replace(config, model=model, scene=config.scene, test=scene)


def shrink_config(config: Config) -> Config:
    scene: SceneConfig = replace(config.scene, frame=(32, 32), objects=(2, 3), size=7.0)
    model = replace(
        config.model,
        frame=(32, 32),
        grid=(4, 4),
        slots=4,
        proposals=2,
        object_size=(7.0, 7.0),
        glimpse=8,
        what_dim=4,
        feature_dim=8,
        tracker_dim=8,
        prior_dim=8,
    )
    return replace(config, model=model, scene=scene, test=scene)
