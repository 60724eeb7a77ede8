"""Sorts and scatters: hand-written kernels over whole values, as launches of a plan.

In: a group around a sort or a scatter. Out: `Emitted` launches. A sort's temporaries become new values of the
graph.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from .. import dtypes
from ..graph.node import signature
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot
from ..kernels.launch import Launch
from ..kernels.ordering import TEMPORARIES, scatter_launch, sort_launches
from ..runtime.profile import DeviceProfile
from ..schedule.plan import Group
from .emit import Bound, Emitted
from .ir import Buffer, Kernel, Template

__all__ = ["scatter_kernels", "sort_kernels"]

_NO_SCALARS = struct.Struct("<")


def sort_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Emitted]:
    """The launches that give the order of keys along their last axis."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    length = sig.shape[-1] if sig.shape else 1
    plan = sort_launches(profile, math.prod(sig.shape[:-1]), length)
    numbers = [graph.inputs[output][0], output]
    assert len(numbers) == TEMPORARIES
    numbers += [
        graph.add(signature(LEAF, (nbytes // 4,), dtypes.uint32, sig.device), ())
        for nbytes in plan.temporary_bytes
    ]
    return [
        _emitted(graph, "sort", step.launch, [numbers[each] for each in step.buffers]) for step in plan.steps
    ]


def scatter_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Emitted]:
    """The launch that writes rows to computed places."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    base, index, updates = graph.inputs[output]
    how = sig.op.name.removeprefix("scatter_")
    count = graph.sigs[index].size
    launch = scatter_launch(profile, how, sig.dtype.name, *sig.shape, count)
    return [_emitted(graph, sig.op.name, launch, [base, index, updates, output])]


def _emitted(graph: Snapshot, name: str, launch: Launch, values: Sequence[int]) -> Emitted:
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
        updates=name == "sort",  # its temporaries are written again and again
        in_place=launch.in_place,
    )
