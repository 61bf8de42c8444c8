"""CVAT XML for video 1.1, to correct boxes in the annotation tool CVAT or to train detectors with them."""

from pathlib import Path, PurePath
from xml.sax.saxutils import escape, quoteattr

from scalor.exports.export_source import ExportSource
from scalor.files import replacing

LABEL = "object"
"""Label of every track: SCALOR does not tell kinds of objects apart."""


def write_cvat(path: str | Path, source: ExportSource) -> None:
    """Write tracks as CVAT XML.

    Frames are those of the video. Every box is a key frame. Where a track has no box, CVAT gets one that is marked
    outside, so that it does not interpolate there. Names and confidences are attributes.

    Parameters
    ----------
    path : str or Path
        File to write.
    source : ExportSource
        What `export_source` returned.

    Examples
    --------
    >>> write_cvat("tracks.xml", export_source("tracked", Calibration(0.12)))
    """
    with replacing(Path(path)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in _lines(source))


def _lines(source: ExportSource) -> list[str]:
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", "<version>1.1</version>", *_meta(source)]
    frames = sorted(source.times)
    following = dict(zip(frames, [*frames[1:], None], strict=True))
    tracks = source.tracks
    for place, (number, rows) in enumerate(source.objects()):
        lines.append(f'<track id="{place}" label="{LABEL}" source="auto">')
        for row, after in zip(rows.tolist(), [*rows[1:].tolist(), None], strict=True):
            frame = int(tracks.frame[row])
            box = tuple(float(side) for side in tracks.box[row])
            attributes = {
                "id": str(number),
                "name": source.names.get(number, ""),
                "confidence": f"{tracks.confidence[row]:.4f}",
            }
            lines += _box(frame, box, False, attributes)
            gap = following[frame]
            if gap is not None and (after is None or tracks.frame[after] > gap):
                lines += _box(gap, box, True, attributes)
        lines.append("</track>")
    return [*lines, "</annotations>"]


def _box(frame: int, box: tuple[float, ...], outside: bool, attributes: dict[str, str]) -> list[str]:
    x0, y0, x1, y1 = box
    values = "".join(f"<attribute name={quoteattr(k)}>{escape(v)}</attribute>" for k, v in attributes.items())
    return [
        f'<box frame="{frame}" keyframe="1" outside="{outside:d}" occluded="0" '
        f'xtl="{x0:.2f}" ytl="{y0:.2f}" xbr="{x1:.2f}" ybr="{y1:.2f}" z_order="0">{values}</box>'
    ]


def _meta(source: ExportSource) -> list[str]:
    """Return the description of the task: the labels with their attributes, and the size of the video."""
    height, width = source.about.size
    name = PurePath(str(source.video or source.about.video or "video")).name
    attributes = [
        f"<attribute><name>{attribute}</name><mutable>{mutable}</mutable><input_type>text</input_type>"
        "<default_value></default_value><values></values></attribute>"
        for attribute, mutable in (("id", "False"), ("name", "False"), ("confidence", "True"))
    ]
    return [
        "<meta>",
        "<task>",
        f"<name>{escape(name)}</name>",
        f"<size>{max(source.times, default=0) + 1}</size>",
        "<mode>interpolation</mode>",
        "<start_frame>0</start_frame>",
        f"<stop_frame>{max(source.times, default=0)}</stop_frame>",
        "<labels>",
        f"<label><name>{LABEL}</name><type>rectangle</type><attributes>{''.join(attributes)}</attributes></label>",
        "</labels>",
        f"<original_size><width>{width}</width><height>{height}</height></original_size>",
        f"<source>{escape(name)}</source>",
        "</task>",
        "</meta>",
    ]
