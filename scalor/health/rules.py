"""Rules of the health report: the limits, the sentence and the remedy of each measure.

The limits were chosen with `python -m benchmarks.health`; docs/health.md has the table.
"""

import math
from collections.abc import Callable
from functools import partial

from scalor.health.facts import Facts
from scalor.health.verdict import LEVELS, Health, Level, Limits, Measure, verdict_of
from scalor.video import Selection

NEVER = math.inf
"""Limit that no value reaches, for measures that never make a run bad on their own."""
EXPLAINED_LIMITS = Limits(0.6, 0.33)
"""Share of the foreground inside boxes. It approximates recall, which MOTA cannot exceed: with 60 % of the objects
removed it was .20 to .55, and MOTA .25 to .48."""
EMPTY_LIMITS = Limits(0.15, 0.4)
"""Share of the boxes without foreground. With two in five boxes false, at most a third of MOTA is left. The ground
truth had up to .03."""
FITTING_LIMITS = Limits(0.75, 0.28)
"""Share of the isolated boxes that fit their foreground. The ground truth had .80 to 1, boxes jittered by a quarter of
their sides (MOTA -.1) had .27 to .5, and boxes shifted by 60 % had none."""
MIN_PAIRS_FOR_BAD = 20
"""Smallest number of isolated boxes for the fit to count as bad."""
MIN_PAIRS_FOR_OK = 100
"""Smallest number of isolated boxes for the fit to count as ok."""
FILL_LIMITS = Limits(0.18, 0.12)
"""Median over boxes of the share of foreground. The ground truth had .34 to .88. Thin objects that lie diagonally fill
a sixth of their boxes."""
SIZE_LIMITS = Limits(1.6, 2.8)
"""Factor by which a size is too large or too small. Blobs are larger than objects where objects touch, and smaller
where objects break into pieces: by 1.5 on TUD campus. A classical tracker that was given 1.8 times the size lost half
of its MOTA on one part of PETS and none on another; with 3 times the size it lost all on both."""
DUPLICATES_LIMITS = Limits(0.3, 0.6)
"""Share of the boxes that duplicate another box. The ground truth had .26 where people occlude each other; with a fifth
of the boxes doubled it was .13 to .44."""
IDS_LIMITS = Limits(2.5, NEVER)
"""Ids per object. The ground truth had 2.3 where cells divide. There is no bad level, because boxes and counts may be
right with any number of ids."""
LIFE_LIMITS = Limits(0.1, -NEVER)
"""Median lifetime of an id, divided by the time that an object needs to cross the view or by the duration of the video,
whichever is shorter."""
LIFE_FRAMES_LIMITS = Limits(5, 2)
"""Median lifetime of an id in tracked frames. Most ids are noise when they last for one or two."""
JUMPS_LIMITS = Limits(0.01, 0.5)
"""Share of the steps of ids that are jumps. The ground truth had none; with ids swapped every second it was .04 to
.08."""
DROPPED_LIMITS = Limits(0.005, 0.3)
"""Share of the detections that found no slot. The same share of the objects is missing."""
MISSING_LIMITS = Limits(0.01, 0.5)
"""Share of the frames promised by the file that were not read. Two missing frames are a warning in any case."""
FOREGROUND_LIMITS = Limits(0.3, 0.5)
"""Share of the picture that differs from the background. At one half, it is unclear which half is the background."""
UNSEEN_LIMITS = Limits(0.5, 0.8)
"""Share of the frames with foreground in which no object was found."""
CAMERA_MOTION_LIMITS = Limits(0.5, 2.0)
"""Motion of the camera in pixels a frame, used where the state of the camera is not given."""
AT_LIMIT_RATIO = 1.1
"""Ratio to the smallest or largest side that a tracker can report, within which a median side is at that limit."""
CAMERA_LEVELS: dict[str, Level] = {"still": "ok", "shaking": "warn", "moving": "bad"}
"""Known states of the camera, and the level of each for tracking without motion compensation."""


