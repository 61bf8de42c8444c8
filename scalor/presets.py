"""One function per experiment, each of which returns a whole `Config`. Scenes have the benchmark's five densities.

On the command line (`scalor train shapes-md`) a preset has the name of its function, with dashes for underscores.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scalor import systems
from scalor.baselines.sqair import SQAIRConfig
from scalor.baselines.vae import VAEConfig
from scalor.baselines.vrnn import VRNNConfig
from scalor.config import Config, ModelConfig, SceneConfig, TrainConfig
from scalor.errors import InputError

PRESETS: dict[str, Callable[[], Config]] = {}
"""All presets by name."""


def preset(make: Callable[[], Config]) -> Callable[[], Config]:
    """Register a preset. `scalor presets` prints the first line of its docstring."""
    PRESETS[make.__name__.replace("_", "-")] = make
    return make


def get_preset(name: str) -> Config:
    """Return the config of a preset.

    Parameters
    ----------
    name : str
        The name of the preset, such as `shapes-md`. `scalor presets` lists all of them.

    Returns
    -------
    Config
        The settings of the model, the training scenes, the test scenes and the training.

    Raises
    ------
    InputError
        If there is no such preset.

    Examples
    --------
    >>> config = scalor.get_preset("shapes-md")
    >>> config.model.slots
    32
    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}" if near else "`scalor presets` lists them all"
        raise InputError(f"preset is {name!r}: there is no such preset; {hint}.")
    return PRESETS[name]()


def build(preset: str) -> Any:
    """Return an untrained model with the settings of a preset.

    Parameters
    ----------
    preset : str
        The name of the preset, such as `shapes-md`. `scalor presets` lists all of them.

    Returns
    -------
    Model
        A model with random weights: a `SCALOR`, or a model of the system that the preset is for.

    Raises
    ------
    InputError
        If there is no such preset.

    Examples
    --------
    >>> model = scalor.build("shapes-tiny")
    >>> model.config.slots
    10
    """
    return systems.build(get_preset(preset).model)


def describe(name: str) -> str:
    """Return the first line of a preset's docstring."""
    return (PRESETS[name].__doc__ or "").strip().splitlines()[0]


USUAL_PRESENCE_PRIOR = (0.1, 0.01, 500)
"""The usual `train.presence_prior` (first value, last value, steps between). It expects many objects."""


def density(kind: str, objects: tuple[int, int], size: float, slots: int, cells: int = 16) -> Config:
    """Return the config of a 64x64 scene of one density, with a model that has enough slots for it.

    It departs from the paper's configuration where that falls short:

    - Cells are small, less than half an object at most densities, so that few objects share a cell.
    - The size range leaves no room for two objects in one box.
    - The presence prior expects many objects.
    - Trackers have inertia.
    - Each object's gradient from later frames is clipped to a multiple of the usual one, because a few very large
      gradients ended trainings (docs/log.md).
    """
    scene = SceneConfig(kind=kind, objects=objects, size=size)
    train = TrainConfig(
        steps=14_000,
        cooldown=3_000,
        lengths=((0, 1), (2_500, 2), (3_700, 4), (5_500, 10)),
        temperature=(1.0, 0.3, 4_000),
        presence_prior=USUAL_PRESENCE_PRIOR,
        clip_object=3.0,
        save_every=1_000,
    )
    model = ModelConfig(
        grid=(cells, cells),
        slots=slots,
        proposals=min(slots, 16),
        object_size=(size, size),
        size_range=0.25,
        inertia=True,
    )
    return Config(model=model, scene=scene, test=scene, train=train)


LATE_DISCOVERY_LENGTHS = ((0, 1), (4_000, 2), (5_500, 4), (7_000, 10))
"""`train.lengths` for scenes in which objects are found late: over textures, in clusters, or few and thin objects.

Propagation must not start before the objects are found (docs/log.md).
"""


def as_in_the_paper(config: Config) -> Config:
    """Return a config with the same scenes and the paper's model.

    That model has 8x8 cells that all propose in every frame, and sizes from half to one and a half times the typical
    size. Its presence prior falls to 1e-4. It has no search glimpse, no inertia, and no rule against duplicates or
    siblings. Its gradients are clipped to one fixed norm alone.
    """
    slots = config.model.slots
    model = replace(
        config.model,
        grid=(8, 8),
        proposals=min(slots, 64),
        size_range=0.5,
        rejection_overlap=0.3,
        search=False,
        inertia=False,
        siblings=False,
        end_duplicates=False,
    )
    return replace(
        config, model=model, train=replace(config.train.without_relative_clipping(), presence_prior=(0.1, 1e-4, 500))
    )


