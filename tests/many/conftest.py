"""A small model and small videos, for workers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import scalor
from scalor.cli.overrides import apply
from scalor.many import run
from scalor.many.worker import do_job
from scalor.model import glimpses
from scalor.presets import get_preset

from ..cli.conftest import TINY, Say, say

__all__ = ["Say", "say"]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model that shows objects."""
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    config = apply(get_preset("shapes-tiny"), TINY)
    torch.manual_seed(297)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glimpses.GlimpseDecoder, "start_masks", lambda *_: None)
        model = scalor.SCALOR(config.model)
    scalor.save(model, path, config)
    return path


@pytest.fixture
def footage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of three videos, one of which is damaged."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "footage"
    (folder / "yard").mkdir(parents=True)
    for number, name in enumerate(("a.npy", "yard/a.npy")):
        film = np.random.default_rng(number).integers(0, 255, (8, 32, 32, 3), dtype=np.uint8)
        np.save(folder / name, film)
    (folder / "broken.npy").write_bytes((folder / "a.npy").read_bytes()[:500])
    return folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are functions of this process, one after the other."""

    def work(task, jobs, out, *_: object) -> Iterator[object]:  # type: ignore[no-untyped-def]
        return (do_job(task, job, out) for job in jobs)

    monkeypatch.setattr(run, "run_local", work)
