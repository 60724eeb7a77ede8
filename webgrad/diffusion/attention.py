"""Attention over a picture's places, alone or with a text, and the transformer blocks made of it.

In: states (n, length, width), and the states of a context. Out: states of the same shape. Names of members
are those of published weights.
"""

from __future__ import annotations

import webgrad as wg
from webgrad import nn

from .activations import activation

__all__ = ["Attention", "FeedForward", "PictureAttention", "SpatialTransformer", "TransformerBlock"]


class Attention(nn.Module):
    """softmax(q kᵀ / √width) v of several heads; keys and values are a context's, where one is given."""

    def __init__(
        self, width: int, heads: int, head_width: int, context: int | None = None, *, biased: bool = False
    ) -> None:
        super().__init__()
        self.heads, self.head_width = heads, head_width
        inner = heads * head_width
        self.to_q = nn.Linear(width, inner, bias=biased)
        self.to_k = nn.Linear(context or width, inner, bias=biased)
        self.to_v = nn.Linear(context or width, inner, bias=biased)
        self.to_out = nn.ModuleList([nn.Linear(inner, width)])

    def forward(
        self, x: wg.Tensor, context: wg.Tensor | None = None, seen: wg.Tensor | None = None
    ) -> wg.Tensor:
        """x (n, length, width), context (n, other length, …), seen (n, 1, 1, other length): what there is."""
        source = x if context is None else context
        queries, keys, values = map(self._split, (self.to_q(x), self.to_k(source), self.to_v(source)))
        mixed = wg.scaled_dot_product_attention(queries, keys, values, seen)
        n, length = x.shape[:2]
        joined = mixed.permute(0, 2, 1, 3).reshape(n, length, self.heads * self.head_width)
        found: wg.Tensor = self.to_out[0](joined)
        return found

    def _split(self, x: wg.Tensor) -> wg.Tensor:
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.head_width).permute(0, 2, 1, 3)


class PictureAttention(Attention):
    """Attention of a picture's places to each other, normalised before and added after."""

    def __init__(
        self, channels: int, heads: int, groups: int | None, epsilon: float, divisor: float = 1.0
    ) -> None:
        super().__init__(channels, heads, channels // heads, biased=True)
        self.divisor = divisor
        self.group_norm = None if groups is None else nn.GroupNorm(groups, channels, eps=epsilon)

    def forward(
        self, x: wg.Tensor, context: wg.Tensor | None = None, seen: wg.Tensor | None = None
    ) -> wg.Tensor:
        """x (n, channels, height, width); a context is for other kinds of attention."""
        n, channels, height, width = x.shape
        states = x.reshape(n, channels, height * width)
        states = states if self.group_norm is None else self.group_norm(states)
        mixed = super().forward(states.permute(0, 2, 1)).permute(0, 2, 1).reshape(x.shape)
        return (mixed + x) / self.divisor


class Gated(nn.Module):
    """One half of a projection times gelu of the other one."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.proj = nn.Linear(inputs, 2 * outputs)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(…, inputs) → (…, outputs)."""
        value, gate = wg.split(self.proj(x), 2, axis=-1)
        found: wg.Tensor = value * wg.gelu(gate)
        return found


class Activated(nn.Module):
    """activation(proj(x))."""

    def __init__(self, inputs: int, outputs: int, name: str) -> None:
        super().__init__()
        self.proj = nn.Linear(inputs, outputs)
        self.activation = activation(name)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(…, inputs) → (…, outputs)."""
        return self.activation(self.proj(x))


class FeedForward(nn.Module):
    """A wider layer and back, at each place by itself."""

    def __init__(self, width: int, kind: str = "geglu") -> None:
        super().__init__()
        inner = 4 * width
        kinds = {"gelu-approximate": "gelu_new", "gelu": "gelu"}
        first = Gated(width, inner) if kind == "geglu" else Activated(width, inner, kinds.get(kind, kind))
        # The middle one is dropout in training; published weights count it.
        self.net = nn.ModuleList([first, nn.Identity(), nn.Linear(inner, width)])

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(…, width) → (…, width)."""
        for layer in self.net:
            x = layer(x)
        return x


class TransformerBlock(nn.Module):
    """Attention to itself, attention to a context, and a network, each normalised before and added after."""

    def __init__(self, width: int, heads: int, head_width: int, context: int | None) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn1 = Attention(width, heads, head_width)
        self.norm2 = nn.LayerNorm(width)
        self.attn2 = Attention(width, heads, head_width, context)
        self.norm3 = nn.LayerNorm(width)
        self.ff = FeedForward(width)

    def forward(self, x: wg.Tensor, context: wg.Tensor | None, seen: wg.Tensor | None = None) -> wg.Tensor:
        """x (n, length, width) and the context's states."""
        x = x + self.attn1(self.norm1(x))
        x = x + self.attn2(self.norm2(x), context, seen)
        found: wg.Tensor = x + self.ff(self.norm3(x))
        return found


class SpatialTransformer(nn.Module):
    """Transformer blocks over a picture's places, which look at a context."""

    def __init__(
        self, channels: int, heads: int, context: int | None, layers: int, groups: int, linear: bool
    ) -> None:
        super().__init__()
        self.linear = linear  # whether the projections are products of states, or convolutions of pictures
        self.norm = nn.GroupNorm(groups, channels, eps=1e-6)
        project = nn.Linear if linear else _pointwise
        self.proj_in = project(channels, channels)
        self.transformer_blocks = nn.ModuleList(
            TransformerBlock(channels, heads, channels // heads, context) for _ in range(layers)
        )
        self.proj_out = project(channels, channels)

    def forward(
        self, x: wg.Tensor, context: wg.Tensor | None = None, seen: wg.Tensor | None = None
    ) -> wg.Tensor:
        """x (n, channels, height, width), context (n, length, width)."""
        n, channels, height, width = x.shape
        states = self.norm(x)
        states = states if self.linear else self.proj_in(states)
        states = states.reshape(n, channels, height * width).permute(0, 2, 1)
        states = self.proj_in(states) if self.linear else states
        for block in self.transformer_blocks:
            states = block(states, context, seen)
        states = self.proj_out(states) if self.linear else states
        states = states.permute(0, 2, 1).reshape(x.shape)
        found: wg.Tensor = x + (states if self.linear else self.proj_out(states))
        return found


def _pointwise(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 1)
