"""Write the table of dependencies in docs/security.md from pyproject.toml: `python docs/dependencies.py`.

It works without a network. `FIXED` lists, by hand, the first version of a package without the last security problem
that its authors published; look there again before a release.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"
BEGIN, END = "<!-- dependencies: begin -->\n", "<!-- dependencies: end -->\n"
LICENCES = {
    "torch": "BSD",
    "numpy": "BSD",
    "scipy": "BSD",
    "safetensors": "Apache",
    "jaxtyping": "MIT",
    "tqdm": "MPL",
    "typing-extensions": "PSF",
    "av": "BSD",
    "opencv-python-headless": "Apache",
    "pillow": "MIT",
    "tifffile": "BSD",
    "tensorboard": "Apache",
    "trackpy": "BSD",
    "pandas": "BSD",
    "pyarrow": "Apache",
    "matplotlib": "Python Software Foundation",
    "starlette": "BSD",
    "uvicorn": "BSD",
    "openpyxl": "MIT",
    "zarr": "MIT",
    "ray": "Apache",
    "atheris": "Apache",
}
"""Family of the licence of every package; each is compared with what the installed package says."""
OPENS = {
    "av": "video files (ffmpeg, x264: LGPL, GPL)",
    "pillow": "images, .gif",
    "tifffile": "TIFF stacks",
    "numpy": ".npy, .npz",
    "safetensors": "checkpoints",
    "pyarrow": "lists of videos (.parquet)",
    "starlette": "requests of the browser",
    "uvicorn": "requests of the browser",
}
"""What a package reads that came from others."""
FIXED = {
    "torch": ("2.10.0", "CVE-2026-24747 (`torch.load`, which is never called)"),
    "tqdm": ("4.66.3", "CVE-2024-34062"),
    "pillow": ("12.1.1", "CVE-2026-25990 (PSD, which is not opened)"),
    "opencv-python-headless": ("4.8.1.78", "CVE-2023-4863"),
    "starlette": ("1.3.1", "CVE-2025-62727, CVE-2026-48710, CVE-2026-54282"),
    "pyarrow": ("14.0.1", "CVE-2023-47248"),
    "ray": ("2.54.0", "CVE-2025-62593, CVE-2026-27482"),
}
"""First version without a published problem, and the problem."""


def dependencies() -> dict[str, str]:
    """Return the smallest version of every package that users install, by name, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name, extra in extras.items() if name != "dev" for one in extra)]
    found = {}
    for text in wanted:
        match = re.match(r"([A-Za-z0-9._-]+)>=([0-9.]+)", text)
        assert match, text
        found[match[1]] = match[2]
    return found


def told_licence(package: str) -> str:
    """Return all that an installed package says of its licence; nothing if it is not installed."""
    try:
        about = metadata(package)
    except PackageNotFoundError:
        return ""
    classifiers = [one for one in about.get_all("Classifier") or [] if one.startswith("License")]
    return "\n".join([*(about.get_all("License-Expression") or []), *(about.get_all("License") or []), *classifiers])


def version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    return tuple(int(part) for part in text.split("."))


def table() -> str:
    """Return the table as Markdown."""
    lines = ["| package | from version | licence | opens | fixed there |", "| :-- | :-- | :-- | :-- | :-- |"]
    for name, least in sorted(dependencies().items()):
        why = FIXED.get(name, ("", ""))[1]
        lines.append(f"| {name} | {least} | {LICENCES[name]} | {OPENS.get(name, '')} | {why} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return docs/security.md with today's table."""
    text = PAGE.read_text()
    return text[: text.index(BEGIN)] + BEGIN + table() + text[text.index(END) :]


if __name__ == "__main__":
    PAGE.write_text(page())
