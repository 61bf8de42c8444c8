"""SQAIR: Sequential Attend, Infer, Repeat (Kosiorek et al., NeurIPS 2018), complete in one file.

The SCALOR paper summarises it in Section 2. In every frame the objects of the last frame are propagated one after the
other, each conditioned on those before it. Then new objects are discovered one after the other, until a stopping
process ends discovery. So the time per frame grows with the number of objects. Training maximises the
importance-weighted bound of k particles, with VIMCO for the discrete choices of presence. Computations that do not
depend on another object run for all objects, clips and particles at once; rendering and the likelihood run for all
frames at once.

Differences from the publication, with the reasons:

- Propagation samples presence before z_where and z_what. The latents of a removed object then cost nothing, so the
  importance weights are exact.
- Discovery stops when no slot is free, in prior and posterior alike. So no discovered object is ever dropped.
- The number of discoveries is geometric, as in AIR; the released weights have a categorical prior. Its parameter can
  be annealed in training, as in AIR. Frames after the first, in which few objects appear, have a parameter of their
  own.
- Discovery in later frames also has a posterior head of its own, which starts near that prior. In training, nothing
  can be discovered in the second of two frames, in prior and posterior alike: discovery, already trained on single
  frames, rediscovered all objects there before propagation could learn (docs/log.md).
- Box sizes stay within a range around the expected size, as in SCALOR. Without the range, boxes grew until all of them
  showed the same quarter of the frame, or shrank until they had no gradient.
- Each object is conditioned on the latents of the objects before it, in propagation and in discovery, but these latents
  are detached. Otherwise gradients grow with every object: the location of one glimpse determines its content, which
  determines the location of the next glimpse.
- Objects that are present but draw nothing are not reported: such objects fill slots more often than slots stay empty.
- Discovery starts with a broad posterior of z_where (see BROAD). In short runs on one small object, the error after 300
  steps was half of the error after 500 steps with the published width.
- Frames are in colour, the heads have one hidden layer, the image encoder is a small convolutional network, and the
  optimiser is Adam, as for all systems here.

Letters: B clips, k particles, R = B * k rows (the particles of a clip are consecutive), T frames, N slots,
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
from scalor.data.clip import Truth
from scalor.data.observation import Observation, check_frames, check_image
from scalor.errors import InputError, require
from scalor.kernels import crop, paste
from scalor.model.compiled import follow_frames
from scalor.model.elbo import pixel_log_likelihood
from scalor.model.encoders import shrinking_stack
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
from scalor.settings import Settings, setting
from scalor.tracks import Tracks

REACH = 1.2
"""Extent of the allowed centres as a multiple of the frame, so that an object can be half outside of it."""
PATCH = 4
"""Side of the patches into which the image encoder divides a frame, pixels."""
IMAGE_CHANNELS = (16, 32)
"""Channels of the image encoder's convolutional layers."""
SHARP, BROAD, LOOSE = 2.0, 0.5, -0.5
"""Amounts subtracted from the raw output of a standard deviation; they set its initial value.

- SHARP, z_where in propagation, posterior and prior: 0.05 (published: a bias of -3).
- BROAD, z_where in discovery: 0.2. The particles of a clip then look at different places, and their weights show which
  place was right.
- LOOSE, z_what in discovery: 0.5. A new object must not cost more than it can gain.
"""
DISCOVERY_BIAS, PROPAGATION_BIAS, PRIOR_BIAS = 4.0, 5.0, 10.0
"""Biases of the presence logits. At the start of training, discovery is likely (published: 1) and objects persist."""
PRESENCE_PRIOR = 0.75
"""Prior probability of one more discovery in the first frame, as published."""
DARK = 4.0
"""Amount subtracted from the pixel logits, so that glimpses start dark, at a logit of -4.

A canvas that is too bright would teach the model to draw nothing.
"""
SHOWN = 0.1
"""Smallest brightness that the brightest pixel of an object needs; darker objects are not reported."""


