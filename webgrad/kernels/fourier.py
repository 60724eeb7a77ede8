"""Which kernels transform rows of complex numbers: passes over memory, or through workgroups' own.

In: profile, dtype and sizes. Out: a `LaunchPlan` over the buffers SOURCE, RESULT and one temporary. The
invariant: every pass reads one buffer and writes another, the last one RESULT.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from webgrad.errors import ShapeError
from webgrad.kernels.launch import Launch, ceil_div, grid_for, has_workgroups, pack
from webgrad.kernels.ordering import LaunchPlan, LaunchStep
from webgrad.ops.transforms import has_kernels
from webgrad.runtime.profile import DeviceProfile
from webgrad.wgsl import load_template

__all__ = ["RESULT", "SOURCE", "SPARE", "fourier_launches"]

SOURCE, RESULT, SPARE = 0, 1, 2  # numbers of a transform's buffers

ODD_RADICES = (7, 5, 3)
SOFTWARE_THREADS = 512  # at most: a workgroup is slow to start, so each thread takes several columns
SOFTWARE_WIDTH, GPU_WIDTH = 8, 64  # threads to a workgroup of passes over memory
PASS_BITS = 4  # 16 elements in registers
GROUP_BYTES = 16384  # of workgroup memory, which every WebGPU device has
GROUP_BITS = 8  # more would leave too few columns side by side for memory to be read in long pieces


@lru_cache(maxsize=1024)
def fourier_launches(
    profile: DeviceProfile, dtype: str, rows: int, length: int, inverse: bool = False, scale: float = 1.0
) -> LaunchPlan:
    """The transforms of (rows, length) complex numbers with parts of a dtype, f32 or f64, times a scale."""
    if rows < 0 or length < 2 or not has_kernels(length) or rows * length >= 2**31:
        raise ShapeError(
            f"fft of ({rows}, {length}) numbers: kernels take lengths that are products of 2, 3, 5 and 7, "
            "and fewer than 2147483648 numbers"
        )
    if rows == 0:
        return LaunchPlan(())
    held = GROUP_BYTES // (16 if dtype == "f64" else 8)
    in_groups = has_workgroups(profile) and not length & (length - 1)
    radices = _group_radices(length, held) if in_groups else _pass_radices(length)
    steps: list[LaunchStep] = []
    span = 1
    for at, radix in enumerate(radices):
        rest = len(radices) - 1 - at
        numbers = {
            "count": rows * length // radix,
            "stride": length // radix,
            "span": span,
            "part": 2**32 // (span * radix),
            "part_rest": 2**32 % (span * radix) / (span * radix),
            "sign": -1.0 if inverse else 1.0,
            **_scale_parts(1.0 if rest else scale),
        }
        make = _by_groups if in_groups else _by_threads
        source = SOURCE if at == 0 else RESULT if rest % 2 else SPARE
        steps.append(
            LaunchStep(make(profile, dtype, radix, numbers), (source, SPARE if rest % 2 else RESULT))
        )
        span *= radix
    nbytes = rows * length * (16 if dtype == "f64" else 8)
    return LaunchPlan(tuple(steps), (nbytes,) if len(steps) > 1 else ())


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
    return sorted([*(1 << each for each in _even(bits, PASS_BITS)), *odd], reverse=True)


def _group_radices(length: int, held: int) -> list[int]:
    """The radices of passes through workgroup memory: one if that holds a row."""
    bits = length.bit_length() - 1
    return [length] if length <= held else [1 << each for each in _even(bits, GROUP_BITS)]


def _even(bits: int, most: int) -> list[int]:
    """So many bits in as few parts as can be, all about alike."""
    count = ceil_div(bits, most)
    return [ceil_div(bits - at, count) for at in range(count)]


def _by_threads(profile: DeviceProfile, dtype: str, radix: int, numbers: dict[str, float]) -> Launch:
    """A pass over memory, columns dealt out to threads."""
    software = profile.kind == "software"
    width = SOFTWARE_WIDTH if software else GPU_WIDTH
    defines: dict[str, str | int] = {"T": dtype, "RADIX": radix}
    if not software:
        defines["WIDTH"] = width
    elif dtype == "f32" and "int64" in profile.features:
        defines["B64"] = 1
    program = load_template("fourier.pwgsl", "fourier_pass", **defines)
    count, stride, span = (int(numbers[each]) for each in ("count", "stride", "span"))
    share = max(1, ceil_div(count, SOFTWARE_THREADS)) if software else 1
    grid = grid_for(profile, ceil_div(count, width * share))
    steps = {"step_rows": width // stride, "step_column": width % stride, "step_k": width % span}
    params = pack(program, **numbers, **steps, share=share, log_radix=0, log_columns=0, grid_x=grid[0])
    return Launch(program, params, grid)


def _by_groups(profile: DeviceProfile, dtype: str, radix: int, numbers: dict[str, float]) -> Launch:
    """A pass through workgroup memory, as many columns to a workgroup as it holds."""
    program = load_template("fourier.pwgsl", "fourier_group", T=dtype)
    columns = GROUP_BYTES // (16 if dtype == "f64" else 8) // radix
    grid = grid_for(profile, ceil_div(int(numbers["count"]), columns))
    logs = {"log_radix": radix.bit_length() - 1, "log_columns": columns.bit_length() - 1}
    params = pack(program, **numbers, **logs, share=1, step_rows=0, step_column=0, step_k=0, grid_x=grid[0])
    return Launch(program, params, grid)
