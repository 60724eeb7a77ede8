"""Normalisations, samplers and gradients that some programs call by the names of torch's kernels.

In: tensors. Out: a tensor, or a result with what was computed on the way: means, and one by deviations.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from .binding import bind
from .tensor import written

__all__ = ["functions"]

ROWS = """
[function]
native_layer_norm(input, normalized_shape, weight, bias, eps) = of_layers(input, len(normalized_shape),
    weight, bias, eps)
native_group_norm(input, weight, bias, N, C, HxW, group, eps) = of_groups(input, weight, bias, group, eps)
native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None) =
    of_channels(input, weight, bias, running_mean, running_var, training, momentum, eps)
_native_batch_norm_legit(input, weight, bias, *rest) = of_channels(input, weight, bias, *(rest if len(rest) ==
    5 else (None, None, *rest)))
_batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps) = (*of_channels(input,
    weight, bias, running_mean, running_var, True, momentum, eps), wg.zeros((0,), dtype=wg.uint8,
    device=input.device))
grid_sampler grid_sampler_2d grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners) =
    wg.nn.functional.grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode],
    align_corners)
_softmax_backward_data(grad_output, output, dim, input_dtype) = of_softmax(wide(grad_output), wide(output),
    dim).astype(input_dtype)
"""


MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def wide(x: Any) -> Any:
    """16-bit floats in float32."""
    return x.astype(wg.float32) if x.dtype.is_half else x


def of_softmax(g: Any, y: Any, dim: int) -> Any:
    """The gradient of softmax, by its result."""
    return y * (g - wg.sum(g * y, dim, keepdims=True)) if y.ndim else g * 0


def _normal(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """Elements less their mean by their deviation, the mean, and one by the deviation."""
    mean = wg.mean(x, axes, keepdims=True)
    share = wg.rsqrt(wg.var(x, axes, keepdims=True) + eps)
    return (x - mean) * share, mean, share


def _shaped(found: Any, weight: Any, bias: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if weight is not None:
        found = found * wg.reshape(weight, shape)
    if bias is not None:
        found = found + wg.reshape(bias, shape)
    return found.astype(dtype)


def of_layers(x: Any, count: int, weight: Any, bias: Any, eps: float) -> tuple[Any, ...]:
    """Over the last dimensions."""
    axes = tuple(range(x.ndim - count, x.ndim))
    found, mean, share = _normal(wide(x), axes, eps)
    return (
        _shaped(found, weight, bias, tuple(x.shape[x.ndim - count :]), x.dtype),
        mean.astype(x.dtype),
        share.astype(x.dtype),
    )


def of_groups(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> tuple[Any, ...]:
    """Over groups of channels."""
    batch, channels = x.shape[:2]
    lines = wg.reshape(wide(x), (batch, groups, math.prod(x.shape[1:]) // groups))
    found, mean, share = _normal(lines, (2,), eps)
    shape = (channels, *[1] * (x.ndim - 2))
    found = _shaped(wg.reshape(found, tuple(x.shape)), weight, bias, shape, x.dtype)
    return found, mean[..., 0].astype(x.dtype), share[..., 0].astype(x.dtype)


def of_channels(
    x: Any, weight: Any, bias: Any, means: Any, variances: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, ...]:
    """Over all but the channels, or by running means and variances, which training moves on."""
    shape = (-1, *[1] * (x.ndim - 2))
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    values = wide(x)
    if not training:
        share = wg.rsqrt(variances + eps)
        found = (values - wg.reshape(means, shape)) * wg.reshape(share, shape)
        nothing = wg.zeros((0,), dtype=x.dtype, device=x.device)
        return _shaped(found, weight, bias, shape, x.dtype), nothing, nothing
    found, mean, share = _normal(values, axes, eps)
    count = math.prod(x.shape) // x.shape[1]
    with wg.no_grad():
        spread = wg.var(values, axes, correction=1) if count > 1 else wg.var(values, axes)
        for running, now in ((means, wg.reshape(mean, (-1,))), (variances, spread)):
            if running is not None:
                written(running, (running + (now - running) * momentum).astype(running.dtype))
    line = (wg.reshape(each, (-1,)).astype(x.dtype) for each in (mean, share))
    return _shaped(found, weight, bias, shape, x.dtype), *line


functions: dict[str, Any] = bind(ROWS, globals())
