"""Every setting of a run, as frozen dataclasses that check their values when they are created (`scalor.settings`).

A `Config` has four parts: the settings of the model, of the scenes it is trained on, of the scenes it is tested on, and
of the training. The model settings are SCALOR's (`ModelConfig`, in this module) or those of another system, which are
defined in the module of that system.
Presets (`scalor.presets`) return whole configs; a variant is `dataclasses.replace(preset(), ...)`.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol

from typing_extensions import TypeVar

from scalor.errors import require
from scalor.registry import SceneKinds
from scalor.settings import Settings, setting

FPS = 10
"""Frames per second assumed for images and arrays, which store no times."""
SCENE_VERSION = 1
"""Version of the code that makes scenes. It changes whenever equal settings give other frames or another truth."""
MODEL_VERSION = 1
"""Version of SCALOR's code. It changes whenever equal settings, weights and frames give another bound or other tracks.

So it stands for the constants that are not settings, such as layer widths and the weights of the supervised losses
(`tests/model/test_version.py`).
"""
MOST_SLOTS, WIDEST = 100_000, 65_536
"""Largest number of objects, and largest vector or side in pixels, that fit into memory at all."""


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
class ModelConfig(Settings):
    """Sizes and switches of the world model. Sizes in pixels refer to the input frames of the model."""

    system: ClassVar[str] = "scalor"
    version: int = setting(
        MODEL_VERSION, "version of the model's code; only the last one is there", ge=1, le=MODEL_VERSION
    )
    frame: tuple[int, int] = setting((64, 64), "height and width of a training frame, pixels", ge=1, le=WIDEST)
    grid: tuple[int, int] = setting(
        (8, 8), "rows and columns of discovery cells; they must divide the frame", ge=1, le=WIDEST
    )
    slots: int = setting(32, "K, the most objects followed at once", ge=1, le=MOST_SLOTS)
    proposals: int = setting(16, "cells that may propose a new object in a frame after the first", ge=1, le=MOST_SLOTS)
    object_size: tuple[float, float] = setting((9.0, 9.0), "typical height and width of an object, pixels", gt=0)
    size_range: float = setting(0.5, "largest deviation of a size from object_size, as a share of it", gt=0, lt=1)
    glimpse: int = setting(
        16, "P, side of a glimpse, in which an object is encoded and decoded, pixels", ge=4, le=1_024, multiple_of=4
    )
    what_dim: int = setting(16, "length of z_what, the appearance of an object", ge=1, le=WIDEST)
    initial_mask: float = setting(-1.5, "logit of the masks of an untrained model (0: as in the paper)", le=4)
    feature_dim: int = setting(64, "channels of the image features, one vector per cell", ge=2, le=WIDEST)
    memory: bool = setting(True, "image features depend on earlier frames (off: on the frame alone)")
    tracker_dim: int = setting(128, "length of a tracker's hidden state", ge=1, le=WIDEST)
    prior_dim: int = setting(64, "length of the transition prior's hidden state", ge=1, le=WIDEST)
    attention: bool = setting(True, "a tracker gets only the features around its object (off: all features)")
    attention_cells: int = setting(4, "side of the attended window, cells", ge=1, le=64)
    search: bool = setting(True, "a tracker also gets the pixels around its object (off: as in the paper)")
    search_scale: float = setting(2.0, "side of the region of these pixels, in sides of the object's box", gt=0, le=16)
    inertia: bool = setting(
        False, "a tracker expects its object where its last motion leads (off: at its last position, as in the paper)"
    )
    rejection: bool = setting(True, "reject proposals at places that propagated objects explain")
    rejection_overlap: float = setting(
        0.3, "tau, the explained share of a proposal from which on it is rejected", gt=0, lt=1
    )
    explained_mask: float = setting(
        0.1, "mask value above which propagated objects explain a pixel, when proposals are rejected", gt=0, lt=1
    )
    explained_error: float = setting(
        0.0,
        "deviation of colour beyond which covered pixels do not count as explained; 0: all of them do, as in the paper",
        ge=0,
    )
    siblings: bool = setting(True, "non-maximum suppression of proposals of one object (off: as in the paper)")
    sibling_cover: float = setting(
        0.8, "share of a proposal covered by more likely ones, from which on it is suppressed", gt=0, le=1
    )
    sibling_neighbours: int = setting(4, "nearest more likely proposals that a proposal is compared with", ge=1)
    birth_presence: float = setting(0.7, "a proposal above this presence becomes an object", gt=0, lt=1)
    death_presence: float = setting(0.4, "an object below this presence is dropped", gt=0, lt=1)
    end_duplicates: bool = setting(True, "end the younger of two similar objects at one place (off: as in the paper)")
    duplicate_iou: float = setting(0.5, "smallest overlap (IoU) of the boxes of such objects", gt=0, lt=1)
    duplicate_what: float = setting(
        0.1, "largest mean squared difference of the z_what of such objects; others differ by 1 to 2", gt=0
    )
    prior_bias: float = setting(
        5.0, "bias of the prior's presence logits in propagation, so that objects persist at first", ge=-8, le=8
    )
    posterior_bias: float = setting(
        2.0, "bias of the posterior's presence logits in propagation, before their tanh", ge=-8, le=8
    )
    depth_sharpness: float = setting(
        0.0,
        "objects are composited from front to back, and this is how sharply depths decide; 0: colours are averaged, as "
        "in the paper",
        ge=0,
    )
    background: bool = setting(False, "model a moving background (off: it is black)")
    background_dim: int = setting(10, "length of z_bg, the background's latent", ge=1, le=WIDEST)
    background_map: int = setting(
        4, "side of the map that the background's picture is enlarged from; larger ones draw sharp scenes", ge=4, le=256
    )
    background_thumbnail: int = setting(
        0, "side of a thumbnail that z_bg is also read from and drawn as, which brings colours; 0: none", ge=0, le=64
    )
    still: bool = setting(False, "a stationary camera: every frame comes with a picture of the background")
    sigma: float = setting(0.2, "standard deviation of the pixel noise, pixels in [0, 1]", gt=0)

    def check(self) -> None:
        """Check that the frame is a whole number of cells, and that only one thing describes the background."""
        for axis, size, cells in zip(("height", "width"), self.frame, self.grid, strict=True):
            require(
                size % cells == 0,
                "model.frame",
                self.frame,
                f"the {axis} {size} must be a multiple of the {cells} cells of model.grid {self.grid}, "
                f"for example {max(1, round(size / cells)) * cells}",
            )
        require(
            not (self.still and self.background),
            "model.still",
            self.still,
            "the background is either given or modelled, so switch model.background off",
        )

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
        """Return why the model cannot see frames of a size, or None if it can."""
        for axis, size, cell in zip(("height", "width"), frame, self.cell, strict=True):
            if size % cell:
                return f"the {axis} {size} must be a multiple of the model's {cell} px cells"
        return None


@dataclass(frozen=True)
class SceneConfig(Settings):
    """A family of clips: synthetic with known ground truth, or cut out of a video."""

    section: ClassVar[str] = "scene"
    version: int = setting(
        SCENE_VERSION, "version of the code that makes these scenes; only the last one is there", ge=1, le=SCENE_VERSION
    )
    kind: str = setting(
        "shapes",
        "what moves: shapes, mnist, balls, composed (all kinds of things), replay, station, footage, video",
        choices=SceneKinds(),
    )
    frame: tuple[int, int] = setting((64, 64), "height and width of the view, pixels", ge=1, le=WIDEST)
    length: int = setting(10, "frames in a clip", ge=1)
    objects: tuple[int, int] = setting(
        (18, 24), "fewest and most objects in the environment (replay: in a clip)", ge=(0, 1), le=MOST_SLOTS
    )
    size: float = setting(9.0, "size of an object, pixels", gt=0)
    background: bool = setting(False, "moving smooth textures behind the objects (off: black)")
    births: tuple[int, ...] = setting(
        (0,), "frames at which a group of `objects` new objects appears", ge=0, shortest=1
    )
    collide: bool = setting(False, "balls: those of one depth bounce off each other")
    depths: int = setting(1, "balls: number of depths; balls of different depths pass over each other", ge=1, le=2)
    steer: bool = setting(False, "objects move towards each other in pairs, so that occlusions are frequent")
    digits: tuple[int, ...] = setting((), "mnist: the digits that appear (none given: all ten)", ge=0, le=9)
    still: bool = setting(False, "replay: every frame comes with a picture of the background (footage: always)")
    footage: str = setting("", "footage: the file that `scalor fit` keeps a video's frames in; video: the video")
    scale: float = setting(1.0, "footage: pixels of a frame for each pixel of the video, along a side", gt=0)
    stretch: float = setting(1.0, "footage: how many times more than `scale` the width is scaled", gt=0)
    perspective: tuple[float, float] = setting(
        (1.0, 1.0), "footage: size of objects at the upper and the lower edge of the video, in typical sizes"
    )
    object_size: tuple[float, float] = setting(
        (0.0, 0.0), "footage: typical height and width of an object in the video, pixels; 0: by model.object_size", ge=0
    )
    video_size: tuple[int, int] = setting((0, 0), "footage: height and width of the video; 0: not known", ge=0)
    stride: int = setting(1, "footage, video: frames of the video from one frame to the next", ge=1)
    recorded: int = setting(0, "composed: number of clips that are made beforehand and compressed with H.264", ge=0)
    contrast: float = setting(1.0, "footage: factor by which the difference from the background is amplified", ge=1)
    zoom: float = setting(1.0, "footage: largest factor by which clips are enlarged or reduced", ge=1)

    @property
    def gives_still(self) -> bool:
        """Whether frames come with a picture of the background (the scene without objects)."""
        return self.still or self.kind in ("footage", "composed")

    def check(self) -> None:
        """Check settings of the scenes against each other."""
        fewest, most = self.objects
        require(fewest <= most, "scene.objects", self.objects, "give the fewest, then the most")
        require(not self.still or self.kind == "replay", "scene.still", self.still, "only a replay can give it")
        require(max(self.perspective) > 0, "scene.perspective", self.perspective, "one of them must be positive")
        require(
            not self.recorded or self.kind == "composed", "scene.recorded", self.recorded, "only composed scenes can be"
        )


@dataclass(frozen=True)
class TrainConfig(Settings):
    """How a model is trained. Steps are optimiser steps."""

    section: ClassVar[str] = "train"
    steps: int = setting(10_000, "optimiser steps", ge=1)
    batch: int = setting(16, "clips in a step", ge=1)
    learning_rate: float = setting(5e-4, "Adam's step size", gt=0)
    betas: tuple[float, float] = setting(
        (0.9, 0.999), "Adam's decay rates of the mean and of the mean square of the gradient", ge=0, lt=1
    )
    epsilon: float = setting(1e-8, "Adam's epsilon, which keeps it from dividing by zero", gt=0)
    cooldown: int = setting(0, "number of last steps, over which the step size falls to zero", ge=0)
    clip_norm: float = setting(1.0, "gradient clipping: largest norm", gt=0)
    clip_usual: float = setting(
        0.0, "gradient clipping: largest norm, as a multiple of a moving average of norms; 0: off", gt=1, also=0
    )
    clip_usual_rate: float = setting(
        0.02, "weight of the newest norm in that moving average, which is geometric", gt=0, le=1
    )
    clip_object: float = setting(
        0.0,
        "gradient clipping between frames: largest gradient of an object, as a multiple of their mean; 0: off",
        gt=1,
        also=0,
    )
    lesson: float = setting(
        0.0, "weight of the supervised loss (presence, box, mask, depth), for scenes with a truth; 0: off", ge=0
    )
    seed: int = setting(0, "seed of the weights, the scenes and the samples", ge=0)
    lengths: tuple[tuple[int, int], ...] = setting(
        ((0, 2), (2_000, 4), (6_000, 10)),
        "sequence length: pairs of a first step and the frames from it on",
        ge=(0, 1),
        shortest=1,
    )
    temperature: tuple[float, float, int] = setting(
        (1.0, 0.3, 8_000),
        "Gumbel temperature: first value, last value, steps between them",
        gt=(0, 0, None),
        ge=(None, None, 0),
    )
    presence_prior: tuple[float, float, int] = setting(
        (0.1, 1e-4, 500),
        "prior probability of a discovery per cell: first value, last value, steps between",
        gt=(0, 0, None),
        lt=(1, 1, None),
        ge=(None, None, 0),
    )
    gradients_through_time: int = setting(0, "step from which on gradients flow between frames", ge=0)
    colour_counts: tuple[int, int] = setting(
        (0, 0),
        "steps between which model.explained_error comes into effect, so that propagation is learned before",
        ge=0,
    )
    parts_first: int = setting(
        0,
        "first steps, in which background and appearance are learned apart, without objects; 0: none, as in the paper",
        ge=0,
    )
    start: str = setting("", "weights to start from: a shipped name, a run folder or a file (none given: random ones)")
    precision: str = setting(
        "auto", "float32, bf16, or auto (bf16 on a GPU, float32 elsewhere)", choices=("auto", "float32", "bf16")
    )
    compile: bool = setting(True, "compile the time step on a GPU (off: slower steps, no wait at the start)")
    log_every: int = setting(50, "steps between log lines", ge=1)
    picture_every: int = setting(1_000, "steps between TensorBoard pictures", ge=1)
    save_every: int = setting(500, "steps between checkpoints", ge=1)
    evaluate_every: int = setting(0, "steps between evaluations on unseen clips, 0: never", ge=0)
    evaluate_clips: int = setting(64, "unseen clips in such an evaluation", ge=1)

    def check(self) -> None:
        """Check that the lengths of clips begin at step 0 and that steps rise."""
        require(
            self.colour_counts[0] <= self.colour_counts[1],
            "train.colour_counts",
            self.colour_counts,
            "give the first step, then the last",
        )
        starts = [start for start, _ in self.lengths]
        rising = starts[0] == 0 and starts == sorted(set(starts))
        require(rising, "train.lengths", self.lengths, "first steps must start at 0 and rise")

    def without_relative_clipping(self) -> "TrainConfig":
        """Return the same settings without the relative limits on gradients (`clip_usual` and `clip_object`)."""
        return dataclasses.replace(self, clip_usual=0.0, clip_object=0.0)


M_co = TypeVar("M_co", bound=SystemConfig, covariant=True, default=ModelConfig)


@dataclass(frozen=True)
class Config(Generic[M_co]):
    """The settings of a whole run: the model, the training scenes, the test scenes, and the training.

    Examples
    --------
    >>> config = scalor.get_preset("shapes-tiny")
    >>> longer = dataclasses.replace(config, train=dataclasses.replace(config.train, steps=5_000))
    """

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
                f"these scenes {'come' if given else 'do not come'} with a picture of the background, but model.still "
                f"is {wanted}",
            )
        taught = self.train.lesson > 0
        knows = self.scene.kind in ("composed", "footage", "shapes", "mnist", "replay") and self.system == "scalor"
        require(
            not taught or knows,
            "train.lesson",
            self.train.lesson,
            "set it to 0: only SCALOR has it, on scenes with a truth",
        )
        require(
            self.train.parts_first == 0 or self.system == "scalor",
            "train.parts_first",
            self.train.parts_first,
            "set it to 0: only SCALOR has parts to learn first",
        )
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
        """Return all settings as a table of plain values, such as a checkpoint records."""
        return {"system": self.system, **dataclasses.asdict(self)}


def missing_settings(config: Config[Any], table: dict[str, Any]) -> tuple[str, ...]:
    """Return the settings of a config that the table it was made from does not record, such as `train.epsilon`.

    Older versions of SCALOR had fewer settings. What was a constant of the code then is not recorded, and loading such
    a table gives these settings their present defaults. The model may have been trained with other values.
    """
    return tuple(
        f"{section.name}.{field.name}"
        for section in dataclasses.fields(config)
        for field in dataclasses.fields(getattr(config, section.name))
        if field.name not in table.get(section.name, {})
    )
