"""Every figure is drawn, with the rows and columns it promises, from tiny models that were never trained."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from scalor import checkpoint
from scalor.baselines.sqair import SQAIR, SQAIRConfig
from scalor.data.clip import Clip, Truth
from scalor.data.mnist import Digits
from scalor.data.observation import Observation
from scalor.errors import InputError
from scalor.model.scalor import SCALOR
from scalor.nn.interface import Tracker
from scalor.presets import PRESETS, get_preset
from scalor.reproduce import figures
from scalor.reproduce.figures import FIGURES, crossing, draw_all
from scalor.reproduce.rows import gallery, infer_clip, label_maps, owned, renamed, truth_tracks
from scalor.visual import colors_of
from scalor.visual.strips import RED
from tests.layers import linear
from tests.model.worlds import squares, tiny_model
from tests.reproduce.small import write_station
from tests.reproduce.test_curves import FORECAST, evaluation, put
from tests.visual.scenes import tracks_of

GAP = 4
LAYOUT = {  # rows, columns, side of a frame
    "tracking-shapes-md": (5, 4, 256),
    "tracking-shapes-hd": (5, 4, 256),
    "tracking-shapes-vhd": (5, 4, 256),
    "tracking-mnist-md": (5, 4, 256),
    "tracking-sqair-shapes-ld": (4, 4, 256),
    "tracking-sqair-mnist-vld": (4, 4, 256),
    "background": (5, 4, 256),
    "conditional-shapes-md": (4, 8, 128),
    "conditional-mnist-md": (4, 8, 128),
    "conditional-background": (5, 8, 128),
    "scratch": (7, 8, 128),
    "lasting-shapes-md": (3, 6, 192),
    "lasting-mnist-md": (3, 6, 192),
    "balls": (4, 8, 128),
    "dense-discovery": (4, 6, 192),
    "occlusion": (4, 7, 160),
    "length": (4, 5, 192),
    "crowd": (5, 4, 256),
    "unseen-digits": (5, 4, 256),
    "replay": (5, 4, 256),
    "replay-learned": (5, 4, 256),
}
PLOTS = {"ablation", "efficiency", "prediction"}
Draw = Callable[[str, dict[str, Tracker]], np.ndarray]


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars instead of handwriting: no file is needed."""
    images = torch.zeros(20, 28, 28)
    images[:, 4:24, 12:16] = 1
    bars = Digits(images, torch.arange(20) % 10)
    monkeypatch.setattr("scalor.data.scenes.load_digits", lambda split: bars)


def tiny_sqair() -> SQAIR:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SQAIR(SQAIRConfig(hidden_dim=16, what_dim=4)).eval()
    nn.init.constant_(linear(model.appearance.decoder).bias, model.config.darkness)  # untrained glimpses are dark
    return model


@pytest.fixture(scope="module")
def models() -> dict[str, Tracker]:
    others = {
        **dict.fromkeys(("sqair-shapes-ld", "sqair-mnist-vld"), tiny_sqair()),
        "shapes-background": tiny_model(lively=False, background=True),
        "grand-central-replay-still": tiny_model(lively=False, still=True),
        "grand-central-replay": tiny_model(lively=False, background=True),
    }
    return {**dict.fromkeys(PRESETS, tiny_model()), **others}


