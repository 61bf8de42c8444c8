"""`scalor reproduce`: make the tables of the paper, its figures, and the results page."""

import argparse
import sys
from pathlib import Path

from scalor import checkpoint
from scalor.files import Stopped, print_json
from scalor.reproduce import page
from scalor.reproduce.catalogue import Cell, choose
from scalor.reproduce.figures import draw_all
from scalor.reproduce.results import Document, Order
from scalor.reproduce.work import work

PAGES = ("figures", "page")
"""Outputs that are made from existing trainings and results, in this order."""


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Make the requested tables and pages."""
    tables = [name for name in arguments.table if name not in PAGES]
    order = Order(
        clips=arguments.clips,
        nll_samples=arguments.nll_samples,
        runs=Path(arguments.runs),
        results=Path(arguments.results),
        device=checkpoint.pick_device(arguments.device),
        together=arguments.together,
    )
    if not tables:
        return show_pages(make_pages(arguments.table, order), arguments.json)
    try:
        outcome = work(choose(tables, arguments.setting, arguments.seeds), order)
    except Stopped as stop:
        print("stopped; repeat the command to resume", file=sys.stderr)
        return 128 + stop.number
    if arguments.json:
        print_json(list(outcome.documents.values()))
    else:
        for cell, document in outcome.documents.items():
            print(f"{cell.table:<14} {cell.name:<34} {headline(cell, document)}{kept(cell in outcome.kept)}")
    for sentence in [*outcome.left_out, *outcome.broken]:
        print(f"scalor: {sentence}", file=sys.stderr)
    make_pages(arguments.table, order)
    return 2 if outcome.broken else 0


def make_pages(wanted: list[str], order: Order) -> list[Path]:
    """Make the requested outputs; return their files. Figures come first, as the page shows those that exist."""
    files = []
    if "figures" in wanted:
        drawn, left_out = draw_all(order.runs, order.results, page.FIGURES, order.device)
        files += drawn
        for sentence in left_out:
            print(f"scalor: {sentence}", file=sys.stderr)
    if "page" in wanted:
        files += page.write(order.results)
    return files


def kept(was_there: bool) -> str:
    """Return the mark of a result that existed already."""
    return " (kept)" if was_there else ""


def show_pages(files: list[Path], json: bool) -> int:
    """Print the names of the files made, and return the exit code 0."""
    if json:
        print_json({"files": [str(file) for file in files]})
    else:
        print(f"wrote {', '.join(map(str, files)) or 'nothing'}")
    return 0


def headline(cell: Cell, document: Document) -> str:
    """Return the most important numbers of a result as text."""
    if cell.table == "efficiency":
        speed, training = document["speed"], document["training"]
        times = ", ".join(f"{row['objects']} objects {row['ms_per_frame']:.1f} ms a frame" for row in speed)
        return times or f"MSE {training[-1]['mse']:.4f} after {number(training[-1]['seconds'], 0)} s of training"
    metrics = document["metrics"]
    match cell.table:
        case "likelihood":
            return f"NLL {number(metrics['nll'], 3)} nats per pixel, MSE {metrics['mse']:.4f}"
        case "ablation":
            rate, discoveries = (number(metrics[name], 3) for name in ("propagation_rate", "discoveries_per_clip"))
            return f"propagation rate {rate}, {discoveries} discoveries a clip"
        case "generation":
            mse, centre = (document["forecast"][name] for name in ("mse", "centre"))
            return f"{len(mse)} frames ahead: MSE {mse[-1]:.4f}, centres {number(centre[-1], 2)} px off"
        case "balls":
            return f"{motas(metrics)}, MED {number(document['rollouts']['med'][-1], 4)} in the last frame"
        case "replay":
            likely = f"semi-synthetic: NLL {number(metrics['nll'], 3)} nats per pixel"
            return f"{likely}, {motas(metrics)}" if "strict_mota" in metrics else likely
        case _:
            return motas(metrics)


def motas(metrics: Document) -> str:
    """Return MOTA under three gates as text."""
    strict, paper, iou = (number(metrics[f"{gate}_mota"], 3) for gate in ("strict", "paper", "iou"))
    return f"MOTA strict {strict}, paper {paper}, IoU {iou}"


def number(value: float | None, digits: int) -> str:
    """Return a number as text, or `unknown` if it could not be measured."""
    return "unknown" if value is None else f"{value:.{digits}f}"
