"""Which kernels sort rows of keys, and which write rows to computed places.

In: profile, sizes, and for scatters what is done and the dtype. Out: a `Launches` of launches over numbered
buffers, or one `Launch`. Invariant: both are deterministic: equal keys keep their order, and of several
updates to one row each is applied in its turn.
"""

from __future__ import annotations

from functools import lru_cache

from webgrad.device_profile import DeviceProfile
from webgrad.dtypes import DType
from webgrad.errors import DTypeError, LaunchError, ShapeError
from webgrad.kernels.launch import Launch, Launches, ceil_div, grid_for, has_workgroups, pack
from webgrad.wgsl import Program, load_template

KEYS, ORDER, TEMPORARIES = 0, 1, 2  # numbers of a sort's buffers; temporary i is TEMPORARIES + i

SOFTWARE_MERGED = 512  # keys: up to here a software adapter gives each row one thread
SOFTWARE_PARTS = 64  # chunks of all rows that keep a software adapter's threads busy
MIN_CHUNK = 1024  # keys: shorter chunks would spend their time on their counts
GPU_MERGED = 32  # keys: up to here a GPU gives each row a thread
GPU_SMALL = 1024  # keys that fit in workgroup memory
GPU_CHUNK = 4096  # keys to a workgroup of 256
SOFTWARE_BITS, GPU_BITS = 11, 4  # of a digit, at most
KEY_WORK, COUNT_WORK = 7, 6  # loads and stores of a key, and of a digit's count, in one round

SOFTWARE_OWNERS = 64  # threads that share a scatter: each reads every index
GPU_OWNERS = 8192


@lru_cache(maxsize=1024)
def sort_launches(profile: DeviceProfile, rows: int, n: int, bits: int = 32) -> Launches:
    """The stable order of each row of (rows, n) uint32 keys, by places counted from the row's start.

    Only the lowest `bits` of a key may be set: fewer need fewer rounds.
    """
    if rows < 0 or n < 0 or n >= 2**31:
        raise ShapeError(f"sort of ({rows}, {n}) keys: sizes are from 0 to 2147483647")
    if rows == 0 or n == 0:
        return Launches((), ())
    if not has_workgroups(profile):
        return _merged(profile, rows, n, 8) if n <= SOFTWARE_MERGED else _by_threads(profile, rows, n, bits)
    if n <= GPU_MERGED:
        return _merged(profile, rows, n, 64)
    return _small(profile, rows, n) if n <= GPU_SMALL else _by_groups(profile, rows, n, bits)


def _launch(
    profile: DeviceProfile, program: Program, workgroups: int, rows: int, n: int, **sizes: int
) -> Launch:
    grid = grid_for(profile, workgroups)
    values = {"chunk": 0, "chunks": 1, "shift": 0, "digits": 1, **sizes}
    return Launch(program, pack(program, rows=rows, n=n, grid_x=grid[0], **values), grid)


def _merged(profile: DeviceProfile, rows: int, n: int, width: int) -> Launches:
    defines = {} if width == 8 else {"WIDTH": width}
    program = load_template("sort.pwgsl", "sort_merge", **defines)
    launch = _launch(profile, program, ceil_div(rows, width), rows, n)
    return Launches((launch.over(KEYS, TEMPORARIES, ORDER),), (4 * rows * n,))


def _small(profile: DeviceProfile, rows: int, n: int) -> Launches:
    launch = _launch(
        profile, load_template("sort.pwgsl", "sort_small"), rows, rows, n, chunk=1 << (n - 1).bit_length()
    )
    return Launches((launch.over(KEYS, ORDER),), ())


