"""Batch norms made part of the layers before them, for `eval()`; and layers whose weights are not drawn.

In: layers. Out: copies of them with other weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import webgrad as wg

from .. import init
from ..module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_linear_bn_eval", "skip_init"]


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A convolution and the batch norm behind it as one convolution; both must be in `eval()`.

    >>> conv, norm = wg.nn.Conv2d(2, 3, 1).eval(), wg.nn.BatchNorm2d(3).eval()
    >>> wg.nn.utils.fuse_conv_bn_eval(conv, norm)
    Conv2d(2, 3, kernel_size=(1, 1), stride=(1, 1))
    """
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A linear layer and the batch norm behind it as one linear layer; both must be in `eval()`.

    >>> linear, norm = wg.nn.Linear(2, 3).eval(), wg.nn.BatchNorm1d(3).eval()
    >>> wg.nn.utils.fuse_linear_bn_eval(linear, norm)
    Linear(in_features=2, out_features=3, bias=True)
    """
    return _fused(linear, bn, 0)


def _fused(layer: Any, norm: Any, axis: int) -> Module:
    if layer.training or norm.training:
        raise wg.ArgumentError("a batch norm is part of a layer in eval() only: call .eval() of both")
    made = copy.deepcopy(layer)
    with wg.no_grad():
        scale = wg.rsqrt(norm.running_var + norm.eps)
        scale = scale if norm.weight is None else scale * norm.weight
        shape = [1] * layer.weight.ndim
        shape[axis] = -1
        bias = (0.0 if layer.bias is None else layer.bias) - norm.running_mean
        bias = bias * scale if norm.bias is None else bias * scale + norm.bias
        made.weight = Parameter(layer.weight * scale.reshape(tuple(shape)), layer.weight.requires_grad)
        del made.bias
        made.register_parameter("bias", Parameter(bias, layer.weight.requires_grad))
    return made  # type: ignore[no-any-return]


def skip_init(module_cls: Callable[..., Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters will be overwritten: whatever they begin with.

    >>> wg.nn.utils.skip_init(wg.nn.Linear, 3, 2).weight.shape
    (2, 3)
    """
    with init.skipped():
        return module_cls(*args, **kwargs)
