"""Products of many rows with quantised blocks, in LLVM's text: weights are unpacked a few rows at a time.

In: a `Tile`, whose lanes are rows of x, and a format. Out: the text of `kernel(fields, begin, end)`, as
`gemm.py` has it, without `load_b`: `load_a` packs rows of x into panels as wide as the tile, weights of a few
rows are unpacked into the first cache, row by row, and a tile is their products with a panel, transposed. The
invariants are those of `blocks.py`: how an element of a product is summed depends on K alone.
"""

from __future__ import annotations

from dataclasses import replace

from ..jobs import kernel_function
from ..processor import Processor
from ..text import Function
from .blocks import BlockWeights
from .gemm import Blocks, divided, part
from .operands import MOST_DEPTH, Field, Tile, scratch

__all__ = ["tile_of_rows", "tiled_strips", "tiled_text"]

_MOST_ROWS = 256  # of x in a block
_STRIPS = 48, 192  # rows of weights of a unit: multiples of all heights
_UNITS = 4  # for each thread
_HIGH = 12  # rows of weights of a tile with one vector for each
_UNROLL = 4


def tile_of_rows(tile: Tile, m: int) -> Tile:
    """The tile for so many rows of x: no wider than it must be."""
    if m > tile.lanes:
        return tile
    return replace(tile, vectors=1, heights=(_HIGH,))


