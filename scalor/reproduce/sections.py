"""The sections of the results page, one function per table: our results beside quoted ones, with notes below."""

import statistics
from collections.abc import Callable, Sequence

from scalor.reproduce import paper
from scalor.reproduce.catalogue import (
    ABLATION_OURS,
    ABLATION_PAPER,
    ABLATION_REMEDIES,
    CLASSICAL,
    DENSITIES,
    DEVICES,
    SETTINGS,
    SMALL_BACKGROUND,
    STILL,
    SYSTEMS,
    TABLES,
    classical,
    of_system,
    scenes_of,
)
from scalor.reproduce.future_sections import balls, generation
from scalor.reproduce.results import (
    NOTHING,
    Document,
    at,
    figure,
    listed,
    mean,
    measured,
    metrics,
    of_setting,
    per_clip,
    quoted,
    table,
    training_time,
)

Section = Callable[[Sequence[Document]], list[str]]
"""Function from the results of a table to the lines of its section."""

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
SQAIR_NOTE = (
    "SQAIR is our own implementation, trained on the same scenes for twice as many steps as SCALOR, beginning with "
    "single frames."
)
WHOLE_NOTE = (
    "VRNN and the sequential VAE are our own implementations; they see frames whole and are trained on as many "
    "clips as SCALOR at least, all of the full length, in half the steps."
)
KNOWN_SCENES = {STILL: ", the empty scene given", SMALL_BACKGROUND: ", the paper's background"}
"""What is said of a system's name in the table of the replay."""
PUBLISHED = ("scalor", "vrnn", "sqair")
"""Systems whose likelihood the paper reports."""
SQAIR_MSE, SCALOR_MSE = paper.LIKELIHOOD["sqair-mnist-vld"].mse, paper.LIKELIHOOD["mnist-vld"].mse
"""Final MSE of the paper's models on MNIST VLD (Table 2)."""


def tracking(documents: Sequence[Document]) -> list[str]:
    """Write the table of tracking, with the paper's figures and those of classical trackers."""
    head = ["scene", *MOTA, "precision", "recall", "HOTA", "IDF1", "switches per clip", "count MAE", "MSE", "training"]
    head += ["paper: MOTA", "precision", "recall", "count MAE"]
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
        others = [
            *(quoted(published(name), field, 3) for field in ("mota", "precision", "recall", "count_mae")),
            *(classical_mota(documents, name, way, field) for way in CLASSICAL for field in ("paper_mota", STRICT)),
            ahead(documents, name),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours), *others])
    return [
        *table([*head, AHEAD], rows),
        "",
        "Precision and recall are under the paper's gate, IDF1 and switches under the strict one. The paper's figures: "
        f"its {paper.TRACKING_SOURCE}, of SCALOR or SQAIR as the row is. {SQAIR_NOTE} {classical_note(rows)}",
    ]


def published(name: str) -> paper.Tracked | None:
    """Return the paper's numbers for the scenes and the system of a row, or None."""
    return paper.TRACKING.get(name.removeprefix("paper-"))


def short_tracking(documents: Sequence[Document]) -> list[str]:
    """Return the short tracking table of docs/research.md."""
    rows = []
    for name in trained_settings("tracking"):
        seeds = of_setting(documents, name)
        ours = [*metrics(seeds, (*GATES, "hota", "count_mae"), 3), training_time(seeds)]
        others = [
            quoted(published(name), "mota", 3),
            *(classical_mota(documents, name, way, STRICT) for way in CLASSICAL),
            ahead(documents, name),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours), *others])
    head = ["scene", *MOTA, "HOTA", "count MAE", "training", "the paper's MOTA"]
    head += [*(f"classical, {way}: strict gate" for way in CLASSICAL), AHEAD]
    return [*table(head, rows), "", classical_note(rows)]


def classical_mota(documents: Sequence[Document], name: str, way: str, field: str) -> str:
    """Return the MOTA of a classical tracker on a setting's scenes: measured, otherwise quoted, otherwise NOTHING."""
    found = of_setting(documents, classical(scenes_of(name), way))
    if found:
        return mean(found, 3, at("metrics", field))
    known = paper.CLASSICAL.get(scenes_of(name)) if way == "colour" else None
    return f"{quoted(known, field, 3)} {QUOTED}" if known else NOTHING


def ahead(documents: Sequence[Document], name: str) -> str:
    """Return the system with the highest MOTA (strict gate), if SCALOR and another system are measured."""
    scenes = scenes_of(name)
    ours = name if SETTINGS[name].system == "SCALOR" else scenes
    settings = {"SCALOR": ours, "SQAIR": of_system("sqair", scenes)}
    settings |= {f"classical, {way}": classical(scenes, way) for way in CLASSICAL}
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
    """Return the note on classical trackers, which says where numbers are quoted."""
    any_quoted = any(cell.endswith(QUOTED) for row in rows for cell in row)
    return CLASSICAL_NOTE + QUOTED_NOTE * any_quoted


