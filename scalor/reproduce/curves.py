"""The curves of the paper's Figure 8 (ablation, efficiency) and of prediction errors, from the result files.

Results of several seeds are averaged point by point. A value that could not be measured is null in a result file and a
gap in a line.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from scalor.errors import InputError
from scalor.reproduce.catalogue import ABLATION_OURS, ABLATION_PAPER, ABLATION_REMEDIES, DEVICES, SETTINGS
from scalor.reproduce.results import Document, read_all
from scalor.visual.plots import Line, Panel

Point = dict[str, float | None]
"""Values of a point by name; None where a value could not be measured."""


def ablation_curves(results: Path) -> list[list[Panel]]:
    """Return plots of propagation rate and number of discoveries against the training step, one line per variant.

    The first row shows the paper's configuration, the second ours, the third ours with one remedy left out.
    """
    points: dict[str, list[Point]] = {}
    for one in read_table(results, "ablation", ("setting", "evaluations")):
        points.setdefault(one["setting"], []).extend(one["evaluations"])

    def panel(title: str, names: Sequence[str], key: str, label: str) -> Panel:
        lines = [mean_line(SETTINGS[name].label, points[name], "step", key) for name in names if name in points]
        return Panel("training step", label, lines, title)

    rows = [
        [
            panel(title, names, "propagation_rate", "propagation rate"),
            panel(title, names, "discoveries_per_clip", "discoveries per sequence"),
        ]
        for title, names in (
            ("the paper's configuration", ABLATION_PAPER),
            ("ours", ABLATION_OURS),
            ("ours without one remedy", (ABLATION_OURS[0], *ABLATION_REMEDIES)),
        )
        if any(name in points for name in names)
    ]
    return rows


def efficiency_curves(results: Path) -> list[list[Panel]]:
    """Return plots of inference time and of training progress, one line per system.

    The first plots show the time per frame against the number of objects, one plot per kind of device. The last one
    shows the squared error against the time of training.
    """
    documents = read_table(results, "efficiency", ("system", "device", "speed", "training"))

    def lines(device: str | None, kind: str, *keys: str) -> list[Line]:
        systems: dict[str, list[Point]] = {}
        for one in documents:
            if one["device"] == device and one[kind]:
                systems.setdefault(one["system"], []).extend(one[kind])
        return [mean_line(name, points, *keys) for name, points in systems.items()]

    def panel(title: str, x_label: str, y_label: str, shown: list[Line]) -> Panel:
        return Panel(x_label, y_label, shown, title, log_x=True, log_y=True)

    speeds = {called: lines(device, "speed", "objects", "ms_per_frame") for device, called in DEVICES.items()}
    progress = lines(None, "training", "seconds", "mse", "step")
    panels = [
        *(panel(f"inference, {on}", "objects", "milliseconds per frame", shown) for on, shown in speeds.items()),
        panel("training, MNIST VLD", "seconds of training", "squared error", progress),
    ]
    return [[panel for panel in panels if panel.lines]]


def prediction_curves(results: Path) -> list[list[Panel]]:
    """Return plots of the errors of predicted centres and frames against the frames ahead, one row per setting."""
    settings: dict[str, list[Point]] = {}
    for one in read_table(results, "generation", ("setting", "forecast")):
        steps = {key: values for key, values in one["forecast"].items() if isinstance(values, list)}
        ahead: list[Point] = [
            {"ahead": h, **{key: values[h - 1] for key, values in steps.items()}}
            for h in range(1, len(steps["centre"]) + 1)
        ]
        settings.setdefault(one["setting"], []).extend(ahead)

    def panel(setting: str, label: str, lines: dict[str, str]) -> Panel:
        points = settings[setting]
        return Panel(
            "frames ahead", label, [mean_line(name, points, "ahead", key) for name, key in lines.items()], setting
        )

    centre = {
        "SCALOR": "centre",
        "constant velocity": "centre_constant_velocity",
        "last frame copied": "centre_copy_last",
    }
    squares = {"SCALOR": "mse", "last frame copied": "mse_copy_last"}
    return [
        [panel(setting, "centre error, pixels", centre), panel(setting, "squared error", squares)]
        for setting in settings
    ]


def read_table(results: Path, table: str, fields: Sequence[str]) -> list[Document]:
    """Return the results of a table, after a check that all of them have the fields."""
    found = [document for document in read_all(results) if document["table"] == table]
    if not found:
        raise InputError(f"{results / table} holds no results: make them with `scalor reproduce {table}`.")
    for document in found:
        missing = [field for field in fields if field not in document]
        if missing:
            name = f"{document['setting']}-seed{document['seed']}.json"
            raise InputError(f"{results / table / name} has no {missing[0]}: make it again with `scalor reproduce`.")
    return found


def mean_line(name: str, points: Sequence[Point], x: str, y: str, by: str | None = None) -> Line:
    """Return the line of the means of x and y over points with equal `by` (default: x), ordered by it."""
    by = by or x
    for point in points:
        missing = {x, y, by} - set(point)
        if missing:
            raise InputError(f"a result of {name} has no {min(missing)}: make it again with `scalor reproduce`.")
    groups: dict[float, list[Point]] = {}
    for point in points:
        groups.setdefault(number(point[by]), []).append(point)
    ordered = [groups[key] for key in sorted(groups)]

    def means(key: str) -> list[float]:
        return [math.fsum(number(point[key]) for point in group) / len(group) for group in ordered]

    return Line(name, means(x), means(y))


def number(value: float | None) -> float:
    """Return the value, or nan for None."""
    return math.nan if value is None else value
