"""The replay of Grand Central: the same rules as other scenes, on a small station of our own and on the real one."""

import gzip
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from scalor import SCALOR
from scalor.config import SceneConfig
from scalor.data.clip import Clip
from scalor.data.observation import Observation
from scalor.data.replay import KEY, PICTURE, PLACES, STRIDE, TRACKS, Replay, read_paths, windows
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from scalor.evaluation.report import evaluate
from scalor.presets import get_preset
from tests.model.worlds import parts

SCENE = SceneConfig(kind="replay", frame=(64, 64), length=6, objects=(1, 24), size=6.0)
LAST = 3_000
real = pytest.mark.skipif("SCALOR_DATA" not in os.environ, reason="SCALOR_DATA is not set: no Grand Central to replay")


def write_station(root: Path, rows: np.ndarray) -> None:
    folder = root / "grand_central"
    folder.mkdir(parents=True)
    with gzip.open(folder / TRACKS, "wt") as file:
        np.savetxt(file, rows, fmt="%d", delimiter=",")
    slope = np.linspace(90, 150, 720, dtype=np.uint8)
    Image.fromarray(np.tile(slope[None, :, None], (480, 1, 3))).save(folder / PICTURE)


@pytest.fixture
def station(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty walkers a minute or so on straight lines through the hall, in every corner of it."""
    rng = np.random.default_rng(0)
    rows = []
    for walker in range(240):
        begin = KEY * int(rng.integers(0, LAST // KEY - 10))
        start, stop = rng.uniform((50, 20), (1870, 1060)), rng.uniform((50, 20), (1870, 1060))
        for k in range(int(rng.integers(8, 30))):
            if begin + KEY * k <= LAST:
                x, y = start + (stop - start) * k / 30
                rows.append((begin + KEY * k, walker + 1, x, y))
    rows += [(LAST, 999, 5, 1070)]  # the last newcomer
    write_station(tmp_path, np.array(rows))
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    return tmp_path


def same(one: Clip, other: Clip) -> None:
    assert torch.equal(one.frames, other.frames)
    for name in ("id", "centre", "box", "visible", "order", "owner"):
        assert torch.equal(getattr(one.truth, name), getattr(other.truth, name)), name


def replay(scenes: Scenes) -> Replay:
    assert isinstance(scenes.other, Replay)
    return scenes.other


def check_truth(clip: Clip) -> None:
    """What every scene promises, whatever it shows."""
    truth, (height, width) = clip.truth, clip.frames.shape[-2:]
    assert clip.frames.min() >= 0
    assert clip.frames.max() <= 1
    assert truth.visible.min() >= 0
    assert truth.visible.max() <= 1 + 1e-5
    assert (truth.visible[truth.id < 0] == 0).all()
    owned = torch.stack([(truth.owner == n).sum((-2, -1)) for n in range(truth.id.shape[2])], -1)  # [B, T, N]
    assert (owned[truth.visible == 0] == 0).all()
    side = truth.box[..., 2:] - truth.box[..., :2]
    open_area = truth.visible * side.prod(-1)  # a walker fills about half of its box
    clear = (truth.visible > 0.9) & (truth.id >= 0)
    assert (owned[clear] > 0.25 * open_area[clear]).all()
    assert (owned[clear] < (open_area + side.sum(-1))[clear]).all()
    clips, times, rows, columns = (truth.owner >= 0).nonzero(as_tuple=True)
    owner = truth.owner[clips, times, rows, columns]
    box = truth.box[clips, times, owner]
    assert (truth.id[clips, times, owner] >= 0).all()
    pixel = torch.stack((columns, rows), -1) + 0.5
    assert ((pixel > box[:, :2] - 1) & (pixel < box[:, 2:] + 1)).all()
    assert ((pixel > 0) & (pixel < torch.tensor([width, height]))).all()


def test_pixels_agree_with_the_truth(station: Path) -> None:
    clip = Scenes(SCENE, 0).clips(0, 12)
    assert clip.frames.shape == (12, 6, 3, 64, 64)
    assert (clip.truth.id >= 0).any((1, 2)).all()
    check_truth(clip)


def test_what_nobody_covers_is_the_background(station: Path) -> None:
    scenes = Scenes(SCENE, 0)
    clip = scenes.clips(0, 8)
    window = clip.truth.owner.flatten(1).amin(1)
    assert (window == -1).all()
    # The station brightens to the right and has nothing else in it: darker pixels are walkers or their shadows.
    plain = replay(scenes).backgrounds
    nearest = (clip.frames[:, 0, None] - plain).abs().amax(2).flatten(2).median(-1).values.amin(1)
    assert (nearest < 1e-3).all()


def test_a_walker_moves_as_its_track_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One walker, 48 px of the 1920x1080 view to the right in 20 frames: 18 px of the picture."""
    rows = [(KEY * k, 7, 200 + 48 * k, 700) for k in range(21)]
    write_station(tmp_path, np.array([*rows, (KEY * 20, 8, 1900, 20)]))
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    clip = Scenes(SCENE, 0).clips(0, 4)
    there = (clip.truth.id >= 0).all(1)  # [B, N]
    assert there.any()
    step = clip.truth.centre.diff(dim=1).movedim(2, 1)[there]  # [K, T - 1, 2]
    torch.testing.assert_close(
        step[..., 0], torch.full_like(step[..., 0], 18 * STRIDE / KEY * 64 / 240), atol=1e-3, rtol=0
    )
    torch.testing.assert_close(step[..., 1], torch.zeros_like(step[..., 1]), atol=1e-3, rtol=0)


def test_nearer_walkers_are_larger_and_in_front(station: Path) -> None:
    truth = Scenes(SCENE, 0).clips(0, 16).truth
    present = truth.id >= 0
    for b, t in ((b, t) for b in range(16) for t in range(6)):
        here = present[b, t].nonzero().flatten()
        feet = truth.box[b, t, here, 3]
        if len(here) > 1 and feet.max() - feet.min() > 30:
            near, far = here[feet.argmax()], here[feet.argmin()]
            assert truth.order[b, near] < truth.order[b, far]
            assert (truth.box[b, t, near, 3] - truth.box[b, t, near, 1]) > (
                truth.box[b, t, far, 3] - truth.box[b, t, far, 1]
            )
    assert (truth.order.sort(-1).values == torch.arange(24)).all()


def test_the_same_number_is_the_same_clip(station: Path) -> None:
    scenes = Scenes(SCENE, 3)
    same(scenes.clips(torch.tensor([5, 2])), Scenes(SCENE, 3).clips(torch.tensor([5, 2])))
    one, batch = scenes.clips(6), scenes.clips(4, 4)
    torch.testing.assert_close(one.frames[0], batch.frames[2])
    assert torch.equal(one.truth.id[0], batch.truth.id[2])
    assert not torch.equal(batch.frames[0], batch.frames[1])
    assert not torch.equal(Scenes(SCENE, 4).clips(6).frames, one.frames)
    assert not torch.equal(Scenes(SCENE, 3, "test").clips(6).frames, one.frames)


def test_a_frame_is_the_same_whatever_the_length(station: Path) -> None:
    scenes = Scenes(SCENE, 0)
    long, short = scenes.clips(0, 3), scenes.clips(0, 3, length=2)
    torch.testing.assert_close(long.frames[:, :2], short.frames)
    assert torch.equal(long.truth.id[:, :2], short.truth.id)
    with pytest.raises(InputError, match=r"length is 7: .* at most scene.length 6; ask for fewer"):
        scenes.clips(0, 3, length=7)


def test_training_and_test_share_no_time(station: Path) -> None:
    last = []
    for split in ("train", "test"):
        starts = replay(Scenes(SCENE, 0, split)).start * KEY
        last.append((int(starts.min()), int(starts.max()) + KEY - 1 + STRIDE * (SCENE.length - 1)))
    (first, end), (begin, finish) = last
    assert 0 <= first < end < begin < finish <= LAST
    assert abs(begin / LAST - 0.9) < 0.02


def test_all_places_are_shown_and_counts_are_kept(station: Path) -> None:
    scenes = replay(Scenes(SCENE, 0))
    assert scenes.place.unique().tolist() == list(range(len(PLACES)))
    assert (scenes.members >= 0).any(1).all()
    with pytest.raises(InputError, match=r"scene.objects is \(24, 24\): no crop of the train split shows so many"):
        Scenes(SceneConfig(kind="replay", frame=(64, 64), length=6, objects=(24, 24), size=6.0), 0)


def test_gaps_are_filled_or_end_a_track(tmp_path: Path) -> None:
    """Moments 0, 1 and 3 are one walker, 9 and 10 another; one who is seen once is nobody."""
    moments = np.array([0, 1, 3, 9, 10])
    rows = np.stack([KEY * moments, np.full(5, 4), 192 * moments, np.full(5, 540)], 1)
    write_station(tmp_path, np.concatenate([rows, [[KEY * 10, 8, 5, 5]]]))
    paths = read_paths(tmp_path / "grand_central" / TRACKS)
    assert paths.count.tolist() == [4, 2]
    assert paths.moment.tolist() == [0, 1, 2, 3, 9, 10]
    np.testing.assert_allclose(paths.place[:, 0], 72 * np.array([0, 1, 2, 3, 9, 10]))
    np.testing.assert_allclose(paths.place[:, 1], 240)
    assert paths.annotated.tolist() == [m in (0, 1, 3, 9, 10) for m in range(11)]


def test_nothing_is_shown_after_the_last_newcomer(tmp_path: Path) -> None:
    """Those who are still there are followed alone then, and the crowd is not whole."""
    rows = [(KEY * m, 1, 300, 300) for m in range(60)] + [(KEY * 39, 2, 5, 5)]
    write_station(tmp_path, np.array(rows))
    paths = read_paths(tmp_path / "grand_central" / TRACKS)
    assert len(paths.annotated) == 40
    assert windows(paths, 3, (1, 4), "test")[1].max() + 3 < 40


def test_no_window_runs_over_moments_that_nobody_annotated(tmp_path: Path) -> None:
    moments = [m for m in range(40) if not 10 <= m < 20]
    write_station(tmp_path, np.array([*((KEY * m, 1, 300, 300) for m in moments), (KEY * 39, 2, 5, 5)]))
    start = windows(read_paths(tmp_path / "grand_central" / TRACKS), 3, (1, 4), "train")[1]
    assert {m for s in start.tolist() for m in range(s, s + 4)} <= set(moments)


def test_without_data_the_way_to_them_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALOR_DATA", raising=False)
    with pytest.raises(InputError, match=r"SCALOR_DATA is not set: a replay reads tracks_.* of Yi et al. 2015\."):
        Scenes(SCENE, 0)
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no grand_central/tracks_frame_id_x_y.csv.gz in it; put it there"):
        Scenes(SCENE, 0)


def test_files_that_make_no_sense_are_refused(station: Path) -> None:
    with pytest.raises(InputError, match=r"scene.frame is \(64, 32\): a replay shows squares"):
        Scenes(SceneConfig(kind="replay", frame=(64, 32)), 0)
    Image.new("RGB", (72, 48)).save(station / "grand_central" / PICTURE)
    with pytest.raises(InputError, match="is 72x48: give a picture of 720x480 pixels"):
        Scenes(SCENE, 0)
    (station / "grand_central" / TRACKS).write_bytes(b"not gzipped")
    with pytest.raises(InputError, match=r"cannot be read .* rows of frame, id, x, y, gzipped"):
        Scenes(SCENE, 0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_draws_the_same_and_can_capture_it(station: Path) -> None:
    device = torch.device("cuda")
    scenes, index = Scenes(SCENE, 0, device=device), torch.arange(8, device=device)
    eager = scenes.clips(index)
    torch.testing.assert_close(eager.frames.cpu(), Scenes(SCENE, 0).clips(0, 8).frames, atol=2 / 255, rtol=0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = scenes.clips(index)
    index += 8
    graph.replay()
    same(captured, scenes.clips(torch.arange(8, 16, device=device)))


@real
def test_the_real_station() -> None:
    scene = SceneConfig(kind="replay", frame=(128, 128), objects=(2, 64), size=9.0)
    clip = Scenes(scene, 0, "test").clips(0, 16)
    check_truth(clip)
    present = clip.truth.id >= 0
    assert 5 < present.sum(-1).float().mean() < 30
    height = (clip.truth.box[..., 3] - clip.truth.box[..., 1])[present]
    assert 7 < height.min() < height.max() < 26
    speed = clip.truth.centre.diff(dim=1).norm(dim=-1)[present[:, 1:] & present[:, :-1]]
    assert speed.median() < 4
    assert math.isfinite(speed.max())


def test_with_the_empty_scene_given_a_clip_is_the_same_clip(station: Path) -> None:
    clip = Scenes(SCENE, 0).clips(0, 4)
    given = Scenes(replace(SCENE, still=True), 0).clips(0, 4)
    same(clip, Clip(Observation(given.frames), given.truth))
    assert torch.equal(parts(given.observation)[2], torch.ones(4, 6, 64))


def test_the_scene_given_is_empty_and_found_in_frames_alone(station: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A median: walkers pass, what is behind them stays."""
    scenes = Scenes(replace(SCENE, still=True), 0)
    clip = scenes.clips(0, 8)
    real = replay(scenes)
    assert real.stills is not None
    nearest = (parts(clip.observation)[1][:, 0, None] - real.backgrounds).abs().flatten(2).amax(-1).amin(1)
    assert (nearest < 1e-3).all()
    shown = real.show

    def brighter(*what: Any) -> Clip:
        clip = shown(*what)
        return replace(clip, observation=Observation(clip.frames + 0.1))

    monkeypatch.setattr(real, "show", brighter)
    torch.testing.assert_close(real.medians(), real.stills + 0.1)


def test_who_is_given_the_empty_scene_is_measured_by_what_there_is_to_see(station: Path) -> None:
    """An untrained model draws the scene it is given, and then by far not every pixel is wrong."""
    config = get_preset("grand-central-replay-still")
    small = replace(config.model, frame=(64, 64), grid=(8, 8), slots=4, proposals=2, glimpse=8, what_dim=4)
    scene = replace(SCENE, still=True)
    config = replace(config, model=small, scene=replace(scene, length=10), test=scene)
    torch.manual_seed(0)
    report = evaluate(SCALOR(small), config, clips=2, nll_samples=1, quiet=True)
    assert report.mse < 0.05
    assert report.nll is not None
    assert math.isfinite(report.nll)
    assert report.forecast is not None
    assert max(report.forecast.mse) < 0.05
