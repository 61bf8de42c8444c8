"""Records of several frames as one."""

from typing import NamedTuple

import torch
from torch import Tensor

from scalor.data.observation import Observation
from scalor.nn.distributions import Mode, Normal
from scalor.nn.records import concatenate
from tests.model.worlds import squares, tiny_model


class Inner(NamedTuple):
    normal: Normal
    flag: Tensor


class Record(NamedTuple):
    number: Tensor
    inner: Inner


def records(frames: int, clips: int) -> list[Record]:
    return [
        Record(
            torch.randn(clips, 5),
            Inner(Normal(torch.randn(clips, 2, 3), torch.rand(clips, 2, 3)), torch.rand(clips) > 0.5),
        )
        for _ in range(frames)
    ]


def leaves(record: object) -> list[Tensor]:
    """All tensors of a record of records, in order."""
    if isinstance(record, Tensor):
        return [record]
    parts = (record.mean, record.std) if isinstance(record, Normal) else record
    return [leaf for part in parts for leaf in leaves(part)]  # type: ignore[attr-defined]


def test_records_put_together_come_apart_again() -> None:
    frames = records(frames=3, clips=4)
    whole = concatenate(frames)
    assert type(whole) is Record
    assert type(whole.inner) is Inner
    assert type(whole.inner.normal) is Normal
    apart = [leaf.unflatten(0, (3, 4)).unbind(0) for leaf in leaves(whole)]
    assert len(apart) == 4
    for t, frame in enumerate(frames):
        for part, leaf in zip(apart, leaves(frame), strict=True):
            assert torch.equal(part[t], leaf)


def test_one_record_together_is_itself() -> None:
    (frame,) = records(frames=1, clips=2)
    for part, leaf in zip(leaves(concatenate([frame])), leaves(frame), strict=True):
        assert torch.equal(part, leaf)


def test_gradients_go_back_to_the_frame_they_came_from() -> None:
    frames = [torch.zeros(2, 3, requires_grad=True) for _ in range(3)]
    gradients = torch.autograd.grad(concatenate(frames).unflatten(0, (3, 2))[1].sum(), frames)
    assert [float(gradient.sum()) for gradient in gradients] == [0, 6, 0]


def test_what_a_model_saw_comes_apart_again() -> None:
    model, video = tiny_model(), squares(4, clips=2)
    with torch.no_grad():
        seen = model.elbo(Observation(video), Mode()).steps
    later = [one.propagated for one in seen if one.propagated]
    assert len(later) == 3
    whole = concatenate(later)
    assert torch.equal(whole.posterior.mean.unflatten(0, (3, 2))[1], later[1].posterior.mean)
    assert torch.equal(whole.entered.newborn.unflatten(0, (3, 2))[2], later[2].entered.newborn)
    proposals = [one.proposals for one in seen[1:]]
    for t, one in enumerate(proposals):
        assert torch.equal(concatenate(proposals).cells.unflatten(0, (3, 2))[t], one.cells)
