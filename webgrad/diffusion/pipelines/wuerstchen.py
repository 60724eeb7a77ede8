"""Würstchen: a prior that lays a picture out on a few places, a decoder, and an autoencoder.

In: prompts. Out: pictures, or what there is of them after each step. A stage is a pipeline of its own, out of
a folder of its own, so that one of them may be let go before the other one is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import webgrad as wg

from ...arrays import Array
from ..paella import PaellaVQ
from ..prompts import Prompts
from ..schedulers import DDPMWuerstchen
from ..text_encoders import CLIPText
from ..wuerstchen import DiffNeXt, Prior
from .denoising import Denoiser, last_of, with_guidance
from .latents import Preview, pictures_of, previews_of
from .requests import check_noise, negatives_of, noise_of, number_of, size_of, texts_of

__all__ = [
    "Wuerstchen",
    "WuerstchenDecoder",
    "WuerstchenPrior",
    "combined",
    "decoder_alone",
    "of_stages",
    "prior_alone",
]

USUAL_SIZE = (1024, 1024)  # height and width
MOST_PIXELS = 1 << 14  # along a side
LIMITS = {"resolution_multiple": (1, 1000), "latent_dim_scale": (1, 1000)}  # of settings that make sizes


class _Stage:
    """A text encoder, and a network that makes latents of noise and what it is told."""

    def __init__(self, prompts: Prompts, encoder: CLIPText, network: Any, scheduler: Any) -> None:
        self.prompts, self.encoder, self.network = prompts, encoder, network
        self.scheduler: DDPMWuerstchen = scheduler or DDPMWuerstchen()
        self._denoiser = Denoiser(with_guidance(self._predict))
        self._encode = wg.jit(lambda ids, seen: self.encoder(ids, seen).last)

    @property
    def device(self) -> Any:
        """Where the networks are."""
        return self.encoder.text_model.embeddings.token_embedding.weight.device

    def check(self, noise: wg.Tensor | None, shape: tuple[int, ...], steps: int) -> None:
        """Raise for noise of another shape and for steps that there are not, before anything is computed."""
        check_noise(noise, shape)
        self.scheduler.schedule(steps)

    def _states(self, texts: Sequence[str], negative: Any, guidance: float) -> wg.Tensor:
        """The states of prompts, behind those of negative ones if these count."""
        every = [*negatives_of(negative, len(texts), guidance), *texts]
        ids, seen = (wg.asarray(each, device=self.device) for each in self.prompts.tokens(every))
        found: wg.Tensor = self._encode(ids, seen)
        return found

    def _predict(self, x: wg.Tensor, time: Any, conditions: Mapping[str, Any]) -> wg.Tensor:
        found: wg.Tensor = self.network(x, time, *conditions["told"])
        return found

    def _run(
        self, x: wg.Tensor, told: Sequence[Any], steps: int, guidance: float, generator: Any
    ) -> Iterator[Preview]:
        conditions = {"told": tuple(told)} | ({"scale": guidance} if guidance > 1 else {})
        moments = self._denoiser.run(x, self.scheduler.schedule(steps), conditions, generator)
        yield from previews_of(moments, self)


class WuerstchenPrior(_Stage):
    """From prompts to latents on places of 42 by 42 pixels, which the decoder is told."""

    network: Prior

    def __init__(
        self,
        prompts: Prompts,
        encoder: CLIPText,
        network: Prior,
        scheduler: Any = None,
        *,
        latent_mean: float = 42.0,
        latent_std: float = 1.0,
        resolution_multiple: float = 42.67,
    ) -> None:
        super().__init__(prompts, encoder, network, scheduler)
        self.latent_mean, self.latent_std = latent_mean, latent_std
        self.resolution_multiple = resolution_multiple  # pixels along a place

    def steps(
        self,
        prompt: str | Sequence[str],
        *,
        negative: str | Sequence[str] | None = None,
        steps: int = 60,
        guidance: float = 4.0,
        seed: int | None = None,
        size: tuple[int, int] = USUAL_SIZE,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """What there is after each step; `latents_of` the last preview is what the decoder takes."""
        return self._drawn(
            prompt, negative, steps, guidance, wg.random.Generator(seed), size=size, noise=noise
        )

    def __call__(self, prompt: str | Sequence[str], **options: Any) -> wg.Tensor:
        """The latents (n, channels, height, width) of prompts. The options are those of `steps`."""
        return self.latents_of(last_of(self.steps(prompt, **options)))

    def latents_of(self, preview: Preview) -> wg.Tensor:
        """A preview's latents as the decoder takes them."""
        with wg.no_grad():
            return preview.latents * self.latent_mean - self.latent_std

    def places(self, size: tuple[int, int]) -> tuple[int, int]:
        """How many places there are of a picture of this height and width."""
        height, width = size_of(size, USUAL_SIZE)
        if max(height, width) > MOST_PIXELS:
            raise wg.ArgumentError(f"a picture's sides are 1 to {MOST_PIXELS:,} here, not {size}")
        return math.ceil(height / self.resolution_multiple), math.ceil(width / self.resolution_multiple)

    def shape_of(self, count: int, size: tuple[int, int]) -> tuple[int, ...]:
        """The latents' of so many pictures of this height and width."""
        return (count, self.network.config.c_in, *self.places(size))

    def _drawn(
        self,
        prompt: str | Sequence[str],
        negative: Any,
        steps: int,
        guidance: float,
        generator: Any,
        *,
        size: tuple[int, int],
        noise: wg.Tensor | None,
    ) -> Iterator[Preview]:
        texts, guidance = texts_of(prompt), number_of(guidance, "guidance")
        shape = self.shape_of(len(texts), size)
        self.check(noise, shape, steps)
        with wg.no_grad():
            states = self._states(texts, negative, guidance)
            x = noise_of(noise, shape, generator, self.device)
        yield from self._run(x, (states,), steps, guidance, generator)

    @wg.no_grad()
    def decoded(self, latents: wg.Tensor) -> wg.Tensor:
        """Three channels as colours, since nothing of these latents is a picture yet; from -1 to 1."""
        shown = latents[:, :3]
        found: wg.Tensor = shown / wg.max(wg.abs(shown), axis=(1, 2, 3), keepdims=True)
        return found


