"""Clips of Grand Central Station: drawn walkers on real tracks, or the real video for users who have it.

The layout follows the paper's experiment on Grand Central Station (Task 2 and the appendix on it): squares of 240 px at
eight places of the 720x480 picture, every eighth frame at 25 frames per second, the first nine tenths of the time for
training and the rest for tests.

In the replay the paths, the crowds and the background are real; the people are drawn (`walkers`). The picture of the
background is from Zhou et al. 2012. The tracks are from Yi et al. 2015: positions of heads in every 20th frame, in
pixels of a 1920x1080 view. All data are put on the device once. `clips` copies no tensor to the host, and no shape
depends on a tensor's values. The real video (Zhou et al. 2012) has no ground truth here. Its squares are cut out once,
which takes minutes, and stored beside the video.

N walkers of a clip or frames of the video, B clips, T frames, P places; in tables K positions, W walkers, M moments, C
crops. A moment is a frame with annotations: every KEY-th frame.
"""

import gzip
import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor
from tqdm import tqdm

from scalor.config import SceneConfig
from scalor.data.clip import Clip
from scalor.data.footage import empty_truth, with_background
from scalor.data.hashing import between, fold, key, whole
from scalor.data.layers import STEPS, Cast, draw
from scalor.data.observation import Observation
from scalor.data.walkers import HEAD, REACH, half_width, walk
from scalor.errors import InputError, require
from scalor.files import replacing

TRACKS, PICTURE = "tracks_frame_id_x_y.csv.gz", "background_720x480.png"
VIEW, SHOWN = (1080, 1920), (480, 720)
"""Height and width of the view that the tracks refer to, and of the picture, pixels."""
CROP = 240
"""Side of a crop, pixels of the picture."""
PLACES = [(x, y) for y in (0, 240) for x in (0, 160, 320, 480)]
"""Left and top edges of the crops, pixels of the picture."""
RATE, KEY, STRIDE = 25, 20, 8
"""Frames per second, frames between two positions of a track, and frames between two frames of a clip."""
LONGEST_GAP = 3
"""Largest step in moments between two positions of a track. After a longer one the rest counts as another walker."""
TRAINING = 0.9
"""Share of the time that is used for training, from the start."""
HEIGHT, HEIGHT_PER_ROW = 14.0, 0.062
"""A walker with its head in row r of the picture is HEIGHT + HEIGHT_PER_ROW * r pixels tall, as measured there."""
JITTER = 0.08
"""Walkers' heights vary by this share, either way."""
WALKING = 0.5
"""Speed, in the walker's own heights per second, from which the legs swing fully."""
MEDIAN_OF = 99
"""Number of frames in the median that estimates the background."""
# Numbers of draws, see `hashing`.
WINDOW, START, BODY = range(3)


@dataclass(frozen=True)
class WalkerPaths:
    """All tracks, one after another and without gaps: the position of a head at every moment of its track."""

    place: Float[np.ndarray, "K 2"]
    """x and y, pixels of the picture."""
    moment: Int[np.ndarray, " K"]
    """Time of each position, in units of KEY frames."""
    walker: Int[np.ndarray, " K"]
    """Index of each position's walker."""
    first: Int[np.ndarray, " W"]
    """Row in which each walker's track begins."""
    count: Int[np.ndarray, " W"]
    """Number of positions of each walker's track."""
    annotated: Bool[np.ndarray, " M"]
    """Whether a moment has any annotation. The array ends when the last new walker appears: annotations after it are
    incomplete."""


