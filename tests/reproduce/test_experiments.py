"""How times are taken; what is measured of trainings is tested with the work on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from scalor.reproduce import experiments


def test_numbers_of_objects_are_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    served = []
    monkeypatch.setattr(experiments, "OBJECTS", (1, 2))
    monkeypatch.setattr(experiments, "TIMED_FRAMES", 4)

    def noting(folder: Path, objects: int, device: torch.device) -> Iterator[list[int]]:
        for frame in range(4):
            served.append((frame, objects))
            yield [0] * objects * frame

    monkeypatch.setattr(experiments, "stream", noting)
    rows = experiments.speeds(Path(), torch.device("cpu"))
    assert served == [(frame, objects) for frame in range(4) for objects in (1, 2)]
    assert [(row["objects"], row["tracks"]) for row in rows] == [(1, 2.5), (2, 5)]  # of the later half
