"""The benchmark runs from end to end, at sizes whose figures mean nothing."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks import numerics, plan, report, training, where_time_goes
from benchmarks.plan import Plan
from scalor.presets import get_preset
from scalor.systems import config_from_dict

ROOT = Path(__file__).parent.parent.parent
TINY = plan.shrunk(plan.CPU)
PROMISED = {"section", "title", "command", "commit", "hardware", "date", "torch", "seed", "settings", "rows", "error"}
COLUMNS = {
    "start": {"first_step_s", "whole_s"},
    "training": {"ms_per_step", "steps_per_s", "frames_per_s", "peak_gib", "first_step_s"},
    "batches": {"batch", "frames_per_s", "peak_gib"},
    "together": {"runs", "steps_per_s", "against_one"},
    "dense": {"formulation", "ms_per_step", "ours_is_faster"},
    "tracking": {"objects", "ms_per_frame", "against_fewest", "kib_per_object", "us_per_object"},
    "shapes": {"clips", "frames_per_s", "live"},
    "video": {"what", "ms_per_frame", "frames_per_s", "live"},
    "agreement": {"program", "precision", "elbo_off", "gradient_off"},
    "curve": {"same", "largest_difference"},
    "quality": {"program", "precision", "seed", "strict_mota"},
    "kernels": {"version", "forward_us", "both_us", "off"},
    "time": {"kind", "count", "us"},
}


def results(folder: Path, section: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"cpu-{section}.json").read_text())
    return found


def test_every_section_runs_and_says_where_its_figures_come_from(tmp_path: Path) -> None:
    """In a process of its own, without the check of shapes, as the benchmark is meant to run."""
    assert set(COLUMNS) == set(bench.SECTIONS)
    words = ["cpu", "--tiny", "--only", *bench.SECTIONS, "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "benchmarks", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    for section, columns in COLUMNS.items():
        found = results(tmp_path, section)
        assert set(found) >= PROMISED
        assert found["error"] is None
        assert found["command"] == f"python -m benchmarks {' '.join(words)}"
        assert {"cpu", "cores", "threads"} <= set(found["hardware"])
        assert found["settings"]["length"] == TINY.length
        assert found["rows"]
        assert columns <= set(found["rows"][0])
        assert f"{section}: {found['title']}" in printed
    check_figures(tmp_path)


def check_figures(folder: Path) -> None:
    """What must hold whatever the machine."""
    for row in results(folder, "tracking")["rows"]:
        assert row["live"] == row["objects"]  # all slots are full
    for row in results(folder, "agreement")["rows"]:
        assert not row["note"].startswith("failed"), row
        assert row["elbo_off"] < (0.05 if row["precision"] == "bf16" else 1e-4)
    for row in results(folder, "kernels")["rows"]:
        assert max(row["off"], row["gradient_off"]) < 1e-4
    (curve,) = results(folder, "curve")["rows"]
    assert curve["same"]
    assert curve["weights_same"]
    *kinds, everything = results(folder, "time")["rows"]
    assert sum(row["count"] for row in kinds) == everything["count"] > 100
    assert sum(row["share"] for row in kinds) == pytest.approx(1)
    assert {"matmul", "convolution"} <= {row["kind"] for row in kinds}


def test_one_command_takes_sections_and_a_folder(tmp_path: Path) -> None:
    assert bench.main(["cpu", "--tiny", "--only", "kernels", "--seed", "3", "--out", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["cpu-kernels.json"]
    assert results(tmp_path, "kernels")["seed"] == 3


def test_a_section_that_fails_is_reported_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(plan: Plan) -> list[object]:
        """Breaks."""
        raise RuntimeError("no luck today")

    monkeypatch.setitem(bench.SECTIONS, "start", broken)
    assert bench.run(["start", "kernels"], TINY, "cpu", tmp_path, []) == 1
    assert "no luck today" in results(tmp_path, "start")["error"]
    assert results(tmp_path, "start")["rows"] == []
    assert results(tmp_path, "kernels")["rows"]
    assert "failed: start" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_gpu_is_refused_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["gpu"])
    assert "no CUDA GPU" in capsys.readouterr().err


@dataclass(frozen=True)
class Row:
    name: str
    figure: float | None
    whole: int
    nothing: None = None


def test_a_table_reads_well() -> None:
    text = report.table([Row("one", 1234.5, 12_345), Row("another", 0.00012, 6), Row("third", None, 7)])
    assert text.splitlines() == [
        "name      figure   whole",
        "-------  -------  ------",
        "one        1,234  12,345",
        "another  1.2e-04       6",
        "third          -       7",
    ]


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("paste_forward_kernel", "our crop and paste"),
        ("crop_to_image_kernel", "our crop and paste"),
        ("triton_poi_fused_add_celu_3", "compiled pointwise and reductions"),
        ("triton_red_fused_sum_1", "compiled pointwise and reductions"),
        ("triton_tem_fused_addmm_2", "compiled matmul"),
        ("nvjet_tst_64x8_64x16_1x2_h_bz_TNT", "matmul"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "matmul"),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", "convolution"),
        ("void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16>", "convolution"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdam>", "optimiser"),
        ("void at::native::sbtopk::gatherTopK<float>", "sorting and scans"),
        ("Memcpy DtoD (Device -> Device)", "copies and fills"),
        ("void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>", "copies and fills"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid>", "other elementwise"),
        ("something new", "other"),
    ],
)
def test_kernels_are_known_by_their_names(kernel: str, kind: str) -> None:
    assert where_time_goes.kind_of(kernel, where_time_goes.KERNELS) == kind


def test_frames_grow_with_the_number_of_objects() -> None:
    frames = {objects: plan.crowd_config(plan.GPU, objects).test.frame for objects in plan.GPU.objects}
    assert frames[4] == frames[64] == (64, 64)
    assert frames[128] == frames[256] == (128, 128)
    assert frames[1_024] == (512, 512)
    for objects in plan.GPU.objects:
        config = plan.crowd_config(plan.GPU, objects)
        assert config.model.slots == objects
        assert config.model.cell == get_preset("shapes-md").model.cell
        assert frames[objects][0] // 8 * (frames[objects][1] // 8) >= objects  # so that all may be found at once


def test_what_is_compiled_beforehand_is_what_is_measured() -> None:
    """A new process is told its config in JSON."""
    configs = bench.to_compile(list(bench.SECTIONS), plan.GPU)
    assert {*training.step_configs(plan.GPU).values(), *training.batch_configs(plan.GPU).values()} <= set(configs)
    assert plan.scene_config(plan.GPU, plan.NATURAL) in configs
    assert all(config_from_dict(json.loads(json.dumps(config.to_dict()))) == config for config in configs)


def test_gradients_are_compared_uncut() -> None:
    train = numerics.config_for(TINY, "float32", compile=False).train
    assert (train.clip_norm, train.clip_usual, train.clip_object) == (numerics.NO_CLIPPING, 0, 0)


def test_the_natural_sizes_are_the_papers() -> None:
    config = plan.natural_config(plan.GPU)
    assert (config.model.frame, config.model.glimpse, config.train.batch) == ((128, 128), 32, 20)
    assert config.scene.objects == (45, 45)
    assert config.model.background
    assert config.scene.background
