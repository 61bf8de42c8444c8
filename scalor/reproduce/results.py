"""Result files: one JSON document per setting and seed, `RESULTS/TABLE/SETTING-seedK.json`, written atomically.

Results become Markdown tables, with means and ranges over the seeds and a summary of their provenance.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scalor.config import Config
from scalor.errors import InputError
from scalor.files import as_json, replacing
from scalor.reproduce.catalogue import SETTINGS, TABLES, Cell, Setting, differing_field, short_name
from scalor.systems import config_from_dict
from scalor.training.loop import MAX_CONCURRENT_RUNS

Document = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """Settings of one call of `scalor reproduce`."""

    clips: int
    """Number of unseen clips to measure on."""
    nll_samples: int
    """Number of samples of the likelihood bound."""
    runs: Path
    """Folder of the run folders."""
    results: Path
    """Folder of the result files."""
    device: torch.device
    together: int = MAX_CONCURRENT_RUNS
    """Largest number of trainings that run in parallel."""

    def path(self, cell: Cell) -> Path:
        """Return the result file of a cell."""
        return self.results / cell.table / f"{cell.name}.json"

    def device_of(self, cell: Cell) -> torch.device:
        """Return the device for a cell: the CPU for CPU timings and classical trackers, otherwise `device`."""
        on_cpu = cell.setting.device == "cpu" or cell.setting.detect
        return torch.device("cpu") if on_cpu else self.device

    def asked(self, cell: Cell) -> Document:
        """Return what a result depends on. A result with equal values need not be made again."""
        return {
            "clips": None if cell.table == "efficiency" else self.clips,
            "nll_samples": self.nll_samples if cell.table in ("likelihood", "replay") else 0,
            "config": cell.config.to_dict(),
        }


def kept(cell: Cell, order: Order) -> Document | None:
    """Return the existing result of a cell if it is up to date, otherwise None."""
    path = order.path(cell)
    if not path.exists():
        return None
    try:
        document: Document = json.loads(path.read_text())
        asked, found = order.asked(cell), document["asked"]
        config = config_from_dict(found["config"])
    except (InputError, KeyError, TypeError, ValueError):  # written by another version, or no result file
        return None
    same = all(asked[name] == found[name] for name in ("clips", "nll_samples"))
    return document if same and not difference(cell.setting, config, cell.config) else None


def changed_since(document: Document) -> str | None:
    """Return the first setting that has changed since a result was made, or None."""
    try:
        setting = SETTINGS[document["setting"]]
        then, now = config_from_dict(document["asked"]["config"]), setting.config(document["seed"])
    except (InputError, KeyError, TypeError, ValueError):  # written by another version
        return "settings that there were then"
    return difference(setting, then, now)


def difference(setting: Setting, then: Config, now: Config) -> str | None:
    """Return the first difference between two configs: in the training, if there is one, or in the test scenes."""
    if not setting.detect and (field := differing_field(then, now)):
        return field
    return "test" if then.test != now.test else None


def write(cell: Cell, order: Order, document: Document) -> Document:
    """Write a result; return it as it would be read from the file."""
    path = order.path(cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = as_json(document)
    with replacing(path) as beside:
        beside.write_text(text)
    written: Document = json.loads(text)
    return written


def read_all(folder: Path) -> list[Document]:
    """Read the results of all tables, sorted by setting and then by seed.

    If a preset changed between seeds, the seeds from before the change are left out: a mean over both would describe
    neither version. If all seeds are from before the change, they are kept.
    """
    rows: dict[tuple[str, str], list[Document]] = {}
    for document in sorted(read_files(folder), key=lambda document: (document["setting"], document["seed"])):
        rows.setdefault((document["table"], document["setting"]), []).append(document)
    renewed = [[one for one in row if not changed_since(one)] or row for row in rows.values()]
    return [document for row in renewed for document in row]


def read_files(folder: Path) -> Iterable[Document]:
    """Yield all result documents, after a check that each lies where its contents say."""
    for table in TABLES:
        for path in sorted((folder / table).glob("*.json")):
            try:
                document: Document = json.loads(path.read_text())
                named = (document["table"], f"{document['setting']}-seed{document['seed']}")
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path} is not a result of scalor reproduce ({error!r}): move it away.") from error
            if named != (table, path.stem):
                raise InputError(f"{path} says it is {'/'.join(named)}: give the file that name, or move it away.")
            yield document


NOT_YET = "not measured yet"
NOTHING = "-"
"""Cell of a value that does not exist."""

Get = Callable[[Document], float | None]
"""Function that reads one value from a result document."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first column is left-aligned, all others are right-aligned."""
    marks = [":--", *["--:"] * (len(head) - 1)]
    return [f"| {' | '.join(line)} |" for line in (head, marks, *rows)]


def figure(value: float | None, digits: int) -> str:
    """Return a number as text, without a leading zero (.916), or NOTHING for None."""
    if value is None:
        return NOTHING
    text = f"{round(value, digits) + 0.0:,.{digits}f}"  # adding zero makes -0.0 plain
    return re.sub(r"^(-?)0\.", r"\1.", text)


def quoted(record: object, field: str, digits: int) -> str:
    """Return a published number as text, or NOTHING if there is no record."""
    return figure(None if record is None else getattr(record, field), digits)


def at(*path: str | int) -> Get:
    """Return a function that reads the value at a path of keys in a document."""

    def get(document: Document) -> float | None:
        value: Any = document
        for key in path:
            value = value[key]
        return None if value is None else float(value)

    return get


