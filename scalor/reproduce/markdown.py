"""Figures as Markdown: tables, means with ranges, and the line that says where they come from."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scalor.reproduce.results import Document

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


def origin(documents: Sequence[Document], table: str) -> str:
    """One line: which command, commit, hardware, seeds and date made these figures."""
    if not documents:
        return f"Nothing measured yet: `scalor reproduce {table}` does it."
    clips = listed(document["evaluation_provenance"]["clips"] for document in documents)
    seeds = listed(document["seed"] for document in documents)
    trainings = [document["training_provenance"] for document in documents if document["training_provenance"]]
    return (
        f"Measured by {made_by([document['evaluation_provenance'] for document in documents])}; "
        f"{f'trained by {made_by(trainings)}' if trainings else 'nothing trained'}; "
        f"seeds {seeds}{f'; {clips} clips' if clips else ''}."
    )


def made_by(origins: Sequence[Document]) -> str:
    commands = " and ".join(f"`{command}`" for command in dict.fromkeys(one["command"] for one in origins))
    dates = sorted({one["date"] for one in origins})
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    commits, hardware = (listed(one[key] for one in origins) for key in ("commit", "hardware"))
    return f"{commands} (commit {commits}, {hardware}, {days})"


def listed(values: Iterable[Any]) -> str:
    """Every value that is there once, in order."""
    found = sorted({value for value in values if value is not None})
    return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in found)
