"""PSNR and SSIM of frames: their laws, and a plain computation of one window."""

from itertools import pairwise

import pytest
import torch

from scalor.evaluation.image_quality import psnr, ssim


def test_psnr_is_what_its_definition_says() -> None:
    true = torch.rand(2, 3, 3, 16, 16, generator=torch.Generator().manual_seed(0)) * 0.5
    assert psnr(true + 0.1, true).flatten().tolist() == pytest.approx([20.0] * 6, abs=1e-3)
    assert psnr(true, true).tolist() == [[100.0] * 3] * 2


def test_ssim_is_one_for_the_same_frame_and_falls_with_noise() -> None:
    random = torch.Generator().manual_seed(0)
    true = torch.rand(4, 3, 24, 24, generator=random)
    noise = torch.randn(true.shape, generator=random)
    values = [ssim((true + share * noise).clamp(0, 1), true) for share in (0.0, 0.1, 0.3, 1.0)]
    torch.testing.assert_close(values[0], torch.ones(4))
    for more, less in pairwise(values):
        assert (more > less).all()
    torch.testing.assert_close(ssim(true, true.flip(0)), ssim(true.flip(0), true))


def test_ssim_of_one_window_is_the_formula() -> None:
    random = torch.Generator().manual_seed(1)
    one, other = (torch.rand(1, 11, 11, generator=random, dtype=torch.float64) for _ in range(2))
    steps = torch.arange(11, dtype=torch.float64) - 5
    weights = torch.exp(-(steps**2) / (2 * 1.5**2))
    weights = torch.outer(weights, weights) / weights.sum() ** 2

    def mean(values: torch.Tensor) -> torch.Tensor:
        return (weights * values).sum()

    a, b = mean(one), mean(other)
    variances = mean((one - a) ** 2) + mean((other - b) ** 2)
    covariance = mean((one - a) * (other - b))
    expected = (2 * a * b + 1e-4) * (2 * covariance + 9e-4) / ((a**2 + b**2 + 1e-4) * (variances + 9e-4))
    assert float(ssim(one, other)) == pytest.approx(float(expected), abs=1e-5)
