"""Text encoders: CLIP's and T5's, which give networks of pictures the states of a text.

In: token ids (n, length). Out: a vector for each token, and of CLIP one for the text. Settings and members
have the names of transformers' published models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import webgrad as wg
from webgrad import nn

from .activations import activation

__all__ = ["CLIPText", "CLIPTextConfig", "CLIPTextStates", "T5Encoder", "T5EncoderConfig"]


@dataclass(frozen=True)
class CLIPTextConfig:
    """The settings of CLIP's text encoder."""

    vocab_size: int = 49408
    hidden_size: int = 512
    intermediate_size: int = 2048
    projection_dim: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    max_position_embeddings: int = 77
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    eos_token_id: int = 49407


@dataclass(frozen=True)
class CLIPTextStates:
    """What CLIP makes of a text."""

    last: wg.Tensor  # (n, length, width), normalised
    every: list[wg.Tensor]  # the states before the first layer and after each one
    pooled: wg.Tensor  # (n, width): the state at the end of the text; projected where the model does that


class CLIPText(nn.Module):
    """A decoder-like transformer over a text's tokens."""

    def __init__(self, config: CLIPTextConfig, projects: bool = False) -> None:
        super().__init__()
        self.config = config
        self.text_model = _CLIPTextModel(config)
        self.text_projection = (
            nn.Linear(config.hidden_size, config.projection_dim, bias=False) if projects else nn.Identity()
        )

    def forward(self, ids: wg.Tensor, seen: wg.Tensor | None = None) -> CLIPTextStates:
        """ids (n, length) of integers, seen (n, length): which of them attention looks at, all if None."""
        every = self.text_model.states(ids, seen)
        last = self.text_model.final_layer_norm(every[-1])
        end = _end_of_text(ids, self.config.eos_token_id)
        pooled = wg.sum(last * end[:, :, None].astype(last.dtype), axis=1)
        return CLIPTextStates(last, every, self.text_projection(pooled))


def _end_of_text(ids: wg.Tensor, token: int) -> wg.Tensor:
    """A flag at the first place with the token that ends a text."""
    # Old settings say 2, and mean the largest id, which ended texts when they were written.
    places = wg.argmax(ids if token == 2 else (ids == token).astype(wg.int32), axis=-1)
    return wg.arange(ids.shape[1], dtype=wg.int32, device=ids.device) == places.astype(wg.int32)[:, None]


class _CLIPTextModel(nn.Module):
    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__()
        self.embeddings = _CLIPEmbeddings(config)
        self.encoder = _Layers([_CLIPLayer(config) for _ in range(config.num_hidden_layers)])
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def states(self, ids: wg.Tensor, seen: wg.Tensor | None) -> list[wg.Tensor]:
        """The states before the first layer and after each one."""
        mask = None if seen is None else seen[:, None, None, :]
        every = [self.embeddings(ids)]
        for layer in self.encoder.layers:
            every.append(layer(every[-1], mask))
        return every


class _Layers(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class _CLIPEmbeddings(nn.Module):
    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embedding = nn.Embedding(config.max_position_embeddings, config.hidden_size)

    def forward(self, ids: wg.Tensor) -> wg.Tensor:
        found: wg.Tensor = self.token_embedding(ids) + self.position_embedding.weight[: ids.shape[1]]
        return found.astype(wg.float32)  # whatever weights are stored in


class _CLIPLayer(nn.Module):
    """Attention to what came before, and a network, each normalised before and added after."""

    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__()
        self.self_attn = _CLIPAttention(config)
        self.layer_norm1 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.mlp = _CLIPNetwork(config)
        self.layer_norm2 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: wg.Tensor, mask: wg.Tensor | None = None) -> wg.Tensor:
        x = x + self.self_attn(self.layer_norm1(x), mask)
        found: wg.Tensor = x + self.mlp(self.layer_norm2(x))
        return found


