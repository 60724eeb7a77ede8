"""Attention in LLVM's text: what its two forms share, fields, holes, how rows are read and transposed.

In: a `Tile`, and the texts of functions, the holes: `load_q`, `load_k`, `load_v` and `load_m` give rows of
queries, keys, values and the mask, `numbers` the scale and the number of keys, `finish` takes rows of the
result. Out: the text of `kernel(fields, begin, end)`. A unit of work is a part of a line: the rows of the
heads that share keys, or of one head. `attention_blocks.py` is the form for many rows, `attention_rows.py`
that for few. The invariant: a row is summed over keys in one order, however many threads there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

from ..jobs import kernel_function
from ..text import Function
from .exponentials import INTEGER, written
from .operands import Field, Tile, scratch, stretches, transposed

__all__ = [
    "FINISH",
    "LOAD",
    "NUMBERS",
    "At",
    "Division",
    "Reads",
    "Regions",
    "Unit",
    "heads_of",
    "kernel_text",
    "larger",
    "rows_text",
    "seen",
    "square_text",
    "transpose",
]


class At(IntEnum):
    """Arguments of attention; those before, for scratch memory, are those of a product."""

    QUERIES = Field.TAKEN + 1
    KEYS = QUERIES + 1
    COLUMNS = KEYS + 1  # of queries and keys
    VALUES = COLUMNS + 1  # columns of values
    HEADS = VALUES + 1
    GROUP = HEADS + 1  # heads that share keys
    FOLD = GROUP + 1  # heads of a line
    PARTS = FOLD + 1  # of a line
    ROWS = PARTS + 1  # of a part; its number for few rows: of keys
    SHIFT = ROWS + 1  # query i sees keys before i + SHIFT, from the last of these that are WINDOW back;
    LATE = SHIFT + 1  # times it, how many more keys than queries there are, is added
    WINDOW = LATE + 1
    # An operand's address, and how many elements its batches, heads, rows and columns are apart
    Q = WINDOW + 1
    K = Q + 5
    V = K + 5
    END = V + 5


ALL = 1 << 40  # SHIFT where every key is seen
_PLACE = [("ptr", "fields"), *(("i64", each) for each in ("batch", "head", "row"))]
LOAD = [*_PLACE, *(("i64", each) for each in ("column", "rows", "columns")), ("ptr", "out"), ("i64", "pitch")]
NUMBERS = [("ptr", "fields"), ("ptr", "out"), ("ptr", "count")]
FINISH = [*_PLACE, ("i64", "rows"), ("ptr", "tile"), ("i64", "stride")]


class Reads(NamedTuple):
    """What a form reads: the types of keys and values that it reads where they lie, side by side, or "" where
    `load_k` and `load_v` bring them; and whether there is a mask.
    """

    keys: str
    values: str
    masked: bool


class Division(NamedTuple):
    """How attention is divided: units of work, their cost in multiplications, fields, and bytes of scratch
    memory for all threads. Counters, which are 0 before a run, follow the fields.
    """

    units: int
    cost: int
    fields: dict[int, int]
    scratch: int
    counters: int = 0


Shape = tuple[int, int, int, int, int, int, int]  # batches, heads, key heads, queries, keys, columns, values


def fields_of_shape(shape: Shape, fold: int, parts: int, rows: int, room: int, slots: int) -> dict[int, int]:
    """The fields of both forms: `fold` heads are rows of one, which go in `parts` of so many `rows`, with
    `room` bytes for each of so many threads at a time.
    """
    _, heads, key_heads, queries, keys, columns, values = shape
    return {
        Field.ROOM: room,
        Field.SLOTS: slots,
        At.QUERIES: queries,
        At.KEYS: keys,
        At.COLUMNS: columns,
        At.VALUES: values,
        At.HEADS: heads,
        At.GROUP: heads // key_heads,
        At.FOLD: fold,
        At.PARTS: parts,
        At.ROWS: rows,
    }


# Scores


def seen(f: Function, tile: Tile, score: str, key: str, low: str, high: str) -> str:
    """Scores of keys from `low` up to `high`, all of them vectors; -inf in place of others."""
    integer = f"<{tile.lanes} x {INTEGER[tile.kind]}>"
    after, before = f(f"icmp sge {integer} {key}, {low}"), f(f"icmp slt {integer} {key}, {high}")
    both = f(f"and <{tile.lanes} x i1> {after}, {before}")
    hidden = f"splat ({tile.kind} {written(tile.kind, -math.inf)})"
    return f(f"select <{tile.lanes} x i1> {both}, {tile.vector} {score}, {tile.vector} {hidden}")


def larger(f: Function, vector: str, a: str, b: str) -> str:
    """The larger of two numbers, b where one is NaN."""
    more = f(f"fcmp ogt {vector} {a}, {b}")
    test = f"{vector[: vector.index(' x ')]} x i1>" if vector[0] == "<" else "i1"
    return f(f"select {test} {more}, {vector} {a}, {vector} {b}")


# Rows


def rows_text(tile: Tile, name: str, base: int, source: str) -> str:
    """A function `load_…` of an operand in memory."""
    f = Function(name, LOAD)
    stored = tile.stored(source)
    steps = [f.field("i64", base + at) for at in range(1, 5)]
    places = [
        f.multiply(f"%{each}", step)
        for each, step in zip(("batch", "head", "row", "column"), steps, strict=True)
    ]
    start = f.field("ptr", base)
    for each in places:
        start = f.at(start, each, stored)
    beside = f(f"icmp eq i64 {steps[3]}, 1")
    whole = f(f"select i1 {beside}, i64 {f(f'and i64 %columns, {-tile.lanes}')}, i64 0")
    with f.loop(0, "%rows") as row:
        line, out = (
            f.at(start, f.multiply(row, steps[2]), stored),
            f.at("%out", f.multiply(row, "%pitch"), tile.kind),
        )
        for column, lanes, type in stretches(f, tile, "%columns", whole):
            value = tile.read(f, source, line, f.multiply(column, steps[3]), lanes)
            f.store(type, value, out, column, tile.kind)
    return f.text()


@contextmanager
def heads_of(f: Function, row: str | int, rows: str, queries: str) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a line, head by head: a head, its first query among them, how many there are, and their place
    behind `row`.
    """
    end = f.add(rows, row)
    first, last = f(f"sdiv i64 {row}, {queries}"), f(f"sdiv i64 {f.add(end, -1)}, {queries}")
    with f.loop(first, f.add(last, 1)) as head:
        begin = f.multiply(head, queries)
        start = f.most(begin, row)
        stop = f.least(f.add(begin, queries), end)
        count = f(f"sub i64 {stop}, {start}")
        yield head, f(f"sub i64 {start}, {begin}"), count, f(f"sub i64 {start}, {row}")


