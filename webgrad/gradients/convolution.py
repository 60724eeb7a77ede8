"""Convolutions and their gradients: three functions, each of which has the other two as its gradients.

For y = conv(x, w) the gradient of x is the transposed convolution of y's gradient with w, and that of w is
the product of x's windows with y's gradient. All three are linear in both operands, so gradients exist to any
order. In: tensors and a `Geometry`, checked. Out: tensors made of one matrix product each.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..functions.convolution.products import multiplied, spread, weight_sums
from ..functions.convolution.windows import Sizes, Widths, cropped_or_padded
from ..ops import primitives
from ..tensor import Tensor
from .own import own_gradient


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a kernel goes over images of some sizes; `widths` is padding, or where negative what is cut off."""

    kernel: Sizes
    stride: Sizes
    dilation: Sizes
    widths: Widths
    sizes: Sizes
    groups: int


def convolved(x: Tensor, weight: Tensor, how: Geometry) -> Tensor:
    """Images x (N, C, sizes) with a weight (O, C / groups, kernel): (N, O, windows)."""

    def compute() -> Tensor:
        padded = cropped_or_padded(x.node, how.widths)
        return multiplied(padded, weight, how.stride, how.dilation, how.groups)

    return own_gradient(
        compute,
        (x, lambda g: transposed(g, weight, how)),
        (weight, lambda g: weight_gradient(x, g, how)),
    )


def transposed(y: Tensor, weight: Tensor, how: Geometry) -> Tensor:
    """y (N, O, windows) spread with a weight (O, C / groups, kernel) to images (N, C, sizes)."""

    def compute() -> Tensor:
        if 0 in how.sizes:
            return _zeros(y, (y.shape[0], weight.shape[1] * how.groups, *how.sizes))
        cut = tuple(before for before, _ in how.widths)
        return spread(y.node, weight.node, how.stride, how.dilation, how.groups, cut, how.sizes)

    return own_gradient(
        compute,
        (y, lambda g: convolved(g, weight, how)),
        (weight, lambda g: weight_gradient(g, y, how)),
    )


def weight_gradient(x: Tensor, y: Tensor, how: Geometry) -> Tensor:
    """Images x (N, C, sizes) by y (N, O, windows), summed over all windows: (O, C / groups, kernel)."""

    def compute() -> Tensor:
        padded = cropped_or_padded(x.node, how.widths)
        return weight_sums(padded, y.node, how.kernel, how.stride, how.dilation, how.groups)

    return own_gradient(
        compute,
        (x, lambda g: transposed(y, g, how)),
        (y, lambda g: convolved(x, g, how)),
    )


def _zeros(like: Tensor, shape: Sizes) -> Tensor:
    zero = primitives.constant("convolution", 0, like.dtype, like.device)
    return Tensor(primitives.expand(zero, shape))