def trained_settings(name: str) -> list[str]:
    """Return the rows of a table: all settings but those of classical trackers, which are columns."""
    return [setting for setting in TABLES[name] if not SETTINGS[setting].detect]


def likelihood(documents: Sequence[Document]) -> list[str]:
    """Return the section with one row per scene and columns for every system."""
    head = ["scene", *(part for called in SYSTEMS.values() for part in (f"{called}: NLL", "MSE", "training"))]
    head += [part for system in PUBLISHED for part in (f"paper, {SYSTEMS[system]}: NLL", "MSE")]
    rows = []
    for scenes in DENSITIES:
        ours = [cell for system in SYSTEMS for cell in likely(documents, of_system(system, scenes))]
        theirs = [paper.LIKELIHOOD.get(of_system(system, scenes)) for system in PUBLISHED]
        quotes = [quoted(one, field, digits) for one in theirs for field, digits in (("nll", 2), ("mse", 4))]
        rows.append([SETTINGS[scenes].label, *ours, *quotes])
    return [
        *table(head, rows),
        "",
        f"{bound(documents)} {SQAIR_NOTE} The paper could not make it work on more objects. {WHOLE_NOTE} The paper's "
        f"NLL ({paper.LIKELIHOOD_SOURCE}) is in other units and for its own data: it cannot be compared with ours.",
    ]


def likely(documents: Sequence[Document], name: str) -> list[str]:
    """Return the cells of NLL, MSE and training time; NOTHING if there is no such setting."""
    if name not in SETTINGS:
        return [NOTHING] * 3
    seeds = of_setting(documents, name)
    return measured(seeds, [*metrics(seeds, ("nll",), 3), *metrics(seeds, ("mse",), 4), training_time(seeds)])


def bound(documents: Sequence[Document]) -> str:
    """Return a sentence that defines the NLL of a table."""
    counts = {document["metrics"]["nll_samples"] for document in documents}
    alike = "for all systems alike" if len(counts) < 2 else "not as many for all"
    return (
        f"NLL is in nats per pixel: a bound from {listed(counts) or 'several'} importance-weighted samples, {alike}, "
        "summed over a clip and divided by the pixels of a frame; densities may exceed 1, so it may be negative."
    )


def ablation(documents: Sequence[Document]) -> list[str]:
    """Write the tables of models with and without rejection and attention, and without each of our remedies."""
    head = ["propagation rate", "discoveries per clip", "MOTA, strict gate", "count MAE", "training"]
    lines = []
    for first, names in (
        ("the paper's configuration", ABLATION_PAPER),
        ("ours", ABLATION_OURS),
        ("ours without one remedy", ABLATION_REMEDIES),
    ):
        rows = ablation_rows(documents, names)
        said = [paper.ABLATION[name] for name in names if name in paper.ABLATION]
        if said:
            rows = [[*row, words] for row, words in zip(rows, said, strict=True)]
        lines += [*table([first, *head, *(["in the paper"] if said else [])], rows), ""]
    return [
        *lines,
        "6-36 shapes, at the end of training; the curves over training are in the result files. The paper's words: "
        f"its {paper.CURVES_SOURCE} (a, b) and the text around it. Where ours differ, and why that may be: "
        "[log.md](log.md), the recipe, part three.",
    ]


def ablation_rows(documents: Sequence[Document], names: Sequence[str]) -> list[list[str]]:
    """Return the rows of one table of the ablation."""
    rows = []
    for name in names:
        seeds = of_setting(documents, name)
        ours = [
            *metrics(seeds, ("propagation_rate",), 3),
            *metrics(seeds, ("discoveries_per_clip",), 1),
            *metrics(seeds, ("strict_mota", "count_mae"), 3),
            training_time(seeds),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours)])
    return rows


def efficiency(documents: Sequence[Document]) -> list[str]:
    """Return the section with inference times per system and device, then training progress per system."""
    return [
        *inference_times(documents),
        "",
        "One stream, from a frame handed over to its tracks there; the same shapes of 9 px for both systems, as many "
        "slots as objects. SCALOR has the weights of shapes MD, SQAIR those of shapes VLD and, after the first frame, "
        "three steps of discovery. On a GPU a frame of either is one captured graph. "
        f"{paper.EFFICIENCY} ({paper.CURVES_SOURCE} c; the paper gives no numbers.)",
        "",
        *training_progress(documents),
        "",
        f"The MSE that the paper ends with: SQAIR {figure(SQAIR_MSE, 4)}, SCALOR {figure(SCALOR_MSE, 4)} "
        f"({paper.LIKELIHOOD_SOURCE}). Both from scratch, each alone on the device unless the last column says "
        "otherwise. On a GPU the steps of both are compiled, then captured as graphs. Seconds "
        "with those of compiling, without those of evaluations, until the MSE is reached and kept; "
        f"{NOTHING} where it was not. The last MSE and "
        "MOTA are of the few clips of such an evaluation. A black frame has less than SQAIR's here, so that "
        "one is reached before anything is learned.",
    ]


