"""What a page that paints needs of each kind of pipeline: conditions of a step, texts, and pictures.

In: a pipeline, and how much conditions count. Out: a `Painter`, whose methods run while functions are traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import webgrad as wg
from webgrad.diffusion import ClassConditional, StableDiffusion, Unconditional
from webgrad.errors import ArgumentError

from .bundle import Bundle
from .tokenizer_data import engine_spec, written

__all__ = [
    "LEAST_GUIDANCE",
    "MOST_GUIDANCE",
    "ClassPainter",
    "LatentClassPainter",
    "Layout",
    "Painter",
    "TextPainter",
]

SMALL = 64  # places of a side: of smaller pictures a page offers several at once
SEVERAL = 16
CLASS_GUIDANCE, TEXT_GUIDANCE = 2.0, 7.5
LEAST_GUIDANCE, MOST_GUIDANCE = 1, 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """So many pictures at once, of a size."""

    count: int
    height: int
    width: int

    @property
    def name(self) -> str:
        """What functions and state of it end in."""
        return f"{self.count}_{self.height}_{self.width}"

    @property
    def facts(self) -> dict[str, Any]:
        """What the page is told."""
        return {"name": self.name, **asdict(self)}


class Painter(Protocol):
    """A pipeline as a page sees it."""

    pipe: Any
    modules: Sequence[Any]
    state: Sequence[tuple[str, wg.Tensor]]  # tensors that layouts share, such as a text's, by their names
    told: str
    facts: Mapping[str, Any]

    def add_to(self, bundle: Bundle) -> None:
        """Add the functions that come before all layouts."""

    def usual_counts(self, size: tuple[int, int]) -> Sequence[int]:
        """How many pictures of a size at once."""

    def latents(self, layout: Layout) -> tuple[int, ...]:
        """The shape of what steps work on."""

    def examples(self, layout: Layout) -> dict[str, Any]:
        """What a step takes beside its row's numbers."""

    def prediction(self, x: wg.Tensor, timestep: Any, layout: Layout, given: Mapping[str, Any]) -> wg.Tensor:
        """What the network says."""

    def decoded(self, x: wg.Tensor) -> wg.Tensor:
        """Pictures (n, channels, height, width) from -1 to 1."""

    def files(self) -> dict[str, bytes]:
        """What the page has beside the bundle."""


def _guidance(given: float | None, usual: float) -> float:
    """What a page begins with; 1 is without guidance."""
    found = usual if given is None else given
    if not LEAST_GUIDANCE <= found <= MOST_GUIDANCE:
        raise ArgumentError(
            f"export: guidance is a number from {LEAST_GUIDANCE} to {MOST_GUIDANCE}, not {found}"
        )
    return float(found)


class ClassPainter:
    """Pictures of classes, or of nothing in particular, by a network in the pictures' own space."""

    state: Sequence[tuple[str, wg.Tensor]] = ()

    def __init__(self, pipe: Unconditional, guidance: float | None = None) -> None:
        kind = getattr(pipe.unet.config, "class_embed_type", None)  # a graph has no such setting
        if kind is not None:
            raise ArgumentError(f"export: there is no page for classes with class_embed_type={kind!r}")
        known = pipe.unet.config.num_class_embeds or 0
        numbers = [each for each in range(known) if each != pipe.no_class]
        self._set(pipe, [pipe.unet], numbers, pipe.no_class, guidance)
        if not isinstance(pipe.unet, wg.nn.Module):  # a graph puts its numbers in place when it runs first
            x = wg.zeros(self.latents(Layout(1, *pipe.size)), device=pipe.device)
            wg.eval(pipe.prediction(x, 1.0, {}))

    def _set(
        self,
        pipe: Any,
        modules: Sequence[Any],
        numbers: Sequence[int],
        none: int | None,
        guidance: float | None,
    ) -> None:
        self.pipe, self.modules, self.numbers, self.no_class = pipe, modules, numbers, none
        usual = CLASS_GUIDANCE if none is not None else 1.0
        self.guidance = _guidance(guidance, usual)
        if self.guidance > 1 and none is None:
            raise ArgumentError(
                f"export: guidance {self.guidance:g} needs a network that knows what no class is"
            )
        self.told = f"{len(numbers) or 'no'} classes"

    @property
    def facts(self) -> Mapping[str, Any]:
        """Classes by number and name; those that have none are told by their numbers."""
        return {
            "classes": [[each, self.pipe.labels.get(each, f"class {each}")] for each in self.numbers],
            "noClass": self.no_class,
            "guidance": None if self.guidance == 1 else self.guidance,
        }

    def add_to(self, bundle: Bundle) -> None:
        """There is nothing before the layouts."""

    def usual_counts(self, size: tuple[int, int]) -> Sequence[int]:
        """One, and sixteen small ones."""
        return (1, SEVERAL) if max(size) <= SMALL else (1,)

    def latents(self, layout: Layout) -> tuple[int, ...]:
        """The pictures themselves."""
        return (layout.count, self.pipe.unet.config.in_channels, layout.height, layout.width)

    def examples(self, layout: Layout) -> dict[str, Any]:
        """Classes: with guidance none first, then those that are asked for."""
        times = 1 if self.guidance == 1 else 2
        classes = wg.zeros(times * layout.count, dtype=wg.int32, device="cpu")
        found: dict[str, Any] = {"classes": classes} if self.numbers else {}
        return found if self.guidance == 1 else found | {"scale": self.guidance}

    def prediction(self, x: wg.Tensor, timestep: Any, layout: Layout, given: Mapping[str, Any]) -> wg.Tensor:
        """What the pipeline's network says."""
        conditions = {name: given[name] for name in ("classes", "scale") if name in given}
        found: wg.Tensor = self.pipe.prediction(x, timestep, conditions)
        return found

    def decoded(self, x: wg.Tensor) -> wg.Tensor:
        """The pictures themselves."""
        return x

    def files(self) -> dict[str, bytes]:
        """There are none."""
        return {}


