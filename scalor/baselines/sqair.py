"""SQAIR: Sequential Attend, Infer, Repeat (Kosiorek et al., NeurIPS 2018), whole in one file.

In every frame the objects of the last one are propagated one after the other, each knowing of those before it; then
new ones are discovered one after the other, until a stopping process says that there are no more. So the time of a
frame grows with the number of objects. It is trained on the importance-weighted bound of k particles with VIMCO for
the choices of presence. Whatever does not wait for another object is done for all objects, clips and particles at
once; drawing and the likelihood for all frames at once.

Where we depart from the publication, and why:
- Presence of a propagated object is chosen before its where and what, which then cost nothing when it is gone: so the
  weights are exact.
- Discovery stops when no slot is free, in prior and posterior alike: so nothing that was found is ever dropped.
- The number of discoveries is geometric, as in AIR; the released weights have a categorical prior. Its parameter may
  be annealed in training (AIR's trick), and later frames, in which little appears, have one of their own.
- So has the posterior: whether something new has come is asked of a head of its own, which starts near that prior. And
  in training nothing can come in the second of two frames, in prior and posterior alike: discovery, which has learned
  from single frames, had found all objects anew there before propagation could learn (docs/log.md).
- Boxes keep to sizes around the one expected, as SCALOR's do: left free they grow until all of them show the same
  quarter of the frame, or shrink until they have no gradient.
- An object hears of the latents of those before it in propagation or in discovery, but no gradient goes back to them
  that way: from where one looked to what it saw to where the next one looks, gradients grow with every object.
- Objects that are there and draw nothing are not told of: slots are filled by such ones more often than left empty.
- Discovery starts with a broad posterior of z_where (see BROAD): in short runs on one small object, 300 steps so left
  half the error that 500 steps with the published width left.
- Colour frames; one hidden layer in the heads; the image encoder is a small convolutional one; Adam, as for all.

Letters: B clips, k particles, R = B * k rows (the particles of a clip side by side), T frames, N slots,
D steps of discovery, L latents, P glimpse side. A box is (x, y, w, h): centre and size, pixels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from scalor.baselines.vimco import importance_weighted_bound, vimco_surrogate
from scalor.config import require, setting
from scalor.data.clip import Truth
from scalor.errors import InputError
from scalor.kernels import crop, paste
from scalor.model.captured import follow_frames
from scalor.model.elbo import pixel_log_likelihood
from scalor.model.encoders import shrinking_stack
from scalor.model.frames import check_frame, check_frames
from scalor.model.geometry import tight_box
from scalor.model.scalor import Rollout
from scalor.model.sighting import Sighting, gather_tracks
from scalor.nn.distributions import (
    Estimator,
    FrameNoise,
    Mode,
    Noise,
    Normal,
    log_odds,
    log_prob_bernoulli,
    logit,
    positive,
)
from scalor.nn.gradients import even, walled
from scalor.nn.interface import Annealed, Bound, BoundFunction, Tracker
from scalor.tracks import Tracks

REACH = 1.2
"""Centres may lie in this multiple of the frame, so that an object can be half out of it."""
PATCH = 4
"""Side of the patches into which the image encoder divides a frame, pixels."""
IMAGE_CHANNELS = (16, 32)
SHARP, BROAD, LOOSE = 2.0, 0.5, -0.5
"""Moves start with a standard deviation of 0.05 (published: a bias of -3), discoveries with 0.2: the particles of a
clip then look at different places, and their weights tell which was right. Appearances start with 0.5: a new object
must not cost more than it can be worth."""
DISCOVERY_BIAS, PROPAGATION_BIAS, PRIOR_BIAS = 4.0, 5.0, 10.0
"""Presence logits at the start: objects are likely (published: 1 for discovery), and those that are there stay."""
PRESENCE_PRIOR = 0.75
"""Prior probability of one more discovery in the first frame, as published."""
DARK = 4.0
"""Glimpses start dark: a logit of -4 a pixel. A canvas that is too bright would teach the model to draw nothing."""
SHOWN = 0.1
"""An object of which no pixel is as bright as this shows nothing, and is not told of."""


@dataclass(frozen=True)
class SQAIRConfig:
    """Sizes of SQAIR; the defaults are the published ones for digits. Sizes in pixels are of the frames it sees."""

    system: ClassVar[str] = "sqair"
    frame: tuple[int, int] = setting((64, 64), "height and width of a frame, pixels; the weights depend on it")
    slots: int = setting(3, "N, the most objects at once, and the steps of discovery in the first frame")
    discoveries: int = setting(3, "most steps of discovery in a later frame")
    particles: int = setting(5, "k, the particles of the importance-weighted bound in training")
    object_size: tuple[float, float] = setting((9.0, 9.0), "height and width of an object expected, pixels")
    size_range: float = setting(0.5, "sizes vary by this share around object_size, either way")
    glimpse: int = setting(20, "P, side of the square an object is looked at and drawn in, pixels")
    what_dim: int = setting(50, "length of z_what, the appearance of an object")
    hidden_dim: int = setting(256, "width of the layers and of the hidden states")
    later_discovery: float = setting(0.1, "prior probability of one more discovery in a frame after the first")
    sigma: float = setting(0.3, "standard deviation of the pixel noise, pixels in [0, 1]")
    discovery_limit: float = setting(5.0, "presence logits of discovery stay within this, so that others are tried")
    eagerness: float = setting(1.0, "in training, the first frame's log odds of one more object are multiplied by it")
    newcomers_from: int = setting(
        3, "in training, only sequences of at least so many frames look for new objects after the first"
    )

    def __post_init__(self) -> None:
        for size in self.frame:
            require(size > 0 and size % PATCH == 0, "model.frame", self.frame, f"give positive multiples of {PATCH}")
        for name in ("slots", "discoveries", "glimpse", "what_dim", "hidden_dim", "newcomers_from"):
            require(getattr(self, name) > 0, f"model.{name}", getattr(self, name), "it must be at least 1")
        require(self.particles > 1, "model.particles", self.particles, "VIMCO compares at least 2")
        fits = all(0 < size < side for size, side in zip(self.object_size, self.frame, strict=True))
        require(fits, "model.object_size", self.object_size, "an object must be smaller than the frame")
        require(0 < self.size_range < 1, "model.size_range", self.size_range, "it must lie between 0 and 1")
        later = self.later_discovery
        require(0 < later < 1, "model.later_discovery", later, "it must lie between 0 and 1")
        for name in ("sigma", "discovery_limit", "eagerness"):
            value = getattr(self, name)
            require(0 < value < float("inf"), f"model.{name}", value, "it must be positive and finite")

    @property
    def latents(self) -> int:
        """Length of z_where and z_what side by side."""
        return 4 + self.what_dim

    def misfit(self, frame: tuple[int, int]) -> str | None:
        height, width = self.frame
        return None if frame == self.frame else f"these weights see frames of {height}x{width} pixels alone"


class Draw(Protocol):
    """How latents are drawn from their distributions."""

    def normal(self, q: Normal) -> Tensor: ...

    def choose(self, logits: Tensor) -> Tensor:
        """0 or 1."""
        ...


class Sampled:
    """By chance, from random numbers given beforehand."""

    def __init__(self, noise: FrameNoise) -> None:
        self.noise = noise

    def normal(self, q: Normal) -> Tensor:
        return q.mean + q.std * self.noise.normal(q.mean)

    def choose(self, logits: Tensor) -> Tensor:
        return (self.noise.uniform(logits) < logits.sigmoid()).float()


class Likely:
    """The most likely values."""

    def normal(self, q: Normal) -> Tensor:
        return q.mean

    def choose(self, logits: Tensor) -> Tensor:
        return (logits > 0).float()


@dataclass(frozen=True)
class Scene:
    """What is remembered between frames: the objects, those that are there before the empty slots."""

    latent: Float[Tensor, "R N L"]
    """z_where and z_what side by side."""
    present: Float[Tensor, "R N 1"]
    """1 for an object, 0 for an empty slot."""
    presence: Float[Tensor, "R N 1"]
    """The probability with which it was taken to be there."""
    tracker: Float[Tensor, "R N hidden"]
    """Hidden state of the temporal RNN."""
    memory: Float[Tensor, "R N hidden"]
    """Hidden state of the prior's RNN."""
    discovered: Float[Tensor, "R N 1"]
    """1 for those found in the last frame."""
    id: Int[Tensor, "R N"]
    """-1 for an empty slot."""
    next_id: Int[Tensor, " R"]

    def detach(self) -> "Scene":
        return Scene(*(getattr(self, field.name).detach() for field in fields(self)))

    def evened(self, times: float) -> "Scene":
        """Itself; see `even` for its gradients. With 0 they are as they are."""
        return replace(self, latent=even(self.latent, times)) if times else self


