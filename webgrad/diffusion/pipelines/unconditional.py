"""Pictures of nothing in particular, or of a class: a U-Net in the pictures' own space.

A network that was trained with classes left out knows one class more than there are names: the last one
stands for none, and guidance is by the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array
from ..schedulers import DDIM
from .classes import Classes, Labels, labels_of, numbers_of
from .denoising import Denoiser, last_of, with_guidance
from .latents import Preview, previews_of
from .requests import noise_of, number_of, size_of, whole_of

__all__ = ["Unconditional", "from_parts"]


class Unconditional:
    """A U-Net without a text, a scheduler, and the names of classes where there are some."""

    def __init__(self, unet: Any, scheduler: Any = None, labels: Labels | Sequence[str] = ()) -> None:
        self.unet, self.scheduler = unet, scheduler or DDIM()
        self.labels = dict(labels) if isinstance(labels, Mapping) else dict(enumerate(labels))
        self.prediction = with_guidance(self._predict)
        self._denoiser = Denoiser(self.prediction)

    @property
    def device(self) -> Any:
        """Where the network is."""
        return self.unet.device

    @property
    def no_class(self) -> int | None:
        """The number that stands for no class, None where the network knows none that does."""
        known = self.unet.config.num_class_embeds
        return known - 1 if known is not None and self.labels and known == len(self.labels) + 1 else None

    @property
    def size(self) -> tuple[int, int]:
        """The height and width that it was trained for."""
        given = self.unet.config.sample_size or 64
        return (given, given) if isinstance(given, int) else given

    def steps(
        self,
        count: int = 1,
        *,
        classes: Classes | None = None,
        guidance: float = 1.0,
        steps: int = 50,
        seed: int | None = None,
        size: tuple[int, int] | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """`count` pictures after each step; of classes, by number or name, where the network knows some.

        `guidance` is how much a class counts, for networks that know what no class is; 1 is as they are.
        """
        count = whole_of(count, "count")
        conditions = self.conditions(classes, count, guidance)
        generator = wg.random.Generator(seed)
        schedule = self.scheduler.schedule(steps)
        shape = (count, self.unet.config.in_channels, *size_of(size, self.size))
        noise = noise_of(noise, shape, generator, self.device)
        moments = self._denoiser.run(noise * schedule.start, schedule, conditions, generator)
        yield from previews_of(moments, self)

    def __call__(self, count: int = 1, **options: Any) -> Array:
        """Pictures: bytes (count, height, width, channels). The options are those of `steps`."""
        return last_of(self.steps(count, **options)).pictures()

    def conditions(self, classes: Classes | None, count: int, guidance: float = 1.0) -> dict[str, Any]:
        """What a step is given beside pictures: classes, and how much they count."""
        known, no_class = self.unet.config.num_class_embeds, self.no_class
        if classes is not None and self.unet.class_embedding is None:
            raise wg.ArgumentError(f"the network knows no classes, and it was asked for {classes!r}")
        guidance = number_of(guidance, "guidance")
        if classes is None and guidance != 1:
            raise wg.ArgumentError(f"guidance {guidance:g} is for pictures of a class: give classes=")
        wanted = no_class if classes is None else classes
        if wanted is None:
            return {}
        numbers = numbers_of(self.labels, wanted, count, known)
        if guidance == 1:
            return {"classes": wg.asarray(numbers, dtype=wg.int32, device=self.device)}
        if no_class is None:
            raise wg.ArgumentError(f"guidance {guidance:g} needs a network that knows what no class is")
        both = wg.asarray([no_class] * count + numbers, dtype=wg.int32, device=self.device)
        return {"classes": both, "scale": guidance}

    def decoded(self, latents: wg.Tensor) -> wg.Tensor:
        """The pictures themselves."""
        return latents

    def with_scheduler(self, scheduler: Any) -> Unconditional:
        """The same network with another scheduler."""
        return Unconditional(self.unet, scheduler, self.labels)

    # Parts of a step

    def _predict(self, x: wg.Tensor, timestep: Any, conditions: Mapping[str, Any]) -> wg.Tensor:
        found: wg.Tensor = self.unet(x, timestep, conditions.get("classes"))
        return found


def from_parts(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> Unconditional:
    """The pipeline of a folder's parts."""
    return Unconditional(parts["unet"], parts["scheduler"], labels_of(settings, source))