@pytest.fixture
def station(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_station(tmp_path)
    monkeypatch.setenv("SCALOR_DATA", str(tmp_path))


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Draw:
    """A figure's picture, kept from becoming a file: that would take as long as drawing it."""
    pictures: list[np.ndarray] = []
    monkeypatch.setattr(figures, "save_png", lambda out, picture: pictures.append(picture))

    def drawn(name: str, models: dict[str, Tracker]) -> np.ndarray:
        FIGURES[name].draw(models, tmp_path / "no results", tmp_path / "a.png")
        return pictures.pop()

    return drawn


def red_columns(picture: np.ndarray) -> np.ndarray:
    """Where a red line goes through all rows of frames."""
    return np.flatnonzero((picture == RED).all(-1).mean(0) > 0.8)


def test_every_figure_is_listed() -> None:
    assert set(FIGURES) == set(LAYOUT) | PLOTS
    for name, figure in FIGURES.items():
        assert set(figure.presets) <= set(PRESETS)
        assert bool(figure.presets) == (name not in PLOTS)


@pytest.mark.usefixtures("digits", "station")
@pytest.mark.filterwarnings("ignore:slots run out")
@pytest.mark.parametrize("name", LAYOUT)
def test_a_figure_of_a_model_has_its_rows_and_columns(name: str, models: dict[str, Tracker], draw: Draw) -> None:
    rows, columns, side = LAYOUT[name]
    given = {preset: models[preset] for preset in FIGURES[name].presets}
    picture = draw(name, given)
    height, width = (length // (side + GAP) for length in picture.shape[:2])
    assert (height, width) == (rows, columns)
    red = red_columns(picture)
    if name.startswith("conditional") or name == "balls":
        # Three of the five observed frames are at its left, five of the ten imagined ones at its right.
        assert (picture.shape[1] - red.max()) // (side + GAP) == 5
        assert 2 <= len(red) <= 4
    else:
        assert len(red) == 0


@pytest.mark.usefixtures("digits")
def test_another_systems_masks_are_shown_as_well(models: dict[str, Tracker], draw: Draw) -> None:
    picture = draw("tracking-sqair-mnist-vld", models)
    last_row = picture[-(256 + GAP) :, -4 * (256 + GAP) :]
    assert len(np.unique(last_row.reshape(-1, 3), axis=0)) > 3, "black, white between frames, and some objects' colours"


@pytest.mark.filterwarnings("ignore:slots run out")
def test_what_is_imagined_is_the_same_again_and_leaves_other_random_numbers_alone(
    models: dict[str, Tracker], draw: Draw
) -> None:
    before = torch.get_rng_state()
    one, again = (draw("scratch", models) for _ in range(2))
    assert np.array_equal(one, again)
    assert torch.equal(torch.get_rng_state(), before)


def test_figures_become_files(models: dict[str, Tracker], tmp_path: Path) -> None:
    put(tmp_path, "ablation", "shapes-ablation", evaluations=[evaluation(1, 0.5, 3)])
    speed, training = [{"objects": 4, "ms_per_frame": 1}], [{"step": 1, "seconds": 2, "mse": 0.1}]
    for device in ("cuda", "cpu"):
        put(tmp_path, "efficiency", device, system="SCALOR", device=device, speed=speed, training=[])
    put(tmp_path, "efficiency", "b", system="SCALOR", device=None, speed=[], training=training)
    put(tmp_path, "generation", "shapes-md", forecast=FORECAST)
    for name in (*sorted(PLOTS), "dense-discovery"):
        FIGURES[name].draw(models, tmp_path, tmp_path / f"{name}.png")
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert 1200 < picture.width <= 1600


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_what_is_missing_is_said_in_a_sentence_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    sentence = (
        "holds no results: make them with" if name in PLOTS else "this figure needs a model of .*: train one with"
    )
    with pytest.raises(InputError, match=sentence):
        FIGURES[name].draw({}, tmp_path, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_another_training_costs_its_own_figures_alone(tmp_path: Path) -> None:
    config = replace(get_preset("shapes-length"), train=replace(get_preset("shapes-length").train, batch=3))
    origin = checkpoint.provenance(config, config.train.steps, torch.device("cpu"))
    folder = tmp_path / "runs" / "shapes-length-seed0"
    folder.mkdir(parents=True)
    checkpoint.write(folder / checkpoint.MODEL_FILE, SCALOR(config.model).state_dict(), config, origin)
    put(tmp_path, "generation", "shapes-md", forecast=FORECAST)
    drawn, left_out = draw_all(tmp_path / "runs", tmp_path, tmp_path / "out", torch.device("cpu"))
    assert [path.stem for path in drawn] == ["prediction"]
    (sentence,) = (sentence for sentence in left_out if sentence.startswith("length:"))
    assert "train.batch" in sentence


def test_every_object_keeps_its_cell_in_its_colour_while_it_is_there() -> None:
    seen = infer_clip(tiny_model(), Observation(squares(4, (64, 64))))
    pictures = gallery(seen, (64, 64))
    ids, lives = np.unique(seen.tracks.id, return_counts=True)
    shown = sorted(ids[np.argsort(-lives, kind="stable")][:16].tolist())
    assert len(shown) > 1
    for t, picture in enumerate(pictures):
        for place, number in enumerate(shown):
            corner = picture[place // 4 * 16, place % 4 * 16]
            here = number in seen.tracks.id[seen.tracks.frame == t]
            assert np.array_equal(corner, colors_of(np.array(number)) if here else np.zeros(3))


def test_masks_have_the_colours_of_the_tracks_and_are_parted_by_age() -> None:
    tracks = tracks_of(
        [(0, 3, (0, 0, 4, 4)), (1, 3, (0, 0, 4, 4)), (1, 5, (8, 8, 12, 12))], (16, 16), discovered=(0, 2)
    )
    maps = label_maps(tracks, 2)
    assert np.array_equal(maps[1, 1, 1], colors_of(np.array(3)))
    assert np.array_equal(maps[1, 9, 9], colors_of(np.array(5)))
    assert (maps[0, 8:] == 0).all()
    frames = torch.ones(2, 3, 16, 16)
    new, old = (owned(tracks.select(tracks.discovered == born), frames) for born in (True, False))
    assert [int(part.sum()) for part in (new[0], new[1], old[0], old[1])] == [16, 16, 0, 16]
    assert (new * old).sum() == 0


def test_true_objects_are_named_after_the_tracks_at_their_places() -> None:
    truth = tracks_of(
        [(0, 0, (0, 0, 8, 8)), (0, 1, (20, 20, 28, 28)), (1, 0, (1, 0, 9, 8)), (1, 2, (9, 9, 17, 17))], (32, 32)
    )
    tracks = tracks_of([(0, 7, (1, 1, 9, 9)), (0, 8, (12, 12, 20, 20)), (1, 8, (0, 0, 8, 8))], (32, 32))
    first, alone, later, newcomer = renamed(truth, tracks, 0).id
    assert first == later == 7
    assert len({7, 8, alone, newcomer}) == 4


def test_the_truth_of_a_clip_leaves_out_what_cannot_be_seen() -> None:
    clip = made_clip(np.zeros((2, 3, 2)), visible=[[1.0, 0.1, 1.0], [0.3, 1.0, 1.0]])
    tracks = truth_tracks(clip)
    assert list(zip(tracks.frame.tolist(), tracks.id.tolist(), strict=True)) == [(0, 1), (0, 3), (1, 1), (1, 2), (1, 3)]


def test_a_crossing_is_where_two_objects_in_plain_view_come_closest() -> None:
    times = np.arange(9.0)
    right = np.stack([4 * times, 0 * times + 20], -1)
    left = np.stack([36 - 4 * times, 0 * times + 21], -1)
    far = np.stack([0 * times + 50, 7 * times], -1)
    meeting = np.abs(right[:, 0] - left[:, 0]).argmin()
    clip = made_clip(np.stack([right, far, left], 1), visible=np.ones((9, 3)))
    assert crossing(clip) == (meeting, [0, 2])
    hidden = np.ones((9, 3))
    hidden[:, 2] = 0.2
    middle, pair = crossing(made_clip(np.stack([right, far, left], 1), visible=hidden))
    assert pair == [0, 1]
    assert figures.APART <= middle < 9 - figures.APART


def made_clip(centre: np.ndarray, visible: object) -> Clip:
    """One clip of objects of 8 px with given centres [T, N, 2] and visible shares [T, N]."""
    places = torch.tensor(centre, dtype=torch.float32)[None]
    frames, count = centre.shape[:2]
    truth = Truth(
        id=torch.arange(count).expand(1, frames, count),
        centre=places,
        box=torch.cat([places - 4, places + 4], -1),
        visible=torch.tensor(visible, dtype=torch.float32)[None],
        order=torch.arange(count)[None],
        owner=torch.full((1, frames, 64, 64), -1),
    )
    return Clip(Observation(torch.zeros(1, frames, 3, 64, 64)), truth)
