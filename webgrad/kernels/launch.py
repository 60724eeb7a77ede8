"""One kernel launch as data, and the arithmetic that every chooser shares.

In: sizes and a device's profile, or a lowered kernel's text. Out: `Launch`es: a Program, its packed params,
its grid, and the numbered values that it is over. Invariant: sizes are params, never defines, so
one Program (and one pipeline) serves every shape of its kind, and no grid is larger than the device allows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import NamedTuple

from webgrad.device_profile import DeviceProfile
from webgrad.errors import LaunchError
from webgrad.lower.ir import Kernel
from webgrad.wgsl import Program
from webgrad.wgsl.packing import Packer, packer

# Pairs of bindings (input, output), and the variant in which each output is written where its input lies
Replacing = tuple[tuple[tuple[int, int], ...], Program]
_NO_NUMBERS = struct.Struct("<")
_NOT_LOWERED = Kernel("", (), (), (), 0, 0)


class Bound(NamedTuple):
    """One binding: the value, or the part of it that starts at a byte."""

    value: int
    start: int = 0
    nbytes: int = 0  # 0: all of it


@dataclass(frozen=True, slots=True)
class Launch:
    """A program over numbered values in binding order, inputs first and what is written last.

    Run-time numbers (`scalars`) are packed by `front`; `params` follow them; `more` is uploaded once, where
    parameters are more than travel with a command. `in_place` holds the variants (i, program) whose output
    overwrites input i: one buffer less; None for a program is no launch at all.
    """

    program: Program
    params: bytes
    grid: tuple[int, int, int]
    in_place: tuple[tuple[int, Program | None], ...] = ()
    replacing: Replacing | None = None
    updates: bool = False  # whether it may write to what is there already
    checked: bool | None = None  # whether it keeps the compiler's bounds checks; None: as the device is set
    bound: tuple[Bound, ...] = ()
    front: struct.Struct | Packer = _NO_NUMBERS
    scalars: tuple[int, ...] = ()
    more: bytes = b""
    choice: tuple[tuple[str, int], ...] | None = None  # by which it was made, where that was chosen
    kernel: Kernel = _NOT_LOWERED  # what it was made of

    def over(self, *values: int) -> Launch:
        """The same over whole values with these numbers."""
        return replace(self, bound=tuple(map(Bound, values)))

    @property
    def programs(self) -> tuple[Program, ...]:
        """The program and its variants."""
        return self.program, *(variant for _, variant in self.in_place if variant is not None)

    @property
    def values(self) -> tuple[int, ...]:
        """The numbers of the values, by binding."""
        return tuple(each.value for each in self.bound)

    @property
    def writes(self) -> int:
        """How many of the last bindings are written."""
        return sum(binding.access == "read_write" for binding in self.program.bindings)

    @property
    def written(self) -> tuple[int, ...]:
        """The numbers of the values that it writes to."""
        return self.values[len(self.bound) - self.writes :]


@dataclass(frozen=True, slots=True)
class Launches:
    """Launches in order over numbered buffers: those of the operation first, then temporaries."""

    launches: tuple[Launch, ...]
    temporary_bytes: tuple[int, ...] = ()  # of each temporary


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


def has_workgroups(profile: DeviceProfile) -> bool:
    """Whether kernels with 256 threads and workgroup memory are both possible and worth it."""
    return (
        profile.kind != "software"
        and profile.max_invocations >= 256
        and profile.max_workgroup_storage >= 16384
    )
