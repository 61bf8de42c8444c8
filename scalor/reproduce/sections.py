"""The tables of the page of results, one function each: ours beside what is quoted, and what must be said below."""

import statistics
from collections.abc import Callable, Sequence

from scalor.reproduce import paper
from scalor.reproduce.catalogue import CLASSICAL, SETTINGS, TABLES, classical
from scalor.reproduce.markdown import (
    NOT_YET,
    NOTHING,
    at,
    figure,
    mean,
    measured,
    per_clip,
    quoted,
    table,
    training_time,
)
from scalor.reproduce.results import Document

Section = Callable[[Sequence[Document]], list[str]]

GATES = ("paper_mota", "strict_mota", "iou_mota")
MOTA = ["MOTA, paper's gate", "strict gate", "IoU gate"]
STRICT = "strict_mota"
QUOTED = "(quoted)"
AHEAD = "ahead, strict gate"
CLASSICAL_NOTE = (
    "Classical trackers learn nothing: connected components (colour: of one flat colour, which only such clean scenes "
    "allow; foreground: of all that is bright), Hungarian linking and a Kalman filter, with settings chosen on "
    "training clips. Ahead is the system with the highest MOTA of those measured on the row's scenes."
)
QUOTED_NOTE = " A quoted figure is of 24 clips and not made here."


def tracking(documents: Sequence[Document]) -> list[str]:
    head = ["scene", *MOTA, "precision", "recall", "HOTA", "IDF1", "switches per clip", "count MAE", "MSE", "training"]
    head += ["paper: MOTA", "precision", "recall", "count MAE", "SQAIR's MOTA"]
    head += [part for way in CLASSICAL for part in (f"classical, {way}: paper's gate", "strict")]
    rows = []
    for name in trained_settings("tracking"):
        seeds = of_setting(documents, name)
        ours = [
            *metrics(seeds, (*GATES, "paper_precision", "paper_recall", "hota", "strict_idf1"), 3),
            mean(seeds, 2, per_clip(at("metrics", "strict_switches"))),
            *metrics(seeds, ("count_mae",), 3),
            *metrics(seeds, ("mse",), 4),
            training_time(seeds),
        ]
        published = paper.TRACKING.get(scenes_of(name))
        others = [
            *(quoted(published, field, 3) for field in ("mota", "precision", "recall", "count_mae")),
            quoted(paper.SQAIR_TRACKING.get(name), "mota", 3),
            *(classical_mota(documents, name, way, field) for way in CLASSICAL for field in ("paper_mota", STRICT)),
            ahead(documents, name),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours), *others])
    return [
        *table([*head, AHEAD], rows),
        "",
        "Precision and recall are under the paper's gate, IDF1 and switches under the strict one. The paper's figures: "
        f"its {paper.TRACKING_SOURCE}. {classical_note(rows)}",
    ]


def short_tracking(documents: Sequence[Document]) -> list[str]:
    """For the README."""
    rows = []
    for name in trained_settings("tracking"):
        seeds = of_setting(documents, name)
        ours = [*metrics(seeds, (*GATES, "hota", "count_mae"), 3), training_time(seeds)]
        others = [
            quoted(paper.TRACKING.get(scenes_of(name)), "mota", 3),
            *(classical_mota(documents, name, way, STRICT) for way in CLASSICAL),
            ahead(documents, name),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours), *others])
    head = ["scene", *MOTA, "HOTA", "count MAE", "training", "the paper's MOTA"]
    head += [*(f"classical, {way}: strict gate" for way in CLASSICAL), AHEAD]
    return [*table(head, rows), "", classical_note(rows)]


def classical_mota(documents: Sequence[Document], name: str, way: str, field: str) -> str:
    """Measured on the scenes of a setting, or else quoted where there is something to quote."""
    found = of_setting(documents, classical(scenes_of(name), way))
    if found:
        return mean(found, 3, at("metrics", field))
    known = paper.CLASSICAL.get(scenes_of(name)) if way == "colour" else None
    return f"{quoted(known, field, 3)} {QUOTED}" if known else NOTHING


