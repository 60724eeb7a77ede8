"""Which kernels compute along rows: softmax, reductions in one or more stages, and the dot product.

In: profile, op, dtype, rows and columns. Out: a `Launch`, or several to be run in order, each reading what
the one before wrote. Invariant: no segment of a split row is empty, so max and min have an element to
begin with.
"""

from __future__ import annotations

from functools import lru_cache

from webgrad.errors import DTypeError, ShapeError
from webgrad.kernels.launch import (
    FLOATS,
    INTEGERS,
    Launch,
    ceil_div,
    check_dtype,
    compute_type,
    float_defines,
    grid_for,
    has_workgroups,
    pack,
)
from webgrad.runtime.profile import DeviceProfile
from webgrad.wgsl import Program, load_template

__all__ = ["REDUCE_OPS", "dot", "reduce", "softmax"]

SHORT_ROW = 64  # elements: up to here a GPU gives each row a thread and not a workgroup
SHORT_ROW_THREADS = 64  # to a workgroup, then
LONG_SEGMENT = 16384  # elements one thread or workgroup adds up: more would lose accuracy and parallelism
SOFTWARE_PARTS = 64  # parts that keep a software adapter's threads busy
DEVICE_PARTS = 256  # the same for a GPU, counted in workgroups
SHORT_SEGMENT = 256  # elements: a part shorter than this is not worth splitting off

_NUMBERS = FLOATS | INTEGERS
REDUCE_OPS: dict[str, frozenset[str]] = {
    "sum": _NUMBERS,
    "prod": FLOATS | {"i32", "u32"},
    "max": _NUMBERS,
    "min": _NUMBERS,
}
_DOT_DTYPES = FLOATS | {"i32", "u32"}
_NEEDS_ELEMENTS = frozenset({"max", "min"})
_BOOL_AS_U8 = frozenset({"max", "min"})  # any and all


