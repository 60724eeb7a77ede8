"""What layers check, so that a message names the layer: tensors, features, channels, numbers of them.

In: a layer or its name, and what it was given. Out: nothing, or an error.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import webgrad as wg

__all__ = ["check_channels", "check_features", "check_floats", "check_sizes", "check_tensor"]

_shape_of: Any = wg.Tensor.shape.fget  # type: ignore[attr-defined]  # quicker than what derived classes make of it


def check_tensor(name: object, x: Any) -> None:
    """Raise where x is not a tensor."""
    if not isinstance(x, wg.Tensor):
        raise wg.DTypeError(f"{name} takes a tensor, not a {type(x).__name__}: make one with webgrad.asarray")


def check_floats(name: object, x: Any) -> None:
    """Raise where x is not a tensor of floats."""
    check_tensor(name, x)
    if x.dtype.kind != "f":
        raise wg.DTypeError(
            f"{name} takes a tensor of floats, not {x.dtype.name}: use x.astype(webgrad.float32)"
        )


def check_features(layer: object, x: Any, features: int) -> None:
    """Raise where the last axis of x is not what a layer takes."""
    check_tensor(layer, x)
    if _shape_of(x)[-1:] != (features,):
        raise wg.ShapeError(
            f"{layer} takes x (…, {features}), whose last axis has its features; this x is {x.shape}"
        )


def check_channels(layer: object, x: Any, channels: int, axes: int, *, batch: bool = False) -> None:
    """Raise where x is not (N, channels, …) with so many axes after them; (channels, …) unless batch."""
    check_tensor(layer, x)
    ranks = (axes + 2,) if batch else (axes + 1, axes + 2)
    at = x.ndim - axes - 1
    if x.ndim not in ranks or x.shape[at] != channels:
        sizes = ["L", "H, W", "D, H, W"][axes - 1] if axes else ""
        shape = f"{channels}, {sizes}" if axes else f"{channels},"
        wanted = f"(N, {shape.rstrip(',')})" + ("" if batch else f" or ({shape})")
        raise wg.ShapeError(f"{layer} takes x {wanted}; this x is {x.shape}")


def check_sizes(layer: str, **sizes: Any) -> None:
    """Raise where a number of features or channels is none."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, Integral) or int(size) < 1:
            raise wg.ArgumentError(f"{layer}: {name} must be an integer from 1 on, not {size!r}")
