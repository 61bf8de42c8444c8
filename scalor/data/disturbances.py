"""Backgrounds of composed clips, and effects of light and camera: shimmer, flutter, shake, blur, noise, compression.

B clips, T frames, H by W pixels.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, interpolate, pad

from scalor.data.hashing import between, fold, normal, uniform

# Keys of parts and numbers of draws, see `hashing`.
SCENE, CAMERA = 0x5CE7, 0xCA3E
TONE, WAVE, EDGE, GRAIN, TINT, FLICKER, DRIFT, STEP, WHEN, SHIMMER, SHAKE, BLUR, NOISE, CODEC, FLUTTER, WIDTH = range(
    16
)
GRIDS = (3, 6, 12, 40)
"""Sides of the grids of random numbers that are interpolated and added up to a scene, coarse to fine."""
EDGES, LINES = 3, 3
"""Largest number of straight edges and of thin lines (tape, cables, poles) in a scene."""
BLOCK = 8
"""Side of a block of the simulated codec, pixels."""
NOISE_SIDE = 256
"""Side of the picture that noise is read from, pixels."""


def scenes(clip: Int[Tensor, "B"], frame: tuple[int, int]) -> tuple[Float[Tensor, "B 3 H W"], Float[Tensor, "B"]]:
    """Draw backgrounds, from plain to cluttered. Return them and their tone, the brightness that they vary around."""
    keys = fold(clip, SCENE)
    tone = between(keys, TONE, 0.08, 0.92)
    picture = tone[:, None, None, None].expand(-1, 3, *frame)
    for level, side in enumerate(GRIDS):
        draws = fold(keys, level + 1)
        grey, coloured = (_grid(fold(draws, kind), channels, side, frame) for kind, channels in ((1, 1), (2, 3)))
        strong = 0.35 * uniform(draws, WAVE).square() * (uniform(draws, GRAIN) < (0.8 if level < 2 else 0.5))
        tinted = 0.4 * uniform(draws, TINT).square()
        picture = picture + (strong[:, None, None, None] * 2 * (grey + tinted[:, None, None, None] * coloured))
    rows, columns = (torch.arange(side, device=clip.device) + 0.5 for side in frame)
    for edge in range(EDGES + LINES):
        draws = fold(keys, 0x100 + edge)
        heading = 2 * math.pi * uniform(draws, TINT)
        right_angled = uniform(draws, GRAIN) < 0.6
        heading = torch.where(right_angled, (heading / (math.pi / 2)).round() * (math.pi / 2), heading)
        place = between(draws, WHEN, -0.45, 0.45) * max(frame)
        across = (columns - frame[1] / 2) * heading.cos()[:, None]  # [B, W]
        down = (rows - frame[0] / 2) * heading.sin()[:, None]
        beyond = across[:, None, :] + down[:, :, None] - place[:, None, None]
        inside, strength = beyond.sigmoid(), 0.12 * (uniform(draws, EDGE) < 0.5)
        if edge >= EDGES:
            half = between(draws, WIDTH, 0.4, 1.8)[:, None, None]
            inside, strength = (2 * (half - beyond.abs())).sigmoid(), 0.25 * (uniform(draws, EDGE) < 0.25)
        inside = inside[:, None]
        tint = torch.stack([normal(draws, EDGE) + 0.3 * normal(draws, 20 + channel) for channel in range(3)], 1)
        picture = picture + inside * (strength[:, None] * tint)[..., None, None]
    return picture.clamp(0, 1), tone


def _grid(keys: Int[Tensor, "B"], channels: int, side: int, frame: tuple[int, int]) -> Float[Tensor, "B channels H W"]:
    """Return smooth random pictures with values around 0: random numbers on a grid, interpolated."""
    places = torch.arange(channels * side * side, device=keys.device).view(channels, side, side)
    values = uniform(fold(keys[:, None, None, None], places), 0) - 0.5
    smooth: Tensor = interpolate(values, frame, mode="bicubic", align_corners=False)
    return smooth


def shimmer(clip: Int[Tensor, "B"], length: int, frame: tuple[int, int]) -> Float[Tensor, "B T 1 H W"]:
    """Return brightness changes on a part of the scene, as from leaves or water. In most clips they are 0."""
    keys = fold(clip, CAMERA)
    region = _grid(fold(keys, 0x30), 1, 5, frame).mul(12).sub(1).sigmoid()  # [B, 1, H, W]
    times = torch.arange(length, device=clip.device)
    each = fold(fold(keys, 0x31)[:, None], times).flatten()
    play = _grid(each, 1, 14, frame).view(len(clip), length, 1, *frame)
    amount = between(keys, SHIMMER, 0.05, 0.3) * (uniform(fold(keys, 1), SHIMMER) < 0.15)
    return amount[:, None, None, None, None] * play * region[:, None]


def flutter(clip: Int[Tensor, "B"], pictures: Float[Tensor, "B T 3 H W"]) -> Float[Tensor, "B T 3 H W"]:
    """Move a part of the scene to and fro by a pixel or two, in some clips: tape, twigs, flags, cables."""
    keys = fold(clip, CAMERA)
    clips, length, _, height, width = pictures.shape
    each = fold(fold(keys, 0x35)[:, None], torch.arange(length, device=clip.device))
    amount = (2.5 * uniform(keys, FLUTTER) * (uniform(fold(keys, 5), FLUTTER) < 0.25))[:, None]
    moved = _shifted(pictures.flatten(0, 1), (amount * normal(each, 1)).flatten(), (amount * normal(each, 2)).flatten())
    region = _grid(fold(keys, 0x36), 1, 4, (height, width)).mul(30).sub(3).sigmoid()[:, None]  # [B, 1, 1, H, W]
    return torch.lerp(pictures, moved.unflatten(0, (clips, length)), region)


def _shifted(pictures: Float[Tensor, "M 3 H W"], x: Float[Tensor, " M"], y: Float[Tensor, " M"]) -> Tensor:
    """Return pictures shifted by x and y pixels."""
    height, width = pictures.shape[-2:]
    ones, none = torch.ones_like(x), torch.zeros_like(x)
    rows = [torch.stack([ones, none, 2 * x / width], -1), torch.stack([none, ones, 2 * y / height], -1)]
    grid = affine_grid(torch.stack(rows, -2), list(pictures.shape), align_corners=False)
    moved: Tensor = grid_sample(pictures, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return moved


def light(clip: Int[Tensor, "B"], length: int) -> Float[Tensor, "B T"]:
    """Return the brightness of each frame relative to the background picture.

    Flicker, drift and steps occur in 30, 20 and 15 % of the clips.
    """
    keys = fold(clip, CAMERA)
    times = torch.arange(length, device=clip.device)
    each = fold(fold(keys, 0x32)[:, None], times)
    flicker = 0.03 * (uniform(keys, FLICKER) < 0.3)[:, None] * normal(each, FLICKER)
    drift = (0.008 * (uniform(keys, DRIFT) < 0.2) * normal(keys, DRIFT))[:, None] * times
    after = (times >= uniform(keys, WHEN)[:, None] * length).float()
    step = (0.06 * (uniform(keys, STEP) < 0.15) * normal(keys, STEP))[:, None] * after
    return (1 + flicker + drift.clamp(-0.12, 0.12) + step).clamp(0.7, 1.3)


def shaken(clip: Int[Tensor, "B"], scene: Float[Tensor, "B 3 H W"], length: int) -> Float[Tensor, "B T 3 H W"]:
    """Return the scene in every frame, randomly shifted in some clips (standard deviation of at most 0.8 pixels)."""
    keys = fold(clip, CAMERA)
    each = fold(fold(keys, 0x33)[:, None], torch.arange(length, device=clip.device))  # [B, T]
    amount = (0.8 * uniform(fold(keys, 6), SHAKE) * (uniform(keys, SHAKE) < 0.25))[:, None]
    x, y = (amount * normal(each, SHAKE + 40 * axis) for axis in (1, 2))
    many = scene[:, None].expand(-1, length, -1, -1, -1).flatten(0, 1)
    return _shifted(many, x.flatten(), y.flatten()).view(len(clip), length, *scene.shape[1:])


def blurred(clip: Int[Tensor, "B"], pictures: Float[Tensor, "B T 3 H W"]) -> Float[Tensor, "B T 3 H W"]:
    """Blur all pictures of a clip with one Gaussian kernel. Most clips get a kernel too narrow to be noticed."""
    keys = fold(clip, CAMERA)
    width = between(keys, BLUR, 0.3, 1.1) * (uniform(fold(keys, 2), BLUR) < 0.4) + 0.05
    steps = torch.arange(-2, 3, device=clip.device)
    kernel = (-0.5 * (steps / width[:, None]) ** 2).exp()
    kernel = kernel / kernel.sum(1, keepdim=True)  # [B, 5]
    clips, length, channels, height, rest = pictures.shape
    flat = pictures.permute(1, 2, 0, 3, 4).reshape(length * channels, clips, height, rest)  # clips as groups
    across = conv2d(pad(flat, (2, 2, 0, 0), mode="replicate"), kernel[:, None, None, :], groups=clips)
    both = conv2d(pad(across, (0, 0, 2, 2), mode="replicate"), kernel[:, None, :, None], groups=clips)
    return both.view(length, channels, clips, height, rest).permute(2, 0, 1, 3, 4)


class NoiseBank:
    """Gaussian pixel noise, read from one fixed noise picture at random offsets, which is cheap on every device."""

    def __init__(self, device: torch.device) -> None:
        places = torch.arange(NOISE_SIDE**2, device=device)
        self.values = normal(fold(torch.zeros_like(places), places), NOISE)

    def __call__(self, clip: Int[Tensor, "B"], length: int, frame: tuple[int, int]) -> Float[Tensor, "B T 3 H W"]:
        """Return noise whose strength is drawn per clip."""
        keys = fold(clip, CAMERA)
        parts = torch.arange(3 * length, device=clip.device).view(length, 3)
        each = fold(fold(keys, 0x34)[:, None, None], parts)  # [B, T, 3]
        row, column = ((uniform(each, axis) * NOISE_SIDE).long() for axis in (1, 2))
        rows, columns = (torch.arange(side, device=clip.device) for side in frame)
        at_row = (row[..., None] + rows) % NOISE_SIDE
        at_column = (column[..., None] + columns) % NOISE_SIDE
        noise = self.values[at_row[..., :, None] * NOISE_SIDE + at_column[..., None, :]]
        strength = 0.07 * uniform(keys, NOISE) * uniform(fold(keys, 3), NOISE)
        return strength[:, None, None, None, None] * noise


def cosines(device: torch.device) -> Float[Tensor, "8 8"]:
    """Return the matrix of the orthonormal discrete cosine transform (DCT-II) of a row of a block."""
    frequency, place = torch.arange(BLOCK, device=device)[:, None], torch.arange(BLOCK, device=device)
    matrix = ((place + 0.5) * frequency * math.pi / BLOCK).cos() * math.sqrt(2 / BLOCK)
    matrix[0] /= math.sqrt(2)
    return matrix


def compressed(
    clip: Int[Tensor, "B"], pictures: Float[Tensor, "B T 3 H W"], matrix: Float[Tensor, "8 8"]
) -> Float[Tensor, "B T 3 H W"]:
    """Apply the losses of a video codec, in some clips.

    Every block goes through a cosine transform. Changes of its coefficients since the frame before are rounded to steps
    that grow with the frequency, and small changes are dropped.
    """
    keys = fold(clip, CAMERA)
    height, width = pictures.shape[-2:]
    rows, columns = height // BLOCK, width // BLOCK
    blocks = pictures.unflatten(-1, (columns, BLOCK)).unflatten(-3, (rows, BLOCK)).transpose(-3, -2)
    spectrum = matrix @ blocks @ matrix.T  # [B, T, 3, rows, columns, 8, 8]
    frequency = torch.arange(BLOCK, device=clip.device)
    coarse = 0.02 + 0.28 * uniform(keys, CODEC).square()
    step = coarse[:, None, None, None, None, None] * (0.5 + 0.25 * (frequency[:, None] + frequency))
    shown, after = torch.zeros_like(spectrum[:, 0]), []
    for now in spectrum.unbind(1):
        change = (now - shown) / step
        shown = shown + step * (change.abs() + 0.33).floor() * change.sign()
        after.append(shown)
    decoded = matrix.T @ torch.stack(after, 1) @ matrix
    whole = decoded.transpose(-3, -2).flatten(-2).flatten(-3, -2)
    used = uniform(fold(keys, 4), CODEC) < 0.4
    return torch.where(used[:, None, None, None, None], whole, pictures)
