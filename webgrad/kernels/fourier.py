"""Which kernels transform rows of complex numbers: passes over memory, or through workgroups' own.

In: profile, dtype and sizes. Out: a `Launches` over the buffers SOURCE, RESULT and up to two temporaries.
The invariant: every launch reads what the one before it wrote, the first SOURCE, and the last writes RESULT.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from webgrad.device_profile import PORTABLE, DeviceProfile
from webgrad.errors import ShapeError
from webgrad.kernels.launch import Launch, Launches, ceil_div, grid_for, has_workgroups, pack
from webgrad.ops.transforms import halves_have_kernels, has_kernels
from webgrad.wgsl import load_template

SOURCE, RESULT, SPARE = 0, 1, 2  # numbers of a transform's buffers; temporary i is SPARE + i
_BYTES = {"f32": 8, "f64": 16}  # of a complex number

ODD_RADICES = (7, 5, 3)
SOFTWARE_THREADS = 512  # at most: a workgroup is slow to start, so each thread takes several columns
SOFTWARE_WIDTH, GPU_WIDTH = 8, 64  # threads to a workgroup of passes over memory
PASS_BITS = 4  # 16 elements in registers
GROUP_BYTES = PORTABLE.max_workgroup_storage  # that a transform may take
GROUP_BITS = 8  # more would leave too few columns side by side for memory to be read in long pieces


@lru_cache(maxsize=1024)
def fourier_launches(
    profile: DeviceProfile,
    dtype: str,
    rows: int,
    length: int,
    inverse: bool = False,
    scale: float = 1.0,
    inner: int = 1,
) -> Launches:
    """The transforms of (rows, length, inner) complex numbers along the length, times a scale.

    The dtype, f32 or f64, is that of their parts.
    """
    _check(rows * inner, length, length > 1 and has_kernels(length))
    if rows * inner == 0:
        return Launches(())
    launches = _passes(profile, dtype, rows, length, inverse, scale, inner)
    return _chained(launches, rows * length * inner * _BYTES[dtype])


@lru_cache(maxsize=1024)
def real_launches(
    profile: DeviceProfile, dtype: str, rows: int, length: int, inverse: bool = False, scale: float = 1.0
) -> Launches:
    """The first length / 2 + 1 complex numbers of the transforms of (rows, length) real ones, of an even
    length; with `inverse` real numbers from those.
    """
    half = length // 2
    _check(rows, length, halves_have_kernels(length))
    if rows == 0:
        return Launches(())
    if inverse:
        inner = _passes(profile, dtype, rows, half, True, scale)
        launches = [_half_step(profile, dtype, "fourier_join", rows, half, 1.0 if inner else scale), *inner]
    else:
        inner = _passes(profile, dtype, rows, half, False, 1.0)
        launches = [*inner, _half_step(profile, dtype, "fourier_split", rows, half, 0.5 * scale)]
    return _chained(launches, rows * half * _BYTES[dtype])


def _check(rows: int, length: int, offered: bool) -> None:
    if rows < 0 or not offered or rows * length >= 2**31:
        raise ShapeError(
            f"fft of ({rows}, {length}) numbers: kernels take lengths that are products of 2, 3, 5 and 7, "
            "and fewer than 2147483648 numbers"
        )


def _chained(launches: list[Launch], nbytes: int) -> Launches:
    """Each reads what the one before it wrote, to one of two temporaries or the result."""
    last = len(launches) - 1
    chain = [SOURCE, *(SPARE + at % 2 for at in range(last)), RESULT]
    in_turn = (each.over(chain[at], chain[at + 1]) for at, each in enumerate(launches))
    return Launches(tuple(in_turn), (nbytes,) * min(last, 2))


def _passes(
    profile: DeviceProfile,
    dtype: str,
    rows: int,
    length: int,
    inverse: bool,
    scale: float,
    inner: int = 1,
) -> list[Launch]:
    in_groups = has_workgroups(profile) and not length & (length - 1)
    held = GROUP_BYTES // _BYTES[dtype]
    radices = _group_radices(length, held) if in_groups else _pass_radices(length)
    make = _by_groups if in_groups else _by_threads
    launches = []
    span = 1
    for at, radix in enumerate(radices):
        numbers = {
            "count": rows * length // radix * inner,
            "stride": length // radix * inner,
            "span": span * inner,
            "inner": inner,
            **_angle_step(span * radix),
            "sign": -1.0 if inverse else 1.0,
            **_scale_parts(scale if at == len(radices) - 1 else 1.0),
        }
        launches.append(make(profile, dtype, radix, numbers))
        span *= radix
    return launches


def _angle_step(count: int) -> dict[str, float]:
    """2^32 / count as a whole number and the rest."""
    return {"part": 2**32 // count, "part_rest": 2**32 % count / count}


def _scale_parts(scale: float) -> dict[str, float]:
    """A number as a sum of floats of single precision."""
    parts = {}
    for name in ("scale", "scale_more", "scale_rest"):
        (parts[name],) = struct.unpack("<f", struct.pack("<f", scale))
        scale -= parts[name]
    return parts


def _pass_radices(length: int) -> list[int]:
    """The radices of passes over memory, the largest first: the first pass need not turn anything."""
    odd: list[int] = []
    for radix in ODD_RADICES:
        while length % radix == 0:
            odd.append(radix)
            length //= radix
    bits = length.bit_length() - 1
    return sorted([*(1 << each for each in _even_parts(bits, PASS_BITS)), *odd], reverse=True)


def _group_radices(length: int, held: int) -> list[int]:
    """The radices of passes through workgroup memory: one if that holds a row; none for one number."""
    bits = length.bit_length() - 1
    return [length] if 1 < length <= held else [1 << each for each in _even_parts(bits, GROUP_BITS)]


def _even_parts(bits: int, most: int) -> list[int]:
    """So many bits in as few parts as can be, all about alike."""
    count = ceil_div(bits, most)
    return [ceil_div(bits - at, count) for at in range(count)]


def _by_threads(profile: DeviceProfile, dtype: str, radix: int, numbers: dict[str, float]) -> Launch:
    """A pass over memory, columns dealt out to threads."""
    return _launch_over_columns(profile, dtype, "fourier_pass", numbers, {"RADIX": radix})


def _half_step(profile: DeviceProfile, dtype: str, entry: str, rows: int, half: int, scale: float) -> Launch:
    """The step between real numbers as complex ones, and the first half of their transform."""
    numbers = {
        "count": rows * (half // 2 + 1),
        "stride": half // 2 + 1,
        "span": half,
        "inner": 1,
        **_angle_step(2 * half),
        "sign": 1.0,
        **_scale_parts(scale),
    }
    return _launch_over_columns(profile, dtype, entry, numbers, {})


def _launch_over_columns(
    profile: DeviceProfile, dtype: str, entry: str, numbers: dict[str, float], more: dict[str, int]
) -> Launch:
    software = profile.kind == "software"
    width = SOFTWARE_WIDTH if software else GPU_WIDTH
    defines: dict[str, str | int] = {"T": dtype, **more}
    if not software:
        defines["WIDTH"] = width
    elif dtype == "f32" and "int64" in profile.features:
        defines["B64"] = 1
    program = load_template("fourier.pwgsl", entry, **defines)
    count, stride, span = (int(numbers[each]) for each in ("count", "stride", "span"))
    share = max(1, ceil_div(count, SOFTWARE_THREADS)) if software else 1
    grid = grid_for(profile, ceil_div(count, width * share))
    steps = {"step_rows": width // stride, "step_column": width % stride, "step_k": width % span}
    params = pack(program, **numbers, **steps, share=share, log_radix=0, log_columns=0, grid_x=grid[0])
    return Launch(program, params, grid)


def _by_groups(profile: DeviceProfile, dtype: str, radix: int, numbers: dict[str, float]) -> Launch:
    """A pass through workgroup memory, as many columns to a workgroup as it holds."""
    program = load_template("fourier.pwgsl", "fourier_group", T=dtype)
    columns = GROUP_BYTES // _BYTES[dtype] // radix
    grid = grid_for(profile, ceil_div(int(numbers["count"]), columns))
    logs = {"log_radix": radix.bit_length() - 1, "log_columns": columns.bit_length() - 1}
    params = pack(program, **numbers, **logs, share=1, step_rows=0, step_column=0, step_k=0, grid_x=grid[0])
    return Launch(program, params, grid)
