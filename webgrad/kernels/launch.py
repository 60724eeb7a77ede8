"""One kernel launch as data, and the arithmetic that every chooser shares.

In: sizes and a device's profile. Out: `Launch`es: a Program, its packed params and its grid. Invariant:
sizes are params, never defines, so one Program (and one pipeline) serves every shape of its kind, and no
grid is larger than the device allows.
"""

from __future__ import annotations

from dataclasses import dataclass

from webgrad.errors import DTypeError, LaunchError
from webgrad.runtime.profile import DeviceProfile
from webgrad.wgsl import Program
from webgrad.wgsl.packing import packer

__all__ = [
    "FLOATS",
    "INTEGERS",
    "Launch",
    "ceil_div",
    "check_dtype",
    "grid_for",
    "has_workgroups",
    "pack",
]

FLOATS = frozenset({"f32", "f16", "bf16"})
INTEGERS = frozenset({"i32", "i16", "i8", "u32", "u16", "u8"})
_SHORT_NAMES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """A program over buffers in binding order, inputs first and the output last.

    `in_place` holds the variants (i, program) whose output overwrites input i: one buffer less; None for a
    program is no launch at all.
    """

    program: Program
    params: bytes
    grid: tuple[int, int, int]
    in_place: tuple[tuple[int, Program | None], ...] = ()

    @property
    def programs(self) -> tuple[Program, ...]:
        """The program and its variants."""
        return self.program, *(variant for _, variant in self.in_place if variant is not None)


def ceil_div(value: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-value // divisor)


def grid_for(profile: DeviceProfile, workgroups: int) -> tuple[int, int, int]:
    """A grid of at least so many workgroups; its first number is the kernels' param `grid_x`."""
    lines = max(1, ceil_div(workgroups, profile.max_workgroups))
    if lines > profile.max_workgroups:
        limit = profile.max_workgroups**2
        raise LaunchError(f"{workgroups:,} workgroups are more than the device's {limit:,}; split the work")
    return ceil_div(workgroups, lines), lines, 1


def pack(program: Program, **values: float) -> bytes:
    """The bytes of a program's params struct; one value for each of its fields, by name."""
    names = [field.name for field in program.params]
    if unknown := values.keys() - set(names):
        raise LaunchError(f"{program.label} has no params {', '.join(sorted(unknown))}")
    if missing := set(names) - values.keys():
        raise LaunchError(f"{program.label} needs the params {', '.join(sorted(missing))}")
    return packer(program).pack(*[values[name] for name in names])


def check_dtype(op: str, dtype: str, offered: frozenset[str]) -> str:
    """A data type's short name ("f32"), given that or NumPy's ("float32"), if the op is offered for it."""
    short = _SHORT_NAMES.get(dtype, dtype)
    if short not in offered:
        raise DTypeError(
            f"{op} is not offered for {dtype}, only for {', '.join(sorted(offered))}; convert it first"
        )
    return short


def has_workgroups(profile: DeviceProfile) -> bool:
    """Whether kernels with 256 threads and workgroup memory are both possible and worth it."""
    return (
        profile.kind != "software"
        and profile.max_invocations >= 256
        and profile.max_workgroup_storage >= 16384
    )
