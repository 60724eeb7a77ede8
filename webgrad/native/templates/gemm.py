"""Matrix products, C[b] = A[b] @ B[b], in LLVM's text: tiles of C in registers, panels of A and B in caches.

In: a `Tile`, and the texts of three functions, the holes. `load_a` packs rows of A into panels, `load_b`
columns of B, and `finish` takes a block of C, which lies in scratch memory, to where it belongs. Out: the
text of `kernel(fields, begin, end)`, which computes some blocks of C; and of one that packs B whole, for
several products. Sizes are fields: another shape is the same text. The invariant: how an element of C is
summed depends on k alone, not on blocks or threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..jobs import kernel_function
from ..text import Function
from .operands import MOST_DEPTH, MOST_SLOTS, Field, Tile, scratch

__all__ = ["Blocks", "blocks", "divided", "gemm_text", "pack_text", "packing", "part"]

_MOST_BYTES = 1 << 18  # of A, packed: it fits the second cache
_MOST_COLUMNS = 512
_LEAST = 64  # rows or columns of a block: with fewer, packing takes too long
_PACKING = 8  # multiplications in the time in which an element is packed
_UNITS = 8  # for each thread: of so many it does not matter who has one more
_UNROLL = 4


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a product is divided: units of work, their cost in multiplications, fields, and the bytes of
    scratch memory, for all threads.
    """

    units: int
    cost: int
    fields: dict[Field, int]
    scratch: int


