"""Video files through the real codecs, and every way in which a file can be wrong."""

import builtins
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from scalor.errors import InputError
from scalor.video import iterate_frames, read_video, write_video
from scalor.visual import save_png, strip


def movie(count: int = 8, height: int = 48, width: int = 64) -> np.ndarray:
    """A bright square moving over a soft slope, in uint8 [T, H, W, 3]."""
    y, x = np.mgrid[:height, :width]
    frames = np.stack([np.stack([60 + x, 80 + y, 0 * x + 100], axis=-1)] * count).astype(np.uint8)
    for t, frame in enumerate(frames):
        frame[10:22, 4 + 4 * t : 16 + 4 * t] = (240, 200, 40)
    return frames


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(float) - b.astype(float)).mean())


def test_an_mp4_gives_back_its_frames(tmp_path: Path) -> None:
    frames = movie()
    write_video(tmp_path / "a.mp4", frames, fps=12.5)
    back = read_video(tmp_path / "a.mp4")
    assert back.shape == (8, 3, 48, 64)
    assert back.dtype == np.float32
    assert back.min() >= 0
    assert back.max() <= 1
    assert difference(255 * back.transpose(0, 2, 3, 1), frames) < 3
    with av.open(tmp_path / "a.mp4") as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.average_rate == 12.5


def test_odd_sizes_get_one_more_row_or_column_in_mp4(tmp_path: Path) -> None:
    frames = movie(height=47, width=63)
    write_video(tmp_path / "a.mp4", frames, fps=10)
    back = np.stack(list(iterate_frames(tmp_path / "a.mp4")))
    assert back.shape == (8, 48, 64, 3)
    assert difference(back[:, :47, :63], frames) < 3


def test_a_gif_gives_back_its_frames_loops_and_keeps_the_time(tmp_path: Path) -> None:
    frames = movie(height=47, width=63)
    write_video(tmp_path / "a.gif", frames, fps=30)
    back = np.stack(list(iterate_frames(tmp_path / "a.gif")))
    assert back.shape == frames.shape
    assert difference(back, frames) < 4
    with Image.open(tmp_path / "a.gif") as image:
        assert image.info["loop"] == 0
        assert getattr(image, "n_frames") == 8  # noqa: B009  (PIL's types know it for gifs only)
        times = []
        for t in range(8):
            image.seek(t)
            times.append(image.info["duration"])
    assert set(times) == {30, 40}
    assert sum(times) == 270


def test_what_stands_still_does_not_flicker_in_a_gif(tmp_path: Path) -> None:
    write_video(tmp_path / "a.gif", movie(), fps=10)
    below = np.stack(list(iterate_frames(tmp_path / "a.gif")))[:, 30:]
    assert (below == below[0]).all()


def test_frames_can_be_written_and_read_as_a_stream(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", iter(movie()), fps=10)
    frames = iterate_frames(tmp_path / "a.mp4")
    assert next(frames).shape == (48, 64, 3)
    assert len(list(frames)) == 7


def test_other_containers_are_read_too(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.avi"), "w") as container:
        stream = container.add_stream("mpeg4", 10, width=64, height=48, pix_fmt="yuv420p")
        for frame in movie():
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    assert read_video(tmp_path / "a.avi").shape == (8, 3, 48, 64)


def test_a_folder_is_read_in_natural_order(tmp_path: Path) -> None:
    for t in (10, 2, 1):
        save_png(tmp_path / f"frame{t}.png", np.full((4, 6, 3), t, np.uint8))
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "._frame3.png").write_text("left behind by another system")
    assert [int(frame[0, 0, 0]) for frame in iterate_frames(tmp_path)] == [1, 2, 10]


@pytest.mark.parametrize("colour_last", [True, False])
@pytest.mark.parametrize("floats", [True, False])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_are_read_exactly(tmp_path: Path, suffix: str, floats: bool, colour_last: bool) -> None:
    frames = movie(3)
    array = frames if colour_last else frames.transpose(0, 3, 1, 2)
    array = array.astype(np.float32) / 255 if floats else array
    path = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        np.save(path, array)
    else:
        np.savez(path, frames=array, boxes=np.zeros(4))
    assert np.array_equal(np.stack(list(iterate_frames(path))), frames)


def failing_half_way() -> Iterator[np.ndarray]:
    yield from movie(4)
    raise RuntimeError("the model stopped")


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_a_failed_write_leaves_what_was_there_and_no_other_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(RuntimeError, match="the model stopped"):
        write_video(tmp_path / name, failing_half_way(), fps=10)
    assert list(tmp_path.iterdir()) == []
    write_video(tmp_path / name, movie(2), fps=10)
    whole = (tmp_path / name).read_bytes()
    with pytest.raises(RuntimeError, match="the model stopped"):
        write_video(tmp_path / name, failing_half_way(), fps=10)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == whole


def test_what_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    frames = movie(2)
    (tmp_path / "file").write_text("")
    for folder in ("missing", "file"):
        with pytest.raises(InputError, match=r"cannot write .*a\.mp4 .*: choose a folder that exists and can be"):
            write_video(tmp_path / folder / "a.mp4", frames, fps=10)
    with pytest.raises(InputError, match=r"a\.wmv: give a file name that ends in \.mp4 or \.gif"):
        write_video(tmp_path / "a.wmv", frames, fps=10)
    with pytest.raises(InputError, match="frames is empty: give at least one frame"):
        write_video(tmp_path / "a.mp4", frames[:0], fps=10)
    for fps in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"fps is {fps}: give frames per second above 0"):
            write_video(tmp_path / "a.mp4", frames, fps=fps)
    with pytest.raises(InputError, match=r"fps is 60: a gif plays at most 50 frames per second; write \.mp4"):
        write_video(tmp_path / "a.gif", frames, fps=60)
    with pytest.raises(InputError, match=r"frame 1 of .*a\.mp4 is 20 x 48 pixels and frame 0 is 64 x 48: bring all"):
        write_video(tmp_path / "a.mp4", iter([frames[0], frames[0][:, :20]]), fps=10)
    with pytest.raises(InputError, match=r"frame 0 for .*a\.mp4 is float64 of shape \[48, 64, 3\]: give uint8"):
        write_video(tmp_path / "a.mp4", iter(frames / 255), fps=10)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def transport_stream(path: Path, frames: np.ndarray) -> bytes:
    with av.open(str(path), "w", format="mpegts") as container:
        stream = container.add_stream("libx264", 10, width=frames.shape[2], height=frames.shape[1])
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    return path.read_bytes()


