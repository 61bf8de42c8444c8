"""Run-length encoding of masks in COCO's compressed text format.

A mask is represented by the lengths of its runs down the columns, zeros first. The lengths (counts) are written as a
string of 6-bit characters. From the fourth on, a count is written as its difference from the count two before, because
runs of neighbouring columns are similar. A character holds five bits of a number, the lowest first. Its bit 5 says that
more characters follow. Bit 4 of the last character is the sign.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from scalor.outputs.frame import extent

FIRST_CHARACTER = 48
FIVE_BITS, SIGN, MORE = 0x1F, 0x10, 0x20


def encode(mask: Bool[np.ndarray, "H W"]) -> str:
    """Encode a mask as the `counts` of a COCO segmentation."""
    return to_text(runs(mask).tolist())


def decode(text: str, size: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Decode text that `encode` returned to a mask of height and width `size`."""
    counts = from_text(text)
    values = np.arange(len(counts)) % 2 == 1
    height, width = size
    mask: np.ndarray = values.repeat(counts).reshape(width, height).T
    return mask


def runs(mask: Bool[np.ndarray, "H W"]) -> Int[np.ndarray, " R"]:
    """Return the lengths of runs down the columns, alternately of zeros and ones, zeros first (possibly none)."""
    rows, columns = extent(mask)
    down = mask[rows, columns].T  # [columns, rows]
    edges = np.diff(np.pad(down, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    offset = mask.shape[0] * np.arange(columns.start, columns.stop)[:, None] + np.arange(edges.shape[1]) + rows.start
    starts, ends = offset[edges == 1], offset[edges == -1]
    # Join a run that reaches the bottom of a column with the run at the top of the next column.
    apart = np.flatnonzero(starts[1:] != ends[:-1])
    starts, ends = np.append(starts[:1], starts[apart + 1]), np.append(ends[apart], ends[-1:])
    borders = np.stack([starts, ends], axis=1).ravel()
    counts = np.diff(np.concatenate([[0], borders, [mask.size]]))
    return counts if counts[-1] else counts[:-1]


def to_text(counts: Sequence[int]) -> str:
    """Encode counts as COCO's text."""
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
    """Decode counts from COCO's text."""
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
