"""Normalisation: to mean 0 and variance 1 over some axes, then scaled and shifted, as in PyTorch.

In: a tensor of floats, with weights and statistics as tensors. Out: one of the same shape and dtype.
Statistics are computed in two passes, of 16-bit floats in float32. Nothing is changed in place: new running
statistics are returned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, ShapeError
from ...ops import primitives
from ...ops.shapes import normalise_axes, normalise_axis
from ...tensor import Tensor
from ...values import float_limits_of
from ..array.creation import as_tensor
from ..array.elementwise import abs as absolute
from ..array.elementwise import clip, rsqrt
from ..array.reductions import average, converted, floating, power_norm
from ..array.reshaping import wholes
from ..pure import pure

Shape = tuple[int, ...]


def _trailing(op: str, x: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    """The last axes of x, which must have the shape `normalized_shape`."""
    sizes = wholes(op, "an element of normalized_shape", normalized_shape)
    if not sizes or x.shape[-len(sizes) :] != sizes:
        raise ShapeError(f"{op}: normalized_shape {sizes} must be the end of the shape of x, {x.shape}")
    return tuple(range(x.ndim - len(sizes), x.ndim))


def _broadcastable(op: str, name: str, value: Any, sizes: Shape, shape: Shape, kinds: str = "f") -> Tensor:
    """A weight, bias or statistic of shape `sizes`, computed wide, in a shape that broadcasts."""
    value = as_tensor(op, value)
    if value.shape != sizes:
        raise ShapeError(f"{op}: {name} must have shape {sizes}, not {value.shape}")
    return Tensor(primitives.reshape(floating(f"{op} (its {name})", value, kinds).node, shape))


def _scaled(op: str, x: Tensor, weight: Any, bias: Any, sizes: Shape, shape: Shape) -> Tensor:
    if weight is not None:
        x = x * _broadcastable(op, "weight", weight, sizes, shape, "fc" if x.dtype.kind == "c" else "f")
    return x if bias is None else x + _broadcastable(op, "bias", bias, sizes, shape)


def _standardised(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    centred = x - average(x, axes, keepdims=True)
    return centred * rsqrt(average(centred * centred, axes, keepdims=True) + eps)


@pure
def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int] | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    axis: int | Sequence[int] = -1,
) -> Tensor:
    """x normalised over its last axes, of shape `normalized_shape`; or over `axis` instead.

    >>> wg.layer_norm(wg.asarray([[1.0, 3.0]]), 2, eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    x = as_tensor("layer_norm", x)
    axes = _normalised_axes("layer_norm", x, normalized_shape, axis)
    sizes, shape = _weight_shapes(x.shape, axes)
    result = _standardised(floating("layer_norm", x), axes, eps)
    return converted(_scaled("layer_norm", result, weight, bias, sizes, shape), x.dtype)


def _normalised_axes(op: str, x: Tensor, normalized_shape: Any, axis: Any) -> tuple[int, ...]:
    return (
        normalise_axes(op, axis, x.ndim) if normalized_shape is None else _trailing(op, x, normalized_shape)
    )


def _weight_shapes(shape: Shape, axes: tuple[int, ...]) -> tuple[Shape, Shape]:
    """The shape of the axes; and a shape that broadcasts, with size 1 for the axes between them."""
    broadcastable = tuple(size if axis in axes else 1 for axis, size in enumerate(shape))
    return tuple(shape[axis] for axis in axes), broadcastable[min(axes, default=0) :]


@pure
def rms_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int] | None = None,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    axis: int | Sequence[int] = -1,
) -> Tensor:
    """x divided by the root of its mean square over its last axes; eps defaults to the dtype's.

    >>> wg.rms_norm(wg.asarray([[3.0, 3.0]]), 2, eps=0.0).tolist()
    [[1.0, 1.0]]
    """
    x = as_tensor("rms_norm", x)
    axes = _normalised_axes("rms_norm", x, normalized_shape, axis)
    sizes, shape = _weight_shapes(x.shape, axes)
    wide = floating("rms_norm", x, "fc")
    small = float_limits_of(absolute(wide).dtype)[0] if eps is None else eps
    result = wide * rsqrt(average(wide * wide, axes, keepdims=True) + small)
    return converted(_scaled("rms_norm", result, weight, None, sizes, shape), x.dtype)


# By channel: axis 1


def _channels(op: str, x: Tensor, least: int) -> Shape:
    """A shape with which one number per channel broadcasts against x."""
    if x.ndim < least:
        raise ShapeError(f"{op}: x of shape {x.shape} must have {least} axes or more: samples, channels, …")
    return (x.shape[1], *[1] * (x.ndim - 2))


