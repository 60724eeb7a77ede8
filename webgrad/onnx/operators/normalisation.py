"""Normalisation: by running statistics, or to mean 0 and variance 1 over some axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import webgrad as wg

from ..types import type_of
from .activations import axes_from
from .table import Call, operator

__all__ = ["layer_normalised", "root_normalised"]


# By running statistics


def _by_channel(x: Any, *values: Any) -> list[Any]:
    """Numbers for each channel, axis 1, in a shape that broadcasts with x."""
    return [each.reshape((-1, *[1] * (x.ndim - 2))) for each in values]


def _batch_statistics(x: Any) -> tuple[Any, Any]:
    """Mean and variance of each channel."""
    wide = x.astype(x.dtype.wide, copy=False)
    axes = (0, *range(2, x.ndim))
    return wg.mean(wide, axis=axes), wg.var(wide, axis=axes)


def _normalised(x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    if x.ndim == 1:  # one channel
        return _normalised(x.reshape((-1, 1)), scale, bias, mean, variance, epsilon).reshape(x.shape)
    if mean is None:  # as `_in_one_step` has prepared it
        if scale.shape != (x.shape[1],):
            raise wg.ShapeError(f"there are {scale.shape} numbers for {x.shape[1]} channels")
        factor, shift = _by_channel(x, scale, bias)
        return (x * factor + shift).astype(x.dtype, copy=False)
    return wg.batch_norm(x, mean, variance, scale, bias, eps=epsilon)


def _trained(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float, momentum: float
) -> tuple[Any, Any, Any, Any, Any]:
    """By the batch's own statistics; the running ones moved to them, and the batch's."""
    own_mean, own_variance = _batch_statistics(x)
    y = _normalised(x, scale, bias, own_mean, own_variance, epsilon)
    moved = [
        (old * momentum + new * (1 - momentum)).astype(old.dtype)
        for old, new in ((mean, own_mean), (variance, own_variance))
    ]
    return y, moved[0], moved[1], own_mean.astype(mean.dtype), own_variance.astype(variance.dtype)


def _in_one_step(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, **attributes: Any
) -> Mapping[int, Any]:
    """Running statistics in the scale and the bias: then each element takes a product and a sum."""
    values = (scale, bias, mean, variance)
    if attributes.get("training_mode") or not attributes.get("spatial", 1):
        return {}
    if not all(isinstance(each, wg.Tensor) and each.dtype is scale.dtype for each in values):
        return {}
    if scale.dtype.is_half or any(each.shape != scale.shape for each in values):
        return {}
    factor = scale * wg.rsqrt(variance + attributes.get("epsilon", 1e-5))
    return {1: factor, 2: bias - mean * factor, 3: None, 4: None}


@operator("BatchNormalization", 14, prepare=_in_one_step)
def batch_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any = None,
    variance: Any = None,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    if not training_mode:
        return _normalised(x, scale, bias, mean, variance, epsilon)
    return _trained(x, scale, bias, mean, variance, epsilon, momentum)[:3]


@operator("BatchNormalization")
def old_batch_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    *,
    consumed_inputs: Sequence[int] = (),  # of version 1: what may be overwritten
    epsilon: float = 1e-5,
    is_test: int | None = None,  # before version 7; since then the outputs that are wanted say it
    momentum: float = 0.9,
    spatial: int = 1,
    call: Call,
) -> Any:
    trains = call.outputs > 1 if is_test is None else not is_test
    if call.opset < 7 and is_test is None:
        trains = True
    if trains and spatial:
        return _trained(x, scale, bias, mean, variance, epsilon, momentum)
    if trains:
        raise wg.ModelFileError("BatchNormalization that is not spatial cannot be trained here")
    if spatial:
        return _normalised(x, scale, bias, mean, variance, epsilon)
    return (x - mean) * wg.rsqrt(variance + epsilon) * scale + bias


@operator("BatchNormalization", 7, prepare=_in_one_step)
def batch_normalization_by_outputs(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any = None,
    variance: Any = None,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    call: Call,
) -> Any:
    """Since version 7 the outputs that are wanted say whether it trains."""
    settings = {"epsilon": epsilon, "momentum": momentum, "spatial": spatial}
    return old_batch_normalization(x, scale, bias, mean, variance, call=call, **settings)


# Over some axes of each sample


def _fits(x: Any, axes: Sequence[int], *values: Any) -> bool:
    """Whether weights have exactly the shape of the axes, which is what webgrad's functions take."""
    sizes = tuple(x.shape[axis] for axis in axes)
    return all(each is None or each.shape == sizes for each in values)


