"""Discovery of new objects, one after the other, until a stopping process ends it."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scalor.baselines.sqair.appearance import Appearance, mlp, normal
from scalor.baselines.sqair.config import SQAIRConfig
from scalor.baselines.sqair.propagation import joint, stack_candidates
from scalor.baselines.sqair.sampling import Sampler, has_room
from scalor.baselines.sqair.state import Candidates, EncodedFrame
from scalor.nn.distributions import log_odds
from scalor.nn.gradients import walled


class Discovery(nn.Module):
    """Discovery as in AIR: at each step one more object or the end, then the object's z_where and z_what."""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden, latents = config.hidden_dim, config.latents
        self.limit = config.discovery_limit
        self.bias = config.discovery_bias
        self.where_shift, self.what_shift = config.discovery_where_shift, config.discovery_what_shift
        self.newcomer_bias = log_odds(config.later_discovery)
        self.explained = nn.Sequential(nn.Linear(latents, hidden), nn.ELU())
        self.enter = nn.Linear(2 * hidden, hidden)
        self.recur = nn.Linear(hidden + latents, hidden, bias=False)
        self.presence = mlp(hidden, hidden, 1)
        self.newcomer = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)

    def forward(
        self,
        kept: Candidates,
        room: Float[Tensor, "R 1"],
        first: bool,
        steps: int,
        view: EncodedFrame,
        appearance: Appearance,
        sampler: Sampler,
    ) -> Candidates:
        """Return the results of `steps` discovery steps; `kept` are the propagated objects, `room` the free slots."""
        explained = (self.explained(kept.latent) * kept.taken).sum(1)
        entered = self.enter(torch.cat([view.code, explained], -1))
        hidden = torch.zeros_like(view.code)
        latent = kept.latent.new_zeros(len(hidden), kept.latent.shape[-1])
        going = torch.ones_like(room)
        free = has_room(room, steps)
        one_more, bias = (self.presence, self.bias) if first else (self.newcomer, self.newcomer_bias)
        made = []
        for step in range(steps):
            hidden = (entered + self.recur(torch.cat([hidden, latent.detach()], -1))).float().tanh()
            logits = walled(one_more(hidden).float() + bias, self.limit)
            going = going * sampler.choose(logits) * free[:, step, None]
            where = normal(self.where(hidden), torch.zeros_like(latent[:, :4]), self.where_shift)
            z_where = sampler.normal(where)
            code = appearance.encoder(appearance.crop(view.image, z_where[:, None]).flatten(1))
            what = normal(appearance.what(code), torch.zeros_like(latent[:, 4:]), self.what_shift)
            latent = torch.cat([z_where, sampler.normal(what)], -1)
            made.append(Candidates(logits, going, joint(where, what), latent))
        return stack_candidates(made)
