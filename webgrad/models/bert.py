"""BERT: an encoder that gives every token of a text a vector (MiniLM, BGE, E5 … are BERTs).

In: a folder's config.json or a GGUF file's metadata, and weights by their published names. Out: a module from
token ids (batch, length) and lengths (batch,) to (batch, length, columns). What lies behind a text's length
is hidden, so a text's vectors do not depend on what it is padded with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import webgrad as wg
from webgrad import Tensor, nn
from webgrad.errors import ModelFileError
from webgrad.nn import functional as F

__all__ = ["Bert", "BertSettings", "read_bert"]

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
}

# Our names, those of Hugging Face's files, those of GGUF's.
TABLES = (
    ("words", "embeddings.word_embeddings", "token_embd"),
    ("positions", "embeddings.position_embeddings", "position_embd"),
    ("types", "embeddings.token_type_embeddings", "token_types"),
)
NORM = ("norm", "embeddings.LayerNorm", "token_embd_norm")
LAYER = (
    ("query", "attention.self.query", "attn_q"),
    ("key", "attention.self.key", "attn_k"),
    ("value", "attention.self.value", "attn_v"),
    ("mixed", "attention.output.dense", "attn_output"),
    ("mixed_norm", "attention.output.LayerNorm", "attn_output_norm"),
    ("up", "intermediate.dense", "ffn_up"),
    ("down", "output.dense", "ffn_down"),
    ("norm", "output.LayerNorm", "layer_output_norm"),
)
OLD = {"weight": "gamma", "bias": "beta"}  # what norms' parameters are called in the oldest files


@dataclass(frozen=True, slots=True)
class BertSettings:
    """The sizes of a BERT, and what differs between those that are published."""

    vocabulary: int
    columns: int
    layers: int
    heads: int
    inner: int
    positions: int
    types: int
    epsilon: float
    activation: str

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> BertSettings:
        """Of a folder's config.json."""
        kind = config.get("position_embedding_type") or "absolute"
        if kind != "absolute":
            raise ModelFileError(
                f"config.json: position_embedding_type={kind!r} is not offered, only 'absolute'"
            )
        return cls(
            vocabulary=_whole(config, "vocab_size"),
            columns=_whole(config, "hidden_size"),
            layers=_whole(config, "num_hidden_layers"),
            heads=_whole(config, "num_attention_heads"),
            inner=_whole(config, "intermediate_size"),
            positions=_whole(config, "max_position_embeddings"),
            types=_whole(config, "type_vocab_size", 2),
            epsilon=_positive(config, "layer_norm_eps", 1e-12),
            activation=str(config.get("hidden_act", "gelu")),
        )._checked()

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], vocabulary: int, types: int) -> BertSettings:
        """Of a GGUF file's metadata, and of how many rows its tables of words and types have."""
        return cls(
            vocabulary=vocabulary,
            columns=_whole(metadata, "bert.embedding_length"),
            layers=_whole(metadata, "bert.block_count"),
            heads=_whole(metadata, "bert.attention.head_count"),
            inner=_whole(metadata, "bert.feed_forward_length"),
            positions=_whole(metadata, "bert.context_length"),
            types=types,
            epsilon=_positive(metadata, "bert.attention.layer_norm_epsilon", 1e-12),
            activation="gelu",
        )._checked()

    def _checked(self) -> BertSettings:
        if self.columns % self.heads:
            raise ModelFileError(
                f"a BERT of {self.columns} columns cannot have {self.heads} heads: they must divide them"
            )
        if self.activation not in ACTIVATIONS:
            raise ModelFileError(
                f"config.json: hidden_act={self.activation!r} is none of {', '.join(ACTIVATIONS)}"
            )
        return self


