"""Which kernel computes a map: unary, binary with broadcasting of rows and scalars, and fill.

In: profile, op, dtype and sizes. Out: one `Launch`. Invariant: a Program depends on op, dtype and kind of
device alone. On software adapters eight threads walk long chunks; on GPUs each thread takes four elements.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

from webgrad.errors import DTypeError, LaunchError
from webgrad.kernels.launch import (
    FLOATS,
    INTEGERS,
    SIGNED,
    Launch,
    ceil_div,
    check_dtype,
    float_defines,
    grid_for,
    has_workgroups,
    pack,
)
from webgrad.runtime.profile import DeviceProfile
from webgrad.wgsl import Program, load_template

__all__ = ["BINARY_OPS", "BROADCAST_OPS", "UNARY_OPS", "Broadcast", "binary", "fill", "unary"]

Broadcast = Literal["none", "row", "scalar"]

CHUNK = 2048  # groups of four to a workgroup of eight: enough to hide the start of a workgroup
_LANES = 8
_NUMBERS = FLOATS | INTEGERS

# Each op and the data types it is offered for.
UNARY_OPS: dict[str, frozenset[str]] = {
    "relu": FLOATS | SIGNED,
    "neg": FLOATS | SIGNED,
    "abs": FLOATS | SIGNED,
    "gelu": FLOATS,
    "gelu_tanh": FLOATS,
    "sigmoid": FLOATS,
    "tanh": FLOATS,
    "silu": FLOATS,
    "scale": FLOATS,
    "exp": FLOATS,
    "log": FLOATS,
    "sqrt": FLOATS,
}
BINARY_OPS: dict[str, frozenset[str]] = {
    "add": _NUMBERS,
    "sub": _NUMBERS,
    "mul": _NUMBERS,
    "maximum": _NUMBERS,
    "minimum": _NUMBERS,
    "div": FLOATS,
    "silu_mul": FLOATS,
}
# Ops that take a repeated row or scalar as second input.
BROADCAST_OPS: dict[str, frozenset[str]] = {
    "add": FLOATS | {"i32", "u32"},
    "sub": FLOATS | {"i32", "u32"},
    "mul": FLOATS | {"i32", "u32"},
    "div": FLOATS,
}
_IN_PLACE = FLOATS | {"i32", "u32"}  # of binary ops; integers of 8 and 16 bits are too rare
_SCALARS = {"scale": 1}  # run-time scalars of a unary op
# The same ops on bool's bytes 0 and 1: minimum is and, maximum is or.
_BOOL_AS_U8 = frozenset({"maximum", "minimum", "mul"})


def unary(profile: DeviceProfile, op: str, dtype: str, n: int, *scalars: float) -> Launch:
    """y = op(x) over n elements; buffers (x, y). Only scale takes a scalar."""
    launch = _unary(profile, op, dtype, n)
    expected = _SCALARS.get(op, 0)
    if len(scalars) != expected:
        raise LaunchError(f"{op} takes {expected} run-time scalars, {len(scalars)} given")
    if not scalars:
        return launch
    groups = ceil_div(n, 4)
    params = pack(launch.program, groups=groups, chunk=CHUNK, grid_x=launch.grid[0], scalar=scalars[0])
    return replace(launch, params=params)


def binary(
    profile: DeviceProfile, op: str, dtype: str, n: int, broadcast: Broadcast = "none", columns: int = 0
) -> Launch:
    """y = op(a, b) over n elements; buffers (a, b, y).

    With broadcast "row", b is a row of `columns` elements, repeated over a; with "scalar" one element.
    """
    return _binary(profile, op, dtype, n, broadcast, columns)


def fill(profile: DeviceProfile, size: int, pattern: int) -> Launch:
    """Every 32-bit word of a buffer of `size` bytes, and of its padding, becomes `pattern`; buffers (y,)."""
    groups = ceil_div(size, 16)
    program = load_template("fill.pwgsl", "fill_grid" if has_workgroups(profile) else "fill_chunks")
    grid = _grid(profile, groups)
    return Launch(program, pack(program, groups=groups, chunk=CHUNK, grid_x=grid[0], pattern=pattern), grid)


@lru_cache(maxsize=4096)
def _unary(profile: DeviceProfile, op: str, dtype: str, n: int) -> Launch:
    _check_op("unary", op, UNARY_OPS)
    programs = _unary_programs(profile, op, check_dtype(op, dtype, UNARY_OPS[op]))
    groups = ceil_div(n, 4)
    grid = _grid(profile, groups)
    params = pack(programs[0], groups=groups, chunk=CHUNK, grid_x=grid[0], scalar=0.0)
    return Launch(programs[0], params, grid, ((0, programs[1]),))


@lru_cache(maxsize=1024)
def _unary_programs(profile: DeviceProfile, op: str, dtype: str) -> tuple[Program, Program]:
    entry = "unary_grid" if has_workgroups(profile) else "unary_chunks"
    defines: dict[str, str | int] = {"OP": op, "T": dtype, **float_defines(profile, dtype)}
    plain = load_template("unary.pwgsl", entry, **defines)
    return plain, load_template("unary.pwgsl", entry, **defines, INPLACE=1)


@lru_cache(maxsize=4096)
def _binary(
    profile: DeviceProfile, op: str, dtype: str, n: int, broadcast: Broadcast, columns: int
) -> Launch:
    _check_op("binary", op, BINARY_OPS)
    layout, period = _row_layout(broadcast, n, columns)
    dtype = _binary_dtype(op, dtype, layout)
    program, in_place = _binary_programs(profile, op, dtype, layout)
    groups = ceil_div(n, 4)
    grid = _grid(profile, groups)
    step = (_LANES if layout == "row" else 4 * _LANES) % period
    params = pack(program, groups=groups, chunk=CHUNK, grid_x=grid[0], columns=period, column_step=step)
    return Launch(program, params, grid, in_place)


def _binary_dtype(op: str, dtype: str, layout: str) -> str:
    if layout == "none":
        return "u8" if dtype == "bool" and op in _BOOL_AS_U8 else check_dtype(op, dtype, BINARY_OPS[op])
    _check_op("broadcasting", op, BROADCAST_OPS)
    return check_dtype(f"{op} with broadcasting", dtype, BROADCAST_OPS[op])


def _row_layout(broadcast: Broadcast, n: int, columns: int) -> tuple[str, int]:
    """The template's BROADCAST and the length of b's row in its units."""
    if broadcast not in ("none", "row", "scalar"):
        raise LaunchError(f"broadcast {broadcast!r} is unknown; allowed are none, row and scalar")
    if broadcast != "row":
        return broadcast, 1
    if columns < 1 or n % columns:
        raise LaunchError(f"{n} elements are not whole rows of {columns} columns")
    if columns == 1:
        return "scalar", 1
    return ("odd_row", columns) if columns % 4 else ("row", columns // 4)


@lru_cache(maxsize=1024)
def _binary_programs(
    profile: DeviceProfile, op: str, dtype: str, layout: str
) -> tuple[Program, tuple[tuple[int, Program], ...]]:
    entry = "binary_grid" if has_workgroups(profile) else "binary_chunks"
    defines: dict[str, str | int] = {"OP": op, "T": dtype, **float_defines(profile, dtype)}
    if layout != "none":
        defines["BROADCAST"] = layout
    targets = ((0, 1) if layout == "none" else (0,)) if dtype in _IN_PLACE else ()
    in_place = tuple((i, load_template("binary.pwgsl", entry, **defines, INPLACE=i + 1)) for i in targets)
    return load_template("binary.pwgsl", entry, **defines), in_place


def _check_op(kind: str, op: str, table: dict[str, frozenset[str]]) -> None:
    if op not in table:
        raise DTypeError(f"there is no {kind} op {op!r}; there are {', '.join(table)}")


def _grid(profile: DeviceProfile, groups: int) -> tuple[int, int, int]:
    return grid_for(profile, ceil_div(groups, 256 if has_workgroups(profile) else CHUNK))
