"""Files of boxes against a truth file: stories told in files, and the same figures as py-motmetrics."""

import tracemalloc
from pathlib import Path
from typing import Any

import motmetrics
import numpy as np
import pytest

from scalor.errors import InputError
from scalor.evaluation.hota import hota_counts
from scalor.evaluation.matching import Gate, diagonal_gate
from scalor.evaluation.score import GATES, pair_rows, read_boxes, score

from .stories import frame, noisy_clip, tracks_of

Row = tuple[float, ...]


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(",".join(f"{value:g}" for value in row) + "\n" for row in rows))
    return path


def at(frame: int, id: int, x: float, confidence: float = 1, y: float = 0) -> Row:
    """A box 30 px wide and 40 px high (a diagonal of 50 px)."""
    return (frame, id, x, y, 30, 40, confidence, -1, -1, -1)


def test_a_perfect_file_scores_one_everywhere(tmp_path: Path) -> None:
    rows = [at(t, i, 100 * i + 3 * t) for t in (1, 2, 3) for i in (1, 2)]
    scores = score(write(tmp_path / "a.txt", rows), write(tmp_path / "b.txt", rows))
    assert (scores.frames, scores.objects, scores.identities) == ((1, 3), 6, 2)
    for gate in scores.gates.values():
        one = gate.to_dict()
        assert [one[n] for n in ("mota", "idf1", "hota", "precision", "recall")] == pytest.approx([1] * 5)
        assert (one["switches"], one["misses"], one["false_positives"]) == (0, 0, 0)


def test_the_three_gates_are_three(tmp_path: Path) -> None:
    """IoU 1/2 at 10 px, 1/3 at 15 px; the centre may be 25 px off."""
    truth = write(tmp_path / "t.txt", [at(1, 1, 0), at(1, 2, 200), at(1, 3, 400), at(1, 4, 600)])
    tracks = write(tmp_path / "p.txt", [at(1, 1, 10), at(1, 2, 215), at(1, 3, 425), at(1, 4, 626)])
    found = {name: gate.clear.matches for name, gate in score(tracks, truth).gates.items()}
    assert found == {"iou .5": 1, "iou .3": 2, "centre": 3}


def test_the_diagonal_gate_follows_each_true_box() -> None:
    gate, true = diagonal_gate(), np.array([[0.0, 0, 6, 8], [0, 0, 60, 80]])
    middle, off = np.array([[3.0, 4], [30, 40]]), np.array([[8.0, 4], [30, 80]])
    cost = gate.cost(true, true, middle, off)
    assert [cost[0, 0], cost[1, 1], cost[0, 1]] == [5, 40, np.inf]
    np.testing.assert_allclose(np.diag(gate.similarity(true, true, middle, off)), [0.5, 0.6])


def test_rows_of_confidence_zero_are_neither_missed_nor_false(tmp_path: Path) -> None:
    truth = write(tmp_path / "t.txt", [at(1, 1, 0), at(1, 2, 200, 0), at(2, 1, 0), at(2, 2, 200, 0)])
    tracks = write(tmp_path / "p.txt", [at(1, 7, 0), at(1, 8, 200), at(2, 7, 0), at(2, 9, 500)])
    scores = score(tracks, truth)
    assert (scores.objects, scores.identities) == (2, 1)
    for gate in scores.gates.values():
        assert (gate.clear.misses, gate.clear.false_positives, gate.clear.matches) == (0, 1, 2)
        assert gate.identity.idf1 == pytest.approx(4 / 5)


def test_identities_count_only_in_the_frames_scored(tmp_path: Path) -> None:
    """The object's number changes between frames 2 and 3."""
    truth = write(tmp_path / "t.txt", [at(t, 1, 0) for t in range(1, 7)])
    tracks = write(tmp_path / "p.txt", [at(t, 7 if t < 3 else 8, 0) for t in range(1, 7)])
    whole, late = score(tracks, truth).gates["iou .5"], score(tracks, truth, frames=(3, 6)).gates["iou .5"]
    assert whole.clear.switches == 1
    assert whole.identity.idf1 == pytest.approx(4 / 6)
    assert (late.clear.switches, late.identity.idf1, late.clear.objects) == (0, 1, 4)


