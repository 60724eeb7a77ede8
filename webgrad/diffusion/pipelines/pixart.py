"""PixArt, alpha and sigma: a T5 encoder, a transformer that looks at its states, and an autoencoder.

In: prompts. Out: pictures, or what there is of them after each step. Padding of a prompt is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webgrad as wg

from ..autoencoders import AutoencoderKL, AutoencoderTiny
from ..prompts import Prompts
from ..text_encoders import T5Encoder
from ..transformers import PixArtTransformer
from .denoising import Denoiser, with_guidance
from .latents import LatentPipeline, Preview, previews_of
from .requests import negatives_of, number_of, texts_of

__all__ = ["PixArt", "from_parts"]


class PixArt(LatentPipeline):
    """A transformer over patches of latents that looks at a text."""

    def __init__(
        self,
        transformer: PixArtTransformer,
        vae: AutoencoderKL | AutoencoderTiny,
        prompts: Prompts,
        text_encoder: T5Encoder,
        scheduler: Any = None,
    ) -> None:
        super().__init__(vae, scheduler, transformer.config.sample_size, transformer.config.patch_size)
        self.transformer, self.prompts, self.text_encoder = transformer, prompts, text_encoder
        self.prediction = with_guidance(self._predict)
        self._denoiser = Denoiser(self.prediction)
        self._encode = wg.jit(lambda ids, seen: self.text_encoder(ids, seen))

    def steps(
        self,
        prompt: str | Sequence[str],
        *,
        negative: str | Sequence[str] | None = None,
        steps: int = 20,
        guidance: float = 4.5,
        seed: int | None = None,
        size: tuple[int, int] | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """The pictures of prompts after each step; the last ones are those that `__call__` gives.

        `noise` stands for what a seed draws.
        """
        texts, guidance = texts_of(prompt), number_of(guidance, "guidance")
        generator, schedule = wg.random.Generator(seed), self.scheduler.schedule(steps)
        noise = self._noise(noise, len(texts), size, generator)
        with wg.no_grad():
            conditions = self._conditions(texts, negative, guidance, noise.shape[2:])
            begun = noise * schedule.start
        yield from previews_of(self._denoiser.run(begun, schedule, conditions, generator), self)

    def with_scheduler(self, scheduler: Any) -> PixArt:
        """The same networks with another scheduler."""
        return PixArt(self.transformer, self.vae, self.prompts, self.text_encoder, scheduler)

    def _conditions(
        self, texts: Sequence[str], negative: Any, guidance: float, latent: Sequence[int]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {"scale": guidance} if guidance > 1 else {}
        every = [*negatives_of(negative, len(texts), guidance), *texts]
        # The networks were trained on captions of small letters.
        ids, seen = self.prompts.tokens([each.lower().strip() for each in every])
        there = wg.asarray(seen, device=self.device)
        found["context"] = self._encode(wg.asarray(ids, device=self.device), there)
        found["seen"] = there[:, None, None, :]
        if self.transformer.config.takes_sizes:
            size = [[float(each * self.vae.factor) for each in latent]] * len(every)
            found["sizes"] = wg.asarray(size, dtype=wg.float32, device=self.device)
        return found

    def _predict(self, x: wg.Tensor, timestep: Any, conditions: Mapping[str, Any]) -> wg.Tensor:
        given = {name: each for name, each in conditions.items() if name != "scale"}
        prediction = self.transformer(x, timestep, **given)
        found: wg.Tensor = prediction[:, : x.shape[1]]  # what is behind it says how sure the network is
        return found


def from_parts(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> PixArt:
    """The pipeline of a folder's parts."""
    names = ("transformer", "vae", "tokenizer", "text_encoder", "scheduler")
    return PixArt(*(parts[name] for name in names))
