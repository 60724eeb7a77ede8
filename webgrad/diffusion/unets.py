"""U-Nets in two dimensions, without a context and with one: what a noisy picture's noise is, or its original.

In: pictures, time steps, and what they are conditioned by. Out: pictures of the same size. Settings and
members have the names of diffusers' published models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import webgrad as wg
from webgrad import nn

from .attention import PictureAttention, SpatialTransformer
from .blocks import DownBlock, MidBlock, UpBlock
from .configs import Idle, by_block
from .residual import Downsample, ResidualSettings, Upsample
from .timesteps import FourierFeatures, TimestepEmbedding, sinusoids, time_of_each

__all__ = ["UNet2D", "UNet2DCondition", "UNet2DConditionConfig", "UNet2DConfig"]

Channels = tuple[int, ...]


@dataclass(frozen=True)
class UNet2DConfig:
    """The settings of a U-Net without a context."""

    sample_size: int | tuple[int, int] | None = None
    in_channels: int = 3
    out_channels: int = 3
    center_input_sample: bool = False
    time_embedding_type: str = "positional"
    time_embedding_dim: int | None = None
    freq_shift: int = 0
    flip_sin_to_cos: bool = True
    down_block_types: tuple[str, ...] = (
        "DownBlock2D",
        "AttnDownBlock2D",
        "AttnDownBlock2D",
        "AttnDownBlock2D",
    )
    mid_block_type: str | None = "UNetMidBlock2D"
    up_block_types: tuple[str, ...] = ("AttnUpBlock2D", "AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D")
    block_out_channels: Channels = (224, 448, 672, 896)
    layers_per_block: int = 2
    mid_block_scale_factor: float = 1.0
    downsample_padding: int = 1
    dropout: float = 0.0
    act_fn: str = "silu"
    attention_head_dim: int | None = 8
    norm_num_groups: int = 32
    attn_norm_num_groups: int | None = None
    norm_eps: float = 1e-5
    resnet_time_scale_shift: str = "default"
    add_attention: bool = True
    class_embed_type: str | None = None
    num_class_embeds: int | None = None
    num_train_timesteps: int | None = None

    idle: ClassVar[Idle] = {"downsample_type": ("conv",), "upsample_type": ("conv",)}


_PLAIN_BLOCKS = {
    "DownBlock2D": False, "AttnDownBlock2D": True, "UpBlock2D": False, "AttnUpBlock2D": True,
}  # fmt: skip
_CONTEXT_BLOCKS = {
    "DownBlock2D": False, "CrossAttnDownBlock2D": True, "UpBlock2D": False, "CrossAttnUpBlock2D": True,
}  # fmt: skip


def _has_attention(table: Mapping[str, bool], name: str) -> bool:
    if name not in table:
        raise wg.ModelFileError(f"there is no block {name!r} of a U-Net, only {', '.join(table)}")
    return table[name]


class _UNet(nn.Module):
    """What both kinds share: the way down, the middle, and the way up."""

    conv_in: nn.Conv2d
    conv_norm_out: nn.GroupNorm
    conv_out: nn.Conv2d

    @property
    def device(self) -> Any:
        """Where its weights are."""
        return self.conv_in.weight.device

    def _add_blocks(
        self,
        config: UNet2DConfig | UNet2DConditionConfig,
        settings: ResidualSettings,
        kinds: Mapping[str, bool],
        attention: Callable[[int], nn.Module],
        middle: nn.Module | None,
    ) -> None:
        """All blocks; `attention` is that of a level, for the kinds of blocks that have one."""
        channels, last = config.block_out_channels, len(config.block_out_channels) - 1
        layers = by_block(config.layers_per_block, len(channels))
        self.down_blocks, self.mid_block, self.up_blocks = nn.ModuleList(), middle, nn.ModuleList()
        down, up = _ways(channels, layers)
        for at, (inputs, outputs) in enumerate(down):
            attends = _has_attention(kinds, config.down_block_types[at])
            made = partial(attention, at) if attends else None
            halved = Downsample(outputs, config.downsample_padding) if at < last else None
            self.down_blocks.append(DownBlock(inputs, outputs, layers[at], settings, made, halved))
        for at, entering in enumerate(up):
            level = last - at
            attends = _has_attention(kinds, config.up_block_types[at])
            made = partial(attention, level) if attends else None
            doubled = Upsample(channels[level]) if level else None
            self.up_blocks.append(UpBlock(entering, channels[level], settings, made, doubled))

    def _through(
        self, x: wg.Tensor, time: wg.Tensor, context: wg.Tensor | None = None, seen: wg.Tensor | None = None
    ) -> wg.Tensor:
        x = self.conv_in(x)
        before = [x]
        for block in self.down_blocks:
            x, found = block(x, time, context, seen)
            before += found
        if self.mid_block is not None:
            x = self.mid_block(x, time, context, seen)
        for block in self.up_blocks:
            x = block(x, before, time, context, seen)
        result: wg.Tensor = self.conv_out(wg.silu(self.conv_norm_out(x)))
        return result


def _ways(channels: Channels, layers: list[int]) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Inputs and outputs of the blocks on the way down; the inputs of each residual block on the way up."""
    down = list(zip((channels[0], *channels), channels, strict=False))
    skipped = [channels[0]]
    for at, ((_, outputs), count) in enumerate(zip(down, layers, strict=True)):
        skipped += [outputs] * (count + (at < len(channels) - 1))
    up, last = [], channels[-1]
    for outputs, count in zip(reversed(channels), reversed(layers), strict=True):
        inputs = []
        for _ in range(count + 1):
            inputs.append(last + skipped.pop())
            last = outputs
        up.append(inputs)
    return down, up


