"""The Llama family: Llama, SmolLM2, Mistral, Qwen2, Qwen2.5, Qwen3 and Gemma 3.

In: tokens and their places. Out: hidden states, and logits of them. One decoder serves all: which norms,
biases and windows a layer has is told by its settings. Weights have Hugging Face's names.
"""

from __future__ import annotations

from collections.abc import Sequence

import webgrad as wg
from webgrad import nn

from .caches import Cache, Places
from .layers import ACTIVATIONS, Embedding, Projection, RMSNorm
from .published_weights import Published
from .rotary import Rotary, tables
from .settings import Settings

__all__ = ["Llama"]


class Llama(nn.Module):
    """A decoder of the Llama family."""

    def __init__(self, settings: Settings, published: Published) -> None:
        super().__init__()
        self.settings = settings
        self.embed_tokens = Embedding(published, "model.embed_tokens", settings.vocabulary, settings.width)
        self.layers = nn.ModuleList(Layer(settings, published, number) for number in range(settings.layers))
        self.norm = _norm(settings, published, "model.norm")
        self.lm_head = (
            None
            if settings.tied
            else Projection(published, ["lm_head"], settings.width, [settings.vocabulary])
        )
        self._factors = published.factors()
        self._device = published.device
        self._rotaries = [_rotary(settings, window) for window in settings.windows]
        self._tables: dict[Rotary, list[wg.Tensor]] = {}  # cosines and sines of all positions
        self._room = 0

    def prepare(self, room: int) -> None:
        """Make what depends on how many positions there is room for, unless it is there for more."""
        if room <= self._room:
            return
        for rotary in set(self._rotaries):
            factors = self._factors if rotary == self.settings.rotary else None
            self._tables[rotary] = [
                wg.asarray(each, device=self._device) for each in tables(rotary, room, factors)
            ]
        self._room = room

    def forward(self, ids: wg.Tensor, places: Places, caches: Sequence[Cache]) -> wg.Tensor:
        """Hidden states of new tokens (n,), whose keys and values are written to the caches: (n, width)."""
        settings = self.settings
        x = self.embed_tokens(ids)
        if settings.embedding_scale != 1.0:
            x = x * settings.embedding_scale
        turns = {
            rotary: tuple(wg.expand_dims(each[places.positions], 1) for each in table)
            for rotary, table in self._tables.items()
        }
        for layer, cache, rotary in zip(self.layers, caches, self._rotaries, strict=True):
            x = layer(x, places, cache, turns[rotary])
        normed: wg.Tensor = self.norm(x)
        return normed

    def logits(self, x: wg.Tensor) -> wg.Tensor:
        """The logits of hidden states (n, width): (n, vocabulary)."""
        found: wg.Tensor = self.embed_tokens.logits(x) if self.lm_head is None else self.lm_head(x)[0]
        cap = self.settings.logit_cap
        return wg.tanh(found / cap) * cap if cap else found


def _rotary(settings: Settings, window: int) -> Rotary:
    """How a layer's positions turn: layers with a window may have their own way."""
    own = settings.local_rotary if window else None
    rotary = own or settings.rotary
    if rotary is None:
        raise wg.ModelFileError(f"{settings.architecture} needs rotary positions, and its settings have none")
    return rotary


def _norm(settings: Settings, published: Published, name: str, size: int | None = None) -> RMSNorm:
    return RMSNorm(published, name, size or settings.width, settings.epsilon, settings.norm_offset)


class Layer(nn.Module):
    """Attention and a gated network, each added to what came in."""

    def __init__(self, settings: Settings, published: Published, number: int) -> None:
        super().__init__()
        name = f"model.layers.{number}"
        sandwiched = settings.architecture == "gemma3"
        self.self_attn = Attention(settings, published, f"{name}.self_attn", settings.windows[number])
        self.mlp = GatedNetwork(settings, published, f"{name}.mlp")
        self.input_layernorm = _norm(settings, published, f"{name}.input_layernorm")
        self.post_attention_layernorm = _norm(settings, published, f"{name}.post_attention_layernorm")
        self.pre_feedforward_layernorm = (
            _norm(settings, published, f"{name}.pre_feedforward_layernorm") if sandwiched else None
        )
        self.post_feedforward_layernorm = (
            _norm(settings, published, f"{name}.post_feedforward_layernorm") if sandwiched else None
        )

    def forward(
        self, x: wg.Tensor, places: Places, cache: Cache, turn: tuple[wg.Tensor, wg.Tensor]
    ) -> wg.Tensor:
        """The states after this layer."""
        attended = self.self_attn(self.input_layernorm(x), places, cache, turn)
        before, after = self.pre_feedforward_layernorm, self.post_feedforward_layernorm
        if before is None or after is None:
            x = x + attended
            result: wg.Tensor = x + self.mlp(self.post_attention_layernorm(x))
        else:
            x = x + self.post_attention_layernorm(attended)
            result = x + after(self.mlp(before(x)))
        return result


class Attention(nn.Module):
    """Queries over the cache, with rotary positions; heads of keys may be shared."""

    def __init__(self, settings: Settings, published: Published, name: str, window: int) -> None:
        super().__init__()
        self.settings = settings
        self.window = window or None
        columns = settings.head_width
        self.qkv = Projection(
            published,
            [f"{name}.{each}_proj" for each in "qkv"],
            settings.width,
            [count * columns for count in (settings.heads, settings.key_heads, settings.key_heads)],
            biased=settings.architecture == "qwen2",
        )
        self.o_proj = Projection(published, [f"{name}.o_proj"], settings.heads * columns, [settings.width])
        normed = settings.architecture in ("qwen3", "gemma3")
        self.q_norm = _norm(settings, published, f"{name}.q_norm", columns) if normed else None
        self.k_norm = _norm(settings, published, f"{name}.k_norm", columns) if normed else None

    def forward(
        self, x: wg.Tensor, places: Places, cache: Cache, turn: tuple[wg.Tensor, wg.Tensor]
    ) -> wg.Tensor:
        """The mean of the values that each position attends to, (n, width)."""
        count, columns = x.shape[0], self.settings.head_width
        queries, keys, values = (each.reshape(count, -1, columns) for each in self.qkv(x))
        if self.q_norm is not None and self.k_norm is not None:
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        queries, keys = (wg.apply_rotary(each, *turn) for each in (queries, keys))
        cache.write(places, keys, values)
        attended = cache.attended(places, queries, self.settings.query_scale, self.window)
        result: wg.Tensor = self.o_proj(attended)[0]
        return result


class GatedNetwork(nn.Module):
    """down(activation(gate(x)) · up(x))."""

    def __init__(self, settings: Settings, published: Published, name: str) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[settings.activation]
        self.gate_up = Projection(
            published, [f"{name}.gate_proj", f"{name}.up_proj"], settings.width, [settings.hidden] * 2
        )
        self.down_proj = Projection(published, [f"{name}.down_proj"], settings.hidden, [settings.width])

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """The network's part of the states."""
        gate, up = self.gate_up(x)
        result: wg.Tensor = self.down_proj(self.activation(gate) * up)[0]
        return result