@pure
def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Each sample normalised over groups of neighbouring channels (axis 1) and all later axes.

    >>> wg.group_norm(wg.asarray([[1.0, 3.0, 5.0, 5.0]]), 2, eps=0.0)[0, :2].tolist()
    [-1.0, 1.0]
    """
    x = as_tensor("group_norm", x)
    shape = _channels("group_norm", x, 2)
    (groups,) = wholes("group_norm", "num_groups", num_groups)
    samples, channels = x.shape[:2]
    if groups < 1 or channels % groups:
        raise ShapeError(
            f"group_norm: the {channels} channels of x {x.shape} do not make {groups} equal groups"
        )
    wide = floating("group_norm", x)
    length = math.prod(x.shape[1:]) // groups
    grouped = Tensor(primitives.reshape(wide.node, (samples, groups, length)))
    result = Tensor(primitives.reshape(_standardised(grouped, (2,), eps).node, x.shape))
    return converted(_scaled("group_norm", result, weight, bias, (channels,), shape), x.dtype)


@pure
def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel (axis 1) normalised: by running statistics, or, in training, by those of the batch itself.

    The running statistics stay as they are; `batch_norm_training` gives the new ones.

    >>> x = wg.asarray([[1.0], [3.0]])
    >>> wg.batch_norm(x, None, None, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    if training:
        return batch_norm_training(x, None, None, weight, bias, momentum, eps)[0]
    x = as_tensor("batch_norm", x)
    if running_mean is None or running_var is None:
        raise ArgumentError("batch_norm: without training=True it needs running_mean and running_var")
    shape = _channels("batch_norm", x, 2)
    sizes = (x.shape[1],)
    mean = _broadcastable("batch_norm", "running_mean", running_mean, sizes, shape)
    scale = rsqrt(_broadcastable("batch_norm", "running_var", running_var, sizes, shape) + eps)
    result = (floating("batch_norm", x) - mean) * scale
    return converted(_scaled("batch_norm", result, weight, bias, sizes, shape), x.dtype)


@pure
def batch_norm_training(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """`batch_norm` by the batch's statistics, with the new running mean and (unbiased) variance.

    >>> x = wg.asarray([[1.0], [3.0]])
    >>> y, mean, var = wg.batch_norm_training(x, wg.zeros(1), wg.ones(1), momentum=0.5)
    >>> mean.tolist(), var.tolist()
    ([1.0], [1.5])
    """
    op = "batch_norm"
    x = as_tensor(op, x)
    shape = _channels(op, x, 2)
    sizes = (x.shape[1],)
    axes = (0, *range(2, x.ndim))
    count = math.prod(x.shape[axis] for axis in axes)
    if count == 1:
        raise ShapeError(
            f"batch_norm: in training each channel needs two values or more; x has shape {x.shape}"
        )
    wide = floating(op, x)
    if not count:  # nothing is seen
        return converted(_scaled(op, wide, weight, bias, sizes, shape), x.dtype), running_mean, running_var
    mean = average(wide, axes, keepdims=True)
    centred = wide - mean
    var = average(centred * centred, axes, keepdims=True)
    result = _scaled(op, centred * rsqrt(var + eps), weight, bias, sizes, shape)
    return (
        converted(result, x.dtype),
        _moved(op, "running_mean", running_mean, mean, momentum),
        _moved(op, "running_var", running_var, var * (count / (count - 1)), momentum),
    )


def _moved(op: str, name: str, running: Any, batch: Tensor, momentum: float) -> Tensor | None:
    """A running statistic, moved towards the batch's by `momentum`."""
    if running is None:
        return None
    old = _broadcastable(op, name, running, (batch.size,), (batch.size,))
    new = old * (1 - momentum) + Tensor(primitives.reshape(batch.node, (batch.size,))) * momentum
    return converted(new, running.dtype)


@pure
def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each sample normalised over all later axes; or by running statistics, as `batch_norm`.

    >>> wg.instance_norm(wg.asarray([[[1.0, 3.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    x = as_tensor("instance_norm", x)
    shape = _channels("instance_norm", x, 3)
    axes = tuple(range(2, x.ndim))
    if math.prod(x.shape[2:]) < 2:
        raise ShapeError(
            f"instance_norm: each channel of each sample needs two values or more; x has shape {x.shape}"
        )
    result = _standardised(floating("instance_norm", x), axes, eps)
    return converted(_scaled("instance_norm", result, weight, bias, (x.shape[1],), shape), x.dtype)


@pure
def normalize(x: Tensor, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """x divided by its p-norm along an axis, or by eps where that is larger.

    >>> wg.normalize(wg.asarray([[3.0, 4.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    x = as_tensor("normalize", x)
    place = normalise_axis("normalize", axis, x.ndim)
    wide = floating("normalize", x, "fc")
    sizes = absolute(wide) if x.dtype.kind == "c" else wide
    return converted(wide / clip(power_norm(sizes, (place,), p, keepdims=True), min=eps), x.dtype)