def layer_normalised(x: Any, scale: Any, bias: Any, axes: Sequence[int], epsilon: float) -> Any:
    """x to mean 0 and variance 1 over some axes, then scaled and shifted by what broadcasts with it."""
    if _fits(x, axes, scale, bias):
        return wg.layer_norm(x, None, scale, bias, epsilon, axis=axes)
    y = wg.layer_norm(x, eps=epsilon, axis=axes)
    y = y if scale is None else y * scale
    return (y if bias is None else y + bias).astype(x.dtype, copy=False)


def root_normalised(x: Any, scale: Any, axes: Sequence[int], epsilon: float) -> Any:
    """x by the root of its mean square over some axes, then scaled by what broadcasts with it."""
    if _fits(x, axes, scale):
        return wg.rms_norm(x, None, scale, epsilon, axis=axes)
    return (wg.rms_norm(x, eps=epsilon, axis=axes) * scale).astype(x.dtype, copy=False)


def _stashed(x: Any, stash_type: int) -> Any:
    """x in the type in which statistics are computed; 16 bits are widened by themselves."""
    stage = type_of(stash_type).webgrad
    return x.astype(stage) if stage.itemsize > x.dtype.wide.itemsize else x


@operator("LayerNormalization", 1)  # entered at 17; earlier files of onnxruntime have it too
def layer_normalization(
    x: Any,
    scale: Any,
    bias: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    call: Call,
) -> Any:
    axes, staged = axes_from(x, axis), _stashed(x, stash_type)
    y = layer_normalised(staged, scale, bias, axes, epsilon).astype(x.dtype, copy=False)
    if call.outputs < 2:
        return y
    wide, kind = staged.astype(staged.dtype.wide, copy=False), type_of(stash_type).webgrad
    mean = wg.mean(wide, axis=axes, keepdims=True)
    slope = wg.rsqrt(wg.var(wide, axis=axes, keepdims=True) + epsilon)
    return y, mean.astype(kind), slope.astype(kind)


@operator("RMSNormalization", 23)
def rms_normalization(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    y = root_normalised(_stashed(x, stash_type), scale, axes_from(x, axis), epsilon)
    return y.astype(x.dtype, copy=False)


@operator("SimplifiedLayerNormalization")  # of onnxruntime, in the standard's domain
def simplified_layer_normalization(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, call: Call
) -> Any:
    y = rms_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
    if call.outputs < 2:
        return y
    wide = x.astype(x.dtype.wide, copy=False)
    slope = wg.rsqrt(wg.mean(wide * wide, axis=axes_from(x, axis), keepdims=True) + epsilon)
    return y, slope.astype(type_of(stash_type).webgrad)


@operator("InstanceNormalization")
def instance_normalization(
    x: Any, scale: Any, bias: Any, *, consumed_inputs: Sequence[int] = (), epsilon: float = 1e-5
) -> Any:
    if math.prod(x.shape[2:]) > 1:
        return wg.instance_norm(x, weight=scale, bias=bias, eps=epsilon)
    return x * 0 + _by_channel(x, bias)[0]  # of one element the mean is itself


@operator("GroupNormalization", 21)
def group_normalization(
    x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Any:
    y = wg.group_norm(_stashed(x, stash_type), num_groups, scale, bias, epsilon)
    return y.astype(x.dtype, copy=False)


@operator("GroupNormalization", 18)
def group_normalization_by_group(
    x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, num_groups: int
) -> Any:
    """Scale and bias are those of groups."""
    each = x.shape[1] // num_groups
    return wg.group_norm(x, num_groups, wg.repeat(scale, each), wg.repeat(bias, each), epsilon)


# Others


@operator("LRN")
def local_response_normalization(
    x: Any, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> Any:
    """Of an even number of channels one more lies behind than before; in PyTorch's function it is before."""
    if size % 2:
        return wg.nn.functional.local_response_norm(x, size, alpha, beta, bias)
    return wg.flip(wg.nn.functional.local_response_norm(wg.flip(x, 1), size, alpha, beta, bias), 1)


@operator("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    return wg.normalize(x, p, axis, eps=2e-38)  # zeros stay zeros


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Any, *, axes: Sequence[int] = (0, 2, 3)) -> Any:
    wide = x.astype(x.dtype.wide, copy=False)
    deviation = wg.std(wide, axis=tuple(axes), keepdims=True)
    centred = wide - wg.mean(wide, axis=tuple(axes), keepdims=True)
    return (centred / (deviation + 1e-9)).astype(x.dtype, copy=False)
