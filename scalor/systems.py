"""The systems that can be trained and evaluated, by name: SCALOR and those it is compared with."""

from dataclasses import dataclass
from typing import Any

from scalor.baselines.sqair import SQAIR, SQAIRConfig
from scalor.baselines.vae import SequentialVAE, VAEConfig
from scalor.baselines.vrnn import VRNN, VRNNConfig
from scalor.config import ModelConfig, SystemConfig, require
from scalor.interface import Model
from scalor.model.scalor import SCALOR


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