def ahead(documents: Sequence[Document], name: str) -> str:
    """The system with the highest MOTA under the strict gate, if SCALOR and a classical tracker are measured."""
    settings = {"SCALOR": name} | {f"classical, {way}": classical(scenes_of(name), way) for way in CLASSICAL}
    scores = {}
    for system, setting in settings.items():
        motas = [mota for mota in map(at("metrics", STRICT), of_setting(documents, setting)) if mota is not None]
        if motas:
            scores[system] = figure(statistics.fmean(motas), 3)
    if "SCALOR" not in scores or len(scores) < 2:
        return NOTHING
    best = max(scores.values(), key=float)
    return " and ".join(system for system, score in scores.items() if score == best)


def classical_note(rows: Sequence[Sequence[str]]) -> str:
    any_quoted = any(cell.endswith(QUOTED) for row in rows for cell in row)
    return CLASSICAL_NOTE + QUOTED_NOTE * any_quoted


def trained_settings(name: str) -> list[str]:
    """The rows of a table; classical trackers stand beside them."""
    return [setting for setting in TABLES[name] if not SETTINGS[setting].detect]


def likelihood(documents: Sequence[Document]) -> list[str]:
    head = ["scene", "NLL, nats per pixel", "MSE", "training"]
    head += ["paper: NLL", "MSE", "SQAIR: NLL", "MSE", "VRNN: NLL", "MSE"]
    rows = []
    for name in TABLES["likelihood"]:
        seeds = of_setting(documents, name)
        ours = [*metrics(seeds, ("nll",), 3), *metrics(seeds, ("mse",), 4), training_time(seeds)]
        others = []
        for source in (paper.LIKELIHOOD, paper.SQAIR_LIKELIHOOD, paper.VRNN_LIKELIHOOD):
            others += [quoted(source.get(name), "nll", 2), quoted(source.get(name), "mse", 4)]
        rows.append([SETTINGS[name].label, *measured(seeds, ours), *others])
    samples = " or ".join(map(str, sorted({document["metrics"]["nll_samples"] for document in documents})))
    return [
        *table(head, rows),
        "",
        f"The paper's NLL ({paper.LIKELIHOOD_SOURCE}) is in other units and for its own data: it cannot be compared "
        f"with ours. Ours is a bound from {samples or 'several'} importance-weighted samples, summed over a clip and "
        "divided by the pixels of a frame; densities may exceed 1, so it may be negative.",
    ]


def ablation(documents: Sequence[Document]) -> list[str]:
    head = ["mechanisms", "propagation rate", "discoveries per clip", "MOTA, strict gate", "count MAE", "training"]
    rows = []
    for name in TABLES["ablation"]:
        seeds = of_setting(documents, name)
        ours = [
            *metrics(seeds, ("propagation_rate",), 3),
            *metrics(seeds, ("discoveries_per_clip",), 1),
            *metrics(seeds, ("strict_mota", "count_mae"), 3),
            training_time(seeds),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours), paper.ABLATION[name]])
    return [
        *table([*head, "in the paper"], rows),
        "",
        "6-36 shapes, at the end of training; the curves over training are in the result files. The paper's words: "
        f"its {paper.CURVES_SOURCE} (a, b) and the text around it.",
    ]


def generation(documents: Sequence[Document]) -> list[str]:
    head = ["frames ahead", "MSE", "copying the last frame", "centres off, px", "constant velocity", "copying"]
    lines = []
    for name in TABLES["generation"]:
        seeds = of_setting(documents, name)
        lines += [f"### {SETTINGS[name].label}", ""]
        if not seeds:
            lines += [NOT_YET, ""]
            continue
        rows = [
            [
                str(step + 1),
                *(mean(seeds, 4, at("forecast", key, step)) for key in ("mse", "mse_copy_last")),
                *(
                    mean(seeds, 2, at("forecast", key, step))
                    for key in ("centre", "centre_constant_velocity", "centre_copy_last")
                ),
                mean(seeds, 2, per_clip(at("forecast", "lost", step))),
            ]
            for step in range(min(len(document["forecast"]["mse"]) for document in seeds))
        ]
        lines += [*table([*head, "lost per clip"], rows), "", f"Training: {training_time(seeds)}.", ""]
    return [
        *lines,
        "After five observed frames, the most likely future. Lost: objects followed when imagining began that are no "
        "longer shown. The paper gives no numbers.",
    ]


