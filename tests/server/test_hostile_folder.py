"""A result folder of somebody else: whatever it holds, nothing outside it is read, changed or run."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from scalor.edits import EditedFolder, Name
from scalor.errors import InputError
from scalor.measures import measure
from scalor.server.app import build
from scalor.server.session import Session
from tests.edits.drawn import write_results, write_scene
from tests.outputs.stories import contents

ADDRESSES = ("", "video.mp4", "data/index", "data/rows-0", "data/masks-0", "data/crossings", "data/doubts")
SECRET = "not for the page"
FORMULA = '=HYPERLINK("http://evil.example")'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_scene(folder / "discs.mp4")
    write_results(folder / "tracked", folder / "discs.mp4")
    return folder / "tracked"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    shutil.copytree(made, tmp_path / "tracked")
    return tmp_path / "tracked"


def use(folder: Path) -> str:
    """Open every address, edit, and end; return all that was answered, or the refusal."""
    try:
        session = Session(folder, 3600)
        client = TestClient(build(session, "token"), base_url="http://localhost")
        answers = [client.get(f"/token/{address}") for address in ADDRESSES]
        answers.append(client.post("/token/edit", json={"op": "delete", "id": 2}))
        session.close()
    except InputError as error:
        return str(error)
    assert {answer.status_code for answer in answers} <= {200, 400, 404}
    return "".join(answer.content.decode("latin-1") for answer in answers) + str(session.problem)


def facts(folder: Path, **changed: Any) -> None:
    path = folder / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


@pytest.mark.parametrize("name", ["edits.jsonl", "edited.json", "zones.json", "scale.json", "names.csv", ".original"])
def test_a_link_out_of_the_folder_is_neither_read_nor_written_through(folder: Path, name: str) -> None:
    outside = folder.parent / "outside"
    for target in (outside / "secret.txt", outside / "new.txt", outside):
        (folder / name).unlink(missing_ok=True)
        os.symlink(target, folder / name)
        assert SECRET not in use(folder)
        assert contents(outside) == {"secret.txt": SECRET.encode()}


@pytest.mark.parametrize(
    "name", ["tracks.csv", "counts.csv", "results.json", "masks.json", "report_viewer", "report_viewer/video.mp4"]
)
def test_results_that_are_links_out_of_the_folder_are_refused(folder: Path, name: str) -> None:
    outside = folder.parent / "outside"
    kept = outside / Path(name).name
    (folder / name).rename(kept)
    os.symlink(kept, folder / name)
    before = contents(outside), sorted(contents(folder))
    assert "leads out of the folder: copy it there" in use(folder)
    assert (contents(outside), sorted(contents(folder))) == before


@pytest.mark.parametrize(
    "video",
    ["http://127.0.0.1:9/film.mp4", "concat:secret.txt|secret.txt", "/dev/zero", "file:///etc/passwd", 7, ["a"]],
)
def test_a_video_that_is_none_of_this_machine_is_not_opened(folder: Path, video: object) -> None:
    facts(folder, video=video)
    edited = EditedFolder(folder)
    edited.do(Name(1, "x"))
    with pytest.raises(InputError, match=r"does not exist|is not a file|matches no file"):
        edited.write(films=True)


@pytest.mark.parametrize(
    "changed",
    [{"size": [10**9, 10**9]}, {"size": [0, 3]}, {"size": [-1, 3]}, {"fps": 0}, {"fps": 1e300}, {"stride": 0}],
    ids=str,
)
def test_numbers_that_no_video_has_are_refused(folder: Path, changed: dict[str, object]) -> None:
    facts(folder, **changed)
    assert "results.json is damaged" in use(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"entries": "x"}', '{"known_length": [1]}', "\x00"])
def test_damaged_side_files_are_told_of_in_a_sentence(folder: Path, text: str) -> None:
    for name in ("edits.jsonl", "edited.json", "zones.json", "scale.json", "report_viewer/index.js"):
        kept = (folder / name).read_bytes() if (folder / name).exists() else None
        (folder / name).write_text(text)
        assert "Traceback" not in use(folder)
        (folder / name).unlink() if kept is None else (folder / name).write_bytes(kept)


def test_a_name_that_is_a_formula_is_a_text_in_every_table(folder: Path) -> None:
    edited = EditedFolder(folder)
    edited.do(Name(1, FORMULA))
    measure(edited.tracks, names=edited.names).save(folder.parent / "measures")
    for table in (folder / "names.csv", folder.parent / "measures" / "per_track.csv"):
        (line,) = [line for line in table.read_text().splitlines() if "evil" in line]
        assert "'=HYPERLINK" in line
