"""Learning of the parts before the whole: the background without objects, and the appearance of random glimpses.

Objects of an untrained model look like nothing in the frame. Over a background that is already sharp they do harm
wherever they are drawn, so presence or masks fall to zero before they have learned anything. After this phase a sprite
looks like the place it is drawn at, and does no harm.

Letters: B clips, T frames, D glimpses in a frame, H by W pixels, P glimpse side.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from scalor.data.observation import Observation
from scalor.kernels import crop
from scalor.model.elbo import KL_TERMS, Activity, ElboTerms, pixel_log_likelihood
from scalor.model.time_step import World
from scalor.nn.distributions import FrameNoise, Normal, Relaxed


def explain_parts(world: World, video: Observation, estimator: Relaxed) -> tuple[ElboTerms, Activity]:
    """Compute the bound of frames [T, B] without objects, and of glimpses at random places, each by itself.

    The first is terms (1) and (6) of the equation of `scalor.model.elbo.explain`; without a background there is none.
    The second is the bound of a variational autoencoder of glimpses, in nats of the pixels that a box covers.
    """
    length, clips = video.image.shape[:2]
    by_frame = [estimator.at(t) for t in range(length)]
    squared_error, kl_background = explain_background(world, video, by_frame)
    log_likelihood, kl_what = explain_glimpses(world, video, by_frame)
    pixels = video.image[:, 0].numel()
    nothing = video.image.new_zeros(clips)
    kls = dict.fromkeys(KL_TERMS, nothing) | {"kl_background": kl_background, "kl_discovered_what": kl_what}
    counts = dict.fromkeys(Activity.__dataclass_fields__, nothing) | {"squared_error": squared_error.detach() / pixels}
    whole = pixel_log_likelihood(squared_error, pixels, world.config.sigma)
    return ElboTerms(whole + log_likelihood, kls), Activity(**counts)


def explain_background(
    world: World, video: Observation, estimators: list[Relaxed]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return the squared error of the background alone, summed over pixels, and its KL divergence, nats per clip."""
    length, clips = video.image.shape[:2]
    if world.background is None:
        return video.image.new_zeros(clips), video.image.new_zeros(clips)
    memory = world.background.empty(clips, video.image)
    noise = torch.stack([one.normal(Normal.standard(memory.z_bg)) for one in estimators])
    uncovered = torch.zeros_like(video.image[:, :, :1])
    image, kl, _ = world.background(video.image, uncovered, noise, memory, estimators[0])
    squared_error = (image.unflatten(0, (length, clips)) - video.image).square().sum((0, 2, 3, 4))
    return squared_error, kl.sum(0)


def explain_glimpses(
    world: World, video: Observation, estimators: list[Relaxed]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return the log-likelihood of the pixels of random glimpses, and the KL divergence of z_what, nats per clip.

    A glimpse lies where the prior of discovery puts an object that a random cell proposes.
    """
    config, columns = world.config, world.grid(video.size)[1]
    cells = columns * world.grid(video.size)[0]
    likelihoods, kls = [], []
    for t, estimator in enumerate(estimators):
        assert isinstance(estimator.noise, FrameNoise)
        frame = video[t]
        image = frame.image if frame.still is None else torch.cat([frame.image - frame.still, frame.image - 0.5], 1)
        like = image.new_zeros(len(image), min(config.slots, cells), 4)
        chosen = estimator.noise.uniform(image.new_zeros(len(image), cells)).topk(like.shape[1], -1).indices
        where = world.discovery.place(estimator.noise.normal(like), chosen, columns, frame.ruler)
        glimpses = crop(image, where, config.glimpse)
        q_what = world.appearance.infer(glimpses)
        z_what = estimator.normal(q_what)
        error = world.appearance.draw(z_what).colour - crop(frame.image, where, config.glimpse)
        area = where[..., 2:].prod(-1) / config.glimpse**2
        squared_error = (error.float().square().sum((-1, -2, -3)) * area).sum(-1)
        likelihoods.append(-0.5 * squared_error / config.sigma**2)
        kls.append(estimator.normal_cost(q_what, Normal.standard(z_what), z_what).sum((-1, -2)))
    return torch.stack(likelihoods).sum(0), torch.stack(kls).sum(0)
