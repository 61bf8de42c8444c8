"""Bouncing balls in the manner of G-SWM (Lin et al., ICML 2020): balls that hide each other or bounce off each other.

Our own generator, from the published settings of the four data sets:

| data set | balls | radius | depths | bounce off each other | colours |
|---|---|---|---|---|---|
| occlusion | 3 | 8 px | 1 | no | of five, all different |
| interaction | 3 | 8 px | 1 | yes | any of five |
| two layers | 6 | 8 px | 2 | yes | blue behind, red in front |
| two layers, dense | 16 | 5 px | 2 | yes | blue behind, red in front |

All balls have the same mass and begin with 3 px per frame in any direction. Walls reflect them. Balls of one depth
collide elastically, those of different depths pass over each other. Where balls collide, none touches another one in
the first frame. Episodes have 100 frames, and there are as many of them as in the published data; a clip is a window
of an episode.

Letters: E episodes, N balls, B clips, T frames, S by S pixels of a window.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from scalor.config import SceneConfig
from scalor.data.clip import Clip
from scalor.data.hashing import fold, key, uniform, whole
from scalor.data.layers import STEPS, Cast, draw
from scalor.errors import require

EPISODE = 100
"""Frames of an episode."""
EPISODES = {"train": 5_000, "test": 1_000}
"""Number of episodes of each split; the published data have 200 for tests."""
SPEED = 3.0
"""Speed at the start, pixels per frame."""
SUBSTEPS = 10
"""Steps of the simulation in a frame."""
ATTEMPTS = 1_000
"""Largest number of places that are tried for a ball."""
PALETTE = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0))
"""Blue, red, yellow, magenta, cyan."""
# Numbers of draws and the key of a part, see `hashing`.
X, Y, HEADING, COLOUR, START, WHICH = range(6)
PLACED = 0xBA11


class BallState(NamedTuple):
    """Centres and velocities of all balls, pixels and pixels per frame."""

    centre: Float[Tensor, "N E 2"]
    velocity: Float[Tensor, "N E 2"]


class Balls:
    """Clips of bouncing balls of one split. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        count, most = config.objects
        require(count == most, "scene.objects", config.objects, "all clips of balls show the same number")
        fits = config.length <= EPISODE
        require(fits, "scene.length", config.length, f"an episode of balls has {EPISODE} frames")
        self.config, self.seed, self.split, self.device = config, seed, split, device
        self.radius = config.size / 2
        self.depth = torch.arange(count) * config.depths // count  # 0 is behind
        self.rounds = rounds_of_pairs(self.depth.tolist())
        episodes = key(seed, split, torch.arange(EPISODES[split]))
        keys = fold(episodes, torch.arange(count)[:, None])  # [N, E]
        self.path = self.simulate(keys).to(device)  # [N, E, EPISODE, 2]
        self.colour = self.colours(episodes, keys).to(device)  # [N, E, 3]
        self.steps = torch.arange(-math.ceil(self.radius + 0.75), math.ceil(self.radius + 0.75) + 1, device=device)

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        """Return the clips with these indices: in the test split, episodes in their order."""
        clip = key(self.seed, self.split, index)
        episodes = self.path.shape[1]
        which = whole(clip, WHICH, episodes) if self.split == "train" else index % episodes
        first = whole(clip, START, EPISODE - self.config.length + 1)
        times = first[:, None] + torch.arange(length, device=index.device)
        centre = self.path[:, which[:, None], times].flip(0)  # [N, B, T, 2], from front to back
        cell = centre.floor()
        x, y = (self.steps + 0.5 - (centre - cell)[..., None]).unbind(-2)
        column, row = (self.steps + cell.long()[..., None]).unbind(-2)
        away = (x.square()[..., None, :] + y.square()[..., :, None]).sqrt()
        alpha = (self.radius + 0.5 - away).clamp(0, 1)
        number = torch.arange(len(centre), device=index.device).flip(0)[:, None].expand(-1, len(index))
        cast = Cast(
            number=number,
            exists=torch.ones_like(centre[..., 0], dtype=torch.bool),
            centre=centre,
            half=torch.full_like(centre[:, :, :1], self.radius),
            alpha=alpha.mul_(STEPS).round_().div_(STEPS),
            row=row,
            column=column,
            colour=self.colour[:, which].flip(0).movedim(-1, 0)[..., None, None, None],
        )
        return draw(cast, self.config.frame, None)

    def colours(self, episodes: Int[Tensor, " E"], keys: Int[Tensor, "N E"]) -> Float[Tensor, "N E 3"]:
        """Return the colour of each ball."""
        palette = torch.tensor(PALETTE)
        if self.config.depths > 1:
            return palette[self.depth][:, None].expand(-1, len(episodes), -1)
        if self.config.collide:
            return palette[whole(keys, COLOUR, len(palette))]
        shuffled = uniform(fold(episodes, torch.arange(len(palette))[:, None]), COLOUR).argsort(dim=0)
        chosen: Tensor = palette[shuffled[torch.arange(len(keys)) % len(palette)]]
        return chosen

    def simulate(self, keys: Int[Tensor, "N E"]) -> Float[Tensor, "N E EPISODE 2"]:
        """Return the centres of all balls in all frames."""
        side = torch.tensor([float(self.config.frame[1]), float(self.config.frame[0])])
        heading = uniform(keys, HEADING) * (2 * math.pi)
        state = BallState(self.places(keys, side), SPEED * torch.stack((heading.cos(), heading.sin()), -1))
        path = [state.centre]
        for _ in range(EPISODE - 1):
            for _ in range(SUBSTEPS):
                state = self.move(state, side, 1 / SUBSTEPS)
            path.append(state.centre)
        return torch.stack(path, 2)

    def places(self, keys: Int[Tensor, "N E"], side: Float[Tensor, "2"]) -> Float[Tensor, "N E 2"]:
        """Return the centres in the first frame, within the walls; where balls collide, none touches another."""
        placed: list[Tensor] = []
        for own in keys:
            centre = torch.zeros(len(own), 2)
            open_episodes = torch.ones(len(own), dtype=torch.bool)
            for attempt in range(ATTEMPTS):
                tried = fold(fold(own, PLACED), attempt)
                share = torch.stack((uniform(tried, X), uniform(tried, Y)), -1)
                centre = torch.where(open_episodes[:, None], self.radius + share * (side - 2 * self.radius), centre)
                open_episodes = open_episodes & self.touches(centre, placed)
                if not open_episodes.any():
                    break
            else:
                require(False, "scene.size", self.config.size, "so many balls of this size do not fit into the frame")
            placed.append(centre)
        return torch.stack(placed)

    def touches(self, centre: Float[Tensor, "E 2"], placed: list[Tensor]) -> Bool[Tensor, " E"]:
        """Return where a ball touches one of those placed before it; never where balls do not collide."""
        nothing = torch.zeros(len(centre), dtype=torch.bool)
        if not self.config.collide or not placed:
            return nothing
        near: Tensor = (torch.stack(placed) - centre).norm(dim=-1) < 2 * self.radius
        return near.any(0)

    def move(self, state: BallState, side: Float[Tensor, "2"], share: float) -> BallState:
        """Return the state after a share of a frame: walls reflect first, then balls collide, then all move."""
        velocity = state.velocity
        ahead = state.centre + share * velocity
        velocity = torch.where(ahead < self.radius, velocity.abs(), velocity)
        velocity = torch.where(ahead > side - self.radius, -velocity.abs(), velocity)
        if self.config.collide:
            velocity = self.bounce(state.centre + share * velocity, velocity)
        return BallState(state.centre + share * velocity, velocity)

    def bounce(self, ahead: Float[Tensor, "N E 2"], velocity: Float[Tensor, "N E 2"]) -> Float[Tensor, "N E 2"]:
        """Return the velocities after elastic collisions of balls of equal mass that would overlap, pair by pair.

        The parts of the velocities along the line between the centres are exchanged if the balls approach each other.
        """
        for one, other in self.rounds:
            line = ahead[one] - ahead[other]
            distance = line.norm(dim=-1, keepdim=True)
            line = line / distance.clamp(min=1e-6)
            closing = ((velocity[one] - velocity[other]) * line).sum(-1, keepdim=True)
            push = torch.where((distance < 2 * self.radius) & (closing < 0), closing, 0.0) * line
            velocity = velocity.index_add(0, one, -push).index_add(0, other, push)
        return velocity


def rounds_of_pairs(depth: list[int]) -> list[tuple[Int[Tensor, " P"], Int[Tensor, " P"]]]:
    """Return all pairs of balls of one depth in rounds, in each of which a ball is in one pair at most."""
    rounds: dict[int, list[tuple[int, int]]] = {}
    for own in sorted(set(depth)):
        balls: list[int | None] = [ball for ball, at in enumerate(depth) if at == own]
        balls += [None] * (len(balls) % 2)
        for turn in range(len(balls) - 1):
            half = len(balls) // 2
            pairs = zip(balls[:half], reversed(balls[half:]), strict=True)
            rounds.setdefault(turn, []).extend((a, b) for a, b in pairs if a is not None and b is not None)
            balls = [balls[0], balls[-1], *balls[1:-1]]
    tables = [torch.tensor(pairs) for pairs in rounds.values() if pairs]
    return [(table[:, 0], table[:, 1]) for table in tables]
