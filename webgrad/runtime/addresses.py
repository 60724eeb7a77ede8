"""Where an array's elements lie, quickly: the address is a word of NumPy's array object.

In: an array. Out: the address of its first element. NumPy gives it too, by a dictionary that it makes for
that, which takes ten times as long. The invariant: the word is read only where it held the addresses of
arrays that were made to find it; elsewhere NumPy is asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from ..arrays import Array, np

__all__ = ["UNKNOWN", "address_of", "address_place"]

UNKNOWN = -1
_WORDS = 8  # of an array object, among which the address is looked for
_SIZE = ctypes.sizeof(ctypes.c_size_t)
_word: Callable[[int], Any] = ctypes.c_size_t.from_address


def _asked(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@cache
def address_place() -> int:
    """Where in an array object its address is, in bytes; UNKNOWN with another Python, or another NumPy."""
    samples: list[Array] = [np.empty(4, np.float32), np.empty((3, 5), np.uint8)[1:], np.empty(())]
    try:
        known = [_asked(each) for each in samples]
        words = range(0, _WORDS * _SIZE, _SIZE)
        return next(at for at in words if [_word(id(each) + at).value for each in samples] == known)
    except StopIteration:
        return UNKNOWN


def address_of(array: Array) -> int:
    """The address of an array's first element; it wants an array, and nothing else."""
    place = address_place()
    return _asked(array) if place == UNKNOWN else _word(id(array) + place).value
