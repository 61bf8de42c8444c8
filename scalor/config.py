"""Every setting of a run, as frozen dataclasses that check their values when they are created.

A `Config` has four parts: the settings of the model, of the scenes it is trained on, of the scenes it is tested on, and
of the training. The model settings are SCALOR's (`ModelConfig`, in this module) or those of another system, which are
defined in the module of that system.
Presets (`scalor.presets`) return whole configs; a variant is `dataclasses.replace(preset(), ...)`.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, get_args, get_origin, get_type_hints

from typing_extensions import TypeVar

from scalor.errors import InputError

T = TypeVar("T")

FPS = 10
"""Frames per second assumed for images and arrays, which store no times."""


def setting(default: T, help: str) -> T:
    """Return a dataclass field with a default and the help text that the command line shows for it."""
    field: T = dataclasses.field(default=default, metadata={"help": help})
    return field


def require(holds: bool, field: str, value: object, fix: str) -> None:
    """Raise InputError unless `holds` is true. All errors about settings have this form: field, value, fix."""
    if not holds:
        raise InputError(f"{field} is {value!r}: {fix}.")


class SystemConfig(Protocol):
    """Interface that the common code expects of a system's settings, which are a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    system: ClassVar[str]
    """The system's name in `scalor.systems`."""

    @property
    def frame(self) -> tuple[int, int]:
        """Height and width of a training frame, pixels."""
        ...

    def misfit(self, frame: tuple[int, int]) -> str | None:
        """Return what is wrong with frames of this height and width, or None if the model can process them."""
        ...


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and switches of the world model. Sizes in pixels refer to the input frames of the model."""

    system: ClassVar[str] = "scalor"
    frame: tuple[int, int] = setting((64, 64), "height and width of a training frame, pixels")
    grid: tuple[int, int] = setting((8, 8), "rows and columns of discovery cells; they must divide the frame")
    slots: int = setting(32, "K, the most objects followed at once")
    proposals: int = setting(16, "cells that may propose a new object in a frame after the first")
    object_size: tuple[float, float] = setting((9.0, 9.0), "typical height and width of an object, pixels")
    size_range: float = setting(0.5, "sizes vary by this share around object_size, either way")
    glimpse: int = setting(16, "P, side of the square an object is looked at and drawn in, pixels")
    what_dim: int = setting(16, "length of z_what, the appearance of an object")
    feature_dim: int = setting(64, "channels of the image features, one vector per cell")
    memory: bool = setting(True, "image features remember earlier frames (off: every frame is looked at by itself)")
    tracker_dim: int = setting(128, "length of a tracker's hidden state")
    prior_dim: int = setting(64, "length of the transition prior's hidden state")
    attention: bool = setting(True, "a tracker sees only the features around its object (off: all of them)")
    attention_cells: int = setting(4, "side of the attended window, cells")
    search: bool = setting(True, "a tracker also looks at the pixels around its object (off: as the paper)")
    inertia: bool = setting(
        False, "a tracker starts from where the last move leads (off: the last place, as the paper)"
    )
    rejection: bool = setting(True, "reject proposals that propagated objects already explain")
    rejection_overlap: float = setting(0.3, "tau, the explained share of a proposal at which it is rejected")
    siblings: bool = setting(True, "of proposals that found one object the most present stays (off: all, as the paper)")
    birth_presence: float = setting(0.7, "a proposal above this presence becomes an object")
    death_presence: float = setting(0.4, "an object below this presence is dropped")
    end_duplicates: bool = setting(True, "of two like objects at one place the younger ends (off: as the paper)")
    background: bool = setting(False, "model a moving background (off: it is black)")
    background_dim: int = setting(10, "length of z_bg, the background's latent")
    still: bool = setting(
        False, "a camera that stands still: a frame comes with a picture of the scene without objects"
    )
    sigma: float = setting(0.2, "standard deviation of the pixel noise, pixels in [0, 1]")

    def __post_init__(self) -> None:
        for name in ("frame", "grid"):
            require(min(getattr(self, name)) > 0, f"model.{name}", getattr(self, name), "both must be positive")
        for axis, size, cells in zip(("height", "width"), self.frame, self.grid, strict=True):
            require(
                size % cells == 0,
                "model.frame",
                self.frame,
                f"the {axis} {size} must be a multiple of the {cells} cells of model.grid {self.grid}, "
                f"for example {max(1, round(size / cells)) * cells}",
            )
        for name in ("slots", "proposals", "what_dim", "feature_dim", "tracker_dim", "prior_dim"):
            require(getattr(self, name) > 0, f"model.{name}", getattr(self, name), "it must be at least 1")
        for name in ("attention_cells", "background_dim"):
            require(getattr(self, name) > 0, f"model.{name}", getattr(self, name), "it must be at least 1")
        require(
            self.glimpse > 0 and self.glimpse % 4 == 0,
            "model.glimpse",
            self.glimpse,
            "it must be a positive multiple of 4",
        )
        require(self.feature_dim > 1, "model.feature_dim", self.feature_dim, "it must be at least 2")
        finite = all(0 < side < math.inf for side in self.object_size)
        require(finite, "model.object_size", self.object_size, "both must be positive and finite")
        require(0 < self.size_range < 1, "model.size_range", self.size_range, "it must lie between 0 and 1")
        for name in ("rejection_overlap", "birth_presence", "death_presence"):
            value = getattr(self, name)
            require(0 < value < 1, f"model.{name}", value, "it must lie between 0 and 1")
        require(0 < self.sigma < math.inf, "model.sigma", self.sigma, "it must be positive and finite")
        require(
            not (self.still and self.background),
            "model.still",
            self.still,
            "the scene behind the objects is either given or modelled, so switch model.background off",
        )

    @property
    def channels(self) -> int:
        """Number of channels of an input frame.

        3 for the colours. 7 for a still camera: the colours, the colours of the background, and a ruler (the object
        size expected at each row).
        """
        return 7 if self.still else 3

    @property
    def seen_channels(self) -> int:
        """Number of channels that the networks take.

        3 for the colours. 6 for a still camera: the difference from the background, and the colours.
        """
        return 6 if self.still else 3

    @property
    def latents(self) -> int:
        """Length of z_where, z_what and z_depth, concatenated."""
        return 4 + self.what_dim + 1

    @property
    def cell(self) -> tuple[int, int]:
        """Height and width of a cell, pixels. All weights depend on the cell size, none on the frame size."""
        return self.frame[0] // self.grid[0], self.frame[1] // self.grid[1]

    def misfit(self, frame: tuple[int, int]) -> str | None:
        for axis, size, cell in zip(("height", "width"), frame, self.cell, strict=True):
            if size % cell:
                return f"the {axis} {size} must be a multiple of the model's {cell} px cells"
        return None


@dataclass(frozen=True)
class SceneConfig:
    """A family of clips: synthetic with known ground truth, or cut out of a video."""

    kind: str = setting("shapes", "what moves: shapes, mnist, composed (all kinds of things), replay, station, footage")
    frame: tuple[int, int] = setting((64, 64), "height and width of the view, pixels")
    length: int = setting(10, "frames in a clip")
    objects: tuple[int, int] = setting((18, 24), "fewest and most objects in the environment (replay: in a clip)")
    size: float = setting(9.0, "size of an object, pixels")
    background: bool = setting(False, "moving smooth textures behind the objects (off: black)")
    births: tuple[int, ...] = setting((0,), "frames at which a group of `objects` new objects appears")
    steer: bool = setting(False, "objects steer towards each other, so that they cover each other often")
    digits: tuple[int, ...] = setting((), "mnist: the digits that appear (none given: all ten)")
    still: bool = setting(False, "replay: a frame comes with a picture of the scene without objects (footage: always)")
    footage: str = setting("", "footage: the file that `scalor fit` keeps a video's frames in")
    scale: float = setting(1.0, "footage: pixels of a frame for each pixel of the video, along a side")
    stretch: float = setting(1.0, "footage: how many times more than `scale` the width is scaled")
    perspective: tuple[float, float] = setting(
        (1.0, 1.0), "footage: size of objects at the video's upper and lower edge, in sizes of a typical one"
    )
    object_size: tuple[float, float] = setting(
        (0.0, 0.0), "footage: typical height and width of an object in the video, pixels; 0: by model.object_size"
    )
    video_size: tuple[int, int] = setting((0, 0), "footage: height and width of the video; 0: not known")
    stride: int = setting(1, "footage: frames of the video from one frame to the next")
    recorded: int = setting(0, "composed: clips that are made beforehand and go through a real H.264 encoder")
    contrast: float = setting(1.0, "footage: how many times stronger than in the video things differ from the scene")
    zoom: float = setting(1.0, "footage: clips are shown up to this many times larger or smaller")

    @property
    def gives_still(self) -> bool:
        """Whether frames come with a picture of the background (the scene without objects)."""
        return self.still or self.kind in ("footage", "composed")

    def __post_init__(self) -> None:
        kinds = ("shapes", "mnist", "composed", "replay", "station", "footage")
        require(not self.still or self.kind == "replay", "scene.still", self.still, "only a replay can give it")
        require(self.kind in kinds, "scene.kind", self.kind, f"choose one of {', '.join(kinds)}")
        require(min(self.frame) > 0, "scene.frame", self.frame, "both must be positive")
        require(self.length > 0, "scene.length", self.length, "a clip needs at least 1 frame")
        require(
            0 <= self.objects[0] <= self.objects[1] and self.objects[1] > 0,
            "scene.objects",
            self.objects,
            "give the fewest, then the most, the most at least 1",
        )
        require(0 < self.size < math.inf, "scene.size", self.size, "it must be positive and finite")
        require(
            len(self.births) > 0 and min(self.births) >= 0,
            "scene.births",
            self.births,
            "give frame numbers from 0 on",
        )
        require(all(0 <= d <= 9 for d in self.digits), "scene.digits", self.digits, "digits are 0 to 9")
        for name in ("scale", "stretch"):
            value = getattr(self, name)
            require(0 < value < math.inf, f"scene.{name}", value, "it must be positive and finite")
        require(
            max(self.perspective) > 0 and all(map(math.isfinite, self.perspective)),
            "scene.perspective",
            self.perspective,
            "both must be finite, and one of them positive",
        )
        require(
            self.recorded == 0 or (self.recorded > 0 and self.kind == "composed"),
            "scene.recorded",
            self.recorded,
            "it must be 0 or, for composed scenes, positive",
        )
        require(self.stride > 0, "scene.stride", self.stride, "it must be at least 1")
        for name in ("contrast", "zoom"):
            value = getattr(self, name)
            require(1 <= value < math.inf, f"scene.{name}", value, "it must be finite and at least 1")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained. Steps are optimiser steps."""

    steps: int = setting(10_000, "optimiser steps")
    batch: int = setting(16, "clips in a step")
    learning_rate: float = setting(5e-4, "Adam's step size")
    cooldown: int = setting(0, "last steps, over which the step size falls to zero")
    clip_norm: float = setting(1.0, "largest norm of the gradient")
    clip_usual: float = setting(0.0, "largest norm of the gradient, times the usual one; 0: any")
    clip_object: float = setting(
        0.0, "largest gradient that an object's place or latents get from later frames, times the usual one; 0: any"
    )
    lesson: float = setting(
        0.0, "weight of the truth's lesson (presence, place, mask, depth) beside the bound; 0: the bound alone"
    )
    seed: int = setting(0, "seed of the weights, the scenes and the samples")
    lengths: tuple[tuple[int, int], ...] = setting(
        ((0, 2), (2_000, 4), (6_000, 10)), "sequence length: pairs of a first step and the frames from it on"
    )
    temperature: tuple[float, float, int] = setting(
        (1.0, 0.3, 8_000), "Gumbel temperature: first value, last value, steps between them"
    )
    presence_prior: tuple[float, float, int] = setting(
        (0.1, 1e-4, 500), "prior probability of a discovery per cell: first value, last value, steps between"
    )
    gradients_through_time: int = setting(
        0, "step from which gradients flow between time steps; before it they are cut"
    )
    start: str = setting("", "weights to start from: a shipped name, a run folder or a file (none given: random ones)")
    precision: str = setting("auto", "float32, bf16, or auto (bf16 on a GPU, float32 elsewhere)")
    compile: bool = setting(True, "compile the time step on a GPU (off: slower steps, but they start at once)")
    log_every: int = setting(50, "steps between log lines")
    picture_every: int = setting(1_000, "steps between TensorBoard pictures")
    save_every: int = setting(500, "steps between checkpoints")
    evaluate_every: int = setting(0, "steps between evaluations on unseen clips, 0: never")
    evaluate_clips: int = setting(64, "unseen clips in such an evaluation")

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "log_every", "picture_every", "save_every", "evaluate_clips"):
            require(getattr(self, name) > 0, f"train.{name}", getattr(self, name), "it must be at least 1")
        for name in ("learning_rate", "clip_norm"):
            value = getattr(self, name)
            require(value > 0 and math.isfinite(value), f"train.{name}", value, "it must be positive and finite")
        for name in ("clip_usual", "clip_object"):
            value = getattr(self, name)
            allowed = value == 0 or 1 < value < math.inf
            require(allowed, f"train.{name}", value, "it must be 0, or above 1 and finite")
        require(0 <= self.lesson < math.inf, "train.lesson", self.lesson, "it must be 0 or more, and finite")
        for name in ("seed", "cooldown", "gradients_through_time", "evaluate_every"):
            require(getattr(self, name) >= 0, f"train.{name}", getattr(self, name), "it must be 0 or more")
        starts = [start for start, _ in self.lengths]
        require(
            bool(starts) and starts[0] == 0 and starts == sorted(set(starts)),
            "train.lengths",
            self.lengths,
            "first steps must start at 0 and rise",
        )
        require(
            all(frames > 0 for _, frames in self.lengths),
            "train.lengths",
            self.lengths,
            "every sequence needs at least 1 frame",
        )
        first, last, _ = self.temperature
        require(min(first, last) > 0, "train.temperature", self.temperature, "temperatures must be positive")
        first, last, _ = self.presence_prior
        require(
            min(first, last) > 0 and max(first, last) < 1,
            "train.presence_prior",
            self.presence_prior,
            "probabilities must lie between 0 and 1",
        )
        for name in ("temperature", "presence_prior"):
            require(
                getattr(self, name)[2] >= 0,
                f"train.{name}",
                getattr(self, name),
                "the number of steps must be 0 or more",
            )
        require(
            self.precision in ("auto", "float32", "bf16"),
            "train.precision",
            self.precision,
            "choose auto, float32 or bf16",
        )

    def without_relative_clipping(self) -> "TrainConfig":
        """Return the same settings without the relative limits on gradients (`clip_usual` and `clip_object`)."""
        return dataclasses.replace(self, clip_usual=0.0, clip_object=0.0)


