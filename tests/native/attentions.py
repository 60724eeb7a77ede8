"""Attention by native code: `attend` writes, compiles and runs what a test asks for, over strided arrays."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.native.products import KINDS, PROCESSORS
from webgrad.native.compiler import compiled
from webgrad.native.helpers import Helpers
from webgrad.native.jobs import share_text
from webgrad.native.templates.attention import ALL, FINISH, NUMBERS, At, Division, Reads, rows_text
from webgrad.native.templates.attention_blocks import blocks_of_rows, blocks_text
from webgrad.native.templates.attention_rows import few_rows_text, rows_division
from webgrad.native.templates.operands import Field, Tile
from webgrad.native.text import Function
from webgrad.runtime.host_buffers import aligned

Array = np.ndarray[Any, Any]
FORMS = ("rows", "blocks")


class Rules(NamedTuple):
    """Which keys a query sees."""

    causal: bool = False
    window: int = 0
    from_end: bool = False
    length: int | None = None

    def fields(self) -> dict[int, int]:
        if not self.causal:
            return {At.SHIFT: ALL, At.WINDOW: 2 * ALL}
        return {At.SHIFT: 1, At.LATE: int(self.from_end), At.WINDOW: self.window or 2 * ALL}


EVERY = Rules()


@cache
def tile_of(dtype: str, processor: str) -> Tile:
    width, registers, has_fma = PROCESSORS[processor]
    return Tile.of(KINDS[dtype], width, registers, has_fma=has_fma)


def _numbers_text(tile: Tile, at: int) -> str:
    f = Function("numbers", NUMBERS)
    f.store(tile.kind, f.field(tile.kind, at), "%out")
    f.store("i32", f.field("i32", at + 1), "%count")
    return f.text()


def _finish_text(tile: Tile, at: int) -> str:
    f = Function("finish", FINISH)
    start = f.field("ptr", at)
    for number, name in enumerate(("batch", "head", "row")):
        start = f.at(start, f.multiply(f"%{name}", f.field("i64", at + 1 + number)), tile.kind)
    with f.loop(0, "%rows") as row, f.loop(0, f.field("i64", At.VALUES)) as column:
        value = f.load(tile.kind, "%tile", f.add(f.multiply(row, "%stride"), column), tile.kind)
        place = f.add(f.multiply(row, f.field("i64", at + 3)), f.multiply(column, f.field("i64", at + 4)))
        f.store(tile.kind, value, start, place, tile.kind)
    return f.text()


def attention_module(
    form: str, tile: Tile, reads: Reads, counters: int, stored: tuple[str, str, str, str]
) -> str:
    """`run` shares the units of `kernel`; after counters come the mask, the result, scale, count, units and
    their cost.
    """
    after = At.END + counters
    texts = [few_rows_text(tile, reads) if form == "rows" else blocks_text(tile, reads)]
    for name, base, source, read in zip(
        ("load_q", "load_k", "load_v", "load_m"),
        (At.Q, At.K, At.V, after),
        stored,
        ("", reads.keys, reads.values, "" if reads.masked else "none"),
        strict=True,
    ):
        if not read:
            texts.append(rows_text(tile, name, base, source))
    texts += [_finish_text(tile, after + 5), _numbers_text(tile, after + 10)]
    run = Function("run", [("ptr", "fields")], "i64")
    units, cost = run.field("i64", after + 12), run.field("i64", after + 13)
    run.do(f"call void @share(ptr %fields, ptr @kernel, i64 {units}, i64 {cost})")
    return run.module(share_text(), *texts)


def _place(array: Array) -> list[int]:
    return [array.ctypes.data, *[step // array.itemsize for step in array.strides]]


def attend(
    q: Array,
    k: Array,
    v: Array,
    rules: Rules = EVERY,
    mask: Array | None = None,
    *,
    scale: float = 0.3,
    form: str = "blocks",
    processor: str = "AVX2",
    threads: int = 1,
    parts: int = 0,
    in_place: bool = True,
) -> Array:
    """Attention of arrays of four axes, as `threads` or `parts` threads would divide it. What lies beside the
    result stays as it is.
    """
    dtype = q.dtype.name if q.dtype.name in KINDS else "float32"
    tile = tile_of(dtype, processor)
    shape = (*q.shape[:2], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    if form == "rows":
        fits = [in_place and x.shape[3] % tile.lanes == 0 and x.strides[3] == x.itemsize for x in (k, v)]
    else:
        fits = [in_place and x.strides[3] == x.itemsize and x.dtype == dtype for x in (k, v)]
    keys, values = (x.dtype.name if fit else "" for x, fit in zip((k, v), fits, strict=True))
    reads = Reads(keys, values, mask is not None)
    divide: Callable[..., Division] = rows_division if form == "rows" else blocks_of_rows
    division = divide(tile, reads, shape, parts or threads)
    whole = np.full((*q.shape[:3], v.shape[3] + 3), 77, dtype)
    out = whole[..., : v.shape[3]]
    seen = np.broadcast_to(np.zeros(1, dtype) if mask is None else mask, (*q.shape[:3], k.shape[2]))
    stored = (q.dtype.name, k.dtype.name, v.dtype.name, seen.dtype.name)
    module = compiled(attention_module, form, tile, reads, division.counters, stored)[1]
    bits = struct.pack("<f", scale).ljust(8, b"\0") if dtype == "float32" else struct.pack("<d", scale)
    count = k.shape[2] if rules.length is None else rules.length
    words = [0] * At.END
    for field, value in (division.fields | rules.fields()).items():
        words[field] = value
    words[At.Q :] = [*_place(q), *_place(k), *_place(v)]
    words += [0] * division.counters + _place(seen) + _place(out)
    words += [struct.unpack("<q", bits)[0], count & 0xFFFFFFFF, division.units, division.cost]
    scratch = aligned((division.scratch,), np.dtype(np.uint8))
    scratch[:] = 0xFF  # NaN: what is left over must not matter
    words[Field.SCRATCH] = scratch.ctypes.data
    with Helpers(division.cost * division.units if threads > 1 else 0) as slot:
        words[0] = slot if threads > 1 else 0
        arguments = (ctypes.c_int64 * len(words))(*words)
        module(ctypes.addressof(arguments))
    assert not arguments[Field.TAKEN]
    assert not any(arguments[At.END : At.END + division.counters])
    assert (whole[..., v.shape[3] :] == 77).all()
    return out


def wanted(
    q: Array, k: Array, v: Array, rules: Rules = EVERY, mask: Array | None = None, *, scale: float = 0.3
) -> Array:
    """The same by its definition, in float64; rows that see nothing are 0."""
    wide: Any = np.longdouble if q.dtype == np.float64 else np.float64
    q, k, v = (
        each.astype(np.float32 if each.itemsize < 4 else each.dtype).astype(wide) for each in (q, k, v)
    )
    k, v = (np.repeat(each, q.shape[1] // k.shape[1], 1) for each in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    count = min(max(keys if rules.length is None else rules.length, 0), keys)
    key, place = np.arange(keys), np.arange(queries)[:, None] + (count - queries if rules.from_end else 0)
    seen = np.broadcast_to(key < count, (queries, keys))
    if rules.causal:
        seen = seen & (key <= place) & (key > place - (rules.window or keys + queries))
    with np.errstate(all="ignore"):
        scores = q @ np.swapaxes(k, 2, 3) * wide(scale) + (0 if mask is None else mask.astype(wide))
        scores = np.where(seen, scores, -np.inf)
        weights = np.exp(scores - np.maximum(scores.max(3, keepdims=True, initial=-np.inf), -1e300))
        total = np.maximum(weights.sum(3, keepdims=True), 0.5)
        return np.asarray(weights @ np.where(key[:, None] < count, v, 0) / total)