def tiled_strips(tile: Tile, step: int, m: int, n: int, k: int, threads: int) -> Blocks:
    """How to divide x (m, k) @ blocks (n, k).T, k into multiples of a step."""
    depth, rows = part(k, MOST_DEPTH, step), part(m, _MOST_ROWS, tile.width)
    low, high = _STRIPS
    strip = min(max(n * -(-m // rows) // (_UNITS * threads) // low, 1) * low, high)
    units = -(-m // rows) * -(-n // strip)
    room = rows * depth + 2 * rows * strip
    fields = {Field.M: m, Field.N: n, Field.K: k, Field.ROWS: rows, Field.COLUMNS: strip, Field.DEPTH: depth}
    return divided(tile, fields, units, rows * strip * k, room, threads)


def tiled_text(tile: Tile, name: str, processor: Processor) -> str:
    """`kernel`: a unit is some rows of x and a strip of rows of weights."""
    f = kernel_function()
    m, n, rows, strip = (f.field("i64", each) for each in (Field.M, Field.N, Field.ROWS, Field.COLUMNS))
    down = f(f"sdiv i64 {f.add(f.add(m, rows), -1)}, {rows}")
    with scratch(f) as place, f.loop("%begin", "%end") as unit:
        row = f.multiply(f(f"srem i64 {unit}, {down}"), rows)
        column = f.multiply(f(f"sdiv i64 {unit}, {down}"), strip)
        sizes = f.least(rows, f(f"sub i64 {m}, {row}")), f.least(strip, f(f"sub i64 {n}, {column}"))
        where = ", ".join(f"i64 {each}" for each in (row, column, *sizes))
        f.do(f"call void @block(ptr %fields, {where}, ptr {place})")
    micros = [_micro_text(tile, vectors) for vectors in range(1, tile.vectors + 1)]
    return "\n".join([*micros, _unpack_text(name, processor), _block_text(tile), f.text(private=False)])


_BLOCK = [("ptr", "fields"), *(("i64", each) for each in ("row", "column", "rows", "columns"))]


def _block_text(tile: Tile) -> str:
    """Some rows of x times a strip: for each part of k, x is packed, then a tile's height of weights."""
    f = Function("block", [*_BLOCK, ("ptr", "scratch")])
    height, width = tile.height, tile.width
    k, depth, stride, strip = (
        f.field("i64", each) for each in (Field.K, Field.DEPTH, Field.ROWS, Field.COLUMNS)
    )
    filled = f.variable("float", count=height * MOST_DEPTH)
    sums = "%scratch"
    out = f.at(sums, f.multiply(stride, strip), "float")
    panels = f.at(out, f.multiply(stride, strip), "float")
    with f.loop(0, k, depth) as at:
        ks = f.least(depth, f(f"sub i64 {k}, {at}"))
        first = f(f"icmp eq i64 {at}, 0")
        what = f"i64 0, i64 %row, i64 {at}, i64 %rows, i64 {ks}, ptr {panels}"
        f.do(f"call void @load_a(ptr %fields, {what})")
        with f.loop(0, "%columns", height) as column:
            count = f.least(f(f"sub i64 %columns, {column}"), height)
            where = f"i64 {f.add('%column', column)}, i64 {at}, i64 {count}, i64 {ks}"
            f.do(f"call void @unpack(ptr %fields, {where}, ptr {filled})")
            line = f.at(sums, f.multiply(column, stride), "float")
            with f.loop(0, "%rows", width) as row:
                left = f(f"sub i64 %rows, {row}")
                x, c = f.at(panels, f.multiply(row, ks), "float"), f.at(line, row, "float")
                for vectors in range(1, tile.vectors + 1):
                    fits = f(f"icmp sle i64 {left}, {vectors * tile.lanes}")
                    more = f(f"icmp sgt i64 {left}, {(vectors - 1) * tile.lanes}")
                    if vectors == tile.vectors:
                        fits = "true"
                    with f.when(f(f"and i1 {fits}, {more}")):
                        f.do(
                            f"call void @tile{vectors}(ptr {x}, ptr {filled}, i64 {ks}, ptr {c}, "
                            f"i64 {stride}, i1 {first})"
                        )
    with f.loop(0, "%rows") as row, f.loop(0, "%columns") as column:
        value = f.load("float", sums, f.add(f.multiply(column, stride), row), "float", align=4)
        f.store("float", value, out, f.add(f.multiply(row, strip), column), "float")
    where = f"i64 0, i64 %row, i64 %column, i64 %rows, i64 %columns, ptr {out}, i64 {strip}"
    f.do(f"call void @finish(ptr %fields, {where})")
    return f.text()


def _micro_text(tile: Tile, vectors: int) -> str:
    """A tile: `count` of k, of weights row by row and of a panel; sums are added to those in c."""
    places = [("ptr", "x"), ("ptr", "weights"), ("i64", "count"), ("ptr", "c"), ("i64", "stride")]
    f = Function(f"tile{vectors}", [*places, ("i1", "first")])
    rows, columns, vector = range(tile.height), range(0, vectors * tile.lanes, tile.lanes), tile.vector
    sums = {(row, at): f.variable(vector, "zeroinitializer") for row in rows for at in columns}
    with f.loop(0, "%count", _UNROLL) as k:
        x, weights = f.at("%x", f.multiply(k, tile.width), "float"), f.at("%weights", k, "float")
        for step in range(_UNROLL):
            right = {at: f.load(vector, x, step * tile.width + at, "float", align=4) for at in columns}
            for row in rows:
                weight = f.load("float", weights, row * MOST_DEPTH + step, "float", align=4)
                left = f.spread("float", weight, tile.lanes)
                for at in columns:
                    total = sums[row, at]
                    f.store(vector, tile.add_product(f, left, right[at], f.load(vector, total)), total)
    for row in rows:
        line = f.at("%c", f.multiply("%stride", row), "float")
        for at in columns:
            before = f.load(vector, line, at, "float", align=4)
            before = f(f"select i1 %first, {vector} zeroinitializer, {vector} {before}")
            f.store(vector, tile.add(f, before, f.load(vector, sums[row, at])), line, at, "float")
    return f.text()


def _unpack_text(name: str, processor: Processor) -> str:
    """Weights of some rows, for some k, whole blocks; rows are MOST_DEPTH apart."""
    sizes = [("i64", each) for each in ("row", "k", "rows", "ks")]
    f = Function("unpack", [("ptr", "fields"), *sizes, ("ptr", "out")])
    weights = BlockWeights(f, name, processor)
    size = weights.format.weights
    words, n, k = f.field("ptr", Field.B), f.field("i64", Field.N), f.field("i64", Field.K)
    blocks, count, first = (f(f"sdiv i64 {each}, {size}") for each in (k, "%ks", "%k"))
    total = f.multiply(blocks, n)
    with f.loop(0, "%rows") as row:
        start = f.add(f.multiply(f.add("%row", row), blocks), first)
        line = f.at("%out", f.multiply(row, MOST_DEPTH), "float")
        with f.loop(0, count) as at:
            found = weights.of_block(words, total, f.add(start, at))
            weights.store(found, f.at(line, f.multiply(at, size), "float"))
    return f.text()