class _CLIPAttention(nn.Module):
    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        width = config.hidden_size
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: wg.Tensor, mask: wg.Tensor | None = None) -> wg.Tensor:
        n, length, width = x.shape
        by_heads = (n, length, self.heads, width // self.heads)
        queries, keys, values = (
            project(x).reshape(by_heads).permute(0, 2, 1, 3)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = wg.scaled_dot_product_attention(queries, keys, values, mask, is_causal=True)
        found: wg.Tensor = self.out_proj(mixed.permute(0, 2, 1, 3).reshape(x.shape))
        return found


class _CLIPNetwork(nn.Module):
    def __init__(self, config: CLIPTextConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.activation = activation(config.hidden_act)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        found: wg.Tensor = self.fc2(self.activation(self.fc1(x)))
        return found


@dataclass(frozen=True)
class T5EncoderConfig:
    """The settings of T5's encoder."""

    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    layer_norm_epsilon: float = 1e-6
    feed_forward_proj: str = "relu"


class T5Encoder(nn.Module):
    """A transformer whose attention knows how far tokens are apart."""

    def __init__(self, config: T5EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = _T5Stack(config)

    def forward(self, ids: wg.Tensor, seen: wg.Tensor | None = None) -> wg.Tensor:
        """ids (n, length), seen (n, length): which tokens there are. States (n, length, width)."""
        x = self.shared(ids).astype(wg.float32)  # whatever weights are stored in
        bias = self.encoder.block[0].layer[0].SelfAttention.distances(ids.shape[1])
        if seen is not None:
            bias = wg.where(seen.astype(wg.bool)[:, None, None, :], bias, -math.inf)
        for block in self.encoder.block:
            x = block(x, bias)
        found: wg.Tensor = self.encoder.final_layer_norm(x)
        return found


class _T5Stack(nn.Module):
    def __init__(self, config: T5EncoderConfig) -> None:
        super().__init__()
        self.block = nn.ModuleList(_T5Block(config, first=not at) for at in range(config.num_layers))
        self.final_layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)


class _T5Block(nn.Module):
    def __init__(self, config: T5EncoderConfig, first: bool) -> None:
        super().__init__()
        self.layer = nn.ModuleList([_T5AttentionLayer(config, first), _T5NetworkLayer(config)])

    def forward(self, x: wg.Tensor, bias: wg.Tensor) -> wg.Tensor:
        attention, network = self.layer
        x = x + attention.SelfAttention(attention.layer_norm(x), bias)
        found: wg.Tensor = x + network.DenseReluDense(network.layer_norm(x))
        return found


class _T5AttentionLayer(nn.Module):
    def __init__(self, config: T5EncoderConfig, first: bool) -> None:
        super().__init__()
        self.SelfAttention = _T5Attention(config, first)
        self.layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)


class _T5NetworkLayer(nn.Module):
    def __init__(self, config: T5EncoderConfig) -> None:
        super().__init__()
        self.DenseReluDense = _T5Network(config)
        self.layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)


class _T5Attention(nn.Module):
    def __init__(self, config: T5EncoderConfig, first: bool) -> None:
        super().__init__()
        self.config = config
        inner = config.num_heads * config.d_kv
        self.q, self.k, self.v = (nn.Linear(config.d_model, inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, config.d_model, bias=False)
        if first:  # the other layers take the first one's
            buckets = config.relative_attention_num_buckets
            self.relative_attention_bias = nn.Embedding(buckets, config.num_heads)

    def distances(self, length: int) -> wg.Tensor:
        """What is added to the scores, by how far tokens are apart: (1, heads, length, length)."""
        config, device = self.config, self.q.weight.device
        places = wg.arange(length, dtype=wg.int32, device=device)
        buckets = _buckets(
            places[None, :] - places[:, None],
            config.relative_attention_num_buckets // 2,
            config.relative_attention_max_distance,
        )
        found: wg.Tensor = self.relative_attention_bias(buckets).permute(2, 0, 1)[None]
        return found

    def forward(self, x: wg.Tensor, bias: wg.Tensor) -> wg.Tensor:
        n, length, _ = x.shape
        by_heads = (n, length, self.config.num_heads, self.config.d_kv)
        queries, keys, values = (
            project(x).reshape(by_heads).permute(0, 2, 1, 3) for project in (self.q, self.k, self.v)
        )
        mixed = wg.scaled_dot_product_attention(queries, keys, values, bias, scale=1.0)
        found: wg.Tensor = self.o(mixed.permute(0, 2, 1, 3).reshape(n, length, -1))
        return found


def _buckets(apart: wg.Tensor, count: int, furthest: int) -> wg.Tensor:
    """Short distances one by one, longer ones by their logarithm; those to the right are `count` further."""
    size = abs(apart)
    exact = count // 2
    scale = (count - exact) / math.log(furthest / exact)
    logs = wg.log(wg.maximum(size, 1).astype(wg.float32) / exact) * scale
    far = wg.clip(exact + logs.astype(wg.int32), None, count - 1)
    return wg.where(size < exact, size, far) + (apart > 0).astype(wg.int32) * count


class _T5Network(nn.Module):
    def __init__(self, config: T5EncoderConfig) -> None:
        super().__init__()
        gate, _, name = config.feed_forward_proj.rpartition("-")
        if gate not in ("", "gated"):
            raise wg.ModelFileError(f"there is no feed_forward_proj {config.feed_forward_proj!r}")
        self.gated = bool(gate)
        # The published name of gelu in gated networks means its approximation by tanh.
        self.activation = activation("gelu_new" if self.gated and name == "gelu" else name)
        if self.gated:
            self.wi_0 = nn.Linear(config.d_model, config.d_ff, bias=False)
            self.wi_1 = nn.Linear(config.d_model, config.d_ff, bias=False)
        else:
            self.wi = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        inner = self.activation(self.wi_0(x)) * self.wi_1(x) if self.gated else self.activation(self.wi(x))
        found: wg.Tensor = self.wo(inner)
        return found
