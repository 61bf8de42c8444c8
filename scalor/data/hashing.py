"""Counter-based random numbers: each draw is a hash of its purpose and does not depend on earlier draws.

A clip's draws depend only on (seed, split, index, object, draw number), so a clip is the same in any batch and on any
device. Hashes are integer arithmetic on int64 tensors that hold 32-bit values.
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
# Both are odd and below 2^31, so that a product with a 32-bit value never overflows int64. Chosen among random pairs:
# flipping one input bit flips every output bit with probability 1/2, up to the noise of 40,000 trials.
FIRST_FACTOR = 0x4062E12B
SECOND_FACTOR = 0x4D1B2A2F
# Added to every number so that the hash of 0 is not 0.
OFFSET = 0x9E3779B9
# Draw numbers start here, so that no draw shares a hash with the key of a part.
DRAWS = 0x80000000
# Added to a draw's number to get the second uniform number that a normal number needs.
SECOND = 0x5EC0


def mix(bits: Bits) -> Bits:
    """Hash 32-bit values one to one."""
    bits = bits ^ (bits >> 16)
    bits = (bits * FIRST_FACTOR) & WORD
    bits = bits ^ (bits >> 15)
    bits = (bits * SECOND_FACTOR) & WORD
    return bits ^ (bits >> 16)


def number(value: Bits) -> Bits:
    """Hash any integer to a 32-bit value, so that neighbouring integers give unrelated values."""
    return mix((value + OFFSET) & WORD)


def key(seed: int, split: str, index: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
    """Return the key of each clip. Different indices (below 2^32) of one seed and split never share a key."""
    if split not in SPLITS:
        raise InputError(f"split is {split!r}: choose train or test.")
    root = mix(number(seed) ^ number(SPLITS.index(split) + 1))
    return mix(number(index) ^ root)


def fold(keys: Int[Tensor, "..."], value: Bits) -> Int[Tensor, "..."]:
    """Return the keys of part number `value`, for example an object of a clip or the appearance of an object."""
    return mix(keys ^ number(value))


def uniform(keys: Int[Tensor, "*shape"], draw: int) -> Float[Tensor, "*shape"]:
    """Return draw number `draw` of each key, uniform in [0, 1): 24 bits, which float32 holds exactly."""
    return (mix(keys ^ number(draw + DRAWS)) >> 8).float() * 2.0**-24


def between(keys: Int[Tensor, "*shape"], draw: int, low: float, high: float) -> Float[Tensor, "*shape"]:
    """Return draw number `draw` of each key, uniform in [low, high)."""
    return low + (high - low) * uniform(keys, draw)


def whole(keys: Int[Tensor, "*shape"], draw: int, count: int) -> Int[Tensor, "*shape"]:
    """Return draw number `draw` of each key, uniform among the integers 0 to count - 1."""
    return (uniform(keys, draw) * count).long().clamp(max=count - 1)


def normal(keys: Int[Tensor, "*shape"], draw: int) -> Float[Tensor, "*shape"]:
    """Return draw number `draw` of each key, standard normal (Box-Muller transform of two uniform numbers)."""
    radius = (-2 * (1 - uniform(keys, draw)).log()).sqrt()
    return radius * (2 * math.pi * uniform(fold(keys, draw + SECOND), draw)).cos()


def choose(number: Float[Tensor, "*shape"], shares: tuple[float, ...]) -> Int[Tensor, "*shape"]:
    """Map each uniform number in [0, 1) to one of several kinds with these probabilities (they add up to 1)."""
    total, kind = 0.0, torch.zeros_like(number, dtype=torch.long)
    for share in shares[:-1]:
        total += share
        kind = kind + (number >= total)
    return kind