class Part(NamedTuple):
    """What propagation or discovery made of a frame: n objects that may be there."""

    logits: Float[Tensor, "R n 1"]
    taken: Float[Tensor, "R n 1"]
    """1 for an object that is there."""
    q: Normal
    """[R, n, L]: what the latents were drawn from."""
    latent: Float[Tensor, "R n L"]


class View(NamedTuple):
    """A frame as the networks see it."""

    image: Float[Tensor, "B 3 H W"]
    code: Float[Tensor, "R hidden"]


class Chances(NamedTuple):
    """What is held possible of discoveries. A compiled graph serves all values of a tensor; a number is compiled in."""

    presence_prior: float | Tensor = PRESENCE_PRIOR
    """Probability of one more in the first frame."""
    eagerness: float = 1.0
    """What its log odds are multiplied by."""
    newcomers: float | Tensor = 1.0
    """1 or 0: whether anything can come after the first frame, in prior and posterior alike."""


USUAL = Chances()


class Costs(NamedTuple):
    """Nats per row: log q - log p of the latents of a frame."""

    discovered_presence: Float[Tensor, " R"]
    discovered_where: Float[Tensor, " R"]
    discovered_what: Float[Tensor, " R"]
    propagated_presence: Float[Tensor, " R"]
    propagated_where: Float[Tensor, " R"]
    propagated_what: Float[Tensor, " R"]


