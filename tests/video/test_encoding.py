"""Videos written and read back through the real codecs, and files that are whole or not there."""

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from scalor.errors import InputError
from scalor.video import VideoWriter, iterate_frames, read_video, write_video

from .clips import difference, movie


def test_an_mp4_gives_back_its_frames(tmp_path: Path) -> None:
    frames = movie()
    write_video(tmp_path / "a.mp4", frames, fps=12.5)
    back = read_video(tmp_path / "a.mp4")
    assert back.shape == (8, 3, 48, 64)
    assert back.dtype == np.float32
    assert back.min() >= 0
    assert back.max() <= 1
    assert difference(255 * back.transpose(0, 2, 3, 1), frames) < 2  # 1.5 at this quality, 2.5 at 40 instead of 17
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


def test_a_writer_takes_frames_one_by_one_and_the_file_appears_at_the_end(tmp_path: Path) -> None:
    frames = movie(height=47, width=63)
    with VideoWriter(tmp_path / "a.mp4", fps=10) as writer:
        for frame in frames:
            writer.write(frame)
        assert writer.count == 8
        assert not (tmp_path / "a.mp4").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["a.mp4"]
    assert difference(np.stack(list(iterate_frames(tmp_path / "a.mp4")))[:, :47, :63], frames) < 3


@pytest.mark.parametrize("written", [0, 3])
def test_a_writer_that_is_interrupted_leaves_nothing(tmp_path: Path, written: int) -> None:
    def write_and_stop() -> None:
        with VideoWriter(tmp_path / "a.mp4", fps=10) as writer:
            for frame in movie()[:written]:
                writer.write(frame)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_stop()
    assert list(tmp_path.iterdir()) == []


def test_a_writer_refuses_what_makes_no_mp4(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.gif: give a file name that ends in \.mp4"):
        VideoWriter(tmp_path / "a.gif", fps=10)
    with pytest.raises(InputError, match="fps is 0"):
        VideoWriter(tmp_path / "a.mp4", fps=0)
    with pytest.raises(InputError, match="frames is empty"), VideoWriter(tmp_path / "a.mp4", fps=10):
        pass
    assert list(tmp_path.iterdir()) == []


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
