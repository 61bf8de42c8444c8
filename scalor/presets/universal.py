"""The preset of the universal weights, for all kinds of videos."""

from dataclasses import replace

from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.presets.preset_registry import register_preset


@register_preset
def any_video() -> Config:
    """Universal weights: varied objects before still backgrounds, with supervised losses beside the ELBO."""
    scene = SceneConfig(kind="composed", length=20, objects=(0, 12), size=18.0)
    model = ModelConfig(
        frame=scene.frame,
        grid=(16, 16),
        slots=16,
        proposals=8,
        object_size=(18.0, 18.0),
        size_range=0.75,
        memory=False,
        inertia=True,
        birth_presence=0.5,
        still=True,
        sigma=0.2,
    )
    train = TrainConfig(
        steps=18_000,
        batch=64,
        learning_rate=1e-3,
        cooldown=4_000,
        lengths=((0, 1), (3_000, 2), (6_000, 4), (11_000, 10), (17_000, 20)),
        temperature=(1.0, 0.3, 6_000),
        presence_prior=(0.02, 0.01, 1_000),
        clip_object=3.0,
        lesson=0.02,
    )
    return Config(model, replace(scene, recorded=512), scene, train)
