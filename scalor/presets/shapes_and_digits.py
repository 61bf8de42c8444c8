"""Presets of drawn scenes: moving shapes and digits of MNIST at all densities, and the paper's configuration."""

from dataclasses import replace

from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.presets.preset_registry import register_preset

USUAL_PRESENCE_PRIOR = (0.1, 0.01, 500)
"""The usual `train.presence_prior` (first value, last value, steps between). It expects many objects."""

LATE_DISCOVERY_LENGTHS = ((0, 1), (4_000, 2), (5_500, 4), (7_000, 10))
"""`train.lengths` for scenes in which objects are found late: over textures, in clusters, or few and thin objects.

Propagation must not start before the objects are found (docs/log.md).
"""
RECIPE = TrainConfig(
    steps=14_000,
    cooldown=3_000,
    lengths=((0, 1), (2_500, 2), (3_700, 4), (5_500, 10)),
    temperature=(1.0, 0.3, 4_000),
    presence_prior=USUAL_PRESENCE_PRIOR,
    clip_object=3.0,
    save_every=1_000,
)
"""Training settings of `density`."""


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
    model = ModelConfig(
        grid=(cells, cells),
        slots=slots,
        proposals=min(slots, 16),
        object_size=(size, size),
        size_range=0.25,
        inertia=True,
    )
    return Config(model=model, scene=scene, test=scene, train=RECIPE)


def colour_explains(config: Config, error: float = 0.3, overlap: float = 0.5) -> Config:
    """Return a config for scenes in which objects half cover each other, with the schedule it was measured with.

    A pixel that propagated objects cover counts as explained only as far as its colour is right, so discovery sees the
    object behind. A proposal may overlap more with them before it is rejected. Colour begins to count with the first
    pairs of frames and counts fully with the longest sequences: of 22 trainings in which it counted at once, two found
    everything again in each frame (docs/log.md).
    """
    model = replace(config.model, explained_error=error, rejection_overlap=overlap)
    train = replace(
        config.train,
        steps=6_000,
        cooldown=1_500,
        lengths=((0, 1), (1_500, 2), (2_100, 4), (2_800, 10)),
        temperature=(1.0, 0.3, 2_500),
        colour_counts=(1_500, 2_800),
    )
    return replace(config, model=model, train=train)


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


@register_preset
def shapes_tiny() -> Config:
    """3-6 shapes on 32x32 frames: learns on two CPU cores in about five minutes."""
    scene = SceneConfig(frame=(32, 32), objects=(3, 6), size=7.0)
    return Config(
        model=ModelConfig(
            frame=(32, 32),
            grid=(4, 4),
            slots=10,
            proposals=6,
            object_size=(7.0, 7.0),
            glimpse=12,
            what_dim=8,
            feature_dim=32,
            tracker_dim=64,
            prior_dim=32,
        ),
        scene=scene,
        test=scene,
        train=TrainConfig(
            steps=1_700,
            learning_rate=1e-3,
            cooldown=400,
            lengths=((0, 1), (400, 2), (1_200, 4)),
            temperature=(1.0, 0.3, 1_500),
            save_every=300,
        ),
    )


@register_preset
def shapes_vld() -> Config:
    """Shapes, very low density: 2-4 objects of 14 px."""
    return density("shapes", (2, 4), 14.0, slots=8, cells=8)


@register_preset
def shapes_ld() -> Config:
    """Shapes, low density: 8-11 objects of 12 px."""
    return density("shapes", (8, 11), 12.0, slots=16)


@register_preset
def shapes_md() -> Config:
    """Shapes, medium density: 18-24 objects of 9 px."""
    return colour_explains(density("shapes", (18, 24), 9.0, slots=32))


@register_preset
def shapes_hd() -> Config:
    """Shapes, high density: 50-64 objects of 6.5 px."""
    # Half of the objects touch others, so a proposal may overlap still more before it is rejected (docs/log.md).
    return colour_explains(density("shapes", (50, 64), 6.5, slots=72, cells=32), error=0.2, overlap=0.7)


@register_preset
def shapes_vhd() -> Config:
    """Shapes, very high density: 90-110 objects of 5 px."""
    return colour_explains(density("shapes", (90, 110), 5.0, slots=128, cells=32), error=0.2, overlap=0.7)


@register_preset
def shapes_background() -> Config:
    """High-density shapes over moving textures."""
    config = colour_explains(density("shapes", (50, 64), 6.5, slots=72, cells=32))
    scene = replace(config.scene, background=True)
    model = replace(config.model, background=True, background_dim=32, background_thumbnail=4)
    return replace(config, model=model, scene=scene, test=scene)


