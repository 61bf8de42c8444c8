"""Presets of the other systems, on the scenes of SCALOR's presets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scalor.baselines.sqair import SQAIRConfig
from scalor.baselines.vae import VAEConfig
from scalor.baselines.vrnn import VRNNConfig
from scalor.config import Config, TrainConfig
from scalor.presets.preset_registry import PRESETS, register_preset
from scalor.presets.shapes_and_digits import RECIPE, USUAL_PRESENCE_PRIOR

BASELINE_PRESETS = (
    *("shapes-tiny", "shapes-vld", "shapes-ld", "shapes-md", "shapes-hd", "shapes-background"),
    *("mnist-vld", "mnist-ld", "mnist-md", "grand-central-replay"),
)
"""Presets whose scenes the other systems are trained on, too."""

LONGER = {"shapes-hd": 18_000} | dict.fromkeys(
    ("shapes-md", "shapes-background", "mnist-md", "grand-central-replay"), 14_000
)
"""Steps that the clips of the other systems are counted by, where SCALOR's own training takes fewer."""

SQAIR_PRESETS = ("shapes-tiny", "shapes-vld", "shapes-ld", "mnist-vld")
"""Presets whose scenes SQAIR is trained on. The paper could not make SQAIR work on more objects."""


def compare(system: str, make: Callable[[Config], Config[Any]], presets: Sequence[str] = BASELINE_PRESETS) -> None:
    """Register a preset SYSTEM-PRESET for each of `presets`; `make` turns SCALOR's config into the system's."""
    for name in presets:
        ours = PRESETS[name]

        def theirs(name: str = name, ours: Callable[[], Config] = ours) -> Config[Any]:
            config = ours()
            if name in LONGER:
                config = replace(config, train=replace(RECIPE, steps=LONGER[name]))
            return make(config)

        theirs.__name__ = f"{system}_{ours.__name__}"
        theirs.__doc__ = f"{make.__doc__} {ours.__doc__}"
        register_preset(theirs)


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

    They train on at least as many clips in half the steps, and all sequences have the full length.
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


compare("sqair", sqair, SQAIR_PRESETS)
compare("vrnn", vrnn)
compare("vae", vae)