class Seen(NamedTuple):
    """A frame that was looked at."""

    scene: Scene
    log_choices: Float[Tensor, " R"]
    """Log probability of the choices of presence under the posterior."""
    costs: Costs


def stopping_log_prob(
    logits: Float[Tensor, "R D 1"], taken: Float[Tensor, "R D 1"], room: Float[Tensor, "R 1"]
) -> Float[Tensor, " R"]:
    """Log probability of a stopping process: step after step one more object, or the end.

    After the end, and when there is no more room, nothing is decided.
    """
    going = torch.cat([torch.ones_like(taken[:, :1]), taken[:, :-1]], 1)
    asked = going[..., 0] * has_room(room, taken.shape[1])
    return (asked * log_prob_bernoulli(logits, taken)[..., 0]).sum(1)


def has_room(room: Float[Tensor, "R 1"], steps: int) -> Float[Tensor, "R D"]:
    """1 for every step of discovery for which a slot is free."""
    return (torch.arange(steps, device=room.device) < room).float()


def mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, o in pairwise(widths):
        layers += [nn.Linear(i, o), nn.ELU()]
    return nn.Sequential(*layers[:-1])


def normal(raw: Tensor, around: Tensor, sharp: float = 0.0) -> Normal:
    """A normal from a network's output; its mean is a change to `around`."""
    mean, spread = raw.float().chunk(2, -1)
    return Normal(around + mean, positive(spread - sharp))


class Appearance(nn.Module):
    """From z_where to a box, from a box to a code, from z_what to a glimpse."""

    extent: Tensor
    expected: Tensor

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        self.glimpse, hidden, pixels = config.glimpse, config.hidden_dim, 3 * config.glimpse**2
        self.size_range = config.size_range
        self.encoder = nn.Sequential(mlp(pixels, hidden, hidden), nn.ELU())
        self.what = nn.Linear(hidden, 2 * config.what_dim)
        self.decoder = mlp(config.what_dim, hidden, hidden, pixels)
        self.register_buffer("extent", torch.tensor(config.frame[::-1]).float(), persistent=False)
        self.register_buffer("expected", torch.tensor(config.object_size[::-1]), persistent=False)

    def box(self, z_where: Float[Tensor, "*shape 4"]) -> Float[Tensor, "*shape 4"]:
        centre = self.extent * (0.5 + 0.5 * REACH * z_where[..., :2].tanh())
        return torch.cat([centre, self.expected * (1 + self.size_range * z_where[..., 2:].tanh())], -1)

    def crop(self, image: Float[Tensor, "B 3 H W"], z_where: Float[Tensor, "R n 4"]) -> Float[Tensor, "R n 3 P P"]:
        rows, boxes = z_where.shape[:2]
        glimpses = crop(image, self.box(z_where).view(len(image), -1, 4), self.glimpse)
        return glimpses.reshape(rows, boxes, *glimpses.shape[2:])

    def draw(self, z_what: Float[Tensor, "*shape what"]) -> Float[Tensor, "*shape 3 P P"]:
        pixels = (self.decoder(z_what).float() - DARK).sigmoid()
        glimpses: Tensor = pixels.unflatten(-1, (3, self.glimpse, self.glimpse))
        return glimpses


