"""Presets with moving digits of MNIST."""

from dataclasses import replace

from scalor.config import Config
from scalor.presets.recipes import LATE_DISCOVERY_LENGTHS, density
from scalor.presets.registry import preset


@preset
def mnist_vld() -> Config:
    """Moving MNIST, very low density: 2-4 digits of 14 px."""
    config = density("mnist", (2, 4), 14.0, slots=8, cells=8)
    # Digits are few and thin. If the presence prior falls early, some trainings find none before propagation starts
    # (docs/log.md).
    return replace(
        config, train=replace(config.train, presence_prior=(0.99, 0.01, 4_000), lengths=LATE_DISCOVERY_LENGTHS)
    )


@preset
def mnist_ld() -> Config:
    """Moving MNIST, low density: 8-11 digits of 12 px."""
    return density("mnist", (8, 11), 12.0, slots=16)


@preset
def mnist_md() -> Config:
    """Moving MNIST, medium density: 18-24 digits of 9 px."""
    return density("mnist", (18, 24), 9.0, slots=32)


@preset
def mnist_hd() -> Config:
    """Moving MNIST, high density: 50-64 digits of 6.5 px."""
    return density("mnist", (50, 64), 6.5, slots=72, cells=32)


@preset
def mnist_unseen() -> Config:
    """Trained on digits 0-5, tested on digits 6-9."""
    config = mnist_md()
    return replace(
        config,
        scene=replace(config.scene, digits=(0, 1, 2, 3, 4, 5)),
        test=replace(config.test, digits=(6, 7, 8, 9)),
    )


@preset
def mnist_occlusion() -> Config:
    """Digits that steer towards each other."""
    config = density("mnist", (8, 11), 12.0, slots=16)
    scene = replace(config.scene, steer=True)
    return replace(config, scene=scene, test=scene, train=replace(config.train, lengths=LATE_DISCOVERY_LENGTHS))