@lru_cache(maxsize=4096)
def softmax(profile: DeviceProfile, dtype: str, rows: int, columns: int) -> Launch:
    """y = softmax(x) along the rows of (rows, columns); buffers (x, y)."""
    dtype = check_dtype("softmax", dtype, FLOATS)
    _check_sizes("softmax", rows, columns)
    odd = columns % 4 != 0
    entry, width = _row_kernel(profile, rows, columns, "softmax")
    defines: dict[str, str | int] = {"T": dtype, **float_defines(profile, dtype)}
    if odd:
        defines["ODD"] = 1
    if width not in (1, 8):
        defines["WIDTH"] = width
    if entry == "softmax_group" and has_workgroups(profile) and "subgroups" in profile.features:
        defines["SUBGROUPS"] = 1
    program = load_template("softmax.pwgsl", entry, **defines)
    in_place: tuple[tuple[int, Program], ...] = ()
    if not (odd and _is_packed(defines)):  # there the two sides have different types, words and atomic words
        in_place = ((0, load_template("softmax.pwgsl", entry, **defines, INPLACE=1)),)
    grid = grid_for(profile, ceil_div(rows, width) if columns else 0)
    params = pack(program, rows=rows, columns=columns // (1 if odd else 4), grid_x=grid[0])
    return Launch(program, params, grid, in_place)


@lru_cache(maxsize=4096)
def reduce(profile: DeviceProfile, op: str, dtype: str, rows: int, columns: int) -> tuple[Launch, ...]:
    """op along the rows of (rows, columns), a result of the same dtype to each row.

    Each stage has the buffers (source, target); `temporary_bytes` is the size of the targets in between.
    """
    if op not in REDUCE_OPS:
        raise DTypeError(f"there is no reduction {op!r}; there are {', '.join(REDUCE_OPS)}")
    dtype = "u8" if dtype == "bool" and op in _BOOL_AS_U8 else check_dtype(op, dtype, REDUCE_OPS[op])
    _check_sizes(op, rows, columns)
    if columns == 0 and op in _NEEDS_ELEMENTS:
        raise ShapeError(f"{op} of rows without elements, shape ({rows}, 0), has no value")
    return tuple(_stages(profile, op, op, dtype, rows, columns))


@lru_cache(maxsize=4096)
def dot(profile: DeviceProfile, dtype: str, n: int) -> tuple[Launch, ...]:
    """The sum of a * b over n elements: buffers (a, b, target) in the first stage, then (source, target)."""
    dtype = check_dtype("dot", dtype, _DOT_DTYPES)
    _check_sizes("dot", 1, n)
    return tuple(_stages(profile, "dot", "sum", dtype, 1, n))


def _check_sizes(op: str, rows: int, columns: int) -> None:
    if rows < 0 or columns < 0:
        raise ShapeError(f"{op} over ({rows}, {columns}): sizes are never negative")


def _is_packed(defines: dict[str, str | int]) -> bool:
    return defines["T"] != "f32" and "F16" not in defines


def _row_kernel(profile: DeviceProfile, rows: int, columns: int, family: str) -> tuple[str, int]:
    """The entry point, and how many rows a workgroup takes."""
    if has_workgroups(profile):
        return (f"{family}_thread", SHORT_ROW_THREADS) if columns <= SHORT_ROW else (f"{family}_group", 1)
    few_and_long = rows < 8 and columns >= LONG_SEGMENT and profile.max_invocations >= 256
    return (f"{family}_group", 1) if family == "softmax" and few_and_long else (f"{family}_thread", 8)


def _stages(
    profile: DeviceProfile, first_op: str, op: str, dtype: str, rows: int, columns: int
) -> list[Launch]:
    """The launches from rows of `dtype`, through partial results in the computing type, to one a row."""
    segment = _segment(profile, rows, columns)
    if segment >= columns:
        return [_stage(profile, first_op, dtype, "all", rows, columns, columns)]
    launches = [_stage(profile, first_op, dtype, "first", rows, columns, segment)]
    partial = compute_type(dtype)
    columns = ceil_div(columns, segment)
    while columns > LONG_SEGMENT:
        launches.append(_stage(profile, op, partial, "first", rows, columns, LONG_SEGMENT))
        columns = ceil_div(columns, LONG_SEGMENT)
    launches.append(_stage(profile, op, dtype, "last", rows, columns, columns))
    return launches


def _segment(profile: DeviceProfile, rows: int, columns: int) -> int:
    """How many elements of a row a part takes: all where there are rows enough, else a multiple of 4."""
    wanted = DEVICE_PARTS if has_workgroups(profile) else SOFTWARE_PARTS
    for_parallelism = min(ceil_div(wanted, max(1, rows)), columns // SHORT_SEGMENT)
    segments = max(ceil_div(columns, LONG_SEGMENT), for_parallelism, 1)
    if segments == 1 or (columns <= LONG_SEGMENT and rows >= 16) or columns <= 2048:
        return columns
    return 4 * ceil_div(ceil_div(columns, segments), 4)


def _stage(
    profile: DeviceProfile, op: str, dtype: str, stage: str, rows: int, columns: int, segment: int
) -> Launch:
    """One launch; a stage of a 32-bit type is the same whether its sides are partial results or not."""
    partial = compute_type(dtype)
    # Partial results are few: reading them one by one saves a variant.
    odd = stage == "last" or columns % 4 != 0
    unit = 1 if odd else 4
    segments = ceil_div(columns, segment) if columns else 1
    parts = rows * segments
    entry, width = _row_kernel(profile, rows, segment, "reduce")
    defines: dict[str, str | int] = {"T": dtype, "OP": op, **float_defines(profile, dtype)}
    if odd:
        defines["ODD"] = 1
    if stage != "all" and dtype != partial:
        defines["STAGE"] = stage
    if width not in (1, 8):
        defines["WIDTH"] = width
    program = load_template("reduce.pwgsl", entry, **defines)
    grid = grid_for(profile, ceil_div(parts, width))
    params = pack(
        program,
        parts=parts,
        columns=columns // unit,
        segment=segment // unit,
        segments=segments,
        grid_x=grid[0],
    )
    return Launch(program, params, grid, temporary_bytes=4 * parts if stage == "first" else 0)
