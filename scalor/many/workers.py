"""`Workers`: where the work on many videos is done, and how many at a time.

>>> track_many(find_jobs(["footage/"], {}), "results", Workers(8))
>>> track_many(find_jobs(["footage/"], {}), "results", Workers(engine="ray", address="auto"))
"""

import math
from dataclasses import dataclass

from scalor.errors import InputError

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Workers:
    """Worker processes of this machine, or tasks on a Ray cluster."""

    count: int | None = None
    """Videos at the same time on this machine. Default: one for each core, or for each GPU if there are any."""
    engine: str = "local"
    """ "local" for processes of this machine, "ray" for a Ray cluster."""
    address: str | None = None
    """Address of the Ray cluster, such as "auto" or "ray://host:10001". Default: start one on this machine."""
    gpus: float = 0.0
    """With Ray: GPUs for each video; may be a fraction."""
    retries: int = 3
    """How often a video is tried again whose worker was killed."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"engine is {self.engine!r}: choose from {', '.join(ENGINES)}.")
        if self.count is not None and self.count < 1:
            raise InputError(f"count is {self.count}: give a number of workers from 1.")
        for name, value in (("gpus", self.gpus), ("retries", self.retries)):
            if not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}: give a number from 0.")


ALL_CORES = Workers()
"""One worker for each core of this machine, or for each GPU."""
