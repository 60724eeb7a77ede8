"""safetensors: named tensors of all dtypes, and texts beside them, as the format's own package writes them.

In: a mapping of names to tensors or arrays. Out: a file; and from it the same tensors, bit by bit. Nothing in
a file is executed, and what is damaged is refused before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg

from .replace import replacing

__all__ = ["check_writable", "save"]

SUFFIX = ".safetensors"
Array = np.ndarray[Any, Any]


def save(
    path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors, and texts beside them, to a .safetensors file: whole, or not at all.

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-example.safetensors"
    >>> wg.io.save(path, {"weight": wg.ones((2, 2))}, {"made by": "an example"})
    >>> wg.io.load(path)["weight"].tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    from safetensors import TensorSpec, serialize_file

    target = _checked(path)
    arrays = {_name(name): _array(name, value) for name, value in tensors.items()}
    texts = _texts(metadata or {})
    specifications = {
        name: TensorSpec(
            dtype=each.dtype.name, shape=list(each.shape), data_ptr=each.ctypes.data, data_len=each.nbytes
        )
        for name, each in arrays.items()
    }
    with replacing(target) as temporary:
        try:
            serialize_file(specifications, temporary, metadata=texts or None)
        except Exception as error:  # safetensors has one class of its own, and wraps the system's in it
            raise wg.ModelFileError(f"{target} cannot be written: {error}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise where `save` could not write to this path: its suffix, its folder, permissions.

    >>> import tempfile
    >>> wg.io.check_writable(tempfile.gettempdir() + "/webgrad-example.safetensors")
    """
    with suppress(_NotMeant), replacing(_checked(path)):
        raise _NotMeant


class _NotMeant(Exception):
    """Leaves a block of `replacing` without replacing."""


def _checked(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix != SUFFIX:
        raise wg.ModelFileError(
            f"{target}: webgrad keeps tensors in safetensors files, whose names end in {SUFFIX}; formats "
            "that can hold code (.pt, .pth, .bin, .pkl) are not read"
        )
    return target


def _name(name: Any) -> str:
    if not isinstance(name, str) or name == "__metadata__":
        raise wg.ArgumentError(f"io.save: {name!r} is no name for a tensor")
    return name


def _array(name: str, value: Any) -> Array:
    if not isinstance(value, wg.Tensor | np.ndarray | np.generic):
        raise wg.DTypeError(f"io.save: {name} is a {type(value).__name__}, not a tensor or a NumPy array")
    array = value.numpy() if isinstance(value, wg.Tensor) else np.asarray(value)
    own = wg.as_dtype(array.dtype).numpy
    little = own.newbyteorder("<") if own.kind in "iuf" and own.name != "bfloat16" else own
    return np.ascontiguousarray(array.astype(little, copy=False)).reshape(array.shape)


def _texts(metadata: Mapping[Any, Any]) -> dict[str, str]:
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise wg.ArgumentError(f"io.save: metadata is texts under texts, not {key!r}: {value!r}")
    return dict(metadata)
