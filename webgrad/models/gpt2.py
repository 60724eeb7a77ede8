"""GPT-2: positions that are learnt, norms with a mean, and a plain network in every layer.

In: tokens and their places. Out: hidden states, and logits of them. Weights have Hugging Face's names.
"""

from __future__ import annotations

from collections.abc import Sequence

import webgrad as wg
from webgrad import nn

from .caches import Cache, Places
from .layers import ACTIVATIONS, Embedding, LayerNorm, Projection
from .published_weights import Published
from .settings import Settings

__all__ = ["GPT2"]


class GPT2(nn.Module):
    """A decoder of the GPT-2 family."""

    def __init__(self, settings: Settings, published: Published) -> None:
        super().__init__()
        self.settings = settings
        width = settings.width
        self.wte = Embedding(published, "transformer.wte", settings.vocabulary, width)
        self.wpe = Embedding(published, "transformer.wpe", settings.context, width)
        self.h = nn.ModuleList(Layer(settings, published, number) for number in range(settings.layers))
        self.ln_f = LayerNorm(published, "transformer.ln_f", width, settings.epsilon)
        self.lm_head = (
            None if settings.tied else Projection(published, ["lm_head"], width, [settings.vocabulary])
        )

    def prepare(self, room: int) -> None:
        """Nothing depends on how many positions there is room for: those that are learnt are all there."""

    def forward(self, ids: wg.Tensor, places: Places, caches: Sequence[Cache]) -> wg.Tensor:
        """Hidden states of new tokens (n,), whose keys and values are written to the caches: (n, width)."""
        x = self.wte(ids) + self.wpe(places.positions)
        for layer, cache in zip(self.h, caches, strict=True):
            x = layer(x, places, cache)
        normed: wg.Tensor = self.ln_f(x)
        return normed

    def logits(self, x: wg.Tensor) -> wg.Tensor:
        """The logits of hidden states (n, width): (n, vocabulary)."""
        found: wg.Tensor = self.wte.logits(x) if self.lm_head is None else self.lm_head(x)[0]
        return found


class Layer(nn.Module):
    """Attention and a network, each of normalised states, and each added to what came in."""

    def __init__(self, settings: Settings, published: Published, number: int) -> None:
        super().__init__()
        name = f"transformer.h.{number}"
        self.ln_1 = LayerNorm(published, f"{name}.ln_1", settings.width, settings.epsilon)
        self.attn = Attention(settings, published, f"{name}.attn")
        self.ln_2 = LayerNorm(published, f"{name}.ln_2", settings.width, settings.epsilon)
        self.mlp = Network(settings, published, f"{name}.mlp")

    def forward(self, x: wg.Tensor, places: Places, cache: Cache) -> wg.Tensor:
        """The states after this layer."""
        x = x + self.attn(self.ln_1(x), places, cache)
        result: wg.Tensor = x + self.mlp(self.ln_2(x))
        return result


class Attention(nn.Module):
    """Queries over the cache; queries, keys and values are one product."""

    def __init__(self, settings: Settings, published: Published, name: str) -> None:
        super().__init__()
        self.settings = settings
        width = settings.width
        self.c_attn = Projection(published, [f"{name}.c_attn"], width, [3 * width], biased=True)
        self.c_proj = Projection(published, [f"{name}.c_proj"], width, [width], biased=True)

    def forward(self, x: wg.Tensor, places: Places, cache: Cache) -> wg.Tensor:
        """The mean of the values that each position attends to, (n, width)."""
        count, settings = x.shape[0], self.settings
        joined = self.c_attn(x)[0].reshape(count, 3, settings.heads, settings.head_width)
        queries, keys, values = (joined[:, part] for part in range(3))
        cache.write(places, keys, values)
        result: wg.Tensor = self.c_proj(cache.attended(places, queries, settings.query_scale))[0]
        return result


class Network(nn.Module):
    """c_proj(activation(c_fc(x)))."""

    def __init__(self, settings: Settings, published: Published, name: str) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[settings.activation]
        self.c_fc = Projection(published, [f"{name}.c_fc"], settings.width, [settings.hidden], biased=True)
        self.c_proj = Projection(
            published, [f"{name}.c_proj"], settings.hidden, [settings.width], biased=True
        )

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """The network's part of the states."""
        result: wg.Tensor = self.c_proj(self.activation(self.c_fc(x)[0]))[0]
        return result
