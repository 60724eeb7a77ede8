"""What torch's programs leave unsaid: the default float and the default integer.

In: nothing, or a device. Out: dtypes. torch's integers have 64 bits; on a device that has none
they have 32, which is said once.
"""

from __future__ import annotations

import warnings
from typing import Any

import webgrad as wg

__all__ = [
    "dtype_of",
    "float_dtype",
    "get_default_dtype",
    "integer_of",
    "set_default_dtype",
]

_chosen: dict[str, Any] = {"dtype": wg.float32, "warned": False}


def get_default_dtype() -> Any:
    """The dtype of floats that are made without one."""
    return _chosen["dtype"]


def set_default_dtype(dtype: Any) -> None:
    """Make floats of another dtype where none is given."""
    wanted = wg.as_dtype(dtype)
    if wanted.kind != "f":
        raise TypeError(f"only floating-point types are supported as the default type, not {wanted.name}")
    _chosen["dtype"] = wanted


def integer_of(device: Any = None) -> Any:
    """int64, or int32 on a device that has no integers of 64 bits."""
    found = wg.default_device() if device is None else wg.open_device(device)
    if "int64" in found.info.features:
        return wg.int64
    if not _chosen["warned"]:
        _chosen["warned"] = True
        warnings.warn(
            f"{found.name} has no integers of 64 bits: torch's default integers are int32 there", stacklevel=3
        )
    return wg.int32


def float_dtype() -> Any:
    """The default float."""
    return _chosen["dtype"]


def dtype_of(kind: type, device: Any = None) -> Any:
    """The dtype that torch gives to Python's bools, ints, floats and complex numbers."""
    if kind is bool:
        return wg.bool
    if kind is int:
        return integer_of(device)
    wide = _chosen["dtype"] is wg.float64
    if kind is complex:
        return wg.complex128 if wide else wg.complex64
    return _chosen["dtype"]
