"""How large objects are at each row of a picture: before a camera that looks down, the lower the larger."""

import numpy as np
from jaxtyping import Float

Perspective = tuple[float, float]
"""The size of objects at the upper and at the lower edge of a picture, in sizes of a typical one."""
FLAT: Perspective = (1.0, 1.0)
SMALLEST, LARGEST = 0.4, 3.0
"""Nothing is taken for smaller or larger than this, wherever it is."""
FULL = 4.0
"""The size for which the ruler's channel of a frame is 1: pixels lie between 0 and 1."""


def sizes_at(rows: Float[np.ndarray, "*N"], height: int, perspective: Perspective) -> Float[np.ndarray, "*N"]:
    """How large objects are whose centres lie at these rows (pixel i from i to i + 1) of a picture of this height."""
    top, bottom = perspective
    sizes: np.ndarray = (top + (bottom - top) * rows / height).clip(SMALLEST, LARGEST)
    return sizes
