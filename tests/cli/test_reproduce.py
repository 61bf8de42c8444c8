"""`scalor reproduce` as a shell calls it: what it says, what it leaves, and how it ends."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

from scalor.cli.main import main
from scalor.reproduce import figures, page
from scalor.training.step import Anneals, TrainingStep
from tests.reproduce.fakes import document, write
from tests.reproduce.small import shrink_presets, write_station

from .conftest import Say

SMALL = ["--clips", "1", "--nll-samples", "1", "--seeds", "0", "--device", "cpu"]


@pytest.fixture(autouse=True)
def small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_presets(monkeypatch)


def test_a_table_is_made_told_of_and_kept(say: Say) -> None:
    first = say("reproduce", "tracking", "likelihood", "--setting", "md", *SMALL)
    assert first.code == 0
    tracked, likely = first.out.splitlines()
    assert tracked.split()[:3] == ["tracking", "shapes-md-seed0", "MOTA"]
    assert likely.split()[:3] == ["likelihood", "shapes-md-seed0", "NLL"]
    assert "training shapes-md-seed0 (1 of 1)" in first.err
    assert "made results/likelihood/shapes-md-seed0.json" in first.err
    again = say("reproduce", "tracking", "likelihood", "--setting", "md", *SMALL)
    assert [line.removesuffix(" (kept)") for line in again.out.splitlines()] == [tracked, likely]
    documents = say("reproduce", "tracking", "likelihood", "--setting", "md", "--json", *SMALL).document
    files = [Path(f"results/{table}/shapes-md-seed0.json") for table in ("tracking", "likelihood")]
    assert documents == [json.loads(file.read_text()) for file in files]


def test_folders_are_where_they_are_wanted(say: Say) -> None:
    words = ["--setting", "crowd", "--runs", "mine", "--results", "figures", *SMALL]
    spoken = say("reproduce", "generalisation", *words)
    assert spoken.code == 0
    assert Path("mine/shapes-crowd-seed0/model.safetensors").exists()
    assert Path("figures/generalisation/shapes-crowd-seed0.json").exists()
    assert not Path("runs").exists()


def test_a_stop_says_how_to_go_on(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    step = TrainingStep.__call__

    def stopped(self: TrainingStep, number: int, now: Anneals) -> Tensor:
        if number == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, number, now)

    words = ["reproduce", "tracking", "--setting", "md", *SMALL]
    with monkeypatch.context() as patch:
        patch.setattr(TrainingStep, "__call__", stopped)
        spoken = say(*words)
    assert (spoken.code, spoken.out) == (128 + signal.SIGTERM, "")
    assert spoken.err.endswith("stopped; repeat the command to resume\n")
    assert say(*words).code == 0


def test_what_is_left_out_is_said(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALOR_MNIST", str(tmp_path / "none"))
    spoken = say("reproduce", "tracking", "--setting", "mnist-md", "md", *SMALL)
    assert spoken.code == 0
    assert len(spoken.out.splitlines()) == 1
    assert "scalor: mnist-md: left out; " in spoken.err
    assert "put the MNIST files there." in say("reproduce", "tracking", "--setting", "mnist-md", *SMALL).complaint


def test_a_replay_is_told_of_as_semi_synthetic(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_station(tmp_path)
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    spoken = say("reproduce", "replay", *SMALL)
    assert spoken.code == 0
    ours, *others, small, given = spoken.out.splitlines()
    assert ours.split()[:4] == ["replay", "grand-central-replay-seed0", "semi-synthetic:", "NLL"]
    assert "MOTA strict" in ours
    assert "MOTA strict" in small
    assert "MOTA strict" in given
    assert len(others) == 2
    assert all("semi-synthetic: NLL" in line and "MOTA" not in line for line in others)


def test_the_page_is_written_from_the_results(say: Say) -> None:
    Path("docs").mkdir()
    Path("docs/research.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    write(Path("figures"), document("tracking", "shapes-md"))
    assert say("reproduce", "page", "--results", "figures").out == "wrote docs/results.md, docs/research.md\n"
    assert "| shapes MD | .500 |" in Path("docs/research.md").read_text()
    assert say("reproduce", "page", "--json").document == {"files": ["docs/results.md", "docs/research.md"]}
    assert "| shapes MD | not measured yet |" in Path("docs/results.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["table", "scalor reproduce --help"]),
        (["trakcing"], ["table is 'trakcing'", "did you mean tracking"]),
        (["tracking", "--setting", "mdd"], ["setting is 'mdd'", "did you mean md"]),
        (["tracking", "--seeds", "-1"], ["'-1'"]),
        (["tracking", "--clips", "0"], ["'0'", "at least 1"]),
        (["tracking", "--nll-samples", "0"], ["'0'", "at least 1"]),
        (["tracking", "--device", "abacus"], ["'abacus'", "auto, cpu or cuda"]),
        (["tracking", "--train.steps", "3"], ["'--train.steps'", "scalor reproduce --help"]),
        (["page"], ["docs/research.md must hold the lines"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_words_that_make_no_sense(words: list[str], said: list[str], say: Say) -> None:
    complaint = say("reproduce", *words).complaint
    for part in said:
        assert part in complaint


def test_the_help_tells_tables_options_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "tracking, likelihood, ablation, generation, efficiency, generalisation, replay",
        "(default: [0, 1, 2])",
        "(default: runs)",
        "(default: results)",
        "(default: 1000)",
        "(default: 10)",
        "(none given: all of the table)",
    ):
        assert words in text
    assert "(default: [])" not in text


def test_figures_are_drawn_of_what_is_there_and_the_rest_is_told(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the picture: these clips are shorter than those it shows."""
    blank = figures.of_model("shapes-crowd", lambda model, preset: np.zeros((4, 4, 3), np.uint8))
    monkeypatch.setitem(figures.FIGURES, "crowd", blank)
    assert say("reproduce", "generalisation", "--setting", "crowd", *SMALL).code == 0
    spoken = say("reproduce", "figures", *SMALL)
    assert spoken.code == 0
    assert [file.name for file in Path("docs/pictures/results").iterdir()] == ["crowd.png"]
    assert "wrote docs/pictures/results/crowd.png" in spoken.out
    assert "background: left out; this figure needs a model of shapes-background" in spoken.err
    assert "ablation: left out" in spoken.err
