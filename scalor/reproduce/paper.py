"""Quoted numbers: those of the paper, and those of a classical tracker, shown until ours is measured.

The paper's numbers are for its own data, which was never released. Scores are fractions, where the paper gives per
cent. Every number is listed under the setting of `catalogue` that it belongs to.
"""

from dataclasses import dataclass

TRACKING_SOURCE = "Table 1"
LIKELIHOOD_SOURCE = "Table 2"
NATURAL_SOURCE = "Section 5.2"
CURVES_SOURCE = "Figure 8"
"""Source of ablation (a, b) and efficiency (c, d), for which the paper gives no numbers."""


@dataclass(frozen=True)
class Tracked:
    """A row of Table 1."""

    mota: float
    precision: float
    recall: float
    count_mae: float


@dataclass(frozen=True)
class Likely:
    """The entries of one method and one data set in Table 2."""

    nll: float
    mse: float


@dataclass(frozen=True)
class Classical:
    """MOTA of another colour-aware classical tracker on 24 clips of our shapes."""

    paper_mota: float
    strict_mota: float


TRACKING = {
    "shapes-vld": Tracked(0.938, 0.963, 0.989, 0.067),
    "shapes-ld": Tracked(0.925, 0.979, 0.949, 0.059),
    "shapes-md": Tracked(0.935, 0.978, 0.959, 0.041),
    "shapes-hd": Tracked(0.928, 0.976, 0.954, 0.033),
    "shapes-vhd": Tracked(0.846, 0.968, 0.881, 0.091),
    "mnist-vld": Tracked(0.948, 0.977, 0.988, 0.040),
    "mnist-ld": Tracked(0.859, 0.990, 0.871, 0.124),
    "mnist-md": Tracked(0.869, 0.990, 0.879, 0.113),
    "shapes-background": Tracked(0.919, 0.972, 0.953, 0.034),
    "shapes-length": Tracked(0.923, 0.970, 0.957, 0.032),
    "sqair-shapes-vld": Tracked(0.725, 0.984, 0.754, 0.239),
    "sqair-shapes-ld": Tracked(0.202, 0.976, 0.641, 0.335),
    "sqair-mnist-vld": Tracked(0.785, 0.999, 0.788, 0.214),
}
LIKELIHOOD = {
    "shapes-vld": Likely(22.16, 0.0010),
    "shapes-ld": Likely(22.41, 0.0030),
    "shapes-md": Likely(22.56, 0.0024),
    "shapes-hd": Likely(22.88, 0.0015),
    "mnist-vld": Likely(7.45, 0.0029),
    "mnist-ld": Likely(7.54, 0.0026),
    "mnist-md": Likely(7.82, 0.0010),
    "vrnn-shapes-vld": Likely(22.33, 0.0018),
    "vrnn-shapes-ld": Likely(22.80, 0.0071),
    "vrnn-shapes-md": Likely(23.28, 0.0105),
    "vrnn-shapes-hd": Likely(23.30, 0.0190),
    "vrnn-mnist-vld": Likely(7.62, 0.0022),
    "vrnn-mnist-ld": Likely(7.70, 0.0054),
    "vrnn-mnist-md": Likely(7.71, 0.0035),
    "sqair-shapes-vld": Likely(22.63, 0.0135),
    "sqair-shapes-ld": Likely(40.50, 0.0918),
    "sqair-mnist-vld": Likely(7.75, 0.0084),
}
NATURAL_NLL = {
    "grand-central-replay": 28.30,
    "vrnn-grand-central-replay": 27.79,
    "vae-grand-central-replay": 27.59,
}
"""NLL of the real video, listed under the settings of its semi-synthetic replay."""
ABLATION = {
    "paper-shapes-ablation": "propagation rate rises to 1",
    "paper-shapes-ablation-rejection": "propagation rate rises to 1",
    "paper-shapes-ablation-attention": "propagation rate about .95, but many re-discoveries",
    "paper-shapes-ablation-neither": "propagation rate falls to .30 and lower",
}
EFFICIENCY = "In the paper the time of SCALOR does not grow with the number of objects, that of SQAIR grows linearly."

CLASSICAL = {
    "shapes-vld": Classical(0.981, 0.981),
    "shapes-ld": Classical(0.938, 0.937),
    "shapes-md": Classical(0.907, 0.902),
    "shapes-hd": Classical(0.877, 0.871),
    "shapes-vhd": Classical(0.858, 0.848),
}
