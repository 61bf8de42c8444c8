"""Compiling beforehand: for whom it is done, and that what is compiled is what will be asked for."""

import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest
import torch

from scalor.presets import get_preset
from scalor.systems import config_from_dict
from scalor.training import warmup
from scalor.training.step import anneals

from .tiny import tiny

GPU, CPU = torch.device("cuda"), torch.device("cpu")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The settings of every process that is started."""
    told: list[str] = []

    class Process:
        def __init__(self, *_: object, **__: object) -> None:
            self.stdin, self.busy = self, True

        def write(self, text: str) -> None:
            told.append(text)

        def close(self) -> None: ...

        def poll(self) -> int | None:
            return None if self.busy else 0

        def kill(self) -> None:
            self.busy = False

        def wait(self) -> None:
            assert not self.busy

    monkeypatch.setattr(subprocess, "Popen", Process)
    return told


def test_presets_with_one_model_are_compiled_once(started: list[str]) -> None:
    names = ("shapes-md", "shapes-length", "shapes-hd", "shapes-md")
    with warmup.warming([get_preset(name) for name in names], GPU, quiet=True):
        assert len(started) == 2


def test_a_few_compile_at_a_time_in_the_order_of_the_trainings(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("shapes-hd", "shapes-md", "shapes-vhd", "mnist-md")
    texts = [json.dumps(warmup.short(get_preset(name)).to_dict()) for name in names]
    processes: list[Any] = []
    begin = warmup.compile_apart

    def noted(text: str, device: torch.device) -> Any:
        processes.append(begin(text, device))
        return processes[-1]

    monkeypatch.setattr(warmup, "compile_apart", noted)
    monkeypatch.setattr(warmup, "compilers", lambda: 2)
    with warmup.warming([get_preset(name) for name in names], GPU, quiet=True) as warm:
        assert started == texts[:2]
        assert not any(map(warm, range(4)))
        processes[1].busy = False
        assert [warm(place) for place in range(4)] == [False, True, False, False]
        assert started == texts[:3]
        monkeypatch.setattr(warmup, "COMPILE_TIMEOUT_S", -1.0)  # what is started from now on has no time at all
        processes[0].busy = False
        assert [warm(place) for place in range(4)] == [True, True, False, True]
    assert started == texts


def test_what_is_not_compiled_yet_waits_and_other_systems_do_not(started: list[str]) -> None:
    configs = [get_preset("shapes-md"), tiny(system="vrnn"), get_preset("shapes-hd"), tiny(system="sqair")]
    with warmup.warming(configs, GPU, quiet=True) as warm:
        assert [warm(place) for place in range(4)] == [False, True, False, False]
    assert all(map(warm, range(4)))


def test_one_alone_and_the_cpu_and_other_systems_compile_nothing(started: list[str]) -> None:
    md, hd = get_preset("shapes-md"), get_preset("shapes-hd")
    plain = [replace(config, train=replace(config.train, compile=False)) for config in (md, hd)]
    for configs, device in (([md], GPU), ([md, hd], CPU), (plain, GPU), ([md, tiny(system="vrnn")], GPU)):
        with warmup.warming(configs, device, quiet=True) as warm:
            assert all(map(warm, range(len(configs))))
    assert not started


def test_what_is_compiled_has_the_model_batch_and_precision_of_the_training() -> None:
    config = get_preset("shapes-background")
    short = warmup.short(config)
    assert (short.model, short.train.batch, short.train.precision) == (
        config.model,
        config.train.batch,
        config.train.precision,
    )
    assert config_from_dict(short.to_dict()) == short
    for preset in ("shapes-md", "grand-central"):  # where gradients end at each frame, another graph is compiled
        config = get_preset(preset)
        assert anneals(warmup.short(config).train, 0).cut_gradients == anneals(config.train, 0).cut_gradients


def test_frames_of_a_video_are_compiled_for_with_the_still_scene_behind_them() -> None:
    """Such frames have more channels."""
    config = get_preset("shapes-md")
    scene = replace(config.scene, kind="footage", footage="runs/mine/footage.npz")
    short = warmup.short(replace(config, model=replace(config.model, still=True), scene=scene, test=scene))
    assert (short.scene.kind, short.scene.footage, short.model.still) == ("footage", "runs/mine/footage.npz", True)
    assert warmup.short(get_preset("grand-central-replay-still")).scene.gives_still
