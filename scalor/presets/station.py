"""Presets with the walkers of Grand Central: a semi-synthetic replay of their tracks, and the video itself."""

from dataclasses import replace

from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.presets.preset_registry import register_preset
from scalor.presets.shapes_and_digits import density

STATION = SceneConfig(kind="replay", frame=(128, 128), objects=(2, 64), size=9.0)
"""Scenes of walkers of about 15x5 px that move along real tracks; semi-synthetic (`scalor.data.replay`)."""


@register_preset
def grand_central() -> Config:
    """The paper's settings for natural scenes, on a semi-synthetic replay of Grand Central."""
    return Config(
        model=ModelConfig(
            frame=(128, 128),
            slots=64,
            proposals=64,
            object_size=(20.4, 8.45),
            size_range=0.4,
            glimpse=64,
            what_dim=64,
            search=False,
            siblings=False,
            end_duplicates=False,
            background=True,
            sigma=0.1,
        ),
        scene=STATION,
        test=STATION,
        train=TrainConfig(
            steps=100_000,
            batch=20,
            learning_rate=4e-5,
            lengths=((0, 10),),
            temperature=(1.0, 0.3, 20_000),
            presence_prior=(0.1, 1e-3, 500),
            gradients_through_time=30_000,
            save_every=1_000,
        ),
    )


@register_preset
def grand_central_video() -> Config:
    """The paper's settings for natural scenes, on the video of Grand Central, which has no ground truth."""
    scene = replace(STATION, kind="station")
    return replace(grand_central(), scene=scene, test=scene)


@register_preset
def grand_central_replay_small_background() -> Config:
    """A replay of Grand Central with our own recipe and the paper's background: ten numbers, a small decoder."""
    ours = density("replay", STATION.objects, STATION.size, slots=64, cells=32)
    model = replace(
        ours.model,
        frame=STATION.frame,
        proposals=32,
        object_size=(15.0, 5.0),
        size_range=0.5,
        glimpse=20,
        what_dim=24,
        background=True,
        sigma=0.1,
    )
    return Config(model=model, scene=STATION, test=STATION, train=ours.train)


@register_preset
def grand_central_replay() -> Config:
    """A semi-synthetic replay of Grand Central: walkers drawn along real tracks, 128x128, with our own recipe."""
    config = grand_central_replay_small_background()
    # The background must be sharp before objects are needed, or its furniture becomes objects (docs/log.md).
    model = replace(config.model, background_map=32, depth_sharpness=4.0)
    train = replace(
        config.train,
        steps=9_000,
        cooldown=1_500,
        parts_first=1_500,
        lengths=((0, 1), (4_000, 2), (5_000, 4), (6_000, 10)),
        temperature=(1.0, 0.3, 2_500),
    )
    return replace(config, model=model, train=train)


@register_preset
def grand_central_replay_still() -> Config:
    """The same replay for a stationary camera: the background, a median, is given and not modelled."""
    config = grand_central_replay_small_background()
    scene = replace(STATION, still=True)
    model = replace(config.model, background=False, still=True)
    return Config(model=model, scene=scene, test=scene, train=config.train)


@register_preset
def video_background() -> Config:
    """A video of a resting camera, shrunk to 96x128, whose background is learned; name it as scene.footage."""
    config = grand_central_replay()
    scene = SceneConfig(kind="video", frame=(96, 128), objects=(0, 16), size=9.0)
    model = replace(
        config.model,
        frame=scene.frame,
        grid=(24, 32),
        slots=24,
        proposals=16,
        object_size=(13.5, 5.0),
        glimpse=16,
    )
    return replace(config, model=model, scene=scene, test=scene)