def _whole(values: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ModelFileError(f"the model's settings have {name}={value!r}, which must be a number above 0")
    return value


def _positive(values: Mapping[str, Any], name: str, default: float) -> float:
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ModelFileError(
            f"the model's settings have {name}={value!r}, which must be a number of 0 or more"
        )
    return float(value)


# The module


class _Parts(nn.Module):
    """A module whose parameters are given, by name."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, getattr(self, f"{name}_weight"), getattr(self, f"{name}_bias"))

    def _normalised(self, name: str, x: Tensor, epsilon: float) -> Tensor:
        weight, bias = getattr(self, f"{name}_weight"), getattr(self, f"{name}_bias")
        return F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)


class _Layer(_Parts):
    def __init__(self, settings: BertSettings, tensors: Mapping[str, Tensor]) -> None:
        super().__init__(tensors)
        self.settings = settings

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """x (batch, length, columns), seen (batch, 1, 1, length): which tokens there are."""
        settings, (batch, length, columns) = self.settings, x.shape
        parts = self._linear("together", x).reshape(batch, length, 3, settings.heads, -1)
        query, key, value = (parts[:, :, each].permute(0, 2, 1, 3) for each in range(3))
        mixed = F.scaled_dot_product_attention(query, key, value, seen)
        mixed = mixed.permute(0, 2, 1, 3).reshape(batch, length, columns)
        x = self._normalised("mixed_norm", x + self._linear("mixed", mixed), settings.epsilon)
        inner = ACTIVATIONS[settings.activation](self._linear("up", x))
        return self._normalised("norm", x + self._linear("down", inner), settings.epsilon)


class Bert(_Parts):
    """The encoder: `bert(ids, lengths)` gives the last layer's vectors, (batch, length, columns)."""

    def __init__(
        self, settings: BertSettings, tensors: Mapping[str, Tensor], layers: list[Mapping[str, Tensor]]
    ) -> None:
        super().__init__(tensors)
        self.settings = settings
        self.layers = nn.ModuleList([_Layer(settings, each) for each in layers])
        self.eval()

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids (batch, length) of whole numbers; lengths (batch,), how many of each row count."""
        batch, length = ids.shape
        x = F.embedding(ids, self.words) + self.positions[:length] + self.types[0]
        x = self._normalised("norm", x, self.settings.epsilon)
        places = wg.arange(length, device=ids.device)
        seen = (places < lengths.reshape(batch, 1)).reshape(batch, 1, 1, length)
        result: Tensor = x
        for layer in self.layers:
            result = layer(result, seen)
        return result


# Reading


def read_bert(weights: wg.io.Weights, settings: BertSettings, device: Any = None) -> Bert:
    """A BERT of opened weights, with their values in float32 on a device."""
    gguf = weights.kind == "gguf"
    prefix = "" if gguf or "embeddings.word_embeddings.weight" in weights else "bert."
    column = 2 if gguf else 1
    wide, inner = settings.columns, settings.inner

    def read(stem: str, last: str, shape: tuple[int, ...]) -> Tensor:
        name = f"{prefix}{stem}.{last}"
        if name not in weights and not gguf and f"{prefix}{stem}.{OLD[last]}" in weights:
            name = f"{prefix}{stem}.{OLD[last]}"
        if name not in weights:
            raise ModelFileError(f"{weights.path} has no weights {name}, which a BERT needs")
        if weights.shape(name) != shape:
            raise ModelFileError(
                f"{weights.path}: {name} is {weights.shape(name)}, and by the model's settings it is {shape}"
            )
        value = weights.read(name, device)
        # Products with many rows at once, as here, unpack every weight anyway.
        plain: Tensor = value if isinstance(value, Tensor) else value.dequantise()
        return plain.astype(wg.float32, copy=False)

    def pair(own: str, stem: str, rows: int, columns: int = 0) -> dict[str, Tensor]:
        shape = (rows, columns) if columns else (rows,)
        return {f"{own}_weight": read(stem, "weight", shape), f"{own}_bias": read(stem, "bias", (rows,))}

    def layer(number: int) -> dict[str, Tensor]:
        start = f"blk.{number}." if gguf else f"encoder.layer.{number}."
        stems = {row[0]: start + row[column] for row in LAYER}
        three = [pair("together", stems[name], wide, wide) for name in ("query", "key", "value")]
        together = {name: wg.concat([each[name] for each in three]) for name in three[0]}
        return {
            **together,
            **pair("mixed", stems["mixed"], wide, wide),
            **pair("mixed_norm", stems["mixed_norm"], wide),
            **pair("up", stems["up"], inner, wide),
            **pair("down", stems["down"], wide, inner),
            **pair("norm", stems["norm"], wide),
        }

    rows = {"words": settings.vocabulary, "positions": settings.positions, "types": settings.types}
    tables = {row[0]: read(row[column], "weight", (rows[row[0]], wide)) for row in TABLES}
    tensors = {**tables, **pair("norm", NORM[column], wide)}
    bert = Bert(settings, tensors, [layer(number) for number in range(settings.layers)])
    wg.eval(*bert.parameters())
    return bert
