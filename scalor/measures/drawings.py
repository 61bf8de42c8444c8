"""What is drawn on the page of `scalor view` to measure with: zones and lines, and a known length.

`zones.json` and `scale.json` in the result folder hold them. `scalor measure` reads both if no option names others.
"""

import json
import math
from pathlib import Path
from typing import Any

from scalor.errors import InputError
from scalor.files import replacing
from scalor.measures.calibration import Calibration
from scalor.measures.regions import Regions, read_regions, regions_from_dict

ZONES_FILE = "zones.json"
SCALE_FILE = "scale.json"


def drawn_regions(folder: str | Path) -> Regions | None:
    """Return the zones and lines that were drawn on the page of a result folder; None if none were.

    Examples
    --------
    >>> measured = measure(folder.tracks, drawn_calibration("tracked"), drawn_regions("tracked"))
    """
    path = Path(folder) / ZONES_FILE
    return read_regions(path) if path.is_file() else None


def drawn_calibration(folder: str | Path) -> Calibration | None:
    """Return the scale that was drawn on the page of a result folder as a known length; None if none was.

    Examples
    --------
    >>> calibration = drawn_calibration("tracked") or Calibration(mm_per_pixel=0.12)
    """
    known = _known_length(Path(folder))
    return None if known is None else calibration(known)


def _known_length(folder: Path) -> list[float] | None:
    """Return the known length in a folder, if there is one."""
    path = folder / SCALE_FILE
    if not path.is_file():
        return None
    try:
        return known_length(json.loads(path.read_bytes()))
    except ValueError as error:
        raise InputError(f"{path} is damaged: draw the known length again, or delete the file.") from error


def read(folder: Path) -> dict[str, Any]:
    """Return the zones, the lines and the known length of a folder, as the page reads them."""
    document: dict[str, Any] = {"zones": [], "lines": [], "scale": None}
    if drawn_regions(folder) is not None:
        document |= json.loads((folder / ZONES_FILE).read_bytes())
    known = _known_length(folder)
    if known is not None:
        document["scale"] = {"known_length": known, "mm_per_pixel": calibration(known).mm_per_pixel}
    return document


def save_regions(folder: Path, document: object) -> None:
    """Save zones and lines. Raise InputError if they are not of the form that `scalor measure` reads."""
    regions_from_dict(document)
    _save(folder / ZONES_FILE, document)


def save_scale(folder: Path, document: object) -> None:
    """Save a known length. Raise InputError if it gives no scale."""
    known = known_length(document)
    calibration(known)
    _save(folder / SCALE_FILE, {"known_length": known})


def known_length(document: object) -> list[float]:
    """Return x0, y0, x1, y1 and the length in millimetres in a document."""
    values = document.get("known_length") if isinstance(document, dict) else None
    if isinstance(values, list) and len(values) == 5:
        numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) == 5 and all(map(math.isfinite, numbers)):
            return numbers
    raise InputError("known_length must hold x0, y0, x1, y1 in pixels and a length in millimetres.")


def calibration(known: list[float]) -> Calibration:
    """Return the scale of a known length."""
    x0, y0, x1, y1, length = known
    return Calibration.from_points((x0, y0), (x1, y1), length)


def _save(path: Path, document: object) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
