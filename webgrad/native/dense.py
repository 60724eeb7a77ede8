"""Products of few rows with a matrix of float16 or bfloat16, as it is stored, in LLVM's text.

In: a dtype's name. Out: the text of a module. Weights are widened in registers and summed in float32, LANES
at a time; what is left of a row comes last, one by one. The invariant: how a row is summed depends on its
length alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .formats import bfloat_to_float, half_to_float
from .jobs import FIRST_FIELD, share_text
from .text import FLOATS, LANES, Function

__all__ = ["MOST_TOGETHER", "dense_module", "tiles", "widen_module"]

# Arguments, after those of every job: weights (rows, columns) and x (x_rows, columns); out's rows are `step`
# floats apart.
WEIGHTS, COLUMNS, X, X_ROWS, OUT, STEP, ROWS = range(FIRST_FIELD, FIRST_FIELD + 7)
MOST_TOGETHER = 3  # rows of x
_TOGETHER = {1: 4, 2: 3, 3: 2}  # rows of x at a time → rows of weights, by measuring: sums stay in registers


def _bfloat16(f: Function, bits: str, lanes: int, *, converts: bool) -> str:
    return bfloat_to_float(f, bits, lanes)


_WIDEN: dict[str, Callable[..., str]] = {"float16": half_to_float, "bfloat16": _bfloat16}


def _rows(f: Function, name: str, converts: bool, row: str, count: int, x_row: str, x_rows: int) -> None:
    """The products of `count` rows of weights from `row` on with `x_rows` of x from `x_row` on."""
    weights, x, out = (f.field("ptr", each) for each in (WEIGHTS, X, OUT))
    columns, step = f.field("i64", COLUMNS), f.field("i64", STEP)
    lines = [f.at(weights, f.multiply(f.add(row, at), columns), "i16") for at in range(count)]
    x_lines = [f.at(x, f.multiply(columns, f.add(x_row, at)), "float") for at in range(x_rows)]
    out_lines = [f.at(out, f.multiply(step, f.add(x_row, at)), "float") for at in range(x_rows)]
    pairs = [(at, x_at) for at in range(count) for x_at in range(x_rows)]
    totals = {pair: f.variable(FLOATS, "zeroinitializer") for pair in pairs}
    rests = {pair: f.variable("float", "0.0") for pair in pairs}
    whole = f(f"and i64 {columns}, {-LANES}")

    def add(start: str | int, stop: str, lanes: int, sums: dict[tuple[int, int], str]) -> None:
        small, real = (f"<{lanes} x i16>", FLOATS) if lanes else ("i16", "float")
        with f.loop(start, stop, lanes or 1) as place:
            for at in range(count):
                bits = f.load(small, lines[at], place, "i16", align=2)
                wide = _WIDEN[name](f, bits, lanes, converts=converts)
                for x_at in range(x_rows):
                    there = f.load(real, x_lines[x_at], place, "float", align=4)
                    sum_at = sums[at, x_at]
                    f.store(real, f.fma(wide, there, f.load(real, sum_at), real), sum_at)

    add(0, whole, LANES, totals)
    add(whole, columns, 0, rests)
    for at, x_at in pairs:
        total = f(
            f"fadd float {f.total(f.load(FLOATS, totals[at, x_at]))}, {f.load('float', rests[at, x_at])}"
        )
        f.store("float", total, out_lines[x_at], f.add(row, at), "float")


def tiles(f: Function, count: str, largest: int) -> Iterator[tuple[str, int]]:
    """Loops over rows, `largest` of them at a time and then fewer: (the first row, how many)."""
    start = "0"
    for size in range(largest, 0, -1):
        number = f(f"sdiv i64 {f(f'sub i64 {count}, {start}')}, {size}")
        stop = f.add(start, f.multiply(number, size))
        with f.loop(start, stop, size) as row:
            yield row, size
        start = stop


def dense_module(name: str, x_rows: int, converts: bool) -> str:
    """The product of floats, so many rows of them at a time, with rows of weights."""
    work = Function("work", [("ptr noalias", "fields"), ("i64", "first"), ("i64", "last")])
    count = _TOGETHER[x_rows]
    start, end = work.multiply("%first", count), work.multiply("%last", count)
    stop = work(f"call i64 @llvm.smin.i64(i64 {end}, i64 {work.field('i64', ROWS)})")
    groups = work(f"sdiv i64 {work(f'sub i64 {stop}, {start}')}, {count}")
    whole = work.add(start, work.multiply(groups, count))
    given = work.field("i64", X_ROWS)

    def rows(row: str, number: int) -> None:
        """All rows of x, while these rows of weights are in the cache."""
        for x_row, size in tiles(work, given, x_rows):
            _rows(work, name, converts, row, number, x_row, size)

    with work.loop(start, whole, count) as row:
        rows(row, count)
    if count > 1:
        with work.loop(whole, stop) as row:
            rows(row, 1)
    f = Function("run", [("ptr", "fields")], "i64")
    units = f(f"sdiv i64 {f.add(f.field('i64', ROWS), count - 1)}, {count}")
    cost = f.multiply(f.multiply(f.field("i64", COLUMNS), f.field("i64", X_ROWS)), count)
    f.do(f"call void @share(ptr %fields, ptr @work, i64 {units}, i64 {cost})")
    return f.module(share_text(), work.text())


def widen_module(name: str, converts: bool) -> str:
    """COLUMNS weights as float32, at X."""
    f = Function("run", [("ptr", "fields")], "i64")
    weights, out, count = f.field("ptr", WEIGHTS), f.field("ptr", X), f.field("i64", COLUMNS)
    whole = f(f"and i64 {count}, {-LANES}")
    for start, stop, lanes in ((0, whole, LANES), (whole, count, 0)):
        small, real = (f"<{lanes} x i16>", FLOATS) if lanes else ("i16", "float")
        with f.loop(start, stop, lanes or 1) as place:
            bits = f.load(small, weights, place, "i16", align=2)
            f.store(real, _WIDEN[name](f, bits, lanes, converts=converts), out, place, "float")
    return f.module()