def judge(
    facts: Facts,
    promised_frames: int | None = None,
    camera: str | None = None,
    motion: float | None = None,
    stride: int = 1,
    lacking: str | None = None,
) -> Health:
    """Return the health report for the counts of a run. See `HealthMonitor.report` for the parameters."""
    rules: list[Callable[[Facts], Measure | None]] = [
        found,
        explained,
        on_nothing,
        fit,
        fill,
        size,
        doubles,
        ids,
        partial(life, stride=stride),
        jumps,
        lambda facts: missing(facts.frames, promised_frames, lacking),
        slots,
        light,
        partial(camera_moves, camera=camera, motion=motion),
        background,
    ]
    measures = tuple(measure for rule in rules if (measure := rule(facts)) is not None)
    return Health(verdict_of(measures), measures)


def judge_frames(frames: int, promised: int | None, lacking: str | None = None) -> Health | None:
    """Return a health report with the frames that are missing as its only measure, or None if none are missing.

    It is for trackers whose tracks cannot be compared with a foreground.
    """
    found = missing(frames, promised, lacking)
    return None if found is None or found.level == "ok" else Health(verdict_of((found,)), (found,))


def measure(name: str, value: float, unit: str, level: Level, sentence: str, remedy: str) -> Measure:
    """Return a measure, with the remedy only where the level is not ok."""
    return Measure(name, value, unit, level, sentence, "" if level == "ok" else remedy)


def found(facts: Facts) -> Measure | None:
    """Judge whether objects were found in the frames that contain foreground."""
    if facts.frames == 0:
        return measure("found", 0, "objects per frame", "bad", "No frame was read.", "Check the video file.")
    if facts.moving_frames == 0:
        lost: Level = "bad" if facts.light_steps else "warn"
        return measure(
            "found",
            facts.objects,
            "objects per frame",
            "ok" if facts.rows else lost,
            f"Nothing moves in the {facts.frames} frames; {facts.objects:.1f} objects per frame were found.",
            "Choose another part of the video with --start and --end, or a larger --region.",
        )
    share = facts.unseen_frames / facts.moving_frames
    return measure(
        "found",
        facts.objects,
        "objects per frame",
        UNSEEN_LIMITS.level(share),
        f"{facts.objects:.1f} objects per frame were found. In {100 * share:.0f} % of the frames in which something "
        "moves, none was found.",
        "The model does not recognise these objects: fit a model with `scalor fit`, or give --object-size.",
    )


def explained(facts: Facts) -> Measure | None:
    """Judge the share of the foreground that lies inside boxes."""
    if facts.explained is None:
        return None
    return measure(
        "explained",
        facts.explained,
        "share",
        EXPLAINED_LIMITS.level(facts.explained),
        f"Boxes cover {100 * facts.explained:.0f} % of the foreground, which is everything that moves.",
        "Objects are missed: fit a model to this video, or look for objects without a box in the overlay.",
    )


def on_nothing(facts: Facts) -> Measure | None:
    """Judge the share of the boxes that contain hardly any foreground."""
    if facts.empty is None or facts.moving_frames == 0:
        return None
    return measure(
        "on_nothing",
        facts.empty,
        "share",
        EMPTY_LIMITS.level(facts.empty),
        f"{100 * facts.empty:.0f} % of the boxes contain almost no foreground.",
        "These objects are at rest, or the boxes are false: check the overlay. If they are false, fit a model.",
    )


def fit(facts: Facts) -> Measure | None:
    """Judge how many of the isolated boxes fit their foreground."""
    if facts.fitting is None or facts.moving_frames == 0:
        return None
    looks_well = FITTING_LIMITS.level(facts.fitting) == "ok"
    if facts.pairs < (MIN_PAIRS_FOR_OK if looks_well else MIN_PAIRS_FOR_BAD):
        return measure(
            "fit",
            facts.fitting,
            "share",
            "warn",
            f"Only {facts.pairs} boxes are isolated, too few to check how well boxes fit their foreground.",
            "Check the overlay, or track a longer part of the video, or one in which fewer objects touch.",
        )
    return measure(
        "fit",
        facts.fitting,
        "share",
        FITTING_LIMITS.level(facts.fitting),
        f"{100 * facts.fitting:.0f} % of the {facts.pairs} isolated boxes fit their foreground.",
        "Boxes are shifted or have a wrong size: give --object-size, or fit a model to this video.",
    )


