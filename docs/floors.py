"""Draw docs/pictures/floors.svg: the floors of the package, and those that three commands pass.

    python docs/floors.py

The floors are the layers of the import contract in pyproject.toml. The dots are the journeys that
`python -m benchmarks.structure` recorded in benchmarks/results/structure.json.
"""

import json
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "pictures" / "floors.svg"
RECORD = ROOT / "benchmarks" / "results" / "structure.json"

ROW, TOP, NAME, TEXT, DOTS, GAP, WIDTH = 24, 52, 16, 250, 690, 60, 880
"""Pixels: the height of a row, of the heading, the left edges of names, texts and dots, the gap of dots, the width."""
FONT = 'font-family="sans-serif" font-size="13"'
JOURNEYS = {"train": "#b5482a", "track": "#2a6f97", "fit": "#5a7d2a"}


def floors() -> list[list[str]]:
    """Return the floors from the top, each as the names of its packages and modules."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().removeprefix("scalor.") for name in layer.split("|")] for layer in layers]


def passed() -> dict[str, set[str]]:
    """Return the packages and modules that each journey passes, in the last tree of the record."""
    journeys = json.loads(RECORD.read_text())["rows"][-1]["journeys"]
    return {name: {file.split("/")[0].removesuffix(".py") for file in files} for name, files in journeys.items()}


def texts() -> dict[str, str]:
    """Return what each package and module does, from the table of docs/architecture.md."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            names, words = (cell.strip() for cell in line.strip("|").split("|"))
            first, *others = re.findall(r"`([\w.]+?)(?:/|\.py)`", names)
            found[first] = words
            found.update(dict.fromkeys(others, ""))  # one text for all of a row
    return found


def text(x: float, y: float, words: str, look: str = "") -> str:
    """Return a line of text in SVG."""
    return f'<text x="{x}" y="{y}" {look}>{escape(words)}</text>'


def picture() -> str:
    """Return the picture."""
    rows, found, about = floors(), passed(), texts()
    height = TOP + ROW * len(rows) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        text(NAME, 30, "floors: a module imports from the rows below its own only", 'font-weight="bold"'),
    ]
    for column, (name, colour) in enumerate(JOURNEYS.items()):
        look = f'text-anchor="middle" font-weight="bold" fill="{colour}"'
        parts.append(text(DOTS + GAP * column, 30, name, look))
    for index, names in enumerate(rows):
        y = TOP + ROW * index
        shade = "#f3f1ec" if index % 2 == 0 else "#e9e6de"
        parts.append(f'<rect x="8" y="{y}" width="{WIDTH - 16}" height="{ROW}" fill="{shade}"/>')
        parts.append(text(NAME, y + 16, ", ".join(names), 'font-family="monospace"'))
        parts.append(text(TEXT, y + 16, "; ".join(filter(None, map(about.get, names))).replace("`", ""), 'fill="#444"'))
        for column, (journey, colour) in enumerate(JOURNEYS.items()):
            if found[journey] & set(names):
                parts.append(f'<circle cx="{DOTS + GAP * column}" cy="{y + 12}" r="6" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture())
