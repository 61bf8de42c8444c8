"""Presets with moving shapes: the five densities, the paper's configuration, generalisation, and larger scenes."""

from dataclasses import replace

from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.presets.recipes import LATE_DISCOVERY_LENGTHS, as_in_the_paper, density
from scalor.presets.registry import preset


@preset
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


@preset
def shapes_vld() -> Config:
    """Shapes, very low density: 2-4 objects of 14 px."""
    return density("shapes", (2, 4), 14.0, slots=8, cells=8)


@preset
def shapes_ld() -> Config:
    """Shapes, low density: 8-11 objects of 12 px."""
    return density("shapes", (8, 11), 12.0, slots=16)


@preset
def shapes_md() -> Config:
    """Shapes, medium density: 18-24 objects of 9 px."""
    return density("shapes", (18, 24), 9.0, slots=32)


@preset
def shapes_hd() -> Config:
    """Shapes, high density: 50-64 objects of 6.5 px."""
    config = density("shapes", (50, 64), 6.5, slots=72, cells=32)
    # Half of the objects touch others. They need a longer training, and a proposal may overlap more with propagated
    # objects before it is rejected (docs/log.md).
    model = replace(config.model, rejection_overlap=0.5)
    return replace(config, model=model, train=replace(config.train, steps=18_000))


@preset
def shapes_vhd() -> Config:
    """Shapes, very high density: 90-110 objects of 5 px."""
    return density("shapes", (90, 110), 5.0, slots=128, cells=32)


@preset
def shapes_background() -> Config:
    """High-density shapes over moving textures."""
    config = density("shapes", (50, 64), 6.5, slots=72, cells=32)
    scene = replace(config.scene, background=True)
    train = replace(config.train, lengths=LATE_DISCOVERY_LENGTHS)
    return replace(config, model=replace(config.model, background=True), scene=scene, test=scene, train=train)


@preset
def paper_shapes_md() -> Config:
    """Medium density with the paper's own configuration."""
    return as_in_the_paper(shapes_md())


@preset
def paper_shapes_hd() -> Config:
    """High density with the paper's own configuration."""
    return as_in_the_paper(shapes_hd())


@preset
def paper_shapes_vhd() -> Config:
    """Very high density with the paper's own configuration: 64 cells for 90 objects."""
    return as_in_the_paper(shapes_vhd())


@preset
def shapes_length() -> Config:
    """Medium density trained on 10 frames, tested on 20."""
    config = shapes_md()
    return replace(config, test=replace(config.test, length=20))


@preset
def shapes_crowd() -> Config:
    """Trained on 15-25 shapes, tested on 50-60."""
    config = density("shapes", (15, 25), 6.5, slots=72, cells=32)
    return replace(config, test=replace(config.test, objects=(50, 60)))


@preset
def shapes_dense_discovery() -> Config:
    """10-15 new shapes at the first, fifth and ninth frame."""
    config = density("shapes", (10, 15), 7.0, slots=48, cells=32)
    scene = replace(config.scene, births=(0, 4, 8))
    return replace(config, model=replace(config.model, proposals=32), scene=scene, test=scene)


@preset
def shapes_ablation() -> Config:
    """6-36 shapes; switch model.rejection and model.attention off to repeat the paper's ablation."""
    config = density("shapes", (6, 36), 9.0, slots=48)
    return replace(config, train=replace(config.train, steps=8_000))


@preset
def shapes_xhd() -> Config:
    """Beyond the paper: medium density trained at 64x64, tested on 400-500 shapes of 9 px at 256x256."""
    config = density("shapes", (18, 24), 9.0, slots=640)
    return replace(config, test=replace(config.test, frame=(256, 256), objects=(400, 500)))


@preset
def shapes_thousand() -> Config:
    """Beyond the paper, for scaling: 1,000 shapes of 9 px at 512x512."""
    config = density("shapes", (18, 24), 9.0, slots=1_280)
    return replace(config, test=replace(config.test, frame=(512, 512), objects=(1_000, 1_000)))