def _by_groups(profile: DeviceProfile, rows: int, n: int, bits: int) -> Launches:
    """Count, scan and move for each digit; keys stay, and places go to and fro, at last to ORDER."""
    chunks, digits = ceil_div(n, GPU_CHUNK), 1 << GPU_BITS
    places, counts = TEMPORARIES, TEMPORARIES + 1
    sizes = {"chunk": GPU_CHUNK, "chunks": chunks, "digits": digits}
    launches: list[Launch] = []
    rounds = max(1, ceil_div(bits, GPU_BITS))
    target = ORDER if rounds % 2 else places
    for each in range(rounds):
        first = {} if each else {"FIRST": 1}
        source = (places if target == ORDER else ORDER,) if each else ()
        for entry, defines, items, buffers in (
            ("count", first, rows * chunks, (KEYS, *source, counts)),
            ("scan", {}, rows, (counts,)),
            ("move", first, rows * chunks, (KEYS, *source, counts, target)),
        ):
            program = load_template("sort.pwgsl", f"sort_{entry}_group", **defines)
            launch = _launch(profile, program, items, rows, n, shift=GPU_BITS * each, **sizes)
            launches.append(launch.over(*buffers))
        target = places if target == ORDER else ORDER
    spare = 4 * rows * n if rounds > 1 else 4
    return Launches(tuple(launches), (spare, 4 * rows * digits * chunks))


def _by_threads(profile: DeviceProfile, rows: int, n: int, bits: int) -> Launches:
    """Count, sum up and move for each digit; keys and places go together between two sets of temporaries."""
    chunk = min(n, max(MIN_CHUNK, ceil_div(rows * n, SOFTWARE_PARTS)))
    chunks = ceil_div(n, chunk)
    rounds, width = _rounds(bits, n, chunks)
    digits = 1 << width
    paired = "int64" in profile.features and 8 * rows * n <= profile.max_binding_bytes
    counts = TEMPORARIES
    if paired:
        sets: tuple[tuple[int, ...], ...] = ((counts + 1,), (counts + 2,))
    else:
        sets = ((counts + 1, counts + 2), (counts + 3, counts + 4))
    sizes = {"chunk": chunk, "chunks": chunks, "digits": digits}
    between = (("columns", rows * digits), ("totals", rows)) if chunks > 1 else ()
    launches: list[Launch] = []
    for each in range(rounds):
        wide: dict[str, int] = {"B64": 1} if paired else {}
        first: dict[str, int] = {} if each else {"FIRST": 1}
        last: dict[str, int] = {"LAST": 1} if each == rounds - 1 else {}
        source = sets[(each - 1) % 2] if each else (KEYS,)
        target = (ORDER,) if last else sets[each % 2]
        work: list[tuple[str, dict[str, int], int, tuple[int, ...]]] = [
            ("count", wide | first if paired else {}, rows * chunks, (source[0], counts)),
            *((name, {}, items, (counts,)) for name, items in between),
            ("move", wide | first | last, rows * chunks, (*source, counts, *target)),
        ]
        for entry, defines, items, buffers in work:
            program = load_template("sort.pwgsl", f"sort_{entry}_thread", **defines)
            launch = _launch(profile, program, ceil_div(items, 8), rows, n, shift=width * each, **sizes)
            launches.append(launch.over(*buffers))
    moved = 8 * rows * n if paired else 4 * rows * n
    used = min(2, rounds - 1) * len(sets[0])
    return Launches(tuple(launches), (4 * rows * digits * (chunks + 1), *[moved] * used))


def _rounds(bits: int, n: int, chunks: int) -> tuple[int, int]:
    """How many digits a key of so many bits has, and their width, so that least is loaded and stored."""
    choices = [(max(1, ceil_div(bits, width)), width) for width in range(4, SOFTWARE_BITS + 1)]
    rounds, _ = min(choices, key=lambda each: each[0] * (KEY_WORK * n + COUNT_WORK * chunks * (1 << each[1])))
    return rounds, max(1, ceil_div(bits, rounds))


