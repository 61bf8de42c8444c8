"""Registry of the systems that can be trained and evaluated: SCALOR and the baselines."""

from dataclasses import dataclass
from typing import Any

from scalor.baselines.sqair import SQAIR, SQAIRConfig
from scalor.baselines.vae import SequentialVAE, VAEConfig
from scalor.baselines.vrnn import VRNN, VRNNConfig
from scalor.config import Config, ModelConfig, SceneConfig, SystemConfig, TrainConfig
from scalor.errors import require
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Model
from scalor.registry import Registry
from scalor.settings import build_record


@dataclass(frozen=True)
class System:
    """The settings class and the model class of a system; see `register_system`.

    Examples
    --------
    >>> scalor.System(config=MyConfig, model=MyModel)
    """

    config: type[Any]
    model: type[Any]


SYSTEMS: Registry[System] = Registry("scalor.systems")
"""All systems by name, those of installed packages included."""


def register_system(system: System) -> System:
    """Register a system under the name in its settings class, and return it.

    Parameters
    ----------
    system : System
        The settings class, a frozen dataclass derived from `Settings` with a `system` name of its own, and the model
        class, derived from `Model` or `Tracker`.

    Examples
    --------
    >>> scalor.register_system(scalor.System(MyConfig, MyModel))
    """
    return SYSTEMS.add(system.config.system, system)


for _system in (
    System(ModelConfig, SCALOR),
    System(SQAIRConfig, SQAIR),
    System(VRNNConfig, VRNN),
    System(VAEConfig, SequentialVAE),
):
    register_system(_system)


def find(name: object) -> System:
    """Return the system of a name. Raise InputError if there is none."""
    known = isinstance(name, str) and name in SYSTEMS
    require(known, "system", name, f"there is no such system; choose from {', '.join(SYSTEMS)}")
    return SYSTEMS[str(name)]


def build(config: SystemConfig) -> Model:
    """Return an untrained model of the system that the config belongs to."""
    model: Model = find(config.system).model(config)
    return model


def compiles(config: SystemConfig) -> bool:
    """Return whether training this system compiles anything."""
    return find(config.system).model.compiled_bound is not Model.compiled_bound


def config_from_dict(values: dict[str, Any]) -> Config[Any]:
    """Return the config of a dictionary that `Config.to_dict` made.

    Missing fields take their defaults. Unknown fields and wrong types raise InputError.
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
