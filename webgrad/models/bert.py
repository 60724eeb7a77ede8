"""BERT: an encoder that gives every token of a text a vector (MiniLM, BGE, E5 … are BERTs).

In: token ids (batch, length) and lengths (batch,). Out: (batch, length, width). What lies behind a text's
length is hidden, so a text's vectors do not depend on what it is padded with. Weights have Hugging Face's
names.
"""

from __future__ import annotations

import webgrad as wg
from webgrad import nn

from .layers import ACTIVATIONS, Embedding, LayerNorm, Projection
from .published_weights import Published
from .settings import Settings

__all__ = ["Bert"]


class Bert(nn.Module):
    """The encoder: `bert(ids, lengths)` gives the last layer's vectors."""

    def __init__(self, settings: Settings, published: Published) -> None:
        super().__init__()
        self.settings, self.device = settings, published.device
        name, width = "embeddings", settings.width
        self.words = Embedding(published, f"{name}.word_embeddings", settings.vocabulary, width)
        self.positions = Embedding(published, f"{name}.position_embeddings", settings.context, width)
        self.types = Embedding(published, f"{name}.token_type_embeddings", settings.types, width)
        self.norm = LayerNorm(published, f"{name}.LayerNorm", width, settings.epsilon)
        self.layers = nn.ModuleList(Layer(settings, published, number) for number in range(settings.layers))

    def forward(self, ids: wg.Tensor, lengths: wg.Tensor) -> wg.Tensor:
        """ids (batch, length) of integers; lengths (batch,), how many of each row count."""
        batch, length = ids.shape
        places = wg.arange(length, dtype=wg.int32, device=ids.device)
        types = self.types(wg.zeros(1, dtype=wg.int32, device=ids.device))
        x: wg.Tensor = self.norm(self.words(ids) + self.positions(places) + types)
        seen = (places < lengths.reshape(batch, 1)).reshape(batch, 1, 1, length)
        for layer in self.layers:
            x = layer(x, seen)
        return x


class Layer(nn.Module):
    """Attention and a network, each added to what came in, and normalised then."""

    def __init__(self, settings: Settings, published: Published, number: int) -> None:
        super().__init__()
        self.settings = settings
        self.activation = ACTIVATIONS[settings.activation]
        name, width, hidden = f"encoder.layer.{number}", settings.width, settings.hidden
        attention = f"{name}.attention"
        parts = [f"{attention}.self.{each}" for each in ("query", "key", "value")]
        self.qkv = Projection(published, parts, width, [width] * 3, biased=True)
        self.attended = Projection(published, [f"{attention}.output.dense"], width, [width], biased=True)
        self.attended_norm = LayerNorm(published, f"{attention}.output.LayerNorm", width, settings.epsilon)
        self.up = Projection(published, [f"{name}.intermediate.dense"], width, [hidden], biased=True)
        self.down = Projection(published, [f"{name}.output.dense"], hidden, [width], biased=True)
        self.norm = LayerNorm(published, f"{name}.output.LayerNorm", width, settings.epsilon)

    def forward(self, x: wg.Tensor, seen: wg.Tensor) -> wg.Tensor:
        """x (batch, length, width), seen (batch, 1, 1, length): which tokens there are."""
        batch, length, width = x.shape
        by_heads = (batch, length, self.settings.heads, self.settings.head_width)
        queries, keys, values = (each.reshape(by_heads).permute(0, 2, 1, 3) for each in self.qkv(x))
        attended = wg.scaled_dot_product_attention(
            queries, keys, values, seen, scale=self.settings.query_scale
        )
        x = self.attended_norm(
            x + self.attended(attended.permute(0, 2, 1, 3).reshape(batch, length, width))[0]
        )
        inner = self.activation(self.up(x)[0])
        result: wg.Tensor = self.norm(x + self.down(inner)[0])
        return result
