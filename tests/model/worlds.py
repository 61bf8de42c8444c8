"""Tiny models that find and lose objects without any training, and scenes for them to look at."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.data.observation import Observation
from scalor.model.elbo import ElboResult, explain
from scalor.model.glimpses import Sprite
from scalor.model.scalor import PRESENCE_PRIOR, SCALOR
from scalor.model.state import ObjectState, SceneState
from scalor.model.time_step import PosteriorStep
from scalor.nn.distributions import Estimator, Mode
from scalor.nn.records import tensors
from scalor.tracks import Tracks
from tests.layers import linear

TINY: dict[str, Any] = {
    "frame": (32, 32),
    "grid": (4, 4),
    "slots": 6,
    "proposals": 4,
    "object_size": (8.0, 8.0),
    "glimpse": 8,
    "what_dim": 4,
    "feature_dim": 8,
    "tracker_dim": 16,
    "prior_dim": 8,
    "siblings": False,  # random proposals lie on top of each other
}


def tiny_config(**changes: Any) -> ModelConfig:
    return ModelConfig(**{**TINY, **changes})


def tiny_model(seed: int = 3, lively: bool = True, **changes: Any) -> SCALOR:
    """A model with random weights. In a lively one objects are born, move and die."""
    config = tiny_config(**changes)
    if not lively:
        torch.manual_seed(seed)
        return SCALOR(config).eval()
    model = SCALOR(config).eval()
    # These settings have no weights.
    free = {"slots": TINY["slots"], "proposals": TINY["proposals"], "rejection": True, "sigma": 0.2}
    free |= {"end_duplicates": True, "siblings": False}
    model.load_state_dict(lively_weights(seed, replace(config, **free)))
    return model


@cache
def lively_weights(seed: int, config: ModelConfig) -> dict[str, Tensor]:
    with torch.random.fork_rng():  # made or remembered, it leaves the same random numbers to come
        torch.manual_seed(seed)
        model = SCALOR(config)
    sample = squares(3, config.frame, clips=4, seed=99)
    for layer in model.appearance.modules():
        if isinstance(layer, nn.Linear):
            tune(model, layer, sample)
    tune(model, model.discovery.heads, sample, {0: (-0.1, 0.2)})
    tune(model, linear(model.propagation.move), sample)
    tune(model, linear(model.propagation.judge), sample, {2: (-1.8, 0.2)})
    patch = model.appearance.decoder.patch
    tune(model, linear(model.appearance.decoder.each), sample, dict.fromkeys(range(4 * patch**2), (0.5, 2.0)))
    return model.state_dict()


def tune(
    model: SCALOR, layer: nn.Linear | nn.Conv2d, video: Tensor, wanted: dict[int, tuple[float, float]] | None = None
) -> None:
    """Scale and shift each output of a layer to a wanted mean and spread over a video (others: 0 and 0.5).

    Random networks say nearly the same of everything they see. This makes them hold strong opinions.
    """
    said: list[Tensor] = []

    def listen(_: nn.Module, __: object, out: Tensor) -> None:
        said.append(out.movedim(1, -1).flatten(0, -2) if out.ndim == 4 else out.flatten(0, -2))

    watcher = layer.register_forward_hook(listen)
    see(model, video)
    watcher.remove()
    out = torch.cat(said)
    assert layer.bias is not None
    with torch.no_grad():
        for row in range(out.shape[-1]):
            mean, spread = (wanted or {}).get(row, (0.0, 0.5))
            gain = spread / out[:, row].std()
            layer.weight[row] *= gain
            layer.bias[row] = mean + gain * (layer.bias[row] - out[:, row].mean())


def squares(frames: int, size: tuple[int, int] = (32, 32), clips: int = 1, seed: int = 0, count: int = 4) -> Tensor:
    """[B, T, 3, H, W]: coloured squares that drift over black."""
    random = torch.Generator().manual_seed(seed)
    height, width = size
    video = torch.zeros(clips, frames, 3, height, width)
    for clip in range(clips):
        for _ in range(count):
            x, y = (float(torch.rand((), generator=random)) * limit for limit in (width - 7, height - 7))
            dx, dy = (3 * torch.rand(2, generator=random) - 1.5).tolist()
            colour = torch.rand(3, generator=random)[:, None, None] * 0.8 + 0.2
            for t in range(frames):
                left, top = max(0, int(x + dx * t)), max(0, int(y + dy * t))
                video[clip, t, :, top : top + 7, left : left + 7] = colour
    return video


def parts(video: Observation) -> tuple[Tensor, Tensor, Tensor]:
    """Image, background and ruler of what a still camera shows."""
    assert video.still is not None
    assert video.ruler is not None
    return video.image, video.still, video.ruler


def random_objects(clips: int, count: int, frame: tuple[int, int], seed: int = 0, what: int = 4) -> ObjectState:
    """Objects all over the frame and beyond its border, most of them alive."""
    random = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, width: int) -> Tensor:
        return low + (high - low) * torch.rand(clips, count, width, generator=random)

    extent = torch.tensor([frame[1], frame[0]])
    centre = uniform(-0.2, 1.2, 2) * extent
    return ObjectState(
        where=torch.cat([centre, uniform(4, 16, 2)], -1),
        latent=torch.cat([uniform(-1, 1, 4 + what), uniform(-2, 2, 1)], -1),
        presence=uniform(0, 1, 1),
        tracker=uniform(-1, 1, 3),
        alive=(uniform(0, 1, 1) < 0.8).float(),
    )


def all_alive(objects: ObjectState) -> ObjectState:
    return replace(objects, alive=torch.ones_like(objects.alive))


def random_sprite(clips: int, count: int, side: int = 8, seed: int = 0) -> Sprite:
    random = torch.Generator().manual_seed(seed + 1_000)
    drawn = torch.rand(clips, count, 4, side, side, generator=random)
    return Sprite(drawn[:, :, :3], drawn[:, :, 3:])


def see(model: SCALOR, video: Tensor) -> SceneState:
    """The state after a video, frame by frame, by posterior modes."""
    with torch.no_grad():
        *_, (state, _) = model.watch(Observation(video).unbind(1))
    return state


def numbers(state: SceneState) -> int:
    """How many numbers a state holds."""
    return sum(tensor.numel() for tensor in tensors(state))


def assert_same_tracks(one: Tracks, other: Tracks, tolerance: float = 1e-2) -> None:
    """The same objects with the same identities; boxes up to rounding."""
    for name in ("clip", "frame", "id", "discovered"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    apart = abs(one.box - other.box).max(initial=0)
    assert apart < tolerance, apart
    assert abs(one.confidence - other.confidence).max(initial=0) < tolerance
    assert one.size == other.size
    assert (one.masks is None) == (other.masks is None)


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "background": {"background": True},
    "no attention": {"attention": False},
    "no search": {"search": False},
    "inertia and siblings": {"inertia": True, "siblings": True},
    "no rejection": {"rejection": False},
    "as the paper": {"search": False, "end_duplicates": False},
    "bare": {"attention": False, "search": False, "rejection": False, "end_duplicates": False},
    "front to back": {"depth_sharpness": 4.0},
    "explained by colour": {"explained_error": 0.2, "depth_sharpness": 2.0},
    "background from a large map": {"background": True, "background_map": 8, "explained_error": 0.5},
    "background with a thumbnail": {"background": True, "background_thumbnail": 4, "background_dim": 12},
    "odd attention window": {"attention_cells": 3, "background": True},
}


def each(table: dict[str, dict[str, Any]]) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("changes", table.values(), ids=table)


def per_frame(tracks: Tracks, frames: int) -> list[int]:
    return [int((tracks.frame == t).sum()) for t in range(frames)]


def look(
    model: SCALOR, state: SceneState, image: Tensor, estimator: Estimator | None = None
) -> tuple[PosteriorStep, ElboResult]:
    """One frame [B, 3, H, W], as if nothing were remembered but the state."""
    clips, estimator = len(image), estimator or Mode()
    memory = model.start_encoder(clips, (image.shape[-2], image.shape[-1]), image)
    (view,), _ = model.encode(Observation(image[None]), memory)
    seen = model.posterior_step(state, view, estimator)
    past = model.start_prior(clips, image)
    return seen, explain(model, Observation(image[None]), [seen], past, estimator, PRESENCE_PRIOR)