@register_preset
def paper_shapes_md() -> Config:
    """Medium density with the paper's own configuration."""
    return as_in_the_paper(density("shapes", (18, 24), 9.0, slots=32))


@register_preset
def paper_shapes_hd() -> Config:
    """High density with the paper's own configuration."""
    config = as_in_the_paper(density("shapes", (50, 64), 6.5, slots=72))
    return replace(config, train=replace(config.train, steps=18_000))


@register_preset
def paper_shapes_vhd() -> Config:
    """Very high density with the paper's own configuration: 64 cells for 90 objects."""
    return as_in_the_paper(density("shapes", (90, 110), 5.0, slots=128))


@register_preset
def shapes_length() -> Config:
    """Medium density trained on 10 frames, tested on 20."""
    config = shapes_md()
    return replace(config, test=replace(config.test, length=20))


@register_preset
def shapes_crowd() -> Config:
    """Trained on 15-25 shapes, tested on 50-60."""
    config = colour_explains(density("shapes", (15, 25), 6.5, slots=72, cells=32))
    return replace(config, test=replace(config.test, objects=(50, 60)))


@register_preset
def shapes_dense_discovery() -> Config:
    """10-15 new shapes at the first, fifth and ninth frame."""
    config = colour_explains(density("shapes", (10, 15), 7.0, slots=48, cells=32))
    scene = replace(config.scene, births=(0, 4, 8))
    return replace(config, model=replace(config.model, proposals=32), scene=scene, test=scene)


@register_preset
def shapes_ablation() -> Config:
    """6-36 shapes; switch model.rejection and model.attention off to repeat the paper's ablation."""
    return colour_explains(density("shapes", (6, 36), 9.0, slots=48))


@register_preset
def paper_shapes_ablation() -> Config:
    """The ablation's scenes with the paper's configuration, ten frames and plain masks from the start on."""
    config = as_in_the_paper(density("shapes", (6, 36), 9.0, slots=48))
    train = replace(config.train, steps=8_000, lengths=((0, 10),))
    return replace(config, model=replace(config.model, initial_mask=0.0), train=train)


@register_preset
def shapes_xhd() -> Config:
    """Beyond the paper: medium density trained at 64x64, tested on 400-500 shapes of 9 px at 256x256."""
    config = density("shapes", (18, 24), 9.0, slots=640)
    return replace(config, test=replace(config.test, frame=(256, 256), objects=(400, 500)))


@register_preset
def shapes_thousand() -> Config:
    """Beyond the paper, for scaling: 1,000 shapes of 9 px at 512x512."""
    config = density("shapes", (18, 24), 9.0, slots=1_280)
    return replace(config, test=replace(config.test, frame=(512, 512), objects=(1_000, 1_000)))


@register_preset
def mnist_vld() -> Config:
    """Moving MNIST, very low density: 2-4 digits of 14 px."""
    config = density("mnist", (2, 4), 14.0, slots=8, cells=8)
    # Digits are few and thin. If the presence prior falls early, some trainings find none before propagation starts
    # (docs/log.md).
    return replace(
        config, train=replace(config.train, presence_prior=(0.99, 0.01, 4_000), lengths=LATE_DISCOVERY_LENGTHS)
    )


@register_preset
def mnist_ld() -> Config:
    """Moving MNIST, low density: 8-11 digits of 12 px."""
    return density("mnist", (8, 11), 12.0, slots=16)


@register_preset
def mnist_md() -> Config:
    """Moving MNIST, medium density: 18-24 digits of 9 px."""
    return colour_explains(density("mnist", (18, 24), 9.0, slots=32), error=0.2, overlap=0.7)


@register_preset
def mnist_hd() -> Config:
    """Moving MNIST, high density: 50-64 digits of 6.5 px."""
    return density("mnist", (50, 64), 6.5, slots=72, cells=32)


@register_preset
def mnist_unseen() -> Config:
    """Trained on digits 0-5, tested on digits 6-9."""
    config = mnist_md()
    return replace(
        config,
        scene=replace(config.scene, digits=(0, 1, 2, 3, 4, 5)),
        test=replace(config.test, digits=(6, 7, 8, 9)),
    )


@register_preset
def mnist_occlusion() -> Config:
    """Digits that steer towards each other."""
    config = density("mnist", (8, 11), 12.0, slots=16)
    scene = replace(config.scene, steer=True)
    return replace(config, scene=scene, test=scene, train=replace(config.train, lengths=LATE_DISCOVERY_LENGTHS))
