"""Stable Diffusion: 1.5, 2.1, XL and Turbo; from a prompt, from a picture, or into the hole of one.

In: prompts. Out: pictures, or what there is of them after each step. All of its parts are of one folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import webgrad as wg

from ..autoencoders import AutoencoderKL, AutoencoderTiny
from ..prompts import Prompts
from ..schedulers import Schedule, schedule_from
from ..text_encoders import CLIPText
from ..timesteps import sinusoids
from ..unets import UNet2DCondition
from .denoising import Denoiser, with_guidance
from .latents import LatentPipeline, Preview, previews_of
from .pictures import as_hole, as_values, resized
from .requests import negatives_of, number_of, strength_of, texts_of, whole_of

__all__ = ["StableDiffusion", "from_parts"]

MASKED_CHANNELS = 9  # of networks that were trained to fill holes: latents, the mask, what is around it


@dataclass(frozen=True, slots=True)
class _Begun:
    """Where the steps begin."""

    x: wg.Tensor
    step: int
    keep: Any = None  # what puts back what is to stay


class StableDiffusion(LatentPipeline):
    """A text encoder or two, a U-Net that looks at their states, and an autoencoder."""

    def __init__(
        self,
        unet: UNet2DCondition,
        vae: AutoencoderKL | AutoencoderTiny,
        encoders: Sequence[tuple[Prompts, CLIPText]],
        scheduler: Any = None,
        *,
        empty_is_zero: bool = False,
    ) -> None:
        stride = 1 << (len(unet.config.block_out_channels) - 1)
        super().__init__(vae, scheduler, unet.config.sample_size, stride)
        self.unet, self.encoders = unet, tuple(encoders)
        self.empty_is_zero = empty_is_zero  # whether no negative prompt means states of zeros
        self.is_large = unet.config.addition_embed_type == "text_time"
        self.prediction = with_guidance(self._predict)
        self._denoiser = Denoiser(self.prediction)
        self._encode = wg.jit(self.states)

    def steps(
        self,
        prompt: str | Sequence[str],
        *,
        negative: str | Sequence[str] | None = None,
        steps: int = 30,
        guidance: float = 7.5,
        seed: int | None = None,
        size: tuple[int, int] | None = None,
        picture: Any = None,
        strength: float | None = None,
        mask: Any = None,
        noise: wg.Tensor | None = None,
    ) -> Iterator[Preview]:
        """The pictures of prompts after each step; the last ones are those that `__call__` gives.

        `picture` is where to begin; the closer `strength` is to 1, the less of it is left (0.8 if none is
        given). `mask` is 1 where a picture is to be made anew; everything else stays, or is made like it by
        networks that fill holes. `noise` stands for what a seed draws.
        """
        texts, guidance = texts_of(prompt), number_of(guidance, "guidance")
        self._check_mask(picture, mask)
        share, steps = strength_of(strength, picture), whole_of(steps, "steps")
        begin = 0 if picture is None else min(max(steps - int(steps * share), 0), steps - 1)
        generator, schedule = wg.random.Generator(seed), schedule_from(self.scheduler, steps, begin)
        noise = self._noise(noise, len(texts), size, generator)
        with wg.no_grad():
            conditions = self._conditions(texts, negative, guidance, noise.shape[2:])
            begun = _Begun(noise * schedule.start, 0)
            if picture is not None:
                begun, more = self._begun(picture, mask, noise, schedule, begin)
                conditions |= more
        run = self._denoiser.run
        moments = run(begun.x, schedule, conditions, generator, begin=begun.step, keep=begun.keep)
        yield from previews_of(moments, self)

    def with_scheduler(self, scheduler: Any) -> StableDiffusion:
        """The same networks with another scheduler."""
        return StableDiffusion(
            self.unet, self.vae, self.encoders, scheduler, empty_is_zero=self.empty_is_zero
        )

    # Parts of a step

    def _predict(self, x: wg.Tensor, timestep: Any, conditions: Mapping[str, Any]) -> wg.Tensor:
        given = {name: each for name, each in conditions.items() if name in _FOR_UNET}
        if "around" in conditions:
            around = conditions["around"]
            x = wg.concat([x, wg.broadcast_to(around, (x.shape[0], *around.shape[1:]))], axis=1)
        found: wg.Tensor = self.unet(x, timestep, **given)
        return found

    # What goes before the steps

    def _conditions(
        self, texts: Sequence[str], negative: Any, guidance: float, latent: Sequence[int]
    ) -> dict[str, Any]:
        others = negatives_of(negative, len(texts), guidance)
        context, pooled = self._encoded(texts)
        found: dict[str, Any] = {}
        if others:
            no_context, no_pooled = self._encoded(others)
            if negative is None and self.empty_is_zero:
                no_context, no_pooled = no_context * 0, no_pooled * 0
            context = wg.concat([no_context, context], axis=0)
            pooled = wg.concat([no_pooled, pooled], axis=0)
            found["scale"] = guidance
        found["context"] = context
        return found | self.extras(context.shape[0], pooled, latent, guidance)

    def extras(
        self, count: int, pooled: wg.Tensor, latent: Sequence[int], guidance: Any
    ) -> dict[str, wg.Tensor]:
        """What some networks are told besides: a text's vector and the picture's size, how much is guided."""
        found: dict[str, wg.Tensor] = {}
        if self.is_large:
            height, width = (each * self.vae.factor for each in latent)
            sizes = wg.asarray([[height, width, 0, 0, height, width]], dtype=wg.float32, device=pooled.device)
            found |= {"pooled": pooled, "sizes": wg.broadcast_to(sizes, (count, 6))}
        if self.unet.config.time_cond_proj_dim is not None:
            scale = wg.zeros(count, device=pooled.device) + 1000.0 * (guidance - 1)
            found["guidance"] = sinusoids(scale, self.unet.config.time_cond_proj_dim, shift=1.0)
        return found

    def _encoded(self, texts: Sequence[str]) -> tuple[wg.Tensor, wg.Tensor]:
        ids = [wg.asarray(prompts.ids(texts), device=self.device) for prompts, _ in self.encoders]
        found: tuple[wg.Tensor, wg.Tensor] = self._encode(ids)
        return found

    def states(self, ids: Sequence[wg.Tensor]) -> tuple[wg.Tensor, wg.Tensor]:
        """The states of texts, and their vectors; the XL class takes the states before the last layer."""
        found = [encoder(each) for (_, encoder), each in zip(self.encoders, ids, strict=True)]
        states = [each.every[-2] if self.is_large else each.last for each in found]
        return wg.concat(states, axis=-1), found[-1].pooled

    def _check_mask(self, picture: Any, mask: Any) -> None:
        if self.fills_holes and (picture is None or mask is None):
            raise wg.ArgumentError("the network fills holes of pictures: give picture= and mask=")
        if mask is not None and picture is None:
            raise wg.ArgumentError("a mask says what of a picture is made anew: give picture= too")

    @property
    def fills_holes(self) -> bool:
        """Whether the network was trained to fill holes: it is told of them, and of what is around them."""
        return self.unet.config.in_channels == MASKED_CHANNELS

    def _begun(
        self, picture: Any, mask: Any, noise: wg.Tensor, schedule: Schedule, begin: int
    ) -> tuple[_Begun, dict[str, Any]]:
        """A picture with the noise of step `begin`; what keeps or tells what is outside of a mask."""
        sides = tuple(each * self.vae.factor for each in noise.shape[2:])
        values = resized(as_values(picture, self.device), *sides)
        original = wg.broadcast_to(self._latents_of(values), noise.shape)
        by_picture, by_noise = schedule.noised[begin]
        x = original * by_picture + noise * by_noise
        if mask is None:
            return _Begun(x, begin), {}
        x = x if begin else noise * schedule.start  # all of the hole anew: nothing of it is looked at
        hole = _nearest(as_hole(mask, self.device), sides)
        small = _nearest(hole, noise.shape[2:])
        if self.fills_holes:
            around = self._latents_of(values * (1 - hole))
            return _Begun(x, begin), {"around": wg.concat([small, around], axis=1)}
        return _Begun(x, begin, _keeper(original, noise, small, schedule.noised)), {}

    def _latents_of(self, values: wg.Tensor) -> wg.Tensor:
        encoded = self.vae.encode(values)
        return self.vae.scaled(encoded if isinstance(encoded, wg.Tensor) else encoded.mode())


_FOR_UNET = frozenset({"context", "pooled", "sizes", "guidance"})


def _nearest(values: wg.Tensor, sides: Sequence[int]) -> wg.Tensor:
    found: wg.Tensor = wg.nn.functional.interpolate(values, size=tuple(sides), mode="nearest")
    return found


def _keeper(original: wg.Tensor, noise: wg.Tensor, hole: wg.Tensor, noised: Sequence[Any]) -> Any:
    """What puts back everything but the hole, with the noise that there is after a step."""
    mix = wg.jit(lambda x, a, b: x * hole + (original * a + noise * b) * (1 - hole))

    def keep(x: wg.Tensor, following: int) -> wg.Tensor:
        by_picture, by_noise = noised[following] if following < len(noised) else (1.0, 0.0)
        found: wg.Tensor = mix(x, float(by_picture), float(by_noise))
        return found

    return keep


def from_parts(parts: Mapping[str, Any], settings: Mapping[str, Any], source: str) -> StableDiffusion:
    """The pipeline of a folder's parts."""
    names = [each for each in ("text_encoder", "text_encoder_2") if parts.get(each) is not None]
    encoders = [(parts[each.replace("text_encoder", "tokenizer")], parts[each]) for each in names]
    return StableDiffusion(
        parts["unet"],
        parts["vae"],
        encoders,
        parts["scheduler"],
        empty_is_zero=bool(settings.get("force_zeros_for_empty_prompt", False)),
    )
