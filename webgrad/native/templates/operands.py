"""Matrices in memory for products: how panels of them are packed, and how results are stored.

In: a `Tile`, which says how products use a processor's registers. Out: LLVM's text of the standard functions
for the holes of `gemm.py` and `thin.py`. A panel is some rows of an operand (of B: columns), k by k, so that
a product reads it from front to back. The invariant: nothing outside of an operand is read, and what a panel
holds beyond the operand's rows reaches no result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from ..jobs import FIRST_FIELD
from ..text import RELAX, Function
from .formats import WIDEN

__all__ = [
    "LOAD",
    "MOST_DEPTH",
    "MOST_SLOTS",
    "STORE",
    "Field",
    "Tile",
    "columns_of",
    "filled_text",
    "load_text",
    "panels",
    "scratch",
    "store_text",
    "stretches",
    "transposed",
]


class Field(IntEnum):
    """Arguments of a product, after those of every job. Holes may have more, from END on."""

    M = FIRST_FIELD
    N = M + 1
    K = N + 1
    ROWS = K + 1  # of a block of C
    COLUMNS = ROWS + 1
    DEPTH = COLUMNS + 1  # how much of k is summed at a time
    SCRATCH = (
        DEPTH + 1
    )  # memory, ROOM bytes for each of SLOTS threads; those whose bit is set in TAKEN use it
    ROOM = SCRATCH + 1
    SLOTS = ROOM + 1
    TAKEN = SLOTS + 1
    # An operand's address, and how many elements its batches, its rows (of B: its columns) and k are apart
    SHARES_A = TAKEN + 1  # 1: all batches have one A
    A_STEP = SHARES_A + 1  # elements of panels of A for each k; 0: there is room for DEPTH of k only
    A = A_STEP + 1
    B = A + 4
    C = B + 4  # the address, and how many elements batches and rows are apart
    END = C + 3


MOST_SLOTS = 64
MOST_DEPTH = 256  # of k at a time: a panel of B fits the first cache
# The parameters of `load_a` and `load_b`, and of `finish`
_BLOCK = [("ptr", "fields"), ("i64", "batch"), ("i64", "row")]
LOAD = [*_BLOCK, ("i64", "k"), ("i64", "rows"), ("i64", "ks"), ("ptr", "out")]
STORE = [*_BLOCK, ("i64", "column"), ("i64", "rows"), ("i64", "columns"), ("ptr", "tile"), ("i64", "stride")]

_SIZES = {"float": 4, "double": 8, "i32": 4, "i64": 8}
_NAMES = {"float": "float32", "double": "float64", "i32": "int32", "i64": "int64"}
_STORED = {name: kind for kind, name in _NAMES.items()} | {"uint32": "i32", "uint64": "i64"}  # others widen
# How many registers there are → how many rows of C tiles have: the most for which sums, two vectors of B and
# one of A have registers, and fewer for what is left over
_HEIGHTS = {16: (6, 4, 2, 1), 32: (12, 8, 4, 2, 1)}
_VECTORS = 2
_GROUP = 256  # bytes that are read at once from each row of an operand
_AHEAD = 128  # bytes of a row that are fetched before they are transposed
_LANE = 16  # bytes within which every processor moves elements


@dataclass(frozen=True, slots=True)
class Tile:
    """How the registers of a processor hold a part of C: sums of type `kind` (float, double, i32, i64), in
    `vectors` vectors for each row.
    """

    kind: str
    lanes: int
    heights: tuple[int, ...]
    vectors: int
    has_fma: bool
    has_halves: bool

    @classmethod
    def of(
        cls, kind: str, register_bytes: int, registers: int, *, has_fma: bool, has_halves: bool = False
    ) -> Tile:
        """The tile for vectors of so many bytes."""
        heights = _HEIGHTS[registers]
        return cls(kind, register_bytes // _SIZES[kind], heights, _VECTORS, has_fma, has_halves)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return _SIZES[self.kind]

    @property
    def vector(self) -> str:
        """The type of a register."""
        return f"<{self.lanes} x {self.kind}>"

    @property
    def height(self) -> int:
        """Rows of C."""
        return self.heights[0]

    @property
    def width(self) -> int:
        """Columns of C."""
        return self.vectors * self.lanes

    def group(self, height: int) -> int:
        """Panels that are packed together."""
        return max(1, _GROUP // (height * self.size))

    def add(self, f: Function, a: str, b: str, type: str = "") -> str:
        """a + b."""
        return f(f"{'add' if self.kind[0] == 'i' else 'fadd'} {type or self.vector} {a}, {b}")

    def add_product(self, f: Function, a: str, b: str, c: str, type: str = "") -> str:
        """a * b + c, of vectors or of elements."""
        type = type or self.vector
        if self.kind[0] != "i" and self.has_fma:
            return f.fma(a, b, c, type)
        return self.add(f, f(f"{'mul' if self.kind[0] == 'i' else 'fmul'} {type} {a}, {b}"), c, type)

    def total(self, f: Function, vector: str) -> str:
        """The sum of a vector's elements."""
        return f.folded(
            self.kind, self.lanes, vector, lambda n, a, b: self.add(f, a, b, f"<{n} x {self.kind}>")
        )

    def stored(self, source: str) -> str:
        """The type of a stored element."""
        return "half" if source == "float16" and self.has_halves else _STORED.get(source, "i16")

    def read(self, f: Function, source: str, pointer: str, offset: str | int, lanes: int = 0) -> str:
        """Elements of a stored matrix, as numbers to compute with: one, or a vector."""
        stored = self.stored(source)
        small, wide = (f"<{lanes} x {kind}>" if lanes else kind for kind in (stored, self.kind))
        value = f.load(small, pointer, offset, stored)
        if stored == "half":
            return f(f"fpext {small} {value} to {wide}")
        return WIDEN[source](f, value, lanes) if source in WIDEN else value


