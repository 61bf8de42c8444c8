"""SQAIR as a tracker: tracking, reconstruction, generation and likelihood of videos."""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from scalor.baselines.sqair.objective import Objective, importance_weighted_bound
from scalor.baselines.sqair.sampling import ModeSampler, samplers_of
from scalor.baselines.sqair.state import DiscoveryPrior, SQAIRState
from scalor.data.observation import Observation, check_frames, check_image
from scalor.errors import InputError, require
from scalor.kernels import paste
from scalor.model.compiled import follow_frames
from scalor.model.geometry import tight_box
from scalor.model.sighting import Sighting, gather_tracks
from scalor.nn.distributions import Estimator, Mode, Noise
from scalor.nn.interface import Rollout
from scalor.tracks import Tracks

SHOWN = 0.1
"""Smallest brightness that the brightest pixel of an object needs; darker objects are not reported."""


class SQAIR(Objective):
    """The SQAIR model: `track`, `stream`, `reconstruct`, `generate`, `log_likelihood`, and `bound` for training."""

    @torch.no_grad()
    def log_likelihood(
        self, frames: object, samples: int = 10, presence_prior: float | None = None
    ) -> Float[Tensor, " B"]:
        """Return the importance-weighted lower bound on log p(video), nats per clip.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        samples
            Number of particles; the bound rises with it.
        presence_prior
            Prior probability of one more discovery in the first frame. Default: `first_discovery` of the config.
        """
        require(samples >= 1, "samples", samples, "at least 1 is needed")
        video = self.receive(frames, minimum=1)
        draws = samplers_of(self.fresh_noise(video, video.shape[1], samples), video.shape[1], samples)
        return importance_weighted_bound(
            self.explain(
                video, draws, samples, DiscoveryPrior(presence_prior or self.config.first_discovery)
            ).log_weights
        )

    @torch.inference_mode()
    def track(self, frames: object, masks: bool = False) -> Tracks:
        """Return every object of every frame, with its identity.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        masks
            Whether to return visible masks as well.
        """
        video = self.receive(frames, minimum=2)
        return gather_tracks(list(self.watch(video.unbind(1), masks)), self.config.frame)

    @torch.inference_mode()
    def stream(self, frames: Iterable[object], masks: bool = False) -> Iterator[Tracks]:
        """Track frame by frame ([3, H, W] each) and yield one `Tracks` per frame; memory use does not grow."""
        images = (self.receive_frame(frame) for frame in frames)
        for t, sighting in enumerate(self.watch(images, masks)):
            yield gather_tracks([sighting], self.config.frame, first_frame=t)

    @torch.inference_mode()
    def reconstruct(self, frames: object) -> Rollout:
        """Return the reconstructed frames, a black background and the tracks."""
        video = self.receive(frames, minimum=1)
        return self.generate(video, observe=video.shape[1], horizon=0)

    @torch.inference_mode()
    def generate(
        self,
        frames: object,
        observe: int = 5,
        horizon: int = 5,
        discovery_rate: float = 0.0,
        estimator: Estimator | None = None,
    ) -> Rollout:
        """Infer the latents of `observe` frames, then generate `horizon` frames from the prior.

        Parameters
        ----------
        frames
            [T, 3, H, W] or [B, T, 3, H, W] in [0, 1].
        observe
            Number of observed frames.
        horizon
            Number of generated frames.
        discovery_rate
            Probability of one more new object in a generated frame, applied repeatedly until none appears, at most
            `discoveries` times.
        estimator
            `Mode()` for the most likely future; otherwise the future is drawn at random.

        Returns
        -------
        Rollout
            Observed frames (reconstructed) and generated ones, a black background, and tracks.
        """
        require(observe >= 1, "observe", observe, "at least 1 frame must be seen")
        require(horizon >= 0, "horizon", horizon, "it must be 0 or more")
        require(0 <= discovery_rate < 1, "discovery_rate", discovery_rate, "it must lie between 0 and 1")
        video = self.receive(frames, minimum=observe)
        scenes = self.explain(video[:, :observe], [ModeSampler()] * observe, particles=1).scenes
        likely = isinstance(estimator, Mode)
        draws = [ModeSampler()] * horizon if likely else samplers_of(self.fresh_noise(video, horizon, 1), horizon, 1)
        for draw in draws:
            scenes.append(self.imagine(scenes[-1], draw, discovery_rate))
        pictures = self.paint(scenes).transpose(0, 1).clamp(0, 1)
        tracks = gather_tracks([self.sight(scene) for scene in scenes], self.config.frame)
        return Rollout(pictures, torch.zeros_like(pictures), tracks)

    @torch.inference_mode()
    def object_pictures(self, frames: object) -> Float[Tensor, "B T N 3 P P"]:
        """Return the rendering of every slot alone, over black, in every frame; empty slots are black."""
        video = self.receive(frames, minimum=1)
        scenes = self.explain(video, [ModeSampler()] * video.shape[1], particles=1).scenes
        return torch.stack([self.pictures(scene) for scene in scenes], 1)

    def watch(self, images: Iterable[Tensor], masks: bool) -> Iterator[Sighting]:
        """Yield the most likely objects under the posterior, one frame [B, 3, H, W] at a time."""

        def start(frame: Observation) -> SQAIRState:
            return self.start(len(frame), frame.image)

        def see(scene: SQAIRState, frame: Observation) -> tuple[SQAIRState, Sighting]:
            (view,) = self.encode(frame.image[None], particles=1)
            scene = self.infer(scene, view, ModeSampler()).scene
            return scene, self.sight(scene, masks)

        return (sighting for _, sighting in follow_frames(start, see, map(Observation, images)))

    def sight(self, scene: SQAIRState, masks: bool = False) -> Sighting:
        """Return the sighting of a scene.

        A box encloses the pixels that are more than half as bright as the object's brightest pixel.
        """
        glimpses = self.pictures(scene)
        brightness = glimpses.amax(2, keepdim=True)  # [B, N, 1, P, P]
        brightest = brightness.amax((-1, -2), keepdim=True)
        shape = brightness / brightest.clamp(min=1e-6)
        where = self.appearance.box(scene.latent[..., :4])
        return Sighting(
            torch.where(brightest[..., 0, 0, 0] >= SHOWN, scene.id, -1),
            tight_box(shape, where),
            scene.presence[..., 0],
            scene.discovered[..., 0] > 0,
            torch.zeros_like(where[:, 0, 0]),
            self.visible(shape * scene.present[..., None, None], brightness, where) if masks else None,
        )

    def visible(
        self, shape: Float[Tensor, "B N 1 P P"], brightness: Float[Tensor, "B N 1 P P"], where: Float[Tensor, "B N 4"]
    ) -> Bool[Tensor, "B N H W"]:
        """Return the visible mask of each object: its drawn pixels in which no other object is brighter."""
        layers = torch.cat([shape, brightness], 2).flatten(0, 1)[:, None]
        canvas = paste(layers, where.flatten(0, 1)[:, None], self.config.frame)
        drawn, bright = canvas.view(*where.shape[:2], 2, *self.config.frame).unbind(2)
        brightest = bright.argmax(1, keepdim=True)
        mine = brightest == torch.arange(where.shape[1], device=where.device)[:, None, None]
        return mine & (drawn > 0.5)

    def pictures(self, scene: SQAIRState) -> Float[Tensor, "B N 3 P P"]:
        """Return the glimpse of every slot; black where the slot is empty."""
        return self.appearance.draw(scene.latent[..., 4:]) * scene.present[..., None, None]

    def fresh_noise(self, like: Tensor, frames: int, particles: int) -> Noise:
        """Return noise from torch's global random state, for use outside of training."""
        normals, uniforms = self.numbers_per_frame(particles)
        return Noise(
            torch.randn(frames, len(like), normals, device=like.device),
            torch.rand(frames, len(like), uniforms, device=like.device),
        )

    def receive(self, frames: object, minimum: int) -> Float[Tensor, "B T 3 H W"]:
        """Check frames given by the user and return them on the model's device."""
        return self.fitting(check_frames(frames, (1, 1), minimum))

    def receive_frame(self, frame: object) -> Float[Tensor, "1 3 H W"]:
        """Check one frame given by the user and return it on the model's device."""
        return self.fitting(check_image(frame, (1, 1)).image[None])[:, 0]

    def fitting(self, video: Float[Tensor, "B T 3 H W"]) -> Float[Tensor, "B T 3 H W"]:
        """Check that frames have the size the weights are for and return them on the model's device."""
        misfit = self.config.misfit((video.shape[-2], video.shape[-1]))
        if misfit:
            raise InputError(f"frames has shape {list(video.shape)}: {misfit}.")
        return video.to(next(self.parameters()).device)
