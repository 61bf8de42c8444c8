"""The store: all tracks, counts, health and measures of many videos as Parquet files, partitioned by video.

    store/tracks/NAME/tracks.parquet        the columns of tracks.csv
    store/counts/NAME/counts.parquet        frame, seconds, objects
    store/health/NAME/health.parquet        one row per measure of the health report
    store/measures/NAME/measures.parquet    one row per track: speeds, paths, times (needs pandas)
    store/videos.parquet                    one row per video
    store/manifest.json                     every file with its rows, bytes and SHA-256

DuckDB, pandas, polars and Spark read such folders as one table. The first column is the name of the video. (It is not
in the names of the folders, as in Hive, because readers would take a name such as 0001 for a number.)
"""

import csv
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scalor.files import as_json, replacing
from scalor.many.video_records import VIDEOS, VideoOutcome
from scalor.outputs.about import ABOUT_FILE
from scalor.provenance import command_line, commit, today
from scalor.replacement import MANIFEST, describe

STORE = "store"
TABLES = ("tracks", "counts", "health", "measures")
VIDEO = "video"
"""The column that names the video."""
TEMPORARY = ".part"
"""Ending of files that are being written. One that a kill left behind is no table to a reader of `*.parquet`."""
MEASURES = ("name", "value", "unit", "level", "sentence")


def available() -> bool:
    """Return whether pyarrow is installed, without which there is no store."""
    return find_spec("pyarrow") is not None


def part(out: Path, table: str, name: str) -> Path:
    """Return the file of a table that holds the rows of a video."""
    return out / STORE / table / name / f"{table}.parquet"


def add_to_store(out: Path, name: str, folder: Path) -> None:
    """Add the results of a video to the store, in the place of earlier ones."""
    if not available():
        return
    with open(folder / "counts.csv", newline="") as file:
        counts = [(int(row["frame"]), float(row["seconds"]), int(row["objects"])) for row in csv.DictReader(file)]
    write(part(out, "counts", name), columns(("frame", "seconds", "objects"), counts), name)
    health = json.loads((folder / ABOUT_FILE).read_bytes())["health"] or {"verdict": None, "measures": []}
    rows = [tuple(one[key] for key in MEASURES) for one in health["measures"]]
    table = columns(MEASURES, rows)
    write(part(out, "health", name), {**table, "verdict": [health["verdict"]] * len(rows)}, name)
    if find_spec("pandas") is not None:
        write(part(out, "measures", name), measures_of(folder), name)
    add_tracks(folder / "tracks.parquet", part(out, "tracks", name), name)  # last: a video in this table is in all


def add_tracks(source: Path, target: Path, name: str) -> None:
    """Copy a table of tracks, with a column that names the video, a piece at a time."""
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    target.parent.mkdir(parents=True, exist_ok=True)
    with parquet.ParquetFile(source) as rows, replacing(target, TEMPORARY) as temporary:
        schema = rows.schema_arrow.insert(0, arrow.field(VIDEO, arrow.string()))
        with parquet.ParquetWriter(temporary, schema) as writer:
            for batch in rows.iter_batches():
                names = arrow.array([name] * len(batch), arrow.string())
                writer.write_batch(arrow.RecordBatch.from_arrays([names, *batch.columns], schema=schema))


def measures_of(folder: Path) -> Any:
    """Return the measures of every track of a video, in pixels, as an Arrow table."""
    from scalor.measures import measure
    from scalor.tracks import read_tracks

    return import_module("pyarrow").Table.from_pandas(
        measure(read_tracks(folder / "tracks.parquet")).per_track, preserve_index=False
    )


def columns(names: Iterable[str], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Return rows as columns."""
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


SCHEMAS = {
    "counts": {"frame": "int64", "seconds": "double", "objects": "int64"},
    "health": {
        "name": "string",
        "value": "double",
        **dict.fromkeys(("unit", "level", "sentence", "verdict"), "string"),
    },
}
"""Types of columns, which must not depend on a video whose values are all missing."""


def write(path: Path, table: Any, name: str | None = None) -> None:
    """Write an Arrow table, or columns by name, to a file that is complete or absent.

    The first column names the video, if a name is given.
    """
    arrow = import_module("pyarrow")
    if isinstance(table, Mapping):
        kinds = SCHEMAS.get(path.stem)
        schema = None if kinds is None else arrow.schema(list(kinds.items()))
        table = arrow.table(dict(table), schema=schema)
    if name is not None:
        table = table.add_column(0, VIDEO, arrow.array([name] * len(table), arrow.string()))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, TEMPORARY) as temporary:
        import_module("pyarrow.parquet").write_table(table, temporary)


def finish_store(out: Path, outcomes: Iterable[VideoOutcome]) -> None:
    """Write the table of all videos and the manifest of the store; delete what belongs to none of the videos."""
    if not available():
        return
    found = list(outcomes)
    names = {one.name for one in found}
    for table in TABLES:
        for place in (out / STORE / table).glob("*"):
            if place.name not in names:
                shutil.rmtree(place)
    for left in (out / STORE).rglob(f".*{TEMPORARY}"):
        left.unlink(missing_ok=True)
    rows = [{**asdict(one), "folder": f"{VIDEOS}/{one.name}", "sha256": digest_of(out, one.name)} for one in found]
    write(out / STORE / "videos.parquet", {key: [row[key] for row in rows] for key in rows[0]} if rows else {})
    parquet = import_module("pyarrow.parquet")
    store = out / STORE
    files = {
        path.relative_to(store).as_posix(): {"rows": parquet.read_metadata(path).num_rows, **describe(path)}
        for path in sorted(store.rglob("*.parquet"))
    }
    document = {"written_by": "scalor", "command": command_line(), "commit": commit(), "date": today(), "files": files}
    with replacing(store / "manifest.json") as temporary:
        temporary.write_text(as_json(document))


def digest_of(out: Path, name: str) -> str | None:
    """Return the hash of the tracks of a video, as the manifest of its folder has it."""
    try:
        files = json.loads((out / VIDEOS / name / MANIFEST).read_bytes())["files"]
        return str(files["tracks.csv"]["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
