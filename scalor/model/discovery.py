"""Discovery by proposal and rejection (paper: Algorithm 1).

Every grid cell proposes an object in parallel; the most present proposals are looked at closely; those that
propagated objects already explain are rejected; the rest may be born.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.config import ModelConfig
from scalor.distributions import PRESENCE_LIMIT, Estimator, Normal, logit, positive
from scalor.model.appearance import Appearance
from scalor.model.decoders import MASK_ON, Sprite
from scalor.model.geometry import crop, size_within
from scalor.model.state import ObjectState

EXPLAINED = 0.1
"""A pixel above this in the propagated mask is explained in the rejection test."""


class Discovered(NamedTuple):
    """The proposals of a frame, most present first. `objects.alive` marks the births."""

    objects: ObjectState
    sprite: Sprite
    kl_presence: Float[Tensor, " B"]
    kl_where: Float[Tensor, " B"]
    kl_what: Float[Tensor, " B"]
    kl_depth: Float[Tensor, " B"]
    wanted: Float[Tensor, " B"]
    """Cells that wanted a birth, whether or not a proposal was granted."""
    rejected: Float[Tensor, " B"]


class Discovery(nn.Module):
    typical: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        mask_features = config.feature_dim // 2
        self.mask_encoder = nn.Sequential(nn.Conv2d(1, mask_features, config.cell, config.cell), nn.CELU())
        self.mix = nn.Sequential(
            nn.Conv2d(config.feature_dim + mask_features, config.feature_dim, 3, padding=1), nn.CELU()
        )
        # presence, then mean and raw std of where (4) and depth (1)
        self.heads = nn.Conv2d(config.feature_dim, 1 + 2 * 5, 1)
        nn.init.normal_(self.heads.weight, std=0.02)
        self.register_buffer("typical", torch.tensor(config.object_size[::-1]), persistent=False)

    def forward(
        self,
        features: Float[Tensor, "B F Gh Gw"],
        explained: Float[Tensor, "B 1 H W"],
        image: Float[Tensor, "B 3 H W"],
        appearance: Appearance,
        count: int,
        presence_prior: float | Tensor,
        estimator: Estimator,
    ) -> Discovered:
        """The posterior: what this frame shows that the propagated objects do not explain."""
        mixed = self.mix(torch.cat([features, self.mask_encoder(explained)], 1))
        heads = self.heads(mixed).float().flatten(2).transpose(1, 2)  # [B, G, 11]
        logits = PRESENCE_LIMIT * torch.tanh(heads[..., 0])
        prior_logits = logit(presence_prior, logits)  # [B, G]
        presence = estimator.presence(logits)  # [B, G]
        kl_presence = estimator.presence_cost(logits, prior_logits, presence).sum(-1)

        presence_top, cells = presence.topk(count, -1)
        chosen = heads.gather(1, cells[..., None].expand(-1, -1, heads.shape[-1]))
        mean, raw = chosen[..., 1:].chunk(2, -1)
        posterior = Normal(mean, positive(raw))
        latent = estimator.normal(posterior)
        z_where, z_depth = latent.split([4, 1], -1)
        where = self.place(z_where, cells, features.shape[-1])

        q_what = appearance.infer(crop(image, where, self.config.glimpse))
        z_what = estimator.normal(q_what)
        sprite = appearance.draw(z_what)
        rejected = self.reject(sprite, where, explained)
        accepted = (presence_top * (1 - rejected))[..., None]

        charged = estimator.charged(presence_top[..., None], accepted)
        costs = estimator.normal_cost(posterior, Normal.standard(latent), latent) * charged
        what_cost = estimator.normal_cost(q_what, Normal.standard(z_what), z_what) * charged
        rejection = rejected * estimator.rejection_cost(logits.gather(1, cells), prior_logits.gather(1, cells))
        return Discovered(
            objects=self.newborn(where, z_where, z_what, z_depth, accepted, sprite),
            sprite=sprite,
            kl_presence=kl_presence + rejection.sum(-1),
            kl_where=costs[..., :4].sum((1, 2)),
            kl_what=what_cost.sum((1, 2)),
            kl_depth=costs[..., 4:].sum((1, 2)),
            wanted=(presence > self.config.birth_presence).sum(-1).float(),
            rejected=(rejected * (presence_top > self.config.birth_presence)).sum(-1),
        )

    def imagine(
        self,
        explained: Float[Tensor, "B 1 H W"],
        appearance: Appearance,
        count: int,
        rate: float,
    ) -> tuple[ObjectState, Sprite]:
        """The prior: each cell holds a new object with probability `rate`."""
        config = self.config
        clips, _, height, width = explained.shape
        rows, columns = height // config.cell[0], width // config.cell[1]
        presence = (torch.rand(clips, rows * columns, device=explained.device) < rate).float()
        _, cells = (presence + 0.5 * torch.rand_like(presence)).topk(count, -1)  # chance, not place, breaks ties
        presence = presence.gather(1, cells)
        latent = torch.randn(clips, count, 5 + config.what_dim, device=explained.device)
        z_where, z_depth, z_what = latent.split([4, 1, config.what_dim], -1)
        where = self.place(z_where, cells, columns)
        sprite = appearance.draw(z_what)
        accepted = presence * (1 - self.reject(sprite, where, explained))
        return self.newborn(where, z_where, z_what, z_depth, accepted[..., None], sprite), sprite

    def place(self, z_where: Float[Tensor, "B D 4"], cells: Tensor, columns: int) -> Float[Tensor, "B D 4"]:
        """Centre within one cell of the cell's own; size within the configured range."""
        height, width = self.config.cell
        squashed = torch.tanh(z_where)
        x = (cells % columns + 0.5 + squashed[..., 0]) * width
        y = (torch.div(cells, columns, rounding_mode="floor") + 0.5 + squashed[..., 1]) * height
        size = size_within(squashed[..., 2:], self.typical, self.config.size_range)
        return torch.cat([torch.stack([x, y], -1), size], -1)

    def reject(
        self, sprite: Sprite, where: Float[Tensor, "B D 4"], explained: Float[Tensor, "B 1 H W"]
    ) -> Float[Tensor, "B D"]:
        """1 where propagated objects explain too much of a proposal.

        The propagated mask is cropped into the proposal's own frame: the ratio of areas is the same there.
        """
        if not self.config.rejection:
            return torch.zeros(where.shape[:2], device=where.device)
        with torch.no_grad():
            own = (sprite.mask[:, :, 0] > MASK_ON).float()
            taken = (crop(explained, where, self.config.glimpse)[:, :, 0] > EXPLAINED).float()
            share = (own * taken).sum((-1, -2)) / own.sum((-1, -2)).clamp(min=1)
            return (share >= self.config.rejection_overlap).float()

    def newborn(
        self,
        where: Tensor,
        z_where: Tensor,
        z_what: Tensor,
        z_depth: Tensor,
        presence: Tensor,
        sprite: Sprite,
    ) -> ObjectState:
        """Proposals as objects: alive when present enough and to be seen. A newborn has not moved yet."""
        clips, count, _ = where.shape
        config = self.config
        return ObjectState(
            where=where,
            z_where=torch.cat([torch.zeros_like(z_where[..., :2]), z_where[..., 2:]], -1),
            z_what=z_what,
            z_depth=z_depth,
            presence=presence,
            tracker=where.new_zeros(clips, count, config.tracker_dim),
            prior=where.new_zeros(clips, count, config.prior_dim),
            alive=((presence > config.birth_presence) & sprite.shows).to(where.dtype),
        )