class UNet2D(_UNet):
    """A U-Net of a noisy picture and its time step, and of a class where there are some."""

    def __init__(self, config: UNet2DConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.block_out_channels
        width = config.time_embedding_dim or 4 * channels[0]
        self.conv_in = nn.Conv2d(config.in_channels, channels[0], 3, padding=1)
        self.time_proj = _time_projection(config)
        features = channels[0] * (2 if config.time_embedding_type == "fourier" else 1)
        self.time_embedding = TimestepEmbedding(features, width)
        self.class_embedding = _class_embedding(config, features, width, None)
        settings = _settings(config, width)
        self._add_blocks(config, settings, _PLAIN_BLOCKS, self._attention_at, self._middle(settings))
        self.conv_norm_out = nn.GroupNorm(config.norm_num_groups, channels[0], eps=config.norm_eps)
        self.conv_out = nn.Conv2d(channels[0], config.out_channels, 3, padding=1)

    def _attention_at(self, level: int) -> PictureAttention:
        return self._attention(self.config.block_out_channels[level], self.config.norm_num_groups)

    def _attention(self, channels: int, groups: int | None, divisor: float = 1.0) -> PictureAttention:
        config = self.config
        heads = channels // (config.attention_head_dim or channels)
        return PictureAttention(channels, heads, groups, config.norm_eps, divisor)

    def _middle(self, settings: ResidualSettings) -> MidBlock | None:
        config, channels = self.config, self.config.block_out_channels[-1]
        if config.mid_block_type is None:
            return None
        plain = config.norm_num_groups if config.resnet_time_scale_shift == "default" else None
        groups = config.attn_norm_num_groups or plain
        middle = replace(settings, divisor=config.mid_block_scale_factor)
        made = partial(self._attention, channels, groups, middle.divisor) if config.add_attention else None
        return MidBlock(channels, 1, middle, made)

    def forward(self, x: wg.Tensor, steps: Any, classes: wg.Tensor | None = None) -> wg.Tensor:
        """x (n, channels, height, width), steps a number or (n,), classes (n,)."""
        config = self.config
        x = 2 * x - 1 if config.center_input_sample else x
        numbers = time_of_each(x, steps)
        time = self.time_embedding(self._features(numbers))
        if self.class_embedding is not None:
            time = time + _classified(self, classes, self._features)
        found = self._through(x, time)
        return found / numbers[:, None, None, None] if config.time_embedding_type == "fourier" else found

    def _features(self, numbers: wg.Tensor) -> wg.Tensor:
        config = self.config
        if self.time_proj is not None:
            features: wg.Tensor = self.time_proj(numbers)
            return features
        return sinusoids(
            numbers,
            config.block_out_channels[0],
            cosine_first=config.flip_sin_to_cos,
            shift=config.freq_shift,
        )


def _time_projection(config: UNet2DConfig) -> nn.Module | None:
    """What makes features of a time step, where these are no sines and cosines of it."""
    kind, channels = config.time_embedding_type, config.block_out_channels[0]
    if kind == "fourier":
        return FourierFeatures(channels, 16.0)
    if kind == "learned":
        return nn.Embedding(config.num_train_timesteps or 1000, channels)
    if kind != "positional":
        raise wg.ModelFileError(f"there is no time embedding {kind!r}")
    return None


@dataclass(frozen=True)
class UNet2DConditionConfig:
    """The settings of a U-Net with a context."""

    sample_size: int | tuple[int, int] | None = None
    in_channels: int = 4
    out_channels: int = 4
    center_input_sample: bool = False
    flip_sin_to_cos: bool = True
    freq_shift: int = 0
    down_block_types: tuple[str, ...] = (*("CrossAttnDownBlock2D",) * 3, "DownBlock2D")
    mid_block_type: str | None = "UNetMidBlock2DCrossAttn"
    up_block_types: tuple[str, ...] = ("UpBlock2D", *("CrossAttnUpBlock2D",) * 3)
    block_out_channels: Channels = (320, 640, 1280, 1280)
    layers_per_block: int | tuple[int, ...] = 2
    downsample_padding: int = 1
    mid_block_scale_factor: float = 1.0
    dropout: float = 0.0
    act_fn: str = "silu"
    norm_num_groups: int = 32
    norm_eps: float = 1e-5
    cross_attention_dim: int | tuple[int, ...] = 1280
    transformer_layers_per_block: int | tuple[int, ...] = 1
    attention_head_dim: int | tuple[int, ...] = 8  # how many heads: the published name is a mistake
    use_linear_projection: bool = False
    class_embed_type: str | None = None
    num_class_embeds: int | None = None
    projection_class_embeddings_input_dim: int | None = None
    addition_embed_type: str | None = None
    addition_time_embed_dim: int | None = None
    resnet_time_scale_shift: str = "default"
    time_embedding_dim: int | None = None
    time_cond_proj_dim: int | None = None
    conv_in_kernel: int = 3
    conv_out_kernel: int = 3

    idle: ClassVar[Idle] = {
        "only_cross_attention": (False,),
        "mid_block_only_cross_attention": (False,),
        "dual_cross_attention": (False,),
        "upcast_attention": (),  # sums of products are float32 anyway
        "resnet_skip_time_act": (False,),
        "resnet_out_scale_factor": (1.0,),
        "time_embedding_type": ("positional",),
        "attention_type": ("default",),
        "class_embeddings_concat": (False,),
        "addition_embed_type_num_heads": (),  # of a kind that is refused
    }


class UNet2DCondition(_UNet):
    """A U-Net of a noisy picture, its time step and a context, such as the states of a text."""

    def __init__(self, config: UNet2DConditionConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.block_out_channels
        width = config.time_embedding_dim or 4 * channels[0]
        self.conv_in = nn.Conv2d(
            config.in_channels, channels[0], config.conv_in_kernel, padding=config.conv_in_kernel // 2
        )
        self.time_embedding = TimestepEmbedding(channels[0], width, config.act_fn, config.time_cond_proj_dim)
        given = config.projection_class_embeddings_input_dim
        self.class_embedding = _class_embedding(config, channels[0], width, given)
        self.add_embedding = None
        if config.addition_embed_type is not None:
            if config.addition_embed_type != "text_time" or given is None:
                raise wg.ModelFileError(f"there is no addition_embed_type {config.addition_embed_type!r}")
            self.add_embedding = TimestepEmbedding(given, width)
        settings = _settings(config, width)
        self._add_blocks(config, settings, _CONTEXT_BLOCKS, self._attention, self._middle(settings))
        self.conv_norm_out = nn.GroupNorm(config.norm_num_groups, channels[0], eps=config.norm_eps)
        self.conv_out = nn.Conv2d(
            channels[0], config.out_channels, config.conv_out_kernel, padding=config.conv_out_kernel // 2
        )

    def _attention(self, level: int) -> SpatialTransformer:
        config, channels = self.config, self.config.block_out_channels
        settings = (
            config.attention_head_dim,
            config.cross_attention_dim,
            config.transformer_layers_per_block,
        )
        heads, context, depth = (by_block(each, len(channels))[level] for each in settings)
        groups, linear = config.norm_num_groups, config.use_linear_projection
        return SpatialTransformer(channels[level], heads, context, depth, groups, linear)

    def _middle(self, settings: ResidualSettings) -> MidBlock | None:
        config, last = self.config, len(self.config.block_out_channels) - 1
        if config.mid_block_type is None:
            return None
        if config.mid_block_type not in ("UNetMidBlock2DCrossAttn", "UNetMidBlock2D"):
            raise wg.ModelFileError(f"there is no mid_block_type {config.mid_block_type!r}")
        middle = replace(settings, divisor=config.mid_block_scale_factor)
        attends = config.mid_block_type == "UNetMidBlock2DCrossAttn"
        made = partial(self._attention, last) if attends else None
        return MidBlock(config.block_out_channels[last], 1 if attends else 0, middle, made)

    def forward(
        self,
        x: wg.Tensor,
        steps: Any,
        context: wg.Tensor,
        *,
        classes: wg.Tensor | None = None,
        pooled: wg.Tensor | None = None,
        sizes: wg.Tensor | None = None,
        guidance: wg.Tensor | None = None,
        seen: wg.Tensor | None = None,
    ) -> wg.Tensor:
        """x (n, channels, height, width), steps a number or (n,), context (n, length, width).

        `pooled` (n, width) is a text as one vector and `sizes` (n, 6) what is said of the picture's size,
        which networks of the XL class take; `guidance` is the vector that LCM's take; `seen`
        (n, 1, 1, length) says which places of the context there are.
        """
        config = self.config
        x = 2 * x - 1 if config.center_input_sample else x
        time = self.time_embedding(self._features(time_of_each(x, steps)), guidance)
        if self.class_embedding is not None:
            time = time + _classified(self, classes, self._features)
        if self.add_embedding is not None:
            if pooled is None or sizes is None:
                raise wg.ArgumentError("this U-Net takes pooled=, a text's vector, and sizes= of the picture")
            numbers = self._features(sizes.reshape(-1), config.addition_time_embed_dim)
            together = wg.concat([pooled, numbers.reshape(x.shape[0], -1)], axis=-1)
            time = time + self.add_embedding(together)
        return self._through(x, time, context, seen)

    def _features(self, numbers: wg.Tensor, width: int | None = None) -> wg.Tensor:
        config = self.config
        return sinusoids(
            numbers,
            width or config.block_out_channels[0],
            cosine_first=config.flip_sin_to_cos,
            shift=config.freq_shift,
        )


def _settings(config: UNet2DConfig | UNet2DConditionConfig, width: int) -> ResidualSettings:
    if config.resnet_time_scale_shift not in ("default", "scale_shift"):
        raise wg.ModelFileError(f"there is no resnet_time_scale_shift {config.resnet_time_scale_shift!r}")
    return ResidualSettings(
        width,
        config.norm_num_groups,
        config.norm_eps,
        config.act_fn,
        config.dropout,
        scales=config.resnet_time_scale_shift == "scale_shift",
    )


def _class_embedding(
    config: UNet2DConfig | UNet2DConditionConfig, features: int, width: int, given: int | None
) -> nn.Module | None:
    kind = config.class_embed_type
    if kind is None:
        return None if config.num_class_embeds is None else nn.Embedding(config.num_class_embeds, width)
    if kind == "timestep":
        return TimestepEmbedding(features, width)
    if kind == "identity":
        return nn.Identity()
    if kind in ("projection", "simple_projection") and given is not None:
        return TimestepEmbedding(given, width) if kind == "projection" else nn.Linear(given, width)
    raise wg.ModelFileError(f"there is no class_embed_type {kind!r}")


def _classified(
    model: UNet2D | UNet2DCondition, classes: wg.Tensor | None, features: Callable[[wg.Tensor], wg.Tensor]
) -> wg.Tensor:
    if classes is None:
        raise wg.ArgumentError("this U-Net is conditioned by classes: give classes=, one for each picture")
    if model.config.class_embed_type == "timestep":
        classes = features(classes)
    found: wg.Tensor = model.class_embedding(classes)  # type: ignore[misc]
    return found
