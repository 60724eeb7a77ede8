"""Sorts, scatters, Fourier transforms and users' kernels: programs over whole values, as launches of a plan.

In: a group around one of them. Out: `Launch`es. Their temporaries become new values of the
graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import dtypes
from ..device_profile import DeviceProfile
from ..errors import DTypeError
from ..graph.node import Signature, signature
from ..graph.op import LEAF
from ..graph.snapshot import Snapshot
from ..kernels.fourier import SPARE, fourier_launches, real_launches
from ..kernels.launch import Launch, Launches
from ..kernels.scatters import SPARES, copy_launch, scatter_launches
from ..kernels.sorting import TEMPORARIES, sort_launches
from ..ops.transforms import halves_have_kernels, has_kernels
from ..schedule.plan import Group
from ..wgsl.packing import flat_packer
from .ir import Buffer, Kernel, Template


def sort_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Launch]:
    """The launches that sort keys along their last axis."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    length = sig.shape[-1] if sig.shape else 1
    (bits,) = sig.attributes or (32,)
    plan = sort_launches(profile, math.prod(sig.shape[:-1]), length, bits)
    numbers = [graph.inputs[output][0], output]
    assert len(numbers) == TEMPORARIES
    numbers += _temporaries(graph, plan.temporary_bytes, sig.device)
    return _all_emitted(graph, "sort", plan.launches, numbers)


def _temporaries(graph: Snapshot, sizes: Sequence[int], device: Any) -> list[int]:
    """New values of the graph, of these sizes in bytes."""
    return [graph.add(signature(LEAF, (-(-nbytes // 4),), dtypes.uint32, device), ()) for nbytes in sizes]


def scatter_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Launch]:
    """The launches that write rows to computed indices."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    base, index, updates = graph.inputs[output]
    how = sig.op.name.removeprefix("scatter_")
    count = graph.sigs[index].size
    rows, columns = sig.shape
    plan = scatter_launches(profile, how, sig.dtype, rows, columns, count)
    numbers = [base, index, updates, output]
    assert len(numbers) == SPARES
    numbers += _temporaries(graph, plan.temporary_bytes, sig.device)
    return _all_emitted(graph, sig.op.name, plan.launches, numbers)


def fourier_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Launch]:
    """The launches that transform rows of complex numbers, or real ones."""
    (output,) = group.outputs
    sig = graph.sigs[output]
    (source,) = graph.inputs[output]
    plan = _transform(sig, graph.sigs[source], profile)
    numbers = [source, output]
    assert len(numbers) == SPARE
    numbers += _temporaries(graph, plan.temporary_bytes, sig.device)
    return _all_emitted(graph, "fft", plan.launches, numbers)


def user_kernels(graph: Snapshot, group: Group, profile: DeviceProfile) -> list[Launch]:
    """The launch of a user's kernel, after copies of the start values of its results.

    Results that nothing uses are temporaries.
    """
    sig, inputs = graph.sigs[group.center], graph.inputs[group.center]
    call = sig.attributes[0]
    made = {graph.sigs[each].attributes[1]: each for each in group.outputs}
    for place, (shape, dtype) in enumerate(call.results):
        if place not in made:
            made[place] = graph.add(signature(LEAF, shape, dtype, sig.device), ())
    count = call.reads + len(call.given)
    launches = [
        _emitted(graph, "copy", copy_launch(profile, graph.sigs[source].nbytes), (source, made[place]))
        for place, source in zip(call.given, inputs[call.reads : count], strict=True)
    ]
    values = [*inputs[: call.reads], *[made[place] for place in range(len(call.results))]]
    launch = _emitted(graph, call.program.label, Launch(call.program, b"", call.grid), values)
    return [
        *launches,
        replace(launch, front=flat_packer(call.program), scalars=inputs[count:], checked=True),
    ]


def _transform(sig: Signature, source: Signature, profile: DeviceProfile) -> Launches:
    """The launches of a transform; a cpu's graph shown as a GPU's may have lengths without kernels."""
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
    graph: Snapshot, name: str, launches: Sequence[Launch], numbers: Sequence[int]
) -> list[Launch]:
    """Launches in order, over the ids of an operation's buffers."""
    return [_emitted(graph, name, each, [numbers[value] for value in each.values]) for each in launches]


def _emitted(graph: Snapshot, name: str, launch: Launch, values: Sequence[int]) -> Launch:
    """A launch over values of the graph."""
    program = launch.program
    written = [binding.access == "read_write" for binding in program.bindings]
    assert all(written[len(written) - launch.writes :])
    buffers = tuple(
        Buffer(value, graph.sigs[value].dtype, graph.sigs[value].size, changes)
        for value, changes in zip(values, written, strict=True)
    )
    file = program.label.partition(" ")[0]
    template = Template(file, program.defines, (), program.requires)
    kernel = Kernel(name, buffers, (), (), program.workgroup_size[0], math.prod(launch.grid), template)
    return replace(launch.over(*values), kernel=kernel)