def of_setting(documents: Sequence[Document], name: str) -> list[Document]:
    """Return the results of one setting, one for each seed."""
    return [document for document in documents if document["setting"] == name]


def metrics(documents: Sequence[Document], names: Sequence[str], digits: int, where: str = "metrics") -> list[str]:
    """Return the cells of several metrics, each a mean over seeds."""
    return [mean(documents, digits, at(where, name)) for name in names]


def per_clip(get: Get) -> Get:
    """Return a function that divides a value by the number of clips."""

    def divided(document: Document) -> float | None:
        total = get(document)
        return None if total is None else total / document["metrics"]["clips"]

    return divided


def mean(documents: Sequence[Document], digits: int, get: Get) -> str:
    """Return the mean over seeds and, if they differ, their range; NOTHING if a seed has no value."""
    values = [value for value in map(get, documents) if value is not None]
    if not values or len(values) < len(documents):
        return NOTHING
    middle, least, most = (figure(value, digits) for value in (sum(values) / len(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"


def measured(documents: Sequence[Document], cells: Sequence[str]) -> list[str]:
    """Return the cells of a row, or NOT_YET and blank cells if there are no results."""
    return list(cells) if documents else [NOT_YET, *[""] * (len(cells) - 1)]


def training_time(documents: Sequence[Document]) -> str:
    """Return the seconds of training as text, and how many trainings shared the device."""
    time = mean(documents, 0, at("training_provenance", "seconds"))
    if time == NOTHING:
        return "unknown"
    shared = listed(document["training_provenance"]["side_by_side"] for document in documents)
    return f"{time} s" if shared in ("", "1") else f"{time} s, {shared} side by side"


def origin(documents: Sequence[Document], table: str) -> list[str]:
    """Return the provenance of results: a summary and, folded away, every command with commit, hardware and date."""
    if not documents:
        return [f"Nothing measured yet: `scalor reproduce {table}` does it."]
    measurements, trainings = provenances(documents)
    commands = [f"- measured by {one}" for one in made_by(measurements)]
    commands += [f"- trained by {one}" for one in made_by(trainings)]
    commands += [f"- {one}" for one in outdated(documents)]
    return ["<details>", f"<summary>{brief(documents)}</summary>", "", *commands, "", "</details>"]


def outdated(documents: Sequence[Document]) -> list[str]:
    """Return a sentence on the presets that changed since the results were made; an empty list if none changed."""
    changed = changes(documents).items()
    told = "; ".join(f"{', '.join(names)} (the first setting that differs: {field})" for field, names in changed)
    return [f"made with older settings of their presets, which `scalor reproduce` makes again: {told}"] if told else []


def changes(documents: Sequence[Document]) -> dict[str, list[str]]:
    """Return the settings whose presets changed since their results were made, by the first setting that changed."""
    changed: dict[str, dict[str, None]] = {}  # ordered, without duplicates
    for document in documents:
        if field := changed_since(document):
            changed.setdefault(field, {})[document["setting"]] = None
    return {field: list(names) for field, names in changed.items()}


def to_be_made(documents: Sequence[Document]) -> list[str]:
    """Return a table of all results that were made before a change or never, with the command that makes them."""
    rows = []
    for name, settings in TABLES.items():
        own = [document for document in documents if document["table"] == name]
        known = {document["setting"] for document in own}
        states = [(f"made before {field} changed", names) for field, names in changes(own).items()]
        states.append(("not measured yet", [setting for setting in settings if setting not in known]))
        for state, names in states:
            if names:
                asked = " ".join(map(short_name, names))
                rows.append([name, ", ".join(names), state, f"`scalor reproduce {name} --setting {asked} --seeds 0`"])
    return table(["table", "settings", "state", "command"], rows)


def brief(documents: Sequence[Document]) -> str:
    """Return one line on where and when results were made, with which seeds and how many clips."""
    measurements, trainings = provenances(documents)
    clips = listed(one["clips"] for one in measurements)
    parts = [
        f"Measured on {listed(one['hardware'] for one in measurements)}, {days(measurements)}",
        f"trained on {listed(one['hardware'] for one in trainings)}, {days(trainings)}"
        if trainings
        else "nothing trained",
        f"seeds {listed(document['seed'] for document in documents)}",
        *([f"{clips} clips"] if clips else []),
    ]
    return "; ".join(parts) + "."


def provenances(documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Return the provenance of the measurements, and of the trainings if there were any."""
    trainings = [document["training_provenance"] for document in documents if document["training_provenance"]]
    return [document["evaluation_provenance"] for document in documents], trainings


def made_by(origins: Sequence[Document]) -> list[str]:
    """Return every command once, with its commits, hardware and dates."""
    commands: dict[str, list[Document]] = {}
    for one in origins:
        commands.setdefault(one["command"], []).append(one)
    return [f"`{command}` ({', '.join(facts(own))}, {days(own)})" for command, own in commands.items()]


def facts(origins: Sequence[Document]) -> list[str]:
    """Return the commits and the hardware that made results."""
    return [f"commit {listed(one['commit'] for one in origins)}", listed(one["hardware"] for one in origins)]


def days(origins: Sequence[Document]) -> str:
    """Return the first and the last date of results."""
    dates = sorted({one["date"] for one in origins})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def listed(values: Iterable[Any]) -> str:
    """Return all distinct values, sorted and joined by commas; None is left out."""
    found = sorted({value for value in values if value is not None})
    return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in found)
