"""Reading idx, the format of MNIST and its relatives: a type, the lengths of the axes, then the elements.

In: the bytes of a file. Out: a NumPy array of its own. The invariant: nothing is believed; the lengths must
come to exactly the bytes that are there.
"""

from __future__ import annotations

import math
from typing import Any

import webgrad as wg

from ..arrays import np

__all__ = ["read_idx"]

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_AXES = 8


def read_idx(data: bytes, name: str) -> np.ndarray[Any, Any]:
    """The array in an idx file; `name` is what messages call it."""
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES or not 1 <= data[3] <= _MOST_AXES:
        raise wg.ModelFileError(
            f"{name} is not an idx file: it begins with {data[:4].hex(' ') or 'nothing'}, not with "
            "two zeros, a type from 08 to 0e, and a number of axes"
        )
    dtype, axes = np.dtype(_TYPES[data[2]]), data[3]
    start = 4 + 4 * axes
    if len(data) < start:
        raise wg.ModelFileError(f"{name} is damaged: it ends before the lengths of its {axes} axes")
    shape = tuple(int(each) for each in np.frombuffer(data[4:start], ">u4"))
    needed = start + math.prod(shape) * dtype.itemsize
    if len(data) != needed:
        raise wg.ModelFileError(
            f"{name} is damaged: an idx file of shape {shape} and {dtype.name} has {needed} bytes, and this "
            f"one has {len(data)}"
        )
    elements = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return elements.astype(dtype.newbyteorder("="))  # a copy that can be written to