@preset
def shapes_tiny() -> Config:
    """3-6 shapes on 32x32 frames: learns on two CPU cores in about five minutes."""
    scene = SceneConfig(frame=(32, 32), objects=(3, 6), size=7.0)
    return Config(
        model=ModelConfig(
            frame=(32, 32),
            grid=(4, 4),
            slots=10,
            proposals=6,
            object_size=(7.0, 7.0),
            glimpse=12,
            what_dim=8,
            feature_dim=32,
            tracker_dim=64,
            prior_dim=32,
        ),
        scene=scene,
        test=scene,
        train=TrainConfig(
            steps=1_700,
            learning_rate=1e-3,
            cooldown=400,
            lengths=((0, 1), (400, 2), (1_200, 4)),
            temperature=(1.0, 0.3, 1_500),
            save_every=300,
        ),
    )


@preset
def shapes_vld() -> Config:
    """Shapes, very low density: 2-4 objects of 14 px."""
    return density("shapes", (2, 4), 14.0, slots=8, cells=8)


@preset
def shapes_ld() -> Config:
    """Shapes, low density: 8-11 objects of 12 px."""
    return density("shapes", (8, 11), 12.0, slots=16)


@preset
def shapes_md() -> Config:
    """Shapes, medium density: 18-24 objects of 9 px."""
    return density("shapes", (18, 24), 9.0, slots=32)


@preset
def shapes_hd() -> Config:
    """Shapes, high density: 50-64 objects of 6.5 px."""
    config = density("shapes", (50, 64), 6.5, slots=72, cells=32)
    # Half of the objects touch others. They need a longer training, and a proposal may overlap more with propagated
    # objects before it is rejected (docs/log.md).
    model = replace(config.model, rejection_overlap=0.5)
    return replace(config, model=model, train=replace(config.train, steps=18_000))


@preset
def shapes_vhd() -> Config:
    """Shapes, very high density: 90-110 objects of 5 px."""
    return density("shapes", (90, 110), 5.0, slots=128, cells=32)


@preset
def mnist_vld() -> Config:
    """Moving MNIST, very low density: 2-4 digits of 14 px."""
    config = density("mnist", (2, 4), 14.0, slots=8, cells=8)
    # Digits are few and thin. If the presence prior falls early, some trainings find none before propagation starts
    # (docs/log.md).
    return replace(
        config, train=replace(config.train, presence_prior=(0.99, 0.01, 4_000), lengths=LATE_DISCOVERY_LENGTHS)
    )


@preset
def mnist_ld() -> Config:
    """Moving MNIST, low density: 8-11 digits of 12 px."""
    return density("mnist", (8, 11), 12.0, slots=16)


@preset
def mnist_md() -> Config:
    """Moving MNIST, medium density: 18-24 digits of 9 px."""
    return density("mnist", (18, 24), 9.0, slots=32)


@preset
def mnist_hd() -> Config:
    """Moving MNIST, high density: 50-64 digits of 6.5 px."""
    return density("mnist", (50, 64), 6.5, slots=72, cells=32)


@preset
def shapes_background() -> Config:
    """High-density shapes over moving textures."""
    config = density("shapes", (50, 64), 6.5, slots=72, cells=32)
    scene = replace(config.scene, background=True)
    train = replace(config.train, lengths=LATE_DISCOVERY_LENGTHS)
    return replace(config, model=replace(config.model, background=True), scene=scene, test=scene, train=train)


@preset
def paper_shapes_md() -> Config:
    """Medium density with the paper's own configuration."""
    return as_in_the_paper(shapes_md())


@preset
def paper_shapes_hd() -> Config:
    """High density with the paper's own configuration."""
    return as_in_the_paper(shapes_hd())


@preset
def paper_shapes_vhd() -> Config:
    """Very high density with the paper's own configuration: 64 cells for 90 objects."""
    return as_in_the_paper(shapes_vhd())


@preset
def shapes_length() -> Config:
    """Medium density trained on 10 frames, tested on 20."""
    config = shapes_md()
    return replace(config, test=replace(config.test, length=20))


