"""COCO's run-length masks: lengths of runs down the columns, zeros first, as a string of 6-bit characters.

A count is written as its difference from the count two before (runs of neighbouring columns are alike), five bits
to a character, the lowest first. Bit 5 says that more follow, bit 4 of the last one is the sign.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from scalor.outputs.frame import extent

FIRST_CHARACTER = 48
FIVE_BITS, SIGN, MORE = 0x1F, 0x10, 0x20


def encode(mask: Bool[np.ndarray, "H W"]) -> str:
    """A mask as the `counts` of a COCO segmentation."""
    return to_text(runs(mask).tolist())


def decode(text: str, size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """The mask of height and width `size` that `encode` wrote."""
    counts = from_text(text)
    values = np.arange(len(counts)) % 2 == 1
    height, width = size
    mask: np.ndarray = values.repeat(counts).reshape(width, height).T
    return mask


def runs(mask: Bool[np.ndarray, "H W"]) -> Int[np.ndarray, " R"]:
    """Lengths of runs down the columns, zeros and ones by turns, zeros first (perhaps none)."""
    rows, columns = extent(mask)
    down = mask[rows, columns].T  # [columns, rows]
    edges = np.diff(np.pad(down, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    offset = mask.shape[0] * np.arange(columns.start, columns.stop)[:, None] + np.arange(edges.shape[1]) + rows.start
    starts, ends = offset[edges == 1], offset[edges == -1]
    # A run that reaches the foot of a column goes on at the head of the next.
    apart = np.flatnonzero(starts[1:] != ends[:-1])
    starts, ends = np.append(starts[:1], starts[apart + 1]), np.append(ends[apart], ends[-1:])
    borders = np.stack([starts, ends], axis=1).ravel()
    counts = np.diff(np.concatenate([[0], borders, [mask.size]]))
    return counts if counts[-1] else counts[:-1]


def to_text(counts: Sequence[int]) -> str:
    characters = []
    for place, count in enumerate(counts):
        rest = count - counts[place - 2] if place > 2 else count
        while True:
            bits = rest & FIVE_BITS
            rest >>= 5
            more = rest != (-1 if bits & SIGN else 0)
            characters.append(FIRST_CHARACTER + bits + MORE * more)
            if not more:
                break
    return bytes(characters).decode("ascii")


def from_text(text: str) -> list[int]:
    counts: list[int] = []
    value = shift = 0
    for character in text.encode("ascii"):
        bits = character - FIRST_CHARACTER
        value |= (bits & FIVE_BITS) << shift
        shift += 5
        if not bits & MORE:
            if bits & SIGN:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value = shift = 0
    return counts