@dataclass(frozen=True)
class SQAIRConfig(Settings):
    """Settings of SQAIR. The defaults are the published ones for digits; sizes are in pixels of the input frames."""

    system: ClassVar[str] = "sqair"
    frame: tuple[int, int] = setting(
        (64, 64), "height and width of a frame, pixels; the weights depend on it", ge=1, multiple_of=PATCH
    )
    slots: int = setting(3, "N, the most objects at once, and the steps of discovery in the first frame", ge=1)
    discoveries: int = setting(3, "most steps of discovery in a later frame", ge=1)
    particles: int = setting(5, "k, the particles of the importance-weighted bound in training", ge=2)
    object_size: tuple[float, float] = setting((9.0, 9.0), "height and width of an object expected, pixels", gt=0)
    size_range: float = setting(0.5, "sizes vary by this share around object_size, either way", gt=0, lt=1)
    glimpse: int = setting(20, "P, side of the square an object is looked at and drawn in, pixels", ge=1)
    what_dim: int = setting(50, "length of z_what, the appearance of an object", ge=1)
    hidden_dim: int = setting(256, "width of the layers and of the hidden states", ge=1)
    later_discovery: float = setting(
        0.1, "prior probability of one more discovery in a frame after the first", gt=0, lt=1
    )
    sigma: float = setting(0.3, "standard deviation of the pixel noise, pixels in [0, 1]", gt=0)
    discovery_limit: float = setting(
        5.0, "presence logits of discovery stay within this, so that others are tried", gt=0
    )
    eagerness: float = setting(
        1.0, "in training, the first frame's log odds of one more object are multiplied by it", gt=0
    )
    newcomers_from: int = setting(
        3, "in training, only sequences of at least so many frames look for new objects after the first", ge=1
    )

    def check(self) -> None:
        fits = all(size < side for size, side in zip(self.object_size, self.frame, strict=True))
        require(fits, "model.object_size", self.object_size, "an object must be smaller than the frame")

    @property
    def latents(self) -> int:
        """Return L, the length of z_where and z_what together."""
        return 4 + self.what_dim

    def misfit(self, frame: tuple[int, int]) -> str | None:
        """Return why the model cannot see frames of a size, or None if it can."""
        height, width = self.frame
        return None if frame == self.frame else f"these weights see frames of {height}x{width} pixels alone"


class Draw(Protocol):
    """A way to draw latents from their distributions."""

    def normal(self, q: Normal) -> Tensor: ...

    def choose(self, logits: Tensor) -> Tensor:
        """Return 0 or 1 for each presence logit."""
        ...


class Sampled:
    """Random draws, computed from noise that was drawn beforehand."""

    def __init__(self, noise: FrameNoise) -> None:
        self.noise = noise

    def normal(self, q: Normal) -> Tensor:
        return q.mean + q.std * self.noise.normal(q.mean)

    def choose(self, logits: Tensor) -> Tensor:
        return (self.noise.uniform(logits) < logits.sigmoid()).float()


class Likely:
    """The most likely values, without randomness."""

    def normal(self, q: Normal) -> Tensor:
        return q.mean

    def choose(self, logits: Tensor) -> Tensor:
        return (logits > 0).float()


@dataclass(frozen=True)
class Scene:
    """State of the objects, carried between frames. Occupied slots come before empty ones."""

    latent: Float[Tensor, "R N L"]
    """z_where and z_what, concatenated."""
    present: Float[Tensor, "R N 1"]
    """1 for an object, 0 for an empty slot."""
    presence: Float[Tensor, "R N 1"]
    """Probability of presence when the object was last propagated or discovered."""
    tracker: Float[Tensor, "R N hidden"]
    """Hidden state of the temporal RNN."""
    memory: Float[Tensor, "R N hidden"]
    """Hidden state of the RNN of the prior."""
    discovered: Float[Tensor, "R N 1"]
    """1 for an object discovered in the last frame."""
    id: Int[Tensor, "R N"]
    """Identity of the object; -1 for an empty slot."""
    next_id: Int[Tensor, " R"]
    """Identity of the next object to be discovered."""

    def detach(self) -> "Scene":
        return Scene(*(getattr(self, field.name).detach() for field in fields(self)))

    def evened(self, times: float) -> "Scene":
        """Return the same scene; in the backward pass, clip the gradients of its latents.

        An object's gradient is limited to `times` the geometric mean over all objects (see `even`); 0 turns this off.
        """
        return replace(self, latent=even(self.latent, times)) if times else self


