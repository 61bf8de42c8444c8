"""Random numbers by counting: a draw is a hash of what it is for, never of what was drawn before.

A clip's draws depend only on (seed, split, index, object, draw number), so a clip is the same in any batch
and on any device. All of it is whole-number arithmetic on int64 tensors that hold 32-bit values.
"""

import math
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.errors import InputError

Bits = TypeVar("Bits", int, Tensor)

SPLITS = ("train", "test")
WORD = 0xFFFFFFFF
# Odd and below 2^31, so that a product with a 32-bit value never overflows int64. Chosen out of random pairs:
# flipping one input bit flips every output bit with probability 1/2, up to the noise of 40,000 trials.
FIRST_FACTOR = 0x4062E12B
SECOND_FACTOR = 0x4D1B2A2F
# Keeps 0 from being its own hash.
OFFSET = 0x9E3779B9
# Draws are numbered from here on, so that none is the key of a part.
DRAWS = 0x80000000
# Added to a draw's number for the second uniform number of a normal one.
SECOND = 0x5EC0


def mix(bits: Bits) -> Bits:
    """A one-to-one scramble of 32-bit values."""
    bits = bits ^ (bits >> 16)
    bits = (bits * FIRST_FACTOR) & WORD
    bits = bits ^ (bits >> 15)
    bits = (bits * SECOND_FACTOR) & WORD
    return bits ^ (bits >> 16)


def number(value: Bits) -> Bits:
    """A scrambled 32-bit value for any whole number, so that neighbours have nothing in common."""
    return mix((value + OFFSET) & WORD)


def key(seed: int, split: str, index: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """The key of each clip. Two indices of one seed and split never share a key (below 2^32)."""
    if split not in SPLITS:
        raise InputError(f"split is {split!r}: choose train or test.")
    root = mix(number(seed) ^ number(SPLITS.index(split) + 1))
    return mix(number(index) ^ root)


def fold(keys: Int[Tensor, "..."], value: Bits) -> Int[Tensor, "..."]:
    """The keys of the `value`-th part of each thing (an object of a clip, a look of an object)."""
    return mix(keys ^ number(value))


def uniform(keys: Int[Tensor, "*shape"], draw: int) -> Float[Tensor, "*shape"]:
    """The `draw`-th number of each key, uniform in [0, 1): 24 bits, which float32 holds exactly."""
    return (mix(keys ^ number(draw + DRAWS)) >> 8).float() * 2.0**-24


def between(keys: Int[Tensor, "*shape"], draw: int, low: float, high: float) -> Float[Tensor, "*shape"]:
    """The `draw`-th number of each key, uniform in [low, high)."""
    return low + (high - low) * uniform(keys, draw)


def whole(keys: Int[Tensor, "*shape"], draw: int, count: int) -> Int[Tensor, "*shape"]:
    """The `draw`-th number of each key, uniform among 0, 1, ... count - 1."""
    return (uniform(keys, draw) * count).long().clamp(max=count - 1)


def normal(keys: Int[Tensor, "*shape"], draw: int) -> Float[Tensor, "*shape"]:
    """Draw standard normal numbers, the `draw`-th of each key (Box and Muller's transform of two uniform ones)."""
    radius = (-2 * (1 - uniform(keys, draw)).log()).sqrt()
    return radius * (2 * math.pi * uniform(fold(keys, draw + SECOND), draw)).cos()


def choose(number: Float[Tensor, "*shape"], shares: tuple[float, ...]) -> Int[Tensor, "*shape"]:
    """Choose one of as many kinds as there are shares (which add up to 1) for each uniform number in [0, 1)."""
    total, kind = 0.0, torch.zeros_like(number, dtype=torch.long)
    for share in shares[:-1]:
        total += share
        kind = kind + (number >= total)
    return kind