def efficiency(documents: Sequence[Document]) -> list[str]:
    """A row a system."""
    systems = list(dict.fromkeys(document["system"] for document in documents)) or ["SCALOR"]
    objects = sorted({row["objects"] for document in documents for row in document["speed"]})
    sqair, scalor = paper.SQAIR_LIKELIHOOD["mnist-vld"].mse, paper.LIKELIHOOD["mnist-vld"].mse
    speeds, progress = [], []
    for system in systems:
        own = [document for document in documents if document["system"] == system]
        timed, trained = ([document for document in own if document[key]] for key in ("speed", "training"))
        times = [mean(timed, 2, ms_per_frame(count)) for count in objects]
        speeds.append([system, *measured(timed, times or [""])])
        waits = [mean(trained, 0, seconds_until(mse)) for mse in (sqair, scalor)]
        last = mean(trained, 4, at("training", -1, "mse"))
        progress.append([system, *measured(trained, [*waits, last, training_time(trained)])])
    return [
        *table(["milliseconds a frame", *(f"{count} objects" for count in objects or ("4 to 64",))], speeds),
        "",
        "One stream, from a frame handed over to its tracks there; shapes of 9 px, as many slots as objects. "
        f"{paper.EFFICIENCY} ({paper.CURVES_SOURCE} c; the paper gives no numbers.)",
        "",
        *table(
            [
                "MNIST VLD",
                *(f"s of training to MSE {figure(mse, 4)}" for mse in (sqair, scalor)),
                "last MSE",
                "training",
            ],
            progress,
        ),
        "",
        f"The MSE that the paper ends with: SQAIR {figure(sqair, 4)}, SCALOR {figure(scalor, 4)} "
        f"({paper.LIKELIHOOD_SOURCE}). Seconds without those of evaluations; {NOTHING} where it was not reached.",
    ]


def generalisation(documents: Sequence[Document]) -> list[str]:
    head = ["trained on, then tested on", "clips of", *MOTA, "HOTA", "IDF1", "count MAE", "MSE", "training"]
    rows = []
    for name in TABLES["generalisation"]:
        seeds = of_setting(documents, name)
        for where, scenes in (("metrics", "the test scenes"), ("metrics_as_trained", "the scenes trained on")):
            having = [document for document in seeds if where in document]
            if where == "metrics" or having:
                ours = [
                    *metrics(having, (*GATES, "hota", "strict_idf1", "count_mae"), 3, where),
                    *metrics(having, ("mse",), 4, where),
                    training_time(having),
                ]
                rows.append([SETTINGS[name].label, scenes, *measured(having, ours)])
    return [
        *table(head, rows),
        "",
        "IDF1 is under the strict gate. The paper gives numbers for 20 frames alone (see Tracking), pictures for all.",
    ]


SECTIONS: dict[str, tuple[str, Section]] = {
    "tracking": ("Tracking", tracking),
    "likelihood": ("Likelihood", likelihood),
    "ablation": ("Ablation", ablation),
    "generation": ("Generation", generation),
    "efficiency": ("Efficiency", efficiency),
    "generalisation": ("Generalisation", generalisation),
}
"""By table: the title and what stands under it."""


def of_setting(documents: Sequence[Document], name: str) -> list[Document]:
    return [document for document in documents if document["setting"] == name]


def scenes_of(name: str) -> str:
    """The paper's configuration has the scenes of ours."""
    return name.removeprefix("paper-")


def metrics(documents: Sequence[Document], names: Sequence[str], digits: int, where: str = "metrics") -> list[str]:
    return [mean(documents, digits, at(where, name)) for name in names]


def ms_per_frame(objects: int) -> Callable[[Document], float | None]:
    def get(document: Document) -> float | None:
        return next((row["ms_per_frame"] for row in document["speed"] if row["objects"] == objects), None)

    return get


def seconds_until(mse: float) -> Callable[[Document], float | None]:
    """The seconds of training at the first evaluation at or below an error."""

    def get(document: Document) -> float | None:
        reached = (line for line in document["training"] if line["mse"] is not None and line["mse"] <= mse)
        return next((line["seconds"] for line in reached), None)

    return get
