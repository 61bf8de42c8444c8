"""Discovery by proposal and rejection (paper: Sections 3.1 and 3.2, Algorithm 1).

1. Every grid cell proposes a presence, in parallel.
2. The D cells with the highest presence get latents z_where, z_what and z_depth. These are the proposals.
3. Proposals that propagated objects already explain are rejected.
4. Of several proposals that found the same object only the most present one is born.

Letters: B clips, G grid cells (Gh by Gw), D proposals, F feature channels, H by W pixels, P glimpse side.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import celu, pad

from scalor.config import ModelConfig
from scalor.kernels import crop
from scalor.model.geometry import Ruler, at_row, size_within
from scalor.model.glimpses import MASK_THRESHOLD, Appearance, Sprite
from scalor.model.latents import Latents, kl_by_latent, pack_normals
from scalor.model.rendering import look_through
from scalor.model.state import ObjectState
from scalor.nn.distributions import PRESENCE_LIMIT, Estimator, Normal, logit, positive


class Proposals(NamedTuple):
    """Posterior and samples of a frame: the presence of every cell, and the latents of the D proposals."""

    logits: Float[Tensor, "B G"]
    """Posterior logits of presence, for every cell."""
    presence: Float[Tensor, "B G"]
    """Sampled presence, for every cell."""
    where_means: Float[Tensor, "B G 4"]
    """Posterior means of z_where, for every cell."""
    cells: Int[Tensor, "B D"]
    """Index of the cell of each proposal, most present first."""
    posterior: Normal
    """q(z_where, z_what, z_depth) of the proposals, concatenated."""
    latent: Float[Tensor, "B D latents"]
    """Latents sampled from `posterior`."""
    rejected: Float[Tensor, "B D"]
    """1 where the proposal is rejected."""

    @property
    def proposed(self) -> Float[Tensor, "B D"]:
        """Return the presence of the proposals before rejection."""
        return self.presence.gather(1, self.cells)

    def kl(self, presence_prior: float | Tensor, estimator: Estimator) -> dict[str, Float[Tensor, " B"]]:
        """Return KL(q || p) of presence and of each latent, with p the discovery prior, nats per clip.

        Every cell has a presence term against `presence_prior`, the prior probability of a new object. With closed-form
        KL divergences, a rejected cell has `REJECTED_PRESENCE` as its prior instead. The latents of a proposal have a
        standard normal prior; their terms are weighted by the sampled presence.
        """
        prior_logits = logit(presence_prior, self.logits)
        presence = estimator.presence_cost(self.logits, prior_logits, self.presence).sum(-1)
        refused = estimator.rejection_cost(self.logits.gather(1, self.cells), prior_logits.gather(1, self.cells))
        charged = estimator.charged(self.proposed, self.proposed * (1 - self.rejected))
        latents = estimator.normal_cost(self.posterior, Normal.standard(self.latent), self.latent)
        return kl_by_latent(presence + (self.rejected * refused).sum(-1), latents * charged[..., None])


class Discovery(nn.Module):
    """Networks that propose objects, and the rules that reject them."""

    typical: Tensor
    """Typical width and height of an object, pixels."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        cells, (height, width) = config.feature_dim, config.cell
        self.from_features = nn.Conv2d(cells, cells, 3, padding=1)
        self.from_mask = nn.Linear(9 * height * width, cells, bias=False)
        # presence, then mean and raw std of where (4) and depth (1)
        self.heads = nn.Linear(cells, 1 + 2 * 5)
        nn.init.normal_(self.heads.weight, std=0.02)
        self.register_buffer("typical", torch.tensor(config.object_size[::-1]), persistent=False)

    def prepare(self, features: Float[Tensor, "T B F Gh Gw"]) -> Float[Tensor, "T B G F"]:
        """Return the part of the input that depends on the image features only, for all frames together."""
        mixed = self.from_features(features.flatten(0, 1)).flatten(2).transpose(1, 2)
        cells: Tensor = mixed.unflatten(0, features.shape[:2])
        return cells

    def around(self, explained: Float[Tensor, "B 1 H W"]) -> Float[Tensor, "B G around"]:
        """Return, for each cell, the pixels of the propagated mask in the cell and its eight neighbours."""
        height, width = self.config.cell
        padded = pad(explained[:, 0], (width, width, height, height))
        windows = padded.unfold(1, 3 * height, height).unfold(2, 3 * width, width)  # [B, Gh, Gw, 3h, 3w]
        return windows.flatten(1, 2).flatten(2)

    def forward(
        self,
        prepared: Float[Tensor, "B G F"],
        explained: Float[Tensor, "B 1 H W"],
        image: Float[Tensor, "B C H W"],
        appearance: Appearance,
        count: int,
        estimator: Estimator,
        spare_below: float | None = None,
        ruler: Ruler | None = None,
    ) -> tuple[ObjectState, Sprite, Proposals]:
        """Infer the new objects of a frame, which the propagated objects do not explain (the posterior).

        Parameters
        ----------
        prepared
            Output of `prepare` for this frame.
        explained
            Foreground mask of the propagated objects.
        image
            The frame as the networks see it (`View.image`).
        count
            Number of proposals D.
        spare_below
            Where given, D is at most the number of cells whose presence is above this value, in the clip with the most
            such cells (but at least 1). This reads a value on the host.
        ruler
            Size of objects at each row, where given.

        Returns
        -------
        tuple[ObjectState, Sprite, Proposals]
            The proposals as objects, most present first (`alive` marks the births), their sprites, and the proposals
            themselves.
        """
        mixed = celu(prepared + self.from_mask(self.around(explained)))
        heads = self.heads(mixed).float()  # [B, G, 11]
        logits = PRESENCE_LIMIT * torch.tanh(heads[..., 0])
        presence = estimator.presence(logits)  # [B, G]
        if spare_below is not None:
            count = min(count, max(1, int((presence > spare_below).sum(-1).max())))

        cells = presence.topk(count, -1).indices
        chosen = heads.gather(1, cells[..., None].expand(-1, -1, heads.shape[-1]))
        mean, raw = chosen[..., 1:].chunk(2, -1)
        placed = Normal(mean, positive(raw))
        z_where, z_depth = estimator.normal(placed).split([4, 1], -1)
        where = self.place(z_where, cells, image.shape[-1] // self.config.cell[1], ruler)

        q_what = appearance.infer(crop(image, where, self.config.glimpse))
        z_what = estimator.normal(q_what)
        sprite = appearance.draw(z_what)
        rejected = self.reject(sprite, where, explained)
        q_where = Normal(mean[..., :4], placed.std[..., :4])
        q_depth = Normal(mean[..., 4:], placed.std[..., 4:])
        latents = Latents(z_where, z_what, z_depth)
        proposals = Proposals(
            logits, presence, heads[..., 1:5], cells, pack_normals(q_where, q_what, q_depth), latents.pack(), rejected
        )
        accepted = proposals.proposed * (1 - rejected)
        return self.newborn(where, latents, accepted[..., None], sprite), sprite, proposals

    def sample(
        self,
        explained: Float[Tensor, "B 1 H W"],
        appearance: Appearance,
        count: int,
        rate: float,
        ruler: Ruler | None = None,
    ) -> tuple[ObjectState, Sprite]:
        """Sample new objects from the prior: a cell proposes an object with probability `rate`.

        At most `count` proposals get latents. Proposals that `explained` covers are rejected, as in the posterior.
        """
        config = self.config
        clips, _, height, width = explained.shape
        rows, columns = height // config.cell[0], width // config.cell[1]
        presence = (torch.rand(clips, rows * columns, device=explained.device) < rate).float()
        _, cells = (presence + 0.5 * torch.rand_like(presence)).topk(count, -1)  # break ties at random, not by position
        presence = presence.gather(1, cells)
        latents = Latents.unpack(torch.randn(clips, count, config.latents, device=explained.device))
        where = self.place(latents.where, cells, columns, ruler)
        sprite = appearance.draw(latents.what)
        accepted = presence * (1 - self.reject(sprite, where, explained))
        return self.newborn(where, latents, accepted[..., None], sprite), sprite

    def place(
        self, z_where: Float[Tensor, "B D 4"], cells: Tensor, columns: int, ruler: Ruler | None = None
    ) -> Float[Tensor, "B D 4"]:
        """Return the boxes of proposals from z_where and the index of their cell.

        The centre is at most one cell's width and height away from the centre of the cell. The size stays within
        `config.size_range` of the typical size.
        """
        height, width = self.config.cell
        squashed = torch.tanh(z_where)
        x = (cells % columns + 0.5 + squashed[..., 0]) * width
        y = (torch.div(cells, columns, rounding_mode="floor") + 0.5 + squashed[..., 1]) * height
        size = size_within(squashed[..., 2:], at_row(self.typical, y, ruler), self.config.size_range)
        return torch.cat([torch.stack([x, y], -1), size], -1)

    def reject(
        self, sprite: Sprite, where: Float[Tensor, "B D 4"], explained: Float[Tensor, "B 1 H W"]
    ) -> Float[Tensor, "B D"]:
        """Return 1 where propagated objects explain too much of a proposal.

        The test compares areas in glimpse coordinates: the propagated mask is cropped to the proposal's box. The ratio
        of areas is the same as in the frame.
        """
        if not self.config.rejection:
            return torch.zeros(where.shape[:2], device=where.device)
        with torch.no_grad():
            own = (sprite.mask[:, :, 0] > MASK_THRESHOLD).float()
            taken = (crop(explained, where, self.config.glimpse)[:, :, 0] > self.config.explained_mask).float()
            share = (own * taken).sum((-1, -2)) / own.sum((-1, -2)).clamp(min=1)
            return (share >= self.config.rejection_overlap).float()

    def doubled(self, sprite: Sprite, where: Float[Tensor, "B D 4"]) -> Bool[Tensor, "B D"]:
        """Return True where more present proposals cover almost all of a proposal: several cells found one object.

        This is a non-maximum suppression. The masks of the nearest more present proposals are sampled in the glimpse
        coordinates of the proposal. A duplicate is rendered and has KL terms like any other proposal, but it does not
        become an object. Rejecting duplicates instead lowered recall (docs/log.md).
        """
        count = where.shape[1]
        if not self.config.siblings or count == 1:
            return torch.zeros(where.shape[:2], device=where.device, dtype=torch.bool)
        with torch.no_grad():
            own = (sprite.mask[:, :, 0] > MASK_THRESHOLD).float()  # [B, D, P, P]
            apart = (where[:, :, None, :2] - where[:, None, :, :2]).square().sum(-1)  # [B, D, D]
            not_before = torch.ones(count, count, device=where.device, dtype=torch.bool).triu()
            nearest = apart.masked_fill(not_before, math.inf).topk(
                min(self.config.sibling_neighbours, count), largest=False
            )
            seen = look_through(own, where, nearest.indices)
            covered = ((seen > 0.5) & nearest.values.isfinite()[..., None, None]).any(2)
            share = (own * covered).sum((-1, -2)) / own.sum((-1, -2)).clamp(min=1)
            return share >= self.config.sibling_cover

    def newborn(
        self, where: Float[Tensor, "B D 4"], latents: Latents, presence: Float[Tensor, "B D 1"], sprite: Sprite
    ) -> ObjectState:
        """Return the proposals as objects.

        A proposal is born (alive) when its presence is above `config.birth_presence`, its mask is not empty, and it is
        no duplicate. The displacement in z_where of a new object is 0.
        """
        clips, count, _ = where.shape
        born = (presence > self.config.birth_presence) & sprite.shows & ~self.doubled(sprite, where)[..., None]
        z_where = torch.cat([torch.zeros_like(latents.where[..., :2]), latents.where[..., 2:]], -1)
        return ObjectState(
            where=where,
            latent=latents._replace(where=z_where).pack(),
            presence=presence,
            tracker=where.new_zeros(clips, count, self.config.tracker_dim),
            alive=born.to(where.dtype),
        )
