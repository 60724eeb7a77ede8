"""Normalisation: by running statistics, or to mean 0 and variance 1 over some axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import webgrad as wg

from .table import Call, operator

MICROSOFT = "com.microsoft"


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


@operator("BatchNormalization", 14)
def batch_normalization(
    x: Any,
    scale: Any,
    bias: Any,
    mean: Any,
    variance: Any,
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
