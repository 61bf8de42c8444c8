"""The systems that can be trained and evaluated, by name: SCALOR and those it is compared with."""

from dataclasses import dataclass
from typing import Any

from scalor.baselines.sqair import SQAIR, SQAIRConfig
from scalor.baselines.vae import SequentialVAE, VAEConfig
from scalor.baselines.vrnn import VRNN, VRNNConfig
from scalor.config import Config, ModelConfig, SceneConfig, SystemConfig, TrainConfig, build_record, require
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model


@dataclass(frozen=True)
class System:
    """A system's settings and the model that is built from them."""

    config: type[Any]
    model: type[Any]


SYSTEMS = {
    system.config.system: system
    for system in (
        System(ModelConfig, SCALOR),
        System(SQAIRConfig, SQAIR),
        System(VRNNConfig, VRNN),
        System(VAEConfig, SequentialVAE),
    )
}


def find(name: object) -> System:
    known = isinstance(name, str) and name in SYSTEMS
    require(known, "system", name, f"there is no such system; choose from {', '.join(SYSTEMS)}")
    return SYSTEMS[str(name)]


def build(config: SystemConfig) -> Model:
    """An untrained model of the system that the config is of."""
    model: Model = find(config.system).model(config)
    return model


def compiles(config: SystemConfig) -> bool:
    """Whether a training of this system compiles something."""
    return find(config.system).model.compiled_bound is not Model.compiled_bound


def config_from_dict(values: dict[str, Any]) -> Config[Any]:
    """The inverse of `Config.to_dict`; unknown fields and wrong types are refused, missing ones take their defaults.

    Configs without `system` are SCALOR's (older format).
    """
    require(isinstance(values, dict), "config", values, "a Config is a table of fields")
    sections = dict(values)
    system = find(sections.pop("system", ModelConfig.system))
    records = {"model": system.config, "scene": SceneConfig, "test": SceneConfig, "train": TrainConfig}
    unknown = sorted(set(sections) - set(records))
    require(not unknown, "config", unknown, "these fields are unknown to this version")
    sections.setdefault("model", {})
    return Config(**{name: build_record(records[name], section, name) for name, section in sections.items()})
