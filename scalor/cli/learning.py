"""`scalor train` and `scalor evaluate`."""

import argparse
import sys
from pathlib import Path

from scalor.cli import overrides
from scalor.cli.main import as_json, print_json
from scalor.evaluation import report
from scalor.presets import get_preset
from scalor.training import checkpoint
from scalor.training.loop import train as run_training
from scalor.training.loop import write_text


def train(arguments: argparse.Namespace, words: list[str]) -> int:
    config = overrides.apply(get_preset(arguments.preset), words)
    device = checkpoint.pick_device(arguments.device)
    folder = Path(arguments.out or f"runs/{arguments.preset}")
    result = run_training(config, folder, device, arguments.resume)
    if result.stopped:
        print(f"stopped at step {result.step}; go on with --resume", file=sys.stderr)
        return 128 + result.stopped
    measured = report.evaluate(result.model, config, arguments.clips)
    document = {
        "folder": str(folder),
        "step": result.step,
        "seconds": result.seconds,
        "skipped_steps": result.skipped,
        "provenance": checkpoint.provenance(config, result.step, device),
        "clips": arguments.clips,
        "metrics": measured.to_dict(),
    }
    write_text(folder / "metrics.json", as_json(document))
    if arguments.json:
        print_json(document)
    else:
        print(f"trained {result.step} steps in {result.seconds:.0f} s into {folder}")
        print(table(measured))
    return 0


def evaluate(arguments: argparse.Namespace) -> int:
    path = checkpoint.find(arguments.weights)
    found = checkpoint.read(path)
    model = checkpoint.load(path, arguments.device)
    config = found.config
    if arguments.preset:
        config = overrides.with_test_scenes(config, get_preset(arguments.preset))
    measured = report.evaluate(model, config, arguments.clips, nll_samples=arguments.nll_samples)
    if arguments.json:
        print_json(
            {
                "weights": str(arguments.weights),
                "provenance": found.provenance,
                "clips": arguments.clips,
                "metrics": measured.to_dict(),
            }
        )
    else:
        print(table(measured))
    return 0


def table(measured: report.Report) -> str:
    """The figures a person looks for first."""
    lines = [f"{'gate':<8}{'MOTA':>8}{'prec.':>8}{'recall':>8}{'IDF1':>8}{'switches':>10}"]
    for name in ("paper", "strict", "iou"):
        gate = getattr(measured.tracking, name)
        lines.append(
            f"{name:<8}{gate.mota:>8.3f}{gate.precision:>8.3f}{gate.recall:>8.3f}{gate.idf1:>8.3f}{gate.switches:>10d}"
        )
    tracking = measured.tracking
    lines.append(
        f"HOTA {tracking.hota:.3f}, count MAE {tracking.count_mae:.3f}, MSE {measured.mse:.4f}, "
        f"{tracking.clips} unseen clips"
    )
    if measured.nll is not None:
        lines.append(f"NLL {measured.nll:.3f} nats per pixel ({measured.nll_samples} samples)")
    if measured.forecast:
        forecast = measured.forecast
        lines.append(
            f"centre error {len(forecast.centre)} frames ahead: {forecast.centre[-1]:.2f} px "
            f"(constant velocity {forecast.centre_constant_velocity[-1]:.2f}, "
            f"copying {forecast.centre_copy_last[-1]:.2f})"
        )
    return "\n".join(lines)
