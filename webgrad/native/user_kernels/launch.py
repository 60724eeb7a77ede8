"""Launches of users' kernels on the cpu, over threads.

In: a Program, its grid, arrays in the order of its bindings, and its packed parameters. Out: nothing; the
arrays that it writes are changed. The invariant: every array has the bytes that its binding needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...arrays import Array, np
from ...errors import LaunchError
from ...ops.user_kernel import KernelCall
from ...wgsl.packing import packer
from ...wgsl.program import Program
from ..compiler import converts_halves, functions
from ..driver import run_alone
from .body import DISAGREED, ENDLESS
from .kernel import MAX_TURNS, written

__all__ = ["check", "computed_natively", "launch"]

_STOPPED = {
    ENDLESS: f"the loops of one workgroup turned more than {MAX_TURNS:,} times: does one never end?",
    DISAGREED: "invocations of a workgroup went different ways around a barrier: all must reach it",
}


def check(program: Program) -> None:
    """Refuse what is not translated."""
    if "f16" in program.requires and not converts_halves():
        raise LaunchError(f"{program.label} computes with f16, which this processor does not convert")
    written(program)


def launch(program: Program, grid: tuple[int, int, int], arrays: Sequence[Array], params: bytes) -> None:
    """Run all workgroups."""
    check(program)
    text, cost = written(program)
    work = functions(text, ["kernel"], program.label)["kernel"]
    padded = [_padded(each) for each in arrays]
    status = np.zeros(1, np.int64)
    numbers = np.frombuffer(params + bytes(16), np.uint8).copy()
    addresses = [each.ctypes.data for each in (status, *padded)]
    sizes = [each.nbytes for each in padded]
    fields = np.array([0, *addresses, *sizes, numbers.ctypes.data, *grid], np.int64)
    run_alone(work, fields.ctypes.data, prod(grid), cost)
    if status[0]:
        raise LaunchError(f"{program.label}: {_STOPPED[int(status[0])]}")
    for binding, array, used in zip(program.bindings, arrays, padded, strict=True):
        if binding.access == "read_write" and used is not array:
            array[...] = used[: array.nbytes].view(array.dtype).reshape(array.shape)


def computed_natively(call: KernelCall, inputs: tuple[Array, ...]) -> list[Array]:
    """All results of a call over tensors."""
    given = [each.astype(dtype.numpy, copy=False) for each, dtype in zip(inputs, call.types, strict=False)]
    results = [np.zeros(shape, dtype.numpy) for shape, dtype in call.results]
    for place, begun in zip(call.given, given[call.reads :], strict=True):
        results[place][...] = begun
    params = packer(call.program).pack(*call.params(inputs).values())
    launch(call.program, call.grid, [*given[: call.reads], *results], params)
    return results


def _padded(array: Array) -> Array:
    """An array whose bytes are whole words, as they are in a GPU's buffers."""
    if array.flags.c_contiguous and array.flags.aligned and array.nbytes % 4 == 0:
        return array
    made = np.zeros(-(-array.nbytes // 4) * 4, np.uint8)
    made[: array.nbytes] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    return made