class Propagation(nn.Module):
    """The objects of the last frame, one after the other: does it stay, where is it now, how does it look?"""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden, latents = config.hidden_dim, config.latents
        self.tracker = nn.GRUCell(latents, hidden)
        self.expect = nn.Linear(hidden, 4)
        self.mask = nn.Linear(hidden, config.glimpse**2)
        self.enter = nn.Linear(2 * hidden + latents, hidden)
        self.relate = nn.Linear(hidden + latents, hidden, bias=False)
        self.presence = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)
        self.what = mlp(2 * hidden, hidden, 4 * config.what_dim)

    def forward(self, scene: Scene, view: View, eye: Appearance, draw: Draw) -> tuple[Part, Tensor]:
        """Also the trackers' new states."""
        last, slots = scene.latent, scene.latent.shape[1]
        tracker = each_slot(self.tracker, last, scene.tracker)
        # All objects at once: a first look at where each is expected, through a mask that hides its neighbours.
        mask = self.mask(tracker).sigmoid().view(*tracker.shape[:2], 1, eye.glimpse, eye.glimpse)
        glimpses = eye.crop(view.image, last[..., :4] + self.expect(tracker).float()) * mask
        entered = self.enter(torch.cat([eye.encoder(glimpses.flatten(2)), tracker, last], -1))
        # One by one: each hears of those before it through the relation RNN.
        relation = torch.zeros_like(tracker[:, 0])
        neighbour = torch.zeros_like(last[:, 0])
        made = []
        for slot in range(slots):
            there, old = scene.present[:, slot], last[:, slot]
            hidden = (entered[:, slot] + self.relate(torch.cat([relation, neighbour.detach()], -1))).float().tanh()
            logits = self.presence(hidden).float() + PROPAGATION_BIAS
            stays = there * draw.choose(logits)
            where = normal(self.where(hidden), old[:, :4], SHARP)
            z_where = draw.normal(where)
            code = eye.encoder(eye.crop(view.image, z_where[:, None]).flatten(1))
            what = self.update_what(code, hidden, old[:, 4:])
            latent = torch.cat([z_where, draw.normal(what)], -1)
            relation = torch.where(there > 0, hidden, relation)
            neighbour = torch.where(stays > 0, latent, neighbour)
            made.append(Part(logits, stays, beside(where, what), latent))
        return one_after_the_other(made), tracker

    def update_what(
        self, code: Float[Tensor, "R hidden"], hidden: Float[Tensor, "R hidden"], last: Float[Tensor, "R what"]
    ) -> Normal:
        """A gated mix of what was remembered and what is seen."""
        keep, write, new, spread = self.what(torch.cat([code, hidden], -1)).float().chunk(4, -1)
        return Normal((keep + 1).sigmoid() * last + write.sigmoid() * new, positive(spread))


class Discovery(nn.Module):
    """AIR: one more object, or no more; where is it, how does it look?"""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden, latents = config.hidden_dim, config.latents
        self.limit = config.discovery_limit
        self.newcomer_bias = log_odds(config.later_discovery)
        self.explained = nn.Sequential(nn.Linear(latents, hidden), nn.ELU())
        self.enter = nn.Linear(2 * hidden, hidden)
        self.recur = nn.Linear(hidden + latents, hidden, bias=False)
        self.presence = mlp(hidden, hidden, 1)
        self.newcomer = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)

    def forward(
        self,
        kept: Part,
        room: Float[Tensor, "R 1"],
        first: bool,
        steps: int,
        view: View,
        eye: Appearance,
        draw: Draw,
    ) -> Part:
        explained = (self.explained(kept.latent) * kept.taken).sum(1)
        entered = self.enter(torch.cat([view.code, explained], -1))
        hidden = torch.zeros_like(view.code)
        latent = kept.latent.new_zeros(len(hidden), kept.latent.shape[-1])
        going = torch.ones_like(room)
        free = has_room(room, steps)
        one_more, bias = (self.presence, DISCOVERY_BIAS) if first else (self.newcomer, self.newcomer_bias)
        made = []
        for step in range(steps):
            hidden = (entered + self.recur(torch.cat([hidden, latent.detach()], -1))).float().tanh()
            logits = walled(one_more(hidden).float() + bias, self.limit)
            going = going * draw.choose(logits) * free[:, step, None]
            where = normal(self.where(hidden), torch.zeros_like(latent[:, :4]), BROAD)
            z_where = draw.normal(where)
            code = eye.encoder(eye.crop(view.image, z_where[:, None]).flatten(1))
            what = normal(eye.what(code), torch.zeros_like(latent[:, 4:]), LOOSE)
            latent = torch.cat([z_where, draw.normal(what)], -1)
            made.append(Part(logits, going, beside(where, what), latent))
        return one_after_the_other(made)


class Transition(nn.Module):
    """The prior of propagation: how objects go on when nobody looks."""

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        hidden = config.hidden_dim
        self.remember = nn.GRUCell(config.latents, hidden)
        self.presence = mlp(hidden, hidden, 1)
        self.where = mlp(hidden, hidden, 8)
        self.what = mlp(hidden, hidden, 2 * config.what_dim)

    def forward(
        self, memory: Float[Tensor, "R N hidden"], last: Float[Tensor, "R N L"]
    ) -> tuple[Float[Tensor, "R N 1"], Normal]:
        """Presence logits, and the normal of the latents."""
        where = normal(self.where(memory), last[..., :4], SHARP)
        what = normal(self.what(memory), last[..., 4:])
        return self.presence(memory).float() + PRIOR_BIAS, beside(where, what)


def each_slot(
    cell: nn.GRUCell, entering: Float[Tensor, "R N L"], state: Float[Tensor, "R N hidden"]
) -> Float[Tensor, "R N hidden"]:
    """A step of an RNN that every slot has for itself."""
    after: Tensor = cell(entering.flatten(0, 1), state.flatten(0, 1)).float()
    return after.view(state.shape)


def beside(where: Normal, what: Normal) -> Normal:
    return Normal(torch.cat([where.mean, what.mean], -1), torch.cat([where.std, what.std], -1))


