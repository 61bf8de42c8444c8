"""Presets of bouncing balls, the data sets of G-SWM (`scalor.data.balls`), tested on whole episodes."""

from dataclasses import replace

from scalor.config import Config
from scalor.data.balls import EPISODE
from scalor.presets.preset_registry import register_preset
from scalor.presets.shapes_and_digits import colour_explains, density


def balls(count: int, size: float, slots: int, cells: int, collide: bool = True, depths: int = 1) -> Config:
    """Return the config of balls that are learned from clips of ten frames and tested on episodes of 100."""
    config = colour_explains(density("balls", (count, count), size, slots=slots, cells=cells))
    scene = replace(config.scene, collide=collide, depths=depths)
    return replace(config, scene=scene, test=replace(scene, length=EPISODE))


@register_preset
def balls_occlusion() -> Config:
    """3 balls of 16 px that pass over each other."""
    return balls(3, 16.0, slots=8, cells=8, collide=False)


@register_preset
def balls_interaction() -> Config:
    """3 balls of 16 px that bounce off each other."""
    return balls(3, 16.0, slots=8, cells=8)


@register_preset
def balls_two_layer() -> Config:
    """6 balls of 16 px at two depths: those of one depth bounce off each other."""
    return balls(6, 16.0, slots=12, cells=8, depths=2)


@register_preset
def balls_two_layer_dense() -> Config:
    """16 balls of 10 px at two depths: those of one depth bounce off each other."""
    return balls(16, 10.0, slots=24, cells=16, depths=2)
