"""Anti-aliased squares, ellipses and hearts, each with its own fixed rotation, and their saturated colours.

A shape is the set of points where its signed distance d (pixels) is negative. A pixel's alpha is clamp(0.5 - d, 0, 1)
at its centre, which is the covered share of the pixel for a straight edge.

Sizes, for an object of size s: the square's side is 0.8 s (its box is 0.8 to 1.13 s wide, depending on the rotation),
the ellipse's axes are s and 0.65 s, the heart is s wide. A shape is placed by the centre of its box.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from scalor.data.hashing import between, fold, uniform, whole

SQUARE, ELLIPSE, HEART = range(3)
# Numbers of draws and the key of a part, see `hashing`.
KIND, TURN, HUE, SATURATION, VALUE = range(5)
LOOK = 0x5AFE
FAR = 1e4  # pixels: added to the distance from the kinds of shape that an object does not have

SQUARE_HALF = 0.4
ELLIPSE_HALF = (0.5, 0.325)
# A heart is a square standing on its corner with a disc on each of its two upper sides. Its width is (1 + 1/sqrt 2)
# times the square's side; the discs' centres are HEART_LOBE from both axes and their radius is HEART_HALF.
HEART_SIDE = 1 / (1 + math.sqrt(0.5))
HEART_HALF = HEART_SIDE / 2
HEART_LOBE = HEART_SIDE * math.sqrt(0.125)
HEART_TIP = HEART_SIDE * math.sqrt(0.5)


class Shapes:
    """Appearance of shapes, chosen by each object's key. N objects of B clips, in S by S windows of T frames."""

    reach = SQUARE_HALF * math.sqrt(2)
    """Largest distance along an axis of any point of a shape of size 1 from the centre of its box."""

    def half(self, keys: Int[Tensor, "N B"], size: Float[Tensor, "N B"]) -> Float[Tensor, "N B 2"]:
        """Return half the width and half the height of each shape's box, pixels."""
        high, low = self._extent(keys)
        return (high - low) / 2 * size[..., None]

    def alpha(
        self,
        keys: Int[Tensor, "N B"],
        size: Float[Tensor, "N B"],
        x: Float[Tensor, "N B T S"],
        y: Float[Tensor, "N B T S"],
    ) -> Float[Tensor, "N B T S S"]:
        """Return the coverage of pixels whose centres lie x and y from the centre of the shape's box, rows first."""
        high, low = self._extent(keys)
        middle = (high + low) / 2 * size[..., None]  # [N, B, 2], box centre, from the formula's origin
        x = x + middle[..., 0, None, None]
        y = y + middle[..., 1, None, None]
        cos, sin = (part[..., None, None] for part in self._turn(keys))
        # The shape's own axes: u to its right, v upwards from the tip of a heart.
        u = ((x * cos)[..., None, :] + (y * sin)[..., :, None]).abs_()  # every shape is symmetric about v
        v = (y * cos)[..., :, None] - (x * sin)[..., None, :]
        kind = whole(fold(keys, LOOK), KIND, 3)
        chosen = torch.stack([torch.where(kind == each, 0.0, FAR) for each in range(3)])
        far = chosen[..., None, None, None]
        s = size[..., None, None, None]
        # Minimum over three kinds, two of which are FAR away: cheaper than selecting pixel by pixel.
        distance = torch.minimum(_square(u, v, s, far[SQUARE]), _heart(u, v, s, far[HEART]))
        distance = torch.minimum(distance, _ellipse(u, v, s, far[ELLIPSE]))
        return distance.neg_().add_(0.5).clamp_(0, 1)

    def _turn(self, keys: Int[Tensor, "N B"]) -> tuple[Float[Tensor, "N B"], Float[Tensor, "N B"]]:
        angle = uniform(fold(keys, LOOK), TURN) * (2 * math.pi)
        return angle.cos(), angle.sin()

    def _extent(self, keys: Int[Tensor, "N B"]) -> tuple[Float[Tensor, "N B 2"], Float[Tensor, "N B 2"]]:
        """Return the highest and lowest x and y of each shape of size 1, from the origin of its formula."""
        cos, sin = self._turn(keys)
        # The unit vectors along u and along v, in x and y.
        along_u = torch.stack((cos, sin), -1)
        along_v = torch.stack((-sin, cos), -1)
        kind = whole(fold(keys, LOOK), KIND, 3)[..., None]
        square = SQUARE_HALF * (along_u.abs() + along_v.abs())
        ellipse = ((ELLIPSE_HALF[0] * along_u) ** 2 + (ELLIPSE_HALF[1] * along_v) ** 2).sqrt()
        even = torch.where(kind == SQUARE, square, ellipse)
        lobes = HEART_LOBE * along_u.abs()
        high = torch.maximum(lobes + HEART_LOBE * along_v + HEART_HALF, -HEART_TIP * along_v)
        low = -torch.maximum(lobes - HEART_LOBE * along_v + HEART_HALF, HEART_TIP * along_v)
        return torch.where(kind == HEART, high, even), torch.where(kind == HEART, low, -even)


def _square(u: Tensor, v: Tensor, size: Tensor, far: Tensor) -> Tensor:
    return torch.maximum(u, v.abs()).sub_(SQUARE_HALF * size - far)


def _ellipse(u: Tensor, v: Tensor, size: Tensor, far: Tensor) -> Tensor:
    """Return f / |grad f| for f = |p / axes| - 1. It is exact on the edge, the only place where it matters."""
    across, along = (1 / (half * size) ** 2 for half in ELLIPSE_HALF)
    u, v = u.square(), v.square()
    ring = (u * across).add_(v * along).sqrt_().clamp_(min=1e-6)  # avoids 0 / 0 at the centre
    slope = u.mul_(across**2).add_(v.mul_(along**2)).sqrt_().clamp_(min=1e-6)
    return (ring - 1).mul_(ring).div_(slope).add_(far)


def _heart(u: Tensor, v: Tensor, size: Tensor, far: Tensor) -> Tensor:
    corner = v.abs().add_(u).mul_(math.sqrt(0.5))
    lobe = (u - HEART_LOBE * size).square_().add_((v - HEART_LOBE * size).square_()).sqrt_()
    return torch.minimum(corner, lobe).sub_(HEART_HALF * size - far)


def colours(keys: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape 3"]:
    """Return a saturated colour per object: any hue, saturation of 0.75 to 1, value of 0.8 to 1."""
    look = fold(keys, LOOK)
    wheel = uniform(look, HUE)[..., None] * 6
    # Hue to RGB: a channel is 1 within a sixth of the colour wheel from its primary, and falls to 0 at two sixths.
    turns = torch.stack([(wheel[..., 0] + shift) % 6 for shift in (0.0, 4.0, 2.0)], -1)
    pure = ((turns - 3).abs() - 1).clamp(0, 1)
    saturation = between(look, SATURATION, 0.75, 1.0)[..., None]
    value = between(look, VALUE, 0.8, 1.0)[..., None]
    return value * (1 - saturation * (1 - pure))
