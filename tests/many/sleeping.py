"""A driver whose worker sleeps, to be killed."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from scalor.many import local
from scalor.many.videos import VideoJob
from scalor.many.worker import Task, Tell


def key_of(job: VideoJob, out: Path) -> dict[str, str]:
    return {}


def sleep(job: VideoJob, out: Path, tell: Tell) -> dict[str, Any]:
    (out / "pid").write_text(str(os.getpid()))
    time.sleep(60)
    return {}


def products_of(job: VideoJob, out: Path) -> list[Path]:
    return [out / "nothing"]


def main() -> None:
    local.PRELOADED = []
    list(
        local.run_local(
            Task("records", key_of, sleep, products_of), [VideoJob("a", "a", {})], Path(sys.argv[1]), 1, 0, print
        )
    )
