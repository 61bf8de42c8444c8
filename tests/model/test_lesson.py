"""The lesson compares what was inferred with the truth: it is least where they agree, and slots keep to their own."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from scalor.config import ModelConfig, SceneConfig
from scalor.data.clip import Truth
from scalor.data.observation import Observation
from scalor.data.scenes import Scenes
from scalor.model.lesson import LESSON_TERMS, at_frame, bind, ious, owners, teach
from scalor.model.scalor import SCALOR
from scalor.model.time_step import PosteriorStep
from scalor.nn.distributions import Mode
from tests.layers import linear

MODEL = ModelConfig(
    frame=(32, 32), grid=(8, 8), slots=4, proposals=3, object_size=(8.0, 8.0), size_range=0.7, memory=False, still=True
)
SCENE = SceneConfig(kind="composed", frame=(32, 32), length=4, objects=(1, 3), size=8.0)


@pytest.fixture
def model() -> SCALOR:
    torch.manual_seed(0)
    return SCALOR(MODEL)


def seen_clip(model: SCALOR) -> tuple[list[PosteriorStep], Observation, Truth]:
    clip = Scenes(SCENE, seed=0).clips(0, 5)
    return model.elbo(clip.observation, Mode()).steps, clip.observation, clip.truth


def test_all_terms_are_finite_and_not_negative(model: SCALOR) -> None:
    terms = teach(model, *seen_clip(model))
    assert tuple(terms.to_dict()) == LESSON_TERMS
    for value in terms.to_dict().values():
        assert value.shape == (5,)
        assert (value >= 0).all()
        assert value.isfinite().all()
    assert torch.allclose(terms.total, torch.stack(list(terms.to_dict().values())).sum(0))


def test_gradients_reach_discovery_and_masks() -> None:
    torch.manual_seed(0)
    model = SCALOR(replace(MODEL, slots=64))  # so that every cell is looked at closely
    teach(model, *seen_clip(model)).total.sum().backward()
    first = next(layer for layer in model.encoder.look.modules() if isinstance(layer, nn.Conv2d))
    for part in (model.discovery.heads, first, linear(model.appearance.decoder.each, 0)):
        assert part.weight.grad is not None
        assert float(part.weight.grad.abs().sum()) > 0


def test_presence_where_objects_are_costs_less_than_elsewhere(model: SCALOR) -> None:
    seen, frames, truth = seen_clip(model)
    first = seen[:1]
    target = at_frame(truth, 0)
    middle = (target.box[..., :2] + target.box[..., 2:]) / 2
    cell = (middle[..., 1] // 4).long().clamp(0, 7) * 8 + (middle[..., 0] // 4).long().clamp(0, 7)
    wanted = target.there & (target.visible > 0.25)
    right = torch.full((5, 65), -6.0).scatter(1, torch.where(wanted, cell, 64), 6.0)[:, :64]

    def loss(logits: Tensor) -> float:
        told = [one._replace(proposals=one.proposals._replace(logits=logits)) for one in first]
        return float(teach(model, told, frames[:, :1], truth).lesson_found.sum())

    assert loss(right) < 0.1 * loss(-right)
    assert loss(right) < loss(torch.full((5, 64), -6.0))


def test_a_slot_belongs_to_the_object_that_it_was_born_on_until_it_is_far_away(model: SCALOR) -> None:
    seen, _, truth = seen_clip(model)
    targets = [at_frame(truth, t) for t in range(4)]
    box = torch.tensor([[[2.0, 2, 12, 12], [18, 18, 28, 28], [40, 40, 50, 50]]]).expand(5, 3, 4)
    targets = [t._replace(box=box, visible=torch.ones(5, 3), there=torch.ones(5, 3) > 0) for t in targets]

    def state(one: PosteriorStep, where: list[list[float]], ids: list[int], new: list[bool]) -> PosteriorStep:
        old = one.state
        slots = torch.tensor(where).expand(5, 4, 4)
        return one._replace(
            state=replace(
                old,
                objects=replace(old.objects, where=slots),
                id=torch.tensor(ids).expand(5, 4),
                discovered=torch.tensor(new).expand(5, 4),
            )
        )

    at_first, at_second, nowhere, far = [7.0, 7, 10, 10], [23.0, 23, 10, 10], [60.0, 2, 5, 5], [7.0, 30, 10, 10]
    story = [
        state(seen[0], [at_first, at_first, nowhere, nowhere], [0, 1, -1, -1], [True, True, False, False]),
        # Slot 0 moves onto the second object: it is lost, not that object's.
        state(seen[1], [at_second, at_first, nowhere, nowhere], [0, 1, -1, -1], [False] * 4),
        state(seen[2], [at_second, far, at_second, nowhere], [0, 1, 2, -1], [False, False, True, False]),
        state(seen[3], [at_second, far, at_second, nowhere], [0, 1, 2, -1], [False] * 4),
    ]
    bindings = bind(model, story, targets)
    assert bindings[0].target[0].tolist() == [-1] * 4
    assert not bindings[0].alive.any()
    assert sorted(bindings[1].target[0].tolist()) == [-1, -1, 0, 0] or bindings[1].target[0].tolist()[:2] == [0, 0]
    assert bindings[2].target[0, 0] == -1  # 16 px away from its own object, twice a typical size
    assert bindings[3].target[0, 2] == 1  # a newborn on a free object
    assert bindings[3].target[0, 1] == -1


def test_overlaps_agree_with_areas() -> None:
    one = torch.tensor([[[0.0, 0, 4, 4], [10, 10, 12, 12]]])
    assert torch.allclose(ious(one, one)[0], torch.eye(2))
    half = torch.tensor([[[0.0, 0, 4, 2]]])
    assert torch.allclose(ious(half, one)[0], torch.tensor([[0.5, 0.0]]))


def test_samples_of_a_glimpse_show_the_pixels_below_them() -> None:
    owner = torch.arange(36).view(1, 6, 6)
    shown = owners(owner, torch.tensor([[[3.0, 3.0, 6.0, 6.0], [0.0, 0.0, 2.0, 2.0]]]), 6)
    assert torch.equal(shown[0, 0], owner[0])
    assert (shown[0, 1, :3] == -2).all()  # outside the frame
    assert shown[0, 1, 5, 5] == 0
