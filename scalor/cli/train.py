"""`scalor train`: train models from presets and measure them on unseen clips."""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch

from scalor import checkpoint
from scalor.cli import overrides
from scalor.cli.text import table
from scalor.errors import InputError
from scalor.evaluation import report
from scalor.files import as_json, print_json
from scalor.nn import ranks
from scalor.presets import get_preset
from scalor.training.folder import write_text
from scalor.training.loop import Job, TrainingResult, train_together


class Planned(NamedTuple):
    """A requested run."""

    preset: str
    job: Job


class Trained(NamedTuple):
    """A finished run with its metrics."""

    preset: str
    document: dict[str, Any]
    measured: report.Report


def run(arguments: argparse.Namespace, words: list[str]) -> int:
    """Train every requested model and print its metrics. Of several processes that torchrun started, one prints."""
    with ranks.joined(checkpoint.pick_device(arguments.device)) as device:
        return train(arguments, words, device)


def train(arguments: argparse.Namespace, words: list[str], device: torch.device) -> int:
    """Train every requested model on a device and print its metrics."""
    side_by_side = arguments.seeds is not None or len(arguments.preset) > 1
    planned = plan_several(arguments, words) if side_by_side else [plan_one(arguments, words)]
    outcomes = train_together([run.job for run in planned], device, arguments.resume, together=arguments.together)
    results, broken, stopped = [], [], 0
    if not ranks.is_first():
        (only,) = outcomes
        return 2 if isinstance(only, InputError) else 128 + only.stopped if only.stopped else 0
    for run, outcome in zip(planned, outcomes, strict=True):
        where = f"{run.job.folder}: " if side_by_side else ""
        if isinstance(outcome, InputError):
            broken.append(f"{where}{outcome}")
            continue
        if outcome.stopped:
            stopped = outcome.stopped
            when = f"stopped at step {outcome.step}" if isinstance(outcome, TrainingResult) else "not begun"
            print(f"{where}{when}; continue it with --resume", file=sys.stderr)
        if isinstance(outcome, TrainingResult):
            results.append((run, outcome))
    if results and not stopped:
        show([measure(run, result, arguments.clips, device) for run, result in results], side_by_side, arguments.json)
    for sentence in broken:
        print(f"scalor: {sentence}", file=sys.stderr)
    return 128 + stopped if stopped else 2 if broken else 0


def plan_one(arguments: argparse.Namespace, words: list[str]) -> Planned:
    """Return the run of a single preset."""
    (preset,) = arguments.preset
    config = overrides.apply(get_preset(preset), words)
    return Planned(preset, Job(config, Path(arguments.out or f"runs/{preset}")))


def plan_several(arguments: argparse.Namespace, words: list[str]) -> list[Planned]:
    """Return the runs of all presets with all seeds (default: the preset's own seed), each with its own folder."""
    seed = dict(overrides.pairs(words)).get("train.seed")
    if arguments.seeds and seed is not None:
        seeds = " ".join(map(str, arguments.seeds))
        raise InputError(f"--seeds is {seeds} and --train.seed is {seed}: both name the seed, so leave one out.")
    variants = [(f"-seed{seed}", ["--train.seed", str(seed)]) for seed in arguments.seeds or []] or [("", [])]
    folder = Path(arguments.out or "runs")
    return [
        Planned(preset, Job(overrides.apply(get_preset(preset), [*words, *more]), folder / f"{preset}{suffix}"))
        for preset in arguments.preset
        for suffix, more in variants
    ]


def measure(run: Planned, result: TrainingResult, clips: int, device: torch.device) -> Trained:
    """Evaluate a trained model and write metrics.json into its run folder."""
    config, folder = run.job.config, run.job.folder
    measured = report.evaluate(result.model, config, clips)
    document = {
        "folder": str(folder),
        "step": result.step,
        "seconds": result.seconds,
        "skipped_steps": result.skipped,
        "provenance": checkpoint.provenance(config, result.step, device),
        "clips": clips,
        "metrics": measured.to_dict(),
    }
    write_text(folder / "metrics.json", as_json(document))
    return Trained(run.preset, document, measured)


def show(trained: list[Trained], side_by_side: bool, json: bool) -> None:
    """Print the results of finished runs."""
    documents = [run.document for run in trained]
    if json:
        print_json(documents if side_by_side else documents[0])
    elif side_by_side:
        print("\n".join([*rows(trained), *spreads(trained)]))
    else:
        document = documents[0]
        print(f"trained {document['step']} steps in {document['seconds']:.0f} s into {document['folder']}")
        print(table(trained[0].measured))


def rows(trained: list[Trained]) -> list[str]:
    """Return a table with one line per run."""
    width = max(len(run.document["folder"]) for run in trained)
    names = ("steps", "seconds", "strict MOTA", "paper MOTA", "IoU MOTA", "HOTA", "count MAE", "MSE")
    lines = [f"{'run':<{width}}" + "".join(f"{name:>{len(name) + 4}}" for name in names)]
    for _, document, measured in trained:
        tracking = ["-"] * 5  # a system without objects
        if measured.tracking:
            found = measured.tracking
            figures = (found.strict.mota, found.paper.mota, found.iou.mota, found.hota, found.count_mae)
            tracking = [f"{figure:.3f}" for figure in figures]
        values = (f"{document['step']}", f"{document['seconds']:.0f}", *tracking, f"{measured.mse:.4f}")
        cells = "".join(f"{value:>{len(name) + 4}}" for name, value in zip(names, values, strict=True))
        lines.append(f"{document['folder']:<{width}}{cells}")
    return lines


def spreads(trained: list[Trained]) -> list[str]:
    """Return the mean and range over seeds, for presets with several seeds: of MOTA, or of MSE without objects."""
    lines = []
    for preset in dict.fromkeys(run.preset for run in trained):
        seeds = [run.measured for run in trained if run.preset == preset]
        tracked = [one.tracking for one in seeds if one.tracking]
        if len(tracked) > 1:
            strict, paper = spread([one.strict.mota for one in tracked]), spread([one.paper.mota for one in tracked])
            lines.append(f"{preset}, {len(seeds)} seeds: strict MOTA {strict}, paper MOTA {paper}")
        elif len(seeds) > 1:
            lines.append(f"{preset}, {len(seeds)} seeds: MSE {spread([one.mse for one in seeds], 4)}")
    return lines


def spread(values: list[float], digits: int = 3) -> str:
    """Return mean, minimum and maximum as text."""
    return f"{sum(values) / len(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"