class Part(NamedTuple):
    """Result of propagation or discovery in one frame: n candidate objects."""

    logits: Float[Tensor, "R n 1"]
    """Presence logits."""
    taken: Float[Tensor, "R n 1"]
    """1 for an object that is present, else 0."""
    q: Normal
    """Distribution from which the latents were drawn, [R, n, L]."""
    latent: Float[Tensor, "R n L"]
    """z_where and z_what, concatenated."""


class View(NamedTuple):
    """A frame and its encoding."""

    image: Float[Tensor, "B 3 H W"]
    code: Float[Tensor, "R hidden"]
    """Output of the image encoder, repeated for the particles of a clip."""


class Chances(NamedTuple):
    """Settings of the discovery prior.

    One compiled graph works for all values of a tensor; a plain number is compiled in as a constant.
    """

    presence_prior: float | Tensor = PRESENCE_PRIOR
    """Probability of one more discovery in the first frame."""
    eagerness: float = 1.0
    """Factor of the log odds of `presence_prior`."""
    newcomers: float | Tensor = 1.0
    """1 if objects can be discovered after the first frame, else 0; applies to prior and posterior alike."""


USUAL = Chances()
"""Default settings of the discovery prior."""


class Costs(NamedTuple):
    """log q - log p of the latents of a frame, nats per row: KL divergences estimated from one sample."""

    discovered_presence: Float[Tensor, " R"]
    discovered_where: Float[Tensor, " R"]
    discovered_what: Float[Tensor, " R"]
    propagated_presence: Float[Tensor, " R"]
    propagated_where: Float[Tensor, " R"]
    propagated_what: Float[Tensor, " R"]


class Seen(NamedTuple):
    """Result of one inference step."""

    scene: Scene
    """State after the frame."""
    log_choices: Float[Tensor, " R"]
    """Log probability of the choices of presence under the posterior."""
    costs: Costs


def stopping_log_prob(
    logits: Float[Tensor, "R D 1"], taken: Float[Tensor, "R D 1"], room: Float[Tensor, "R 1"]
) -> Float[Tensor, " R"]:
    """Return the log probability of the choices of a stopping process: at every step one more object, or the end.

    After the end, or when no slot is free, there is no choice, and a step contributes 0.

    Parameters
    ----------
    logits
        Log odds of one more object at each step.
    taken
        1 for each step that discovered an object, else 0.
    room
        Number of free slots.
    """
    going = torch.cat([torch.ones_like(taken[:, :1]), taken[:, :-1]], 1)
    asked = going[..., 0] * has_room(room, taken.shape[1])
    return (asked * log_prob_bernoulli(logits, taken)[..., 0]).sum(1)


def has_room(room: Float[Tensor, "R 1"], steps: int) -> Float[Tensor, "R D"]:
    """Return 1 for every step of discovery for which a slot is free, else 0; `room` is the number of free slots."""
    return (torch.arange(steps, device=room.device) < room).float()


def mlp(*widths: int) -> nn.Sequential:
    """Return linear layers with ELUs between them; the last layer is linear."""
    layers: list[nn.Module] = []
    for i, o in pairwise(widths):
        layers += [nn.Linear(i, o), nn.ELU()]
    return nn.Sequential(*layers[:-1])


def normal(raw: Tensor, around: Tensor, sharp: float = 0.0) -> Normal:
    """Return a normal from a network's output: the mean is `around` plus the output; `sharp` lowers the initial std."""
    mean, spread = raw.float().chunk(2, -1)
    return Normal(around + mean, positive(spread - sharp))


