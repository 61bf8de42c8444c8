"""The evidence lower bound, term by term."""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.distributions import Normal
from scalor.model.background import Backdrop
from scalor.model.discovery import Discovered
from scalor.model.propagation import Propagated


@dataclass(frozen=True)
class ElboTerms:
    """Nats per clip. `elbo` is the log-likelihood less every other term."""

    log_likelihood: Float[Tensor, " B"]
    kl_discovered_presence: Float[Tensor, " B"]
    kl_discovered_where: Float[Tensor, " B"]
    kl_discovered_what: Float[Tensor, " B"]
    kl_discovered_depth: Float[Tensor, " B"]
    kl_propagated_presence: Float[Tensor, " B"]
    kl_propagated_where: Float[Tensor, " B"]
    kl_propagated_what: Float[Tensor, " B"]
    kl_propagated_depth: Float[Tensor, " B"]
    kl_background: Float[Tensor, " B"]

    @property
    def elbo(self) -> Float[Tensor, " B"]:
        kls = [getattr(self, field.name) for field in fields(self)[1:]]
        return self.log_likelihood - torch.stack(kls).sum(0)

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def elbo_terms(
    image: Float[Tensor, "B 3 H W"],
    picture: Float[Tensor, "B 3 H W"],
    sigma: float,
    propagated: Propagated | None,
    discovered: Discovered,
    backdrop: Backdrop | None,
) -> ElboTerms:
    """The terms of one frame; what there was none of costs nothing."""
    nothing = torch.zeros_like(discovered.kl_presence)
    return ElboTerms(
        log_likelihood=Normal(picture, torch.full_like(picture, sigma)).log_prob(image).sum((1, 2, 3)),
        kl_discovered_presence=discovered.kl_presence,
        kl_discovered_where=discovered.kl_where,
        kl_discovered_what=discovered.kl_what,
        kl_discovered_depth=discovered.kl_depth,
        kl_propagated_presence=propagated.kl_presence if propagated else nothing,
        kl_propagated_where=propagated.kl_where if propagated else nothing,
        kl_propagated_what=propagated.kl_what if propagated else nothing,
        kl_propagated_depth=propagated.kl_depth if propagated else nothing,
        kl_background=backdrop.kl if backdrop else nothing,
    )


@dataclass(frozen=True)
class Activity:
    """What the model was busy with, per clip and frame; the guards watch these."""

    objects: Float[Tensor, " B"]
    """Objects alive."""
    discovered: Float[Tensor, " B"]
    """Objects born."""
    turned_away: Float[Tensor, " B"]
    """Births that found no free slot."""
    crowded_out: Float[Tensor, " B"]
    """Cells that wanted a birth beyond the number of proposals."""
    rejected: Float[Tensor, " B"]
    """Proposals refused because propagated objects explain them."""
    foreground: Float[Tensor, " B"]
    """Share of the pixels covered by objects."""
    squared_error: Float[Tensor, " B"]
    """Mean squared error of the reconstruction."""

    def to_dict(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def total(records: list[ElboTerms]) -> ElboTerms:
    """Sum over time."""
    return ElboTerms(*(torch.stack(values).sum(0) for values in _columns(records)))


def overall(records: list[Activity]) -> Activity:
    """Mean over time."""
    return Activity(*(torch.stack(values).mean(0) for values in _columns(records)))


def _columns(records: list[ElboTerms] | list[Activity]) -> list[list[Tensor]]:
    return [[getattr(record, field.name) for record in records] for field in fields(records[0])]
