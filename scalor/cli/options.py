"""Options of the commands, one function each; `edit`, `measure`, `export` and `view` define theirs in their modules."""

import argparse

from scalor.cli.edit import add_edit
from scalor.cli.export import add_export
from scalor.cli.measure import add_measure
from scalor.cli.parser import Commands, Parser, Version, add_help_all, command
from scalor.cli.values import duration, height_and_width, minutes, natural, number, positive, probability, scale, shard
from scalor.cli.view import add_view
from scalor.config import FPS

EPILOG = "Every command that reports figures takes --json: one document on stdout, progress on stderr."


def parser() -> Parser:
    """Return the parser of all commands."""
    top = Parser(
        prog="scalor",
        description="Find, follow, separate and forecast every object in a video, with no labels.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    top.add_argument("--version", action=Version, nargs=0, help="print the version and the commit")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    top.commands = commands
    for add in (
        add_train,
        add_track,
        add_score,
        add_fit,
        add_edit,
        add_measure,
        add_export,
        add_view,
        add_predict,
        add_generate,
        add_evaluate,
        add_reproduce,
        add_presets,
        add_demo,
        add_pack,
        add_info,
    ):
        add(commands)
    return top


def add_train(commands: Commands) -> None:
    """Add `scalor train`."""
    train = command(commands, "train", "Train models from presets; any setting can be overridden by its dotted name.")
    train.add_argument(
        "preset", nargs="+", help="name of a preset (`scalor presets` lists them); several train side by side"
    )
    train.add_argument(
        "--seeds",
        type=natural,
        nargs="+",
        metavar="SEED",
        default=None,
        help="train every preset with each of these seeds, side by side, into folders PRESET-seedSEED",
    )
    train.add_argument(
        "--out",
        default=None,
        help="run folder (default: runs/PRESET); side by side, the folder of the run folders (default: runs)",
    )
    train.add_argument("--resume", action="store_true", help="resume from the run folder's last checkpoint")
    add_together(train)
    train.add_argument("--clips", type=positive, default=64, help="unseen clips to evaluate on at the end")
    add_help_all(train, "defaults; a preset may change them")


def add_track(commands: Commands) -> None:
    """Add `scalor track`."""
    track = command(
        commands,
        "track",
        "Find and follow every object in a video: tables, overlay, pictures, and a report to begin with.",
        weights="any",
        out="tracked",
    )
    track.add_argument(
        "video",
        nargs="+",
        help="video file, folder of images, pattern such as 'frames/*.png', TIFF stack, or .npy or .npz array "
        "[T, H, W, 3]; or many videos: files, folders, patterns, a CSV or Parquet table",
    )
    add_selection(track)
    track.add_argument(
        "--stride", type=positive, default=None, help="track every so many frames (default: as the model was fitted)"
    )
    track.add_argument("--masks", action="store_true", help="also write every object's pixels")
    track.add_argument(
        "--raw",
        action="store_true",
        help="skip post-processing: the model's own boxes and ids",
    )
    track.add_argument(
        "--slots", type=positive, default=None, help="most objects at once (default: by what the video shows)"
    )
    track.add_argument(
        "--object-size",
        type=height_and_width,
        metavar="HxW",
        default=None,
        help="typical height and width of an object, pixels (default: measured)",
    )
    track.add_argument(
        "--restart", action="store_true", help="start from the first frame, even if a stopped run could be resumed"
    )
    many = track.add_argument_group("many videos, or a long one")
    many.add_argument(
        "--stretches",
        type=positive,
        default=None,
        metavar="N",
        help="cut one long video into N overlapping stretches, tracked at the same time and joined",
    )
    add_engine(many)
    add_shard(many)


def add_score(commands: Commands) -> None:
    """Add `scalor score`."""
    score = command(commands, "score", "Measure how well tracks agree with a truth file.")
    score.add_argument(
        "tracks",
        nargs="+",
        help="tracks.csv of `scalor track`, or MOTChallenge text; one or more; or the folder of many videos' results",
    )
    score.add_argument(
        "--truth",
        required=True,
        help="MOTChallenge text: frame, id, left, top, width, height, ...; or a folder of one for each video",
    )
    score.add_argument(
        "--frames",
        metavar="FIRST-LAST",
        default=None,
        help="frames to score, from 1 on, such as 478-795 (none given: as far as the truth goes)",
    )
    score.add_argument(
        "--minimum-presence",
        type=probability,
        metavar="P",
        default=None,
        help="count only tracks with a confidence above this (none given: all)",
    )
    add_engine(score.add_argument_group("many videos"))


def add_fit(commands: Commands) -> None:
    """Add `scalor fit`."""
    fit = command(commands, "fit", "Refine universal weights on your own videos, for better tracks of them.")
    fit.add_argument(
        "video", nargs="+", help="videos of one size, as for `scalor track`: files, folders, patterns, or a table"
    )
    fit.add_argument("--out", default=None, help="run folder (default: runs/VIDEO; with --each: runs)")
    fit.add_argument("--resume", action="store_true", help="resume from the run folder's last checkpoint")
    fit.add_argument("--minutes", type=minutes, default=None, help="how long to refine universal weights (default: 10)")
    many = fit.add_argument_group("weights of its own for each of many videos")
    many.add_argument("--each", action="store_true", help="fit each video on its own, into OUT/NAME")
    add_engine(many)
    add_shard(many)
    more = fit.add_argument_group("more options")
    more.add_argument("--steps", type=positive, default=None, help="so many steps of training instead")
    more.add_argument(
        "--weights", default=None, help="weights to start from: a run folder of an earlier fit (default: any)"
    )
    more.add_argument(
        "--scratch",
        action="store_true",
        help="train from scratch, as the paper does: hours on a CPU (default: refine universal weights)",
    )
    more.add_argument(
        "--object-size",
        type=height_and_width,
        metavar="HxW",
        default=None,
        help="typical height and width of an object, pixels of the video (default: measured)",
    )
    more.add_argument(
        "--scale",
        type=scale,
        default=None,
        help="with --scratch: shrink or enlarge the video by this (default: by size)",
    )
    more.add_argument(
        "--stride",
        type=positive,
        default=None,
        help="learn from every so many frames (default: all; with --scratch by speed)",
    )
    add_selection(more, fps=None)  # None if not given, which a resumed fit checks
    add_help_all(fit, "defaults; `fit` changes most of them by the video, and writes all into chosen.json")


def add_predict(commands: Commands) -> None:
    """Add `scalor predict`."""
    predict = command(commands, "predict", "Predict how your own video continues.", weights="any", out="predicted")
    predict.add_argument("video", help="as for `scalor track`")
    predict.add_argument("--at", type=number, default=None, help="second from which on to predict (default: the end)")
    predict.add_argument("--observe", type=positive, default=5, help="number of observed frames")
    predict.add_argument("--seconds", type=duration, default=1.0, help="how many seconds to predict")
    predict.add_argument("--sample", action="store_true", help="one of the possible futures, not the most likely one")
    predict.add_argument("--seed", type=natural, default=0, help="seed of the random numbers")
    predict.add_argument("--slots", type=positive, default=None, help="most objects at once (default: as trained)")
    predict.add_argument("--stride", type=positive, default=None, help="see every so many frames (default: as fitted)")
    add_selection(predict)


def add_generate(commands: Commands) -> None:
    """Add `scalor generate`."""
    generate = command(commands, "generate", "Predict how a scene continues.", weights="shapes-md", out="generated")
    generate.add_argument("video", nargs="?", help="video to continue (none: an unseen clip of the test scenes)")
    generate.add_argument("--scratch", action="store_true", help="generate a whole scene, without observed frames")
    generate.add_argument("--observe", type=positive, default=5, help="number of observed frames")
    generate.add_argument("--horizon", type=positive, default=5, help="number of frames to generate")
    generate.add_argument(
        "--rate",
        type=probability,
        default=None,
        help="probability of a new object per cell and generated frame (with --scratch: in the first frame; by default "
        "so that objects cover a quarter of it)",
    )
    generate.add_argument("--clip", type=natural, default=0, help="number of the test clip")
    generate.add_argument("--seed", type=natural, default=0, help="seed of the random numbers")


def add_evaluate(commands: Commands) -> None:
    """Add `scalor evaluate`."""
    evaluate = command(commands, "evaluate", "Measure a model on unseen clips of its test scenes.")
    evaluate.add_argument(
        "weights", help="shipped name, run folder or .safetensors file; with --preset also classical-colour or its like"
    )
    evaluate.add_argument("--clips", type=positive, default=64, help="clips; the benchmark uses 1000")
    evaluate.add_argument("--nll-samples", type=natural, default=0, help="samples for the likelihood bound; 0: none")
    evaluate.add_argument("--preset", default=None, help="use this preset's test scenes instead of the model's own")


def add_reproduce(commands: Commands) -> None:
    """Add `scalor reproduce`."""
    reproduce = command(
        commands,
        "reproduce",
        "Make the tables of the paper: train missing models, measure them, keep the figures. Repeat the command to "
        "resume a stopped run; existing trainings and figures are kept.",
    )
    reproduce.add_argument(
        "table",
        nargs="+",
        help="tracking, likelihood, ablation, generation, efficiency, generalisation, replay, balls, or all of them: "
        "all; figures draws the pictures of finished trainings into docs/pictures/results; page writes docs/results.md "
        "and the results in docs/research.md",
    )
    reproduce.add_argument(
        "--setting",
        nargs="+",
        default=[],
        help="presets to measure, such as md, vhd, mnist-md, sqair-vld (none given: all of the table)",
    )
    reproduce.add_argument(
        "--seeds", type=natural, nargs="+", metavar="SEED", default=[0, 1, 2], help="seeds to train with"
    )
    reproduce.add_argument("--runs", default="runs", help="folder of the trainings, PRESET-seedSEED each")
    reproduce.add_argument("--results", default="results", help="folder of the figures, one JSON file each")
    add_together(reproduce)
    reproduce.add_argument("--clips", type=positive, default=1000, help="unseen clips to measure on")
    reproduce.add_argument("--nll-samples", type=positive, default=10, help="samples for the likelihood bound")


def add_presets(commands: Commands) -> None:
    """Add `scalor presets`."""
    presets = command(commands, "presets", "List the presets, or print all settings of one.")
    presets.add_argument("preset", nargs="?", help="print all settings of this preset")


def add_demo(commands: Commands) -> None:
    """Add `scalor demo`."""
    demo = command(
        commands,
        "demo",
        "Track and continue an unseen scene with the shipped weights.",
        out="demo",
    )
    demo.add_argument("--clips", type=positive, default=16, help="clips for the metrics")


def add_pack(commands: Commands) -> None:
    """Add `scalor pack`."""
    pack = command(commands, "pack", "Write a small copy of trained weights, to share: a quarter of the size.")
    pack.add_argument("weights", help="run folder or .safetensors file")
    pack.add_argument("--out", required=True, help=".safetensors file to write")


def add_info(commands: Commands) -> None:
    """Add `scalor info`."""
    info = command(commands, "info", "Print the contents of a checkpoint.")
    info.add_argument("weights", help="shipped name, run folder or .safetensors file")


def add_together(sub: Parser) -> None:
    """Add the option for the number of trainings at the same time."""
    sub.add_argument("--together", type=positive, default=8, help="most trainings side by side; others wait")


def add_engine(sub: argparse._ActionsContainer) -> None:
    """Add the options that choose where many videos are worked on."""
    sub.add_argument(
        "--jobs", type=positive, default=None, help="videos at the same time (default: one per core, or per GPU)"
    )
    sub.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="processes of this machine, or a Ray cluster"
    )
    sub.add_argument("--address", default=None, help="address of the Ray cluster, such as auto (default: start one)")
    sub.add_argument("--gpus", type=number, default=0.0, help="with Ray: GPUs for each video, such as 0.5")


def add_shard(sub: argparse._ActionsContainer) -> None:
    """Add the option for a part of many videos."""
    sub.add_argument(
        "--shard",
        type=shard,
        default=None,
        metavar="I/N",
        help="do only part I of N of the videos, counted from 0, as a task of an array of a cluster does",
    )


def add_selection(sub: argparse._ActionsContainer, fps: float | None = FPS) -> None:
    """Add the options that select a part of a video. `fps` is the default of `--fps`."""
    sub.add_argument(
        "--region",
        type=natural,
        nargs=4,
        metavar=("X0", "Y0", "X1", "Y1"),
        default=None,
        help="part of the picture to look at, pixels; X1 and Y1 are the first ones outside",
    )
    sub.add_argument("--start", type=number, default=None, help="seconds to leave out at the beginning of the video")
    sub.add_argument("--end", type=number, default=None, help="second of the video to stop at")
    sub.add_argument(
        "--fps",
        type=number,
        default=fps,
        help="frames per second of images and arrays, which hold no times" + ("" if fps else f" (default: {FPS:g})"),
    )
