"""What pipelines have in common whose networks work on the latents of an autoencoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from ...arrays import Array
from ..autoencoders import AutoencoderKL, AutoencoderTiny, decode_tiles
from ..schedulers import DDIM
from .denoising import Moment, last_of
from .pictures import as_bytes
from .requests import noise_of, size_of

__all__ = ["LatentPipeline", "Preview", "pictures_of", "previews_of"]

TILE = 64  # places of a latent that are decoded at once


@dataclass(frozen=True, slots=True)
class Preview:
    """Pictures on their way."""

    step: int
    steps: int
    latents: wg.Tensor
    pipeline: Any

    def pictures(self) -> Array:
        """What the pictures would be now: bytes (n, height, width, 3)."""
        return as_bytes(self.pipeline.decoded(self.latents))


def previews_of(moments: Iterator[Moment], pipeline: Any) -> Iterator[Preview]:
    """Previews of what a pipeline makes, after each step."""
    for moment in moments:
        yield Preview(moment.step, moment.steps, moment.latents, pipeline)


class LatentPipeline:
    """An autoencoder and a scheduler; `steps` of each kind has a network.

    `sample_size` is the latents' that the network was trained for, `stride` how many of their places along a
    side the network takes together.
    """

    def __init__(
        self,
        vae: AutoencoderKL | AutoencoderTiny,
        scheduler: Any,
        sample_size: int | Sequence[int] | None,
        stride: int,
    ) -> None:
        self.vae, self.scheduler = vae, scheduler or DDIM(clip_sample=False)
        self._sample_size, self._stride = sample_size or 64, stride
        self._decode = wg.jit(self.decoded_at_once)

    @property
    def device(self) -> Any:
        """Where the networks are."""
        return next(iter(self.vae.parameters())).device

    @property
    def size(self) -> tuple[int, int]:
        """The height and width that it was trained for."""
        given = self._sample_size
        height, width = (given, given) if isinstance(given, int) else given
        return height * self.vae.factor, width * self.vae.factor

    def steps(self, *given: Any, **options: Any) -> Iterator[Preview]:
        """The pictures after each step."""
        raise NotImplementedError

    def __call__(self, *given: Any, **options: Any) -> Array:
        """Pictures: bytes (n, height, width, 3). What is given is as for `steps`."""
        return last_of(self.steps(*given, **options)).pictures()

    @wg.no_grad()
    def decoded(self, latents: wg.Tensor) -> wg.Tensor:
        """Pictures of latents, from -1 to 1; large ones are decoded in tiles."""
        return pictures_of(latents, self.vae, self._decode)

    def decoded_at_once(self, latents: wg.Tensor) -> wg.Tensor:
        """Pictures of latents, from -1 to 1, whatever their size."""
        found: wg.Tensor = self.vae.decode(self.vae.unscaled(latents))
        return found

    def latent_shape(self, count: int, size: tuple[int, int] | None) -> tuple[int, ...]:
        """The shape of the latents of so many pictures of a height and width."""
        return (count, self.vae.config.latent_channels, *self.latent_size(size))

    def latent_size(self, size: tuple[int, int] | None) -> tuple[int, int]:
        """The size of the latents, checked."""
        height, width = size_of(size, self.size)
        step = self.vae.factor * self._stride
        if any(each < step or each % step for each in (height, width)):
            raise wg.ArgumentError(
                f"a picture's height and width are multiples of {step} here, not {(height, width)}"
            )
        return height // self.vae.factor, width // self.vae.factor

    def _noise(
        self, given: wg.Tensor | None, count: int, size: tuple[int, int] | None, generator: Any
    ) -> wg.Tensor:
        """What everything begins with, before it is scaled: drawn where none is given."""
        return noise_of(given, self.latent_shape(count, size), generator, self.device)


def pictures_of(latents: wg.Tensor, vae: Any, decode: Any) -> wg.Tensor:
    """What a captured `decode` makes of latents; large ones are decoded in tiles."""
    if max(latents.shape[2:]) > 2 * TILE:
        return decode_tiles(vae, vae.unscaled(latents), TILE)
    found: wg.Tensor = decode(latents)
    return found