M_co = TypeVar("M_co", bound=SystemConfig, covariant=True, default=ModelConfig)


@dataclass(frozen=True)
class Config(Generic[M_co]):
    """The settings of a whole run: the model, the training scenes, the test scenes, and the training."""

    model: M_co = dataclasses.field(default_factory=ModelConfig)  # type: ignore[assignment]
    scene: SceneConfig = dataclasses.field(default_factory=SceneConfig)
    test: SceneConfig = dataclasses.field(default_factory=SceneConfig)
    train: TrainConfig = dataclasses.field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        for name in ("scene", "test"):
            frame = getattr(self, name).frame
            misfit = self.model.misfit(frame)
            require(misfit is None, f"{name}.frame", frame, f"{misfit}")
            given, wanted = getattr(self, name).gives_still, getattr(self.model, "still", False)
            require(
                given == wanted,
                f"{name}.still",
                getattr(self, name).still,
                f"these scenes {'come' if given else 'do not come'} with a picture of the empty scene, but model.still "
                f"is {wanted}",
            )
        taught = self.train.lesson > 0
        knows = self.scene.kind in ("composed", "footage", "shapes", "mnist", "replay") and self.system == "scalor"
        require(not taught or knows, "train.lesson", self.train.lesson, "only SCALOR on scenes with a truth can use it")
        longest = max(frames for _, frames in self.train.lengths)
        require(
            longest <= self.scene.length,
            "train.lengths",
            self.train.lengths,
            f"the longest sequence, {longest}, must fit into scene.length {self.scene.length}",
        )

    @property
    def system(self) -> str:
        """Name of the system that the model belongs to."""
        return self.model.system

    def to_dict(self) -> dict[str, Any]:
        return {"system": self.system, **dataclasses.asdict(self)}


def build_record(record: type[Any], values: Any, path: str) -> Any:
    """Return a settings record from a table of plain values. `path` names the record in error messages."""
    require(isinstance(values, dict), path, values, f"a {record.__name__} is a table of fields")
    hints = {field.name: get_type_hints(record)[field.name] for field in dataclasses.fields(record)}
    unknown = sorted(set(values) - set(hints))
    require(not unknown, path, unknown, "these fields are unknown to this version")
    return record(**{name: convert(hints[name], value, f"{path}.{name}") for name, value in values.items()})


def convert(hint: Any, value: Any, field: str) -> Any:
    """Return a plain value (from JSON or the command line) converted to the type of a field."""
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        require(isinstance(value, list | tuple), field, value, "give a list")
        if inner[-1] is Ellipsis:
            inner = (inner[0],) * len(value)
        require(len(inner) == len(value), field, value, f"give {len(inner)} values")
        return tuple(convert(kind, item, field) for kind, item in zip(inner, value, strict=True))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    require(type(value) is hint, field, value, f"give {_plain(hint)}")
    return value


def _plain(hint: Any) -> str:
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}.get(hint, str(hint))