class Replay:
    """An unlimited series of clips of one split. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        require(config.frame[0] == config.frame[1], "scene.frame", config.frame, "a replay shows squares")
        self.config, self.seed, self.split, self.device = config, seed, split, device
        self.scale = config.frame[0] / CROP
        folder = data_folder()
        paths = read_paths(folder / TRACKS)
        reach = math.ceil((19 + STRIDE * (config.length - 1)) / KEY)
        place, start, members = windows(paths, reach, config.objects, split)

        def put(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(device)

        self.place, self.start, self.members = put(place), put(start), put(members)
        self.heads, self.first, self.count = put(paths.place).float(), put(paths.first), put(paths.count)
        self.begins = put(paths.moment[paths.first])
        self.corner = torch.tensor(PLACES, device=device).float()
        self.backgrounds = crops(read_picture(folder / PICTURE), config.frame[0]).to(device)
        tallest = (HEIGHT + HEIGHT_PER_ROW * SHOWN[0]) * (1 + JITTER) * self.scale
        self.radius = [math.ceil(share * tallest + 1) for share in REACH]
        self.stills = self.medians() if config.still else None

    @torch.no_grad()
    def clips(self, index: Int[Tensor, "B"], length: int) -> Clip:
        """Return the clips with these indices."""
        clip = key(self.seed, self.split, index)
        window = whole(clip, WINDOW, len(self.place))
        shown = self.show(window, self.start[window] * KEY + whole(clip, START, KEY), length)
        if self.stills is None:
            return shown
        return replace(shown, observation=with_background(shown.frames, self.stills[self.place[window]][:, None]))

    @torch.no_grad()
    def medians(self) -> Float[Tensor, "P 3 side side"]:
        """Estimate the background of each place as the median of MEDIAN_OF frames spread over the split's time."""
        stills = torch.zeros_like(self.backgrounds)
        for place in range(len(PLACES)):
            there = (self.place == place).nonzero()[:, 0]
            if len(there):
                chosen = there[torch.linspace(0, len(there) - 1, MEDIAN_OF, device=self.device).long()]
                stills[place] = self.show(chosen, self.start[chosen] * KEY, 1).frames[:, 0].median(0).values
        return stills

    def show(self, window: Int[Tensor, "B"], start: Int[Tensor, "B"], length: int) -> Clip:
        """Draw clips of these windows from frame `start` on, which lies in the first KEY frames of the window."""
        times = start[:, None] + STRIDE * torch.arange(length, device=self.device)  # [B, T]
        walker = self.members[window].T  # [N, B]
        # Nearer walkers are in front. Nearness is the head's row in the middle of a clip of full length.
        middle = (start + STRIDE * (self.config.length - 1) // 2)[:, None]
        row = torch.where(walker >= 0, self.at(walker, middle)[0][..., 0, 1], -math.inf)
        number = row.argsort(dim=0, descending=True, stable=True)
        walker = walker.gather(0, number)

        head, moved, there = self.at(walker, times)
        who = fold(key(self.seed, self.split, walker.clamp(min=0)), BODY)
        height = HEIGHT + HEIGHT_PER_ROW * head[..., 1]  # [N, B, T], pixels of the picture
        height = height * between(who, BODY, 1 - JITTER, 1 + JITTER)[..., None]
        hurry = (moved.norm(dim=-1) * (RATE / KEY) / (WALKING * height)).clamp(max=1)
        head = (head - self.corner[self.place[window]][:, None]) * self.scale
        height = height * self.scale
        centre = torch.stack((head[..., 0], head[..., 1] + (0.5 - HEAD) * height), -1)

        cell = centre.floor()
        steps = [torch.arange(-radius, radius + 1, device=self.device) for radius in self.radius]
        x, y = (step + 0.5 - (centre - cell)[..., axis, None] for axis, step in enumerate(steps))
        drawn = walk(who, height, times / RATE, hurry, x, y)
        column, line = (step + cell[..., axis, None].long() for axis, step in enumerate(steps))
        cast = Cast(
            number=number,
            exists=there & (walker >= 0)[..., None],
            centre=centre,
            half=torch.stack((half_width(who)[..., None] * height, 0.5 * height), -1),
            alpha=drawn.alpha.mul_(STEPS).round_().div_(STEPS),
            row=line,
            column=column,
            colour=drawn.colour,
            shadow=drawn.shadow,
        )
        return draw(cast, self.config.frame, self.backgrounds[self.place[window]][:, None])

    def at(
        self, walker: Int[Tensor, "N B"], times: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "N B T 2"], Float[Tensor, "N B T 2"], Bool[Tensor, "N B T"]]:
        """Return the heads' positions, their displacements per KEY frames, and whether the tracks cover these times."""
        walker = walker.clamp(min=0)
        last = (self.count[walker] - 1)[..., None]
        since = times / KEY - self.begins[walker][..., None]  # [N, B, T]
        before = since.floor().long().clamp(min=0).minimum(last - 1)
        row = self.first[walker][..., None] + before
        here, step = self.heads[row], self.heads[row + 1] - self.heads[row]
        share = (since - before).clamp(0, 1)[..., None]
        return here + share * step, step, (since >= 0) & (since <= last)


def home(what: str) -> Path:
    """Return the folder of the Grand Central data. `what` begins the error message if SCALOR_DATA is not set."""
    root = os.environ.get("SCALOR_DATA")
    if root is None:
        raise InputError(
            f"SCALOR_DATA is not set: {what} from its folder grand_central; for the data see the Grand Central dataset "
            "of Zhou et al. 2012 and the walking paths of Yi et al. 2015."
        )
    return Path(root) / "grand_central"


def data_folder() -> Path:
    """Return the folder with the tracks and the picture, or raise InputError if one of them is missing."""
    folder = home(f"a replay reads {TRACKS} and {PICTURE}")
    for name in (TRACKS, PICTURE):
        if not (folder / name).is_file():
            raise InputError(
                f"SCALOR_DATA is {str(folder.parent)!r}: there is no grand_central/{name} in it; put it there."
            )
    return folder


