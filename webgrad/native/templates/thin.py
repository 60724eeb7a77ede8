"""Products of few rows with a wide matrix, or of a wide matrix with few columns, at the speed of memory.

In: a `Tile`, how the wide matrix is stored, and which operand it is. Out: the text of a `kernel` as
`gemm.py` has it, with two holes: `load_a` gives the few rows (`load_b` the few columns) as panels of height
1, and `finish` takes strips of C. The wide matrix is read where it lies, once: by dot products where k lie
side by side, else by adding its rows up. The invariant: how an element of C is summed depends on k and on the
layout of the wide matrix alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..jobs import kernel_function
from ..text import Function
from .gemm import Blocks, divided
from .operands import Field, Tile, scratch, stretches

__all__ = ["MOST_FEW", "is_thin", "strips", "thin_text"]

MOST_FEW = 8  # rows up to which this pays
_MOST_STRIP, _LEAST_STRIP = 4096, 256
_UNITS = 2  # for each thread
_DEEP = 4  # rows of the wide matrix that are added up at once
_BESIDE = 4  # rows of it whose dot products are computed at once
_SUMS = 8  # vectors of sums, at most
_PREFETCH = 4096  # bytes ahead


def is_thin(few: int, strides: Sequence[int]) -> bool:
    """Whether this pays for so few rows, and for a wide matrix whose rows (of B: columns) and k are so many
    elements apart.
    """
    return few <= MOST_FEW and 1 in strides


def strips(
    tile: Tile, m: int, n: int, k: int, batch: int = 1, threads: int = 1, *, swapped: bool = False
) -> Blocks:
    """How to divide (batch, m, k) @ (batch, k, n), where m is small; swapped: n."""
    few, wide = (n, m) if swapped else (m, n)
    most = _MOST_STRIP if few == 1 else _MOST_STRIP // 4
    if threads > 1:
        most = min(most, max(_LEAST_STRIP, wide * batch // (_UNITS * threads)))
    strip = max(-(-min(most, wide) // 64), 1) * 64
    room = 2 * few * strip + few * k + tile.lanes
    fields = {Field.M: m, Field.N: n, Field.K: k, Field.COLUMNS: strip}
    return divided(tile, fields, batch * -(-wide // strip) if few else 0, few * strip * k, room, threads)


@cache
def thin_text(tile: Tile, source: str, *, swapped: bool = False) -> str:
    """`kernel`, for few rows and a wide B; swapped: for few columns and a wide A."""
    f = kernel_function()
    few, many = (f.field("i64", each) for each in ((Field.N, Field.M) if swapped else (Field.M, Field.N)))
    k, strip, kind = f.field("i64", Field.K), f.field("i64", Field.COLUMNS), tile.kind
    base = Field.A if swapped else Field.B
    start, (s_batch, s_row, s_k) = f.field("ptr", base), (f.field("i64", base + at) for at in (1, 2, 3))
    across = f(f"sdiv i64 {f.add(f.add(many, strip), -1)}, {strip}")
    by_dots = f(f"icmp eq i64 {s_k}, 1")
    loaded = f.variable("i64", "-1")  # the batch whose few rows are there
    with scratch(f) as sums, f.loop("%begin", "%end") as unit:
        turned = f.at(sums, f.multiply(few, strip), kind)
        x = f.at(turned, f.multiply(few, strip), kind)
        batch, column = f(f"sdiv i64 {unit}, {across}"), f.multiply(f(f"srem i64 {unit}, {across}"), strip)
        columns = f.least(strip, f(f"sub i64 {many}, {column}"))
        with f.when(f(f"icmp ne i64 {batch}, {f.load('i64', loaded)}")):
            f.store("i64", batch, loaded)
            load = "load_b" if swapped else "load_a"
            f.do(f"call void @{load}(ptr %fields, i64 {batch}, i64 0, i64 0, i64 {few}, i64 {k}, ptr {x})")
        here = f.at(start, f.add(f.multiply(batch, s_batch), f.multiply(column, s_row)), tile.stored(source))
        for name, stride, chosen in (("dots", s_row, by_dots), ("sweep", s_k, f(f"xor i1 {by_dots}, true"))):
            with f.when(chosen):
                sizes = f"i64 {few}, i64 {k}, i64 {columns}, i64 {stride}, i64 {strip}"
                f.do(f"call void @{name}(ptr {x}, ptr {here}, ptr {sums}, {sizes})")
        tile_at, stride, where = sums, strip, f"i64 0, i64 {column}, i64 {few}, i64 {columns}"
        if swapped:
            with f.loop(0, columns) as at, f.loop(0, few) as row:
                value = f.load(kind, sums, f.add(f.multiply(row, strip), at), kind)
                f.store(kind, value, turned, f.add(f.multiply(at, few), row), kind)
            tile_at, stride, where = turned, few, f"i64 {column}, i64 0, i64 {columns}, i64 {few}"
        f.do(f"call void @finish(ptr %fields, i64 {batch}, {where}, ptr {tile_at}, i64 {stride})")
    return "\n".join([_dots_text(tile, source), _sweep_text(tile, source), f.text(private=False)])


# `few` rows of x, k floats each, and `count` rows or columns of w → sums, whose rows are `strip` apart
_PLACES = [("ptr", "x"), ("ptr", "w"), ("ptr", "sums")]
_STRIP = [*_PLACES, *(("i64", each) for each in ("few", "k", "count", "stride", "strip"))]


def _sweep_text(tile: Tile, source: str) -> str:
    """Rows of w, each for one k, times numbers of x, added up."""
    f = Function("sweep", _STRIP)
    with f.loop(0, f.multiply("%few", "%strip"), tile.lanes) as at:
        f.store(tile.vector, "zeroinitializer", "%sums", at, tile.kind)
    deep, pairs = f(f"and i64 %k, {-_DEEP}"), f("and i64 %few, -2")
    for start, stop, steps in (("0", deep, _DEEP), (deep, "%k", 1)):
        with f.loop(start, stop, steps) as k:
            for first, last, rows in (("0", pairs, 2), (pairs, "%few", 1)):
                with f.loop(first, last, rows) as row:
                    _sweep(f, tile, source, k, steps, [f.add(row, at) for at in range(rows)])
    return f.text()


def _sweep(f: Function, tile: Tile, source: str, k: str, steps: int, rows: list[str]) -> None:
    """Add some rows of w to the sums of some rows of x."""
    kind = tile.kind
    lines = [f.at("%w", f.multiply(f.add(k, at), "%stride"), tile.stored(source)) for at in range(steps)]
    outs = [f.at("%sums", f.multiply(row, "%strip"), kind) for row in rows]
    xs = [f.at("%x", f.add(f.multiply(row, "%k"), k), kind) for row in rows]
    numbers = [[f.load(kind, x, at, kind) for x in xs] for at in range(steps)]
    vectors = [[f.spread(kind, each, tile.lanes) for each in line] for line in numbers]
    for place, lanes, type in stretches(f, tile, "%count"):
        totals = [f.load(type, out, place, kind) for out in outs]
        for line, factors in zip(lines, vectors if lanes else numbers, strict=True):
            value = tile.read(f, source, line, place, lanes)
            totals = [
                tile.add_product(f, factor, value, total, type)
                for factor, total in zip(factors, totals, strict=True)
            ]
        for out, total in zip(outs, totals, strict=True):
            f.store(type, total, out, place, kind)


def _dots_text(tile: Tile, source: str) -> str:
    """Dot products of rows of w, in which k lie side by side, with those of x."""
    f = Function("dots", _STRIP)
    whole = f(f"and i64 %count, {-_BESIDE}")
    fours = f("and i64 %few, -4")
    left = f(f"sub i64 %few, {fours}")
    for start, stop, count in (("0", whole, _BESIDE), (whole, "%count", 1)):
        with f.loop(start, stop, count) as column:
            with f.loop(0, fours, 4) as row:
                _dots(f, tile, source, row, 4, column, count)
            for rows in (1, 2, 3):
                with f.when(f(f"icmp eq i64 {left}, {rows}")):
                    _dots(f, tile, source, fours, rows, column, count)
    return f.text()


def _dots(f: Function, tile: Tile, source: str, row: str, rows: int, column: str, columns: int) -> None:
    """The products of some rows of x and of w, as many at once as there are registers for."""
    beside = 1 if rows < 4 else min(columns, _SUMS // rows)  # one stream is read the quickest
    kind, stored, vector = tile.kind, tile.stored(source), tile.vector
    xs = [f.at("%x", f.multiply(f.add(row, at), "%k"), kind) for at in range(rows)]
    for first in range(0, columns, beside):
        pairs = [(at, each) for each in range(first, min(first + beside, columns)) for at in range(rows)]
        ws = {each: f.at("%w", f.multiply(f.add(column, each), "%stride"), stored) for _, each in pairs}
        sums = {pair: f.variable(vector, "zeroinitializer") for pair in pairs}
        rests = {pair: f.variable(kind, "0.0" if kind[0] != "i" else "0") for pair in pairs}
        for k, lanes, type in stretches(f, tile, "%k"):
            if lanes:  # short rows follow each other: what comes after them is asked for
                for line in ws.values():
                    ahead = f.at(f.at(line, k, stored), _PREFETCH)
                    f.prefetch(ahead)
            left = [f.load(type, each, k, kind) for each in xs]
            right = {each: tile.read(f, source, line, k, lanes) for each, line in ws.items()}
            for at, each in pairs:
                place = (sums if lanes else rests)[at, each]
                f.store(type, tile.add_product(f, left[at], right[each], f.load(type, place), type), place)
        for at, each in pairs:
            whole = tile.total(f, f.load(vector, sums[at, each]))
            total = tile.add(f, whole, f.load(kind, rests[at, each]), kind)
            place = f.add(f.multiply(f.add(row, at), "%strip"), f.add(column, each))
            f.store(kind, total, "%sums", place, kind)
