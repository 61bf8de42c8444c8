"""Two models are compared without labels: by what they explain, what they see on nothing, and whose ids last."""

import pytest

from scalor.fitting.comparing import LabelFreeScore


def test_a_perfect_model_has_a_score_of_one_and_a_blind_one_of_zero() -> None:
    assert LabelFreeScore(1.0, 1.0, 1.0).total == pytest.approx(1)
    assert LabelFreeScore(0.0, 1.0, 1.0).total == 0
    assert LabelFreeScore(0.0, 0.0, 1.0).total == 0


@pytest.mark.parametrize("part", ["explained", "on_something", "lasting"])
def test_every_part_counts(part: str) -> None:
    good = {"explained": 0.9, "on_something": 0.9, "lasting": 0.9}
    assert LabelFreeScore(**{**good, part: 0.5}).total < LabelFreeScore(**good).total


def test_seeing_everything_everywhere_does_not_pay() -> None:
    """Boxes all over the picture explain all that moves, and most of them show nothing."""
    assert LabelFreeScore(1.0, 0.1, 0.5).total < LabelFreeScore(0.6, 0.9, 0.5).total
