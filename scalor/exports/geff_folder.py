"""GEFF, the graph exchange file format: a zarr group of nodes (boxes) and edges (an object from box to box).

Written after version 1 of its specification, https://liveimagetrackingtools.org/geff-spec/.
"""

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from scalor.errors import InputError
from scalor.exports.export_source import ExportSource

VERSION = "1.1"
MILLIMETRE = {"mm": "millimeter", "px": "pixel"}


def write_geff(path: str | Path, source: ExportSource) -> None:
    """Write tracks as a GEFF folder.

    Nodes have the properties t (frame), y and x (centre of the box, pixels), seconds, track_id, confidence, width,
    height and name. With a calibration, the axes tell the scale to millimetres. Whole numbers are the upper left
    corners of pixels.

    Parameters
    ----------
    path : str or Path
        Folder to write.
    source : ExportSource
        What `export_source` returned.

    Examples
    --------
    >>> write_geff("tracks.geff", export_source("tracked", Calibration(0.12)))
    """
    path = Path(path)
    if path.exists() and not _is_geff(path):
        raise InputError(f"{path} exists and is not a GEFF folder: choose another with --out.")
    try:
        zarr = import_module("zarr")
    except ImportError as error:
        raise InputError("GEFF needs the package zarr: run pip install 'scalor[exports]'.") from error
    temporary = path.with_name(f".{path.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        _write(zarr, temporary, source)
        shutil.rmtree(path, ignore_errors=True)
        temporary.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): choose another with --out.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_geff(path: Path) -> bool:
    attributes = path / ".zattrs"
    return attributes.is_file() and '"geff"' in attributes.read_text(errors="replace")


def _write(zarr: Any, folder: Path, source: ExportSource) -> None:
    """Write the group."""
    tracks = source.tracks
    extent = tracks.box[:, 2:] - tracks.box[:, :2]
    nodes: dict[str, np.ndarray] = {
        "t": tracks.frame.astype(np.int64),
        "y": tracks.centre[:, 1].astype(float),
        "x": tracks.centre[:, 0].astype(float),
        "seconds": tracks.seconds.astype(float),
        "track_id": tracks.id.astype(np.int64),
        "confidence": tracks.confidence.astype(float),
        "width": extent[:, 0].astype(float),
        "height": extent[:, 1].astype(float),
    }
    units = {"t": "frame", "y": "pixel", "x": "pixel", "seconds": "second", "width": "pixel", "height": "pixel"}
    group = zarr.open_group(folder, mode="w", zarr_format=2)
    links = source.links().astype(np.uint64)
    _array(group, "nodes/ids", np.arange(len(tracks), dtype=np.uint64))
    _array(group, "edges/ids", links)
    group.require_group("nodes/props")
    group.require_group("edges/props")
    for name, values in nodes.items():
        _array(group, f"nodes/props/{name}/values", values)
    group.attrs["geff"] = {
        "geff_version": VERSION,
        "directed": True,
        "axes": [_axis(name, nodes[name], source) for name in ("t", "y", "x")],
        "node_props_metadata": {
            name: {"identifier": name, "dtype": str(values.dtype), "unit": units.get(name)}
            for name, values in nodes.items()
        },
        "edge_props_metadata": {},
        "track_node_props": {"tracklet": "track_id", "lineage": "track_id"},
        "display_hints": {"display_horizontal": "x", "display_vertical": "y", "display_time": "t"},
        "extra": {
            "scalor": {
                "frames": {str(frame): seconds for frame, seconds in source.times.items()},
                "names": {str(number): name for number, name in source.names.items()},
                "picture": {"height": source.about.size[0], "width": source.about.size[1]},
                **{name: str(value) for name, value in source.about.facts.items()},
            }
        },
    }


def _array(group: Any, name: str, values: np.ndarray) -> None:
    group.create_array(name, data=values)


def _axis(name: str, values: np.ndarray, source: ExportSource) -> dict[str, object]:
    """Return the description of an axis."""
    axis: dict[str, object] = {"name": name, "type": "space", "unit": "pixel"}
    scale, unit = source.calibration.scale, MILLIMETRE[source.calibration.unit]
    if name == "t":
        axis, scale, unit = {"name": name, "type": "time", "unit": "frame"}, source.interval, "second"
    if len(values):
        axis |= {"min": float(values.min()), "max": float(values.max())}
    if unit != "pixel":
        axis |= {"scale": scale, "scaled_unit": unit}
    return axis
