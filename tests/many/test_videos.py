"""Which videos words name, and what they are called in the results."""

from pathlib import Path

import numpy as np
import pytest
import tifffile

from scalor.errors import InputError
from scalor.many.videos import find_jobs, is_list_of_videos, shard_of
from scalor.replacement import MANIFEST
from scalor.visual import save_png


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.mp4", "lab/cam1/001.avi", "lab/cam2/001.avi", "lab/.old/001.avi", "lab/notes.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    for number in range(2):
        Path("stills").mkdir(exist_ok=True)
        save_png(Path(f"stills/{number}.png"), np.zeros((8, 8, 3), np.uint8))


def named(*words: str) -> dict[str, str]:
    return {job.name: job.video for job in find_jobs(words, {})}


def test_videos_of_a_folder_are_named_by_their_paths_in_it() -> None:
    assert named("lab") == {"cam1_001": "lab/cam1/001.avi", "cam2_001": "lab/cam2/001.avi"}
    assert named("one.mp4", "stills") == {"one": "one.mp4", "stills": "stills"}
    assert named("one.mp4", "./one.mp4", "o*.mp4") == {"one": "one.mp4"}


def test_the_film_of_a_report_is_no_video_of_the_folder() -> None:
    film = Path("lab/tracked/report_viewer/film.mp4")
    film.parent.mkdir(parents=True)
    film.touch()
    assert list(named("lab")) == ["cam1_001", "cam2_001"]


def test_the_results_in_a_folder_are_no_videos_of_it() -> None:
    film = Path("lab/results/tracked/cam1_001/overlay.mp4")
    film.parent.mkdir(parents=True)
    film.touch()
    (film.parent / MANIFEST).touch()
    assert list(named("lab")) == ["cam1_001", "cam2_001"]


def test_stacks_are_videos_each_and_single_pages_are_frames_of_one() -> None:
    for number in range(2):
        Path("stacks/a").mkdir(parents=True, exist_ok=True)
        tifffile.imwrite(f"stacks/a/{number}.tif", np.zeros((3, 8, 8), np.uint8), photometric="minisblack")
        Path("pages").mkdir(exist_ok=True)
        tifffile.imwrite(f"pages/{number}.tif", np.zeros((8, 8), np.uint8))
    assert named("stacks") == {"a_0": "stacks/a/0.tif", "a_1": "stacks/a/1.tif"}
    assert named("stacks/*/*.tif") == {"0": "stacks/a/0.tif", "1": "stacks/a/1.tif"}
    assert is_list_of_videos(["stacks"])
    assert named("pages") == {"pages": "pages"}
    assert not is_list_of_videos(["pages/*.tif"])


def test_folders_of_images_are_videos_where_there_are_no_others() -> None:
    for name in ("clips/01/0.png", "clips/01/1.png", "clips/02/0.png", "clips/02/1.png", "clips/logo/one.png"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        save_png(Path(name), np.zeros((8, 8, 3), np.uint8))
    assert named("clips") == {"01": "clips/01", "02": "clips/02"}
    Path("clips/whole.flv").touch()
    assert named("clips") == {"whole": "clips/whole.flv"}


def test_frames_that_a_shell_listed_are_refused() -> None:
    with pytest.raises(InputError, match=r"2 images are given, from stills/0\.png on: .*give their folder"):
        named("stills/0.png", "stills/1.png")


@pytest.mark.parametrize(
    ("words", "many"),
    [
        (["one.mp4"], False),
        (["stills"], False),
        (["stills/*.png"], False),
        (["o*.mp4"], False),
        (["missing.mp4"], False),
        (["lab"], True),
        (["lab/cam1"], True),
        (["lab/*/*.avi"], True),
        (["one.mp4", "stills"], True),
        (["list.csv"], True),
    ],
)
def test_one_video_stays_one_video(words: list[str], many: bool) -> None:
    assert is_list_of_videos(words) == many


def test_two_videos_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match=r"would both be named '001' in the results: give their common folder"):
        named("lab/cam1/001.avi", "lab/cam2/001.avi")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_gives_options_per_video(ending: str) -> None:
    rows = {
        "video": ["one.mp4", "lab/cam1/001.avi"],
        "name": ["first one", ""],
        "region": ["0 0 64 48", ""],
        "stride": ["2", ""],
        "masks": ["yes", ""],
        "object_size": ["", "80x30"],
    }
    if ending == "csv":
        lines = [",".join(rows), *(",".join(row) for row in zip(*rows.values(), strict=True))]
        Path("list.csv").write_text("\n".join(lines) + "\n")
    else:
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(rows), "list.parquet")
    one, other = find_jobs([f"list.{ending}"], {"stride": 3, "weights": "any"})
    assert (one.name, one.video) == ("first_one", "one.mp4")
    assert one.options == {"weights": "any", "region": (0, 0, 64, 48), "stride": 2, "masks": True}
    assert (other.name, other.options) == ("001", {"stride": 3, "weights": "any", "object_size": (80.0, 30.0)})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("file\none.mp4\n", "row 1 of list.csv names no video"),
        ("video,colour\none.mp4,red\n", "has the column colour: choose from video, name, weights"),
        ("video,stride\none.mp4,fast\n", "stride is 'fast' in row 1 of list.csv"),
        ("video,region\none.mp4,1 2\n", "region is '1 2' in row 1"),
        ("video\n", "list.csv has no rows"),
    ],
)
def test_a_wrong_table_is_a_sentence(text: str, complaint: str) -> None:
    Path("list.csv").write_text(text)
    with pytest.raises(InputError, match=complaint):
        find_jobs(["list.csv"], {})


def test_parts_of_a_list_are_the_whole_list() -> None:
    jobs = find_jobs(["lab", "one.mp4", "stills"], {})
    parts = [shard_of(jobs, (part, 3)) for part in range(3)]
    assert sorted(job.name for part in parts for job in part) == sorted(job.name for job in jobs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert shard_of(jobs, None) == jobs
