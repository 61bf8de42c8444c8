"""Distances of paired centres over a rollout, on small stories, and the whole measurement with an untrained model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from scalor.data import balls
from scalor.data.clip import Truth
from scalor.evaluation.rollouts import evaluate_rollouts, pair_distances
from scalor.nn.interface import Tracker
from scalor.presets import build, get_preset
from scalor.tracks import Tracks

SIDE = 100


def truth(*paths: list[tuple[float, float]], gone: dict[tuple[int, int], int] | None = None) -> Truth:
    """One clip; each path is the centre of an object in every frame. `gone` has new ids, by (object, frame)."""
    centre = torch.tensor(paths, dtype=torch.float32).transpose(0, 1)[None]  # [1, T, N, 2]
    ids = torch.arange(len(paths)).expand(1, centre.shape[1], -1).clone()
    for (which, frame), name in (gone or {}).items():
        ids[0, frame:, which] = name
    box = torch.cat((centre - 5, centre + 5), -1)
    visible = torch.ones(centre.shape[:3])
    return Truth(ids, centre, box, visible, torch.arange(len(paths))[None], torch.full((1, centre.shape[1], 2, 2), -1))


def tracks(rows: Sequence[tuple[int, int, float, float]], confidence: float = 1.0) -> Tracks:
    """Rows of frame, id, x, y."""
    frame, name, x, y = (np.array(column) for column in zip(*rows, strict=True))
    centre = np.stack((x, y), 1).astype(np.float32)
    return Tracks(
        clip=np.zeros(len(rows), np.int64),
        frame=frame.astype(np.int64),
        id=name.astype(np.int64),
        box=np.concatenate((centre - 5, centre + 5), 1),
        confidence=np.full(len(rows), confidence, np.float32),
        discovered=np.zeros(len(rows), bool),
        size=(SIDE, SIDE),
    )


def test_partners_are_chosen_in_the_first_generated_frame_and_kept() -> None:
    true = truth([(10, 10), (10, 10), (10, 10)], [(50, 50), (50, 50), (50, 50)])
    seen = [(0, 1, 10, 10), (0, 2, 50, 50)]
    # They change places after the first generated frame.
    made = [(1, 1, 10, 13), (1, 2, 50, 50), (2, 1, 50, 50), (2, 2, 10, 10)]
    found = pair_distances(tracks(seen + made), true, observe=1, side=SIDE)
    assert (found.pairs, found.objects) == (2, 2)
    assert found.mean == pytest.approx([0.015, np.hypot(40, 40) / SIDE])


def test_no_distance_is_too_large_and_extra_predictions_find_no_partner() -> None:
    true = truth([(10, 10)] * 2)
    found = pair_distances(tracks([(1, 4, 90, 10), (1, 7, 95, 95)]), true, observe=1, side=SIDE)
    assert (found.pairs, found.mean) == (1, [0.8])


def test_what_is_gone_has_no_distance_from_then_on() -> None:
    true = truth([(10, 10)] * 4, [(50, 50)] * 4, gone={(1, 3): 9})
    rows = [(1, 1, 10, 10), (1, 2, 50, 51), (2, 2, 50, 52), (3, 2, 50, 59)]
    found = pair_distances(tracks(rows), true, observe=1, side=SIDE)
    assert found.followed.tolist() == [2, 1, 0]  # a prediction is lost, then a true object comes back as another one
    assert found.mean == [0.005, 0.02, None]
    assert pair_distances(tracks(rows, confidence=0.4), true, observe=1, side=SIDE).pairs == 0


def test_the_sum_of_two_batches_covers_both() -> None:
    one = pair_distances(tracks([(1, 1, 10, 20)]), truth([(10, 10)] * 2), observe=1, side=SIDE)
    none = pair_distances(tracks([(0, 1, 10, 20)]), truth([(10, 10)] * 2), observe=1, side=SIDE)
    assert ((one + none).mean, (one + none).pairs, (one + none).objects) == ([0.1], 1, 2)


@pytest.mark.usefixtures("untrained_masks")
def test_a_whole_measurement_has_one_entry_a_generated_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balls, "EPISODES", {"train": 2, "test": 2})
    torch.manual_seed(0)
    config = get_preset("balls-interaction")
    config = replace(config, test=replace(config.test, length=6))
    model = build("balls-interaction")
    assert isinstance(model, Tracker)
    found = evaluate_rollouts(model, config, clips=2, observe=4, quiet=True)
    lists = (found.med, found.med_copy_last, found.lost, found.psnr, found.ssim, found.psnr_copy_last)
    assert {len(values) for values in lists} == {2}
    assert 0 <= found.unpaired <= 1
    assert found.psnr_copy_last[0] > found.psnr_copy_last[1] > 0  # balls move on
    assert 0 < found.ssim_copy_last[1] < found.ssim_copy_last[0] < 1