class Appearance(nn.Module):
    """Conversions between latents and pixels: z_where to a box, glimpse to encoding, z_what to a drawn glimpse."""

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
        """Return the boxes of z_where, (x, y, w, h) in pixels."""
        centre = self.extent * (0.5 + 0.5 * REACH * z_where[..., :2].tanh())
        return torch.cat([centre, self.expected * (1 + self.size_range * z_where[..., 2:].tanh())], -1)

    def crop(self, image: Float[Tensor, "B 3 H W"], z_where: Float[Tensor, "R n 4"]) -> Float[Tensor, "R n 3 P P"]:
        """Return the glimpses of the image inside the boxes of z_where."""
        rows, boxes = z_where.shape[:2]
        glimpses = crop(image, self.box(z_where).view(len(image), -1, 4), self.glimpse)
        return glimpses.reshape(rows, boxes, *glimpses.shape[2:])

    def draw(self, z_what: Float[Tensor, "*shape what"]) -> Float[Tensor, "*shape 3 P P"]:
        """Return the glimpses that z_what decodes to, pixels in [0, 1]."""
        pixels = (self.decoder(z_what).float() - DARK).sigmoid()
        glimpses: Tensor = pixels.unflatten(-1, (3, self.glimpse, self.glimpse))
        return glimpses


class Propagation(nn.Module):
    """Propagation of the last frame's objects, one after the other: presence, then z_where, then z_what."""

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
        """Return the propagated objects and the new hidden states of the temporal RNN."""
        last, slots = scene.latent, scene.latent.shape[1]
        tracker = each_slot(self.tracker, last, scene.tracker)
        # All objects at once: encode a glimpse at each expected location, through a mask that can hide neighbours.
        mask = self.mask(tracker).sigmoid().view(*tracker.shape[:2], 1, eye.glimpse, eye.glimpse)
        glimpses = eye.crop(view.image, last[..., :4] + self.expect(tracker).float()) * mask
        entered = self.enter(torch.cat([eye.encoder(glimpses.flatten(2)), tracker, last], -1))
        # One by one: the relation RNN conditions each object on those before it.
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
        """Return the posterior of z_what: its mean is a gated mix of the last z_what and the current glimpse."""
        keep, write, new, spread = self.what(torch.cat([code, hidden], -1)).float().chunk(4, -1)
        return Normal((keep + 1).sigmoid() * last + write.sigmoid() * new, positive(spread))


class Discovery(nn.Module):
    """Discovery as in AIR: at each step one more object or the end, then the object's z_where and z_what."""

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
        """Return the results of `steps` discovery steps; `kept` are the propagated objects, `room` the free slots."""
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
    """Prior of propagation: presence and latents of the objects, predicted from the past alone."""

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
        """Return the presence logits and the normal of the latents."""
        where = normal(self.where(memory), last[..., :4], SHARP)
        what = normal(self.what(memory), last[..., 4:])
        return self.presence(memory).float() + PRIOR_BIAS, beside(where, what)


def each_slot(
    cell: nn.GRUCell, entering: Float[Tensor, "R N L"], state: Float[Tensor, "R N hidden"]
) -> Float[Tensor, "R N hidden"]:
    """Run one step of an RNN cell on every slot separately; return the new states."""
    after: Tensor = cell(entering.flatten(0, 1), state.flatten(0, 1)).float()
    return after.view(state.shape)


def beside(where: Normal, what: Normal) -> Normal:
    """Return the joint normal of z_where and z_what."""
    return Normal(torch.cat([where.mean, what.mean], -1), torch.cat([where.std, what.std], -1))


def one_after_the_other(made: list[Part]) -> Part:
    """Stack the objects of a loop ([R, ...] each) into one record [R, n, ...]."""
    logits, taken, q, latent = zip(*made, strict=True)
    mean, std = torch.stack([one.mean for one in q], 1), torch.stack([one.std for one in q], 1)
    return Part(torch.stack(logits, 1), torch.stack(taken, 1), Normal(mean, std), torch.stack(latent, 1))


