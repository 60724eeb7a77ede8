"""Forms of a matrix product: which template computes it, and how much of C a workgroup of it owns.

In: a profile, the sizes, the layout of B in memory. Out: `Choice`s, the profile's default first, and the
`Form` of a choice. On software adapters subgroups exchange values, or threads work alone; GPUs use workgroup
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..device_profile import DeviceProfile
from ..kernels.launch import has_workgroups
from ..schedule.plan import MAX_THIN_ROWS
from .choices import Choice

THIN = (1, 2, 4, MAX_THIN_ROWS)  # the numbers of rows for which there are kernels of thin products
WIDE = {"software": 17, "integrated": 9, "discrete": 9}  # columns below which C is computed transposed
SUBGROUPS = (4, 8)  # sizes for which matmul_lanes is the default
GPU_SUBGROUPS = (4, 8, 16, 32)  # and sizes that it supports
COLUMNS = 4  # groups of four to a thread of matvec_columns
# Lanes → rows of a block, and those to try too; else 16, and 8. With four lanes 8 rows were 1.5 to 1.8 times
# as fast as 16 on SwiftShader (kernels/README.md).
TALL = {4: (8, 16)}


@dataclass(frozen=True, slots=True)
class Form:
    """A template, and the block of C that a workgroup owns: rows, and groups of four columns."""

    file: str
    defines: tuple[tuple[str, str], ...]
    rows: int
    groups: int
    workgroup: int
    stored: int  # rows that a thread stores
    along_k: bool = False
    single: bool = False  # k goes one by one
    requires: frozenset[str] = frozenset()


def offered(profile: DeviceProfile, m: int, n: int, along_k: bool) -> tuple[Choice, ...]:
    """The ways to compute a product of m rows and n columns; the first is the default."""
    rows = next((each for each in THIN if each >= m), 16)
    lanes = profile.subgroup_size if "subgroups" in profile.features else 0
    by_lanes: list[Choice] = []
    if lanes in (GPU_SUBGROUPS if has_workgroups(profile) else SUBGROUPS):
        tall = TALL.get(lanes, (16, 8)) if rows > MAX_THIN_ROWS else (rows,)
        by_lanes = [(("lanes", lanes), ("rows", each)) for each in tall]
    if has_workgroups(profile):
        tiles: list[Choice] = [(("side", 64),), (("side", 32),)]
        if rows > MAX_THIN_ROWS:
            return (*tiles, *by_lanes)
        thin: list[Choice] = [(("thin", rows), ("along", int(each))) for each in (along_k, not along_k)]
        return (*thin, tiles[1], *by_lanes)
    others = by_lanes or [(("threads", 8), ("rows", 1 if rows == 1 else 4 if rows <= 4 else 8))]
    if rows <= 2 and not along_k and n >= 32 * COLUMNS:
        return ((("columns", COLUMNS), ("rows", rows)), *others)
    return tuple(others)


def form_of(choice: Choice, along_k: bool) -> Form:
    """The form of a choice."""
    return _FORMS[choice[0][0]](dict(choice), along_k)


def _defines(along_k: bool, **values: int) -> tuple[tuple[str, str], ...]:
    if along_k:
        values["TRANSPOSED"] = 1
    return tuple((name, str(value)) for name, value in values.items())


def _lanes(choice: dict[str, int], along_k: bool) -> Form:
    lanes, rows = choice["lanes"], choice["rows"]
    defines = _defines(along_k, LANES=lanes, ROWS=rows)
    return Form("matmul.pwgsl", defines, rows, lanes, lanes, rows, along_k, requires=frozenset({"subgroups"}))


def _threads(choice: dict[str, int], along_k: bool) -> Form:
    rows = choice["rows"]
    return Form("matmul.pwgsl", _defines(False, SINGLE=1, ROWS=rows), rows, 16, 8, rows, single=True)


def _columns(choice: dict[str, int], along_k: bool) -> Form:
    rows, columns = choice["rows"], choice["columns"]
    defines = _defines(False, SINGLE=1, ROWS=rows, COLUMNS=columns)
    return Form("matvec.pwgsl", defines, rows, 8 * columns, 8, rows, single=True)


def _tile(choice: dict[str, int], along_k: bool) -> Form:
    side = choice["side"]
    defines = _defines(along_k, TILE=1, SIDE=side)
    return Form("matmul.pwgsl", defines, side, side // 4, side * side // 16, 4, along_k)


def _thin(choice: dict[str, int], along_k: bool) -> Form:
    rows, along_k = choice["thin"], bool(choice["along"])
    groups = 1 if along_k else 16
    return Form("matvec.pwgsl", _defines(along_k, ROWS=rows), rows, groups, 256, rows, along_k)


_FORMS: dict[str, Callable[[dict[str, int], bool], Form]] = {
    "lanes": _lanes,
    "threads": _threads,
    "columns": _columns,
    "side": _tile,
    "thin": _thin,
}