def inference_times(documents: Sequence[Document]) -> list[str]:
    """Write the table of the time per frame against the number of objects."""
    objects = sorted({row["objects"] for document in documents for row in document["speed"]})
    rows = []
    for name in TABLES["efficiency"]:
        setting, seeds = SETTINGS[name], of_setting(documents, name)
        if setting.device:
            times = [mean(seeds, 2, ms_per_frame(count)) for count in objects] or [""]
            cells = measured(seeds, [*times, listed(map(hardware, seeds))])
            rows.append([f"{setting.system}, {DEVICES[setting.device]}", *cells])
    head = ["milliseconds a frame", *(f"{count} objects" for count in objects or ("4 to 64",)), "hardware"]
    return table(head, rows)


def hardware(document: Document) -> str:
    """Return what the inference was timed on; on a CPU, with the number of threads."""
    name: str = document["evaluation_provenance"]["hardware"]
    return name if document["device"] == "cuda" else f"{name}, threads: {document['threads']}"


def training_progress(documents: Sequence[Document]) -> list[str]:
    """Write the table of how fast the systems train, and how far."""
    rows = []
    for name in TABLES["efficiency"]:
        setting, seeds = SETTINGS[name], of_setting(documents, name)
        if not setting.device:
            waits = [mean(seeds, 0, seconds_until(mse)) for mse in (SQAIR_MSE, SCALOR_MSE)]
            last = [mean(seeds, 4, at("training", -1, "mse")), mean(seeds, 3, at("training", -1, "paper_mota"))]
            rows.append([setting.system, *measured(seeds, [*waits, *last, training_time(seeds)])])
    waits_for = [f"s of training to MSE {figure(mse, 4)}" for mse in (SQAIR_MSE, SCALOR_MSE)]
    return table(["MNIST VLD", *waits_for, "last MSE", "last MOTA, paper's gate", "training"], rows)


def generalisation(documents: Sequence[Document]) -> list[str]:
    """Write the table of models tested on other scenes than those they were trained on."""
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


def replay(documents: Sequence[Document]) -> list[str]:
    """Return the section with one row per system."""
    head = ["semi-synthetic replay", *MOTA, "HOTA", "IDF1", "count MAE", "NLL", "MSE", "training"]
    rows = []
    for name in TABLES["replay"]:
        seeds = of_setting(documents, name)
        tracked = [document for document in seeds if "hota" in document["metrics"]]
        ours = [*metrics(tracked, (*GATES, "hota", "strict_idf1", "count_mae"), 3), *likely(documents, name)]
        called = SETTINGS[name].system + KNOWN_SCENES.get(name, "")
        rows.append([called, *measured(seeds, ours), figure(paper.NATURAL_NLL.get(name), 2)])
    return [
        *table([*head, "paper, real video: NLL"], rows),
        "",
        "Semi-synthetic: the paths, the crowds and the background are real, the people are drawn. IDF1 is under the "
        "strict gate; VRNN and the sequential VAE know no objects. The empty scene is the median of each place's "
        "frames: who is given it need not explain what stands there, so the NLL of that row is not that of the others. "
        f"{bound(documents)} {WHOLE_NOTE} The paper's NLL "
        f"({paper.NATURAL_SOURCE}) is for the real video and in other units: it cannot be compared with ours.",
    ]


SECTIONS: dict[str, tuple[str, Section]] = {
    "tracking": ("Tracking", tracking),
    "likelihood": ("Likelihood", likelihood),
    "ablation": ("Ablation", ablation),
    "generation": ("Generation", generation),
    "efficiency": ("Efficiency", efficiency),
    "generalisation": ("Generalisation", generalisation),
    "replay": ("Grand Central, a semi-synthetic replay", replay),
    "balls": ("Bouncing balls", balls),
}
"""Title and function of the section of each table."""


def ms_per_frame(objects: int) -> Callable[[Document], float | None]:
    """Return a function that reads the time per frame with a number of objects from a document."""

    def get(document: Document) -> float | None:
        return next((row["ms_per_frame"] for row in document["speed"] if row["objects"] == objects), None)

    return get


def seconds_until(mse: float) -> Callable[[Document], float | None]:
    """Return a function that reads the seconds of training until an MSE is reached and no longer exceeded."""

    def get(document: Document) -> float | None:
        since = None
        for line in document["training"]:
            if line["mse"] is None or line["mse"] > mse:
                since = None
            elif since is None:
                since = line["seconds"]
        return since

    return get
