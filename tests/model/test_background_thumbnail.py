"""The thumbnail of the background: what it is read from, and that colours are learned by it."""

import torch
from torch.nn.functional import interpolate

from scalor.config import ModelConfig
from scalor.model.background import TONE_SCALE, Background
from scalor.nn.distributions import Mode


def made(**changes: int) -> Background:
    torch.manual_seed(0)
    config = {"frame": (32, 32), "grid": (4, 4), "background": True, "background_dim": 12, **changes}
    return Background(ModelConfig(**config))  # type: ignore[arg-type]


def test_objects_do_not_count_in_the_thumbnail() -> None:
    background = made(background_thumbnail=2)
    images = torch.full((1, 3, 32, 32), 0.25)
    images[:, :, :16, :12] = 1.0  # an object that covers most of one quarter
    covered = torch.zeros(1, 1, 32, 32)
    covered[:, :, :16, :12] = 1
    wanted = torch.full((1, 3, 2, 2), TONE_SCALE * (0.25 - 0.5))
    torch.testing.assert_close(background.shrunk(images, covered), wanted)
    assert not torch.allclose(background.shrunk(images, torch.zeros_like(covered)), wanted)
    assert background.shrunk(images, torch.ones_like(covered)).abs().max() == 0  # nothing is seen of it


def test_without_a_thumbnail_there_are_no_more_weights() -> None:
    names = {name.split(".")[0] for name, _ in made(background_thumbnail=4).named_parameters()}
    assert names - {name.split(".")[0] for name, _ in made().named_parameters()} == {"read_tones", "tones"}


def colour_error(background: Background, steps: int) -> float:
    """Train on frames of two tints each; return the squared error of the colours, relative to their variance."""
    random = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(background.parameters(), lr=3e-3)
    for _ in range(steps):
        tints = 0.3 + 0.3 * torch.rand(16, 3, 2, 1, generator=random)
        frames = interpolate(tints, (32, 32), mode="nearest")[None]
        memory = background.empty(16, frames)
        picture, kl, _ = background(frames, torch.zeros_like(frames[:, :, :1]), torch.zeros(1, 16, 12), memory, Mode())
        error = picture - frames[0]
        optimizer.zero_grad()
        (error.square().sum() / 0.08 + kl.sum()).backward()
        optimizer.step()
    colours, true = (part - part.mean(1, keepdim=True) for part in (error.detach(), frames[0]))
    return float(colours.square().sum() / true.square().sum())


def test_colours_are_learned_by_the_thumbnail_and_hardly_without_it() -> None:
    assert colour_error(made(background_thumbnail=4), 60) < 0.6 < colour_error(made(), 60)