def stretches(f: Function, tile: Tile, stop: str, whole: str | None = None) -> Iterator[tuple[str, int, str]]:
    """Places up to `stop`, with lanes and the type of what is there: vectors (up to `whole`), then elements,
    whose lanes are 0. The body of a `for` over them is written twice, into two loops.
    """
    whole = whole or f(f"and i64 {stop}, {-tile.lanes}")
    for start, end, lanes, type in (("0", whole, tile.lanes, tile.vector), (whole, stop, 0, tile.kind)):
        with f.loop(start, end, lanes or 1) as place:
            yield place, lanes, type


@contextmanager
def scratch(f: Function) -> Iterator[str]:
    """Memory that no other thread uses meanwhile."""
    taken = f.at("%fields", Field.TAKEN, "i64")
    f.go("claim")
    f.block("claim")
    before = f(f"load atomic i64, ptr {taken} monotonic, align 8")
    slot = f.intrinsic("cttz", "i64", f(f"xor i64 {before}, -1"))
    free = f(f"icmp slt i64 {slot}, {f.field('i64', Field.SLOTS)}")
    f.branch(free, "try", "busy")
    f.block("busy")
    f.do(RELAX)
    f.go("claim")
    f.block("try")
    bit = f(f"shl i64 1, {slot}")
    after = f(f"or i64 {before}, {bit}")
    pair = f(f"cmpxchg ptr {taken}, i64 {before}, i64 {after} acquire monotonic, align 8")
    f.branch(f(f"extractvalue {{ i64, i1 }} {pair}, 1"), "claimed", "busy")
    f.block("claimed")
    yield f.at(f.field("ptr", Field.SCRATCH), f.multiply(slot, f.field("i64", Field.ROOM)))
    f(f"atomicrmw and ptr {taken}, i64 {f(f'xor i64 {bit}, -1')} release, align 8")


@contextmanager
def panels(f: Function, tile: Tile, height: int, start: str | int = 0) -> Iterator[tuple[str, str, str]]:
    """What a function `load_a` or `load_b` fills, panel by panel: its first row, counted from %row on, how
    many rows there are, at most `height`, and where element (row, k) goes: to out[k * height + row].
    """
    with f.loop(start, "%rows", height) as row:
        rows = f.least(height, f(f"sub i64 %rows, {row}"))
        yield row, rows, f.at("%out", f.multiply(row, "%ks"), tile.kind)