@preset
def shapes_crowd() -> Config:
    """Trained on 15-25 shapes, tested on 50-60."""
    config = density("shapes", (15, 25), 6.5, slots=72, cells=32)
    return replace(config, test=replace(config.test, objects=(50, 60)))


@preset
def mnist_unseen() -> Config:
    """Trained on digits 0-5, tested on digits 6-9."""
    config = mnist_md()
    return replace(
        config,
        scene=replace(config.scene, digits=(0, 1, 2, 3, 4, 5)),
        test=replace(config.test, digits=(6, 7, 8, 9)),
    )


@preset
def shapes_dense_discovery() -> Config:
    """10-15 new shapes at the first, fifth and ninth frame."""
    config = density("shapes", (10, 15), 7.0, slots=48, cells=32)
    scene = replace(config.scene, births=(0, 4, 8))
    return replace(config, model=replace(config.model, proposals=32), scene=scene, test=scene)


@preset
def mnist_occlusion() -> Config:
    """Digits that steer towards each other."""
    config = density("mnist", (8, 11), 12.0, slots=16)
    scene = replace(config.scene, steer=True)
    return replace(config, scene=scene, test=scene, train=replace(config.train, lengths=LATE_DISCOVERY_LENGTHS))


@preset
def shapes_ablation() -> Config:
    """6-36 shapes; switch model.rejection and model.attention off to repeat the paper's ablation."""
    config = density("shapes", (6, 36), 9.0, slots=48)
    return replace(config, train=replace(config.train, steps=8_000))


@preset
def shapes_xhd() -> Config:
    """Beyond the paper: medium density trained at 64x64, tested on 400-500 shapes of 9 px at 256x256."""
    config = density("shapes", (18, 24), 9.0, slots=640)
    return replace(config, test=replace(config.test, frame=(256, 256), objects=(400, 500)))


@preset
def shapes_thousand() -> Config:
    """Beyond the paper, for scaling: 1,000 shapes of 9 px at 512x512."""
    config = density("shapes", (18, 24), 9.0, slots=1_280)
    return replace(config, test=replace(config.test, frame=(512, 512), objects=(1_000, 1_000)))


BASELINE_PRESETS = (
    *("shapes-tiny", "shapes-vld", "shapes-ld", "shapes-md", "shapes-hd", "shapes-background"),
    *("mnist-vld", "mnist-ld", "mnist-md", "grand-central-replay"),
)
"""Presets whose scenes the other systems are trained on, too."""


SQAIR_PRESETS = ("shapes-tiny", "shapes-vld", "shapes-ld", "mnist-vld")
"""Presets whose scenes SQAIR is trained on. The paper could not make SQAIR work on more objects."""


def compare(system: str, make: Callable[[Config], Config[Any]], presets: Sequence[str] = BASELINE_PRESETS) -> None:
    """Register a preset SYSTEM-PRESET for each of `presets`; `make` turns SCALOR's config into the system's."""
    for name in presets:
        ours = PRESETS[name]

        def theirs(ours: Callable[[], Config] = ours) -> Config[Any]:
            return make(ours())

        theirs.__name__ = f"{system}_{ours.__name__}"
        theirs.__doc__ = f"{make.__doc__} {ours.__doc__}"
        preset(theirs)


def vrnn(config: Config) -> Config[VRNNConfig]:
    """VRNN."""
    model = VRNNConfig(frame=config.model.frame, sigma=config.model.sigma)
    return Config(model, config.scene, config.test, whole_frames(config))


def vae(config: Config) -> Config[VAEConfig]:
    """Sequential VAE."""
    model = VAEConfig(frame=config.model.frame, sigma=config.model.sigma)
    return Config(model, config.scene, config.test, whole_frames(config))


