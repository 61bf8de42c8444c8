"""Text that several commands print: metrics, measurements of a video, provenance."""

import argparse
from typing import TYPE_CHECKING, Any

from scalor.files import print_json

if TYPE_CHECKING:  # not needed to print help
    from scalor.evaluation import TrackingReport, report
    from scalor.many.workers import Workers
    from scalor.tracking.video_view import VideoView


def table(measured: "report.Report") -> str:
    """Return the most important metrics as text."""
    lines = gates(measured.tracking) if measured.tracking else []
    objects = ""
    if measured.tracking:
        objects = f"HOTA {measured.tracking.hota:.3f}, count MAE {measured.tracking.count_mae:.3f}, "
    lines.append(f"{objects}MSE {measured.mse:.4f}, {measured.clips} unseen clips")
    if measured.nll is not None:
        lines.append(f"NLL {measured.nll:.3f} nats per pixel ({measured.nll_samples} samples)")
    if measured.forecast:
        lines.append(ahead(measured.forecast))
    return "\n".join(lines)


def gates(tracking: "TrackingReport") -> list[str]:
    """Return a table with one line per gate."""
    lines = [f"{'gate':<8}{'MOTA':>8}{'prec.':>8}{'recall':>8}{'IDF1':>8}{'switches':>10}"]
    for name in ("paper", "strict", "iou"):
        gate = getattr(tracking, name)
        lines.append(
            f"{name:<8}{gate.mota:>8.3f}{gate.precision:>8.3f}{gate.recall:>8.3f}{gate.idf1:>8.3f}{gate.switches:>10d}"
        )
    return lines


def ahead(forecast: "report.Forecast") -> str:
    """Return the error of the last generated frame: of its centres, or of its pixels if there are no objects."""
    steps = f"{len(forecast.mse)} frames ahead"
    if forecast.centre and forecast.centre_constant_velocity and forecast.centre_copy_last:
        return (
            f"centre error {steps}: {forecast.centre[-1]:.2f} px "
            f"(constant velocity {forecast.centre_constant_velocity[-1]:.2f}, "
            f"copying {forecast.centre_copy_last[-1]:.2f})"
        )
    return f"MSE {steps}: {forecast.mse[-1]:.4f} (copying {forecast.mse_copy_last[-1]:.4f})"


def survey_text(view: "VideoView") -> str:
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


def region_of(arguments: argparse.Namespace) -> tuple[int, int, int, int] | None:
    """Return the region of the picture that the options select, if any."""
    if arguments.region is None:
        return None
    x0, y0, x1, y1 = arguments.region
    return x0, y0, x1, y1


def workers_of(arguments: argparse.Namespace) -> "Workers":
    """Return the workers that the options for many videos ask for."""
    from scalor.many.workers import Workers

    return Workers(arguments.jobs, arguments.engine, arguments.address, arguments.gpus)


def print_result(document: dict[str, Any], as_json: bool, sentence: str) -> int:
    """Print the document as JSON, or the sentence; return the exit code 0."""
    if as_json:
        print_json(document)
    else:
        print(sentence)
    return 0
