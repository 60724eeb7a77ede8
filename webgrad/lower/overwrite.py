"""In place: kernels that write results over the values that they replace.

In: the groups of a launch, which result replaces which value, and its kernel. Out: which result may reuse its
value's memory, and the kernel that does so. Only flat maps: a thread reads an element and writes to the same
index, which no other thread uses. An optimiser's step over parameters and their state is such a launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..graph.snapshot import Snapshot
from ..schedule.plan import Group, is_flat, picked
from .ir import Instruction, Kernel

__all__ = ["overwriting", "replaced_values"]


def replaced_values(graph: Snapshot, groups: Sequence[Group], wanted: Mapping[int, int]) -> dict[int, int]:
    """The results of a launch that may replace a value in place: {result: value}."""
    readers = Counter(each for group in groups for each in group.reads)
    found: dict[int, int] = {}
    for group in groups:
        if group.kind == "map" and is_flat(graph, group):
            elsewhere = picked(graph, group)  # read at indices that another thread may have written
            for output in group.outputs:
                old = wanted.get(output, -1)
                if (
                    old in group.reads
                    and readers[old] == 1
                    and old not in elsewhere
                    and _is_alike(graph, old, output)
                ):
                    found[output] = old
    return found


def _is_alike(graph: Snapshot, old: int, new: int) -> bool:
    before, after = graph.sigs[old], graph.sigs[new]
    return before.shape == after.shape and before.dtype is after.dtype


def overwriting(kernel: Kernel, replaced: dict[int, int]) -> Kernel:
    """The kernel that loads the replaced values from where the results go."""
    numbers = {buffer.value: number for number, buffer in enumerate(kernel.buffers)}
    homes = {numbers[old]: numbers[new] for new, old in replaced.items()}
    names: dict[int, Instruction] = {}
    body = []
    for each in kernel.body:
        args = tuple(names.get(id(arg), arg) for arg in each.args)
        data = homes.get(each.data, each.data) if each.op == "load" else each.data
        made = names[id(each)] = Instruction(each.op, each.type, args, data)
        body.append(made)
    return replace(kernel, body=tuple(body))
