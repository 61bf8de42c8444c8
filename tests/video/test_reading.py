"""Videos of every kind through one door, and every way in which a file can be wrong."""

import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from scalor.errors import InputError
from scalor.video import Selection, iterate_frames, open_video, read_video, write_video
from scalor.visual import save_png, strip

from .clips import movie, write_container


def test_any_name_will_do_for_a_video_file(tmp_path: Path) -> None:
    for name in ("a.avi", "12:30.data", "no suffix", "[1].mp4"):
        path = write_container(tmp_path / "a.avi", movie(), "mpeg4").rename(tmp_path / name)
        assert read_video(path).shape == (8, 3, 48, 64)


def test_a_video_can_be_read_again_and_several_times_at_once(tmp_path: Path) -> None:
    video = open_video(write_container(tmp_path / "a.mp4", movie()))
    for one, other in zip(video, video, strict=True):
        assert one.index == other.index
        assert np.array_equal(one.picture, other.picture)
    assert len(list(video)) == video.frames == 8


@pytest.mark.parametrize("name", ["a.npy", "a.mkv", "a"])
def test_a_region_is_cut_from_every_frame(tmp_path: Path, name: str) -> None:
    path, frames = tmp_path / name, movie()
    if name == "a.npy":
        np.save(path, frames)
    elif name == "a.mkv":
        write_container(path, frames, "ffv1", "bgr0")
    else:
        path.mkdir()
        for t, frame in enumerate(frames):
            save_png(path / f"{t}.png", frame)
    video = open_video(path, Selection(region=(3, 5, 40, 48), start=0.2, stride=2))
    assert (video.size, video.full_size, video.frames) == ((43, 37), (48, 64), 3)
    assert np.array_equal([frame.picture for frame in video], frames[2::2, 5:48, 3:40])
    assert all(frame.picture.base is None or frame.picture.base.nbytes == frame.picture.nbytes for frame in video)


def test_pictures_without_time_come_at_the_rate_given(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", movie())
    assert [frame.seconds for frame in open_video(tmp_path / "a.npy")][:3] == [0, 0.1, 0.2]
    video = open_video(tmp_path / "a.npy", Selection(start=2), fps=2)
    assert video.fps == 2
    assert [(frame.index, frame.seconds) for frame in video] == [(4, 2), (5, 2.5), (6, 3), (7, 3.5)]
    with pytest.raises(InputError, match="fps is 0: give frames per second above 0"):
        open_video(tmp_path / "a.npy", fps=0)


def test_a_sample_of_an_array_takes_some_of_its_frames(tmp_path: Path) -> None:
    frames = movie(40)
    np.save(tmp_path / "a.npy", frames)
    video = open_video(tmp_path / "a.npy")
    sample = video.sample(4, seed=2)
    numbers = [int(np.abs(frames.astype(int) - picture).sum((1, 2, 3)).argmin()) for picture in sample]
    assert np.array_equal(sample, frames[numbers])
    assert [number // 10 for number in numbers] == [0, 1, 2, 3]
    assert not np.array_equal(video.sample(4, seed=3), sample)
    assert np.array_equal(video.sample(99), frames)
    with pytest.raises(InputError, match="count is 0: sample at least 1"):
        video.sample(0)


def test_times_without_frames_are_refused_at_once(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a.mp4", movie())
    with pytest.raises(InputError, match=r"start is 5: .*a\.mp4 has no frame from then on and lasts about 0\.80 s"):
        open_video(path, Selection(start=5))
    with pytest.raises(InputError, match=r"end is 0\.25: .*a\.mp4 has no frame from 0\.21 s to then; choose a later"):
        open_video(path, Selection(start=0.21, end=0.25))
    with pytest.raises(InputError, match=r"region is \(0, 0, 65, 9\): .*a\.mp4 is 64 x 48 pixels"):
        open_video(path, Selection(region=(0, 0, 65, 9)))


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_container(tmp_path / "a.mp4", movie(2))

    def forbid(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Not by chmod: whoever may read everything could read it still.
    monkeypatch.setattr(Path, "open", forbid)
    with pytest.raises(InputError, match=r"a\.mp4 cannot be read \(Permission denied\): give .* that you may read"):
        open_video(path)


def test_a_pattern_names_the_images_of_a_video(tmp_path: Path) -> None:
    for t in (10, 2, 1):
        save_png(tmp_path / f"left{t}.png", np.full((4, 6, 3), t, np.uint8))
        save_png(tmp_path / f"right{t}.png", np.full((4, 6, 3), 99, np.uint8))
    assert [int(frame[0, 0, 0]) for frame in iterate_frames(f"{tmp_path}/left*.png")] == [1, 2, 10]
    assert len(list(iterate_frames(tmp_path / "*t?.png"))) == 4
    assert len(list(iterate_frames(tmp_path / "**" / "*10.png"))) == 2
    with pytest.raises(InputError, match=r"up\*\.png matches no file: give a pattern that does"):
        open_video(tmp_path / "up*.png")
    write_container(tmp_path / "only.mp4", movie())
    assert len(list(iterate_frames(tmp_path / "*.mp4"))) == 8


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
    parts = [write_container(path, frames, format="mpegts").read_bytes() for frames in (movie(3), movie(3, 96, 128))]
    path.write_bytes(b"".join(parts))


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
        ("a.txt", text, r"a\.txt cannot be decoded as a video \(it is text\): give a video file"),
        ("a", text, r"a cannot be decoded as a video"),
        ("a.mp4", text, r"a\.mp4 cannot be decoded as a video \(.*\): it may be cut short or not a video"),
        ("a.mp4", empty, r"a\.mp4 cannot be decoded as a video"),
        ("a.gif", text, r"a\.gif cannot be decoded as a video"),
        ("a.mp4", cut_off_index, r"a\.mp4 holds no frame that can be decoded"),
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
        ("a", folder_with_a_broken_image, r"0\.png cannot be decoded as an image \(.*\): remove it"),
        ("a.npy", text, r"a\.npy cannot be decoded as a numpy array \(.*\): write it again with numpy\.save"),
        ("a.npz", empty, r"a\.npz cannot be decoded as a numpy array"),
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
    write_container(tmp_path / "b.mp4", movie(2))
    monkeypatch.delitem(sys.modules, "scalor.video.containers", raising=False)
    monkeypatch.delitem(sys.modules, "scalor.video.images", raising=False)
    real_import = builtins.__import__

    def without_package(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_package)
    with pytest.raises(InputError, match=r"needs the package (av|pillow): run pip install 'scalor\[video\]'"):
        use(tmp_path)