def blocks(
    tile: Tile, m: int, n: int, k: int, batch: int = 1, threads: int = 1, *, packed: bool = False
) -> Blocks:
    """How to divide (batch, m, k) @ (batch, k, n), whose second operand may be packed already."""
    depth = part(k, MOST_DEPTH, _UNROLL)
    rows, columns = _sizes(tile, m, n, batch, threads)
    units = batch * -(-m // rows) * -(-n // columns)
    keeps_a = rows * k * tile.size <= _MOST_BYTES
    room_a = rows * (k if keeps_a else depth)
    room_b = 0 if packed else depth * tile.group(tile.width) * tile.width
    room = room_b + rows * columns + room_a + 2 * tile.lanes
    sizes = {Field.M: m, Field.N: n, Field.K: k, Field.A_STEP: keeps_a * rows}
    fields = {**sizes, Field.ROWS: rows, Field.COLUMNS: columns, Field.DEPTH: depth}
    return divided(tile, fields, units, rows * columns * k, room, threads)


def _sizes(tile: Tile, m: int, n: int, batch: int, threads: int) -> tuple[int, int]:
    """The rows and columns of a block: those with which the thread that has most to do is done first."""
    down, across = -(-m // (_MOST_BYTES // (MOST_DEPTH * tile.size))), -(-n // _MOST_COLUMNS)
    most = _UNITS * threads // max(batch, 1)  # blocks of a product

    def block(down: int, across: int) -> tuple[int, int]:
        return _equal(m, down, tile.height), _equal(n, across, tile.width)

    def time(sizes: tuple[int, int]) -> int:
        rows, columns = (max(min(each, size), 1) for each, size in zip(sizes, (m, n), strict=True))
        down, across = -(-m // rows), -(-n // columns)
        whole = rows * columns + _PACKING * (rows + columns)
        return min(
            -(-batch * down * across // threads) * whole, batch * (m * n + _PACKING * (across * m + down * n))
        )

    found = [
        block(each, other)
        for each in range(down, max(down, min(m // _LEAST, most)) + 1)
        for other in range(across, max(across, min(n // _LEAST, most // max(each, 1))) + 1)
    ]
    return min(found, key=time)


def packing(tile: Tile, n: int, k: int, batch: int) -> Blocks:
    """How to divide the packing of B (batch, k, n); its `scratch` is the bytes of all panels."""
    columns = tile.group(tile.width) * tile.width
    depth, size = part(k, MOST_DEPTH, _UNROLL), batch * k * -(-n // tile.width) * tile.width * tile.size
    fields = {Field.N: n, Field.K: k, Field.COLUMNS: columns, Field.DEPTH: depth}
    return Blocks(batch * -(-n // columns), columns * k, fields, size)


def divided(tile: Tile, fields: dict[Field, int], units: int, cost: int, room: int, threads: int) -> Blocks:
    """A division of which each thread needs room for so many elements."""
    slots, room = min(threads, MOST_SLOTS), -(-room * tile.size // 64) * 64
    return Blocks(units, cost, {**fields, Field.ROOM: room, Field.SLOTS: slots, Field.TAKEN: 0}, slots * room)


def part(size: int, most: int, step: int) -> int:
    """The size of equal parts, none of them larger than `most` by more than a step."""
    return _equal(size, -(-size // max(most, 1)), step)


def _equal(size: int, parts: int, step: int) -> int:
    """The size of so many equal parts, in steps."""
    return max(-(-size // (max(parts, 1) * step)), 1) * step


@cache
def gemm_text(tile: Tile, *, direct: bool = False, packed: bool = False, whole: bool = False) -> str:
    """`kernel`, which calls the holes. What is `direct` sums whole tiles up in C itself: `finish` is then
    `store_text`'s. If B is `packed`, nothing calls `load_b`. If its columns are `whole` tiles, those of fewer
    are left out, with a sixth of the time that compiling takes.
    """
    widths = (tile.width,) if whole else (tile.width, tile.lanes)
    tiles = (_micro_text(tile, height, width) for width in widths for height in tile.heights)
    return "\n".join([*tiles, _block_text(tile, widths, direct, packed), _kernel_text(tile)])


def _micro_text(tile: Tile, height: int, width: int) -> str:
    """A tile, or the first columns of one: `count` of k, out of panels; the sums are added to what is in C,
    but for the first ones.
    """
    places = [("ptr", "a"), ("ptr", "b"), ("i64", "count"), ("ptr", "c"), ("i64", "stride")]
    f = Function(f"micro{height}x{width}", [*places, ("i1", "first"), ("i64", "rows")])
    vector, kind, columns = tile.vector, tile.kind, range(0, width, tile.lanes)
    sums = {(row, at): f.variable(vector, "zeroinitializer") for row in range(height) for at in columns}
    lines = [f.at("%c", f.multiply("%stride", row), kind) for row in range(height)]
    for line in lines:
        f.prefetch(line, written=True)
    unroll = _UNROLL if (height, width) == (tile.height, tile.width) else 1  # others compute what is left
    whole = f(f"and i64 %count, {-unroll}")
    for start, stop, steps in (("0", whole, unroll), (whole, "%count", 1))[:unroll]:
        with f.loop(start, stop, steps) as k:
            a, b = (
                f.at(each, f.multiply(k, size), kind)
                for each, size in (("%a", tile.height), ("%b", tile.width))
            )
            for step in range(steps):
                right = {
                    at: f.load(vector, b, step * tile.width + at, kind, align=tile.size) for at in columns
                }
                for row in range(height):
                    left = f.spread(
                        kind, f.load(kind, a, step * tile.height + row, kind, align=tile.size), tile.lanes
                    )
                    for at in columns:
                        total = sums[row, at]
                        f.store(vector, tile.add_product(f, left, right[at], f.load(vector, total)), total)
    for row, line in enumerate(lines):
        with f.when(f(f"icmp sgt i64 %rows, {row}")):
            for at in columns:
                before = f.load(vector, line, at, kind, align=tile.size)
                before = f(f"select i1 %first, {vector} zeroinitializer, {vector} {before}")
                f.store(vector, tile.add(f, before, f.load(vector, sums[row, at])), line, at, kind)
    return f.text()


_SIZES = [("i64", each) for each in ("batch", "row", "column", "rows", "columns")]
_BLOCK = [("ptr", "fields"), *_SIZES, ("i1", "packs"), ("ptr", "scratch")]


def _kernel_text(tile: Tile) -> str:
    f = kernel_function()
    m, n, height, width = (f.field("i64", each) for each in (Field.M, Field.N, Field.ROWS, Field.COLUMNS))
    down, across = (
        f(f"sdiv i64 {f.add(f.add(size, part), -1)}, {part}") for size, part in ((m, height), (n, width))
    )
    shared = f(f"icmp ne i64 {f.field('i64', Field.SHARES_A)}, 0")
    keeps = f(f"icmp ne i64 {f.field('i64', Field.A_STEP)}, 0")
    packed = [f.variable("i64", "-1") for _ in range(2)]  # the batch and the row whose panels of A are there
    with scratch(f) as place, f.loop("%begin", "%end") as unit:
        above, at_column = f(f"sdiv i64 {unit}, {across}"), f(f"srem i64 {unit}, {across}")
        batch, at_row = f(f"sdiv i64 {above}, {down}"), f(f"srem i64 {above}, {down}")
        row, column = f.multiply(at_row, height), f.multiply(at_column, width)
        rows = f.least(height, f(f"sub i64 {m}, {row}"))
        columns = f.least(width, f(f"sub i64 {n}, {column}"))
        there = keeps
        for each, value in zip(packed, (f(f"select i1 {shared}, i64 0, i64 {batch}"), row), strict=True):
            same = f(f"icmp eq i64 {value}, {f.load('i64', each)}")
            there = f(f"and i1 {there}, {same}")
            f.store("i64", value, each)
        where = ", ".join(f"i64 {each}" for each in (batch, row, column, rows, columns))
        f.do(f"call void @block(ptr %fields, {where}, i1 {f(f'xor i1 {there}, true')}, ptr {place})")
    return f.text(private=False)


def _block_text(tile: Tile, widths: tuple[int, ...], direct: bool, packed: bool) -> str:
    """A block of C: for each part of k, A is packed whole, then B, a few panels at a time."""
    f = Function("block", _BLOCK)
    kind, group = tile.kind, tile.group(tile.width) * tile.width
    k, depth, stride = (f.field("i64", each) for each in (Field.K, Field.DEPTH, Field.COLUMNS))
    panels_b = "%scratch"
    sums = panels_b if packed else f.at(panels_b, f.multiply(depth, group), kind)
    kept = f.at(sums, f.multiply(f.field("i64", Field.ROWS), stride), kind)
    step_a = f.field("i64", Field.A_STEP)
    tail = f(f"srem i64 %rows, {tile.height}")
    whole = f(f"sub i64 %rows, {tail}")
    if direct:
        batch, row = f.field("i64", Field.C + 1), f.field("i64", Field.C + 2)
        place = f.add(f.multiply("%batch", batch), f.add(f.multiply("%row", row), "%column"))
        target = f.at(f.field("ptr", Field.C), place, kind)

    with f.loop(0, f.most(k, 1), depth) as at:  # if k is 0, sums are still set
        ks = f.least(depth, f(f"sub i64 {k}, {at}"))
        first = f(f"icmp eq i64 {at}, 0")
        panels_a = f.at(kept, f.multiply(at, step_a), kind)
        with f.when("%packs"):
            what = f"i64 {at}, i64 %rows, i64 {ks}, ptr {panels_a}"
            f.do(f"call void @load_a(ptr %fields, i64 %batch, i64 %row, {what})")
        with f.loop(0, "%columns", tile.width) as column:
            left = f(f"sub i64 %columns, {column}")
            across = f.add("%column", column)
            if packed:
                panels_b, inside = _packed_part(f, tile, at), across
            else:
                inside = f(f"srem i64 {column}, {group}")
                with f.when(f(f"icmp eq i64 {inside}, 0")):
                    what = f"i64 {at}, i64 {f.least(left, group)}, i64 {ks}, ptr {panels_b}"
                    f.do(f"call void @load_b(ptr %fields, i64 %batch, i64 {across}, {what})")
            b, out, step = f.at(panels_b, f.multiply(inside, ks), kind), f.at(sums, column, kind), stride
            if direct:
                fits = f(f"icmp sge i64 {left}, {tile.width}")
                out = f(f"select i1 {fits}, ptr {f.at(target, column, kind)}, ptr {out}")
                step = f(f"select i1 {fits}, i64 {row}, i64 {stride}")

            def call(height: int, width: int, row: str, rows: str | int) -> None:
                a, c = f.at(panels_a, f.multiply(row, ks), kind), f.at(out, f.multiply(row, step), kind)
                what = f"ptr {a}, ptr {b}, i64 {ks}, ptr {c}, i64 {step}, i1 {first}, i64 {rows}"
                f.do(f"call void @micro{height}x{width}({what})")

            narrow = f(f"icmp sle i64 {left}, {tile.lanes if len(widths) > 1 else 0}")
            for width, chosen in zip(widths, (f(f"xor i1 {narrow}, true"), narrow), strict=False):
                with f.when(chosen):
                    with f.loop(0, whole, tile.height) as at_row:
                        call(tile.height, width, at_row, tile.height)
                    for height, less in zip(tile.heights, (*tile.heights[1:], 0), strict=True):
                        more, fits = f(f"icmp sgt i64 {tail}, {less}"), f(f"icmp sle i64 {tail}, {height}")
                        with f.when(f(f"and i1 {more}, {fits}")):
                            call(height, width, whole, tail)
    stored: str | int = 0
    if direct:
        stored = f(f"and i64 %columns, {-tile.width}")
    left = f(f"sub i64 %columns, {stored}")
    with f.when(f(f"icmp sgt i64 {left}, 0")):
        where = f"i64 %batch, i64 %row, i64 {f.add('%column', stored)}, i64 %rows, i64 {left}"
        f.do(f"call void @finish(ptr %fields, {where}, ptr {f.at(sums, stored, kind)}, i64 {stride})")
    return f.text()


def _packed_part(f: Function, tile: Tile, k: str) -> str:
    """Where the panels of a batch are from this k on, of a B that is packed: `B + 1` elements for each batch,
    `B + 2` for each k.
    """
    start, batch, step = (f.field(kind, Field.B + at) for at, kind in enumerate(("ptr", "i64", "i64")))
    return f.at(start, f.add(f.multiply("%batch", batch), f.multiply(k, step)), tile.kind)


@cache
def pack_text(tile: Tile) -> str:
    """`kernel` that packs B by `load_b`, part after part of k, to C: `_packed_part` reads it there."""
    f = kernel_function()
    n, k, depth, width = (f.field("i64", each) for each in (Field.N, Field.K, Field.DEPTH, Field.COLUMNS))
    start, batches, step = (f.field(kind, Field.C + at) for at, kind in enumerate(("ptr", "i64", "i64")))
    across = f(f"sdiv i64 {f.add(f.add(n, width), -1)}, {width}")
    with f.loop("%begin", "%end") as unit:
        batch, column = f(f"sdiv i64 {unit}, {across}"), f.multiply(f(f"srem i64 {unit}, {across}"), width)
        columns = f.least(width, f(f"sub i64 {n}, {column}"))
        with f.loop(0, k, depth) as at:
            ks = f.least(depth, f(f"sub i64 {k}, {at}"))
            place = f.add(f.add(f.multiply(batch, batches), f.multiply(at, step)), f.multiply(column, ks))
            what = f"i64 {at}, i64 {columns}, i64 {ks}, ptr {f.at(start, place, tile.kind)}"
            f.do(f"call void @load_b(ptr %fields, i64 {batch}, i64 {column}, {what})")
    return f.text(private=False)
