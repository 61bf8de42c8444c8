"""SCALOR of one version always computes the same, so that the version in a checkpoint stands for all its constants.

If a change of the code changes these figures, raise `MODEL_VERSION` and add the figures of the new version. Print them
with `python -m tests.model.test_version`.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

import scalor
from scalor import SCALOR
from scalor.config import MODEL_VERSION, SceneConfig
from scalor.data.scenes import Scenes
from scalor.model import glimpses, lesson
from scalor.nn.distributions import Noise
from scalor.nn.interface import Annealed

FIGURES: dict[int, dict[str, float]] = {
    1: {
        "elbo": 47110.2,
        "log_likelihood": 48235.1,
        "kl_discovered_presence": 101.45,
        "kl_discovered_where": 106.316,
        "kl_discovered_what": 335.936,
        "kl_discovered_depth": 104.639,
        "kl_propagated_presence": 0.732796,
        "kl_propagated_where": 142.004,
        "kl_propagated_what": 323.16,
        "kl_propagated_depth": 10.6814,
        "kl_background": 0,
        "objects": 3.9375,
        "discovered": 1.375,
        "turned_away": 0,
        "crowded_out": 0.4375,
        "rejected": 1.54167,
        "foreground": 0.133475,
        "squared_error": 0.0029015,
        "lesson_found": 8.90938,
        "lesson_found_place": 1.81078,
        "lesson_kept": 1.64447,
        "lesson_kept_place": 2.78186,
        "lesson_mask": 3.89653,
        "lesson_depth": 0.160687,
    }
}
"""Terms of the bound and of the supervised losses, means over clips, by version."""


def figures(**changes: Any) -> dict[str, float]:
    """Return the terms of the universal weights on composed clips, with some settings of the model changed."""
    loaded = scalor.load("any")
    model = SCALOR(replace(loaded.config, **changes)).eval()
    model.load_state_dict(loaded.state_dict())
    scene = SceneConfig(kind="composed", length=6, objects=(0, 12), size=18.0)
    clip = Scenes(scene, 0, "test").clips(0, 8)
    random = torch.Generator().manual_seed(0)
    normals, uniforms = model.noise_per_frame(scene.frame)
    noise = Noise(torch.randn(6, 8, normals, generator=random), torch.rand(6, 8, uniforms, generator=random))
    now = Annealed(torch.tensor(0.3), torch.tensor(0.01), cut_gradients=False)
    with torch.no_grad():
        found = model.bound(clip.observation, noise, now, clip.truth)
    terms: dict[str, Tensor] = {"elbo": found.elbo, **found.numbers}
    return {name: float(value.mean()) for name, value in terms.items()}


def test_the_bound_of_a_version_never_changes() -> None:
    assert figures() == pytest.approx(FIGURES[MODEL_VERSION], rel=1e-3)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (glimpses, "MASK_THRESHOLD", 0.9),
        (lesson, "MARGIN", 1.2),
        (lesson, "LOST_AT", 0.6),
        (lesson, "GONE", 0.3),
        (lesson, "NEIGHBOUR", 0.2),
        (lesson, "DEPTH", 0.4),
        (lesson, "SHARP", 0.2),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_change_of_a_constant_is_noticed(
    module: object, name: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    assert figures() != pytest.approx(FIGURES[MODEL_VERSION], rel=1e-3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search_scale", 1.5),
        ("explained_mask", 0.6),
        ("sibling_cover", 0.4),
        ("sibling_neighbours", 1),
        ("duplicate_iou", 0.01),
        ("duplicate_what", 50.0),
        ("prior_bias", 3.0),
        ("posterior_bias", 1.0),
    ],
)
def test_every_threshold_and_bias_of_the_settings_is_used(name: str, value: float) -> None:
    more = {"duplicate_iou": {"duplicate_what": 50.0}, "duplicate_what": {"duplicate_iou": 0.01}}.get(name, {})
    assert figures(**{name: value}, **more) != pytest.approx(figures(**more), rel=1e-4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for term, figure in figures().items():
        print(f'"{term}": {figure:.6g},')
