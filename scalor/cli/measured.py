"""Metrics of a test set as lines of text."""

from scalor.evaluation import TrackingReport, report


def table(measured: report.Report) -> str:
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


def gates(tracking: TrackingReport) -> list[str]:
    """Return a table with one line per gate."""
    lines = [f"{'gate':<8}{'MOTA':>8}{'prec.':>8}{'recall':>8}{'IDF1':>8}{'switches':>10}"]
    for name in ("paper", "strict", "iou"):
        gate = getattr(tracking, name)
        lines.append(
            f"{name:<8}{gate.mota:>8.3f}{gate.precision:>8.3f}{gate.recall:>8.3f}{gate.idf1:>8.3f}{gate.switches:>10d}"
        )
    return lines


def ahead(forecast: report.Forecast) -> str:
    """Return the error of the last generated frame: of its centres, or of its pixels if there are no objects."""
    steps = f"{len(forecast.mse)} frames ahead"
    if forecast.centre and forecast.centre_constant_velocity and forecast.centre_copy_last:
        return (
            f"centre error {steps}: {forecast.centre[-1]:.2f} px "
            f"(constant velocity {forecast.centre_constant_velocity[-1]:.2f}, "
            f"copying {forecast.centre_copy_last[-1]:.2f})"
        )
    return f"MSE {steps}: {forecast.mse[-1]:.4f} (copying {forecast.mse_copy_last[-1]:.4f})"
