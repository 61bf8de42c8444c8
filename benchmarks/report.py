"""Rows of figures as a table to read and as JSON that says where they come from."""

import json
import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.plan import Plan
from scalor.files import replacing
from scalor.provenance import commit, today


def table(rows: Sequence[Any]) -> str:
    """Rows of one dataclass, a column a field; a column in which no row has anything is left out."""
    if not rows:
        return "(nothing)"
    names = [field.name for field in fields(rows[0]) if any(getattr(row, field.name) is not None for row in rows)]
    head = [name.replace("_", " ") for name in names]
    cells = [[plain(getattr(row, name)) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in [head, *cells]) for column in range(len(names))]
    texts = [isinstance(getattr(rows[0], name), str) for name in names]

    def line(words: list[str]) -> str:
        columns = zip(words, widths, texts, strict=True)
        return "  ".join(word.ljust(width) if text else word.rjust(width) for word, width, text in columns).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, cells)])


def plain(value: object) -> str:
    """A value for a reader: four digits are enough."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value and abs(value) < 1e-3:
            return f"{value:.1e}"
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
    return str(value)


def provenance(plan: Plan, words: Sequence[str]) -> dict[str, Any]:
    """Enough to make the figures again: command, commit, hardware, date, versions, settings."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *words]),
        "commit": commit(),
        "date": today(),
        "hardware": hardware(plan.where),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": installed("triton"),
        "seed": plan.seed,
        "settings": asdict(plan),
    }


def hardware(device: torch.device) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        # Above zero before we have begun, somebody else is at work on this machine.
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
        found["gpu_memory_gib"] = round(torch.cuda.get_device_properties(device).total_memory / 2**30, 1)
        found["cuda"] = torch.version.cuda
    return found


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write(path: Path, result: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text(json.dumps(result, indent=2) + "\n")
    return path
