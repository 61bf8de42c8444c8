"""Warnings when training takes a course from which it does not recover, with the remedies."""

from scalor.config import Config, ModelConfig, SystemConfig, TrainConfig
from scalor.training.step import anneals

FIRST_WARNING_STEP = 1_000
"""Steps before the first warning. Until then the model may still recover by itself."""
FEW_FRAMES = 4
"""Sequences with fewer frames are allowed a larger share of discovered objects.

All objects of the first frame are discovered there, and in short sequences they are a large part of all objects.
"""


def warnings(config: Config[SystemConfig], step: int, metrics: dict[str, float]) -> list[str]:
    """Return the warnings for the mean metrics of the last logged steps.

    `step` is the number of steps done. Only SCALOR is checked.
    """
    model = config.model
    if step < FIRST_WARNING_STEP or not isinstance(model, ModelConfig):
        return []
    found = []
    fewest = max(0.3, 0.1 * config.scene.objects[0])
    if metrics["objects"] < fewest:
        culprit = "the background explains everything" if model.background else "nothing is found"
        found.append(
            f"foreground collapse: {metrics['objects']:.2f} objects per frame, {culprit}. Remedies: check that "
            f"model.object_size {model.object_size} fits the objects; lower model.sigma; anneal "
            "train.presence_prior more slowly; with a background, lower model.background_dim."
        )
    begun = max(0, step - config.train.log_every)
    length = anneals(config.train, begun).length
    most = 0.9 if length < FEW_FRAMES else 0.5
    if length > 1 and metrics["discovered"] > most * metrics["objects"]:
        found.append(
            f"propagation collapse: {metrics['discovered']:.2f} of {metrics['objects']:.2f} objects a frame are found "
            "again instead of followed. Remedies: start again with more steps of single frames first in train.lengths "
            f"(now {config.train.lengths}) or, if objects were followed before, with "
            f"{gradient_remedy(config.train)}; leave model.rejection and model.attention on."
        )
    settled = begun >= config.train.presence_prior[2]  # before, the prior may expect objects where there are none
    if settled and metrics["turned_away"] > 0.05:
        found.append(
            f"slots run out: {metrics['turned_away']:.2f} births per frame found no free slot. Remedy: raise "
            f"model.slots above {model.slots}."
        )
    if settled and metrics["crowded_out"] > 0.5:
        found.append(
            f"proposals saturate: {metrics['crowded_out']:.2f} cells per frame wanted a birth beyond "
            f"model.proposals {model.proposals}. Remedy: raise it."
        )
    return found


def gradient_remedy(train: TrainConfig) -> str:
    """Return a remedy against a few very large gradients, which can end a training."""
    return f"another train.seed (now {train.seed})" if train.clip_object else "train.clip_object 3 (now 0)"
