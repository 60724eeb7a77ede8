"""Native functions called with arrays: what they are given is checked and counted here.

In: a format and a shape; then arrays, as the cpu's operations have them. Out: results in arrays, or False
where NumPy must compute: there is no native code, it does not pay, or a number was not finite, for which the
order of operations matters. The invariant: native code only sees contiguous arrays, of the sizes that it is
told.
"""

from __future__ import annotations

import ctypes
import math
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..arrays import Array, np
from ..ops.blocks import FORMATS, word_count
from ..runtime.host_buffers import aligned
from .blocks import FEW, MOST_ROWS, TOGETHER, decode_module, padded_runs, product_module
from .compiler import Functions, compiled, converts_halves, is_available
from .dense import MOST_TOGETHER, dense_module, widen_module
from .formats import FORMATS as NATIVE
from .helpers import Helpers

__all__ = ["call", "decoder", "is_plain", "multiplier", "multiply_rows", "pointer", "widen_rows"]

Shape = tuple[int, ...]

MOST_SUMS = 1 << 16  # sums of runs of x
HALVES = ("float16", "bfloat16")
LONG = 1 << 22  # multiplications from which others may have the interpreter meanwhile
LENT = 1 << 15  # weights from which they may, where other threads unpack beside
_UINT, _FLOAT = np.dtype(np.uint32), np.dtype(np.float32)
_address = ctypes.addressof
_view: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


def pointer(x: Array) -> int:
    """Where an array's elements begin; three times as quick as x.ctypes.data where x may be written to."""
    try:
        return _address(_view(x))
    except (TypeError, ValueError, BufferError):
        return x.ctypes.data


class _Room(threading.local):
    """What each thread gives to native code: arguments, and room for the sums of x."""

    def __init__(self) -> None:
        self.arguments = bytearray(32 * 8)
        self.address = _address(_view(self.arguments))
        self.sums = aligned((MOST_SUMS,), _FLOAT)
        self.sums_address = self.sums.ctypes.data


_room = _Room()
_PRODUCT, _DECODE, _DENSE, _WIDEN = (struct.Struct(f"{count}q") for count in (11, 6, 8, 4))


def call(functions: Functions, form: struct.Struct, *arguments: int, long: bool = False) -> int:
    """What a function gives for its arguments; a long call lets other threads have the interpreter."""
    room = _room
    form.pack_into(room.arguments, 0, *arguments)
    return functions[long](room.address)


def multiplier(name: str, shape: Shape) -> Callable[[Array, Array, Array], bool]:
    """out = x @ blocks.T, for float32 x (m, k), words of blocks (n, k) and out (m, n)."""
    if name not in NATIVE:
        return lambda x, words, out: False
    rows, columns = shape
    format = FORMATS[name]
    blocks, total = columns // format.weights, rows * columns // format.weights
    size = word_count(format, total)
    sums = padded_runs(name, columns) if NATIVE[name].has_offset else 0
    # The words of the last call and where they are: one value, since several threads may run a plan
    last: tuple[Callable[[], Array | None], int] = (lambda: None), 0

    def multiply(x: Array, words: Array, out: Array) -> bool:
        nonlocal last
        count = len(x)
        if not 0 < count <= MOST_ROWS or not total or FEW * sums > MOST_SUMS or not is_available():
            return False
        seen, packed = last
        if seen() is not words:
            if words.size != size or words.dtype != _UINT or not words.flags.c_contiguous:
                return False
            packed = pointer(words)
            last = weakref.ref(words), packed
        if not is_plain(x, (count, columns)) or not is_plain(out, (count, rows)):
            return False
        cost = total * format.weights * count
        functions = compiled(product_module, name, min(count, TOGETHER) if count <= FEW else 0)
        given = packed, total, blocks, pointer(x), count, _room.sums_address, pointer(out), rows, rows, 0
        with Helpers(cost) as slot:
            return not call(functions, _PRODUCT, slot, *given, long=cost >= LONG)

    return multiply


def multiply_rows(x: Array, weights: Array, out: Array) -> bool:
    """out = x @ weights.T, for float32 x (m, k), float16 or bfloat16 weights (n, k) and out (m, n)."""
    rows, columns = weights.shape
    count = len(x)
    if not 0 < count <= MOST_ROWS or not weights.size or not is_available():
        return False
    name = weights.dtype.name
    if name not in HALVES or not weights.flags.c_contiguous:
        return False
    if not is_plain(x, (count, columns)) or not is_plain(out, (count, rows)):
        return False
    cost = rows * columns * count
    functions = compiled(dense_module, name, min(count, MOST_TOGETHER), converts_halves())
    source, target, stored = pointer(x), pointer(out), weights.ctypes.data
    with Helpers(cost) as slot:
        call(functions, _DENSE, slot, stored, columns, source, count, target, rows, rows, long=cost >= LONG)
    return True


def widen_rows(weights: Array, out: Array) -> bool:
    """out = float16 or bfloat16 weights as float32, in the calling thread alone."""
    name = weights.dtype.name
    if not weights.size or name not in HALVES or not weights.flags.c_contiguous or not is_available():
        return False
    if not is_plain(out, weights.shape):
        return False
    given = weights.ctypes.data, weights.size, pointer(out)
    call(compiled(widen_module, name, converts_halves()), _WIDEN, 0, *given, long=out.size >= LENT)
    return True


def decoder(name: str, shape: Shape) -> Callable[[Array, int, Array], bool]:
    """out = rows from `first` on of the words' weights, as float32, in the calling thread alone.

    The tensor is seen as a matrix.
    """
    if name not in NATIVE:
        return lambda words, first, out: False
    format, columns = FORMATS[name], shape[-1]
    blocks, total = columns // format.weights, math.prod(shape) // format.weights
    size = word_count(format, total)

    def decode(words: Array, first: int, out: Array) -> bool:
        count = len(out) * blocks
        if not count or not is_available() or not is_plain(out, (len(out), columns)):
            return False
        if words.size != size or words.dtype != _UINT or not words.flags.c_contiguous:
            return False
        if not 0 <= first * blocks <= total - count:
            return False
        given = pointer(words), total, first * blocks, count, pointer(out)
        call(compiled(decode_module, name), _DECODE, 0, *given, long=out.size >= LENT)
        return True

    return decode


def is_plain(x: Array, shape: Shape) -> bool:
    """Whether an array is float32, of a shape, and contiguous."""
    return x.dtype == _FLOAT and x.shape == shape and x.flags.c_contiguous
