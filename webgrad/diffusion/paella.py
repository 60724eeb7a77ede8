"""Paella's autoencoder with a code book: the last of Würstchen's three stages.

In: pictures (n, 3, height, width) of values from 0 to 1. Out: latents, and pictures made of them. Each place
is normalised by itself, so that a part of a picture does not depend on what is far away. Settings and members
have the names of diffusers' published models.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import webgrad as wg
from webgrad import nn

from .autoencoders import CodeBook
from .configs import Idle
from .residual import PlaceNorm

__all__ = ["PaellaVQ", "PaellaVQConfig"]

WIDER = 4  # how many times the channels of a place there are inside a block


@dataclass(frozen=True)
class PaellaVQConfig:
    """The settings of Paella's autoencoder."""

    in_channels: int = 3
    out_channels: int = 3
    up_down_scale_factor: int = 2
    levels: int = 2
    bottleneck_blocks: int = 12
    embed_dim: int = 384
    latent_channels: int = 4
    num_vq_embeddings: int = 8192
    scale_factor: float = 0.3764

    idle: ClassVar[Idle] = {}

    @property
    def widths(self) -> list[int]:
        """The channels of each level, from the picture's side."""
        return [self.embed_dim >> at for at in reversed(range(self.levels))]


class MixingBlock(nn.Module):
    """x + depthwise(norm1(x)) and then + channelwise(norm2(x)), each scaled and moved by learned numbers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = PlaceNorm(channels), PlaceNorm(channels)
        around = nn.Conv2d(channels, channels, 3, groups=channels)
        self.depthwise = nn.Sequential(nn.ReplicationPad2d(1), around)
        wide = WIDER * channels
        self.channelwise = nn.Sequential(nn.Linear(channels, wide), nn.GELU(), nn.Linear(wide, channels))
        self.gammas = nn.Parameter(wg.zeros((6,)))

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """A picture of the same shape."""
        scale1, shift1, share1, scale2, shift2, share2 = (self.gammas[at] for at in range(6))
        x = x + self.depthwise(self.norm1(x) * (1 + scale1) + shift1) * share1
        places = (self.norm2(x) * (1 + scale2) + shift2).permute(0, 2, 3, 1)
        found: wg.Tensor = x + self.channelwise(places).permute(0, 3, 1, 2) * share2
        return found


class PaellaVQ(nn.Module):
    """An autoencoder whose latents may be vectors of a code book."""

    def __init__(self, config: PaellaVQConfig) -> None:
        super().__init__()
        self.config = config
        widths, factor = config.widths, config.up_down_scale_factor
        entering = nn.Conv2d(config.in_channels * factor**2, widths[0], 1)
        self.in_block = nn.Sequential(nn.PixelUnshuffle(factor), entering)
        self.down_blocks = nn.Sequential(*_way_down(config))
        self.vquantizer = CodeBook(config.num_vq_embeddings, config.latent_channels)
        self.up_blocks = nn.Sequential(*_way_up(config))
        leaving = nn.Conv2d(widths[0], config.out_channels * factor**2, 1)
        self.out_block = nn.Sequential(leaving, nn.PixelShuffle(factor))

    @property
    def factor(self) -> int:
        """How many places of a picture lie along one of a latent."""
        return self.config.up_down_scale_factor << (self.config.levels - 1)

    def encode(self, x: wg.Tensor) -> wg.Tensor:
        """A picture's latents, before they are scaled."""
        found: wg.Tensor = self.down_blocks(self.in_block(x))
        return found

    def decode(self, latents: wg.Tensor, *, quantised: bool = True) -> wg.Tensor:
        """A picture of latents that are not scaled; unless `quantised`, the nearest vectors are taken."""
        found: wg.Tensor = self.out_block(self.up_blocks(latents if quantised else self.vquantizer(latents)))
        return found

    def unscaled(self, latents: wg.Tensor) -> wg.Tensor:
        """Latents as `decode` takes them, of those that networks of noise give."""
        return latents * self.config.scale_factor

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """A picture through its latents."""
        return self.decode(self.encode(x))


def _way_down(config: PaellaVQConfig) -> list[nn.Module]:
    widths = config.widths
    layers: list[nn.Module] = [MixingBlock(widths[0])]
    for inputs, outputs in pairwise(widths):
        layers += [nn.Conv2d(inputs, outputs, 4, 2, 1), MixingBlock(outputs)]
    narrow = nn.Conv2d(widths[-1], config.latent_channels, 1, bias=False)
    return [*layers, nn.Sequential(narrow, nn.BatchNorm2d(config.latent_channels))]


def _way_up(config: PaellaVQConfig) -> list[nn.Module]:
    widths = config.widths[::-1]
    layers: list[nn.Module] = [nn.Sequential(nn.Conv2d(config.latent_channels, widths[0], 1))]
    layers += [MixingBlock(widths[0]) for _ in range(config.bottleneck_blocks)]
    for inputs, outputs in pairwise(widths):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1), MixingBlock(outputs)]
    return layers