def read_paths(path: Path) -> WalkerPaths:
    """Read rows of frame, id, x, y as tracks without gaps. Walkers with a single position are dropped."""
    try:
        with gzip.open(path, "rt") as file:
            rows = np.loadtxt(file, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): it must hold rows of frame, id, x, y, gzipped.") from error
    if rows.shape[1:] != (4,) or not len(rows):
        raise InputError(f"{path} has rows of {rows.shape[1]} numbers: give frame, id, x, y.")
    moment, owner = (rows[:, 0] / KEY).round().astype(np.int64), rows[:, 1].astype(np.int64)
    order = np.lexsort((moment, owner))
    place = rows[order, 2:] * np.array([SHOWN[1] / VIEW[1], SHOWN[0] / VIEW[0]])
    moment, owner = moment[order], owner[order]
    newcomers = moment[np.flatnonzero(np.diff(owner, prepend=-1))]
    annotated = np.bincount(moment)[: newcomers.max() + 1] > 0
    gap = np.diff(moment, prepend=moment[0])
    new = np.append(True, owner[1:] != owner[:-1]) | (gap > LONGEST_GAP) | (gap < 0)
    walker = np.cumsum(new) - 1
    once = new | (gap > 0)
    moment, walker, place = moment[once], walker[once], place[once]
    start, stop = np.flatnonzero(np.diff(walker, prepend=-1)), np.flatnonzero(np.diff(walker, append=walker[-1] + 1))
    count = moment[stop] - moment[start] + 1
    kept = count > 1
    start, count = start[kept], count[kept]
    first = np.cumsum(count) - count
    whose = np.repeat(np.arange(len(count)), count)
    # Every track becomes consecutive moments; missing positions are interpolated linearly.
    full = np.arange(count.sum()) - first[whose] + moment[start][whose]
    stretch = int(moment.max()) + 2 * LONGEST_GAP  # so that one number encodes the walker and the moment
    known = walker * stretch + moment
    wanted = walker[start][whose] * stretch + full
    place = np.stack([np.interp(wanted, known, place[:, axis]) for axis in (0, 1)], 1)
    return WalkerPaths(place, full, whose, first, count, annotated)


def windows(
    paths: WalkerPaths, reach: int, objects: tuple[int, int], split: str
) -> tuple[Int[np.ndarray, " C"], Int[np.ndarray, " C"], Int[np.ndarray, "C N"]]:
    """Find all crops with a suitable number of walkers, by place and start moment.

    Within `reach` moments from its start a crop must show at least objects[0] walkers, and at most objects[1] may be in
    it or so near that they could reach into it. Return the place, the first moment and the walkers of each crop (-1 in
    unused columns).
    """
    moments = len(paths.annotated)
    cut = int(TRAINING * moments)
    low, high = (0, cut - 1) if split == "train" else (cut, moments - 1)
    seen = np.cumsum(np.append(0, paths.annotated))
    starts = np.arange(low, max(low, high - reach + 1))
    starts = starts[seen[starts + reach + 1] - seen[starts] == reach + 1]
    tables = []
    for number, corner in enumerate(PLACES):
        shown = np.bincount(_visits(paths, corner, 0.0, reach)[0], minlength=moments)
        start, who = _visits(paths, corner, HEIGHT + HEIGHT_PER_ROW * SHOWN[0], reach)
        about = np.bincount(start, minlength=moments)
        chosen = starts[(shown[starts] >= objects[0]) & (about[starts] <= objects[1])]
        line = np.full(moments, -1)
        line[chosen] = np.arange(len(chosen))
        rank = np.arange(len(start)) - (np.cumsum(about) - about)[start]
        among = line[start] >= 0
        members = np.full((len(chosen), objects[1]), -1)
        members[line[start[among]], rank[among]] = who[among]
        tables.append((np.full(len(chosen), number), chosen, members))
    place, first, all_members = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    require(len(place) > 0, "scene.objects", objects, f"no crop of the {split} split shows so many walkers")
    return place, first, all_members


def _visits(
    paths: WalkerPaths, corner: tuple[int, int], margin: float, reach: int
) -> tuple[Int[np.ndarray, " V"], Int[np.ndarray, " V"]]:
    """Return all pairs of a start moment and a walker who is in a crop within `reach` moments.

    A walker is in the crop if the head lies in it, or up to `margin` pixels beside it.
    """
    low, high = np.array(corner) - margin, np.array(corner) + CROP + margin
    inside = ((paths.place >= low) & (paths.place <= high)).all(1)
    moment, walkers = paths.moment[inside], int(paths.walker.max()) + 1
    pairs = [(moment - back) * walkers + paths.walker[inside] for back in range(reach + 1)]
    start, who = np.divmod(np.unique(np.concatenate(pairs)), walkers)
    known = (start >= 0) & (start < len(paths.annotated))
    return start[known], who[known]


