"""The sections of the results page on generated frames: forecasts, looks that last, bouncing balls."""

import statistics
from collections.abc import Callable, Sequence

from scalor.reproduce.catalogue import SETTINGS, TABLES
from scalor.reproduce.results import (
    NOT_YET,
    Document,
    at,
    mean,
    measured,
    metrics,
    of_setting,
    per_clip,
    table,
    training_time,
)

LOOKS = (("picture", 4), ("mask_overlap", 3), ("colour", 3), ("left", 2))
"""Measures of looks in a result, and their digits."""
MED_FRAMES = (10, 30, 90)
"""Generated frames of which the MED is shown."""


def generation(documents: Sequence[Document]) -> list[str]:
    """Write one table of forecasts for each setting, by frames ahead."""
    head = ["frames ahead", "MSE", "copying the last frame", "centres off, px", "constant velocity", "copying"]
    lines = []
    for name in TABLES["generation"]:
        seeds = of_setting(documents, name)
        lines += [f"### {SETTINGS[name].label}", ""]
        if not seeds:
            lines += [NOT_YET, ""]
            continue
        rows = [
            [
                str(step + 1),
                *(mean(seeds, 4, at("forecast", key, step)) for key in ("mse", "mse_copy_last")),
                *(
                    mean(seeds, 2, at("forecast", key, step))
                    for key in ("centre", "centre_constant_velocity", "centre_copy_last")
                ),
                mean(seeds, 2, per_clip(at("forecast", "lost", step))),
            ]
            for step in range(min(len(document["forecast"]["mse"]) for document in seeds))
        ]
        lines += [*table([*head, "lost per clip"], rows), "", f"Training: {training_time(seeds)}.", ""]
    return [
        *lines,
        "After five observed frames, the most likely future. Lost: objects followed when imagining began that are no "
        "longer shown. The paper gives no numbers.",
        "",
        *lasting_looks(documents),
    ]


def lasting_looks(documents: Sequence[Document]) -> list[str]:
    """Write the table of how objects look after 30 sampled frames."""
    head = ["looks after 30 sampled frames", "picture", "overlap of masks", "colour", "objects left"]
    head += ["spread of colours, tracked", "from scratch"]
    rows = []
    for name in TABLES["generation"]:
        seeds = [document for document in of_setting(documents, name) if "looks" in document]
        ours = [mean(seeds, digits, at("looks", key, -1)) for key, digits in LOOKS]
        ours += [mean(seeds, 3, at("looks", f"spread_{which}")) for which in ("tracked", "imagined")]
        rows.append([SETTINGS[name].label, *measured(seeds, ours)])
    return [
        *table(head, rows),
        "",
        "Five frames are observed and 30 are sampled from the prior. Each object is compared with itself in the last "
        "observed frame: the mean squared difference of its picture on black, the overlap (IoU) of its masks and the "
        "distance of its mean colours. Spread: the standard deviation of the colours within a mask, of tracked objects "
        "and of those in the first frame of scenes from scratch; whole objects of one colour have none.",
    ]


def balls(documents: Sequence[Document]) -> list[str]:
    """Return the section with one row per data set of bouncing balls."""
    head = ["bouncing balls", "MOTA, IoU gate", "strict gate", "MED, frames 1-10", "constant velocity"]
    head += [f"MED, frame {frame}" for frame in MED_FRAMES]
    head += ["pairs lost at frame 90", "PSNR, dB", "last frame copied", "SSIM", "last frame copied", "training"]
    rows = []
    for name in TABLES["balls"]:
        seeds = of_setting(documents, name)
        ours = [
            *metrics(seeds, ("iou_plain_mota", "strict_plain_mota"), 3),
            *(mean(seeds, 4, mean_of("rollouts", key, 10)) for key in ("med", "med_constant_velocity")),
            *(mean(seeds, 4, at("rollouts", "med", frame - 1)) for frame in MED_FRAMES),
            mean(seeds, 3, at("rollouts", "lost", -1)),
            *(mean(seeds, 2, mean_of("rollouts", f"psnr{which}", 90)) for which in ("", "_copy_last")),
            *(mean(seeds, 3, mean_of("rollouts", f"ssim{which}", 90)) for which in ("", "_copy_last")),
            training_time(seeds),
        ]
        rows.append([SETTINGS[name].label, *measured(seeds, ours)])
    return [
        *table(head, rows),
        "",
        "The four data sets of G-SWM (Lin et al. 2020), from our own generator with their published settings: episodes "
        "of 100 frames of 64x64 pixels. MOTA as they measure it: all frames are observed, and hidden balls count. Then "
        "ten frames are observed and 90 are generated, the most likely future. MED: mean distance of true and "
        "predicted centres, in sides of the frame, paired once in the first generated frame; G-SWM keeps all objects "
        "alive, here lost ones have no distance. PSNR and SSIM as DDLP and LPWM measure them, over all generated "
        "frames. LPIPS is not measured: it needs the weights of another network. Nothing in SCALOR lets objects "
        "see walls or each other when the future is sampled, so bounces cannot be predicted. Published figures for "
        "these data are not quoted, because they could not be checked.",
    ]


def mean_of(*path: str | int) -> Callable[[Document], float | None]:
    """Return a function that reads the mean of the first values of a list; the path ends with their number."""
    *keys, count = path

    def get(document: Document) -> float | None:
        values = document
        for key in keys:
            values = values[key]  # type: ignore[index]
        first = list(values)[: int(count)]
        return None if any(value is None for value in first) else statistics.fmean(first)  # type: ignore[arg-type]

    return get
