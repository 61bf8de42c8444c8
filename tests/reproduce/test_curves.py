"""Curves carry the numbers of the result files."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalor.errors import InputError
from scalor.reproduce.curves import ablation_curves, efficiency_curves, prediction_curves
from scalor.visual.plots import Line, Panel

FORECAST = {
    "observe": 5,
    "mse": [0.1, 0.2],
    "mse_copy_last": [0.3, 0.4],
    "centre": [1.0, 2.0],
    "centre_copy_last": [5.0, 6.0],
    "centre_constant_velocity": [3.0, None],
    "lost": [0, 1],
}


def put(results: Path, table: str, setting: str, seed: int = 0, **more: Any) -> None:
    """A result file, as `scalor reproduce` writes it."""
    path = results / table / f"{setting}-seed{seed}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"table": table, "setting": setting, "seed": seed, **more}))


def lines(panel: Panel) -> dict[str, Line]:
    return {line.name: line for line in panel.lines}


def evaluation(step: int, rate: float, discoveries: float) -> dict[str, float]:
    return {"step": step, "seconds": 0.1 * step, "propagation_rate": rate, "discoveries_per_clip": discoveries}


def test_the_ablation_has_a_line_for_each_variant_over_the_steps(tmp_path: Path) -> None:
    for setting, more in (("", 1), ("-rejection", 1), ("-attention", 0), ("-neither", 0)):
        curve = [evaluation(100, 0.5, 40), evaluation(200, 0.9, 20 + more)]
        put(tmp_path, "ablation", f"paper-shapes-ablation{setting}", evaluations=curve)
    ((rate, discoveries),) = ablation_curves(tmp_path)
    assert rate.title == "the paper's configuration"
    names = {"rejection and attention", "rejection alone", "attention alone", "neither"}
    assert set(lines(rate)) == set(lines(discoveries)) == names
    for name in names:
        assert (lines(rate)[name].x, lines(rate)[name].y) == ([100, 200], [0.5, 0.9])
    assert lines(discoveries)["rejection alone"].y == [40, 21]
    assert lines(discoveries)["neither"].y == [40, 20]


def test_a_remedy_left_out_stands_beside_the_whole_in_a_row_of_its_own(tmp_path: Path) -> None:
    for setting in ("shapes-ablation", "shapes-ablation-inertia"):
        put(tmp_path, "ablation", setting, evaluations=[evaluation(100, 0.5, 40)])
    (ours, _), (without, _) = ablation_curves(tmp_path)
    assert set(lines(ours)) == {"rejection and attention"}
    assert set(lines(without)) == {"rejection and attention", "no inertia"}


def test_seeds_are_averaged_step_by_step(tmp_path: Path) -> None:
    for seed, rate in ((0, 0.2), (1, 0.6)):
        curve = [evaluation(200, rate, 10), evaluation(100, rate / 2, 30)]
        put(tmp_path, "ablation", "paper-shapes-ablation", seed, evaluations=curve)
    ((rate_panel, _),) = ablation_curves(tmp_path)
    (line,) = rate_panel.lines
    assert line.x == [100, 200]
    assert line.y == pytest.approx([0.2, 0.4])


def test_efficiency_has_a_line_for_each_system_on_each_device_that_was_measured(tmp_path: Path) -> None:
    for system, device, time in (("SCALOR", "cuda", 1.0), ("SQAIR", "cuda", 9.0), ("SCALOR", "cpu", 50.0)):
        speed = [{"objects": 4, "ms_per_frame": time}, {"objects": 64, "ms_per_frame": 2 * time}]
        put(tmp_path, "efficiency", f"{system}-{device}", system=system, device=device, speed=speed, training=[])
    for seed, late in ((0, 10.0), (1, 30.0)):
        points = [{"step": 1, "seconds": 1.0, "mse": 0.1}, {"step": 2, "seconds": late, "mse": 0.01}]
        put(tmp_path, "efficiency", "mnist-vld", seed, system="SCALOR", device=None, speed=[], training=points)
    ((gpu, cpu, training),) = efficiency_curves(tmp_path)
    assert [panel.title for panel in (gpu, cpu)] == ["inference, GPU", "inference, CPU"]
    assert (lines(gpu)["SCALOR"].x, lines(gpu)["SCALOR"].y) == ([4, 64], [1.0, 2.0])
    assert lines(gpu)["SQAIR"].y == [9.0, 18.0]
    assert {name: line.y for name, line in lines(cpu).items()} == {"SCALOR": [50.0, 100.0]}
    (line,) = training.lines
    assert (line.name, line.x, line.y) == ("SCALOR", [1.0, 20.0], [0.1, 0.01])
    assert all(panel.log_x for panel in (gpu, cpu, training))


def test_a_device_that_nothing_was_measured_on_has_no_panel(tmp_path: Path) -> None:
    speed = [{"objects": 4, "ms_per_frame": 1.0}]
    put(tmp_path, "efficiency", "a", system="SCALOR", device="cpu", speed=speed, training=[])
    ((cpu,),) = efficiency_curves(tmp_path)
    assert cpu.title == "inference, CPU"


def test_predictions_are_shown_beside_their_baselines_for_each_setting(tmp_path: Path) -> None:
    put(tmp_path, "generation", "shapes-md", forecast=FORECAST)
    put(tmp_path, "generation", "mnist-md", forecast=FORECAST)
    rows = prediction_curves(tmp_path)
    assert [row[0].title for row in rows] == ["mnist-md", "shapes-md"]
    for centre, squares in rows:
        assert (lines(centre)["SCALOR"].x, lines(centre)["SCALOR"].y) == ([1, 2], [1.0, 2.0])
        assert lines(centre)["last frame copied"].y == [5.0, 6.0]
        assert np.array_equal(lines(centre)["constant velocity"].y, [3.0, math.nan], equal_nan=True)
        assert {name: line.y for name, line in lines(squares).items()} == {
            "SCALOR": [0.1, 0.2],
            "last frame copied": [0.3, 0.4],
        }


def test_missing_results_are_named_with_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ablation holds no results: make them with `scalor reproduce ablation`"):
        ablation_curves(tmp_path)
    put(tmp_path, "ablation", "shapes-ablation")
    with pytest.raises(InputError, match=r"shapes-ablation-seed0\.json has no evaluations: make it again"):
        ablation_curves(tmp_path)
    put(tmp_path, "ablation", "shapes-ablation", evaluations=[{"step": 1}])
    with pytest.raises(InputError, match=r"a result of rejection and attention has no propagation_rate: make it again"):
        ablation_curves(tmp_path)
