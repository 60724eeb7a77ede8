"""Sorts, scatters and Fourier transforms: hand-written kernels over whole values, as launches of a plan.

In: a group around one of them. Out: `Emitted` launches. Their temporaries become new values of the
graph.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..errors import DTypeError
from ..graph.node import Signature, signature
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot
from ..kernels.fourier import SPARE, fourier_launches, real_launches
from ..kernels.launch import Launch
from ..kernels.ordering import TEMPORARIES, LaunchPlan, LaunchStep, sort_launches
from ..kernels.scattering import SPARES, scatter_launches
from ..ops.transforms import halves_have_kernels, has_kernels
from ..runtime.profile import DeviceProfile
from ..schedule.plan import Group
from .emit import Bound, Emitted
from .ir import Buffer, Kernel, Template

__all__ = ["fourier_kernels", "scatter_kernels", "sort_kernels"]

_NO_SCALARS = struct.Struct("<")


def sort_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Emitted]:
    """The launches that give the order of keys along their last axis."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    length = sig.shape[-1] if sig.shape else 1
    (bits,) = sig.attributes or (32,)
    plan = sort_launches(profile, math.prod(sig.shape[:-1]), length, bits)
    numbers = [graph.inputs[output][0], output]
    assert len(numbers) == TEMPORARIES
    numbers += _temporaries(graph, plan.temporary_bytes, sig.device)
    return _all_emitted(graph, "sort", plan.steps, numbers)


def _temporaries(graph: Snapshot, sizes: Sequence[int], device: Any) -> list[int]:
    """New values of the graph, of so many bytes."""
    return [graph.add(signature(LEAF, (-(-nbytes // 4),), dtypes.uint32, device), ()) for nbytes in sizes]


def scatter_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Emitted]:
    """The launches that write rows to computed places."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    base, index, updates = graph.inputs[output]
    how = sig.op.name.removeprefix("scatter_")
    count = graph.sigs[index].size
    rows, columns = sig.shape
    plan = scatter_launches(profile, how, sig.dtype.name, rows, columns, count)
    numbers = [base, index, updates, output]
    assert len(numbers) == SPARES
    numbers += _temporaries(graph, plan.temporary_bytes, sig.device)
    return _all_emitted(graph, sig.op.name, plan.steps, numbers)


def fourier_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Emitted]:
    """The launches that transform rows of complex numbers, or real ones."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    (source,) = graph.inputs[output]
    plan = _transform(sig, graph.sigs[source], profile)
    numbers = [source, output]
    assert len(numbers) == SPARE
    numbers += _temporaries(graph, plan.temporary_bytes, sig.device)
    return _all_emitted(graph, "fft", plan.steps, numbers)


def _transform(sig: Signature, source: Signature, profile: DeviceProfile) -> LaunchPlan:
    """A cpu's graph that is to be shown as a GPU's may hold lengths that kernels do not take."""
    dtype = sig.dtype.compute
    if sig.op.name == "fft":
        inverse, scale, axis = sig.attributes
        length, rows, inner = (
            sig.shape[axis],
            math.prod(sig.shape[:axis]),
            math.prod(sig.shape[axis + 1 : -1]),
        )
        if length > 1 and has_kernels(length):
            return fourier_launches(profile, dtype, rows, length, inverse, scale, inner)
    else:
        inverse, scale = sig.op.name == "irfft", sig.attributes[-1]
        real = sig if inverse else source
        length = real.shape[-1]
        if halves_have_kernels(length):
            return real_launches(profile, dtype, real.size // length, length, inverse, scale)
    raise DTypeError(f"{sig!r}: GPUs transform lengths that are products of 2, 3, 5 and 7")


def _all_emitted(
    graph: Snapshot, name: str, steps: Sequence[LaunchStep], numbers: Sequence[int]
) -> list[Emitted]:
    """Launches in order; those that write to what one before them wrote to say so."""
    there: set[int] = set()
    made = []
    for step in steps:
        again = not there.isdisjoint(step.written)
        made.append(_emitted(graph, name, step.launch, [numbers[each] for each in step.buffers], again))
        there.update(step.written)
    return made


def _emitted(graph: Snapshot, name: str, launch: Launch, values: Sequence[int], again: bool) -> Emitted:
    program = launch.program
    written = [binding.access == "read_write" for binding in program.bindings]
    writes = sum(written)
    assert all(written[len(written) - writes :])
    buffers = tuple(
        Buffer(value, graph.sigs[value].dtype, graph.sigs[value].size, changes)
        for value, changes in zip(values, written, strict=True)
    )
    file = program.label.split()[0]
    template = Template(file, program.defines, (), program.requires)
    kernel = Kernel(name, buffers, (), (), program.workgroup_size[0], math.prod(launch.grid), template)
    return Emitted(
        kernel,
        program,
        tuple(map(Bound, values)),
        _NO_SCALARS,
        (),
        launch.params,
        b"",
        launch.grid,
        writes,
        updates=again,
        in_place=launch.in_place,
    )
