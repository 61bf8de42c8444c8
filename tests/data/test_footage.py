"""Clips cut out of kept frames."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from scalor.config import SceneConfig
from scalor.data.footage import Footage, Frames
from scalor.data.scenes import Scenes
from scalor.errors import InputError
from tests.model.worlds import parts

ROWS, COLUMNS = 12, 20


def frames(video: int = 0, count: int = 9) -> Frames:
    """Every pixel tells its frame, row and column; the still scene tells its video."""
    t, y, x = np.meshgrid(range(count), range(ROWS), range(COLUMNS), indexing="ij")
    still = np.full((1, 3, ROWS, COLUMNS), 100 + video, np.uint8)
    spots = np.array([[2, 5, 7], [6, 0, 19]])
    starts = np.array([0, 4])
    return Frames(np.stack([t + 20 * video, y, x], 1).astype(np.uint8), still, starts, np.zeros(2, int), spots)


@pytest.fixture
def config(tmp_path: Path) -> SceneConfig:
    frames().beside(frames(video=1)).save(tmp_path / "footage.npz")
    return SceneConfig(kind="footage", frame=(4, 6), length=3, footage=str(tmp_path / "footage.npz"))


def cut(config: SceneConfig, count: int = 200) -> np.ndarray:
    """Images and backgrounds as the numbers that were put in, [B, T, 6, h, w]."""
    image, still, _ = parts(Scenes(config, seed=0).clips(0, count).observation)
    numbers: np.ndarray = (torch.cat([image, still], 2) * 255).round().long().numpy()
    return numbers


def test_a_clip_is_one_piece_of_the_video_with_the_scene_behind_it(config: SceneConfig) -> None:
    for clip in cut(config):
        seen, still = clip[:, :3], clip[:, 3:6]
        assert (still == 100 + clip[0, 0, 0, 0] // 20).all()
        moments, rows, columns = seen[:, 0], seen[:, 1], seen[:, 2]
        assert (np.diff(moments, axis=0) == 1).all()
        assert (np.diff(rows, axis=1) == 1).all()
        assert (np.diff(columns, axis=2) == np.diff(columns, axis=2).flat[0]).all()
        assert abs(np.diff(columns, axis=2).flat[0]) == 1  # or mirrored


def test_zoomed_clips_are_larger_and_smaller_pieces_of_the_video(config: SceneConfig) -> None:
    clips = Scenes(replace(config, zoom=1.5), seed=0).clips(0, 200).frames * 255
    rows, columns = clips[:, :, 1], clips[:, :, 2]
    steps = rows.diff(dim=2).flatten(1).median(1).values
    assert steps.min() < 0.72
    assert steps.max() > 1.4
    assert columns.diff(dim=3).abs().flatten(1).median(1).values.allclose(steps, atol=1e-3)
    assert rows.min() >= 0
    assert rows.max() <= ROWS - 1
    assert clips[:, :, 0].diff(dim=1).allclose(torch.ones(()))  # in time as before


def test_zoom_one_leaves_every_pixel_as_it_is(config: SceneConfig) -> None:
    image, still, _ = parts(Scenes(config, seed=0).clips(0, 50).observation)
    for colours in (image, still):
        assert torch.allclose(255 * colours, (255 * colours).round(), atol=1e-4)


@pytest.mark.parametrize("zoom", [1.0, 1.4])
def test_a_clip_knows_how_large_objects_are_at_each_row(config: SceneConfig, zoom: float) -> None:
    scenes = Scenes(replace(config, perspective=(0.5, 2.0), zoom=zoom), seed=0)
    image, _, rulers = parts(scenes.clips(0, 100).observation)
    rows, ruler = image[:, 0, 1, :, 0] * 255, rulers[:, 0]
    zoomed = 1 / rows.diff(dim=1).median(1).values[:, None]
    expected = zoomed * (0.5 + 1.5 * (rows.floor() + 0.5) / ROWS)
    assert (ruler - expected).abs().median() < 0.02
    assert ruler.min() < 0.7
    assert ruler.max() > 1.6


def test_no_clip_goes_over_the_end_of_a_stretch(config: SceneConfig) -> None:
    first = cut(config)[:, 0, 0, 0, 0] % 20
    assert set(first.tolist()) <= {0, 1, 4, 5, 6}
    assert len(set(first.tolist())) > 3


@pytest.mark.parametrize("first", [True, False])
def test_no_clip_is_cut_out_of_a_stretch_that_is_too_short(config: SceneConfig, first: bool) -> None:
    short = Frames(frames().frames[:2], frames().stills, np.array([0]), np.array([0]), np.array([[1, 5, 7]]))
    long = frames(video=1)
    (short.beside(long) if first else long.beside(short)).save(Path(config.footage))
    moments = cut(config)[:, :, 0, 0, 0]
    assert set(moments[:, 0].tolist()) == {20, 21, 24, 25, 26}
    assert (np.diff(moments, axis=1) == 1).all()


def test_most_clips_show_a_spot_and_both_ways_round(config: SceneConfig) -> None:
    clips = cut(config)
    columns, rows = clips[:, 0, 2], clips[:, 0, 1]
    around = [
        any((r.min() <= y <= r.max()) and (c.min() <= x <= c.max()) for y, x in ((5, 7), (0, 19)))
        for r, c in zip(rows, columns, strict=True)
    ]
    assert np.mean(around) > 0.75
    mirrored = columns[:, 0, 0] > columns[:, 0, 1]
    assert 0.3 < mirrored.mean() < 0.7


def test_the_same_number_is_the_same_clip_in_any_batch(config: SceneConfig) -> None:
    footage = Footage(config, 0, "train", torch.device("cpu"))
    together = footage.clips(torch.arange(5), 3).frames
    for number in range(5):
        assert torch.equal(footage.clips(torch.tensor([number]), 3).frames[0], together[number])


def test_longer_clips_than_the_scenes_are_made_for_are_refused(config: SceneConfig) -> None:
    """They would run into another stretch, or past the last frame."""
    scenes = Scenes(config, 0)
    assert scenes.clips(0, 2, config.length).frames.shape[1] == config.length
    with pytest.raises(InputError, match=f"length is {config.length + 1}: .* at most scene.length {config.length}"):
        scenes.clips(0, 2, config.length + 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"frame": (16, 6)}, ["scene.frame is (16, 6)", "12x20", "smaller"]),
        ({"length": 6}, ["scene.length is 6", "5 frames in a row"]),
        ({"footage": "nowhere.npz"}, ["scene.footage is 'nowhere.npz'", "scalor fit"]),
    ],
)
def test_what_does_not_fit_is_refused(config: SceneConfig, change: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        Scenes(replace(config, **change), seed=0)  # type: ignore[arg-type]
    assert all(word in str(refused.value) for word in words), refused.value


def test_a_broken_file_is_refused(config: SceneConfig) -> None:
    Path(config.footage).write_bytes(b"no frames")
    with pytest.raises(InputError, match=r"scene\.footage"):
        Scenes(config, seed=0)
