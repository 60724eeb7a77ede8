"""What operators of every family ask of values: types for indices, axes, and moves of what no tensor holds.

Texts and numbers of fewer than eight bits are arrays of NumPy all the way (`types.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import webgrad as wg

from ...arrays import Array, np
from ..types import code_of, type_of

__all__ = [
    "as_indices",
    "axes_of",
    "bounded",
    "has_type",
    "is_array",
    "is_for_tensors",
    "is_held",
    "moves",
    "stored",
    "uploaded",
    "whole",
]

MOST_ON_HOST = 1 << 24  # elements that an operator makes there


def is_array(value: Any) -> bool:
    """Whether a value is an array of the host, not a tensor."""
    return isinstance(value, np.ndarray)


def bounded(*sizes: Any) -> Any:
    """Sizes of an array that is made on the host, as they are; a file that asks for a huge one is refused."""
    if math.prod(map(int, sizes)) > MOST_ON_HOST:
        raise wg.ModelFileError(
            f"it makes {' × '.join(map(str, sizes))} elements on the host, of which there may be "
            f"{MOST_ON_HOST:,}"
        )
    return sizes[0] if len(sizes) == 1 else sizes


def is_held(value: Any) -> bool:
    """Whether a value is a tensor, or an array that one can hold."""
    return not is_array(value) or _is_of_webgrad(value.dtype)


def is_for_tensors(value: Any) -> bool:
    """Whether a value is an array that a tensor can hold: texts and types of few bits stay arrays."""
    return is_array(value) and _is_of_webgrad(value.dtype)


@cache
def _is_of_webgrad(dtype: Any) -> bool:
    return type_of(code_of(dtype)).webgrad is not None


@cache
def has_type(device: str, name: str) -> bool:
    """Whether a device has a type: of GPUs not all have integers of 64 bits."""
    return name in wg.__array_namespace_info__().dtypes(device=device)


def as_indices(tensor: wg.Tensor) -> wg.Tensor:
    """Indices and counts in the standard's type, int64; where a GPU has none they stay int32."""
    return tensor.astype(stored("int64", tensor.device))


_NARROWER = {"int64": "int32", "uint64": "uint32"}


def stored(name: str, device: Any) -> Any:
    """A type as a device holds it: a GPU without int64 counts with int32."""
    return wg.as_dtype(name if has_type(str(device), name) else _NARROWER.get(name, name))


def uploaded(array: Array, device: Any) -> wg.Tensor:
    """An array on a device; integers of 64 bits as those of 32 where a GPU has no others, if they fit."""
    own = wg.as_dtype(array.dtype)
    kept = stored(own.name, device)
    if kept is not own and array.size:
        low, high = kept.limits
        if array.min() < low or array.max() > high:
            raise wg.DTypeError(
                f"{device} has no {array.dtype}, and numbers from {array.min()} to {array.max()} do not fit "
                f"into {kept.name}: use device='cpu'"
            )
    return wg.asarray(array, dtype=kept, device=device)


def whole(array: Any) -> int:
    """The integer that an array of one element holds."""
    return int(np.asarray(array).reshape(())[()])


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the first; raises for those that are not there."""
    found = [int(each) for each in np.asarray(axes).reshape(-1)]
    for each in found:
        if not -rank <= each < rank:
            raise wg.AxisError(f"axis {each} is not among the {rank} of the tensor")
    return tuple(each % rank for each in found)


def moves(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that only moves elements, for arrays that no tensor holds too: it moves their places."""

    @wraps(function)
    def move(*values: Any, **attributes: Any) -> Any:
        held = [at for at, each in enumerate(values) if not is_held(each)]
        if not held:
            return function(*values, **attributes)
        device = next((each.device for each in values if isinstance(each, wg.Tensor)), "cpu")
        elements, given, start = np.concatenate([values[at].reshape(-1) for at in held]), list(values), 0
        with wg.at_capture():
            for at in held:
                places = np.arange(start, start + values[at].size, dtype=np.int32).reshape(values[at].shape)
                given[at] = wg.asarray(places, device=device)
                start += values[at].size
            found = function(*given, **attributes)
            several = found if isinstance(found, tuple) else (found,)
            bounded(sum(each.size for each in several))
            moved = tuple(elements[each.numpy()] for each in several)
            return moved if isinstance(found, tuple) else moved[0]

    return move