def fill(facts: Facts) -> Measure | None:
    """Judge the share of foreground in the median box."""
    if facts.fill is None or facts.moving_frames == 0:
        return None
    return measure(
        "fill",
        facts.fill,
        "share",
        FILL_LIMITS.level(facts.fill),
        f"The median box consists of {100 * facts.fill:.0f} % foreground.",
        "Boxes are too large, shifted or late, or objects are thin: check the overlay, and give --object-size.",
    )


def size(facts: Facts) -> Measure | None:
    """Judge the size of the boxes, and the size that the tracker works with, against the size of the blobs."""
    if facts.blob_size is None:
        return None
    said = {"Boxes are": facts.box_size, "The tracker looks for": facts.object_size}
    ratios = {words: size_ratio(size, facts.blob_size) for words, size in said.items() if size is not None}
    if not ratios:
        return None
    words = max(ratios, key=lambda words: abs(math.log(ratios[words])))
    ratio, what = ratios[words], pixels(said[words])
    level = SIZE_LIMITS.level(max(ratio, 1 / ratio))
    sentence = f"{words} {what} pixels (height x width); connected foreground regions are {pixels(facts.blob_size)}."
    if facts.box_size is not None and facts.size_limits is not None:
        low, high = facts.size_limits
        if min(facts.box_size) <= low * AT_LIMIT_RATIO or max(facts.box_size) * AT_LIMIT_RATIO >= high:
            level = "warn" if level == "ok" else level
            sentence += f" The tracker can only report sides of {low:.0f} to {high:.0f} pixels."
    return measure(
        "size",
        ratio,
        "times",
        level,
        sentence,
        f"If a single object is about {pixels(facts.blob_size)}, give that as --object-size, or fit a model.",
    )


def pixels(size: tuple[float, float] | None) -> str:
    """Format a height and a width."""
    return "?" if size is None else f"{size[0]:.0f} x {size[1]:.0f}"


