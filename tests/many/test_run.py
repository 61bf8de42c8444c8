"""Many videos: each is tracked once, a failure does not stop the others, and one store holds all of them."""

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import scalor
from scalor.many import tracking_task
from scalor.many.local import run_local
from scalor.many.run import track_many
from scalor.many.tracking_task import TRACK, track_job
from scalor.many.video_records import VideoOutcome
from scalor.many.videos import VideoJob, find_jobs
from scalor.many.worker import forget
from scalor.many.workers import Workers

from .conftest import Say

PAGE = Path(__file__).parent.parent.parent / "docs" / "scale.md"


def states(outcomes: Any) -> dict[str, str]:
    return {one.name: one.state for one in outcomes}


def test_what_is_missing_or_changed_is_tracked_and_nothing_else(weights: Path, footage: Path, say: Say) -> None:
    words = ["track", footage, "--weights", weights, "--jobs", 2, "--out", "results", "--json"]
    said = say(*words)
    assert said.code == 1
    summary = json.loads(said.out)
    found = {one["name"]: one for one in summary["videos"]}
    assert {name: one["state"] for name, one in found.items()} == {"a": "done", "broken": "failed", "yard_a": "done"}
    assert "broken.npy" in found["broken"]["reason"]
    assert (found["a"]["frames"], summary["done"], summary["failed"]) == (8, 2, 1)
    assert json.loads(Path("results/summary.json").read_text()) == summary
    page = Path("results/index.html").read_text()
    for link in re.findall(r'href="(.*?)"', page):
        assert Path("results", link).exists()
    assert "broken.npy" in page


def test_results_are_kept_until_something_changes(weights: Path, footage: Path) -> None:
    def track(**options: object) -> str:
        job = VideoJob("a", str(footage / "a.npy"), {"weights": str(weights), **options})
        return track_job(job, Path("results")).state

    assert [track(), track(), track(stride=2), track(stride=2)] == ["done", "kept", "done", "kept"]
    (footage / "a.npy").write_bytes((footage / "yard" / "a.npy").read_bytes())
    assert [track(stride=2), track(stride=2)] == ["done", "kept"]
    Path("results/tracked/a/report.html").unlink()
    assert [track(stride=2), track(stride=2)] == ["done", "kept"]


def test_a_worker_that_is_killed_is_replaced(weights: Path, footage: Path) -> None:
    killed: list[int] = []

    def progress(name: str, frames: int, total: int | None) -> None:
        if len(killed) < 2:
            for process in multiprocessing.active_children():
                process.kill()
                killed.append(process.pid or 0)

    jobs = [VideoJob("yard_a", str(footage / "yard" / "a.npy"), {"weights": str(weights)})]
    (outcome,) = run_local(TRACK, jobs, Path("results"), 1, 3, progress)
    assert len(killed) == 2
    assert (outcome.state, outcome.frames, outcome.attempts) == ("done", 8, 3)
    whole = scalor.track(footage / "yard" / "a.npy", weights, quiet=True)
    assert len(scalor.read_tracks("results/tracked/yard_a/tracks.csv")) == len(whole)
    killed.clear()
    forget(TRACK, jobs[0], Path("results"))
    (outcome,) = run_local(TRACK, jobs, Path("results"), 1, 1, progress)
    assert outcome.state == "failed"
    assert outcome.reason == "its worker ended 2 times with code -9"


def test_the_store_answers_the_queries_of_the_documentation(weights: Path, footage: Path) -> None:
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    outcomes = [track_job(job, Path("results")) for job in find_jobs([str(footage)], {"weights": str(weights)})]
    from scalor.many.store import finish_store

    finish_store(Path("results"), outcomes)
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    rows = {name: len(scalor.read_tracks(f"results/tracked/{name}/tracks.csv")) for name in ("a", "yard_a")}
    assert dict(names["rows"].fetchall()) == rows
    assert len(names["tracks"]) == sum(rows.values())
    tracks = sum(len(set(scalor.read_tracks(f"results/tracked/{name}/tracks.csv").id)) for name in rows)
    assert sum(row[2] for row in names["speeds"].fetchall()) == tracks
    assert set(names["tracks"].video) == {"a", "yard_a"}
    assert set(names["videos"].state) == {"done", "failed"}
    manifest = json.loads(Path("results/store/manifest.json").read_text())["files"]
    assert manifest["tracks/a/tracks.parquet"]["rows"] == rows["a"]
    for table in ("counts", "health", "measures"):
        assert len(pandas.read_parquet(f"results/store/{table}").video.unique()) == 2
    assert duckdb is not None


