"""What a launch must fulfil before it is recorded: every refusal that a command can meet, in one place.

In: the pipeline, buffers, parameters and grid of one launch, and the device's limits. Out: the grid as plain
numbers, or a LaunchError that says what does not fit. The invariant: a launch that passes gives the driver
nothing to refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

from ..errors import LaunchError
from .buffers import Buffer, Virtual
from .pending import Grid
from .pipelines import PADDING, Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the queue must know of its device."""

    max_commands: int
    max_pending_bytes: int
    max_workgroups: int
    max_buffer: int
    max_binding: int
    min_offset: int


def check_launch(
    pipeline: Pipeline,
    buffers: Sequence[Buffer],
    virtuals: Sequence[Virtual],
    params: bytes,
    grid: Sequence[int],
    limits: Limits,
) -> Grid:
    """Refuse a launch that cannot be right; `virtuals` are the records behind the buffers."""
    if not isinstance(pipeline, Pipeline):
        raise LaunchError(f"a {type(pipeline).__name__} is not a pipeline: make one with Device.pipeline")
    _check_counts(pipeline, len(buffers), params)
    _check_sizes(pipeline, buffers, limits.max_binding)
    _check_aliases(pipeline, virtuals)
    return checked_grid(pipeline.program.label, grid, limits.max_workgroups)


def _check_counts(pipeline: Pipeline, count: int, params: bytes) -> None:
    label, program = pipeline.program.label, pipeline.program
    if count != pipeline.arity:
        names = ", ".join(binding.name for binding in program.bindings) or "none"
        raise LaunchError(f"{label} takes {pipeline.arity} buffers ({names}), not {count}")
    if not isinstance(params, bytes):
        raise LaunchError(f"{label}: parameters are given as bytes, not as a {type(params).__name__}")
    if len(params) != pipeline.params_size:
        names = ", ".join(f"{each.name}: {each.type}" for each in program.params) or "none"
        raise LaunchError(
            f"{label} takes {pipeline.params_size} bytes of parameters ({names}), not {len(params)}"
        )


def _check_sizes(pipeline: Pipeline, buffers: Sequence[Buffer], most: int) -> None:
    """Refuse what is too large to be bound, or too small for the least the kernel reads."""
    label = pipeline.program.label
    for binding, buffer in zip(pipeline.program.bindings, buffers, strict=True):
        nbytes, virtual = buffer.nbytes, buffer.virtual
        if nbytes > most:
            raise LaunchError(
                f"{label}: {virtual.describe()} cannot be bound to {binding.name} as a whole: "
                f"this device binds at most {most:,} bytes; bind views of it, one after another"
            )
        if not nbytes and pipeline.exact:
            raise LaunchError(
                f"{label}: {binding.name} is empty, and arrayLength cannot be 0 on a GPU: leave the launch "
                "out, or pass the length as a parameter"
            )
        to_the_byte = pipeline.exact or virtual.view is not None  # else it is padded to PADDING bytes
        bound = -(-nbytes // 4) * 4  # whole words
        if bound < binding.bytes and (binding.bytes > PADDING or (nbytes and to_the_byte)):
            raise LaunchError(
                f"{label}: {binding.name} ({binding.type}) needs {binding.bytes} bytes, not {nbytes}"
            )


def _check_aliases(pipeline: Pipeline, virtuals: Sequence[Virtual]) -> None:
    """WebGPU forbids one buffer as read and as read_write in a dispatch, and parts written that overlap."""
    seen: dict[int, list[tuple[str, int, int]]] = {}
    for virtual, access in zip(virtuals, pipeline.accesses, strict=True):
        size = virtual.size
        base, start, nbytes = (virtual.slot, 0, size) if isinstance(size, int) else size
        others = seen.setdefault(base, [])
        if any(
            "read_write" in (access, other) and (access != other or (start < end and begin < start + nbytes))
            for other, begin, end in others
        ):
            raise LaunchError(
                f"{pipeline.program.label}: one buffer is bound twice and written; "
                "write to a buffer of its own, or use the kernel's in-place variant"
            )
        others.append((access, start, start + nbytes))


def checked_grid(label: str, grid: Sequence[int], most: int) -> Grid:
    """Three counts of workgroups as plain numbers, none of them negative or more than `most`."""
    if len(grid) != 3 or any(not hasattr(count, "__index__") or not 0 <= count <= most for count in grid):
        raise LaunchError(
            f"{label}: a grid of {grid} workgroups is not allowed; each must be from 0 to {most}: use a "
            "second dimension and a linear index for more"
        )
    return index(grid[0]), index(grid[1]), index(grid[2])
