"""The blocks that U-Nets and autoencoders are built of: residual blocks with attention, and a change of size.

In: pictures, a time step's vector, a context. Out: pictures; a block on the way down gives what the one on
the way up of the same size takes in again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import webgrad as wg
from webgrad import nn

from .residual import Downsample, Residual, ResidualSettings, Upsample

__all__ = ["DownBlock", "MidBlock", "UpBlock"]

MakeAttention = Callable[[], nn.Module] | None
Picture = wg.Tensor


def _attentions(block: nn.Module) -> list[nn.Module | None]:
    """The attention after each residual block, None where a block has none."""
    return list(block.attentions) if "attentions" in block._modules else [None] * len(block.resnets)


class DownBlock(nn.Module):
    """Residual blocks, each with attention after it, and half the size at the end."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        layers: int,
        settings: ResidualSettings,
        attention: MakeAttention = None,
        downsample: Downsample | None = None,
    ) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(
            Residual(outputs if at else inputs, outputs, settings) for at in range(layers)
        )
        if attention is not None:
            self.attentions = nn.ModuleList(attention() for _ in range(layers))
        if downsample is not None:
            self.downsamplers = nn.ModuleList([downsample])

    def forward(
        self,
        x: Picture,
        time: wg.Tensor | None = None,
        context: wg.Tensor | None = None,
        seen: wg.Tensor | None = None,
    ) -> tuple[Picture, list[Picture]]:
        """The picture, and all that was computed on the way."""
        found = []
        for residual, attention in zip(self.resnets, _attentions(self), strict=True):
            x = residual(x, time)
            x = x if attention is None else attention(x, context, seen)
            found.append(x)
        if "downsamplers" in self._modules:
            x = self.downsamplers[0](x)
            found.append(x)
        return x, found


class MidBlock(nn.Module):
    """A residual block, and any number of pairs of attention and a residual block."""

    def __init__(
        self, channels: int, layers: int, settings: ResidualSettings, attention: MakeAttention = None
    ) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(Residual(channels, channels, settings) for _ in range(layers + 1))
        if attention is not None:
            self.attentions = nn.ModuleList(attention() for _ in range(layers))

    def forward(
        self,
        x: Picture,
        time: wg.Tensor | None = None,
        context: wg.Tensor | None = None,
        seen: wg.Tensor | None = None,
    ) -> Picture:
        """A picture of the same shape."""
        x = self.resnets[0](x, time)
        rest = list(self.resnets)[1:]
        attentions = list(self.attentions) if "attentions" in self._modules else [None] * len(rest)
        for residual, attention in zip(rest, attentions, strict=True):
            x = residual(x if attention is None else attention(x, context, seen), time)
        return x


class UpBlock(nn.Module):
    """Residual blocks that take in what was computed on the way down, and twice the size at the end."""

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: int,
        settings: ResidualSettings,
        attention: MakeAttention = None,
        upsample: Upsample | None = None,
    ) -> None:
        """`inputs`: the channels that come into each residual block, those from the way down included."""
        super().__init__()
        self.resnets = nn.ModuleList(Residual(each, outputs, settings) for each in inputs)
        if attention is not None:
            self.attentions = nn.ModuleList(attention() for _ in inputs)
        if upsample is not None:
            self.upsamplers = nn.ModuleList([upsample])

    def forward(
        self,
        x: Picture,
        before: list[Picture],
        time: wg.Tensor | None = None,
        context: wg.Tensor | None = None,
        seen: wg.Tensor | None = None,
    ) -> Picture:
        """Takes pictures from the end of `before`, and at the end the size of the next one there."""
        for residual, attention in zip(self.resnets, _attentions(self), strict=True):
            x = residual(wg.concat([x, before.pop()], axis=1) if before else x, time)
            x = x if attention is None else attention(x, context, seen)
        if "upsamplers" in self._modules:
            x = self.upsamplers[0](x, before[-1].shape[2:] if before else None)
        return x