def test_the_folder_of_all_results_has_the_videos_of_earlier_runs(weights: Path, footage: Path, here: None) -> None:
    pandas = pytest.importorskip("pandas")
    (footage / "broken.npy").unlink()
    jobs = find_jobs([str(footage)], {"weights": str(weights)})
    track_many(jobs, "results", quiet=True)
    track_many(jobs[:1], "results", quiet=True)
    assert {one["name"]: one["state"] for one in read("summary.json")["videos"]} == {"a": "kept", "yard_a": "kept"}
    assert 'href="tracked/yard_a/report.html"' in Path("results/index.html").read_text()
    assert set(pandas.read_parquet("results/store/tracks").video) == {"a", "yard_a"}
    shutil.rmtree("results/tracked/yard_a")  # as a user does who wants to be rid of them
    Path("results/store/tracks/a/.tracks.0123.part").touch()  # as a kill leaves it
    track_many(jobs[:1], "results", quiet=True)
    assert [one["name"] for one in read("summary.json")["videos"]] == ["a"]
    assert {file.split("/")[1] for file in read("store/manifest.json")["files"] if "/" in file} == {"a"}
    assert not list(Path("results/store").rglob(".*"))


def read(name: str) -> Any:
    return json.loads(Path("results", name).read_text())


def test_names_that_look_like_numbers_stay_names(weights: Path, footage: Path, here: None) -> None:
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    jobs = [VideoJob(name, str(footage / "a.npy"), {"weights": str(weights)}) for name in ("1", "0001")]
    track_many(jobs, "results", quiet=True)
    assert set(pandas.read_parquet("results/store/tracks").video) == {"1", "0001"}
    found = duckdb.sql("SELECT DISTINCT video FROM 'results/store/tracks/*/*.parquet' ORDER BY video").fetchall()
    assert found == [("0001",), ("1",)]


def test_another_video_of_a_name_does_not_replace_the_first(weights: Path, footage: Path) -> None:
    options = {"weights": str(weights)}
    assert track_job(VideoJob("a", str(footage / "a.npy"), options), Path("results")).state == "done"
    other = track_job(VideoJob("a", str(footage / "yard" / "a.npy"), options), Path("results"))
    assert "a in results holds the results of " in other.reason
    assert "another video: choose another folder with --out" in other.reason
    moved = footage / "moved.npy"
    (footage / "a.npy").rename(moved)
    kept = track_job(VideoJob("a", str(moved), options), Path("results"))
    assert (kept.state, kept.video) == ("kept", str(moved))


def test_a_video_that_failed_in_the_store_is_not_tracked_again(
    weights: Path, footage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    job = VideoJob("a", str(footage / "a.npy"), {"weights": str(weights)})
    with monkeypatch.context() as patch:
        patch.setattr(tracking_task, "add_to_store", full)
        assert "No space left on device" in track_job(job, Path("results")).reason
    before = Path("results/tracked/a/report.html").stat().st_mtime_ns
    outcome = track_job(job, Path("results"))
    assert (outcome.state, outcome.frames) == ("done", 8)
    assert Path("results/tracked/a/report.html").stat().st_mtime_ns == before
    shutil.rmtree("results/store")
    assert [track_job(job, Path("results")).state for _ in range(2)] == ["done", "kept"]
    assert Path("results/tracked/a/report.html").stat().st_mtime_ns == before


def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    program = "from tests.many.sleeping import main; main()"
    driver = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=PAGE.parent.parent)
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        assert driver.poll() is None
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    until = time.monotonic() + 20
    while runs(int(pid.read_text())):
        assert time.monotonic() < until
        time.sleep(0.05)


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_parts_of_the_videos_add_up(weights: Path, footage: Path, say: Say) -> None:
    words = ["track", footage, "--weights", weights, "--jobs", 1, "--out", "results"]
    said = say(*words, "--shard", "2/3")
    assert said.code == 0, said.err
    assert said.out.endswith("see results/videos; the same command without --shard writes the index\n")
    assert [path.stem for path in Path("results/videos").iterdir()] == ["yard_a"]
    assert not Path("results/index.html").exists()
    assert "must be a part and the number of parts" in say(*words, "--shard", "3/3").complaint
    assert say(*words, "--shard", "5/6").code == 0  # a part without videos is no error


def test_ray_gives_the_same_as_processes(weights: Path, footage: Path) -> None:
    ray = pytest.importorskip("ray")
    jobs = find_jobs([str(footage)], {"weights": str(weights)})
    try:
        ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        summary = track_many(jobs, "by ray", Workers(engine="ray"), quiet=True)
    finally:
        ray.shutdown()
    assert states(summary.outcomes) == {"a": "done", "broken": "failed", "yard_a": "done"}
    outcome: VideoOutcome = track_job(jobs[0], Path("here"))
    assert outcome.state == "done"
    assert Path("here/tracked/a/tracks.csv").read_bytes() == Path("by ray/tracked/a/tracks.csv").read_bytes()
