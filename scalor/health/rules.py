"""Rules of the health report: the limits, the sentence and the remedy of each measure.

The limits were chosen with `python -m benchmarks.health`; docs/health.md has the table.
"""

import math
from collections.abc import Callable
from functools import partial

from scalor.health.facts import Facts
from scalor.health.verdict import LEVELS, Health, Level, Limits, Measure, verdict_of

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
"""Share of the frames promised by the file that were not read."""
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
        partial(missing, promised=promised_frames),
        slots,
        light,
        partial(camera_moves, camera=camera, motion=motion),
        background,
    ]
    measures = tuple(measure for rule in rules if (measure := rule(facts)) is not None)
    return Health(verdict_of(measures), measures)


def measure(name: str, value: float, unit: str, level: Level, sentence: str, remedy: str) -> Measure:
    """Return a measure, with the remedy only where the level is not ok."""
    return Measure(name, value, unit, level, sentence, "" if level == "ok" else remedy)


def found(facts: Facts) -> Measure | None:
    """Judge whether objects were found in the frames that contain foreground."""
    if facts.frames == 0:
        return measure("found", 0, "objects a frame", "bad", "No frame was read.", "Check the video file.")
    if facts.moving_frames == 0:
        lost: Level = "bad" if facts.light_steps else "warn"
        return measure(
            "found",
            facts.objects,
            "objects a frame",
            "ok" if facts.rows else lost,
            f"Nothing moves in {facts.frames} frames, and {facts.objects:.1f} objects a frame were found.",
            "Choose another part of the video with --start and --end, or a larger --region.",
        )
    share = facts.unseen_frames / facts.moving_frames
    return measure(
        "found",
        facts.objects,
        "objects a frame",
        UNSEEN_LIMITS.level(share),
        f"{facts.objects:.1f} objects a frame were found; {100 * share:.0f} % of the frames in which something moves "
        "have none.",
        "The weights do not know these objects: fit a model with `scalor fit`, or say --object-size.",
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
        f"Objects' boxes hold {100 * facts.explained:.0f} % of all that moves.",
        "Things are missed: fit a model to this video, or look at the overlay for what has no box.",
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
        f"{100 * facts.empty:.0f} % of the boxes hold hardly anything that differs from the background.",
        "These objects rest, or there are none: look at the overlay; if there are none, fit a model to this video.",
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
            f"Only {facts.pairs} boxes stand alone, too few to check how well boxes fit what moves in them.",
            "Look at the overlay; a longer part of the video, or one with fewer things that touch, says more.",
        )
    return measure(
        "fit",
        facts.fitting,
        "share",
        FITTING_LIMITS.level(facts.fitting),
        f"{100 * facts.fitting:.0f} % of the boxes that stand alone fit what moves in them ({facts.pairs} looked at).",
        "Boxes are shifted, or of a wrong size: give --object-size, or fit a model to this video.",
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
        f"The median box is filled to {100 * facts.fill:.0f} % by what moves.",
        "Boxes are too large, shifted, or late, or things are thin: look at the overlay; give --object-size.",
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
    sentence = f"{words} {what} pixels high and wide, connected pieces of what moves {pixels(facts.blob_size)}."
    if facts.box_size is not None and facts.size_limits is not None:
        low, high = facts.size_limits
        if min(facts.box_size) <= low * AT_LIMIT_RATIO or max(facts.box_size) * AT_LIMIT_RATIO >= high:
            level = "warn" if level == "ok" else level
            sentence += f" The tracker can say no less than {low:.0f} and no more than {high:.0f}."
    return measure(
        "size",
        ratio,
        "times",
        level,
        sentence,
        f"If single objects are about {pixels(facts.blob_size)}, give that as --object-size, or fit a model.",
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
        f"{100 * facts.doubles:.0f} % of the boxes lie on another box.",
        "One thing has several boxes, or things hide each other: a larger --object-size, or a view from above.",
    )


def ids(facts: Facts) -> Measure | None:
    """Judge the number of ids per object."""
    if facts.ids_per_thing is None:
        return None
    rate = facts.ids / max(facts.seconds, 1e-9)
    return measure(
        "ids",
        facts.ids_per_thing,
        "ids a thing",
        IDS_LIMITS.level(facts.ids_per_thing),
        f"{facts.ids} ids, {rate:.2f} a second: {facts.entered} began at the border or at the start, "
        f"{facts.appeared} in the middle of the picture, {facts.replaced} in place of another: about "
        f"{facts.ids_per_thing:.1f} ids a thing.",
        "Things are lost and found again: do not count ids; track every frame (--stride 1) or fit a model.",
    )


def life(facts: Facts, stride: int = 1) -> Measure | None:
    """Judge the median lifetime of an id."""
    if facts.life is None:
        return None
    longest = min(facts.seconds, math.inf if facts.crossing is None else facts.crossing)
    value = facts.life / longest
    tracked = facts.life / facts.seconds * facts.frames
    crossing = "" if facts.crossing is None else f"; crossing the view takes about {facts.crossing:.1f} s"
    slower = f" Every {stride}th frame was tracked: try --stride 1." if stride > 1 else ""
    return measure(
        "life",
        value,
        "of a crossing",
        max(LIFE_LIMITS.level(value), LIFE_FRAMES_LIMITS.level(tracked), key=LEVELS.index),
        f"Half of the ids last less than {facts.life:.1f} s of {facts.seconds:.1f} s{crossing}.",
        f"Short ids are noise or pieces of longer ones: leave them out, or fit a model.{slower}",
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
        f"{facts.jumps} times an id jumped by more than its own size ({100 * value:.1f} % of all steps).",
        "Ids change from one thing to another: track every frame (--stride 1), or use a video of more frames a second.",
    )


def missing(facts: Facts, promised: int | None) -> Measure | None:
    """Judge the share of the promised frames that were not read. One missing frame is ok."""
    if not promised:
        return None
    lost = max(0, promised - facts.frames)
    return measure(
        "frames",
        lost / promised,
        "share",
        "ok" if lost <= 1 else MISSING_LIMITS.level(lost / promised),
        f"{facts.frames} of {promised} promised frames were read.",
        "The file is cut short or damaged: copy or export it again.",
    )


def slots(facts: Facts) -> Measure | None:
    """Judge the share of the detections that were dropped because no slot was left."""
    value = facts.dropped / max(facts.dropped + facts.rows, 1)
    return measure(
        "slots",
        value,
        "share",
        "ok" if facts.dropped == 0 else DROPPED_LIMITS.level(value),
        f"{facts.dropped} detections in {facts.dropping_frames} frames had no slot left and were dropped.",
        f"Give more room: --slots {max(16, math.ceil(2 * (facts.objects + facts.dropped / max(facts.frames, 1))))}.",
    )


def light(facts: Facts) -> Measure | None:
    """Judge the number of sudden changes of the light."""
    return measure(
        "light",
        facts.light_steps,
        "steps",
        "warn" if facts.light_steps else "ok",
        f"The light of the whole picture changed suddenly {facts.light_steps} times.",
        "Track the parts before and after a change one by one, with --start and --end.",
    )


def camera_moves(facts: Facts, camera: str | None, motion: float | None) -> Measure | None:
    """Judge the state of the camera, or its motion in pixels a frame where the state is not given."""
    if camera is None and motion is None:
        return None
    level = CAMERA_MOTION_LIMITS.level(motion or 0.0) if camera is None else CAMERA_LEVELS[camera]
    moved = "" if motion is None else f", by {motion:.1f} pixels a frame"
    word = camera or next(word for word, its_level in CAMERA_LEVELS.items() if its_level == level)
    return measure(
        "camera",
        motion or 0.0,
        "px a frame",
        level,
        f"The camera is {word}{moved}.",
        "The motion was not compensated: leave --region out, which switches that off, or choose a part without motion.",
    )


def background(facts: Facts) -> Measure | None:
    """Judge the share of the picture that differs from the background."""
    return measure(
        "foreground",
        facts.foreground,
        "share",
        FOREGROUND_LIMITS.level(facts.foreground),
        f"{100 * facts.foreground:.1f} % of the picture differs from the background on average, and at most "
        f"{100 * facts.most_foreground:.1f} %.",
        "So much cannot be told from a moving camera or changing light, and the background itself is doubtful: use a "
        "longer part of the video, or a smaller --region.",
    )