@cache
def load_text(tile: Tile, name: str, height: int, source: str) -> str:
    """`load_a` or `load_b` for an operand in memory: rows of it, and `ks` of k, as panels of this height."""
    f = Function(name, LOAD)
    base, stored = (Field.A if name == "load_a" else Field.B), tile.stored(source)
    start, (batch, row, k) = f.field("ptr", base), (f.field("i64", base + at) for at in (1, 2, 3))
    place = f.add(f.multiply("%batch", batch), f.add(f.multiply("%row", row), f.multiply("%k", k)))
    origin = f.at(start, place, stored)
    rows_together = f(f"icmp eq i64 {row}, 1")
    done, helpers = "0", []
    for group in sorted({tile.group(height), 1}, reverse=True) if height > 1 else ():
        count = group * height
        helpers.append(_rows_text(tile, f"{name}_rows{group}", height, group, source))
        stop = f.multiply(f(f"sdiv i64 {f(f'select i1 {rows_together}, i64 %rows, i64 0')}, {count}"), count)
        with f.loop(done, stop, count) as at:
            here, out = f.at(origin, at, stored), f.at("%out", f.multiply(at, "%ks"), tile.kind)
            f.do(f"call void @{name}_rows{group}(ptr {here}, i64 {k}, i64 %ks, ptr {out})")
        done = stop
    with panels(f, tile, height, done) as (first, rows, out):
        here = f.at(origin, f.multiply(first, row), stored)
        _pack_panel(f, tile, name, height, source, here, rows, row, k, out)
    return "\n".join([*helpers, _square_text(tile, f"{name}_square", height, source), f.text()])


def _pack_panel(
    f: Function,
    tile: Tile,
    name: str,
    height: int,
    source: str,
    here: str,
    rows: str,
    row: str,
    k: str,
    out: str,
) -> None:
    """A panel of elements whose rows and k are so far apart; squares of those with k side by side are
    transposed by the function `{name}_square`.
    """
    stored, lanes = tile.stored(source), tile.lanes
    rows_together, k_together = (f(f"icmp eq i64 {step}, 1") for step in (row, k))
    squares = f(f"select i1 {k_together}, i64 {f(f'and i64 %ks, {-lanes}')}, i64 0")
    for at_row in reversed(range(0, height, lanes)):  # what a square stores beyond, earlier rows overwrite
        last = f.add(rows, -1 - at_row)
        line = f.at(here, f.multiply(row, at_row), stored)
        with f.loop(0, squares, lanes) as at:
            panel = f.at(out, f.add(f.multiply(at, height), at_row), tile.kind)
            where = f"ptr {f.at(line, at, stored)}, i64 {row}, i64 {last}, ptr {panel}"
            f.do(f"call void @{name}_square({where})")
    beside = f(f"select i1 {rows_together}, i64 {f(f'and i64 {rows}, {-lanes}')}, i64 0")
    with f.loop(squares, "%ks") as at:
        for each, width, type in stretches(f, tile, rows, beside):
            value = tile.read(f, source, here, f.add(f.multiply(at, k), f.multiply(each, row)), width)
            f.store(type, value, out, f.add(f.multiply(at, height), each), tile.kind)


@cache
def filled_text(tile: Tile, name: str, height: int, *, along_k: bool) -> str:
    """`load_a` or `load_b` for an operand that `fill_a` or `fill_b` computes, a panel at a time: row by row
    if `along_k`, which is then transposed, else as panels are.
    """
    f = Function(name, LOAD)
    source = _NAMES[tile.kind]
    transposes = along_k and height > 1
    filled = f.variable(tile.kind, count=height * MOST_DEPTH) if transposes else ""
    with panels(f, tile, height) as (first, rows, out):
        where = f"i64 %batch, i64 {f.add('%row', first)}, i64 %k, i64 {rows}, i64 %ks, ptr {filled or out}"
        f.do(f"call void @{name.replace('load', 'fill')}(ptr %fields, {where})")
        if transposes:
            _pack_panel(f, tile, name, height, source, filled, rows, "%ks", "1", out)
    helpers = [_square_text(tile, f"{name}_square", height, source)] if transposes else []
    return "\n".join([*helpers, f.text()])


