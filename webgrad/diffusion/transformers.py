"""Transformers over patches of a picture: DiT, of classes, and PixArt, of a text.

In: pictures (n, channels, height, width), time steps, and what they are conditioned by. Out: pictures of the
same size. A time step and a class move and scale what is normalised, and say how much of a block's result
counts. Settings and members have the names of diffusers' published models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import webgrad as wg
from webgrad import nn

from .attention import Attention, FeedForward
from .configs import Idle
from .timesteps import TimestepEmbedding, sinusoids, time_of_each

__all__ = [
    "DiTTransformer",
    "DiTTransformerConfig",
    "PixArtTransformer",
    "PixArtTransformerConfig",
    "Transformer2DConfig",
    "transformer_2d",
]

FEATURES = 256  # sines and cosines of a number
EPSILON = 1e-6  # of the norms that have no setting


@dataclass(frozen=True)
class DiTTransformerConfig:
    """The settings of a transformer of classes."""

    num_attention_heads: int = 16
    attention_head_dim: int = 72
    in_channels: int = 4
    out_channels: int | None = None
    num_layers: int = 28
    attention_bias: bool = True
    sample_size: int = 32
    patch_size: int = 2
    activation_fn: str = "gelu-approximate"
    num_embeds_ada_norm: int | None = 1000
    norm_type: str = "ada_norm_zero"
    norm_elementwise_affine: bool = False
    norm_eps: float = 1e-5

    idle: ClassVar[Idle] = {
        "norm_num_groups": (),  # of networks without patches
        "upcast_attention": (),  # sums of products are float32 anyway
        "dropout": (),  # in training only
    }

    @property
    def width(self) -> int:
        """How many numbers a patch has inside."""
        return self.num_attention_heads * self.attention_head_dim

    @property
    def outputs(self) -> int:
        """The channels of what is predicted."""
        return self.in_channels if self.out_channels is None else self.out_channels


@dataclass(frozen=True)
class PixArtTransformerConfig(DiTTransformerConfig):
    """The settings of a transformer that looks at a text."""

    out_channels: int | None = 8
    cross_attention_dim: int | None = 1152
    sample_size: int = 128
    norm_type: str = "ada_norm_single"
    norm_eps: float = 1e-6
    interpolation_scale: float | None = None
    use_additional_conditions: bool | None = None
    caption_channels: int | None = None

    idle: ClassVar[Idle] = {**DiTTransformerConfig.idle, "attention_type": ("default",)}

    @property
    def takes_sizes(self) -> bool:
        """Whether it is told a picture's resolution."""
        given = self.use_additional_conditions
        return self.sample_size == 128 if given is None else given

    @property
    def scale(self) -> float:
        """What places are divided by, so that a larger picture has those of a smaller one."""
        given = self.interpolation_scale
        return max(self.sample_size // 64, 1) if given is None else given


@dataclass(frozen=True)
class Transformer2DConfig(PixArtTransformerConfig):
    """The settings of either, by the class that both had at first."""

    attention_head_dim: int = 88
    in_channels: int | None = None  # type: ignore[assignment]
    out_channels: int | None = None
    num_layers: int = 1
    cross_attention_dim: int | None = None
    attention_bias: bool = False
    sample_size: int | None = None  # type: ignore[assignment]
    patch_size: int | None = None  # type: ignore[assignment]
    activation_fn: str = "geglu"
    num_embeds_ada_norm: int | None = None
    norm_type: str = "layer_norm"
    norm_elementwise_affine: bool = True
    norm_eps: float = 1e-5

    idle: ClassVar[Idle] = {
        **PixArtTransformerConfig.idle,
        "only_cross_attention": (False,),
        "double_self_attention": (False,),
        "use_linear_projection": (),  # of networks without patches
    }


class Patches(nn.Module):
    """Square patches of a picture as vectors, which know where they are."""

    def __init__(self, config: DiTTransformerConfig, scale: float = 1.0) -> None:
        super().__init__()
        size = config.patch_size
        self.side, self.scale = config.sample_size // size, scale
        self.proj = nn.Conv2d(config.in_channels, config.width, size, stride=size)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(n, channels, height, width) → (n, patches, width)."""
        states: wg.Tensor = self.proj(x)
        n, width, rows, columns = states.shape
        half = width // 2
        by_column = wg.broadcast_to(self._features(columns, half, x.device)[None], (rows, columns, half))
        by_row = wg.broadcast_to(self._features(rows, half, x.device)[:, None], (rows, columns, half))
        places = wg.concat([by_column, by_row], axis=-1).reshape(rows * columns, width)
        return states.reshape(n, width, rows * columns).permute(0, 2, 1) + places.astype(states.dtype)

    def _features(self, count: int, width: int, device: Any) -> wg.Tensor:
        """What is known of places along one side, which has the trained length however many there are."""
        places = wg.arange(count, dtype=wg.float32, device=device) * (self.side / count / self.scale)
        return sinusoids(places, width, shift=0.0)


def _picture(states: wg.Tensor, size: Sequence[int], patch: int, channels: int) -> wg.Tensor:
    """Patches (n, rows · columns, patch · patch · channels) as the picture that they are of."""
    rows, columns = (each // patch for each in size)
    apart = states.reshape(states.shape[0], rows, columns, patch, patch, channels)
    return apart.permute(0, 5, 1, 3, 2, 4).reshape(states.shape[0], channels, rows * patch, columns * patch)


def _parts(modulation: wg.Tensor, count: int) -> list[wg.Tensor]:
    """Numbers (n, count · width) as `count` of (n, 1, width) each."""
    return [each[:, None] for each in wg.split(modulation, count, axis=-1)]


def _check(config: DiTTransformerConfig, kind: str) -> None:
    """Raise for what cannot be: sizes of patches, and kinds of norms that have no network here."""
    if config.norm_type != kind:
        raise wg.ModelFileError(f"there is no norm_type {config.norm_type!r} of this network, only {kind!r}")
    if config.patch_size < 1 or config.sample_size < config.patch_size or config.width % 4:
        raise wg.ModelFileError(
            f"there is no network of patch_size {config.patch_size}, sample_size {config.sample_size} and "
            f"{config.num_attention_heads} heads of attention_head_dim {config.attention_head_dim}"
        )


# Of classes


class ClassAndTime(nn.Module):
    """A time step and a class as one vector."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.timestep_embedder = TimestepEmbedding(FEATURES, width)
        self.class_embedder = _ClassTable(count, width)

    def forward(self, numbers: wg.Tensor, classes: wg.Tensor) -> wg.Tensor:
        """(n,) and (n,) → (n, width)."""
        time = self.timestep_embedder(sinusoids(numbers, FEATURES, cosine_first=True))
        found: wg.Tensor = time + self.class_embedder.embedding_table(classes)
        return found


class _ClassTable(nn.Module):
    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.embedding_table = nn.Embedding(count + 1, width)  # the last one is of no class


class _NormByClass(nn.Module):
    """What a block's vector is, from a time step and a class; and the first norm."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.emb = ClassAndTime(count, width)
        self.linear = nn.Linear(width, 6 * width)
        self.norm = nn.LayerNorm(width, EPSILON, elementwise_affine=False)


class DiTBlock(nn.Module):
    """Attention and a network, each moved, scaled and weighed by a time step and a class."""

    def __init__(self, config: DiTTransformerConfig, count: int) -> None:
        super().__init__()
        width = config.width
        self.norm1 = _NormByClass(count, width)
        self.attn1 = Attention(
            width, config.num_attention_heads, config.attention_head_dim, biased=config.attention_bias
        )
        self.norm3 = nn.LayerNorm(width, config.norm_eps, config.norm_elementwise_affine)
        self.ff = FeedForward(width, config.activation_fn)

    def forward(self, x: wg.Tensor, numbers: wg.Tensor, classes: wg.Tensor) -> wg.Tensor:
        """x (n, patches, width)."""
        first = self.norm1
        modulation = first.linear(wg.silu(first.emb(numbers, classes)))
        shift, scale, gate, shift_inner, scale_inner, gate_inner = _parts(modulation, 6)
        x = x + gate * self.attn1(first.norm(x) * (1 + scale) + shift)
        found: wg.Tensor = x + gate_inner * self.ff(self.norm3(x) * (1 + scale_inner) + shift_inner)
        return found


class DiTTransformer(nn.Module):
    """A transformer of a noisy picture, its time step and its class."""

    def __init__(self, config: DiTTransformerConfig, scale: float = 1.0) -> None:
        super().__init__()
        _check(config, "ada_norm_zero")
        if config.num_embeds_ada_norm is None:
            raise wg.ModelFileError("there is no num_embeds_ada_norm, the number of classes")
        self.config, self.classes = config, config.num_embeds_ada_norm
        width = config.width
        self.pos_embed = Patches(config, scale)
        self.transformer_blocks = nn.ModuleList(
            DiTBlock(config, self.classes) for _ in range(config.num_layers)
        )
        self.norm_out = nn.LayerNorm(width, EPSILON, elementwise_affine=False)
        self.proj_out_1 = nn.Linear(width, 2 * width)
        self.proj_out_2 = nn.Linear(width, config.patch_size**2 * config.outputs)

    def forward(self, x: wg.Tensor, steps: Any, classes: wg.Tensor) -> wg.Tensor:
        """x (n, channels, height, width), steps a number or (n,), classes (n,): the last one is none."""
        config, numbers = self.config, time_of_each(x, steps)
        states = self.pos_embed(x)
        for block in self.transformer_blocks:
            states = block(states, numbers, classes)
        vector = self.transformer_blocks[0].norm1.emb(numbers, classes)
        shift, scale = _parts(self.proj_out_1(wg.silu(vector)), 2)
        states = self.proj_out_2(self.norm_out(states) * (1 + scale) + shift)
        return _picture(states, x.shape[2:], config.patch_size, config.outputs)


# Of a text


class PixArtBlock(nn.Module):
    """Attention, attention to a text, and a network; how they are moved is one vector plus a table."""

    def __init__(self, config: PixArtTransformerConfig) -> None:
        super().__init__()
        width, heads, each = config.width, config.num_attention_heads, config.attention_head_dim
        self.norm1 = nn.LayerNorm(width, config.norm_eps, config.norm_elementwise_affine)
        self.attn1 = Attention(width, heads, each, biased=config.attention_bias)
        self.norm2 = nn.LayerNorm(width, config.norm_eps, config.norm_elementwise_affine)
        self.attn2 = Attention(width, heads, each, config.cross_attention_dim, biased=config.attention_bias)
        self.ff = FeedForward(width, config.activation_fn)
        self.scale_shift_table = nn.Parameter(wg.zeros((6, width)))

    def forward(
        self, x: wg.Tensor, modulation: wg.Tensor, context: wg.Tensor, seen: wg.Tensor | None
    ) -> wg.Tensor:
        """x (n, patches, width), modulation (n, 6, width), context (n, length, …)."""
        moved = wg.split(self.scale_shift_table[None] + modulation, 6, axis=1)
        shift, scale, gate, shift_inner, scale_inner, gate_inner = moved
        x = x + gate * self.attn1(self.norm1(x) * (1 + scale) + shift)
        x = x + self.attn2(x, context, seen)
        found: wg.Tensor = x + gate_inner * self.ff(self.norm2(x) * (1 + scale_inner) + shift_inner)
        return found


class TimeAndSize(nn.Module):
    """A time step as a vector, and a picture's resolution where a network is told it."""

    def __init__(self, width: int, takes_sizes: bool) -> None:
        super().__init__()
        self.timestep_embedder = TimestepEmbedding(FEATURES, width)
        if takes_sizes:
            self.resolution_embedder = TimestepEmbedding(FEATURES, width // 3)
            self.aspect_ratio_embedder = TimestepEmbedding(FEATURES, width // 3)

    def forward(self, numbers: wg.Tensor, sizes: wg.Tensor | None) -> wg.Tensor:
        """Numbers (n,), sizes (n, 2): height and width."""
        time: wg.Tensor = self.timestep_embedder(_features(numbers))
        if sizes is None:
            return time
        ratios = sizes[:, 0] / sizes[:, 1]
        both = self.resolution_embedder(_features(sizes.reshape(-1))).reshape(sizes.shape[0], -1)
        return time + wg.concat([both, self.aspect_ratio_embedder(_features(ratios))], axis=-1)


def _features(numbers: wg.Tensor) -> wg.Tensor:
    return sinusoids(numbers, FEATURES, cosine_first=True, shift=0.0)


class _SingleNorm(nn.Module):
    """The vector that all blocks share."""

    def __init__(self, width: int, takes_sizes: bool) -> None:
        super().__init__()
        self.emb = TimeAndSize(width, takes_sizes)
        self.linear = nn.Linear(width, 6 * width)


class PixArtTransformer(nn.Module):
    """A transformer of a noisy picture, its time step and the states of a text."""

    def __init__(self, config: PixArtTransformerConfig) -> None:
        super().__init__()
        _check(config, "ada_norm_single")
        if config.takes_sizes and config.width % 3:
            raise wg.ModelFileError(f"a width of {config.width} is no multiple of 3, for sizes of pictures")
        if config.cross_attention_dim is None:
            raise wg.ModelFileError("there is no cross_attention_dim, the width of a text's states")
        self.config = config
        width = config.width
        self.pos_embed = Patches(config, config.scale)
        self.transformer_blocks = nn.ModuleList(PixArtBlock(config) for _ in range(config.num_layers))
        self.norm_out = nn.LayerNorm(width, EPSILON, elementwise_affine=False)
        self.scale_shift_table = nn.Parameter(wg.zeros((2, width)))
        self.proj_out = nn.Linear(width, config.patch_size**2 * config.outputs)
        self.adaln_single = _SingleNorm(width, config.takes_sizes)
        self.caption_projection = None
        if config.caption_channels is not None:
            self.caption_projection = TimestepEmbedding(config.caption_channels, width, "gelu_new")

    def forward(
        self,
        x: wg.Tensor,
        steps: Any,
        context: wg.Tensor,
        *,
        seen: wg.Tensor | None = None,
        sizes: wg.Tensor | None = None,
    ) -> wg.Tensor:
        """x (n, channels, height, width), steps a number or (n,), context (n, length, width).

        `seen` (n, 1, 1, length) says which places of the context there are, `sizes` (n, 2) the height and
        width of the pictures, where the network was trained to know them.
        """
        config = self.config
        if config.takes_sizes and sizes is None:
            raise wg.ArgumentError("this transformer takes sizes=, the pictures' height and width (n, 2)")
        time = self.adaln_single.emb(time_of_each(x, steps), sizes if config.takes_sizes else None)
        modulation = self.adaln_single.linear(wg.silu(time)).reshape(x.shape[0], 6, config.width)
        context = context if self.caption_projection is None else self.caption_projection(context)
        states = self.pos_embed(x)
        for block in self.transformer_blocks:
            states = block(states, modulation, context, seen)
        shift, scale = wg.split(self.scale_shift_table[None] + time[:, None], 2, axis=1)
        states = self.proj_out(self.norm_out(states) * (1 + scale) + shift)
        return _picture(states, x.shape[2:], config.patch_size, config.outputs)


def transformer_2d(config: Transformer2DConfig) -> nn.Module:
    """The network that settings of the older class describe: a DiT or a PixArt."""
    for name in ("in_channels", "patch_size", "sample_size"):
        if getattr(config, name) is None:
            raise wg.ModelFileError(f"there is no {name}, which a transformer over patches needs")
    if config.norm_type == "ada_norm_single":
        return PixArtTransformer(config)
    for name in ("cross_attention_dim", "caption_channels"):
        if getattr(config, name) is not None:
            raise wg.ModelFileError(f"there is no {name} of a network with norm_type {config.norm_type!r}")
    return DiTTransformer(config, config.scale)