SCATTERS = ("set", "add", "max")  # what can be done
_WIDE = frozenset({"i64", "u64", "f64"})
_BITS = {"f32": "u32", "i32": "u32", "f16": "u16", "bf16": "u16", "i16": "u16", "i8": "u8", "i64": "u64"}
_PER_WORD = {"u8": 4, "i8": 4, "u16": 2, "i16": 2, "f16": 2, "bf16": 2}


@lru_cache(maxsize=4096)
def scatter_launch(
    profile: DeviceProfile,
    how: str,
    dtype: DType,
    rows: int,
    columns: int,
    count: int,
    *,
    update: bool = False,
) -> Launch:
    """base (rows, columns) with `count` rows of updates written to the rows that an index names.

    Buffers (base, index, updates, y). `how` is set, add or max. The index is int32; what lies outside of 0 to
    rows - 1 goes to the nearest row. float16 and bfloat16 are rounded after each addition.

    With `update` y holds base already: buffers (index, updates, y), and only the rows named are touched. The
    work goes by the updates then, not by the rows: a token written to a cache of any length costs the same.
    """
    if how not in SCATTERS:
        raise DTypeError(f"there is no scatter {how!r}; there are {', '.join(SCATTERS)}")
    if dtype.kind == "c":
        raise DTypeError(f"scatter {how} is not offered for {dtype.name}; convert it first")
    if dtype.kind == "b" and how == "add":
        raise DTypeError("scatter add is not offered for bool: convert it first, or use max, which is or")
    if rows < 0 or columns < 0 or count < 0:
        raise ShapeError(f"scatter of {count} rows into ({rows}, {columns}): sizes are never negative")
    if how != "set" and dtype.feature and dtype.feature not in profile.features:
        raise DTypeError(
            f"scatter {how} of {dtype.name} needs an adapter with {dtype.feature}: convert it, or use cpu"
        )
    stored, elements = stored_type(how, dtype, columns)
    return _scatter(profile, how, stored, rows, elements, count, update)


def stored_type(how: str, dtype: DType, columns: int) -> tuple[str, int]:
    """The type a scatter computes with, and how many a row has: setting only moves bits, integers of one
    width add alike, and bools are bytes.
    """
    short = "u8" if dtype.kind == "b" else dtype.short
    if how == "set" and short in _WIDE:
        return "u32", 2 * columns
    if how == "set" or (how == "add" and dtype.kind in "iu"):
        return _BITS.get(short, short), columns
    return short, columns


def _scatter(
    profile: DeviceProfile, how: str, stored: str, rows: int, columns: int, count: int, update: bool
) -> Launch:
    owners, width = (GPU_OWNERS, 64) if has_workgroups(profile) else (SOFTWARE_OWNERS, 8)
    odd = columns % 4 != 0 or stored in _WIDE
    defines: dict[str, str | int] = {"HOW": how, "T": stored}
    if odd:
        defines["ODD"] = 1
    if width != 8:
        defines["WIDTH"] = width
    program = load_template("scatter.pwgsl", "scatter", **defines, **({"INPLACE": 2} if update else {}))
    if rows * columns >= 2**32 or count * columns >= 2**32:
        raise LaunchError(f"scatter of ({count}, {columns}) into ({rows}, {columns}): too many elements")
    units = columns if odd else columns // 4
    if odd and stored in _PER_WORD:
        words = ceil_div(rows * columns, _PER_WORD[stored])
        share = max(1, ceil_div(words, owners))
        parts = ceil_div(words, share)
    else:
        share = max(1, ceil_div(rows, max(1, owners // max(1, units))))
        parts = units * ceil_div(rows, share)
    grid = grid_for(profile, ceil_div(parts, width))
    params = pack(program, parts=parts, rows=rows, columns=units, count=count, share=share, grid_x=grid[0])
    if update:
        return Launch(program, params, grid)
    in_place = load_template("scatter.pwgsl", "scatter", **defines, INPLACE=1)
    return Launch(program, params, grid, ((0, in_place),))
