"""Attention of few queries over arrays, by native code.

In: arrays as an attend node has them. Out: whether the result was computed; if not, NumPy must. The
invariant: native code sees float32 arrays, keys and values of float16 too, whose columns lie side by side,
and reads no key from `count` on.
"""

from __future__ import annotations

import struct

from ..arrays import Array, np
from .attention import FIELDS, attention_module
from .calls import call, pointer
from .compiler import compiled, converts_halves, is_available
from .helpers import Helpers
from .text import LANES

__all__ = ["attend"]

FEW_QUERIES = 4  # with more, BLAS reads the keys once for all of them
_FLOAT = np.dtype(np.float32)
_STORED = ("float32", "float16")  # what keys and values may be
_fields = struct.Struct(f"{len(FIELDS) + 1}q")
_bits = struct.Struct("f"), struct.Struct("i")


def attend(
    q: Array, k: Array, v: Array, scale: float, count: int, seen: tuple[bool, int, int], out: Array
) -> bool:
    """Attention over the first `count` keys; `seen` is (causal, shift, window)."""
    batches, heads, queries, columns = q.shape
    if queries > FEW_QUERIES or not count or not out.size or not is_available():
        return False
    if columns % LANES or v.shape[3] % LANES or not out.flags.c_contiguous or out.dtype != _FLOAT:
        return False
    strides: list[int] = []
    stored = k.dtype.name
    if q.dtype != _FLOAT or v.dtype != k.dtype or stored not in _STORED:
        return False
    for each in (q, k, v):
        batch, head, row, column = each.strides
        item = each.itemsize
        if column != item or (batch | head | row) % item:
            return False
        strides += (batch // item, head // item, row // item)
    causal, shift, window = seen
    room_row = -(-count // LANES) * LANES
    room = np.empty(batches * heads * queries * room_row, _FLOAT)
    function = compiled(attention_module, stored, converts_halves())
    number = _bits[1].unpack(_bits[0].pack(scale))[0]
    with Helpers(out.size * count) as slot:
        return not call(
            function,
            _fields,
            *(slot, *map(_start, (q, k, v)), pointer(out), pointer(room), *strides),
            *(heads, heads // k.shape[1], queries, columns, v.shape[3]),
            *(causal, shift, window, count, room_row, batches * heads * queries, number, 0),
        )


def _start(x: Array) -> int:
    """Where the first element lies, in an array of any layout but for its columns."""
    return pointer(x[0, 0, 0])
