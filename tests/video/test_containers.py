"""Video files of many kinds: exact times and numbers from wherever one starts, turned and laid over black."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalor.errors import InputError
from scalor.video import Frame, Selection, open_video, write_video
from scalor.video.containers import OPTIONS, turned

from .clips import difference, movie, write_container

COUNT = 40
IRREGULAR = np.cumsum(np.random.default_rng(0).integers(20, 300, COUNT)).tolist()
B_FRAMES = {"g": "15", "bf": "2"}
OPEN = {"x264-params": "keyint=12:bframes=3:open-gop=1:scenecut=0"}
KINDS: dict[str, Callable[[Path, np.ndarray], Path]] = {
    "b_frames.mp4": lambda path, frames: write_container(path, frames, options=B_FRAMES),
    "open_groups.mp4": lambda path, frames: write_container(path, frames, options=OPEN),
    "irregular.mp4": lambda path, frames: write_container(path, frames, options=B_FRAMES, milliseconds=IRREGULAR),
    "irregular.mkv": lambda path, frames: write_container(path, frames, options=B_FRAMES, milliseconds=IRREGULAR),
    "broadcast.ts": lambda path, frames: write_container(path, frames, options=B_FRAMES, format="mpegts"),
    "b_frames.avi": lambda path, frames: write_container(path, frames, "mpeg4", options=B_FRAMES),
    "b_frames_of_h264.avi": lambda path, frames: write_container(path, frames, options=B_FRAMES),
    "jpegs.avi": lambda path, frames: write_container(path, frames, "mjpeg", "yuvj420p"),
    "lossless.mkv": lambda path, frames: write_container(path, frames, "ffv1", "yuv444p"),
    "ten_bits.mp4": lambda path, frames: write_container(path, frames, pixels="yuv420p10le"),
    "no_times.264": lambda path, frames: write_container(path, frames, options=B_FRAMES, format="h264"),
    "picture.gif": lambda path, frames: write_container(path, frames, "gif", "rgb8"),
    "no_suffix": lambda path, frames: write_container(path, frames, format="mov"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("containers")
    for name, make in KINDS.items():
        make(folder / name, movie(COUNT))
    return folder


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, list[Frame]]:
    return {name: list(open_video(folder / name)) for name in KINDS}


@pytest.mark.parametrize("name", KINDS)
def test_all_frames_come_in_order_with_their_times(name: str, folder: Path, whole: dict[str, list[Frame]]) -> None:
    frames = whole[name]
    assert [frame.index for frame in frames] == list(range(COUNT))
    rough = {".gif": 20, ".avi": 8}.get(Path(name).suffix, 4)
    assert difference(np.stack([frame.picture for frame in frames]), movie(COUNT)) < rough
    times = (np.array(IRREGULAR) - IRREGULAR[0]) / 1000 if "irregular" in name else np.arange(COUNT) / 10
    assert np.allclose([frame.seconds for frame in frames], times, atol=1e-3)
    video = open_video(folder / name)
    assert video.size == video.full_size == (48, 64)
    # .mkv writes down neither the number of frames nor their true rate.
    if name != "irregular.mkv":
        assert video.frames in (COUNT, None)
        assert video.fps == pytest.approx((COUNT - 1) / times[-1], rel=0.05)


def same(some: list[Frame], others: list[Frame]) -> bool:
    return len(some) == len(others) and all(
        (a.index, a.seconds) == (b.index, b.seconds) and np.array_equal(a.picture, b.picture)
        for a, b in zip(some, others, strict=True)
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(KINDS)),
    start=st.none() | st.integers(0, 120).map(lambda n: n / 20),
    length=st.none() | st.integers(1, 60).map(lambda n: n / 20),
    stride=st.integers(1, 5),
)
def test_a_selection_is_a_slice_of_all_frames(
    name: str,
    start: float | None,
    length: float | None,
    stride: int,
    folder: Path,
    whole: dict[str, list[Frame]],
) -> None:
    end = None if length is None else (start or 0) + length
    selection = Selection(start=start, end=end, stride=stride)
    wanted = [f for f in whole[name] if not selection.is_before(f.seconds) and not selection.is_after(f.seconds)]
    if wanted:
        video = open_video(folder / name, selection)
        assert same(list(video), wanted[::stride])
    else:
        with pytest.raises(InputError, match=r"(start|end) is [\d.]+: .* has no frame from"):
            open_video(folder / name, selection)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [3, 20, 100])
def test_a_sample_is_spread_over_the_selection(
    name: str, count: int, folder: Path, whole: dict[str, list[Frame]]
) -> None:
    selection = Selection(start=0.5, end=3.5, region=(0, 8, 64, 24), stride=2)
    inside = [f for f in whole[name] if not selection.is_before(f.seconds) and not selection.is_after(f.seconds)]
    sample = open_video(folder / name, selection).sample(count, seed=1)
    assert sample.shape == (min(count, len(inside)), 16, 64, 3)
    pictures = [frame.picture[8:24].tobytes() for frame in inside]
    places = [pictures.index(picture.tobytes()) for picture in sample]
    assert places == sorted(set(places))
    assert max(np.diff([-1, *places, len(inside)])) <= 0.8 * len(inside)


SDP = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 5004 RTP/AVP 96\r\n"
PLAYLIST = "\n#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n"


@pytest.mark.parametrize("text", [SDP + "a=rtpmap:96 H264/90000\r\n", PLAYLIST])
def test_files_that_name_addresses_open_no_connection(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text(text)
    assert OPTIONS["protocol_whitelist"] == "file"
    with pytest.raises(InputError, match="cannot be decoded as a video"):
        open_video(tmp_path / "a.mp4")


def test_a_sample_jumps_from_key_frame_to_key_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_container(tmp_path / "a.mp4", movie(400), options={"g": "10", "preset": "ultrafast"})
    video = open_video(path)
    monkeypatch.setattr(type(video.source), "frames", None)
    assert len(video.sample(8)) == 8
    assert np.array_equal(video.sample(8, seed=3), video.sample(8, seed=3))


@pytest.mark.parametrize("name", KINDS)
def test_runs_of_a_sample_are_frames_that_follow_each_other(
    name: str, folder: Path, whole: dict[str, list[Frame]]
) -> None:
    inside = [frame for frame in whole[name] if 0.5 <= frame.seconds < 3.5]
    pictures = [frame.picture[8:24].tobytes() for frame in inside]
    selection = Selection(start=0.5, end=3.5, region=(0, 8, 64, 24))
    runs = open_video(folder / name, selection).sample_runs(3, 2)
    places = np.array([pictures.index(picture.tobytes()) for picture in runs]).reshape(3, 2)
    assert (places[:, 1] == places[:, 0] + 1).all()
    assert (np.diff(places[:, 0]) > 0).all()


def test_runs_of_a_sample_jump_from_key_frame_to_key_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_container(tmp_path / "a.mp4", movie(400), options={"g": "10", "preset": "ultrafast"})
    pictures = [frame.picture.tobytes() for frame in open_video(path)]
    video = open_video(path)
    monkeypatch.setattr(type(video.source), "frames", None)
    runs = [picture.tobytes() for picture in video.sample_runs(8, 2)]
    places = [pictures.index(first) for first in runs[::2]]  # of the first frame that looks so
    assert all(place % 10 == 0 for place in places)
    assert runs[1::2] == [pictures[place + 1] for place in places]


def corner(frames: np.ndarray) -> np.ndarray:
    """The same with a red upper left corner, which shows how a picture lies."""
    frames[:, :16, :24] = (230, 30, 30)
    return frames


@pytest.mark.parametrize("degrees", [90, 180, -90])
def test_a_video_is_turned_as_its_file_says(tmp_path: Path, degrees: int) -> None:
    frames = corner(movie(3))
    video = open_video(write_container(tmp_path / "a.mp4", frames, turned=degrees))
    # Positive degrees are counterclockwise, for ffmpeg as for numpy.
    upright = np.rot90(frames, degrees // 90, axes=(1, 2))
    assert video.size == upright.shape[1:3]
    assert difference(np.stack([frame.picture for frame in video]), upright) < 4


def test_a_region_counts_from_the_corner_of_the_turned_picture(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a.mp4", corner(movie(3)), turned=90)
    video = open_video(path, Selection(region=(0, 44, 12, 64)))
    assert (video.size, video.full_size) == ((20, 12), (64, 48))
    assert all(difference(frame.picture, np.array([230, 30, 30])) < 8 for frame in video)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_every_turn_and_mirroring_of_a_display_matrix(quarters: int, mirrored: bool) -> None:
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    sine, cosine = [(0, 1), (1, 0), (0, -1), (-1, 0)][quarters]
    # What av_display_rotation_set writes for a counterclockwise turn, in numbers with 16 bits after the point.
    matrix = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1 << 14]], np.int32) << 16
    wanted = np.rot90(picture, quarters)
    if mirrored:
        matrix[:, 0] *= -1
        wanted = wanted[:, ::-1]
    assert np.array_equal(turned(picture, matrix), wanted)


def test_what_is_transparent_is_black(tmp_path: Path) -> None:
    frames = np.full((2, 48, 64, 4), 200, np.uint8)
    frames[:, :24, :, 3] = 0
    frames[:, 24:, :, 3] = 255
    frames[:, 24:, 32:, 3] = 51
    picture = next(iter(open_video(write_container(tmp_path / "a.mov", frames, "png", "rgba")))).picture
    assert (picture[:24] == 0).all()
    assert (picture[24:, :32] == 200).all()
    assert (picture[24:, 32:] == 40).all()


@pytest.mark.parametrize("size", [(47, 63), (1, 1), (17, 130)])
def test_odd_sizes_come_as_they_are(tmp_path: Path, size: tuple[int, int]) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (3, *size, 3)).astype(np.uint8)
    path = write_container(tmp_path / "a.mkv", frames, "ffv1", "bgr0")
    assert np.array_equal([frame.picture for frame in open_video(path)], frames)


def noise(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 48, 64, 3)).astype(np.uint8)


def test_frames_before_a_break_are_delivered(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, noise(40), fps=10)
    whole = [frame.picture for frame in open_video(path)]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    frames: list[Frame] = []
    with pytest.raises(InputError, match=r"frame \d+ of .*a\.mp4 cannot be decoded .*: choose an end of") as told:
        frames.extend(open_video(path))
    assert len(frames) > 20
    assert all(np.array_equal(frame.picture, whole[frame.index]) for frame in frames)
    words = str(told.value).split()
    assert words[1] == str(len(frames))
    end = float(words[words.index("seconds,") - 1])
    assert len(list(open_video(path, Selection(end=end)))) in (len(frames) - 1, len(frames))


def test_an_early_end_of_file_is_the_end(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a.ts", noise(40), format="mpegts")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 // 188 * 188])
    assert 10 < len(list(open_video(path))) < 30


def test_a_recording_that_begins_in_the_middle(tmp_path: Path) -> None:
    path = write_container(tmp_path / "a.ts", noise(40), options={"g": "15"}, format="mpegts")
    data = path.read_bytes()
    path.write_bytes(data[len(data) // 4 // 188 * 188 :])
    frames = list(open_video(path))
    assert 20 <= len(frames) < 40
    assert frames[0].seconds == 0


def resident() -> int:
    """Bytes of memory this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured as Linux tells it")
def test_memory_does_not_grow_with_the_length(tmp_path: Path) -> None:
    frames = np.broadcast_to(np.uint8(90), (3000, 64, 96, 3))
    path = write_container(tmp_path / "a.mp4", frames, options={"preset": "ultrafast"})
    tracemalloc.start()
    try:
        for frame in open_video(path):
            if frame.index == 500:
                early = resident()
                tracemalloc.reset_peak()
        assert frame.index == 2999
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        assert resident() - early < 10_000_000
    finally:
        tracemalloc.stop()
