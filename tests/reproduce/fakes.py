"""Result files that nobody measured, to see what becomes of their numbers."""

import json
from pathlib import Path
from typing import Any

from scalor.reproduce.catalogue import SETTINGS
from scalor.reproduce.results import Document

GATES = ("paper", "strict", "iou")
METRICS = {
    **{f"{gate}_{name}": 0.5 for gate in GATES for name in ("mota", "precision", "recall", "idf1")},
    **{f"{gate}_switches": 30.0 for gate in GATES},
    "hota": 0.6,
    "count_mae": 0.05,
    "propagation_rate": 0.9,
    "discoveries_per_clip": 20.0,
    "clips": 1000.0,
    "mse": 0.0021,
    "nll": -17.5,
    "nll_samples": 10,
}


def document(table: str, setting: str, seed: int = 0, **changes: Any) -> Document:
    origin = {"command": f"scalor reproduce {table}", "commit": "abc1234", "hardware": "a GPU", "date": "2027-01-02"}
    return {
        "table": table,
        "setting": setting,
        "system": "SCALOR",
        "seed": seed,
        "metrics": METRICS,
        "training_provenance": {**origin, "command": "scalor train all", "seconds": 200.0, "side_by_side": 8},
        "evaluation_provenance": {**origin, "clips": 1000, "nll_samples": 0},
        "asked": {"config": SETTINGS[setting].config(seed).to_dict()},
        **changes,
    }


def metrics(**changes: float | None) -> dict[str, float | None]:
    return {**METRICS, **changes}


def write(folder: Path, *documents: Document) -> None:
    for one in documents:
        path = folder / one["table"] / f"{one['setting']}-seed{one['seed']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(one))
