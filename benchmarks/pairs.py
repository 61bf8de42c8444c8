"""Of two objects of which one half covers the other: are both found, who is in front, what is kept of the hidden part?

    python -m benchmarks.pairs shapes-md runs/mine --clips 64 --out pairs.json

A pair is a true object of which the given share is visible, with its whole box in view, and the nearest object in front
of it. All pairs of all frames of unseen clips of the weights' test scenes count.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from torch import Tensor

import scalor
from benchmarks.report import hardware
from scalor.data.clip import Clip
from scalor.evaluation.report import test_clips
from scalor.kernels import paste
from scalor.model.scalor import SCALOR
from scalor.model.state import SceneState
from scalor.provenance import command_line, commit, today

CPU = torch.device("cpu")
VISIBLE = (0.3, 0.7)
"""Visible share of the object behind."""
STRICT = 0.5
"""Largest distance of a predicted centre from the true one, in object sizes."""


@dataclass(frozen=True)
class Pair:
    """One pair in one frame. Measures that need both objects to be found are NaN where one is not."""

    front_found: bool
    rear_found: bool
    front_nearer: float
    """1 where the model's depths have the front object nearer, 0 where not."""
    hidden_kept: float
    """Share of the hidden part that the rear object's mask still covers."""
    hidden_colour: float
    """Share of these pixels in which its colour is nearer to its own true colour than to that of what hides it."""


@dataclass(frozen=True)
class Row:
    """The means of all pairs of one model."""

    weights: str
    pairs: int
    front_found: float
    rear_found: float
    front_nearer: float
    hidden_kept: float
    hidden_colour: float


def measure(weights: str, clips: int) -> Row:
    """Return the measures of the weights on the first unseen clips of their test scenes."""
    model = scalor.load(weights)
    assert isinstance(model, SCALOR)
    assert model.run is not None
    found = [
        pair
        for clip in test_clips(model, model.run, clips, 16, quiet=True)
        for pair in pairs(model, model.run.test.size, clip)
    ]
    table = np.array([list(vars(pair).values()) for pair in found], dtype=float)
    return Row(weights, len(found), *(round(float(value), 4) for value in np.nanmean(table, 0)))


@torch.inference_mode()
def pairs(model: SCALOR, size: float, clip: Clip) -> Iterator[Pair]:
    """Yield all pairs of a batch of clips."""
    truth = clip.truth
    for t, (state, _) in enumerate(model.watch(clip.observation.unbind(1))):
        for b in range(len(clip.frames)):
            here = torch.nonzero((truth.id[b, t] >= 0) & (truth.visible[b, t] > 0.05))[:, 0]
            slots = match(state, b, truth.centre[b, t], here, STRICT * size)
            for rear in rear_objects(clip, b, t, here):
                ahead = here[truth.order[b, here] < truth.order[b, rear]]
                if len(ahead):
                    apart = (truth.centre[b, t, ahead] - truth.centre[b, t, rear]).norm(dim=-1)
                    yield pair(model, state, slots, clip, (b, t), (int(ahead[apart.argmin()]), rear))


def rear_objects(clip: Clip, b: int, t: int, here: Tensor) -> list[int]:
    """Return the objects of a frame that are partly hidden by others and not by the frame's border."""
    height, width = clip.frames.shape[-2:]
    box, visible = clip.truth.box[b, t, here], clip.truth.visible[b, t, here]
    inside = (box[:, :2] >= 0).all(-1) & (box[:, 2] <= width) & (box[:, 3] <= height)
    return here[inside & (visible >= VISIBLE[0]) & (visible <= VISIBLE[1])].tolist()


def match(state: SceneState, b: int, centre: Float[Tensor, "N 2"], here: Tensor, gate: float) -> dict[int, int]:
    """Return the slot of each true object that is found."""
    live = torch.nonzero(state.objects.alive[b, :, 0] > 0.5)[:, 0]
    distance = torch.cdist(centre[here], state.objects.where[b, live, :2])
    rows, columns = linear_sum_assignment(torch.where(distance > gate, 1e6, distance).numpy())
    return {int(here[i]): int(live[j]) for i, j in zip(rows, columns, strict=True) if distance[i, j] <= gate}


def pair(
    model: SCALOR, state: SceneState, slots: dict[int, int], clip: Clip, at: tuple[int, int], who: tuple[int, int]
) -> Pair:
    """Measure one pair of true objects, (front, rear), in a clip and frame."""
    (b, t), (front, rear) = at, who
    if front not in slots or rear not in slots:
        return Pair(front in slots, rear in slots, np.nan, np.nan, np.nan)
    objects, first, second = state.objects, slots[front], slots[rear]
    nearer = float(objects.z_depth[b, first, 0] < objects.z_depth[b, second, 0])
    frame, owner = clip.frames[b, t], clip.truth.owner[b, t]
    own, hiding = owner == rear, owner == front
    hidden = hiding & within(clip.truth.box[b, t, rear], owner)
    if not (hidden.any() and own.any()):
        return Pair(True, True, nearer, np.nan, np.nan)
    sprite = model.appearance.draw(objects.z_what[b : b + 1, second : second + 1])
    layers = torch.cat([sprite.colour * sprite.mask, sprite.mask], 2)
    drawn = paste(layers, objects.where[b : b + 1, second : second + 1], (frame.shape[-2], frame.shape[-1]))[0]
    kept = hidden & (drawn[3] > 0.5)
    colour = (drawn[:3] / drawn[3].clamp(min=1e-5))[:, kept]
    true, other = frame[:, own].mean(1, keepdim=True), frame[:, hiding].mean(1, keepdim=True)
    right = (colour - true).norm(dim=0) < (colour - other).norm(dim=0)
    share = float(kept.sum() / hidden.sum())
    return Pair(True, True, nearer, share, float(right.float().mean()) if len(right) else np.nan)


def within(box: Float[Tensor, "4"], owner: Tensor) -> Tensor:
    """Return the pixels inside a box."""
    rows = torch.arange(owner.shape[0])[:, None] + 0.5
    columns = torch.arange(owner.shape[1]) + 0.5
    return (columns > box[0]) & (columns < box[2]) & (rows > box[1]) & (rows < box[3])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure weights and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("weights", nargs="+", help="shipped names, run folders or files")
    parser.add_argument("--clips", type=int, default=64, help="unseen clips (default: 64)")
    parser.add_argument("--out", type=Path, help="also write the table to this JSON file")
    options = parser.parse_args(arguments)
    rows = []
    for weights in options.weights:
        rows.append(measure(weights, options.clips))
        print(json.dumps(asdict(rows[-1])), flush=True)
    if options.out:
        origin = {"command": command_line(), "commit": commit(), "date": today(), "hardware": hardware(CPU)}
        options.out.write_text(json.dumps({"rows": [asdict(row) for row in rows], **origin}, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