def one_after_the_other(made: list[Part]) -> Part:
    """The objects of a loop ([R, ...] each) in one record."""
    logits, taken, q, latent = zip(*made, strict=True)
    mean, std = torch.stack([one.mean for one in q], 1), torch.stack([one.std for one in q], 1)
    return Part(torch.stack(logits, 1), torch.stack(taken, 1), Normal(mean, std), torch.stack(latent, 1))


class Explained(NamedTuple):
    """A video, looked at and charged for."""

    log_weights: Float[Tensor, "B k"]
    log_choices: Float[Tensor, "B k"]
    scenes: list[Scene]
    numbers: dict[str, Float[Tensor, " B"]]
    """Nats per clip and activity per frame, means over particles."""


class SQAIR(Tracker):
    """`track`, `stream`, `reconstruct`, `generate`, `log_likelihood`; `bound` for training."""

    config: SQAIRConfig
    reported = (
        "log_likelihood",
        *(f"kl_{name}" for name in Costs._fields),
        *("objects", "discovered", "squared_error"),
    )

    def __init__(self, config: SQAIRConfig) -> None:
        super().__init__()
        self.config = config
        cells = (config.frame[0] // PATCH) * (config.frame[1] // PATCH)
        self.features = shrinking_stack(3, IMAGE_CHANNELS, (PATCH, PATCH))
        self.encoder = nn.Sequential(nn.Linear(IMAGE_CHANNELS[-1] * cells, config.hidden_dim), nn.ELU())
        self.appearance = Appearance(config)
        self.propagation = Propagation(config)
        self.discovery = Discovery(config)
        self.transition = Transition(config)

    # A time step.

    def start(self, rows: int, like: Tensor) -> Scene:
        """Nothing seen yet: not even slots."""

        def none(width: int) -> Tensor:
            return torch.zeros(rows, 0, width, device=like.device)

        hidden = self.config.hidden_dim
        ids = torch.zeros(rows, 0, dtype=torch.int64, device=like.device)
        next_id = torch.zeros(rows, dtype=torch.int64, device=like.device)
        return Scene(none(self.config.latents), none(1), none(1), none(hidden), none(hidden), none(1), ids, next_id)

    def look(self, images: Float[Tensor, "T B 3 H W"], particles: int) -> list[View]:
        """All frames at once, and once for all particles of a clip."""
        codes = self.encoder(self.features(images.flatten(0, 1)).flatten(1)).float()
        codes = codes.view(*images.shape[:2], -1).repeat_interleave(particles, 1)
        return [View(*view) for view in zip(images, codes, strict=True)]

    def follow(self, scene: Scene, view: View, draw: Draw, chances: Chances = USUAL) -> Seen:
        """The posterior: propagate, then discover."""
        first = scene.latent.shape[1] == 0
        kept, tracker = self.nothing(scene), scene.tracker
        if not first:
            kept, tracker = self.propagation(scene, view, self.appearance, draw)
        room = (self.config.slots - kept.taken.sum(1)) * (1.0 if first else chances.newcomers)
        new = self.discovery(kept, room, first, self.steps(first), view, self.appearance, draw)
        memory = scene.memory if first else each_slot(self.transition.remember, scene.latent, scene.memory)
        there = scene.present[..., 0]
        log_q = (there * log_prob_bernoulli(kept.logits, kept.taken)[..., 0]).sum(1)
        prior_logits, prior = self.transition(memory, scene.latent)
        log_p = (there * log_prob_bernoulli(prior_logits, kept.taken)[..., 0]).sum(1)
        stop_q = stopping_log_prob(new.logits, new.taken, room)
        later = logit(self.config.later_discovery, new.logits)
        chance = chances.eagerness * logit(chances.presence_prior, new.logits) if first else later
        stop_p = stopping_log_prob(chance, new.taken, room)
        costs = Costs(
            stop_q - stop_p, *latent_costs(new, self.newborn(new.latent)), log_q - log_p, *latent_costs(kept, prior)
        )
        return Seen(self.seat(scene, kept, tracker, memory, new), log_q + stop_q, costs)

    def dream(self, scene: Scene, draw: Draw, discovery_rate: float) -> Scene:
        """The prior: the world goes on unseen."""
        memory = each_slot(self.transition.remember, scene.latent, scene.memory)
        logits, prior = self.transition(memory, scene.latent)
        kept = Part(logits, scene.present * draw.choose(logits), prior, draw.normal(prior))
        blank = scene.latent.new_zeros(len(scene.latent), self.steps(first=False), self.config.latents)
        room = has_room(self.config.slots - kept.taken.sum(1), blank.shape[1])
        chance = logit(discovery_rate, blank[..., :1]) if discovery_rate else torch.full_like(blank[..., :1], -1e9)
        going = draw.choose(chance).cumprod(1) * room[..., None]
        born = self.newborn(blank)
        new = Part(chance, going, born, draw.normal(born))
        return self.seat(scene, kept, scene.tracker, memory, new)

    def seat(self, scene: Scene, kept: Part, tracker: Tensor, memory: Tensor, new: Part) -> Scene:
        """Those that stay and those that come move up, in order, and empty slots come last."""
        blank = tracker.new_zeros(*new.taken.shape[:2], tracker.shape[-1])
        taken = torch.cat([kept.taken, new.taken], 1)
        columns = [
            torch.cat([kept.latent, new.latent], 1),
            taken,
            torch.cat([kept.logits, new.logits], 1).sigmoid(),
            torch.cat([tracker, blank], 1),
            torch.cat([memory, blank], 1),
            torch.cat([torch.zeros_like(kept.taken), new.taken], 1),
        ]
        born = scene.next_id[:, None] + torch.arange(new.taken.shape[1], device=taken.device)
        ids = torch.where(taken[..., 0] > 0, torch.cat([scene.id, born], 1), -1)
        order = taken[..., 0].argsort(dim=1, descending=True, stable=True)[:, : self.config.slots]
        widths = [column.shape[-1] for column in columns]
        packed = torch.cat(columns, -1).gather(1, order[..., None].expand(-1, -1, sum(widths)))
        next_id = scene.next_id + new.taken.sum((1, 2)).long()
        after: list[Tensor] = [*packed.split(widths, -1), ids.gather(1, order), next_id]
        return Scene(*after)

    def nothing(self, scene: Scene) -> Part:
        """The first frame has no objects to propagate."""
        return Part(scene.present, scene.present, Normal(scene.latent, scene.latent), scene.latent)

    def newborn(self, like: Float[Tensor, "R D L"]) -> Normal:
        """The prior of an object that is discovered."""
        return Normal(torch.zeros_like(like), torch.ones_like(like))

    def steps(self, first: bool) -> int:
        return self.config.slots if first else min(self.config.slots, self.config.discoveries)

    # A video.

    def explain(
        self,
        video: Float[Tensor, "B T 3 H W"],
        draws: Sequence[Draw],
        particles: int,
        chances: Chances = USUAL,
        cut_gradients: bool = False,
        clip_object: float = 0.0,
        follow: Callable[..., Seen] | None = None,
    ) -> Explained:
        """Follow the frames one by one, then draw and charge for them all at once. A compiled `follow` may stand in for
        the model's own."""
        follow = follow or self.follow
        clips, images = len(video), video.transpose(0, 1).contiguous()
        scene, seen = self.start(clips * particles, video), []
        for view, draw in zip(self.look(images, particles), draws, strict=True):
            seen.append(follow(scene, view, draw, chances))
            scene = seen[-1].scene.detach() if cut_gradients else seen[-1].scene.evened(clip_object)
        picture = self.paint([one.scene for one in seen])
        error = (picture.unflatten(1, (clips, particles)) - images[:, :, None]).square().sum((0, 3, 4, 5)).flatten()
        log_likelihood = pixel_log_likelihood(error, video[0].numel(), self.config.sigma)
        costs = Costs(*(torch.stack(column).sum(0) for column in zip(*(one.costs for one in seen), strict=True)))
        numbers = {
            "log_likelihood": log_likelihood,
            **{f"kl_{name}": cost for name, cost in costs._asdict().items()},
            "objects": torch.stack([one.scene.present.sum((1, 2)) for one in seen]).mean(0),
            "discovered": torch.stack([one.scene.discovered.sum((1, 2)) for one in seen]).mean(0),
            "squared_error": error / video[0].numel(),
        }
        shape = (clips, particles)
        return Explained(
            (log_likelihood - torch.stack(costs).sum(0)).view(shape),
            torch.stack([one.log_choices for one in seen]).sum(0).view(shape),
            [one.scene for one in seen],
            {name: number.detach().view(shape).mean(1) for name, number in numbers.items()},
        )

    def paint(self, scenes: list[Scene]) -> Float[Tensor, "T R 3 H W"]:
        """The sum of all glimpses, each pasted into its box."""
        latent, present = (torch.cat([getattr(scene, name) for scene in scenes]) for name in ("latent", "present"))
        glimpses = self.appearance.draw(latent[..., 4:]) * present[..., None, None]
        canvas = paste(glimpses, self.appearance.box(latent[..., :4]), self.config.frame)
        return canvas.view(len(scenes), -1, *canvas.shape[1:])

    # Training.

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """How many normal and uniform numbers a clip needs for a frame, at most."""
        return self.numbers_per_frame(self.config.particles)

    def numbers_per_frame(self, particles: int) -> tuple[int, int]:
        objects = particles * (self.config.slots + self.steps(first=False))
        return objects * self.config.latents, objects

    def bound(
        self,
        video: Float[Tensor, "B T 3 H W"],
        noise: Noise,
        now: Annealed,
        truth: Truth | None = None,
        follow: Callable[..., Seen] | None = None,
    ) -> Bound:
        """The importance-weighted bound; its gradient is VIMCO's. A compiled `follow` may stand in for the model's
        own. For short sequences (`newcomers_from`) it is the bound of a world in which nothing comes later."""
        particles = self.config.particles
        newcomers = torch.full_like(now.presence_prior, float(video.shape[1] >= self.config.newcomers_from))
        chances = Chances(now.presence_prior, self.config.eagerness, newcomers)
        draws = sampled(noise, video.shape[1], particles)
        explained = self.explain(video, draws, particles, chances, now.cut_gradients, now.clip_object, follow)
        return Bound(vimco_surrogate(explained.log_weights, explained.log_choices), explained.numbers)

    def compiled_bound(self) -> BoundFunction:
        from scalor.nn.compiling import Compiled  # only a training compiles

        module = SQAIRFollow(self)
        compiled = Compiled(module, module.used())

        def bound(video: Tensor, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
            weights = compiled.weights()

            def follow(scene: Scene, view: View, draw: Draw, chances: Chances) -> Seen:
                assert isinstance(draw, Sampled)
                normals, uniforms = draw.noise.normals, draw.noise.uniforms
                seen: Seen = compiled(weights, scene, view, normals, uniforms, chances)
                return seen

            return self.bound(video, noise, now, truth, follow)

        return bound

    # Use.

    @torch.no_grad()
    def log_likelihood(
        self, frames: object, samples: int = 10, presence_prior: float = PRESENCE_PRIOR
    ) -> Float[Tensor, " B"]:
        """Importance-weighted lower bound on log p(video), nats per clip; it rises with `samples`."""
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        draws = sampled(self.fresh_noise(video, video.shape[1], samples), video.shape[1], samples)
        return importance_weighted_bound(self.explain(video, draws, samples, Chances(presence_prior)).log_weights)

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Every object of every frame ([T, 3, H, W] or [B, T, 3, H, W] in [0, 1]), with its identity."""
        video = self.receive(frames, minimum=2)
        return gather_tracks(list(self.watch(video.unbind(1), masks)), self.config.frame)

    @torch.inference_mode()
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each): one `Tracks` a frame, memory that does not grow."""
        images = (self.receive_frame(frame) for frame in frames)
        for t, sighting in enumerate(self.watch(images, masks)):
            yield gather_tracks([sighting], self.config.frame, first_frame=t)

    @torch.inference_mode()
    def reconstruct(self, frames: object) -> Rollout:
        """The frames as the model sees them: reconstruction, a black background, and tracks."""
        video = self.receive(frames, minimum=1)
        return self.generate(video, observe=video.shape[1], horizon=0)

    @torch.inference_mode()
    def generate(
        self,
        frames: object,
        observe: int = 5,
        horizon: int = 5,
        discovery_rate: float = 0.0,
        estimator: Estimator | None = None,
    ) -> Rollout:
        """Conditional generation: `observe` frames seen, then `horizon` imagined from the prior.

        One more object appears with probability `discovery_rate`, again and again, in an imagined frame. The future
        is drawn at random; hand in `Mode()` for the most likely one.
        """
        require(observe >= 1, "observe", observe, "at least 1 frame must be seen")
        require(horizon >= 0, "horizon", horizon, "it must be 0 or more")
        require(0 <= discovery_rate < 1, "discovery_rate", discovery_rate, "it must lie between 0 and 1")
        video = self.receive(frames, minimum=observe)
        scenes = self.explain(video[:, :observe], [Likely()] * observe, particles=1).scenes
        likely = isinstance(estimator, Mode)
        draws = [Likely()] * horizon if likely else sampled(self.fresh_noise(video, horizon, 1), horizon, 1)
        for draw in draws:
            scenes.append(self.dream(scenes[-1], draw, discovery_rate))
        pictures = self.paint(scenes).transpose(0, 1).clamp(0, 1)
        tracks = gather_tracks([self.sight(scene) for scene in scenes], self.config.frame)
        return Rollout(pictures, torch.zeros_like(pictures), tracks)

    @torch.inference_mode()
    def object_pictures(self, frames: object) -> Float[Tensor, "B T N 3 P P"]:
        """Every slot's own picture in every frame, over black; black where the slot is empty."""
        video = self.receive(frames, minimum=1)
        scenes = self.explain(video, [Likely()] * video.shape[1], particles=1).scenes
        return torch.stack([self.pictures(scene) for scene in scenes], 1)

    def watch(self, images: Iterable[Tensor], masks: bool) -> Iterator[Sighting]:
        """Posterior modes, one frame [B, 3, H, W] at a time."""

        def start(image: Tensor) -> Scene:
            return self.start(len(image), image)

        def see(scene: Scene, image: Tensor) -> tuple[Scene, Sighting]:
            (view,) = self.look(image[None], particles=1)
            scene = self.follow(scene, view, Likely()).scene
            return scene, self.sight(scene, masks)

        return (sighting for _, sighting in follow_frames(start, see, images))

    def sight(self, scene: Scene, masks: bool = False) -> Sighting:
        """Boxes are around what is drawn: pixels at least half as bright as the object's brightest."""
        glimpses = self.pictures(scene)
        brightness = glimpses.amax(2, keepdim=True)  # [B, N, 1, P, P]
        brightest = brightness.amax((-1, -2), keepdim=True)
        shape = brightness / brightest.clamp(min=1e-6)
        where = self.appearance.box(scene.latent[..., :4])
        return Sighting(
            torch.where(brightest[..., 0, 0, 0] >= SHOWN, scene.id, -1),
            tight_box(shape, where),
            scene.presence[..., 0],
            scene.discovered[..., 0] > 0,
            torch.zeros_like(where[:, 0, 0]),
            self.visible(shape * scene.present[..., None, None], brightness, where) if masks else None,
        )

    def visible(
        self, shape: Float[Tensor, "B N 1 P P"], brightness: Float[Tensor, "B N 1 P P"], where: Float[Tensor, "B N 4"]
    ) -> Bool[Tensor, "B N H W"]:
        """The pixels that show each object: of those it is drawn on, the ones where no other is brighter."""
        layers = torch.cat([shape, brightness], 2).flatten(0, 1)[:, None]
        canvas = paste(layers, where.flatten(0, 1)[:, None], self.config.frame)
        drawn, bright = canvas.view(*where.shape[:2], 2, *self.config.frame).unbind(2)
        brightest = bright.argmax(1, keepdim=True)
        mine = brightest == torch.arange(where.shape[1], device=where.device)[:, None, None]
        return mine & (drawn > 0.5)

    def pictures(self, scene: Scene) -> Float[Tensor, "B N 3 P P"]:
        return self.appearance.draw(scene.latent[..., 4:]) * scene.present[..., None, None]

    def fresh_noise(self, like: Tensor, frames: int, particles: int) -> Noise:
        """For use, not for training: from torch's own random state."""
        normals, uniforms = self.numbers_per_frame(particles)
        return Noise(
            torch.randn(frames, len(like), normals, device=like.device),
            torch.rand(frames, len(like), uniforms, device=like.device),
        )

    def receive(self, frames: object, minimum: int) -> Float[Tensor, "B T 3 H W"]:
        """Frames from outside, checked, on the model's device."""
        return self.fitting(check_frames(frames, (1, 1), minimum))

    def receive_frame(self, frame: object) -> Float[Tensor, "1 3 H W"]:
        return self.fitting(check_frame(frame, (1, 1))[None])[:, 0]

    def fitting(self, video: Float[Tensor, "B T 3 H W"]) -> Float[Tensor, "B T 3 H W"]:
        """Frames of the size that the weights are for, on the model's device."""
        misfit = self.config.misfit((video.shape[-2], video.shape[-1]))
        if misfit:
            raise InputError(f"frames has shape {list(video.shape)}: {misfit}.")
        return video.to(next(self.parameters()).device)


class SQAIRFollow(nn.Module):
    """`SQAIR.follow` for training, as a module: a function of tensors, with noise that nobody outside sees being
    dealt."""

    def __init__(self, model: SQAIR) -> None:
        super().__init__()
        self.model = model

    def used(self) -> set[nn.Parameter]:
        """The weights it depends on."""
        model = self.model
        parts = (model.appearance, model.propagation, model.discovery, model.transition)
        return {p for part in parts for p in part.parameters()} - {*model.appearance.decoder.parameters()}

    def forward(self, scene: Scene, view: View, normals: Tensor, uniforms: Tensor, chances: Chances) -> Seen:
        return owned(self.model.follow(scene, view, Sampled(FrameNoise(normals, uniforms)), chances))


def owned(seen: Seen) -> Seen:
    """Every tensor with memory of its own. Torch 2.11 now and then gives a compiled function's result a garbage
    shape where it is a view of something inside."""
    scene = Scene(*(getattr(seen.scene, field.name).clone() for field in fields(seen.scene)))
    return Seen(scene, seen.log_choices, seen.costs)


def latent_costs(part: Part, prior: Normal) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """log q - log p of z_where and z_what, of those that are there."""
    ratio = (part.taken * (part.q.log_prob(part.latent) - prior.log_prob(part.latent))).sum(1)
    return ratio[:, :4].sum(1), ratio[:, 4:].sum(1)


def sampled(noise: Noise, frames: int, particles: int) -> list[Draw]:
    """Every frame's noise, dealt out to the particles of each clip."""
    shares = [noise.at(t) for t in range(frames)]
    return [
        Sampled(
            FrameNoise(
                share.normals.unflatten(1, (particles, -1)).flatten(0, 1),
                share.uniforms.unflatten(1, (particles, -1)).flatten(0, 1),
            )
        )
        for share in shares
    ]
