"""Figures as Markdown: tables, means with ranges, and the line that says where they come from."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scalor.reproduce.results import Document, changed_since

NOT_YET = "not measured yet"
NOTHING = "-"

Get = Callable[[Document], float | None]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The first column names the row, all others are figures."""
    marks = [":--", *["--:"] * (len(head) - 1)]
    return [f"| {' | '.join(line)} |" for line in (head, marks, *rows)]


def figure(value: float | None, digits: int) -> str:
    """As the README writes them: .916, not 0.916."""
    if value is None:
        return NOTHING
    text = f"{round(value, digits) + 0.0:,.{digits}f}"  # adding zero makes -0.0 plain
    return re.sub(r"^(-?)0\.", r"\1.", text)


def quoted(record: object, field: str, digits: int) -> str:
    """A published figure, where there is one."""
    return figure(None if record is None else getattr(record, field), digits)


def at(*path: str | int) -> Get:
    """What stands at a place in a document."""

    def get(document: Document) -> float | None:
        value: Any = document
        for key in path:
            value = value[key]
        return None if value is None else float(value)

    return get


def per_clip(get: Get) -> Get:
    def divided(document: Document) -> float | None:
        total = get(document)
        return None if total is None else total / document["metrics"]["clips"]

    return divided


def mean(documents: Sequence[Document], digits: int, get: Get) -> str:
    """The mean over seeds and, where they differ, their range; unknown when one of them is."""
    values = [value for value in map(get, documents) if value is not None]
    if not values or len(values) < len(documents):
        return NOTHING
    middle, least, most = (figure(value, digits) for value in (sum(values) / len(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least} to {most})"


def measured(documents: Sequence[Document], cells: Sequence[str]) -> list[str]:
    """A row's own figures, or the words that there are none yet."""
    return list(cells) if documents else [NOT_YET, *[""] * (len(cells) - 1)]


def training_time(documents: Sequence[Document]) -> str:
    """Seconds of training, and how many trainings shared the device."""
    time = mean(documents, 0, at("training_provenance", "seconds"))
    if time == NOTHING:
        return "unknown"
    shared = listed(document["training_provenance"]["side_by_side"] for document in documents)
    return f"{time} s" if shared in ("", "1") else f"{time} s, {shared} side by side"


def origin(documents: Sequence[Document], table: str) -> list[str]:
    """Who made these figures: in brief, and folded away every command with its commit, hardware and date."""
    if not documents:
        return [f"Nothing measured yet: `scalor reproduce {table}` does it."]
    measurements, trainings = provenances(documents)
    commands = [f"- measured by {one}" for one in made_by(measurements)]
    commands += [f"- trained by {one}" for one in made_by(trainings)]
    commands += [f"- {one}" for one in outdated(documents)]
    return ["<details>", f"<summary>{brief(documents)}</summary>", "", *commands, "", "</details>"]


def outdated(documents: Sequence[Document]) -> list[str]:
    """A sentence where presets are not what they were."""
    changed: dict[str, dict[str, None]] = {}  # in the order they come in, each once
    for document in documents:
        if field := changed_since(document):
            changed.setdefault(field, {})[document["setting"]] = None
    told = "; ".join(f"{', '.join(names)} (first difference: {field})" for field, names in changed.items())
    return [f"made anew when asked for, since presets have changed: {told}"] if told else []


def brief(documents: Sequence[Document]) -> str:
    """Where and when these figures were made, of which seeds and from how many clips."""
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
    """Of the measurements, and of the trainings where there were any."""
    trainings = [document["training_provenance"] for document in documents if document["training_provenance"]]
    return [document["evaluation_provenance"] for document in documents], trainings


def made_by(origins: Sequence[Document]) -> list[str]:
    """Every command once, with what is known of it."""
    commands: dict[str, list[Document]] = {}
    for one in origins:
        commands.setdefault(one["command"], []).append(one)
    return [f"`{command}` ({', '.join(facts(own))}, {days(own)})" for command, own in commands.items()]


def facts(origins: Sequence[Document]) -> list[str]:
    return [f"commit {listed(one['commit'] for one in origins)}", listed(one["hardware"] for one in origins)]


def days(origins: Sequence[Document]) -> str:
    dates = sorted({one["date"] for one in origins})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def listed(values: Iterable[Any]) -> str:
    """Every value that is there once, in order."""
    found = sorted({value for value in values if value is not None})
    return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in found)
