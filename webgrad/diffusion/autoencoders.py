"""Autoencoders: pictures as smaller ones of more channels, and back; with noise, with a code book, or tiny.

In: pictures (n, 3, height, width) of values from -1 to 1. Out: latents, which networks of noise work on, and
pictures made of them. Settings and members have the names of diffusers' published models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import webgrad as wg
from webgrad import nn

from .activations import activation
from .attention import PictureAttention
from .blocks import DownBlock, MidBlock, UpBlock
from .configs import Idle
from .residual import Downsample, ResidualSettings, Upsample

__all__ = [
    "AutoencoderKL",
    "AutoencoderKLConfig",
    "AutoencoderTiny",
    "AutoencoderTinyConfig",
    "Gaussian",
    "VQModel",
    "VQModelConfig",
]

EPSILON = 1e-6  # of the norms
LOG_VARIANCE = (-30.0, 20.0)  # what a logarithm of a variance is kept between


@dataclass(frozen=True)
class _Config:
    """The settings of an encoder and a decoder."""

    in_channels: int = 3
    out_channels: int = 3
    down_block_types: tuple[str, ...] = ("DownEncoderBlock2D",)
    up_block_types: tuple[str, ...] = ("UpDecoderBlock2D",)
    block_out_channels: tuple[int, ...] = (64,)
    layers_per_block: int = 1
    act_fn: str = "silu"
    latent_channels: int = 4
    norm_num_groups: int = 32
    sample_size: int | tuple[int, ...] = 32
    scaling_factor: float = 0.18215
    mid_block_add_attention: bool = True

    idle: ClassVar[Idle] = {"force_upcast": ()}  # products are summed in float32 anyway


@dataclass(frozen=True)
class AutoencoderKLConfig(_Config):
    """The settings of an autoencoder whose latents are normal distributions."""

    shift_factor: float | None = None
    use_quant_conv: bool = True
    use_post_quant_conv: bool = True


@dataclass(frozen=True)
class VQModelConfig(_Config):
    """The settings of an autoencoder whose latents are vectors of a code book."""

    latent_channels: int = 3
    num_vq_embeddings: int = 256
    vq_embed_dim: int | None = None

    idle: ClassVar[Idle] = {**_Config.idle, "norm_type": ("group",), "lookup_from_codebook": ()}


def _settings(config: _Config) -> ResidualSettings:
    return ResidualSettings(None, config.norm_num_groups, EPSILON, config.act_fn)


def _attends(table: Mapping[str, bool], name: str) -> bool:
    if name not in table:
        raise wg.ModelFileError(f"there is no block {name!r} of an autoencoder, only {', '.join(table)}")
    return table[name]


_DOWN = {"DownEncoderBlock2D": False, "AttnDownEncoderBlock2D": True}
_UP = {"UpDecoderBlock2D": False, "AttnUpDecoderBlock2D": True}


def _attention(config: _Config, channels: int) -> PictureAttention:
    return PictureAttention(channels, 1, config.norm_num_groups, EPSILON)


def _middle(config: _Config) -> MidBlock:
    channels = config.block_out_channels[-1]
    attention = partial(_attention, config, channels) if config.mid_block_add_attention else None
    return MidBlock(channels, 1, _settings(config), attention)


class Encoder(nn.Module):
    """A picture as one of fewer places and more channels."""

    def __init__(self, config: _Config, outputs: int) -> None:
        super().__init__()
        channels, settings = config.block_out_channels, _settings(config)
        self.conv_in = nn.Conv2d(config.in_channels, channels[0], 3, padding=1)
        self.down_blocks = nn.ModuleList()
        for at, (inputs, width) in enumerate(zip((channels[0], *channels), channels, strict=False)):
            attends = _attends(_DOWN, config.down_block_types[at])
            made = partial(_attention, config, width) if attends else None
            halved = Downsample(width, padding=0) if at < len(channels) - 1 else None
            self.down_blocks.append(DownBlock(inputs, width, config.layers_per_block, settings, made, halved))
        self.mid_block = _middle(config)
        self.conv_norm_out = nn.GroupNorm(config.norm_num_groups, channels[-1], eps=EPSILON)
        self.conv_out = nn.Conv2d(channels[-1], outputs, 3, padding=1)
        self.activation = activation(config.act_fn)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(n, in_channels, height, width) → (n, outputs, height / 2^k, width / 2^k)."""
        x = self.conv_in(x)
        for block in self.down_blocks:
            x, _ = block(x)
        found: wg.Tensor = self.conv_out(self.activation(self.conv_norm_out(self.mid_block(x))))
        return found