class LatentClassPainter(ClassPainter):
    """The same by a network of latents, and an autoencoder."""

    def __init__(self, pipe: ClassConditional, guidance: float | None = None) -> None:
        known = pipe.transformer.classes
        self._set(pipe, [pipe.transformer, pipe.vae], range(known), known, guidance)

    def latents(self, layout: Layout) -> tuple[int, ...]:
        """The shape of an autoencoder's latents."""
        found: tuple[int, ...] = self.pipe.latent_shape(layout.count, (layout.height, layout.width))
        return found

    def decoded(self, x: wg.Tensor) -> wg.Tensor:
        """The pictures of latents."""
        found: wg.Tensor = self.pipe.decoded_at_once(x)
        return found


class TextPainter:
    """Pictures of what a text says: its states are written once, and stay while steps are made."""

    def __init__(self, pipe: StableDiffusion, guidance: float | None = None) -> None:
        channels = pipe.unet.config.in_channels
        if channels != pipe.vae.config.latent_channels:
            raise ArgumentError(
                "export: there is no page for networks that fill holes of pictures, which take "
                f"{channels} channels"
            )
        self.pipe = pipe
        self.modules = [pipe.unet, pipe.vae, *(encoder for _, encoder in pipe.encoders)]
        usual = 1.0 if isinstance(pipe.scheduler, wg.diffusion.LCM) else TEXT_GUIDANCE
        self.guidance = _guidance(guidance, usual)
        self.texts = 1 if self.guidance == 1 else 2  # the negative one first
        shapes = [each.shape for each in pipe.states([*self._ids().values()])]
        self.context, self.pooled = (wg.zeros(shape, device="cpu") for shape in shapes)
        wg.eval(self.context, self.pooled)
        self.state = [("context", self.context), ("pooled", self.pooled)]
        self.told = f"prompts of {pipe.encoders[0][0].length} tokens"
        self._written = [written(engine_spec(prompts.engine)) for prompts, _ in pipe.encoders]

    def _ids(self) -> dict[str, wg.Tensor]:
        return {
            f"ids_{at}": wg.zeros((self.texts, prompts.length), dtype=wg.int32, device="cpu")
            for at, (prompts, _) in enumerate(self.pipe.encoders)
        }

    @property
    def facts(self) -> Mapping[str, Any]:
        """How texts become ids, for each encoder."""
        files = self._names()
        encoders = [
            {
                "input": f"ids_{at}",
                "tokenizer": files[at],
                "length": prompts.length,
                "start": prompts.start,
                "end": prompts.end,
                "padding": prompts.padding,
            }
            for at, (prompts, _) in enumerate(self.pipe.encoders)
        ]
        return {
            "texts": {"encoders": encoders, "emptyIsZero": self.pipe.empty_is_zero},
            "guidance": None if self.texts == 1 else self.guidance,
        }

    def _names(self) -> list[str]:
        """The file of each tokenizer; those that are equal are one."""
        numbers = [self._written.index(each) for each in self._written]
        return [f"tokenizer_{number}.json" if number else "tokenizer.json" for number in numbers]

    def files(self) -> dict[str, bytes]:
        """The tokenizers."""
        return dict(zip(self._names(), self._written, strict=True))

    def add_to(self, bundle: Bundle) -> None:
        """encode, which writes texts' states; `kept` is 0 where a negative text is to be none at all."""

        def encode(kept: Any, **ids: wg.Tensor) -> None:
            context, pooled = self.pipe.states([*ids.values()])
            if self.texts == 2:
                context, pooled = (
                    wg.concat([each[:1] * kept, each[1:]], axis=0) for each in (context, pooled)
                )
            self.context[...], self.pooled[...] = context, pooled

        bundle.add("encode", encode, {"kept": 1.0, **self._ids()})

    def usual_counts(self, size: tuple[int, int]) -> Sequence[int]:
        """One."""
        return (1,)

    def latents(self, layout: Layout) -> tuple[int, ...]:
        """The shape of an autoencoder's latents."""
        return self.pipe.latent_shape(layout.count, (layout.height, layout.width))

    def examples(self, layout: Layout) -> dict[str, Any]:
        """How much the text counts."""
        return {} if self.texts == 1 else {"scale": self.guidance}

    def prediction(self, x: wg.Tensor, timestep: Any, layout: Layout, given: Mapping[str, Any]) -> wg.Tensor:
        """What the pipeline's network says with the texts' states."""
        context, pooled = (wg.repeat(each, layout.count, axis=0) for each in (self.context, self.pooled))
        latent = self.pipe.latent_size((layout.height, layout.width))
        conditions: dict[str, Any] = {name: given[name] for name in ("scale",) if name in given}
        conditions |= {"context": context}
        conditions |= self.pipe.extras(context.shape[0], pooled, latent, given.get("scale", 1.0))
        return self.pipe.prediction(x, timestep, conditions)

    def decoded(self, x: wg.Tensor) -> wg.Tensor:
        """The pictures of latents."""
        return self.pipe.decoded_at_once(x)
