"""Pictures of nothing in particular, or of a class: a U-Net in the pictures' own space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array
from ..schedulers import DDIM
from ..unets import UNet2D
from .denoising import Denoiser, last_of
from .latents import Preview

__all__ = ["Unconditional", "from_parts"]


class Unconditional:
    """A U-Net without a text, and a scheduler."""

    def __init__(self, unet: UNet2D, scheduler: Any = None) -> None:
        self.unet, self.scheduler = unet, scheduler or DDIM()
        self._denoiser = Denoiser(lambda x, time, conditions: self.unet(x, time, **conditions))

    @property
    def device(self) -> Any:
        """Where the network is."""
        return self.unet.conv_in.weight.device

    def steps(
        self,
        count: int = 1,
        *,
        classes: int | Sequence[int] | None = None,
        steps: int = 50,
        seed: int | None = None,
        size: tuple[int, int] | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """`count` pictures after each step; of classes, where the network knows some."""
        given = size or self.unet.config.sample_size or 64
        height, width = (given, given) if isinstance(given, int) else given
        generator = wg.random.Generator(seed)
        schedule = self.scheduler.schedule(steps)
        if noise is None:
            noise = generator.normal((count, self.unet.config.in_channels, height, width), device=self.device)
        conditions = {}
        if classes is not None:
            numbers = [classes] * count if isinstance(classes, int) else list(classes)
            conditions["classes"] = wg.asarray(numbers, dtype=wg.int32, device=self.device)
        for moment in self._denoiser.run(noise * schedule.start, schedule, conditions, generator):
            yield Preview(moment.step, moment.steps, moment.latents, self)

    def __call__(self, count: int = 1, **options: Any) -> Array:
        """Pictures: bytes (count, height, width, channels). The options are those of `steps`."""
        return last_of(self.steps(count, **options)).pictures()

    def decoded(self, latents: wg.Tensor) -> wg.Tensor:
        """The pictures themselves."""
        return latents


def from_parts(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> Unconditional:
    """The pipeline of a folder's parts."""
    return Unconditional(parts["unet"], parts["scheduler"])
