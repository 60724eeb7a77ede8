"""Rows written to computed places: a copy of a matrix, unless it is to be written to, with rows set.

In: for which kind of index. Out: LLVM's text of `kernel`, for matrices of any size. Updates are taken in
their order, so the last of several to one row stays; indices out of range are clamped.
"""

from __future__ import annotations

from ..jobs import FIRST_FIELD, kernel_function
from ..text import Function, module

__all__ = ["set_rows_module"]

_CHUNK = 64  # bytes


def set_rows_module(bits: int, *, signed: bool) -> str:
    """The module, for indices of so many bits."""
    f = kernel_function()
    result, base, index, updates, rows, count, size = (
        f.field("ptr" if at < 4 else "i64", FIRST_FIELD + at) for at in range(7)
    )  # the last is the bytes of a row
    with f.when(f(f"icmp ne ptr {result}, {base}")):
        _copy(f, result, base, f.multiply(rows, size))
    last = f.add(rows, -1)
    with f.loop(0, count) as at:
        place = f.load(f"i{bits}", index, at, f"i{bits}", align=bits // 8)
        if bits < 64:
            place = f(f"{'sext' if signed else 'zext'} i{bits} {place} to i64")
        if signed:
            place = f.most(place, 0)
        row = f.intrinsic("umin", "i64", place, last)
        target, source = (
            f.at(each, f.multiply(which, size)) for each, which in ((result, row), (updates, at))
        )
        _copy(f, target, source, size)
    return module(f.text(private=False))


def _copy(f: Function, target: str, source: str, size: str) -> None:
    """Bytes from one place to another, which lie apart."""
    whole = f(f"and i64 {size}, {-_CHUNK}")
    for kind, first, end, step in ((f"<{_CHUNK} x i8>", "0", whole, _CHUNK), ("i8", whole, size, 1)):
        with f.loop(first, end, step) as at:
            f.store(kind, f.load(kind, source, at), target, at)