class WuerstchenDecoder(_Stage):
    """From the prior's latents, and prompts, to pictures."""

    network: DiffNeXt

    def __init__(
        self,
        prompts: Prompts,
        encoder: CLIPText,
        network: DiffNeXt,
        vqgan: PaellaVQ,
        scheduler: Any = None,
        *,
        latent_dim_scale: float = 10.67,
    ) -> None:
        super().__init__(prompts, encoder, network, scheduler)
        self.vqgan = vqgan
        self.latent_dim_scale = latent_dim_scale  # places of a latent along one of the prior's
        self._conditions = wg.jit(network.conditions, static=("size",))
        self._decode = wg.jit(lambda latents: vqgan.decode(vqgan.unscaled(latents)))

    def steps(
        self,
        latents: wg.Tensor,
        prompt: str | Sequence[str] = "",
        *,
        negative: str | Sequence[str] | None = None,
        steps: int = 12,
        guidance: float = 0.0,
        seed: int | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """The pictures of the prior's latents after each step."""
        return self._drawn(latents, prompt, negative, steps, guidance, wg.random.Generator(seed), noise=noise)

    def __call__(self, latents: wg.Tensor, prompt: str | Sequence[str] = "", **options: Any) -> Array:
        """Pictures: bytes (n, height, width, 3). The options are those of `steps`."""
        return last_of(self.steps(latents, prompt, **options)).pictures()

    def size_of(self, places: Sequence[int]) -> tuple[int, int]:
        """The height and width of latents here, of the prior's; raises for those that do not fit."""
        height, width = (int(each * self.latent_dim_scale) for each in places)
        if (
            min(height, width) < 1
            or height % self.network.config.smallest
            or width % self.network.config.smallest
        ):
            sides = ", ".join(str(each) for each in self.sides())
            raise wg.ArgumentError(
                f"{tuple(places)} places of the prior are latents of ({height}, {width}), which do not fit "
                f"the decoder's levels; sides of pictures that do are {sides} …"
            )
        return height, width

    def shape_of(self, count: int, places: Sequence[int]) -> tuple[int, ...]:
        """The latents' of so many pictures, of so many places of the prior."""
        return (count, self.network.config.c_in, *self.size_of(places))

    def sides(self, count: int = 6) -> list[int]:
        """The shortest sides that pictures have here."""
        found: list[int] = []
        for places in range(1, 1000):
            side = int(places * self.latent_dim_scale)
            if side and side % self.network.config.smallest == 0 and len(found) < count:
                found.append(side * self.vqgan.factor)
        return found

    def _drawn(
        self,
        latents: wg.Tensor,
        prompt: str | Sequence[str],
        negative: Any,
        steps: int,
        guidance: float,
        generator: Any,
        *,
        noise: wg.Tensor | None,
    ) -> Iterator[Preview]:
        texts, guidance, count = texts_of(prompt), number_of(guidance, "guidance"), latents.shape[0]
        texts = texts * count if len(texts) == 1 else texts
        if len(texts) != count:
            raise wg.ArgumentError(f"there are {count} latents of the prior and {len(texts)} prompts")
        shape = self.shape_of(count, latents.shape[2:])
        self.check(noise, shape, steps)
        with wg.no_grad():
            states = self._states(texts, negative, guidance)
            if guidance > 1:
                latents = wg.concat([latents * 0, latents], axis=0)
            told = self._conditions(latents, states, size=shape[2:])
            x = noise_of(noise, shape, generator, self.device)
        yield from self._run(x, told, steps, guidance, generator)

    @wg.no_grad()
    def decoded(self, latents: wg.Tensor) -> wg.Tensor:
        """Pictures of latents, from -1 to 1; large ones are decoded in tiles."""
        found = pictures_of(latents, self.vqgan, self._decode)
        return wg.clip(found, 0.0, 1.0) * 2 - 1


class Wuerstchen:
    """Both stages, one after the other."""

    def __init__(self, prior: WuerstchenPrior, decoder: WuerstchenDecoder) -> None:
        self.prior, self.decoder = prior, decoder

    @property
    def device(self) -> Any:
        """Where the decoder is."""
        return self.decoder.device

    def steps(
        self,
        prompt: str | Sequence[str],
        *,
        negative: str | Sequence[str] | None = None,
        prior_steps: int = 60,
        prior_guidance: float = 4.0,
        steps: int = 12,
        guidance: float = 0.0,
        seed: int | None = None,
        size: tuple[int, int] = USUAL_SIZE,
        prior_noise: wg.Tensor | None = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """What there is after each step of the prior, and after each one of the decoder.

        Previews of the prior show where things will be, in three of its channels. The noises stand for what
        a seed draws. A negative prompt counts in stages whose guidance is above 1.
        """
        texts, size = texts_of(prompt), size_of(size, USUAL_SIZE)
        prior_guidance = number_of(prior_guidance, "prior_guidance")
        guidance = number_of(guidance, "guidance")
        negatives_of(negative, len(texts), max(prior_guidance, guidance))
        self._check_size(size)
        self.decoder.check(noise, self.decoder.shape_of(len(texts), self.prior.places(size)), steps)
        generator = wg.random.Generator(seed)
        of_prior, of_decoder = (negative if each > 1 else None for each in (prior_guidance, guidance))
        preview = None
        for preview in self.prior._drawn(
            texts, of_prior, prior_steps, prior_guidance, generator, size=size, noise=prior_noise
        ):
            yield Preview(preview.step, prior_steps + steps, preview.latents, self.prior)
        assert preview is not None  # of at least one step
        latents = self.prior.latents_of(preview).to_device(self.device)
        for preview in self.decoder._drawn(
            latents, texts, of_decoder, steps, guidance, generator, noise=noise
        ):
            yield Preview(prior_steps + preview.step, prior_steps + steps, preview.latents, self.decoder)

    def __call__(self, prompt: str | Sequence[str], **options: Any) -> Array:
        """Pictures of prompts: bytes (n, height, width, 3). The options are those of `steps`."""
        return last_of(self.steps(prompt, **options)).pictures()

    def _check_size(self, size: tuple[int, int]) -> None:
        factor = self.decoder.vqgan.factor
        height, width = self.decoder.size_of(self.prior.places(size))
        if (height * factor, width * factor) != tuple(size):
            sides = ", ".join(str(each) for each in self.decoder.sides())
            raise wg.ArgumentError(f"a picture's sides are of {sides} … here, not {size}")


def prior_alone(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> WuerstchenPrior:
    """The prior of a folder's parts."""
    chosen = _chosen(parts, source, "tokenizer", "text_encoder", "prior", "scheduler")
    return WuerstchenPrior(*chosen, **_numbers(settings, source, *_OF_PRIOR))


def decoder_alone(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> WuerstchenDecoder:
    """The decoder of a folder's parts."""
    chosen = _chosen(parts, source, "tokenizer", "text_encoder", "decoder", "vqgan", "scheduler")
    return WuerstchenDecoder(*chosen, **_numbers(settings, source, *_OF_DECODER))


def combined(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> Wuerstchen:
    """Both stages of one folder's parts, of which the prior's have names of their own."""
    of_prior = {key.removeprefix(PRIOR): part for key, part in parts.items() if key.startswith(PRIOR)}
    return Wuerstchen(prior_alone(of_prior, {}, source), decoder_alone(parts, {}, source))


def of_stages(prior: Any, decoder: Any, source: str) -> Wuerstchen:
    """Both stages, each out of a folder of its own."""
    for stage, kind in ((prior, WuerstchenPrior), (decoder, WuerstchenDecoder)):
        if not isinstance(stage, kind):
            raise wg.ModelFileError(f"{source}: there is a {type(stage).__name__}, and no {kind.__name__}")
    return Wuerstchen(prior, decoder)


PRIOR = "prior_"
_OF_PRIOR, _OF_DECODER = ("latent_mean", "latent_std", "resolution_multiple"), ("latent_dim_scale",)
_KINDS = {
    "tokenizer": Prompts, "text_encoder": CLIPText, "prior": Prior, "decoder": DiffNeXt, "vqgan": PaellaVQ,
    "scheduler": DDPMWuerstchen,
}  # fmt: skip


def _chosen(parts: Mapping[str, Any], source: str, *names: str) -> list[Any]:
    """Parts by their names; raises for one of another class than it must be."""
    for name in names:
        if not isinstance(parts[name], _KINDS[name]):
            found, wanted = type(parts[name]).__name__, _KINDS[name].__name__
            raise wg.ModelFileError(f"{source}: its {name} is a {found}, and Würstchen's is a {wanted}")
    return [parts[name] for name in names]


def _numbers(settings: Mapping[str, Any], source: str, *names: str) -> dict[str, Any]:
    """Some settings, which are numbers."""
    found = {name: settings[name] for name in names if name in settings}
    for name, value in found.items():
        low, high = LIMITS.get(name, (-math.inf, math.inf))
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise wg.ModelFileError(f"{source}: {name} is {value!r}, not a number from {low} to {high}")
    return found
