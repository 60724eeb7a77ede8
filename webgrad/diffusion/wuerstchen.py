"""Würstchen's two networks of noise: the prior, over a picture shrunk 42 times, and the decoder after it.

In: noisy latents (n, channels, height, width), times from 1 (all noise) to 0, the states of a text, and for
the decoder the prior's latents. Out: the noise. Both are rows of three kinds of blocks, which settings call
by a letter. Settings and members have the names of diffusers' published models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import webgrad as wg
from webgrad import nn

from .attention import Attention
from .configs import Idle, by_block
from .residual import PlaceNorm
from .timesteps import sinusoids, time_of_each

__all__ = ["DiffNeXt", "DiffNeXtConfig", "Prior", "PriorConfig"]

WIDER = 4  # how many times the channels of a place there are inside a block
TIME_STEPS = 10_000.0  # of a time from 0 to 1, as sines and cosines count it
EPSILON = 1e-3  # of the decoder's share of noise, which lies between it and 1 - it
LONGEST = 16  # letters of a level's row of blocks
FEWEST = 4  # features of a time


@dataclass(frozen=True)
class Told:
    """What a block may take besides the picture: each kind of block takes one of these."""

    time: wg.Tensor  # features of the time (n, width)
    context: wg.Tensor  # (n, length, width)
    beside: wg.Tensor | None = None  # further channels (n, channels, height, width) of the same places


class ConvolvingBlock(nn.Module):
    """x + channelwise(norm(depthwise(x)) with further channels): ConvNeXt's second version."""

    def __init__(self, channels: int, more: int = 0, kernel: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels)
        self.norm = PlaceNorm(channels)
        wide = WIDER * channels
        self.channelwise = nn.Sequential(
            nn.Linear(channels + more, wide),
            nn.GELU(),
            ResponseNorm(wide),
            nn.Dropout(dropout),
            nn.Linear(wide, channels),
        )

    def forward(self, x: wg.Tensor, told: Told) -> wg.Tensor:
        """A picture of the same shape."""
        inner = self.norm(self.depthwise(x))
        if told.beside is not None:
            inner = wg.concat([inner, told.beside], axis=1)
        found: wg.Tensor = x + self.channelwise(inner.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return found


class ResponseNorm(nn.Module):
    """gamma · x · (a channel's size over the mean of all channels') + beta + x."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(wg.zeros((1, 1, 1, channels)))
        self.beta = nn.Parameter(wg.zeros((1, 1, 1, channels)))

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (n, height, width, channels)."""
        size = wg.sqrt(wg.sum(x * x, axis=(1, 2), keepdims=True))
        relative = size / (wg.mean(size, axis=-1, keepdims=True) + 1e-6)
        return self.gamma * (x * relative) + self.beta + x


class TimeBlock(nn.Module):
    """x · (1 + scale) + shift, both of the time."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        if features < FEWEST:
            raise wg.ModelFileError(f"c_r is {features}: sines and cosines of a time are at least {FEWEST}")
        self.mapper = nn.Linear(features, 2 * channels)

    def forward(self, x: wg.Tensor, told: Told) -> wg.Tensor:
        """A picture of the same shape."""
        scale, shift = wg.split(self.mapper(told.time)[:, :, None, None], 2, axis=1)
        return x * (1 + scale) + shift


class ContextBlock(nn.Module):
    """x + attention of its places to each other and to a context."""

    def __init__(self, channels: int, context: int, heads: int) -> None:
        super().__init__()
        self.norm = PlaceNorm(channels)
        self.attention = Attention(channels, heads, channels // heads, biased=True)
        self.kv_mapper = nn.Sequential(nn.SiLU(), nn.Linear(context, channels))

    def forward(self, x: wg.Tensor, told: Told) -> wg.Tensor:
        """A picture of the same shape."""
        n, channels, height, width = x.shape
        places = self.norm(x).reshape(n, channels, height * width).permute(0, 2, 1)
        source = wg.concat([places, self.kv_mapper(told.context)], axis=1)
        found: wg.Tensor = x + self.attention(places, source).permute(0, 2, 1).reshape(x.shape)
        return found


@dataclass(frozen=True)
class PriorConfig:
    """The settings of the prior."""

    c_in: int = 16
    c: int = 1280
    c_cond: int = 1024
    c_r: int = 64
    depth: int = 16
    nhead: int = 16
    dropout: float = 0.1

    idle: ClassVar[Idle] = {}


class Prior(nn.Module):
    """The network that lays a picture out: what a text means, on a few places."""

    def __init__(self, config: PriorConfig) -> None:
        super().__init__()
        self.config = config
        width = config.c
        self.projection = nn.Conv2d(config.c_in, width, 1)
        self.cond_mapper = nn.Sequential(
            nn.Linear(config.c_cond, width), nn.LeakyReLU(0.2), nn.Linear(width, width)
        )
        self.blocks = nn.ModuleList()
        for _ in range(config.depth):
            self.blocks.append(ConvolvingBlock(width, dropout=config.dropout))
            self.blocks.append(TimeBlock(width, config.c_r))
            self.blocks.append(ContextBlock(width, width, config.nhead))
        self.out = nn.Sequential(PlaceNorm(width), nn.Conv2d(width, 2 * config.c_in, 1))

    def forward(self, x: wg.Tensor, times: Any, context: wg.Tensor) -> wg.Tensor:
        """x (n, c_in, height, width), times a number or (n,), context (n, length, c_cond)."""
        told = Told(_time_features(x, times, self.config.c_r), self.cond_mapper(context))
        inner = self.projection(x)
        for block in self.blocks:
            inner = block(inner, told)
        shift, share = wg.split(self.out(inner), 2, axis=1)
        return (x - shift) / (wg.abs(1 - share) + 1e-5)


@dataclass(frozen=True)
class DiffNeXtConfig:
    """The settings of the decoder."""

    c_in: int = 4
    c_out: int = 4
    c_r: int = 64
    patch_size: int = 2
    c_cond: int = 1024
    c_hidden: tuple[int, ...] = (320, 640, 1280, 1280)
    nhead: tuple[int, ...] = (-1, 10, 20, 20)
    blocks: tuple[int, ...] = (4, 4, 14, 4)
    level_config: tuple[str, ...] = ("CT", "CTA", "CTA", "CTA")
    inject_effnet: tuple[bool, ...] = (False, True, True, True)
    effnet_embd: int = 16
    clip_embd: int = 1024
    kernel_size: int = 3
    dropout: float | tuple[float, ...] = 0.1

    idle: ClassVar[Idle] = {}

    @property
    def smallest(self) -> int:
        """What a latent's height and width are multiples of."""
        return self.patch_size << (len(self.c_hidden) - 1)


class DiffNeXt(nn.Module):
    """A U-Net of the same blocks, to which the prior's latents are given at every level."""

    def __init__(self, config: DiffNeXtConfig) -> None:
        super().__init__()
        self.config = config
        widths, patch = config.c_hidden, config.patch_size
        levels = [_Level(config, at) for at in range(len(widths))]
        self.clip_mapper = nn.Linear(config.clip_embd, config.c_cond)
        self.seq_norm = nn.LayerNorm(config.c_cond, eps=1e-6, elementwise_affine=False)
        self.effnet_mappers = nn.ModuleList(each.mapper() for each in [*levels, *levels[::-1]])
        entering = nn.Conv2d(config.c_in * patch**2, widths[0], 1)
        self.embedding = nn.Sequential(nn.PixelUnshuffle(patch), entering, PlaceNorm(widths[0]))
        self.down_blocks = nn.ModuleList(each.way_down() for each in levels)
        self.up_blocks = nn.ModuleList(each.way_up() for each in levels[::-1])
        leaving = nn.Conv2d(widths[0], 2 * config.c_out * patch**2, 1)
        self.clf = nn.Sequential(PlaceNorm(widths[0]), leaving, nn.PixelShuffle(patch))

    def conditions(
        self, latents: wg.Tensor, states: wg.Tensor, size: Sequence[int]
    ) -> tuple[list[wg.Tensor | None], wg.Tensor]:
        """What does not change from step to step: the prior's latents for each level, and the context.

        The latents are (n, effnet_embd, …), the states (n, length, clip_embd); size is that of x.
        """
        context = self.seq_norm(self.clip_mapper(states))
        count = len(self.config.c_hidden)
        injects = by_block(self.config.inject_effnet, count)
        found: list[wg.Tensor | None] = []
        for at, mapper in enumerate(self.effnet_mappers):
            level = min(at, 2 * count - 1 - at)
            sides = tuple(each // self.config.patch_size >> level for each in size)
            found.append(mapper(_resized(latents, sides)) if injects[level] else None)
        return found, context

    def forward(
        self, x: wg.Tensor, times: Any, beside: Sequence[wg.Tensor | None], context: wg.Tensor
    ) -> wg.Tensor:
        """x (n, c_in, height, width), times a number or (n,), and what `conditions` gives."""
        told = Told(_time_features(x, times, self.config.c_r), context)
        inner = self.embedding(x)
        before: list[wg.Tensor | None] = []
        count = len(self.down_blocks)
        for blocks, channels in zip(self.down_blocks, beside[:count], strict=True):
            inner = blocks(inner, replace(told, beside=channels))
            before.append(inner)
        before[-1] = None  # which goes into the way up by itself
        for blocks, channels in zip(self.up_blocks, beside[count:], strict=True):
            inner = blocks(inner, replace(told, beside=channels), before.pop())
        shift, share = wg.split(self.clf(inner), 2, axis=1)
        found: wg.Tensor = (x - shift) / (wg.sigmoid(share) * (1 - 2 * EPSILON) + EPSILON)
        return found


class LevelBlocks(nn.ModuleList):
    """The blocks of one level, one behind the other."""

    def forward(self, x: wg.Tensor, told: Told, skip: wg.Tensor | None = None) -> wg.Tensor:
        """A picture; the first block takes what the way down left at this level, too."""
        first = told
        if skip is not None:
            beside = skip if told.beside is None else wg.concat([skip, told.beside], axis=1)
            first = replace(told, beside=beside)
        for at, block in enumerate(self):
            if isinstance(block, Resizing):
                x = block(x)
            else:
                x = block(x, told if at else first)
        return x


class Resizing(nn.Sequential):
    """A norm and a convolution, which take nothing but the picture."""


_KINDS = ("C", "T", "A")


class _Level:
    """One level of the decoder: what its blocks are made of."""

    def __init__(self, config: DiffNeXtConfig, at: int) -> None:
        count = len(config.c_hidden)
        self.config, self.at, self.is_last = config, at, at == count - 1
        self.width, self.blocks = config.c_hidden[at], by_block(config.blocks, count)[at]
        self.letters = by_block(config.level_config, count)[at]
        self.heads = by_block(config.nhead, count)[at]
        self.injects = by_block(config.inject_effnet, count)[at]
        self.dropout = by_block(config.dropout, count)[at]
        if len(self.letters) > LONGEST or any(each not in _KINDS for each in self.letters):
            raise wg.ModelFileError(f"level_config has {self.letters!r}, not some of {', '.join(_KINDS)}")

    def mapper(self) -> nn.Module | None:
        """What brings the prior's latents to this level."""
        return nn.Conv2d(self.config.effnet_embd, self.config.c_cond, 1) if self.injects else None

    def way_down(self) -> LevelBlocks:
        """Half the size, but for the first level, and the blocks."""
        blocks = self._row(0)
        if self.at:
            before = self.config.c_hidden[self.at - 1]
            blocks.insert(0, Resizing(PlaceNorm(before), nn.Conv2d(before, self.width, 2, 2)))
        return LevelBlocks(blocks)

    def way_up(self) -> LevelBlocks:
        """The blocks, and twice the size, but for the first level."""
        blocks = self._row(0 if self.is_last else self.width)
        if self.at:
            after = self.config.c_hidden[self.at - 1]
            blocks.append(Resizing(PlaceNorm(self.width), nn.ConvTranspose2d(self.width, after, 2, 2)))
        return LevelBlocks(blocks)

    def _row(self, skipped: int) -> list[nn.Module]:
        letters = self.letters * self.blocks
        return [self._block(each, 0 if at else skipped) for at, each in enumerate(letters)]

    def _block(self, letter: str, skipped: int) -> nn.Module:
        config = self.config
        if letter == "C":
            more = skipped + (config.c_cond if self.injects else 0)
            return ConvolvingBlock(self.width, more, config.kernel_size, self.dropout)
        if letter == "T":
            return TimeBlock(self.width, config.c_r)
        return ContextBlock(self.width, config.c_cond, self.heads)


def _resized(latents: wg.Tensor, sides: Sequence[int]) -> wg.Tensor:
    found: wg.Tensor = wg.nn.functional.interpolate(
        latents, size=tuple(sides), mode="bicubic", align_corners=True, antialias=True
    )
    return found


def _time_features(x: wg.Tensor, times: Any, width: int) -> wg.Tensor:
    """Sines and cosines of a time for each picture, of one for all or of one each."""
    return sinusoids(time_of_each(x, times).astype(wg.float32) * TIME_STEPS, width)
