"""Convolutions: Conv, ConvTranspose, DeformConv, CausalConvWithState."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import webgrad as wg

from .table import operator
from .windows import Sizes, Widths, by_axis, padded, same_widths, spans_of, widths_of

_CONVOLUTIONS = (wg.conv1d, wg.conv2d, wg.conv3d)
_TRANSPOSED = (wg.conv_transpose1d, wg.conv_transpose2d, wg.conv_transpose3d)


def _count(x: Any, kernel_shape: Sequence[int], weight: Any) -> int:
    """How many axes windows go over; a kernel_shape that is given must be that of the weight."""
    count: int = x.ndim - 2
    if not 1 <= count <= 3:
        raise wg.ShapeError(f"convolutions go over one to three axes, x has shape {x.shape}")
    if kernel_shape and tuple(kernel_shape) != weight.shape[2:]:
        raise wg.ModelFileError(f"kernel_shape is {tuple(kernel_shape)}, and the weight {weight.shape}")
    return count


@operator("Conv")
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    count = _count(x, kernel_shape, weight)
    steps, apart = by_axis("strides", strides, count), by_axis("dilations", dilations, count)
    widths = widths_of(x.shape[2:], spans_of(weight.shape[2:], apart), steps, pads, auto_pad)
    around: Sizes = tuple(before for before, _ in widths)
    if any(before != after for before, after in widths):
        x, around = padded(x, widths), (0,) * count
    return _CONVOLUTIONS[count - 1](x, weight, bias, steps, around, apart, group)


@operator("ConvTranspose")
def conv_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    output_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    count = _count(x, kernel_shape, weight)
    steps, apart = by_axis("strides", strides, count), by_axis("dilations", dilations, count)
    more = by_axis("output_padding", output_padding, count, 0)
    whole = [
        (size - 1) * step + span
        for size, step, span in zip(x.shape[2:], steps, spans_of(weight.shape[2:], apart), strict=True)
    ]
    wanted = output_shape[-count:]
    if not wanted and auto_pad.startswith("SAME"):
        wanted = [size * step for size, step in zip(x.shape[2:], steps, strict=True)]
    if wanted:
        totals = [size + each - want for size, each, want in zip(whole, more, wanted, strict=True)]
        cut = same_widths(totals, auto_pad)
    else:
        cut = widths_of(whole, whole, steps, pads, auto_pad)
    return _transposed(x, weight, bias, steps, apart, group, cut, more)


def _transposed(
    x: Any, weight: Any, bias: Any, steps: Sizes, apart: Sizes, group: int, cut: Widths, more: Sizes
) -> Any:
    """A transposed convolution with `cut` elements less at both ends, and `more` at the end."""
    count = len(steps)
    function = _TRANSPOSED[count - 1]
    before = tuple(each for each, _ in cut)
    extra = tuple(each + low - high for each, (low, high) in zip(more, cut, strict=True))
    fits = (
        low >= 0 and 0 <= each < max(step, gap)
        for low, each, step, gap in zip(before, extra, steps, apart, strict=True)
    )
    if all(fits):
        return function(x, weight, bias, steps, before, extra, group, apart)
    y = function(x, weight, None, steps, 0, 0, group, apart)
    widths = [(-low, each - high) for each, (low, high) in zip(more, cut, strict=True)]
    y = wg.nn.functional.pad(y, [width for pair in reversed(widths) for width in pair])
    return y if bias is None else y + bias.reshape((-1, *[1] * count))


@operator("DeformConv", 19)
def deform_conv(
    x: Any,
    weight: Any,
    offset: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    offset_group: int = 1,
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Any:
    """Elements of windows taken at places moved by `offset`, with one matrix product for each group."""
    count = _count(x, kernel_shape, weight)
    steps, apart = by_axis("strides", strides, count), by_axis("dilations", dilations, count)
    widths = by_axis("pads", pads, 2 * count, 0)
    kernel, sizes, outputs = weight.shape[2:], x.shape[2:], offset.shape[2:]
    samples, channels, taps = x.shape[0], x.shape[1], math.prod(kernel)
    moved = offset.reshape((samples * offset_group, taps, count, *outputs))
    aligned, places = min(sizes) > 1, []
    for at in reversed(range(count)):
        first = wg.arange(outputs[at], dtype=x.dtype, device=x.device) * steps[at] - widths[at]
        inside = wg.arange(kernel[at], dtype=x.dtype, device=x.device) * apart[at]
        line = first.reshape((-1, *[1] * (count - 1 - at)))
        tap = wg.broadcast_to(inside.reshape((-1, *[1] * (count - 1 - at))), kernel)
        place = moved[:, :, at] + tap.reshape((taps, *[1] * count)) + line
        places.append(
            place * (2.0 / (sizes[at] - 1)) - 1.0 if aligned else (2.0 * place + 1.0) / sizes[at] - 1.0
        )
    grid = wg.stack(places, axis=-1).reshape((samples * offset_group, taps * outputs[0], *outputs[1:], count))
    rows = x.reshape((samples * offset_group, channels // offset_group, *sizes))
    taken = wg.nn.functional.grid_sample(rows, grid, align_corners=aligned)
    if mask is not None:
        taken = taken * mask.reshape((samples * offset_group, 1, *grid.shape[1:-1]))
    columns = taken.reshape((samples, group, channels // group * taps, math.prod(outputs)))
    product = weight.reshape((group, weight.shape[0] // group, -1)) @ columns
    y = product.reshape((samples, weight.shape[0], *outputs))
    return y if bias is None else y + bias.reshape((-1, *[1] * count))


@operator("CausalConvWithState", 27)
def causal_conv(
    x: Any, weight: Any, bias: Any = None, past_state: Any = None, *, activation: str = "none"
) -> Any:
    """A convolution of each channel with what came before it; also the elements that the next call needs."""
    if past_state is None:
        before = weight.shape[-1] - 1
        past_state = wg.zeros((*x.shape[:2], before), x.dtype, device=x.device)
    line = wg.concat([past_state, x], axis=-1)
    y = wg.conv1d(line, weight, bias, groups=x.shape[1])
    if activation in ("silu", "swish"):
        y = wg.silu(y)
    elif activation != "none":
        raise wg.ModelFileError(f"activation is none, silu or swish, not {activation!r}")
    return y, line[..., line.shape[-1] - past_state.shape[-1] :]