def text(path: Path) -> None:
    path.write_text("this is no video\n" * 50)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_off_index(path: Path) -> None:
    write_video(path, movie(), fps=10)
    path.write_bytes(path.read_bytes()[:400])


def cut_off_pictures(path: Path) -> None:
    write_video(path, movie(), fps=10)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"mdat") + 40])


def sound_only(path: Path) -> None:
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("aac", 44100, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 44100
        container.mux(stream.encode(sound))
        container.mux(stream.encode(None))


def size_change(path: Path) -> None:
    path.write_bytes(transport_stream(path, movie(3)) + transport_stream(path, movie(3, 96, 128)))


def folder_without_images(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("no image")


def folder_of_mixed_sizes(path: Path) -> None:
    path.mkdir()
    for t in range(3):
        save_png(path / f"{t}.png", np.zeros((4 + t // 2, 6, 3), np.uint8))


def folder_with_a_broken_image(path: Path) -> None:
    path.mkdir()
    (path / "0.png").write_text("no image")


def folder_of_16_bit_images(path: Path) -> None:
    path.mkdir()
    Image.fromarray(np.full((4, 4), 40000, np.uint16)).save(path / "0.png")


def two_arrays(path: Path) -> None:
    np.savez(path, a=np.zeros(2), b=np.zeros(2))


def flat_array(path: Path) -> None:
    np.save(path, np.zeros((5, 8, 8), np.uint8))


def large_floats(path: Path) -> None:
    np.save(path, np.full((5, 8, 8, 3), 255.0))


def no_frames(path: Path) -> None:
    np.save(path, np.zeros((0, 8, 8, 3), np.uint8))


@pytest.mark.parametrize(
    ("name", "make", "sentence"),
    [
        ("a.mp4", lambda path: None, r"a\.mp4 does not exist: give a video file, a folder of images"),
        ("a.txt", text, r"a\.txt ends in '\.txt': give a video \(\.mp4, "),
        ("a.mp4", text, r"a\.mp4 cannot be decoded as a video \(.*\): it may be cut short or not a video"),
        ("a.mp4", empty, r"a\.mp4 cannot be decoded as a video"),
        ("a.gif", text, r"a\.gif cannot be decoded as a video"),
        ("a.mp4", cut_off_index, r"a\.mp4 cannot be decoded as a video"),
        ("a.mp4", cut_off_pictures, r"a\.mp4 (cannot be decoded|holds no frame that can be decoded).* again"),
        ("a.mp4", sound_only, r"a\.mp4 holds no pictures, only other streams"),
        (
            "a.mp4",
            size_change,
            r"frame 3 of .*a\.mp4 is 128 x 96 pixels and frame 0 is 64 x 48: bring all frames",
        ),
        ("a", folder_without_images, r"a holds no images: give a folder with files that end in \.png, "),
        (
            "a",
            folder_of_mixed_sizes,
            r"frame 2 of .*a is 6 x 5 pixels and frame 0 is 6 x 4: bring all frames",
        ),
        ("a", folder_with_a_broken_image, r"0\.png cannot be decoded as an image: remove it"),
        ("a", folder_of_16_bit_images, r"0\.png has more than 8 bits per channel .*: convert it to 8 bits"),
        ("a.npy", text, r"a\.npy cannot be read as a numpy array: write it again with numpy\.save"),
        ("a.npz", empty, r"a\.npz cannot be read as a numpy array"),
        ("a.npz", two_arrays, r"a\.npz holds the arrays \['a', 'b'\]: name the one with the video 'frames'"),
        ("a.npy", flat_array, r"a\.npy holds uint8 of shape \[5, 8, 8\]: give uint8, or floats in \[0, 1\]"),
        ("a.npy", large_floats, r"frame 0 of .*a\.npy holds values from 255 to 255: scale them to \[0, 1\]"),
        ("a.npy", no_frames, r"a\.npy holds no frame that can be decoded"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    tmp_path: Path, name: str, make: Callable[[Path], None], sentence: str
) -> None:
    make(tmp_path / name)
    with pytest.raises(InputError, match=sentence):
        read_video(tmp_path / name)


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("av", lambda path: write_video(path / "a.mp4", movie(2), fps=10)),
        ("av", lambda path: read_video(path / "b.mp4")),
        ("PIL", lambda path: write_video(path / "a.gif", movie(2), fps=10)),
        ("PIL", lambda path: read_video(path)),
        ("PIL", lambda path: save_png(path / "a.png", movie(1)[0])),
        ("PIL", lambda path: strip({"input": movie(2)})),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, use: Callable[[Path], object]
) -> None:
    (tmp_path / "b.mp4").write_bytes(b"")
    real_import = builtins.__import__

    def without_package(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_package)
    with pytest.raises(InputError, match=r"needs the package (av|pillow): run pip install 'scalor\[video\]'"):
        use(tmp_path)
