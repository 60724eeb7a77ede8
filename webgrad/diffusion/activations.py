"""Activations by the names that published settings call them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import webgrad as wg

__all__ = ["activation", "gelu_tanh", "quick_gelu"]

Activation = Callable[[wg.Tensor], wg.Tensor]


def gelu_tanh(x: wg.Tensor) -> wg.Tensor:
    """The approximation of gelu by tanh."""
    return wg.gelu(x, approximate="tanh")


def quick_gelu(x: wg.Tensor) -> wg.Tensor:
    """The approximation of gelu by a sigmoid."""
    return x * wg.sigmoid(1.702 * x)


_BY_NAME: Mapping[str, Activation] = {
    "silu": wg.silu,
    "swish": wg.silu,
    "gelu": wg.gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "quick_gelu": quick_gelu,
    "relu": wg.relu,
    "mish": wg.mish,
}


def activation(name: str) -> Activation:
    """A function by its name; raises for one that is not known."""
    if name not in _BY_NAME:
        raise wg.ModelFileError(f"there is no activation {name!r}, only {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
