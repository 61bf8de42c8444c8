"""Whether generated objects keep their looks, and whether objects from the prior look whole.

The paper names it an open problem that the masks of generated objects deform over time. After some observed frames the
future is sampled, and the picture of each object is compared with its picture in the last observed frame. An object
that is drawn in one colour has a small spread of colours within its mask; this is measured of tracked objects and of
those of a first frame that is generated from scratch.

Letters: B clips, K slots, P glimpse side.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scalor.config import Config, SystemConfig
from scalor.evaluation.report import test_clips
from scalor.model.glimpses import Sprite
from scalor.model.scalor import SCALOR
from scalor.model.state import SceneState
from scalor.nn.distributions import Exact, Mode

OBSERVE, HORIZON = 5, 30
"""Number of observed frames and of sampled frames."""
SOLID = 0.5
"""Mask value above which a pixel belongs to an object."""


@dataclass(frozen=True)
class Looks:
    """Means over objects; a list has one entry per sampled frame, None where no object is left."""

    picture: list[float | None]
    """Mean squared difference of an object's picture on black from that in the last observed frame."""
    mask_overlap: list[float | None]
    """Overlap (IoU) of its masks."""
    colour: list[float | None]
    """Distance of its mean colours; black and white are 1.73 apart."""
    left: list[float]
    """Share of the objects of the last observed frame that are still there."""
    spread_tracked: float | None
    """Standard deviation of the colours within a mask, of tracked objects in the last observed frame."""
    spread_imagined: float | None
    """The same of the objects in the first frame of a scene from scratch."""


@torch.inference_mode()
def measure_looks(
    model: SCALOR,
    config: Config[SystemConfig],
    clips: int,
    batch: int = 32,
    horizon: int = HORIZON,
    quiet: bool = False,
) -> Looks:
    """Sample the future of the first test clips of a config, and compare the looks of its objects over time."""
    sums = torch.zeros(4, horizon, dtype=torch.float64)
    known, tracked, imagined = 0, Spread(), Spread()
    for clip in test_clips(model, config, clips, batch, quiet):
        video = model.receive(clip.observation, minimum=OBSERVE)
        explained = model.elbo(video[:, :OBSERVE], Mode())
        state, past = explained.steps[-1].state, explained.past
        first, first_id = sprites_of(model, state), state.id
        alive = first_id >= 0
        known += int(alive.sum())
        tracked.add(first, alive)
        for h in range(horizon):
            state, past, _ = model.prior_step(state, past, video.size, 0.0, Exact())
            same = alive & (state.id == first_id)
            sums[:, h] += compare(first, sprites_of(model, state), same).cpu()
        like = video.image
        fresh, memory = model.start(len(video), like), model.start_prior(len(video), like)
        fresh, _, _ = model.prior_step(fresh, memory, video.size, model.usual_rate(), Exact())
        imagined.add(sprites_of(model, fresh), fresh.id >= 0)
    picture, overlap, colour, count = sums.tolist()

    def means(values: list[float]) -> list[float | None]:
        return [value / many if many else None for value, many in zip(values, count, strict=True)]

    left = [many / max(1, known) for many in count]
    return Looks(means(picture), means(overlap), means(colour), left, tracked.mean, imagined.mean)


def sprites_of(model: SCALOR, state: SceneState) -> Sprite:
    """Return the sprites of all slots."""
    return model.appearance.draw(state.objects.z_what)


def compare(one: Sprite, other: Sprite, chosen: Bool[Tensor, "B K"]) -> Float[Tensor, "4"]:
    """Return the sums over chosen slots of the three differences of looks, and the number of these slots."""
    picture = (one.colour * one.mask - other.colour * other.mask).square().mean((-3, -2, -1))
    first, second = one.mask > SOLID, other.mask > SOLID
    union = (first | second).sum((-3, -2, -1))
    overlap = (first & second).sum((-3, -2, -1)) / union.clamp(min=1)
    colour = (mean_colour(one) - mean_colour(other)).norm(dim=-1)
    rows = torch.stack([picture, overlap.to(picture.dtype), colour, torch.ones_like(picture)])
    return torch.where(chosen, rows, 0).double().sum((-2, -1))


def mean_colour(sprite: Sprite) -> Float[Tensor, "B K 3"]:
    """Return the mean colour of each sprite, weighted by its mask."""
    return (sprite.colour * sprite.mask).sum((-2, -1)) / sprite.mask.sum((-2, -1)).clamp(min=1e-6)


class Spread:
    """Mean over objects of the standard deviation of the colours within their masks."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, sprite: Sprite, chosen: Bool[Tensor, "B K"]) -> None:
        """Add the chosen objects."""
        away = (sprite.colour - mean_colour(sprite)[..., None, None]).square().mean(-3, keepdim=True)
        variance = (away * sprite.mask).sum((-3, -2, -1)) / sprite.mask.sum((-3, -2, -1)).clamp(min=1e-6)
        self.total += float(variance.sqrt()[chosen].sum())
        self.count += int(chosen.sum())

    @property
    def mean(self) -> float | None:
        """Return the mean, or None without objects."""
        return self.total / self.count if self.count else None
