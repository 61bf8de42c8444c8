"""SQAIR: Sequential Attend, Infer, Repeat (Kosiorek et al., NeurIPS 2018), one file for each part of the model.

The SCALOR paper summarises it in Section 2. In every frame the objects of the last frame are propagated one after the
other, each conditioned on those before it. Then new objects are discovered one after the other, until a stopping
process ends discovery. So the time per frame grows with the number of objects. Training maximises the
importance-weighted bound of k particles, with VIMCO for the discrete choices of presence. Computations that do not
depend on another object run for all objects, clips and particles at once; rendering and the likelihood run for all
frames at once.

The files in reading order: `config` (settings), `state` (records), `sampling`, `networks` (boxes and glimpses,
propagation, discovery), `time_step`, `objective` (whole videos: the bound and its gradient), `sqair` (use).

Differences from the publication, with the reasons:

- Propagation samples presence before z_where and z_what. The latents of a removed object then cost nothing, so the
  importance weights are exact.
- Discovery stops when no slot is free, in prior and posterior alike. So no discovered object is ever dropped.
- The number of discoveries is geometric, as in AIR; the released weights have a categorical prior. Its parameter can
  be annealed in training, as in AIR. Frames after the first, in which few objects appear, have a parameter of their
  own.
- Discovery in later frames also has a posterior head of its own, which starts near that prior. In training, nothing
  can be discovered in the second of two frames, in prior and posterior alike: discovery, already trained on single
  frames, rediscovered all objects there before propagation could learn (docs/log.md).
- Box sizes stay within a range around the expected size, as in SCALOR. Without the range, boxes grew until all of them
  showed the same quarter of the frame, or shrank until they had no gradient.
- Each object is conditioned on the latents of the objects before it, in propagation and in discovery, but these latents
  are detached. Otherwise gradients grow with every object: the location of one glimpse determines its content, which
  determines the location of the next glimpse.
- Objects that are present but draw nothing are not reported: such objects fill slots more often than slots stay empty.
- Discovery starts with a broad posterior of z_where (`discovery_where_shift`). In short runs on one small object, the
  error after 300 steps was half of the error after 500 steps with the published width.
- Frames are in colour, the heads have one hidden layer, the image encoder is a small convolutional network, and the
  optimiser is Adam, as for all systems here.

Letters: B clips, k particles, R = B * k rows (the particles of a clip are consecutive), T frames, N slots,
D steps of discovery, L latents, P glimpse side. A box is (x, y, w, h): centre and size, pixels.
"""

from scalor.baselines.sqair.config import SQAIRConfig
from scalor.baselines.sqair.sqair import SQAIR

__all__ = ["SQAIR", "SQAIRConfig"]
