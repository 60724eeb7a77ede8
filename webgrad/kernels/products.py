"""Which kernel computes a matrix product: software lanes or threads, GPU tiles, or thin ones for few rows.

In: profile, dtype, sizes and B's layout. Out: one `Launch` over (a, b, c). Invariant: every kernel reads
inside its operands for any sizes, and all products with more than 8 rows, whole groups of four and one
layout of B share one Program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from webgrad.errors import ShapeError
from webgrad.kernels.launch import (
    FLOATS,
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

__all__ = ["matmul"]

THIN_ROWS = 8  # up to here every element of B is used so seldom that reading it is the whole cost
_WIDE_COLUMNS = 8  # groups of four to a thread of matvec_columns
# Sizes of a subgroup that matmul_lanes is made for, and its rows (README.md says why four lanes have fewer).
_LANE_ROWS = {4: 8, 8: 16}


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A program, the block of C that a workgroup owns, and how many elements each stride counts by."""

    program: Program
    block_rows: int
    block_groups: int
    a_unit: int
    b_unit: int
    c_unit: int


@lru_cache(maxsize=4096)
def matmul(profile: DeviceProfile, dtype: str, m: int, n: int, k: int, *, transposed: bool = False) -> Launch:
    """c = a b; buffers (a, b, c): a is (m, k), b is (k, n), or (n, k) when transposed, c is (m, n)."""
    if min(m, n, k) < 0:
        raise ShapeError(f"a matmul of sizes m={m}, n={n}, k={k}: sizes are never negative")
    kernel = _kernel(profile, check_dtype("matmul", dtype, FLOATS), m, n, k, transposed)
    groups = ceil_div(n, 4)
    column_blocks = ceil_div(groups, kernel.block_groups)
    grid = grid_for(profile, column_blocks * ceil_div(m, kernel.block_rows))
    params = pack(
        kernel.program,
        m=m,
        n=n,
        k=k,
        column_groups=groups,
        steps=ceil_div(k, 4),
        a_stride=k // kernel.a_unit,
        b_stride=(k if transposed else n) // kernel.b_unit,
        c_stride=n // kernel.c_unit,
        column_blocks=max(1, column_blocks),
        grid_x=grid[0],
    )
    return Launch(kernel.program, params, grid)


def _kernel(profile: DeviceProfile, dtype: str, m: int, n: int, k: int, transposed: bool) -> _Kernel:
    odd = n % 4 != 0 or k % 4 != 0
    if has_workgroups(profile):
        return (
            _thin(profile, dtype, _power(m), odd, transposed)
            if m <= THIN_ROWS
            else _tile(profile, dtype, odd, transposed)
        )
    if m <= 2 and not transposed and n % 4 == 0 and n // 4 >= 8 * _WIDE_COLUMNS:
        return _columns(profile, dtype, _power(m))
    if "subgroups" in profile.features and profile.subgroup_size in _LANE_ROWS:
        rows = _power(m) if m <= THIN_ROWS else _LANE_ROWS[profile.subgroup_size]
        if odd:  # its stores are many and slow to compile
            rows = 1 if m == 1 else 8
        return _lanes(profile, dtype, rows, odd, transposed)
    odd = n % 4 != 0  # k goes one by one
    rows = 1 if m == 1 else 4 if m <= 4 or odd else 8
    return _threads(dtype, rows, odd, transposed)


def _power(m: int) -> int:
    return next(rows for rows in (1, 2, 4, 8) if rows >= m)


def _operands(dtype: str, odd: bool, transposed: bool) -> dict[str, str | int]:
    defines: dict[str, str | int] = {"T": dtype}
    if transposed:
        defines["TRANSPOSED"] = 1
    if odd:
        defines["ODD"] = 1
    return defines


def _wide_loads(profile: DeviceProfile) -> dict[str, int]:
    """64-bit loads pay where memory is the limit, in thin products; elsewhere splitting them costs 10 %."""
    return {"B64": 1} if "int64" in profile.features else {}


@lru_cache(maxsize=256)
def _tile(profile: DeviceProfile, dtype: str, odd: bool, transposed: bool) -> _Kernel:
    defines = _operands(dtype, odd, transposed) | float_defines(profile, dtype)
    unit = 1 if odd else 4
    return _Kernel(load_template("matmul.pwgsl", "matmul_tile", **defines), 64, 16, unit, unit, unit)


@lru_cache(maxsize=256)
def _thin(profile: DeviceProfile, dtype: str, rows: int, odd: bool, transposed: bool) -> _Kernel:
    defines = _operands(dtype, odd, transposed) | float_defines(profile, dtype) | {"ROWS": rows}
    entry = "matvec_dots" if transposed else "matvec_slices"
    unit = 1 if odd else 4
    return _Kernel(
        load_template("matvec.pwgsl", entry, **defines), rows, 1 if transposed else 16, unit, unit, unit
    )


@lru_cache(maxsize=256)
def _columns(profile: DeviceProfile, dtype: str, rows: int) -> _Kernel:
    defines = _operands(dtype, False, False) | _wide_loads(profile) | {"ROWS": rows, "SINGLE": 1}
    return _Kernel(
        load_template("matvec.pwgsl", "matvec_columns", **defines), rows, 8 * _WIDE_COLUMNS, 1, 4, 4
    )


@lru_cache(maxsize=256)
def _lanes(profile: DeviceProfile, dtype: str, rows: int, odd: bool, transposed: bool) -> _Kernel:
    defines = _operands(dtype, odd, transposed) | {"ROWS": rows, "LANES": profile.subgroup_size}
    if rows <= THIN_ROWS and not odd:
        defines |= _wide_loads(profile)
    unit = 1 if odd else 4
    return _Kernel(
        load_template("matmul.pwgsl", "matmul_lanes", **defines),
        rows,
        profile.subgroup_size,
        unit,
        unit,
        unit,
    )


@lru_cache(maxsize=256)
def _threads(dtype: str, rows: int, odd: bool, transposed: bool) -> _Kernel:
    defines = _operands(dtype, odd, transposed) | {"ROWS": rows, "SINGLE": 1}
    b_unit = 1 if odd or transposed else 4
    return _Kernel(
        load_template("matmul.pwgsl", "matmul_thread", **defines), rows, 16, 1, b_unit, 1 if odd else 4
    )