class Decoder(nn.Module):
    """A latent as a picture."""

    def __init__(self, config: _Config) -> None:
        super().__init__()
        channels, settings = config.block_out_channels, _settings(config)
        self.conv_in = nn.Conv2d(config.latent_channels, channels[-1], 3, padding=1)
        self.mid_block = _middle(config)
        self.up_blocks = nn.ModuleList()
        inputs = channels[-1]
        for at, width in enumerate(reversed(channels)):
            attends = _attends(_UP, config.up_block_types[at])
            made = partial(_attention, config, width) if attends else None
            doubled = Upsample(width) if at < len(channels) - 1 else None
            entering = [inputs, *[width] * config.layers_per_block]
            self.up_blocks.append(UpBlock(entering, width, settings, made, doubled))
            inputs = width
        self.conv_norm_out = nn.GroupNorm(config.norm_num_groups, channels[0], eps=EPSILON)
        self.conv_out = nn.Conv2d(channels[0], config.out_channels, 3, padding=1)
        self.activation = activation(config.act_fn)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(n, latent_channels, height, width) → (n, out_channels, height · 2^k, width · 2^k)."""
        x = self.mid_block(self.conv_in(x))
        for block in self.up_blocks:
            x = block(x, [])
        found: wg.Tensor = self.conv_out(self.activation(self.conv_norm_out(x)))
        return found


@dataclass(frozen=True)
class Gaussian:
    """Normal distributions of latents."""

    mean: wg.Tensor
    log_variance: wg.Tensor

    def mode(self) -> wg.Tensor:
        """The most probable latents."""
        return self.mean

    def sample(self, noise: wg.Tensor | None = None) -> wg.Tensor:
        """Latents drawn by noise, which is drawn itself where none is given."""
        if noise is None:
            noise = wg.random.normal(self.mean.shape, device=self.mean.device)
        return self.mean + wg.exp(0.5 * self.log_variance) * noise


class AutoencoderKL(nn.Module):
    """The autoencoder of Stable Diffusion and its kin."""

    def __init__(self, config: AutoencoderKLConfig) -> None:
        super().__init__()
        self.config = config
        count = config.latent_channels
        self.encoder, self.decoder = Encoder(config, 2 * count), Decoder(config)
        self.quant_conv = nn.Conv2d(2 * count, 2 * count, 1) if config.use_quant_conv else nn.Identity()
        self.post_quant_conv = nn.Conv2d(count, count, 1) if config.use_post_quant_conv else nn.Identity()

    @property
    def factor(self) -> int:
        """How many places of a picture lie along one of a latent."""
        return 1 << (len(self.config.block_out_channels) - 1)

    def encode(self, x: wg.Tensor) -> Gaussian:
        """The distribution of a picture's latents, as they are before they are scaled."""
        mean, log_variance = wg.split(self.quant_conv(self.encoder(x)), 2, axis=1)
        return Gaussian(mean, wg.clip(log_variance, *LOG_VARIANCE))

    def decode(self, latents: wg.Tensor) -> wg.Tensor:
        """A picture of latents that are not scaled."""
        found: wg.Tensor = self.decoder(self.post_quant_conv(latents))
        return found

    def scaled(self, latents: wg.Tensor) -> wg.Tensor:
        """Latents as networks of noise take them."""
        return (latents - (self.config.shift_factor or 0.0)) * self.config.scaling_factor

    def unscaled(self, latents: wg.Tensor) -> wg.Tensor:
        """Latents as `decode` takes them."""
        return latents / self.config.scaling_factor + (self.config.shift_factor or 0.0)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """A picture through its most probable latents."""
        return self.decode(self.encode(x).mode())


