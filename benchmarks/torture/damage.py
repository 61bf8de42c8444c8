"""Ways to damage a file: bytes, by a seeded generator of random numbers, so that a case can be made again."""

from collections.abc import Callable
from random import Random

Damage = Callable[[bytes, Random], bytes]

HEAD = 512
"""Bytes at the beginning of a file in which headers stand."""


def truncate(data: bytes, random: Random) -> bytes:
    """Cut off the end, as when a disk is full or a download stops."""
    return data[: random.randrange(len(data))]


def cut_start(data: bytes, random: Random) -> bytes:
    """Cut off the start."""
    return data[random.randrange(1, len(data)) :]


def flip_bits(data: bytes, random: Random) -> bytes:
    """Flip one to fifty single bits."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 5, 50))):
        changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def flip_head(data: bytes, random: Random) -> bytes:
    """Change one to four bytes of the header."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        changed[random.randrange(min(HEAD, len(data)))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
    return bytes(changed)


def zero_block(data: bytes, random: Random) -> bytes:
    """Overwrite a block with zeros, as after a crash of the file system."""
    start, length = block(data, random)
    return data[:start] + bytes(length) + data[start + length :]


def random_block(data: bytes, random: Random) -> bytes:
    """Overwrite a block with random bytes."""
    start, length = block(data, random)
    return data[:start] + random.randbytes(length) + data[start + length :]


def remove_block(data: bytes, random: Random) -> bytes:
    """Leave out a block."""
    start, length = block(data, random)
    return data[:start] + data[start + length :]


def repeat_block(data: bytes, random: Random) -> bytes:
    """Repeat a block."""
    start, length = block(data, random)
    return data[: start + length] + data[start:]


def append_rubbish(data: bytes, random: Random) -> bytes:
    """Append random bytes."""
    return data + random.randbytes(random.choice((1, 100, 10_000)))


def nothing(data: bytes, random: Random) -> bytes:
    """Leave no byte."""
    return b""


def only_noise(data: bytes, random: Random) -> bytes:
    """Replace everything with random bytes."""
    return random.randbytes(len(data))


def block(data: bytes, random: Random) -> tuple[int, int]:
    """Return start and length of a block: from a few bytes to a third of the file."""
    length = min(len(data), max(1, int(len(data) * random.choice((0.001, 0.01, 0.1, 0.33)))))
    return random.randrange(len(data) - length + 1), length


COMMON: tuple[Damage, ...] = (truncate, truncate, flip_bits, flip_head, zero_block, random_block, remove_block)
RARE: tuple[Damage, ...] = (cut_start, repeat_block, append_rubbish, nothing, only_noise)


def pick(random: Random) -> Damage:
    """Choose a kind of damage; rare ones less often."""
    return random.choice(COMMON if random.random() < 0.8 else RARE)
