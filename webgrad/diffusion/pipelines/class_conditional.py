"""DiT: pictures of classes, by a transformer over patches of latents and an autoencoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import webgrad as wg

from ..autoencoders import AutoencoderKL, AutoencoderTiny
from ..transformers import DiTTransformer
from .classes import Classes, Labels, labels_of, numbers_of
from .denoising import Denoiser, with_guidance
from .latents import LatentPipeline, Preview, previews_of
from .requests import number_of, whole_of

__all__ = ["ClassConditional", "from_parts"]


class ClassConditional(LatentPipeline):
    """A transformer that knows classes; `labels` are names of some of them."""

    def __init__(
        self,
        transformer: DiTTransformer,
        vae: AutoencoderKL | AutoencoderTiny,
        scheduler: Any = None,
        labels: Labels | None = None,
    ) -> None:
        super().__init__(vae, scheduler, transformer.config.sample_size, transformer.config.patch_size)
        self.transformer, self.labels = transformer, dict(labels or {})
        self.prediction = with_guidance(self._predict)
        self._denoiser = Denoiser(self.prediction)

    def steps(
        self,
        count: int = 1,
        *,
        classes: Classes,
        steps: int = 50,
        guidance: float = 4.0,
        seed: int | None = None,
        size: tuple[int, int] | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """`count` pictures of a class, or of one class each, after each step; classes by number or name."""
        count, guidance = whole_of(count, "count"), number_of(guidance, "guidance")
        numbers = numbers_of(self.labels, classes, count, self.transformer.classes)
        generator, schedule = wg.random.Generator(seed), self.scheduler.schedule(steps)
        noise = self._noise(noise, count, size, generator)
        none = [self.transformer.classes] * count if guidance > 1 else []
        conditions: dict[str, Any] = {
            "classes": wg.asarray([*none, *numbers], dtype=wg.int32, device=self.device)
        }
        if none:
            conditions["scale"] = guidance
        moments = self._denoiser.run(noise * schedule.start, schedule, conditions, generator)
        yield from previews_of(moments, self)

    def with_scheduler(self, scheduler: Any) -> ClassConditional:
        """The same networks with another scheduler."""
        return ClassConditional(self.transformer, self.vae, scheduler, self.labels)

    def _predict(self, x: wg.Tensor, timestep: Any, conditions: Mapping[str, Any]) -> wg.Tensor:
        prediction = self.transformer(x, timestep, conditions["classes"])
        found: wg.Tensor = prediction[:, : x.shape[1]]  # what is behind it says how sure the network is
        return found


def from_parts(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> ClassConditional:
    """The pipeline of a folder's parts."""
    labels = labels_of(settings, source)
    return ClassConditional(parts["transformer"], parts["vae"], parts["scheduler"], labels)