class Explained(NamedTuple):
    """Result of inference on whole videos."""

    log_weights: Float[Tensor, "B k"]
    """Log importance weight of each particle: log p(x, z) - log q(z | x), nats."""
    log_choices: Float[Tensor, "B k"]
    """Log probability of each particle's choices of presence under the posterior."""
    scenes: list[Scene]
    """State after each frame."""
    numbers: dict[str, Float[Tensor, " B"]]
    """Metrics per clip, as means over particles: terms of the bound (nats), objects per frame, squared error."""


class SQAIR(Tracker):
    """The SQAIR model: `track`, `stream`, `reconstruct`, `generate`, `log_likelihood`, and `bound` for training."""

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

    # One time step.

    def start(self, rows: int, like: Tensor) -> Scene:
        """Return the state before the first frame, which has no slots."""

        def none(width: int) -> Tensor:
            return torch.zeros(rows, 0, width, device=like.device)

        hidden = self.config.hidden_dim
        ids = torch.zeros(rows, 0, dtype=torch.int64, device=like.device)
        next_id = torch.zeros(rows, dtype=torch.int64, device=like.device)
        return Scene(none(self.config.latents), none(1), none(1), none(hidden), none(hidden), none(1), ids, next_id)

    def look(self, images: Float[Tensor, "T B 3 H W"], particles: int) -> list[View]:
        """Encode all frames at once; the particles of a clip share one encoding."""
        codes = self.encoder(self.features(images.flatten(0, 1)).flatten(1)).float()
        codes = codes.view(*images.shape[:2], -1).repeat_interleave(particles, 1)
        return [View(*view) for view in zip(images, codes, strict=True)]

    def follow(self, scene: Scene, view: View, draw: Draw, chances: Chances = USUAL) -> Seen:
        """Run one step of inference: propagate, then discover. A scene without slots is that before the first frame."""
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
        """Run one step of generation from the prior.

        `discovery_rate` is the probability of one more object, at each of the steps of discovery.
        """
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
        """Pack propagated and then discovered objects into the first slots, in order; empty slots come last."""
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
        """Return the result of propagation in the first frame, which has no objects to propagate."""
        return Part(scene.present, scene.present, Normal(scene.latent, scene.latent), scene.latent)

    def newborn(self, like: Float[Tensor, "R D L"]) -> Normal:
        """Return the prior of a discovered object's latents: standard normal."""
        return Normal(torch.zeros_like(like), torch.ones_like(like))

    def steps(self, first: bool) -> int:
        """Return D, the largest number of discoveries in the first frame or in a later one."""
        return self.config.slots if first else min(self.config.slots, self.config.discoveries)

    # Whole videos.

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
        """Infer the latents frame by frame, then render all frames and compute their likelihood at once.

        Parameters
        ----------
        draws
            How latents are drawn, for each frame.
        cut_gradients
            Whether gradients stop between frames.
        clip_object
            Limit of an object's gradient from later frames, in multiples of the geometric mean; 0: no limit.
        follow
            Compiled version of `SQAIR.follow` to use instead of it.
        """
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
        """Render the scenes: the sum of all glimpses, each pasted into its box."""
        latent, present = (torch.cat([getattr(scene, name) for scene in scenes]) for name in ("latent", "present"))
        glimpses = self.appearance.draw(latent[..., 4:]) * present[..., None, None]
        canvas = paste(glimpses, self.appearance.box(latent[..., :4]), self.config.frame)
        return canvas.view(len(scenes), -1, *canvas.shape[1:])

    # Training.

    def noise_per_frame(self, frame: tuple[int, int]) -> tuple[int, int]:
        """Return how many normal and uniform random numbers a clip needs per frame, at most."""
        return self.numbers_per_frame(self.config.particles)

    def numbers_per_frame(self, particles: int) -> tuple[int, int]:
        """Return how many normal and uniform random numbers a clip of `particles` particles needs per frame."""
        objects = particles * (self.config.slots + self.steps(first=False))
        return objects * self.config.latents, objects

    def bound(
        self,
        video: Observation,
        noise: Noise,
        now: Annealed,
        truth: Truth | None = None,
        follow: Callable[..., Seen] | None = None,
    ) -> Bound:
        """Return the importance-weighted bound, with VIMCO's gradient.

        In sequences of fewer than `newcomers_from` frames nothing can be discovered after the first frame: it is the
        bound of a model without later discoveries. `follow` is a compiled version of `SQAIR.follow` to use instead.
        """
        particles = self.config.particles
        length = video.image.shape[1]
        newcomers = torch.full_like(now.presence_prior, float(length >= self.config.newcomers_from))
        chances = Chances(now.presence_prior, self.config.eagerness, newcomers)
        draws = sampled(noise, length, particles)
        explained = self.explain(video.image, draws, particles, chances, now.cut_gradients, now.clip_object, follow)
        return Bound(vimco_surrogate(explained.log_weights, explained.log_choices), explained.numbers)

    def compiled_bound(self) -> BoundFunction:
        """Return `bound` with a compiled time step."""
        from scalor.model.compiled import Compiled  # only training compiles

        module = SQAIRFollow(self)
        compiled = Compiled(module, module.used())

        def bound(video: Observation, noise: Noise, now: Annealed, truth: Truth | None = None) -> Bound:
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
        """Return the importance-weighted lower bound on log p(video), nats per clip.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        samples
            Number of particles; the bound rises with it.
        presence_prior
            Prior probability of one more discovery in the first frame.
        """
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        draws = sampled(self.fresh_noise(video, video.shape[1], samples), video.shape[1], samples)
        return importance_weighted_bound(self.explain(video, draws, samples, Chances(presence_prior)).log_weights)

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Return every object of every frame, with its identity.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        masks
            Whether to return visible masks as well.
        """
        video = self.receive(frames, minimum=2)
        return gather_tracks(list(self.watch(video.unbind(1), masks)), self.config.frame)

    @torch.inference_mode()
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each) and yield one `Tracks` per frame; memory use does not grow."""
        images = (self.receive_frame(frame) for frame in frames)
        for t, sighting in enumerate(self.watch(images, masks)):
            yield gather_tracks([sighting], self.config.frame, first_frame=t)

    @torch.inference_mode()
    def reconstruct(self, frames: object) -> Rollout:
        """Return the reconstructed frames, a black background and the tracks."""
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
        """Infer the latents of `observe` frames, then generate `horizon` frames from the prior.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        observe
            Number of observed frames.
        horizon
            Number of generated frames.
        discovery_rate
            Probability of one more new object in a generated frame, applied repeatedly until none appears, at most
            `discoveries` times.
        estimator
            `Mode()` for the most likely future; otherwise the future is drawn at random.

        Returns
        -------
        Rollout
            Observed frames (reconstructed) and generated ones, a black background, and tracks.
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
        """Return the rendering of every slot alone, over black, in every frame; empty slots are black."""
        video = self.receive(frames, minimum=1)
        scenes = self.explain(video, [Likely()] * video.shape[1], particles=1).scenes
        return torch.stack([self.pictures(scene) for scene in scenes], 1)

    def watch(self, images: Iterable[Tensor], masks: bool) -> Iterator[Sighting]:
        """Yield the most likely objects under the posterior, one frame [B, 3, H, W] at a time."""

        def start(frame: Observation) -> Scene:
            return self.start(len(frame), frame.image)

        def see(scene: Scene, frame: Observation) -> tuple[Scene, Sighting]:
            (view,) = self.look(frame.image[None], particles=1)
            scene = self.follow(scene, view, Likely()).scene
            return scene, self.sight(scene, masks)

        return (sighting for _, sighting in follow_frames(start, see, map(Observation, images)))

    def sight(self, scene: Scene, masks: bool = False) -> Sighting:
        """Return the sighting of a scene.

        A box encloses the pixels that are more than half as bright as the object's brightest pixel.
        """
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
        """Return the visible mask of each object: its drawn pixels in which no other object is brighter."""
        layers = torch.cat([shape, brightness], 2).flatten(0, 1)[:, None]
        canvas = paste(layers, where.flatten(0, 1)[:, None], self.config.frame)
        drawn, bright = canvas.view(*where.shape[:2], 2, *self.config.frame).unbind(2)
        brightest = bright.argmax(1, keepdim=True)
        mine = brightest == torch.arange(where.shape[1], device=where.device)[:, None, None]
        return mine & (drawn > 0.5)

    def pictures(self, scene: Scene) -> Float[Tensor, "B N 3 P P"]:
        """Return the glimpse of every slot; black where the slot is empty."""
        return self.appearance.draw(scene.latent[..., 4:]) * scene.present[..., None, None]

    def fresh_noise(self, like: Tensor, frames: int, particles: int) -> Noise:
        """Return noise from torch's global random state, for use outside of training."""
        normals, uniforms = self.numbers_per_frame(particles)
        return Noise(
            torch.randn(frames, len(like), normals, device=like.device),
            torch.rand(frames, len(like), uniforms, device=like.device),
        )

    def receive(self, frames: object, minimum: int) -> Float[Tensor, "B T 3 H W"]:
        """Check frames given by the user and return them on the model's device."""
        return self.fitting(check_frames(frames, (1, 1), minimum))

    def receive_frame(self, frame: object) -> Float[Tensor, "1 3 H W"]:
        """Check one frame given by the user and return it on the model's device."""
        return self.fitting(check_image(frame, (1, 1)).image[None])[:, 0]

    def fitting(self, video: Float[Tensor, "B T 3 H W"]) -> Float[Tensor, "B T 3 H W"]:
        """Check that frames have the size the weights are for and return them on the model's device."""
        misfit = self.config.misfit((video.shape[-2], video.shape[-1]))
        if misfit:
            raise InputError(f"frames has shape {list(video.shape)}: {misfit}.")
        return video.to(next(self.parameters()).device)


