"""Which launches write rows to computed places: one where updates are few, several where they are many.

In: profile, what is done, dtype and sizes. Out: a `Launches` of launches over numbered buffers. Invariant:
results are the same on every run; of several rows set the last stays, floats are added in an order that
depends on sizes only.
"""

from __future__ import annotations

from functools import lru_cache

from webgrad.device_profile import DeviceProfile
from webgrad.dtypes import DType, uint32
from webgrad.kernels.launch import Launch, Launches, ceil_div, grid_for, has_workgroups, pack
from webgrad.kernels.sorting import (
    KEYS,
    ORDER,
    TEMPORARIES,
    scatter_launch,
    sort_launches,
    stored_type,
)
from webgrad.wgsl import Program, load_template

BASE, INDEX, UPDATES, RESULT, SPARES = range(5)  # numbers of buffers; temporary i is SPARES + i

MAX_SOFTWARE_IN_TURN = 1024  # updates: up to here they go in turn, each owner of rows reading all of them;
MAX_GPU_IN_TURN = 8192  # on a GPU, whose owners are many, up to here
MIN_COPIED_BYTES = 1 << 20  # bytes: a larger base is copied by a kernel that does only that
MIN_BUSY_COLUMNS = 48  # units of a row from which owners are busy with them, and not with reading indices
SOFTWARE_RUNS, GPU_RUNS = 64, 1024  # chunks of sorted updates
MAX_TABLES, MIN_TABLES = 64, 16  # chunks with a table of their own
PACKED = frozenset({"u8", "i8", "u16", "i16", "f16", "bf16"})


class _Scatter:
    """One scatter with many updates: its sizes, and launches of its template."""

    def __init__(
        self, profile: DeviceProfile, how: str, dtype: DType, rows: int, columns: int, count: int
    ) -> None:
        self.profile, self.how, self.rows, self.count = profile, how, rows, count
        self.stored, elements = stored_type(how, dtype, columns)
        self.odd = elements % 4 != 0 or self.stored in ("i64", "u64", "f64")
        self.columns = elements if self.odd else elements // 4
        self.unit_bytes = {"u8": 1, "i8": 1, "u64": 8, "i64": 8, "f64": 8}.get(
            self.stored, 2 if self.stored in PACKED else 4
        ) * (1 if self.odd else 4)
        self.on_gpu = has_workgroups(profile)
        self.width = 64 if self.on_gpu else 8
        self.launches: list[Launch] = []
        self.temporaries: list[int] = []

    def temporary(self, nbytes: int) -> int:
        """The number of a new temporary."""
        self.temporaries.append(nbytes)
        return SPARES + len(self.temporaries) - 1

    def step(self, entry: str, buffers: tuple[int, ...], parts: int, **sizes: int) -> None:
        """One more launch, of so many threads."""
        typed = entry not in ("scatter_copy", "scatter_keys")
        defines: dict[str, str | int] = {} if self.width == 8 else {"WIDTH": self.width}
        in_place: tuple[tuple[int, Program | None], ...] = ()
        if typed:
            defines |= {"HOW": self.how, "T": self.stored}
        if typed and self.odd and entry != "scatter_atomic":
            defines["ODD"] = 1
        if entry == "scatter_copy":
            in_place = ((0, None),)  # what lies there already is not copied
            if "int64" in self.profile.features and not self.on_gpu:
                defines["B64"] = 1
        program = load_template("scatters.pwgsl", entry, **defines)
        grid = grid_for(self.profile, ceil_div(parts, self.width))
        values = {"rows": self.rows, "columns": self.columns, "count": self.count, "chunk": 0, "chunks": 0}
        params = pack(program, parts=parts, grid_x=grid[0], **(values | sizes))
        self.launches.append(Launch(program, params, grid, in_place).over(*buffers))

    def threads(self, items: int) -> int:
        """Threads that share so many items."""
        return max(1, min(items, 1 << 18 if self.on_gpu else 1024))

    def plan(self) -> Launches:
        """What was added up to now."""
        return Launches(tuple(self.launches), tuple(self.temporaries))


