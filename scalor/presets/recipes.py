"""Recipes that presets share: scenes of one density with our own training, and the paper's configuration."""

from dataclasses import replace

from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig

USUAL_PRESENCE_PRIOR = (0.1, 0.01, 500)
"""The usual `train.presence_prior` (first value, last value, steps between). It expects many objects."""

LATE_DISCOVERY_LENGTHS = ((0, 1), (4_000, 2), (5_500, 4), (7_000, 10))
"""`train.lengths` for scenes in which objects are found late: over textures, in clusters, or few and thin objects.

Propagation must not start before the objects are found (docs/log.md).
"""


def density(kind: str, objects: tuple[int, int], size: float, slots: int, cells: int = 16) -> Config:
    """Return the config of a 64x64 scene of one density, with a model that has enough slots for it.

    It departs from the paper's configuration where that falls short:

    - Cells are small, less than half an object at most densities, so that few objects share a cell.
    - The size range leaves no room for two objects in one box.
    - The presence prior expects many objects.
    - Trackers have inertia.
    - Each object's gradient from later frames is clipped to a multiple of the usual one, because a few very large
      gradients ended trainings (docs/log.md).
    """
    scene = SceneConfig(kind=kind, objects=objects, size=size)
    train = TrainConfig(
        steps=14_000,
        cooldown=3_000,
        lengths=((0, 1), (2_500, 2), (3_700, 4), (5_500, 10)),
        temperature=(1.0, 0.3, 4_000),
        presence_prior=USUAL_PRESENCE_PRIOR,
        clip_object=3.0,
        save_every=1_000,
    )
    model = ModelConfig(
        grid=(cells, cells),
        slots=slots,
        proposals=min(slots, 16),
        object_size=(size, size),
        size_range=0.25,
        inertia=True,
    )
    return Config(model=model, scene=scene, test=scene, train=train)


def as_in_the_paper(config: Config) -> Config:
    """Return a config with the same scenes and the paper's model.

    That model has 8x8 cells that all propose in every frame, and sizes from half to one and a half times the typical
    size. Its presence prior falls to 1e-4. It has no search glimpse, no inertia, and no rule against duplicates or
    siblings. Its gradients are clipped to one fixed norm alone.
    """
    slots = config.model.slots
    model = replace(
        config.model,
        grid=(8, 8),
        proposals=min(slots, 64),
        size_range=0.5,
        rejection_overlap=0.3,
        search=False,
        inertia=False,
        siblings=False,
        end_duplicates=False,
    )
    return replace(
        config, model=model, train=replace(config.train.without_relative_clipping(), presence_prior=(0.1, 1e-4, 500))
    )
