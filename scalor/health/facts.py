"""What was counted over a run, before anything is judged."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Shares are 0 to 1, none where there was nothing to take a share of. Sizes are height and width in pixels."""

    frames: int
    seconds: float
    rows: int
    """Boxes, over all frames."""
    moving_frames: int
    """Frames with any foreground beyond specks;"""
    unseen_frames: int
    """and those of them without any box."""
    foreground: float
    """Share of the picture that differs from the background, on average."""
    most_foreground: float
    """The same in the frame with most."""
    explained: float | None
    """Share of the foreground inside boxes."""
    empty: float | None
    """Share of boxes with hardly any foreground."""
    fill: float | None
    """The median box's share of foreground."""
    pairs: int
    """Boxes whose foreground touches nothing else;"""
    fitting: float | None
    """and the share of them that fit it."""
    doubles: float | None
    """Share of boxes that lie on another one."""
    object_size: tuple[float, float] | None
    """What the tracker was told or learned,"""
    box_size: tuple[float, float] | None
    """medians over boxes,"""
    blob_size: tuple[float, float] | None
    """and over connected pieces of foreground."""
    size_limits: tuple[float, float] | None
    """The least and the largest side that the tracker can give a box."""
    ids: int
    entered: int
    """Ids that began at the border, or when the video began."""
    appeared: int
    """Ids that began in the middle of the picture."""
    replaced: int
    """Ids that began where another had just ended."""
    jumps: int
    steps: int
    """Steps of ids from a frame to the next, of which some are jumps."""
    life: float | None
    """The median of how long ids last, seconds."""
    crossing: float | None
    """Seconds that a thing of median speed needs to cross the view."""
    light_steps: int
    dropped: int
    dropping_frames: int

    @property
    def objects(self) -> float:
        """In a frame, on average."""
        return self.rows / max(self.frames, 1)

    @property
    def ids_per_thing(self) -> float | None:
        """How many ids a thing gets: one, and one more whenever an id begins in the middle of the picture, takes the
        place of another or jumps. Things are those that entered, and at least as many as are there at a time."""
        things = max(self.entered, self.objects)
        return 1 + (self.appeared + self.replaced + self.jumps) / things if things else None
