"""`scalor export`: every format from the shell, and its refusals."""

from pathlib import Path

import pytest

from .conftest import Say


@pytest.mark.parametrize("form", ["trackmate", "geff", "cvat", "xlsx"])
def test_every_format_is_written(form: str, tracked: Path, say: Say) -> None:
    document = say("export", tracked, "--to", form, "--mm-per-pixel", 0.12, "--json").document
    assert document["rows"] == 120
    assert Path(document["file"]).exists()
    assert say("export", tracked, "--to", form, "--out", "other").out == "wrote other\n"


def test_a_clip_is_written(tracked: Path, say: Say) -> None:
    assert say("export", tracked, "--to", "clip", "--id", 3, "--json").document == {"file": "clip_3.mp4", "frames": 40}
    assert Path("clip_3.mp4").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "clip"], "--id"),
        (["--to", "geff", "--id", 3], "--id"),
        (["--to", "clip", "--id", 9], "no track 9"),
        (["--to", "clip", "--id", 1, "--out", "clip.gif"], "mp4"),
        (["--to", "clip", "--id", 1, "--video", "none.mp4"], "none.mp4"),
        (["--to", "pdf"], "trackmate"),
        (["--to", "cvat", "--out", "none/out.xml"], "none/out.xml"),
        (["--to", "cvat", "--mm-per-pixel", -1], "mm_per_pixel"),
    ],
)
def test_refusals(words: list[object], said: str, tracked: Path, say: Say) -> None:
    assert said in say("export", tracked, *words).complaint