def read_picture(path: Path) -> Float[Tensor, "3 480 720"]:
    """Read the background picture, colours in [0, 1]."""
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError("pillow is not installed: install it with `pip install 'scalor[video]'`.") from error
    try:
        picture = np.array(Image.open(path).convert("RGB"), dtype=np.float32) / 255
    except (OSError, SyntaxError) as error:
        raise InputError(f"{path} cannot be read ({error}): give a picture of 720x480 pixels.") from error
    if picture.shape[:2] != SHOWN:
        raise InputError(f"{path} is {picture.shape[1]}x{picture.shape[0]}: give a picture of 720x480 pixels.")
    return torch.from_numpy(picture).movedim(-1, 0)


def crops(picture: Float[Tensor, "3 480 720"], side: int) -> Float[Tensor, "P 3 side side"]:
    """Return the background of every place, scaled to `side` pixels."""
    parts = torch.stack([picture[:, y : y + CROP, x : x + CROP] for x, y in PLACES])
    return torch.nn.functional.interpolate(parts, (side, side), mode="bilinear", antialias=True, align_corners=False)


VIDEOS = ("grandcentral.avi", "frames")
"""File name of the video, or of a folder with its frames."""
# Numbers of draws, see `hashing`.
PLACE, FIRST = range(2)


class Station:
    """An unlimited series of clips of one split. The same index always gives the same clip."""

    def __init__(self, config: SceneConfig, seed: int, split: str, device: torch.device) -> None:
        require(config.frame[0] == config.frame[1], "scene.frame", config.frame, "the station is shown in squares")
        self.seed, self.split = seed, split
        squares = kept_squares(config.frame[0])
        cut = int(TRAINING * len(squares))
        own = squares[:cut] if split == "train" else squares[cut:]
        fits = len(own) >= config.length
        require(fits, "scene.length", config.length, f"the {split} split has only {len(own)} frames")
        self.starts = len(own) - config.length + 1
        self.squares = torch.from_numpy(own).to(device)

    def clips(self, index: Int[Tensor, " B"], length: int) -> Clip:
        """Return the clips with these indices. Their truth is empty."""
        clip = key(self.seed, self.split, index)
        first = whole(clip, FIRST, self.starts)[:, None]
        seen = self.squares[first + torch.arange(length, device=index.device), whole(clip, PLACE, len(PLACES))[:, None]]
        frames = seen.float() / 255
        return Clip(Observation(frames), empty_truth(frames))


def kept_squares(side: int) -> UInt8[np.ndarray, "N P 3 side side"]:
    """Return every eighth frame at all places. The first call cuts them out of the video and stores them."""
    folder = home(f"the station reads {VIDEOS[0]}, or the pictures in {VIDEOS[1]},")
    path = folder / f"squares_{side}.raw"
    if not path.exists():
        video = find_video(folder)
        with replacing(path) as beside, beside.open("wb") as file:
            for squares in cut_out(video, side):
                file.write(squares.tobytes())
    # The file takes gigabytes, so it is memory-mapped: only what is accessed is read, and nothing is written back.
    return np.memmap(path, np.uint8, "c").reshape(-1, len(PLACES), 3, side, side)


def find_video(folder: Path) -> Path:
    """Return the path of the video or of the folder with its frames."""
    for name in VIDEOS:
        if (folder / name).exists():
            return folder / name
    root = str(folder.parent)
    raise InputError(
        f"SCALOR_DATA is {root!r}: there is neither grand_central/{VIDEOS[0]} nor a folder grand_central/{VIDEOS[1]}; "
        "put the video there."
    )


def cut_out(path: Path, side: int) -> Iterator[UInt8[np.ndarray, "P 3 side side"]]:
    """Yield the squares at all places of every eighth frame of the video, scaled to `side` pixels."""
    from scalor.video import Selection, open_video  # imported here because only this function needs codecs
    from scalor.video.resize import resize

    for frame in tqdm(open_video(path, Selection(stride=STRIDE)), "cutting", file=sys.stderr, unit="frame"):
        picture = frame.picture
        if picture.shape[:2] != SHOWN:
            raise InputError(f"{path} is {picture.shape[1]}x{picture.shape[0]}: give a video of 720x480 pixels.")
        parts = [resize(picture[y : y + CROP, x : x + CROP], (side, side)) for x, y in PLACES]
        yield np.stack(parts).transpose(0, 3, 1, 2)