def test_frames_without_truth_hold_false_positives(tmp_path: Path) -> None:
    truth = write(tmp_path / "t.txt", [at(2, 1, 0)])
    tracks = write(tmp_path / "p.txt", [at(t, 1, 0) for t in (1, 2, 3)])
    assert score(tracks, truth).gates["iou .5"].clear.false_positives == 0
    assert score(tracks, truth, frames=(1, 3)).gates["iou .5"].clear.false_positives == 2


def test_rows_that_are_not_sure_enough_are_left_out_on_demand(tmp_path: Path) -> None:
    truth = write(tmp_path / "t.txt", [at(1, 1, 0)])
    tracks = write(tmp_path / "p.txt", [at(1, 1, 0, 0.9), at(1, 2, 300, 0.4), at(1, 3, 600, -1)])
    assert score(tracks, truth).gates["iou .5"].clear.predictions == 3
    assert score(tracks, truth, minimum_presence=0.5).gates["iou .5"].clear.predictions == 1


def test_both_forms_of_our_own_tracks_read_the_same(tmp_path: Path) -> None:
    tracks = tracks_of(np.random.default_rng(0).uniform(5, 60, (1, 4, 3, 2)))
    tracks.to_csv(tmp_path / "tracks.csv")
    tracks.to_mot(tmp_path / "tracks_mot.txt")
    ours, mot = read_boxes(tmp_path / "tracks.csv"), read_boxes(tmp_path / "tracks_mot.txt")
    np.testing.assert_array_equal(ours.frame, tracks.frame + 1)
    np.testing.assert_array_equal(ours.frame, mot.frame)
    np.testing.assert_array_equal(ours.id, mot.id)
    np.testing.assert_allclose(ours.box, mot.box, atol=2e-3)
    np.testing.assert_allclose(ours.box, tracks.box, atol=1e-3)


