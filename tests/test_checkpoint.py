"""Checkpoints come back to the last bit, are never half-written, and say in a sentence what is wrong with them."""

import errno
import json
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import scalor
from scalor import SCALOR, InputError, checkpoint, provenance
from tests.training.tiny import CPU, contents, differing, tiny


@pytest.fixture
def model() -> SCALOR:
    torch.manual_seed(3)
    return SCALOR(tiny().model)


@pytest.fixture
def saved(model: SCALOR, tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    scalor.save(model, path, tiny(seed=7))
    return path


def header_of(path: Path) -> dict[str, str]:
    with safe_open(path, "pt") as file:
        return dict(file.metadata())


def with_header(path: Path, **changed: str | None) -> None:
    """Write the file's tensors again under another header, with its checksum; None takes an entry away."""
    header = {**header_of(path), **changed}
    header.pop(checkpoint.CHECKSUM, None)
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    left = {name: value for name, value in header.items() if value is not None}
    save_file(tensors, path, {**left, checkpoint.CHECKSUM: checkpoint.checksum(tensors, left)})


def with_config(path: Path, section: str, **fields: Any) -> None:
    config = json.loads(header_of(path)["config"])
    config[section].update(fields)
    with_header(path, config=json.dumps(config))


def refusal(path: Path | str) -> str:
    """What `scalor.load` says to the file: one sentence that names it."""
    with pytest.raises(InputError) as caught:
        scalor.load(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


# What is written is what is read ----------------------------------------------------------------------


def test_a_model_comes_back_to_the_last_bit(model: SCALOR, saved: Path) -> None:
    first = next(iter(model.state_dict()))
    with torch.no_grad():
        model.state_dict()[first].view(-1)[0] = 1e-42  # not even a denormal number may change
    scalor.save(model, saved)
    back = scalor.load(saved)
    assert differing(dict(model.state_dict()), dict(back.state_dict())) == []
    assert back.config == model.config
    assert not back.training


def test_every_kind_of_tensor_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    tensors = {
        f"{checkpoint.STATE}nan": torch.tensor([float("nan"), float("inf"), -0.0]),
        "bytes": torch.arange(256, dtype=torch.uint8),
        "whole": torch.tensor(2**62),
        "half": torch.rand(3, 4).bfloat16(),
        "turned": torch.rand(3, 4).T,
    }
    checkpoint.write(tmp_path / "a.safetensors", tensors, tiny(), {})
    assert differing(tensors, checkpoint.read(tmp_path / "a.safetensors").tensors) == []


def test_the_header_holds_the_whole_config(saved: Path) -> None:
    assert checkpoint.read(saved).config == tiny(seed=7)


def test_the_header_says_where_weights_come_from(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALOR_COMMIT", "abc123")
    monkeypatch.setattr(checkpoint, "commit", provenance.commit.__wrapped__)  # it is asked once per process
    monkeypatch.setattr("sys.argv", ["/usr/bin/scalor", "train", "shapes-md", "--train.lengths", "[[0, 2]]"])
    checkpoint.write(saved, {}, tiny(seed=7), checkpoint.provenance(tiny(seed=7), 1200, CPU))
    origin = checkpoint.read(saved).provenance
    assert origin["command"] == "scalor train shapes-md --train.lengths '[[0, 2]]'"
    assert (origin["commit"], origin["seed"], origin["step"]) == ("abc123", 7, 1200)
    assert origin["hardware"]
    assert len(origin["date"].split("-")) == 3
    assert origin["torch"] == torch.__version__


def test_a_run_as_a_module_is_still_the_scalor_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/somewhere/scalor/__main__.py", "presets"])
    assert checkpoint.provenance(tiny(), 0, CPU)["command"] == "scalor presets"


def test_the_commit_is_that_of_the_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALOR_COMMIT", raising=False)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(scalor.__file__).parent, capture_output=True, text=True
    )
    if head.returncode:
        pytest.skip("the package is not in a git tree")
    assert head.stdout.startswith(provenance.commit.__wrapped__().removesuffix("-dirty"))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_changed_package_is_no_commit_but_new_results_leave_it_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*command: str) -> str:
        who = ("-c", "user.name=x", "-c", "user.email=x@y")
        return subprocess.run(["git", *who, *command], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    source, result = tmp_path / "scalor/provenance.py", tmp_path / "results/one.json"
    for file in (source, result):
        file.parent.mkdir(parents=True)
        file.write_text("as committed")
    for command in (["init"], ["add", "."], ["commit", "-m", "all"]):
        git(*command)
    monkeypatch.delenv("SCALOR_COMMIT", raising=False)
    monkeypatch.setattr(provenance, "__file__", str(source))
    head = git("rev-parse", "--short", "HEAD").strip()
    result.write_text("another")
    assert provenance.commit.__wrapped__() == head
    source.write_text("another")
    assert provenance.commit.__wrapped__() == f"{head}-dirty"


def test_without_git_the_commit_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALOR_COMMIT", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert provenance.commit.__wrapped__() == "unknown"


def test_a_run_folder_and_a_shipped_name_find_their_file(
    saved: Path, model: SCALOR, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkpoint.find(saved.parent) == saved
    monkeypatch.setattr(checkpoint, "WEIGHTS", saved.parent)
    assert checkpoint.find("model") == saved
    assert differing(dict(scalor.load("model").state_dict()), dict(model.state_dict())) == []


def test_a_shipped_name_is_a_bare_name(saved: Path) -> None:
    """A folder with packed weights of its name beside it is itself."""
    beside = saved.parent.with_suffix(".safetensors")
    beside.write_bytes(b"packed")
    assert checkpoint.find(saved.parent.resolve()) == saved.resolve()


def test_a_loaded_model_is_saved_with_the_settings_of_its_run(tmp_path: Path) -> None:
    for name in ("shapes-vhd", "pets"):
        scalor.save(scalor.load(name, slots=5), tmp_path / "copy.safetensors")
        shipped = checkpoint.read(checkpoint.find(name)).config
        copy = checkpoint.read(tmp_path / "copy.safetensors").config
        assert copy == replace(shipped, model=replace(shipped.model, slots=5))


def test_a_loaded_model_is_saved_with_the_provenance_of_its_weights(tmp_path: Path) -> None:
    scalor.save(scalor.load("pets"), tmp_path / "copy.safetensors")
    shipped, copy = checkpoint.read(checkpoint.find("pets")), checkpoint.read(tmp_path / "copy.safetensors")
    assert copy.provenance.pop("saved").startswith(f"{provenance.today()}, commit ")
    assert copy.provenance == shipped.provenance
    assert copy.missing == shipped.missing != ()


@pytest.mark.parametrize("preset", ["any-video", "shapes-tiny"])
def test_a_model_of_a_preset_is_saved_with_its_settings(preset: str, tmp_path: Path) -> None:
    scalor.save(scalor.build(preset), tmp_path / "new.safetensors")
    saved = checkpoint.read(tmp_path / "new.safetensors")
    assert saved.config == scalor.get_preset(preset)
    assert (saved.provenance["step"], "saved" in saved.provenance) == (0, False)


def test_a_model_can_be_given_other_slots(saved: Path, model: SCALOR) -> None:
    roomy = scalor.load(saved, slots=9)
    assert roomy.config.slots == 9
    assert differing(dict(model.state_dict()), dict(roomy.state_dict())) == []
    with pytest.raises(InputError, match=r"model\.slots is 0"):
        scalor.load(saved, slots=0)


def test_loading_never_unpickles(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a pickle was opened")

    for where, name in ((pickle, "Unpickler"), (pickle, "load"), (pickle, "loads"), (torch, "load")):
        monkeypatch.setattr(where, name, refuse)
    scalor.load(saved)


# Writing is all or nothing ----------------------------------------------------------------------------


def test_nothing_is_left_beside_the_file(saved: Path) -> None:
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_write_that_fails_keeps_the_old_file(
    saved: Path, model: SCALOR, call: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(saved.parent)

    def fail(*_: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(InputError, match=os.strerror(code)) as caught:
        scalor.save(model, saved)
    assert str(saved) in str(caught.value)
    assert contents(saved.parent) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_keeps_the_old_file(small_disk: Path, model: SCALOR) -> None:
    path = small_disk / "model.safetensors"
    scalor.save(model, path)
    before = contents(small_disk)
    with pytest.raises(InputError, match="No space left on device"):
        checkpoint.write(path, {"large": torch.zeros(1_100_000)}, tiny(), {})
    assert contents(small_disk) == before
    scalor.load(path)


def test_a_device_that_is_full_is_a_sentence(tmp_path: Path) -> None:
    """/dev/full refuses every byte for real, mount or no mount."""
    (tmp_path / "a.safetensors.part").symlink_to("/dev/full")
    (tmp_path / "a.safetensors").write_bytes(b"old")
    with pytest.raises(InputError, match="No space left on device"):
        checkpoint.write(tmp_path / "a.safetensors", {"a": torch.zeros(100_000)}, tiny(), {})
    assert contents(tmp_path) == {"a.safetensors": b"old"}


@pytest.mark.parametrize("where", ["missing/a.safetensors", "file/a.safetensors", "folder"])
def test_a_place_that_cannot_be_written_is_a_sentence(where: str, model: SCALOR, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"cannot be written \(.+\)") as caught:
        scalor.save(model, tmp_path / where)
    assert str(tmp_path / where) in str(caught.value)
    assert contents(tmp_path) == {"file": b"here"}


# What is wrong with a file ----------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def cut_in_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(torch.randint(0, 256, (5000,), dtype=torch.uint8).numpy().tobytes())


def text(path: Path) -> None:
    path.write_text("these are my weights\n" * 100)


def pickled(path: Path) -> None:
    torch.save({"a": torch.zeros(3)}, path)


def foreign(path: Path) -> None:
    save_file({"a": torch.zeros(3)}, path)


def other_format(path: Path) -> None:
    with_header(path, format="scalor-99")


@pytest.mark.parametrize("harm", [cut, cut_in_the_header, empty, noise, text, pickled])
def test_a_file_that_is_no_checkpoint_is_truncated_or_foreign(saved: Path, harm: Callable[[Path], None]) -> None:
    harm(saved)
    assert "truncated or not a safetensors file" in refusal(saved)


@pytest.mark.parametrize("harm", [foreign, other_format])
def test_a_file_of_another_program_is_refused(saved: Path, harm: Callable[[Path], None]) -> None:
    harm(saved)
    assert "was not written by scalor" in refusal(saved)


def test_other_sizes_name_the_tensor_and_both_sizes(saved: Path) -> None:
    with_config(saved, "model", tracker_dim=16)
    sentence = refusal(saved)
    assert "has other sizes" in sentence
    assert "16" in sentence
    assert "use the config it was trained with" in sentence


def test_another_set_of_tensors_is_refused(saved: Path) -> None:
    with_config(saved, "model", background=True)
    sentence = refusal(saved)
    assert "tensors are missing" in sentence
    assert "background." in sentence


def test_a_field_of_a_newer_version_is_named(saved: Path) -> None:
    with_config(saved, "model", telepathy=True)
    sentence = refusal(saved)
    assert "telepathy" in sentence
    assert "unknown to this version" in sentence


def test_a_setting_that_cannot_be_is_named(saved: Path) -> None:
    with_config(saved, "model", slots=-1)
    assert "model.slots is -1" in refusal(saved)


@pytest.mark.parametrize("config", ["{", "[]", "3", None])
def test_a_broken_header_is_a_sentence(saved: Path, config: str | None) -> None:
    with_header(saved, config=config)
    assert "checkpoint" in refusal(saved)


@pytest.mark.parametrize("origin", ["{", "3", None])
def test_a_broken_provenance_is_a_sentence(saved: Path, origin: str | None) -> None:
    with_header(saved, provenance=origin)
    assert "broken header" in refusal(saved)


def test_one_changed_bit_is_a_damaged_file(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    for place in (len(data) - 1, len(data) // 2):
        data[place] ^= 1
        saved.write_bytes(data)
        assert "is damaged (its checksum does not match): use another copy" in refusal(saved)
        data[place] ^= 1


def test_another_setting_in_the_header_is_a_damaged_file(saved: Path) -> None:
    data = saved.read_bytes()
    assert b'\\"seed\\": 7' in data
    saved.write_bytes(data.replace(b'\\"seed\\": 7', b'\\"seed\\": 8', 1))
    assert "is damaged" in refusal(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(saved: Path, value: float) -> None:
    header = {name: text for name, text in header_of(saved).items() if name != checkpoint.CHECKSUM}
    with safe_open(saved, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    name = max(tensors)
    tensors[name].view(-1)[0] = value
    save_file(tensors, saved, header)  # as an older version wrote it, without a checksum
    assert f"has weights that are not finite (in {name})" in refusal(saved)


@pytest.mark.parametrize("path", sorted(checkpoint.WEIGHTS.glob("*.safetensors")), ids=lambda path: path.stem)
def test_shipped_weights_carry_their_checksum(path: Path) -> None:
    assert checkpoint.CHECKSUM in header_of(path)
    checkpoint.read(path)


def test_files_of_older_versions_have_no_checksum_and_load(saved: Path, model: SCALOR) -> None:
    header = {name: text for name, text in header_of(saved).items() if name != checkpoint.CHECKSUM}
    with safe_open(saved, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    save_file(tensors, saved, header)
    assert not differing(scalor.load(saved).state_dict(), model.state_dict())


def test_a_missing_file_is_told_with_the_names_there_are(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WEIGHTS", saved.parent)
    assert "shipped weights are model;" in refusal("shapes-none")


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"model\.safetensors does not exist"):
        scalor.load(tmp_path)


# Devices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nonsense", "", "cpu:x", "meta", "mps", "xpu"])
def test_a_device_that_is_none_of_ours_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="choose auto, cpu or cuda") as caught:
        checkpoint.pick_device(name)
    assert repr(name) in str(caught.value)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA GPU"):
        checkpoint.pick_device("cuda")
    assert checkpoint.pick_device("auto") == CPU


def test_a_gpu_beyond_the_last_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert checkpoint.pick_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(InputError, match="has 2 CUDA GPUs"):
        checkpoint.pick_device("cuda:2")
