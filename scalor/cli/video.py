"""Functions shared by the commands that read a video."""

import argparse
from typing import Any

from scalor.files import print_json
from scalor.provenance import command_line, commit, today
from scalor.tracking.view import VideoView
from scalor.video import Selection


def survey_text(view: VideoView) -> str:
    """Return the measurements of the video, made before it is tracked, as text."""
    found, lines = view.found, []
    if found is not None:
        speed = f", {found.speed:.1f} px a frame" if found.speed else ""
        lines.append(
            f"objects  about {found.object_size[0]:.0f}x{found.object_size[1]:.0f} px (height x width), "
            f"{found.objects:.1f} in a frame{speed}"
        )
    if view.motion is not None or (view.camera is not None and view.camera.moves):
        lines.append(f"camera   {(view.motion or view.camera).describe()}")  # type: ignore[union-attr]
    return "\n".join(lines) or "nothing moves in this video, as far as can be seen"


def provenance_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the provenance of results: video, weights, command, commit and date."""
    return {
        "video": arguments.video,
        "weights": arguments.weights,
        "command": command_line(),
        "commit": commit(),
        "date": today(),
    }


def selection_from(arguments: argparse.Namespace, stride: int = 1) -> Selection:
    """Return the part of a video that the options select."""
    region = None
    if arguments.region is not None:
        x0, y0, x1, y1 = arguments.region
        region = (x0, y0, x1, y1)
    return Selection(region, arguments.start, arguments.end, stride)


def print_result(document: dict[str, Any], as_json: bool, sentence: str) -> int:
    """Print the document as JSON, or the sentence; return the exit code 0."""
    if as_json:
        print_json(document)
    else:
        print(sentence)
    return 0