def test_neither_large_frame_numbers_nor_many_ids_cost_time_or_memory(tmp_path: Path) -> None:
    ids = 4_000
    rows = [at(10_000_000 * (1 + i // 100), i + 1, 100 * (i % 100)) for i in range(ids)]
    tracemalloc.start()
    scores = score(write(tmp_path / "a.txt", rows[1:]), write(tmp_path / "b.txt", rows))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # a number for each pair of ids would need 128 MB
    for gate in scores.gates.values():
        assert (gate.clear.misses, gate.identity.misses, gate.clear.switches) == (1, 1, 0)
        assert gate.hota.hota == pytest.approx((1 - 1 / ids) ** 0.5, abs=1e-6)  # sqrt(DetA AssA)


def test_a_frame_with_too_many_boxes_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", [at(3, i + 1, i) for i in range(5001)])
    with pytest.raises(InputError, match="frame 3 has 5001 boxes in the truth and 5001 in the tracks: their"):
        score(file, file)


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path) -> None:
    rows = read_boxes(write(tmp_path / "a.txt", [at(t, i, 100 * i) for t in (1, 2, 4) for i in (1, 2)]))
    mixed = rows.select(np.array([4, 0, 3, 1, 5, 2]))
    pairs = pair_rows(mixed, rows, 2, 9)
    assert [pair.true_id.tolist() for pair in pairs] == [[2, 1], [1, 2]]
    assert [pair.true_box[:, 0].tolist() for pair in pairs] == [[200, 100], [100, 200]]
    assert [pair.pred_id.tolist() for pair in pairs] == [[1, 2], [1, 2]]


def test_the_table_has_a_line_a_gate(tmp_path: Path) -> None:
    rows = [at(1, 1, 0), at(2, 1, 0)]
    lines = score(write(tmp_path / "a.txt", rows), write(tmp_path / "b.txt", rows)).table().splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [gate.name for gate in GATES]
    assert lines[-1] == "frames 1-2, 1 objects in 2 rows of truth"


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize("seed", range(3))
def test_a_noisy_video_scores_as_in_motmetrics(seed: int, gate: Gate, tmp_path: Path) -> None:
    sequence = noisy_clip(seed, frames=30, objects=8)
    truth: list[Row] = []
    tracks: list[Row] = []
    for t, pair in enumerate(sequence, 1):
        for rows, ids, boxes in ((truth, pair.true_id + 1, pair.true_box), (tracks, pair.pred_id, pair.pred_box)):
            rows += [(t, int(i), b[0], b[1], b[2] - b[0], b[3] - b[1], 1) for i, b in zip(ids, boxes, strict=True)]
    path = {"truth": tmp_path / "t.txt", "tracks": tmp_path / "p.txt"}
    for name, rows in (("truth", truth), ("tracks", tracks)):
        path[name].write_text("".join(",".join(map(repr, map(float, row))) + "\n" for row in rows))
    ours = score(path["tracks"], path["truth"]).gates[gate.name]

    accumulator: Any = motmetrics.MOTAccumulator(auto_id=True)  # type: ignore[no-untyped-call]
    for pair in sequence:
        recent = [-accumulator.last_match.get(i, -1) for i in pair.true_id]  # ours lets the most recent claimant keep
        pair = pair.select(np.argsort(recent, kind="stable"), np.arange(len(pair.pred_id)))
        cost = pair.cost(gate)
        accumulator.update(pair.true_id, pair.pred_id, np.where(np.isfinite(cost), cost, np.nan))
    names = ["mota", "idf1", "precision", "recall", "num_switches", "num_misses", "num_false_positives"]
    theirs = motmetrics.metrics.create().compute(accumulator, metrics=names)  # type: ignore[no-untyped-call]
    one = ours.to_dict()
    assert [one[n.removeprefix("num_")] for n in names] == pytest.approx([float(theirs[n].iloc[0]) for n in names])
    assert one["hota"] == pytest.approx(hota_counts(sequence, gate).hota)


def test_a_frame_told_by_hand_is_the_frame_of_a_file(tmp_path: Path) -> None:
    """The same story by hand and through files."""
    pair = frame({1: (10, 10), 2: (30, 30)}, {5: (10.5, 10)})
    truth = write(tmp_path / "t.txt", [(1, 1, 8, 8, 4, 4, 1), (1, 2, 28, 28, 4, 4, 1)])
    tracks = write(tmp_path / "p.txt", [(1, 5, 8.5, 8, 4, 4, 1)])
    scores = score(tracks, truth)
    assert scores.gates["iou .5"].hota.hota == pytest.approx(hota_counts([pair], GATES[0]).hota)
    assert scores.gates["iou .5"].clear.mota == 0.5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("5\n", "PATH, line 1 is '5': it needs 7 numbers"),
        ("1,2,3\n", "PATH, line 1 is '1,2,3': it needs 7 numbers"),
        ("1,1,0,0,5,5,1\n\n2,1,0,0,five,5,1\n", "PATH, line 3 is '2,1,0,0,five,5,1': it needs 7 numbers"),
        ("1,1,0,0,5,nan,1\n", "PATH, line 1 is '1,1,0,0,5,nan,1': all numbers must be finite."),
        ("0,1,0,0,5,5,1\n", "PATH has a frame 0: MOTChallenge text counts frames from 1."),
        ("3,1,0,0,-5,5,1\n", "PATH, frame 3 has a box of negative width or height"),
        ("3,1,0,0,5,5,1\n3,1,9,0,5,5,1\n", "PATH, frame 3 has id 1 twice: an object has one row per frame."),
        ("1,1,1e308,0,1e308,5,1\n", "PATH, row 1 has x0 1e+308: give numbers of at most"),
        ("clip,frame,id\n0,0,0\n", "PATH has no column x0: give a tracks.csv as `scalor track` writes it."),
        (
            "clip,frame,id,x0,y0,x1,y1,presence,discovered\n0,0,0,1,1,2,2,1,1\n1,0,0,1,1,2,2,1,1\n",
            "PATH holds 2 clips: give a file with the tracks of one.",
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "boxes.txt"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_boxes(path)
    assert str(error.value).startswith(sentence.replace("PATH", str(path)))


def test_files_that_cannot_be_scored_are_refused(tmp_path: Path) -> None:
    good, empty = write(tmp_path / "t.txt", [at(5, 1, 0)]), write(tmp_path / "none.txt", [])
    with pytest.raises(InputError, match=r"nowhere.txt cannot be read \(No such file or directory\)"):
        score(tmp_path / "nowhere.txt", good)
    with pytest.raises(InputError, match=r"none.txt is empty: give a truth file"):
        score(good, empty)
    with pytest.raises(InputError, match=r"frames is 7-9: .* has no box in them; choose frames"):
        score(good, good, frames=(7, 9))
    with pytest.raises(InputError, match="frames is 9-7: give the first"):
        score(good, good, frames=(9, 7))
    assert score(empty, good).gates["iou .5"].clear.misses == 1
