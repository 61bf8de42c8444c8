"""TrackMate XML, the file that TrackMate in Fiji loads and saves.

In TrackMate, whole numbers are the centres of pixels; here they are the upper left corners. So half a pixel is taken
off. The radius of a spot is half the square root of its box's area.
"""

from dataclasses import dataclass
from pathlib import Path, PurePath
from xml.sax.saxutils import quoteattr

import numpy as np

from scalor.exports.export_source import ExportSource
from scalor.files import replacing

SPOT_FEATURES = (
    ("QUALITY", "Quality", "Quality", "QUALITY", False),
    ("POSITION_X", "X", "X", "POSITION", False),
    ("POSITION_Y", "Y", "Y", "POSITION", False),
    ("POSITION_Z", "Z", "Z", "POSITION", False),
    ("POSITION_T", "T", "T", "TIME", False),
    ("FRAME", "Frame", "Frame", "NONE", True),
    ("RADIUS", "Radius", "R", "LENGTH", False),
    ("VISIBILITY", "Visibility", "Visibility", "NONE", True),
)
EDGE_FEATURES = (
    ("SPOT_SOURCE_ID", "Source spot ID", "Source ID", "NONE", True),
    ("SPOT_TARGET_ID", "Target spot ID", "Target ID", "NONE", True),
    ("LINK_COST", "Edge cost", "Cost", "COST", False),
    ("EDGE_TIME", "Edge time", "Edge T", "TIME", False),
)
TRACK_FEATURES = (
    ("TRACK_INDEX", "Track index", "Index", "NONE", True),
    ("TRACK_ID", "Track ID", "ID", "NONE", True),
    ("NUMBER_SPOTS", "Number of spots in track", "N spots", "NONE", True),
    ("TRACK_START", "Track start", "Track start", "TIME", False),
    ("TRACK_STOP", "Track stop", "Track stop", "TIME", False),
    ("TRACK_DURATION", "Track duration", "Duration", "TIME", False),
)
VERSION = "7.11.1"
"""Version of TrackMate whose form of the file this is."""


def write_trackmate(path: str | Path, source: ExportSource) -> None:
    """Write tracks as TrackMate XML.

    Ids of tracks stay; names of tracks become names in TrackMate. Lengths are in millimetres with a calibration,
    otherwise in pixels. A track of a single box becomes a spot without a track, as TrackMate has no such tracks.

    Parameters
    ----------
    path : str or Path
        File to write.
    source : ExportSource
        What `export_source` returned.

    Examples
    --------
    >>> write_trackmate("trackmate.xml", export_source("tracked", Calibration(0.12)))
    """
    with replacing(Path(path)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in _Document(source).lines())


def _tag(tag: str, end: str = "/", /, **attributes: object) -> str:
    """Return a tag with attributes, closed at once unless `end` is empty."""
    texts = (f" {key}={quoteattr(_text(value))}" for key, value in attributes.items())
    return f"<{tag}{''.join(texts)}{' ' if end else ''}{end}>"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float | np.floating) else str(value)


@dataclass(frozen=True)
class _Document:
    """The lines of the file."""

    source: ExportSource

    def lines(self) -> list[str]:
        unit = "pixel" if self.source.calibration.unit == "px" else self.source.calibration.unit
        return [
            '<?xml version="1.0" encoding="UTF-8"?>',
            _tag("TrackMate", "", version=VERSION),
            _tag("Model", "", spatialunits=unit, timeunits="sec"),
            *self._declarations(),
            *self._spots(),
            *self._tracks(),
            "</Model>",
            *self._settings(),
            "</TrackMate>",
        ]

    def _declarations(self) -> list[str]:
        lines = ["<FeatureDeclarations>"]
        for kind, features in (("Spot", SPOT_FEATURES), ("Edge", EDGE_FEATURES), ("Track", TRACK_FEATURES)):
            lines.append(f"<{kind}Features>")
            for feature, name, short, dimension, whole in features:
                lines.append(
                    _tag("Feature", feature=feature, name=name, shortname=short, dimension=dimension, isint=whole)
                )
            lines.append(f"</{kind}Features>")
        return [*lines, "</FeatureDeclarations>"]

    def _spots(self) -> list[str]:
        tracks, scale = self.source.tracks, self.source.calibration.scale
        places = scale * (tracks.centre - 0.5)
        radius = scale * np.sqrt(np.prod(tracks.box[:, 2:] - tracks.box[:, :2], axis=1)) / 2
        lines = [_tag("AllSpots", "", nspots=len(tracks))]
        cuts = np.flatnonzero(np.diff(tracks.frame)) + 1
        for rows in np.split(np.arange(len(tracks)), cuts) if len(tracks) else []:
            frame = int(tracks.frame[rows[0]])
            lines.append(_tag("SpotsInFrame", "", frame=frame))
            for row in rows.tolist():
                lines.append(
                    _tag(
                        "Spot",
                        ID=row,
                        name=self.source.label(int(tracks.id[row])),
                        QUALITY=tracks.confidence[row],
                        POSITION_X=places[row, 0],
                        POSITION_Y=places[row, 1],
                        POSITION_Z=0.0,
                        POSITION_T=self.source.times[frame],
                        FRAME=frame,
                        RADIUS=radius[row],
                        VISIBILITY=1,
                    )
                )
            lines.append("</SpotsInFrame>")
        return [*lines, "</AllSpots>"]

    def _tracks(self) -> list[str]:
        seconds = self.source.tracks.seconds.tolist()
        lines, kept = ["<AllTracks>"], []
        for number, rows in self.source.objects():
            if len(rows) < 2:
                continue
            kept.append(number)
            first, last = seconds[rows[0]], seconds[rows[-1]]
            lines.append(
                _tag(
                    "Track",
                    "",
                    name=self.source.names.get(number, f"Track_{number}"),
                    TRACK_ID=number,
                    TRACK_INDEX=len(kept) - 1,
                    NUMBER_SPOTS=len(rows),
                    TRACK_START=first,
                    TRACK_STOP=last,
                    TRACK_DURATION=last - first,
                )
            )
            for start, end in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
                middle = (seconds[start] + seconds[end]) / 2
                lines.append(_tag("Edge", SPOT_SOURCE_ID=start, SPOT_TARGET_ID=end, LINK_COST=-1.0, EDGE_TIME=middle))
            lines.append("</Track>")
        lines += ["</AllTracks>", "<FilteredTracks>"]
        return [*lines, *(_tag("TrackID", TRACK_ID=number) for number in kept), "</FilteredTracks>"]

    def _settings(self) -> list[str]:
        height, width = self.source.about.size
        frames = max(self.source.times, default=0) + 1
        video = PurePath(str(self.source.video or self.source.about.video or ""))
        scale = self.source.calibration.scale
        return [
            "<Settings>",
            _tag(
                "ImageData",
                filename=video.name,
                folder=str(video.parent) if video.name else "",
                width=width,
                height=height,
                nslices=1,
                nframes=frames,
                pixelwidth=scale,
                pixelheight=scale,
                voxeldepth=1.0,
                timeinterval=self.source.interval,
            ),
            _tag(
                "BasicSettings",
                xstart=0,
                xend=width - 1,
                ystart=0,
                yend=height - 1,
                zstart=0,
                zend=0,
                tstart=0,
                tend=frames - 1,
            ),
            _tag("InitialSpotFilter", feature="QUALITY", value=0.0, isabove=True),
            "<SpotFilterCollection />",
            "<TrackFilterCollection />",
            "</Settings>",
        ]
