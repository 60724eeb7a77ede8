"""Layers whose weights stay in blocks of 8 or 4 bits, which are unpacked where they are used.

In: a layer of a network and its weight. Out: a layer that computes the same with the weight in blocks. A row
of blocks is an output's: 32 weights have a scale in common.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg
from webgrad import nn

__all__ = ["FORMATS", "QuantisedConv2d", "QuantisedLinear", "is_quantisable", "quantised_layer"]

FORMATS = wg.QuantisedTensor.formats  # that weights can be brought into
BLOCK = 32  # weights of a block
SMALLEST = 1 << 12  # weights of a layer for which blocks are worth it


class QuantisedLinear(nn.Module):
    """y = x Wᵀ + b with W in blocks."""

    def __init__(self, weight: wg.QuantisedTensor, bias: wg.Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (…, inputs) → (…, outputs)."""
        return wg.quantised_linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The matrix."""
        return repr(self.weight)


class QuantisedConv2d(nn.Module):
    """A convolution whose kernels lie in blocks, a row for each output."""

    def __init__(self, layer: nn.Conv2d, weight: wg.QuantisedTensor, bias: wg.Tensor | None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias
        self.shape = tuple(layer.weight.shape)
        self.stride, self.padding = layer.stride, layer.padding
        self.dilation, self.groups = layer.dilation, layer.groups

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """x (n, inputs, height, width)."""
        kernels = self.weight.dequantise().reshape(self.shape)
        return wg.conv2d(x, kernels, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """The kernels."""
        return f"{self.shape}, {self.weight!r}, stride={self.stride}, padding={self.padding}"


def is_quantisable(layer: nn.Module) -> bool:
    """Whether a layer's weight is rows of whole blocks, and enough of them."""
    if not isinstance(layer, nn.Linear | nn.Conv2d) or getattr(layer, "padding_mode", "zeros") != "zeros":
        return False
    row = math.prod(layer.weight.shape[1:])
    return row % BLOCK == 0 and layer.weight.size >= SMALLEST


def quantised_layer(layer: Any, format: str, device: Any) -> nn.Module:
    """A layer that `is_quantisable` with its weight in blocks, on a device."""
    rows = layer.weight.detach().astype(wg.float32).reshape(layer.weight.shape[0], -1)
    # Computed now, layer by layer: all of them at once in float32 would be what blocks are there to avoid.
    data = wg.quantise(rows, format).to_blocks()
    packed = wg.from_blocks(data, format, rows.shape, device)
    if isinstance(layer, nn.Conv2d):
        return QuantisedConv2d(layer, packed, layer.bias)
    return QuantisedLinear(packed, layer.bias)
