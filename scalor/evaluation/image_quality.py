"""Quality of predicted frames: PSNR and SSIM, as the literature on video prediction reports them.

LPIPS is not here: it needs the weights of a network that was trained on labelled photographs.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d

WINDOW, SPREAD = 11, 1.5
"""Side and standard deviation of SSIM's Gaussian window, pixels."""
LUMINANCE, CONTRAST = 0.01**2, 0.03**2
"""SSIM's constants for pixels in [0, 1]."""
SMALLEST = 1e-10
"""Smallest mean squared error, so that a perfect frame has a finite PSNR of 100 dB."""


def psnr(predicted: Float[Tensor, "*shape C H W"], true: Float[Tensor, "*shape C H W"]) -> Float[Tensor, "*shape"]:
    """Return the peak signal-to-noise ratio of each frame in dB, with pixels in [0, 1]."""
    error = (predicted.float() - true.float()).square().mean((-3, -2, -1))
    return -10 * error.clamp(min=SMALLEST).log10()


def ssim(predicted: Float[Tensor, "*shape C H W"], true: Float[Tensor, "*shape C H W"]) -> Float[Tensor, "*shape"]:
    """Return the structural similarity of each frame (Wang et al. 2004): the mean over channels and windows.

    Windows lie within the frame, so frames must have at least `WINDOW` rows and columns.
    """
    shape, size = true.shape[:-3], true.shape[-2:]
    one, other = (frames.double().reshape(-1, 1, *size) for frames in (predicted, true))  # variances are differences
    mean_one, mean_other = blur(one), blur(other)
    variance_one = blur(one * one) - mean_one**2
    variance_other = blur(other * other) - mean_other**2
    covariance = blur(one * other) - mean_one * mean_other
    light = (2 * mean_one * mean_other + LUMINANCE) / (mean_one**2 + mean_other**2 + LUMINANCE)
    structure = (2 * covariance + CONTRAST) / (variance_one + variance_other + CONTRAST)
    return (light * structure).mean((-3, -2, -1)).view(*shape, -1).mean(-1).float()


def blur(frames: Float[Tensor, "N 1 H W"]) -> Float[Tensor, "N 1 h w"]:
    """Return the Gaussian mean of each window that lies within the frame."""
    steps = torch.arange(WINDOW, device=frames.device) - WINDOW // 2
    weights = torch.exp(-(steps.to(frames.dtype) ** 2) / (2 * SPREAD**2))
    weights = weights / weights.sum()
    return conv2d(conv2d(frames, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