def size_ratio(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the ratio of two sizes along the side that differs more; below 1 if `one` is smaller."""
    return max((a / b for a, b in zip(one, other, strict=True)), key=lambda ratio: abs(math.log(ratio)))


def doubles(facts: Facts) -> Measure | None:
    """Judge the share of the boxes that duplicate another box."""
    if facts.doubles is None:
        return None
    return measure(
        "doubles",
        facts.doubles,
        "share",
        DUPLICATES_LIMITS.level(facts.doubles),
        f"{100 * facts.doubles:.0f} % of the boxes duplicate another box.",
        "One object has several boxes, or objects hide each other: give a larger --object-size, or film from above.",
    )


def ids(facts: Facts) -> Measure | None:
    """Judge the number of ids per object."""
    if facts.ids_per_object is None:
        return None
    rate = facts.ids / max(facts.seconds, 1e-9)
    return measure(
        "ids",
        facts.ids_per_object,
        "ids per object",
        IDS_LIMITS.level(facts.ids_per_object),
        f"{facts.ids} ids, {rate:.2f} per second: {facts.entered} began at the border or at the start, "
        f"{facts.appeared} in the middle of the picture, {facts.replaced} where another id had just ended. That "
        f"is about {facts.ids_per_object:.1f} ids per object.",
        "Objects are lost and found again: do not count ids. Track every frame (--stride 1), or fit a model.",
    )


def life(facts: Facts, stride: int = 1) -> Measure | None:
    """Judge the median lifetime of an id."""
    if facts.life is None:
        return None
    longest = min(facts.seconds, math.inf if facts.crossing is None else facts.crossing)
    value = facts.life / longest
    tracked = facts.life / facts.seconds * facts.frames
    crossing = "" if facts.crossing is None else f"; an object crosses the view in about {facts.crossing:.1f} s"
    slower = f" Only {Selection(stride=stride).which_frames} was tracked: try --stride 1." if stride > 1 else ""
    return measure(
        "life",
        value,
        "of a crossing",
        max(LIFE_LIMITS.level(value), LIFE_FRAMES_LIMITS.level(tracked), key=LEVELS.index),
        f"Half of the ids last less than {facts.life:.1f} s. The video has {facts.seconds:.1f} s{crossing}.",
        f"Short ids are noise or pieces of longer tracks: leave them out, or fit a model.{slower}",
    )


def jumps(facts: Facts) -> Measure | None:
    """Judge the share of the steps in which an id moved implausibly far."""
    if facts.steps == 0:
        return None
    value = facts.jumps / facts.steps
    return measure(
        "jumps",
        value,
        "share of steps",
        JUMPS_LIMITS.level(value),
        f"Ids jumped farther than an object's size {facts.jumps} times ({100 * value:.1f} % of all steps).",
        "Ids switch between objects: track every frame (--stride 1), or use a video with more frames per second.",
    )


def missing(frames: int, promised: int | None, lacking: str | None = None) -> Measure | None:
    """Judge the number of promised frames that were not read. One missing frame is ok, because files count loosely.

    `lacking` says in words what the file lacks, where its structure shows that it is cut short.
    """
    lost = max(0, (promised or 0) - frames)
    if lacking is not None and lost <= 1:
        return measure(
            "frames",
            lost / (promised or 1),
            "share",
            "warn",
            f"The file is not complete ({lacking}); {frames} frames were read.",
            "Frames may be missing. Copy or export the file again.",
        )
    if not promised:
        return None
    return measure(
        "frames",
        lost / promised,
        "share",
        "ok" if lost <= 1 else max("warn", MISSING_LIMITS.level(lost / promised), key=LEVELS.index),
        f"The file promises at least {promised} frames, and {frames} were read.",
        "The others could not be decoded. The file is cut short or damaged: copy or export it again.",
    )


def slots(facts: Facts) -> Measure | None:
    """Judge the share of the detections that were dropped because no slot was left."""
    value = facts.dropped / max(facts.dropped + facts.rows, 1)
    needed = max(16, math.ceil(2 * (facts.objects + facts.dropped / max(facts.frames, 1))))
    return measure(
        "slots",
        value,
        "share",
        "ok" if facts.dropped == 0 else DROPPED_LIMITS.level(value),
        f"{facts.dropped} detections in {facts.dropping_frames} frames were dropped because all slots were taken.",
        f"Allow more objects: --slots {needed}.",
    )


def light(facts: Facts) -> Measure | None:
    """Judge the number of sudden changes of the light."""
    return measure(
        "light",
        facts.light_steps,
        "steps",
        "warn" if facts.light_steps else "ok",
        f"The lighting of the whole picture changed suddenly {facts.light_steps} times.",
        "Track the parts before and after each change separately, with --start and --end.",
    )


def camera_moves(facts: Facts, camera: str | None, motion: float | None) -> Measure | None:
    """Judge the state of the camera, or its motion in pixels a frame where the state is not given."""
    if camera is None and motion is None:
        return None
    level = CAMERA_MOTION_LIMITS.level(motion or 0.0) if camera is None else CAMERA_LEVELS[camera]
    moved = "" if motion is None else f", by {motion:.1f} pixels per frame"
    word = camera or next(word for word, its_level in CAMERA_LEVELS.items() if its_level == level)
    return measure(
        "camera",
        motion or 0.0,
        "px per frame",
        level,
        f"The camera is {word}{moved}.",
        "The motion was not compensated: leave out --region, which switches compensation off, or choose a part in "
        "which the camera stands still.",
    )


def background(facts: Facts) -> Measure | None:
    """Judge the share of the picture that differs from the background."""
    return measure(
        "foreground",
        facts.foreground,
        "share",
        FOREGROUND_LIMITS.level(facts.foreground),
        f"On average {100 * facts.foreground:.1f} % of the picture differs from the background, and at most "
        f"{100 * facts.most_foreground:.1f} %.",
        "The camera moves, the lighting changes, or the background estimate is wrong: use a longer part of the video, "
        "or a smaller --region.",
    )