class VQModel(nn.Module):
    """An autoencoder whose latents are vectors of a code book."""

    def __init__(self, config: VQModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.vq_embed_dim or config.latent_channels
        self.encoder, self.decoder = Encoder(config, config.latent_channels), Decoder(config)
        self.quant_conv = nn.Conv2d(config.latent_channels, width, 1)
        self.quantize = CodeBook(config.num_vq_embeddings, width)
        self.post_quant_conv = nn.Conv2d(width, config.latent_channels, 1)

    def encode(self, x: wg.Tensor) -> wg.Tensor:
        """A picture's latents, before the code book."""
        found: wg.Tensor = self.quant_conv(self.encoder(x))
        return found

    def decode(self, latents: wg.Tensor, *, quantised: bool = False) -> wg.Tensor:
        """A picture of latents, of which the nearest vectors are taken unless they are such."""
        found: wg.Tensor = self.decoder(
            self.post_quant_conv(latents if quantised else self.quantize(latents))
        )
        return found

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """A picture through the code book."""
        return self.decode(self.encode(x))


class CodeBook(nn.Module):
    """Vectors, of which the nearest one stands for a latent's."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(count, width)

    def codes(self, latents: wg.Tensor) -> wg.Tensor:
        """Numbers of the nearest vectors: (n, width, height, width) → (n, height, width)."""
        book = self.embedding.weight.astype(wg.float32)
        states = latents.permute(0, 2, 3, 1)
        distances = wg.sum(book * book, axis=1) - 2 * (states @ book.T)
        return wg.argmin(distances, axis=-1)

    def forward(self, latents: wg.Tensor) -> wg.Tensor:
        """The nearest vectors, in the latents' own shape."""
        found: wg.Tensor = self.embedding(self.codes(latents)).permute(0, 3, 1, 2)
        return found.astype(latents.dtype)


@dataclass(frozen=True)
class AutoencoderTinyConfig:
    """The settings of a small autoencoder without distributions."""

    in_channels: int = 3
    out_channels: int = 3
    encoder_block_out_channels: tuple[int, ...] = (64, 64, 64, 64)
    decoder_block_out_channels: tuple[int, ...] = (64, 64, 64, 64)
    act_fn: str = "relu"
    latent_channels: int = 4
    upsampling_scaling_factor: int = 2
    num_encoder_blocks: tuple[int, ...] = (1, 3, 3, 3)
    num_decoder_blocks: tuple[int, ...] = (3, 3, 3, 1)
    latent_magnitude: float = 3.0
    latent_shift: float = 0.5
    scaling_factor: float = 1.0
    shift_factor: float = 0.0

    idle: ClassVar[Idle] = {
        "upsample_fn": ("nearest",),
        "force_upcast": (),
        "block_out_channels": (),  # the decoder's again
    }


class TinyBlock(nn.Module):
    """relu(three convolutions of x + x)."""

    def __init__(self, width: int, name: str) -> None:
        super().__init__()
        act = [nn.Conv2d(width, width, 3, padding=1) for _ in range(3)]
        self.conv = nn.ModuleList([act[0], nn.Identity(), act[1], nn.Identity(), act[2]])
        self.activation = activation(name)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """A picture of the same shape."""
        first, _, second, _, third = self.conv
        return wg.relu(third(self.activation(second(self.activation(first(x))))) + x)


class AutoencoderTiny(nn.Module):
    """A small autoencoder whose latents are those of a large one: for previews, and quick pictures."""

    def __init__(self, config: AutoencoderTinyConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.decoder = TinyEncoder(config), TinyDecoder(config)

    @property
    def factor(self) -> int:
        """How many places of a picture lie along one of a latent."""
        return int(self.config.upsampling_scaling_factor ** (len(self.config.num_decoder_blocks) - 1))

    def encode(self, x: wg.Tensor) -> wg.Tensor:
        """A picture's latents."""
        found: wg.Tensor = self.encoder(x)
        return found

    def decode(self, latents: wg.Tensor) -> wg.Tensor:
        """A picture of latents."""
        found: wg.Tensor = self.decoder(latents)
        return found

    def scaled(self, latents: wg.Tensor) -> wg.Tensor:
        """Latents as networks of noise take them."""
        return (latents - self.config.shift_factor) * self.config.scaling_factor

    def unscaled(self, latents: wg.Tensor) -> wg.Tensor:
        """Latents as `decode` takes them."""
        return latents / self.config.scaling_factor + self.config.shift_factor

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """A picture through its latents."""
        return self.decode(self.encode(x))


class TinyEncoder(nn.Module):
    """Convolutions that halve the size, and small residual blocks between them."""

    def __init__(self, config: AutoencoderTinyConfig) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for at, (count, width) in enumerate(
            zip(config.num_encoder_blocks, config.encoder_block_out_channels, strict=True)
        ):
            if at:
                layers.append(nn.Conv2d(width, width, 3, 2, 1, bias=False))
            else:
                layers.append(nn.Conv2d(config.in_channels, width, 3, padding=1))
            layers += [TinyBlock(width, config.act_fn) for _ in range(count)]
        last = config.encoder_block_out_channels[-1]
        self.layers = nn.Sequential(*layers, nn.Conv2d(last, config.latent_channels, 3, padding=1))

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """Pictures from -1 to 1; the network works from 0 to 1."""
        found: wg.Tensor = self.layers((x + 1) / 2)
        return found


class TinyDecoder(nn.Module):
    """Small residual blocks, and convolutions after each element was doubled."""

    def __init__(self, config: AutoencoderTinyConfig) -> None:
        super().__init__()
        widths, counts = config.decoder_block_out_channels, config.num_decoder_blocks
        layers: list[nn.Module] = [nn.Conv2d(config.latent_channels, widths[0], 3, padding=1)]
        layers.append(Elementwise(config.act_fn))
        for at, (count, width) in enumerate(zip(counts, widths, strict=True)):
            is_last = at == len(counts) - 1
            layers += [TinyBlock(width, config.act_fn) for _ in range(count)]
            if not is_last:
                layers.append(nn.Upsample(scale_factor=config.upsampling_scaling_factor))
            outputs = config.out_channels if is_last else width
            layers.append(nn.Conv2d(width, outputs, 3, padding=1, bias=is_last))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """Pictures from -1 to 1."""
        found: wg.Tensor = self.layers(wg.tanh(x / 3) * 3) * 2 - 1
        return found


class Elementwise(nn.Module):
    """An activation as a layer."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = activation(name)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """Element by element."""
        return self.function(x)


def decode_tiles(model: Any, latents: wg.Tensor, tile: int, overlap: float = 0.25) -> wg.Tensor:
    """`model.decode` of a large latent in square parts of `tile` places, blended where they overlap."""
    height, width = latents.shape[2:]
    if max(height, width) <= tile:
        found: wg.Tensor = model.decode(latents)
        return found
    stride = max(1, int(tile * (1 - overlap)))
    rows = []
    for top in _starts(height, tile, stride):
        parts = [
            model.decode(latents[:, :, top : top + tile, left : left + tile])
            for left in _starts(width, tile, stride)
        ]
        rows.append(_joined(parts, [at * model.factor for at in _starts(width, tile, stride)], 3))
    return _joined(rows, [at * model.factor for at in _starts(height, tile, stride)], 2)


def _starts(size: int, tile: int, stride: int) -> list[int]:
    """Where tiles begin, so that the last one ends with the size."""
    last = max(size - tile, 0)
    return [*range(0, last, stride), last]


def _joined(parts: Sequence[wg.Tensor], starts: Sequence[int], axis: int) -> wg.Tensor:
    """Parts that begin at `starts` along an axis, each faded into the next where both are."""
    found = parts[0]
    for part, start in zip(parts[1:], starts[1:], strict=True):
        shared = found.shape[axis] - start
        steps = wg.arange(shared, dtype=found.dtype, device=found.device) / max(shared, 1)
        share = steps.reshape([-1 if at == axis else 1 for at in range(4)])
        old, blended = wg.split(found, [start], axis=axis)
        new, rest = wg.split(part, [shared], axis=axis)
        found = wg.concat([old, blended * (1 - share) + new * share, rest], axis=axis)
    return found
