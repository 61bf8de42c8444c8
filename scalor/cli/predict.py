"""`scalor predict`: generate the continuation of your own video."""

import argparse

from scalor.cli.text import print_result, region_of
from scalor.files import open_folder
from scalor.forecast import predict


def run(arguments: argparse.Namespace, _: list[str]) -> int:
    """Generate the continuation and write its files."""
    open_folder(arguments.out)
    prediction = predict(
        arguments.video,
        arguments.weights,
        arguments.seconds,
        arguments.sample,
        at=arguments.at,
        observe=arguments.observe,
        seed=arguments.seed,
        region=region_of(arguments),
        start=arguments.start,
        end=arguments.end,
        stride=arguments.stride,
        fps=arguments.fps,
        slots=arguments.slots,
        device=arguments.device,
    )
    files = prediction.save(arguments.out)
    seen, generated = prediction.observed, len(prediction.future)
    document = {"seen": seen, "imagined": generated, "files": [str(file) for file in files]}
    return print_result(
        document, arguments.json, f"{seen} frames observed, {generated} generated; see {arguments.out}/report.html"
    )
