"""Result files: one JSON document per setting and seed, `RESULTS/TABLE/SETTING-seedK.json`, written atomically."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scalor.config import Config
from scalor.errors import InputError
from scalor.files import as_json, replacing
from scalor.reproduce.catalogue import SETTINGS, TABLES, Cell, Setting
from scalor.reproduce.runs import differing_field
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
                raise InputError(f"{path} is no result of scalor reproduce ({error!r}): move it away.") from error
            if named != (table, path.stem):
                raise InputError(f"{path} says it is {'/'.join(named)}: give the file that name, or move it away.")
            yield document
