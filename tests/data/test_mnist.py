"""IDX files are read exactly or refused with a sentence; digits are drawn at the size asked for."""

import gzip
import hashlib
import io
import os
import re
import urllib.request
import zlib
from http.client import IncompleteRead
from pathlib import Path

import pytest
import torch

from scalor.config import SceneConfig
from scalor.data import mnist
from scalor.data.mnist import Digits, DigitSprites, load_digits
from scalor.data.scenes import Scenes
from scalor.errors import InputError


def idx(values: torch.Tensor) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes((0, 0, 8, values.dim())) + sizes + bytes(values.byte().flatten().tolist())


def strokes() -> torch.Tensor:
    """Six pictures of a bar 4 wide and 16 tall, ever further to the right."""
    images = torch.zeros(6, 28, 28)
    for shift, image in enumerate(images):
        image[5:21, 3 + shift : 7 + shift] = 255
    return images


def fake_digits() -> Digits:
    return Digits(strokes() / 255, torch.arange(6))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SCALOR_MNIST", "SCALOR_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for prefix in ("train", "t10k"):
        (tmp_path / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(strokes())))
        (tmp_path / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(torch.arange(6)))
    return tmp_path


def test_gzipped_and_plain_files_are_read(folder: Path) -> None:
    digits = load_digits("train", folder=folder)
    assert torch.equal(digits.images, strokes() / 255)
    assert digits.labels.tolist() == [0, 1, 2, 3, 4, 5]


def test_only_the_digits_asked_for_are_kept(folder: Path) -> None:
    assert load_digits("test", (4, 1), folder).labels.tolist() == [1, 4]
    with pytest.raises(InputError, match=r"digits is \(9,\): none of the 6 pictures"):
        load_digits("test", (9,), folder)


def test_the_environment_names_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALOR_MNIST", str(folder))
    assert len(load_digits("train").images) == 6
    monkeypatch.delenv("SCALOR_MNIST")
    (folder / "shared").mkdir()
    folder.joinpath("shared/mnist").symlink_to(folder)
    monkeypatch.setenv("SCALOR_DATA", str(folder / "shared"))
    assert len(load_digits("train").images) == 6


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "has neither train-images-idx3-ubyte.gz nor train-images-idx3-ubyte"),
        (gzip.compress(idx(torch.arange(6))), "starts with 00000801, not with 00000803"),
        (gzip.compress(idx(strokes())[:-5]), "has 4715 bytes, but its header promises 4720"),
        (gzip.compress(idx(strokes()))[:-20], "cannot be unpacked"),
        (gzip.compress(idx(strokes()))[:40] + b"rubbish" * 9, "cannot be unpacked"),
        (gzip.compress(bytes(mnist.MOST_BYTES + 1)), "more than 67,108,864 bytes"),
        (b"no gzip at all", "cannot be unpacked"),
        (gzip.compress(idx(strokes()[:, :20])), r"images of shape \(6, 20, 28\)"),
    ],
    ids=["missing", "magic", "short", "cut off", "rubbish", "a bomb", "not gzip", "wrong size"],
)
def test_a_bad_file_is_refused_with_a_sentence(folder: Path, content: bytes | None, sentence: str) -> None:
    path = folder / "train-images-idx3-ubyte.gz"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        load_digits("train", folder=folder)


def serve(monkeypatch: pytest.MonkeyPatch, content: dict[str, bytes]) -> None:
    def answer(address: str, timeout: float) -> io.BytesIO:
        return io.BytesIO(gzip.compress(content[address.removeprefix(mnist.MIRROR).removesuffix(".gz")]))

    monkeypatch.setattr(urllib.request, "urlopen", answer)


def test_absent_files_are_downloaded_checked_and_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {"train-images-idx3-ubyte": idx(strokes()), "train-labels-idx1-ubyte": idx(torch.arange(6))}
    serve(monkeypatch, content)
    with pytest.raises(InputError, match="has the checksum"):
        load_digits("train")
    assert not (folder / "cache").exists()
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    monkeypatch.setattr(mnist, "SHA256", sums)
    assert len(load_digits("train").images) == 6
    kept = folder / "cache/scalor/mnist"
    assert sorted(path.name for path in kept.iterdir()) == [f"{name}.gz" for name in sorted(content)]
    serve(monkeypatch, {})
    assert len(load_digits("train").images) == 6


@pytest.mark.parametrize("error", [OSError("no route to host"), IncompleteRead(b"half"), zlib.error("no route")])
def test_a_download_that_fails_says_what_to_do(error: Exception, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(address: str, timeout: float) -> io.BytesIO:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(InputError, match=rf"cannot be downloaded \({re.escape(str(error))}\): .* set SCALOR_MNIST"):
        load_digits("train")


def test_a_digit_spans_its_size_and_its_box_hugs_it() -> None:
    sprites = DigitSprites(fake_digits(), 12.0, torch.device("cpu"))
    keys, size = torch.arange(5)[None], torch.full((1, 5), 12.0)
    middles = (torch.arange(-10, 10) + 0.5).expand(1, 5, 1, -1)
    alpha = sprites.alpha(keys, size, middles, middles)[0, :, 0]  # [5, S, S]
    assert torch.allclose(sprites.half(keys, size), torch.tensor([1.5, 6.0]))
    assert alpha.sum((-2, -1)).sub(12 * 3).abs().max() < 1
    assert alpha[:, 4:16, 9:11].min() > 0.85  # 12 rows and 2 columns lie inside, up to the samples' blur
    assert alpha[:, 4:16, 8].sub(0.5).abs().max() < 0.1  # the next column is half covered
    assert alpha[:, :3].max() == 0
    assert alpha[..., :7].max() == 0


def test_scenes_of_digits_are_drawn_with_truth() -> None:
    config = SceneConfig(kind="mnist", objects=(6, 9), digits=(0, 1))
    clip = Scenes(config, 0, digits=fake_digits()).clips(0, 3)
    assert clip.frames.shape == (3, 10, 3, 64, 64)
    assert clip.frames.amax() > 0.7
    assert ((clip.truth.visible > 0.99) & (clip.truth.id >= 0)).any()


@pytest.mark.skipif("SCALOR_DATA" not in os.environ, reason="SCALOR_DATA is not set: no real MNIST to read")
def test_the_real_files_hold_the_real_digits() -> None:
    digits = load_digits("test")
    assert digits.images.shape == (10_000, 28, 28)
    assert digits.labels[:5].tolist() == [7, 2, 1, 0, 4]