class SQAIRFollow(nn.Module):
    """`SQAIR.follow` as a module to be compiled for training: a pure function of tensors.

    `FrameNoise` changes when numbers are taken from it, so it is made inside of `forward`.
    """

    def __init__(self, model: SQAIR) -> None:
        super().__init__()
        self.model = model

    def used(self) -> set[nn.Parameter]:
        """Return the weights that it depends on: all but those of the image encoder and the decoder."""
        model = self.model
        parts = (model.appearance, model.propagation, model.discovery, model.transition)
        return {p for part in parts for p in part.parameters()} - {*model.appearance.decoder.parameters()}

    def forward(self, scene: Scene, view: View, normals: Tensor, uniforms: Tensor, chances: Chances) -> Seen:
        return owned(self.model.follow(scene, view, Sampled(FrameNoise(normals, uniforms)), chances))


def owned(seen: Seen) -> Seen:
    """Copy every tensor of the scene into memory of its own.

    Torch 2.11 sometimes returns a garbage shape where the result of a compiled function is a view of an inner tensor.
    """
    scene = Scene(*(getattr(seen.scene, field.name).clone() for field in fields(seen.scene)))
    return Seen(scene, seen.log_choices, seen.costs)


def latent_costs(part: Part, prior: Normal) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """Return log q - log p of z_where and of z_what, summed over the objects that are present."""
    ratio = (part.taken * (part.q.log_prob(part.latent) - prior.log_prob(part.latent))).sum(1)
    return ratio[:, :4].sum(1), ratio[:, 4:].sum(1)


def sampled(noise: Noise, frames: int, particles: int) -> list[Draw]:
    """Return the draws of every frame: each clip's noise, divided among its particles."""
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
