"""Products of few rows with a matrix of float16 or bfloat16, as it is stored, in LLVM's text.

In: a dtype's name. Out: the text of a module. Weights are widened in registers and summed in float32, LANES
at a time; what is left of a row comes last, one by one. The invariant: how a row is summed depends on its
length alone.
"""

from __future__ import annotations

from collections.abc import Callable

from .formats import half_to_float
from .jobs import FIRST_FIELD, share_text
from .text import FLOATS, LANES, Function

__all__ = ["dense_module"]

# Arguments, after those of every job: weights (rows, columns) and x (x_rows, columns); out's rows are `step`
# floats apart.
WEIGHTS, COLUMNS, X, OUT, STEP, ROWS = range(FIRST_FIELD, FIRST_FIELD + 6)
_TOGETHER = {1: 4, 4: 1}  # rows of x at a time → rows of weights


def _bfloat16(f: Function, bits: str, lanes: int) -> str:
    small, wide, real = (f"<{lanes} x {kind}>" if lanes else kind for kind in ("i16", "i32", "float"))
    shift = "splat (i32 16)" if lanes else "16"
    moved = f(f"shl {wide} {f(f'zext {small} {bits} to {wide}')}, {shift}")
    return f(f"bitcast {wide} {moved} to {real}")


_WIDEN: dict[str, Callable[[Function, str, int], str]] = {"float16": half_to_float, "bfloat16": _bfloat16}


def _rows(f: Function, name: str, row: str, count: int, x_rows: int) -> None:
    """The products of `count` rows of weights from `row` on."""
    weights, x, out = (f.field("ptr", each) for each in (WEIGHTS, X, OUT))
    columns, step = f.field("i64", COLUMNS), f.field("i64", STEP)
    lines = [f.at(weights, f.multiply(f.add(row, at), columns), "i16") for at in range(count)]
    x_lines = [f.at(x, f.multiply(columns, at), "float") if at else x for at in range(x_rows)]
    pairs = [(at, x_at) for at in range(count) for x_at in range(x_rows)]
    totals = {pair: f.variable(FLOATS, "zeroinitializer") for pair in pairs}
    rests = {pair: f.variable("float", "0.0") for pair in pairs}
    whole = f(f"and i64 {columns}, {-LANES}")

    def add(start: str | int, stop: str, lanes: int, sums: dict[tuple[int, int], str]) -> None:
        small, real = (f"<{lanes} x i16>", FLOATS) if lanes else ("i16", "float")
        with f.loop(start, stop, lanes or 1) as place:
            for at in range(count):
                wide = _WIDEN[name](f, f.load(small, lines[at], place, "i16", align=2), lanes)
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
        f.store("float", total, out, f.add(f.add(row, at), f.multiply(step, x_at) if x_at else 0), "float")


def dense_module(name: str, x_rows: int) -> str:
    """The product of (x_rows, columns) floats with rows of weights."""
    work = Function("work", [("ptr noalias", "fields"), ("i64", "first"), ("i64", "last")])
    count = _TOGETHER[x_rows]
    start, end = work.multiply("%first", count), work.multiply("%last", count)
    stop = work(f"call i64 @llvm.smin.i64(i64 {end}, i64 {work.field('i64', ROWS)})")
    groups = work(f"sdiv i64 {work(f'sub i64 {stop}, {start}')}, {count}")
    whole = work.add(start, work.multiply(groups, count))
    with work.loop(start, whole, count) as row:
        _rows(work, name, row, count, x_rows)
    if count > 1:
        with work.loop(whole, stop) as row:
            _rows(work, name, row, 1, x_rows)
    f = Function("run", [("ptr", "fields")], "i64")
    units = f(f"sdiv i64 {f.add(f.field('i64', ROWS), count - 1)}, {count}")
    cost = f.multiply(f.field("i64", COLUMNS), count * x_rows)
    f.do(f"call void @share(ptr %fields, ptr @work, i64 {units}, i64 {cost})")
    return f.module(share_text(), work.text())
