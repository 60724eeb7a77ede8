"""Attention in LLVM's text: what its two forms share, fields, exponentials, how rows are read and transposed.

In: a `Tile`, and the texts of functions, the holes: `load_q`, `load_k`, `load_v` and `load_m` give rows of
queries, keys, values and the mask, `numbers` the scale and the number of keys, `finish` takes rows of the
result. Out: the text of `kernel(fields, begin, end)`. A unit of work is a part of a line: the rows of the heads
that share keys, or of one head. `attention_blocks.py` is the form for many rows, `attention_rows.py` that
for few. The invariant: a row is summed over keys in one order, however many threads there are.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

from .operands import Field, Tile, least, scratch, stretches, transposed
from .text import LANES, Function

__all__ = [
    "FINISH",
    "LOAD",
    "NUMBERS",
    "UNIT",
    "At",
    "Division",
    "Reads",
    "Regions",
    "exponentials",
    "heads_of",
    "kernel_text",
    "lowest",
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


# Numbers


def exponentials(f: Function, x: str, kind: str = "float", lanes: int = LANES) -> str:
    """exp of numbers that are at most 0; 0 where it is less than normal numbers are, NaN of NaN."""
    vector, integer = f"<{lanes} x {kind}>", f"<{lanes} x {_INTEGER[kind]}>"
    made = _EXP[kind]

    def all_of(number: float) -> str:
        return f"splat ({kind} {written(kind, number)})"

    rounding = all_of(made.rounding)
    shifted = f.fma(x, all_of(1 / math.log(2)), rounding, vector)
    whole = f(f"fsub {vector} {shifted}, {rounding}")
    rest = f.fma(whole, all_of(-made.ln2[1]), f.fma(whole, all_of(-made.ln2[0]), x, vector), vector)
    polynomial = all_of(made.powers[0])
    for each in made.powers[1:]:
        polynomial = f.fma(polynomial, rest, all_of(each), vector)
    square = f(f"fmul {vector} {rest}, {rest}")
    fraction = f(f"fadd {vector} {f.fma(square, polynomial, rest, vector)}, {all_of(1.0)}")
    number = f(f"bitcast {vector} {shifted} to {integer}")  # its lower bits are the exponent
    biased = f(f"add {integer} {number}, splat ({_INTEGER[kind]} {made.bias})")
    bits = f(f"shl {integer} {biased}, splat ({_INTEGER[kind]} {made.shift})")
    result = f(f"fmul {vector} {fraction}, {f(f'bitcast {integer} {bits} to {vector}')}")
    small = f(f"fcmp olt {vector} {x}, {all_of(made.least)}")
    return f(f"select <{lanes} x i1> {small}, {vector} zeroinitializer, {vector} {result}")


class _Exp(NamedTuple):
    """exp(n ln 2 + r) = 2**n (1 + r + r² polynomial(r)): the polynomial with its highest power first, ln 2 in
    two parts, what is added so that n lies in the lower bits, and of the format the bias and where the
    exponent is; below `least` exp is less than any normal number.
    """

    powers: tuple[float, ...]
    ln2: tuple[float, float]
    rounding: float
    bias: int
    shift: int
    least: float


_EXP = {
    "float": _Exp(
        (
            *(float.fromhex("0x1.a0d2cep-13"), float.fromhex("0x1.6e879cp-10"), float.fromhex("0x1.111210p-7")),
            *(float.fromhex("0x1.555382p-5"), float.fromhex("0x1.555554p-3"), 0.5),
        ),
        (0.693359375, math.log(2) - 0.693359375),
        1.5 * 2.0**23,
        127,
        23,
        -87.336,
    ),
    "double": _Exp(
        tuple(1 / math.factorial(power) for power in range(13, 1, -1)),
        (float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")),
        1.5 * 2.0**52,
        1023,
        52,
        -708.39,
    ),
}
_INTEGER = {"float": "i32", "double": "i64"}
_LOWEST = {"float": -(2.0**128 - 2.0**104), "double": -sys.float_info.max}


def written(kind: str, number: float) -> str:
    """A number as LLVM has it: rounded, by the bits of a double."""
    if kind == "float":
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def lowest(kind: str) -> str:
    """The least finite number: of scores of which none is seen, the maximum."""
    return written(kind, _LOWEST[kind])


def seen(f: Function, tile: Tile, score: str, key: str, low: str, high: str) -> str:
    """Scores of keys from `low` up to `high`, all of them vectors; -inf in place of others."""
    integer = f"<{tile.lanes} x {_INTEGER[tile.kind]}>"
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
    places = [f.multiply(f"%{each}", step) for each, step in zip(("batch", "head", "row", "column"), steps, strict=True)]
    start = f.field("ptr", base)
    for each in places:
        start = f.at(start, each, stored)
    beside = f(f"icmp eq i64 {steps[3]}, 1")
    whole = f(f"select i1 {beside}, i64 {f(f'and i64 %columns, {-tile.lanes}')}, i64 0")
    with f.loop(0, "%rows") as row:
        line, out = f.at(start, f.multiply(row, steps[2]), stored), f.at("%out", f.multiply(row, "%pitch"), tile.kind)
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
        start = most(f, begin, row)
        stop = least(f, f.add(begin, queries), end)
        count = f(f"sub i64 {stop}, {start}")
        yield head, f(f"sub i64 {start}, {begin}"), count, f(f"sub i64 {start}, {row}")


def most(f: Function, a: str | int, b: str | int) -> str:
    """The larger of two i64."""
    return f(f"call i64 @llvm.smax.i64(i64 {a}, i64 {b})")


def square_text(tile: Tile) -> str:
    """`square`: as many rows as a vector has lanes become columns."""
    f = Function("square", [("ptr", "here"), ("i64", "pitch"), ("ptr", "out"), ("i64", "stride")])
    rows = []
    for at in range(tile.lanes):
        rows.append(f.load(tile.vector, "%here", f.multiply("%pitch", at), tile.kind, align=tile.size))
    for at, column in enumerate(transposed(f, tile, rows)):
        f.store(tile.vector, column, "%out", f.multiply("%stride", at), tile.kind)
    return f.text()


def transpose(
    f: Function, tile: Tile, here: str, pitch: str | int, out: str, stride: str | int, rows: str | int, columns: str
) -> None:
    """Rows become columns, by whole squares."""
    with f.loop(0, rows, tile.lanes) as row, f.loop(0, columns, tile.lanes) as column:
        source = f.at(here, f.add(f.multiply(row, pitch), column), tile.kind)
        target = f.at(out, f.add(f.multiply(column, stride), row), tile.kind)
        f.do(f"call void @square(ptr {source}, i64 {pitch}, ptr {target}, i64 {stride})")


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

UNIT = [("ptr", "fields"), *(("i64", each) for each in ("line", "batch", "head", "part"))]


def unit_parameters(tile: Tile) -> list[tuple[str, str]]:
    """Of the function `unit` of a form: a part of a line, the scale, keys that there are, SHIFT as it is now,
    and scratch memory.
    """
    return [*UNIT, (tile.kind, "scale"), ("i64", "count"), ("i64", "shift"), ("ptr", "scratch")]


def kernel_text(tile: Tile) -> str:
    """`kernel`, which calls `unit`."""
    f = Function("kernel", [("ptr", "fields"), ("i64", "begin"), ("i64", "end")])
    factor, number = f.variable(tile.kind), f.variable("i32")
    f.do(f"call void @numbers(ptr %fields, ptr {factor}, ptr {number})")
    given = f(f"sext i32 {f.load('i32', number, align=4)} to i64")
    count = least(f, most(f, given, 0), f.field("i64", At.KEYS))
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
