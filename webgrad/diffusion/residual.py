"""Residual blocks of two convolutions, and halving and doubling of a picture's size.

In: pictures (n, channels, height, width), and the vector of a time step where a network has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import webgrad as wg
from webgrad import nn

from .activations import activation

__all__ = ["Downsample", "PlaceNorm", "Residual", "ResidualSettings", "Upsample"]


@dataclass(frozen=True, slots=True)
class ResidualSettings:
    """What all residual blocks of a network have in common."""

    time_width: int | None  # of the time step's vector; None in networks without one
    groups: int = 32
    epsilon: float = 1e-5
    activation: str = "silu"
    dropout: float = 0.0
    scales: bool = False  # whether the time step scales too, besides being added
    divisor: float = 1.0  # of the sum


class PlaceNorm(nn.LayerNorm):
    """Layer norm over the channels of each place of a picture, without weights."""

    def __init__(self, channels: int, epsilon: float = 1e-6) -> None:
        super().__init__(channels, eps=epsilon, elementwise_affine=False)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (n, channels, height, width)."""
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Residual(nn.Module):
    """shortcut(x) + conv2(act(norm2(conv1(act(norm1(x))) + time)))."""

    def __init__(self, inputs: int, outputs: int, settings: ResidualSettings) -> None:
        super().__init__()
        self.settings = settings
        self.norm1 = nn.GroupNorm(settings.groups, inputs, eps=settings.epsilon)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        if settings.time_width is not None:
            self.time_emb_proj = nn.Linear(settings.time_width, outputs * (1 + settings.scales))
        self.norm2 = nn.GroupNorm(settings.groups, outputs, eps=settings.epsilon)
        self.dropout = nn.Dropout(settings.dropout)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else None
        self.activation = activation(settings.activation)

    def forward(self, x: wg.Tensor, time: wg.Tensor | None = None) -> wg.Tensor:
        """x (n, inputs, height, width) and time (n, time_width)."""
        inner = self.conv1(self.activation(self.norm1(x)))
        moved = None if time is None else self.time_emb_proj(self.activation(time))[:, :, None, None]
        if moved is not None and self.settings.scales:
            scale, shift = wg.split(moved, 2, axis=1)
            inner = self.norm2(inner) * (1 + scale) + shift
        else:
            inner = self.norm2(inner if moved is None else inner + moved)
        inner = self.conv2(self.dropout(self.activation(inner)))
        shortcut = x if self.conv_shortcut is None else self.conv_shortcut(x)
        found: wg.Tensor = (shortcut + inner) / self.settings.divisor
        return found


class Downsample(nn.Module):
    """Half the size, by a convolution or, without one, by the mean of four elements.

    With a padding of 0 there is one row and one column of zeros at the ends only.
    """

    def __init__(self, channels: int, padding: int = 1, by_mean: bool = False) -> None:
        super().__init__()
        self.padding = padding
        self.conv = nn.AvgPool2d(2, 2) if by_mean else nn.Conv2d(channels, channels, 3, 2, padding)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """(n, channels, height, width) → (n, channels, height / 2, width / 2)."""
        if not self.padding:
            x = wg.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)))
        found: wg.Tensor = self.conv(x)
        return found


class Upsample(nn.Module):
    """Twice the size, or that which is asked for: each element several times, then a convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: wg.Tensor, size: Sequence[int] | None = None) -> wg.Tensor:
        """(n, channels, height, width) → (n, channels, *size)."""
        wanted = tuple(size) if size is not None else tuple(2 * each for each in x.shape[2:])
        found: wg.Tensor = self.conv(nn.functional.interpolate(x, size=wanted, mode="nearest"))
        return found
