"""Packed weights: small, and the same up to rounding."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import scalor
from scalor import InputError, checkpoint
from scalor.checkpoint import MAX_UNPACKED, pack, unpack
from scalor.presets import get_preset
from scalor.systems import build


@given(seed=st.integers(0, 99), rows=st.integers(1, 7), width=st.integers(1, 1500), scale=st.floats(1e-20, 1e20))
def test_no_number_moves_by_more_than_half_a_step_of_its_row(seed: int, rows: int, width: int, scale: float) -> None:
    matrix = scale * torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    (back,) = unpack(pack({"matrix": matrix})).values()
    if matrix.numel() > MAX_UNPACKED:
        step = matrix.abs().amax(1, keepdim=True) / 127
        assert ((back - matrix).abs() <= 0.501 * step).all()
    else:
        assert torch.equal(back, matrix.half())


def test_a_row_of_zeros_stays_zero() -> None:
    matrix = torch.randn(4, MAX_UNPACKED, generator=torch.Generator().manual_seed(0))
    matrix[1] = 0
    packed = pack({"matrix": matrix, "nothing": torch.zeros(2, MAX_UNPACKED)})
    assert packed["matrix"].dtype == torch.int8
    assert torch.equal(unpack(packed)["matrix"][1], torch.zeros(MAX_UNPACKED))
    assert torch.equal(unpack(packed)["nothing"].float(), torch.zeros(2, MAX_UNPACKED))


@pytest.mark.parametrize("large", [20.0, 30_000.0])
def test_a_matrix_with_a_few_large_numbers_keeps_half_precision(large: float) -> None:
    even = torch.randn(64, 128, generator=torch.Generator().manual_seed(0))
    uneven = even.clone()
    uneven[:, 0] = large
    packed = pack({"even": even, "uneven": uneven})
    assert (packed["even"].dtype, packed["uneven"].dtype) == (torch.int8, torch.float16)
    assert torch.equal(unpack(packed)["uneven"], uneven.half())


def test_a_long_vector_has_no_rows_and_keeps_half_precision() -> None:
    vector = torch.linspace(-1, 1, MAX_UNPACKED + 1)
    (back,) = unpack(pack({"bias": vector})).values()
    assert back.dtype == torch.float16
    torch.testing.assert_close(back.float(), vector, rtol=1e-3, atol=1e-4)


def test_tensors_that_are_not_packed_stay_as_they_are() -> None:
    tensors = {"a": torch.randn(3), "training/b": torch.arange(4)}
    assert unpack(tensors).keys() == tensors.keys()
    assert all(unpack(tensors)[name] is tensor for name, tensor in tensors.items())


def test_a_packed_model_is_a_quarter_as_large_and_draws_the_same(tmp_path: Path) -> None:
    config = get_preset("shapes-tiny")
    model = build(config.model)
    whole, small = tmp_path / "whole.safetensors", tmp_path / "small.safetensors"
    checkpoint.save(model, whole, config)
    checkpoint.save_packed(whole, small)
    assert small.stat().st_size < 0.3 * whole.stat().st_size
    assert checkpoint.read(small).config == config
    assert checkpoint.read(small).provenance == checkpoint.read(whole).provenance
    code = torch.randn(1, 5, config.model.what_dim)
    drawn, again = (scalor.load(file).appearance.draw(code).colour for file in (whole, small))
    assert drawn.detach().numpy() == pytest.approx(again.detach().numpy(), abs=0.02)


def test_a_packed_copy_still_tells_which_settings_the_original_does_not_record(tmp_path: Path) -> None:
    original = checkpoint.read(checkpoint.find("pets"))
    assert "train.epsilon" in original.missing
    checkpoint.save_packed("pets", tmp_path / "small.safetensors")
    assert checkpoint.read(tmp_path / "small.safetensors").missing == original.missing
    checkpoint.save_packed(tmp_path / "small.safetensors", tmp_path / "again.safetensors")
    again = checkpoint.read(tmp_path / "again.safetensors")
    assert (again.missing, again.provenance) == (original.missing, original.provenance)


def test_a_packed_copy_replaces_no_other_weights(tmp_path: Path) -> None:
    config = get_preset("shapes-tiny")
    whole, small = tmp_path / "model.safetensors", tmp_path / "small.safetensors"
    checkpoint.save(build(config.model), whole, config)
    before = whole.read_bytes()
    with pytest.raises(InputError, match="less precise copy"):
        checkpoint.save_packed(tmp_path, whole)
    checkpoint.save_packed(whole, small)
    with pytest.raises(InputError, match="less precise copy"):
        checkpoint.save_packed(small, whole)
    assert whole.read_bytes() == before
    checkpoint.save_packed(whole, small)  # a packed copy may be made again
    with pytest.raises(InputError, match="less precise copy"):
        checkpoint.save_packed(small, small)