def sqair(config: Config) -> Config[SQAIRConfig]:
    """SQAIR."""
    most = config.scene.objects[1] + 1
    model = SQAIRConfig(
        frame=config.model.frame,
        slots=most,
        discoveries=min(most, 3),
        object_size=config.model.object_size,
        sigma=config.model.sigma,
        discovery_limit=2.5,  # one more object is never certain, so the ones that matter must come first
        eagerness=8.0,
    )
    # Single frames come first, because the objects learn one by one to look at different places. Long sequences come
    # late and are few, because SQAIR processes objects one after the other and their steps take long.
    steps, longest = 2 * config.train.steps, max(frames for _, frames in config.train.lengths)
    shares = ((0, 1), (0.35, 2), (0.65, 4), (0.85, 10))
    train = replace(
        config.train,
        steps=steps,
        learning_rate=3e-4,  # at 5e-4 the hidden states saturated for good (docs/log.md)
        lengths=tuple((round(share * steps), frames) for share, frames in shares if frames <= longest),
        # The prior probability of one more object starts near 1 and then falls. Otherwise nothing is ever found.
        presence_prior=(1 - 1e-6, 0.3, steps // 4),
        clip_usual=3.0,
        clip_object=3.0,
    )
    return Config(model, config.scene, config.test, train)


def whole_frames(config: Config) -> TrainConfig:
    """Return the training settings of systems that model whole frames.

    They train on as many clips in half the steps, and all sequences have the full length.
    """
    train = config.train.without_relative_clipping()  # relative clipping is a remedy for failures of SCALOR's trainings
    longest = max(frames for _, frames in train.lengths)
    return replace(
        train,
        steps=train.steps // 2,
        cooldown=train.cooldown // 2,
        batch=2 * train.batch,
        lengths=((0, longest),),
        presence_prior=USUAL_PRESENCE_PRIOR,  # these systems do not use it, so it is the same for all
    )


STATION = SceneConfig(kind="replay", frame=(128, 128), objects=(2, 64), size=9.0)
"""Scenes of walkers of about 15x5 px that move along real tracks; semi-synthetic (`scalor.data.replay`)."""


@preset
def grand_central() -> Config:
    """The paper's settings for natural scenes, on a semi-synthetic replay of Grand Central."""
    return Config(
        model=ModelConfig(
            frame=(128, 128),
            slots=64,
            proposals=64,
            object_size=(20.4, 8.45),
            size_range=0.4,
            glimpse=64,
            what_dim=64,
            search=False,
            siblings=False,
            end_duplicates=False,
            background=True,
            sigma=0.1,
        ),
        scene=STATION,
        test=STATION,
        train=TrainConfig(
            steps=100_000,
            batch=20,
            learning_rate=4e-5,
            lengths=((0, 10),),
            temperature=(1.0, 0.3, 20_000),
            presence_prior=(0.1, 1e-3, 500),
            gradients_through_time=30_000,
            save_every=1_000,
        ),
    )


@preset
def grand_central_video() -> Config:
    """The paper's settings for natural scenes, on Grand Central itself, for whoever has its video: no truth."""
    scene = replace(STATION, kind="station")
    return replace(grand_central(), scene=scene, test=scene)


@preset
def grand_central_replay() -> Config:
    """A semi-synthetic replay of Grand Central: walkers drawn along real tracks, 128x128, with our own recipe."""
    ours = density("replay", STATION.objects, STATION.size, slots=64, cells=32)
    model = replace(
        ours.model,
        frame=STATION.frame,
        proposals=32,
        object_size=(15.0, 5.0),
        size_range=0.5,
        glimpse=20,
        what_dim=24,
        background=True,
        sigma=0.1,
    )
    return Config(model=model, scene=STATION, test=STATION, train=ours.train)


@preset
def grand_central_replay_still() -> Config:
    """The same replay for a camera known to stand still: the empty scene, a median, is given and not modelled."""
    config = grand_central_replay()
    scene = replace(STATION, still=True)
    model = replace(config.model, background=False, still=True)
    return Config(model=model, scene=scene, test=scene, train=config.train)


compare("sqair", sqair, SQAIR_PRESETS)
compare("vrnn", vrnn)
compare("vae", vae)


@preset
def any_video() -> Config:
    """Universal weights: unlike things that move before still scenes, taught with their truth."""
    scene = SceneConfig(kind="composed", length=20, objects=(0, 12), size=18.0)
    model = ModelConfig(
        frame=scene.frame,
        grid=(16, 16),
        slots=16,
        proposals=8,
        object_size=(18.0, 18.0),
        size_range=0.75,
        memory=False,
        inertia=True,
        birth_presence=0.5,
        still=True,
        sigma=0.2,
    )
    train = TrainConfig(
        steps=18_000,
        batch=64,
        learning_rate=1e-3,
        cooldown=4_000,
        lengths=((0, 1), (3_000, 2), (6_000, 4), (11_000, 10), (17_000, 20)),
        temperature=(1.0, 0.3, 6_000),
        presence_prior=(0.02, 0.01, 1_000),
        clip_object=3.0,
        lesson=0.02,
    )
    return Config(model, replace(scene, recorded=512), scene, train)