@lru_cache(maxsize=4096)
def scatter_launches(
    profile: DeviceProfile, how: str, dtype: DType, rows: int, columns: int, count: int, there: bool = False
) -> Launches:
    """base (rows, columns) with `count` rows of updates written to the rows that an int32 index names.

    With `there` RESULT holds base already, and BASE is not bound. Indices outside go to the nearest row.
    """
    # It also checks the arguments.
    launch = scatter_launch(profile, how, dtype, rows, columns, count, update=True)
    scatter = _Scatter(profile, how, dtype, rows, columns, count)
    many = _are_many(scatter)
    nbytes = rows * scatter.columns * scatter.unit_bytes
    if not (many or there or nbytes >= MIN_COPIED_BYTES):
        whole = scatter_launch(profile, how, dtype, rows, columns, count)
        return Launches((whole.over(BASE, INDEX, UPDATES, RESULT),))
    if not there:
        scatter.launches.append(copy_launch(profile, nbytes))
    if not many:
        scatter.launches.append(launch.over(INDEX, UPDATES, RESULT))
    elif scatter.on_gpu and scatter.stored in ("i32", "u32") and how != "set":
        _by_atomics(scatter)
    elif _has_few_rows(scatter):
        _by_tables(scatter)
    else:
        _by_sorting(scatter)
    return scatter.plan()


def copy_launch(profile: DeviceProfile, nbytes: int) -> Launch:
    """One buffer's bytes in another; no launch where the first is given up for the second."""
    groups = ceil_div(nbytes, 16)
    copy = _Scatter(profile, "set", uint32, 1, 4 * groups, groups)
    copy.step("scatter_copy", (BASE, RESULT), copy.threads(groups))
    return copy.launches[0]


def _are_many(scatter: _Scatter) -> bool:
    """Whether it pays to bring the updates of a row together first."""
    rows, columns, count = scatter.rows, scatter.columns, scatter.count
    if count <= MAX_SOFTWARE_IN_TURN or not rows * columns or (scatter.odd and scatter.stored in PACKED):
        return False
    if scatter.how == "add" and scatter.stored in ("f16", "bf16"):  # rounded after each
        return False
    if scatter.on_gpu:
        return count > MAX_GPU_IN_TURN
    return columns < MIN_BUSY_COLUMNS


def _has_few_rows(scatter: _Scatter) -> bool:
    """Whether a table of all rows for every chunk of updates is less work than sorting."""
    if scatter.on_gpu or scatter.how == "set" or scatter.stored not in ("f32", "i32", "u32"):
        return False
    chunks, _ = _tables(scatter)
    table = scatter.rows * scatter.columns * scatter.unit_bytes
    return 4 * scatter.rows <= scatter.count and chunks * table <= scatter.profile.max_binding_bytes


def _tables(scatter: _Scatter) -> tuple[int, int]:
    """How many chunks have a table, and how many updates a chunk has."""
    wanted = min(MAX_TABLES, max(MIN_TABLES, 2 * scatter.count // scatter.rows))
    chunk = ceil_div(scatter.count, max(MIN_TABLES, wanted // scatter.columns))
    return ceil_div(scatter.count, chunk), chunk


def _by_atomics(scatter: _Scatter) -> None:
    elements = scatter.columns if scatter.odd else 4 * scatter.columns
    parts = scatter.count * elements
    scatter.step("scatter_atomic", (INDEX, UPDATES, RESULT), parts, columns=elements)


def _by_tables(scatter: _Scatter) -> None:
    chunks, chunk = _tables(scatter)
    tables = scatter.temporary(chunks * scatter.rows * scatter.columns * scatter.unit_bytes)
    sizes = {"chunk": chunk, "chunks": chunks}
    scatter.step("scatter_tables", (INDEX, UPDATES, tables), chunks * scatter.columns, **sizes)
    items = scatter.threads(scatter.rows * scatter.columns)
    scatter.step("scatter_merge", (tables, RESULT), items, **sizes)


def _by_sorting(scatter: _Scatter) -> None:
    profile, count, columns = scatter.profile, scatter.count, scatter.columns
    keys, order = scatter.temporary(4 * count), scatter.temporary(4 * count)
    scatter.step("scatter_keys", (INDEX, keys), scatter.threads(count))
    plan = sort_launches(profile, 1, count, (scatter.rows - 1).bit_length())
    numbers = {KEYS: keys, ORDER: order}
    for at, nbytes in enumerate(plan.temporary_bytes):
        numbers[TEMPORARIES + at] = scatter.temporary(nbytes)
    scatter.launches += [each.over(*[numbers[number] for number in each.values]) for each in plan.launches]
    runs = GPU_RUNS if scatter.on_gpu else SOFTWARE_RUNS
    chunk = max(64, ceil_div(count, max(8, ceil_div(runs, columns))))
    chunks = ceil_div(count, chunk)
    rows = scatter.temporary(4 * 2 * chunks * columns)
    carried = scatter.temporary(2 * chunks * columns * scatter.unit_bytes)
    sizes = {"chunk": chunk, "chunks": chunks}
    scatter.step("scatter_runs", (keys, order, UPDATES, rows, carried, RESULT), chunks * columns, **sizes)
    scatter.step("scatter_carries", (rows, carried, RESULT), columns, **sizes)