def _rows_text(tile: Tile, name: str, height: int, group: int, source: str) -> str:
    """A group of whole panels of an operand whose rows lie side by side."""
    f = Function(name, [("ptr", "here"), ("i64", "k"), ("i64", "ks"), ("ptr", "out")])
    outs = [f.at("%out", f.multiply("%ks", at), tile.kind) for at in range(0, group * height, height)]
    with f.loop(0, "%ks") as at:
        line, place = f.at("%here", f.multiply(at, "%k"), tile.stored(source)), f.multiply(at, height)
        for ahead in range(0, _GROUP, 64) if group > 1 else ():
            f.prefetch(f.at(line, _GROUP + ahead), locality=2)
        for number, out in enumerate(outs):
            panel, start = f.at(out, place, tile.kind), 0
            while start < height:
                lanes = min(tile.lanes, 1 << (height - start).bit_length() - 1)
                value = tile.read(f, source, line, number * height + start, lanes)
                f.store(f"<{lanes} x {tile.kind}>", value, panel, start, tile.kind)
                start += lanes
    return f.text()


def _square_text(tile: Tile, name: str, height: int, source: str) -> str:
    """A square of an operand whose k lie side by side, transposed; for rows after `last` it is read again."""
    f = Function(name, [("ptr", "here"), ("i64", "row"), ("i64", "last"), ("ptr", "out")])
    places = [f.multiply(f.least("%last", at), "%row") for at in range(min(height, tile.lanes))]
    lines = [f.at("%here", each, tile.stored(source)) for each in places]
    for line in lines:
        f.prefetch(f.at(line, _AHEAD))
    square = [tile.read(f, source, line, 0, tile.lanes) for line in lines]
    for at, column in enumerate(transposed(f, tile, square) if height > 1 else square):
        f.store(tile.vector, column, "%out", at * height, tile.kind)
    return f.text()


def transposed(f: Function, tile: Tile, rows: list[str]) -> list[str]:
    """The columns of a square of a tile's vectors; missing rows are of any value."""
    return columns_of(f, tile.vector, tile.lanes, tile.size, rows)


def columns_of(f: Function, type: str, count: int, size: int, rows: list[str]) -> list[str]:
    """The columns of a square of vectors with `count` elements of so many bytes. Elements first move within
    16 bytes.
    """
    inside = _LANE // size
    square = rows + ["poison"] * (count - len(rows))
    order = list(range(count))  # which column is where
    step = 1
    while step < count:
        interleaves = step == 1 and inside == 4  # in one instruction, and columns 1 and 2 change places
        low = [at - step + count if at & step else at for at in range(count)]
        if interleaves:
            low = [place for at in range(0, count, 4) for place in (at, at + count, at + 1, at + 1 + count)]
            order = [at & ~3 | (0, 2, 1, 3)[at & 3] for at in order]
        high = [at + (2 if interleaves else step) for at in low]
        for at in range(count):
            if not at & step:
                pair = square[at], square[at + step]
                square[at], square[at + step] = (
                    f.shuffle(type, pair[0], each, pair[1]) for each in (low, high)
                )
        step *= 2
    return [square[at] for at in order]


@cache
def store_text(tile: Tile) -> str:
    """`finish` that stores a block as it is; columns of C lie side by side."""
    f = Function("finish", STORE)
    start, batch, row = f.field("ptr", Field.C), f.field("i64", Field.C + 1), f.field("i64", Field.C + 2)
    place = f.add(f.multiply("%batch", batch), f.add(f.multiply("%row", row), "%column"))
    target, kind = f.at(start, place, tile.kind), tile.kind
    with f.loop(0, "%rows") as at:
        line, out = f.at("%tile", f.multiply(at, "%stride"), kind), f.at(target, f.multiply(at, row), kind)
        for column, _, type in stretches(f, tile, "%columns"):
            f.store(type, f.load(type, line, column, kind), out, column, kind)
    return f.text()
