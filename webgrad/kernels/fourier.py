"""Which kernels transform rows of complex numbers: passes over memory, or through workgroups' own.

In: profile, dtype and sizes, the length a power of two. Out: a `LaunchPlan` over the buffers SOURCE, RESULT
and one temporary. The invariant: every pass reads one buffer and writes another, the last one RESULT.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from webgrad.errors import ShapeError
from webgrad.kernels.launch import Launch, ceil_div, grid_for, has_workgroups, pack
from webgrad.kernels.ordering import LaunchPlan, LaunchStep
from webgrad.runtime.profile import DeviceProfile
from webgrad.wgsl import load_template

__all__ = ["RESULT", "SOURCE", "SPARE", "fourier_launches"]

SOURCE, RESULT, SPARE = 0, 1, 2  # numbers of a transform's buffers

SOFTWARE_RADIX = 4  # bits: 16 elements in registers
SOFTWARE_THREADS = 512  # at most: a workgroup is slow to start, so each thread takes several columns
SOFTWARE_WIDTH, GPU_WIDTH = 8, 64  # threads to a workgroup of passes over memory
GROUP_BYTES = 16384  # of workgroup memory, which every WebGPU device has
GROUP_RADIX = 8  # bits: more would leave too few columns side by side for memory to be read in long pieces


@lru_cache(maxsize=1024)
def fourier_launches(
    profile: DeviceProfile, dtype: str, rows: int, length: int, inverse: bool = False, scale: float = 1.0
) -> LaunchPlan:
    """The transforms of (rows, length) complex numbers with parts of a dtype, f32 or f64, times a scale."""
    if rows < 0 or length < 2 or length & (length - 1) or rows * length >= 2**31:
        raise ShapeError(
            f"fft of ({rows}, {length}) numbers: kernels take lengths of 2, 4, 8 and so on, and fewer than "
            "2147483648 numbers"
        )
    if rows == 0:
        return LaunchPlan(())
    bits = length.bit_length() - 1
    held = GROUP_BYTES // (16 if dtype == "f64" else 8)
    in_groups = has_workgroups(profile)
    if in_groups:
        radices = [bits] if length <= held else _even(bits, GROUP_RADIX)
    else:
        radices = _even(bits, SOFTWARE_RADIX)
    steps: list[LaunchStep] = []
    span = 0
    for at, radix in enumerate(radices):
        sizes = {
            "count": rows << (bits - radix),
            "stride": 1 << (bits - radix),
            "log_stride": bits - radix,
            "radix": 1 << radix,
            "log_radix": radix,
            "span": 1 << span,
            "turn": (32 - span - radix) % 32,
            "sign": -1.0 if inverse else 1.0,
            **_scale_parts(scale if at == len(radices) - 1 else 1.0),
        }
        launch = (_by_groups if in_groups else _by_threads)(profile, dtype, sizes, held)
        rest = len(radices) - 1 - at
        source = SOURCE if at == 0 else SPARE if rest % 2 == 0 else RESULT
        steps.append(LaunchStep(launch, (source, RESULT if rest % 2 == 0 else SPARE)))
        span += radix
    nbytes = rows * length * (16 if dtype == "f64" else 8)
    return LaunchPlan(tuple(steps), (nbytes,) if len(steps) > 1 else ())


def _scale_parts(scale: float) -> dict[str, float]:
    """A number as a sum of floats of single precision."""
    parts = {}
    for name in ("scale", "scale_more", "scale_rest"):
        (parts[name],) = struct.unpack("<f", struct.pack("<f", scale))
        scale -= parts[name]
    return parts


def _even(bits: int, most: int) -> list[int]:
    """So many bits in as few parts as can be, all about alike, the larger ones first."""
    count = ceil_div(bits, most)
    return [ceil_div(bits - at, count) for at in range(count)]


def _by_threads(profile: DeviceProfile, dtype: str, sizes: dict[str, float], held: int) -> Launch:
    """A pass over memory, columns dealt out to threads."""
    software = profile.kind == "software"
    width = SOFTWARE_WIDTH if software else GPU_WIDTH
    defines: dict[str, str | int] = {"T": dtype, "RADIX": int(sizes["radix"])}
    if not software:
        defines["WIDTH"] = width
    elif dtype == "f32" and "int64" in profile.features:
        defines["B64"] = 1
    program = load_template("fourier.pwgsl", "fourier_pass", **defines)
    count = int(sizes["count"])
    share = max(1, ceil_div(count, SOFTWARE_THREADS)) if software else 1
    grid = grid_for(profile, ceil_div(count, width * share))
    params = pack(program, **sizes, columns=1, log_columns=0, share=share, grid_x=grid[0])
    return Launch(program, params, grid)


def _by_groups(profile: DeviceProfile, dtype: str, sizes: dict[str, float], held: int) -> Launch:
    """A pass through workgroup memory, as many columns to a workgroup as it holds."""
    program = load_template("fourier.pwgsl", "fourier_group", T=dtype)
    columns = held // int(sizes["radix"])
    grid = grid_for(profile, ceil_div(int(sizes["count"]), columns))
    params = pack(
        program, **sizes, columns=columns, log_columns=columns.bit_length() - 1, share=1, grid_x=grid[0]
    )
    return Launch(program, params, grid)