def square_text(tile: Tile) -> str:
    """`square`: as many rows as a vector has lanes become columns."""
    f = Function("square", [("ptr", "here"), ("i64", "pitch"), ("ptr", "out"), ("i64", "stride")])
    places = [f.multiply("%pitch", at) for at in range(tile.lanes)]
    rows = [f.load(tile.vector, "%here", at, tile.kind, align=tile.size) for at in places]
    for at, column in enumerate(transposed(f, tile, rows)):
        f.store(tile.vector, column, "%out", f.multiply("%stride", at), tile.kind)
    return f.text()


def transpose(
    f: Function,
    tile: Tile,
    source: tuple[str, str | int],
    target: tuple[str, str | int],
    rows: str | int,
    columns: str,
) -> None:
    """Rows become columns, by whole squares; both are given with how far rows are apart."""
    (here, pitch), (out, stride) = source, target
    with f.loop(0, rows, tile.lanes) as row, f.loop(0, columns, tile.lanes) as column:
        first = f.at(here, f.add(f.multiply(row, pitch), column), tile.kind)
        place = f.at(out, f.add(f.multiply(column, stride), row), tile.kind)
        f.do(f"call void @square(ptr {first}, i64 {pitch}, ptr {place}, i64 {stride})")


class Regions:
    """Scratch memory of a thread: names of regions, and for each the sizes whose product is its length."""

    def __init__(self, regions: Mapping[str, tuple[str | int, ...]]) -> None:
        self._regions = regions

    def places(self, f: Function, tile: Tile, start: str, sizes: Mapping[str, str]) -> dict[str, str]:
        """The addresses, in text."""
        found = {}
        for name, factors in self._regions.items():
            found[name] = start
            start = f.at(start, _length(f, factors, sizes), tile.kind)
        return found

    def length(self, f: Function, sizes: Mapping[str, str]) -> str:
        """How many elements there are, in text."""
        total = "0"
        for factors in self._regions.values():
            total = f.add(_length(f, factors, sizes), total)
        return total

    def size(self, sizes: Mapping[str, int]) -> int:
        """How many elements there are."""
        total = 0
        for factors in self._regions.values():
            length = math.prod([sizes[each] if isinstance(each, str) else each for each in factors])
            total += -(-length // _LINE) * _LINE
        return total


_LINE = 16  # elements: a region begins with a line of the cache


def _length(f: Function, factors: tuple[str | int, ...], sizes: Mapping[str, str]) -> str:
    """The length of a region, in text."""
    length = "1"
    for each in factors:
        length = f.multiply(sizes[each] if isinstance(each, str) else each, length)
    return f(f"and i64 {f.add(length, _LINE - 1)}, {-_LINE}")


# The kernel


class Unit:
    """The function `unit` while it is written: a part of a line, given the scale, the keys that there are,
    SHIFT as it is now, and scratch memory.
    """

    def __init__(self, tile: Tile, reads: Reads) -> None:
        self.tile, self.reads = tile, reads
        numbers = [("ptr", "fields"), *(("i64", each) for each in ("line", "batch", "head", "part"))]
        more = [(tile.kind, "scale"), ("i64", "count"), ("i64", "shift"), ("ptr", "scratch")]
        self.f = f = Function("unit", [*numbers, *more])
        self.size = {each: f.field("i64", each) for each in At if each < At.Q}
        self.columns, self.values = self.size[At.COLUMNS], self.size[At.VALUES]
        self.wide_columns, self.wide_values = (  # up to whole vectors
            f(f"and i64 {f.add(each, tile.lanes - 1)}, {-tile.lanes}") for each in (self.columns, self.values)
        )
        self.head = f(f"sdiv i64 %head, {self.size[At.GROUP]}")  # of keys

    def limits(self, query: str) -> tuple[str, str]:
        """Where the keys begin and end that a query sees."""
        f = self.f
        end = f.add(query, "%shift")
        start = f(f"sub i64 {end}, {self.size[At.WINDOW]}")
        low, high = (f.least(f.most(each, 0), "%count") for each in (start, end))
        return low, high

    def _load(self, letter: str, head: str, rows: tuple[str, str], columns: tuple[str | int, str]) -> str:
        """The beginning of a call: rows and columns, each from the first on so many."""
        where = f"i64 %batch, i64 {head}, i64 {rows[0]}, i64 {columns[0]}, i64 {rows[1]}, i64 {columns[1]}"
        return f"call void @load_{letter}(ptr %fields, {where}"

    def load_queries(self, first: str | int, rows: str, lines: str) -> None:
        """Rows of queries, as far apart as whole vectors are."""
        f, wide = self.f, self.wide_columns
        with heads_of(f, first, rows, self.size[At.QUERIES]) as (head, query, count, row):
            out = f.at(lines, f.multiply(row, wide), self.tile.kind)
            call = self._load("q", f.add("%head", head), (query, count), (0, self.columns))
            f.do(f"{call}, ptr {out}, i64 {wide})")

    def load_mask(self, first: str | int, rows: str, keys: tuple[str, str], out: str, pitch: int) -> None:
        """What the mask adds to the scores of some rows, for keys from the first on so many."""
        f = self.f
        with heads_of(f, first, rows, self.size[At.QUERIES]) as (head, query, count, row):
            place = f.at(out, f.multiply(row, pitch), self.tile.kind)
            call = self._load("m", f.add("%head", head), (query, count), keys)
            f.do(f"{call}, ptr {place}, i64 {pitch})")

    def operand(
        self, letter: str, key: str, count: str, place: str, columns: str, pitch: str
    ) -> tuple[str, str]:
        """The address of some keys, or of their values, and how far these are apart: where they lie, or where
        they were brought to.
        """
        f, tile = self.f, self.tile
        base, source = (At.K, self.reads.keys) if letter == "k" else (At.V, self.reads.values)
        if not source:
            call = self._load(letter, self.head, (key, count), (0, columns))
            f.do(f"{call}, ptr {place}, i64 {pitch})")
            return place, pitch
        start, stored = f.field("ptr", base), tile.stored(source)
        for at, each in ((1, "%batch"), (2, self.head), (3, key)):
            start = f.at(start, f.multiply(each, f.field("i64", base + at)), stored)
        return start, f.field("i64", base + 3)

    def finish(self, first: str | int, rows: str, lines: str) -> None:
        """Rows of the result to where they belong."""
        f, wide = self.f, self.wide_values
        with heads_of(f, first, rows, self.size[At.QUERIES]) as (head, query, count, row):
            place = f.at(lines, f.multiply(row, wide), self.tile.kind)
            where = f"i64 %batch, i64 {f.add('%head', head)}, i64 {query}, i64 {count}"
            f.do(f"call void @finish(ptr %fields, {where}, ptr {place}, i64 {wide})")


def kernel_text(tile: Tile) -> str:
    """`kernel`, which calls `unit`."""
    f = kernel_function()
    factor, number = f.variable(tile.kind), f.variable("i32")
    f.do(f"call void @numbers(ptr %fields, ptr {factor}, ptr {number})")
    given = f(f"sext i32 {f.load('i32', number, align=4)} to i64")
    count = f.least(f.most(given, 0), f.field("i64", At.KEYS))
    later = f.multiply(f(f"sub i64 {count}, {f.field('i64', At.QUERIES)}"), f.field("i64", At.LATE))
    shift = f.add(f.field("i64", At.SHIFT), later)
    scale = f.load(tile.kind, factor, align=tile.size)
    parts, fold, heads = (f.field("i64", each) for each in (At.PARTS, At.FOLD, At.HEADS))
    with scratch(f) as place, f.loop("%begin", "%end") as unit:
        line, part = f(f"sdiv i64 {unit}, {parts}"), f(f"srem i64 {unit}, {parts}")
        first = f.multiply(line, fold)
        batch, head = f(f"sdiv i64 {first}, {heads}"), f(f"srem i64 {first}, {heads}")
        where = f"i64 {line}, i64 {batch}, i64 {head}, i64 {part}"
        what = f"{tile.kind} {scale}, i64 {count}, i64 {shift}, ptr {place}"
        f.do(f"call void @unit(ptr %fields, {where}, {what})")
    return f.text(private=False)
