"""In place: the variant of a map's kernel whose results are written where it reads the leaves they replace.

In: the groups of a launch, and its kernel. Out: which results may take the storage of which leaves, and the
kernel that does so. Only flat maps: a thread reads an element and writes to its place, and nobody else does
either. An optimiser's step over parameters and their state is such a launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..graph.snapshot import Snapshot
from ..schedule.plan import Group, is_flat, picked
from .ir import Instruction, Kernel


def in_place_results(graph: Snapshot, groups: Sequence[Group]) -> dict[int, int]:
    """Of the graph's donations, those that one launch of these groups can take: {result: leaf}."""
    readers = Counter(each for group in groups for each in group.reads)
    found: dict[int, int] = {}
    for group in groups:
        if group.kind == "map" and is_flat(graph, group):
            elsewhere = _read_elsewhere(graph, group)
            for output in group.outputs:
                leaf = graph.donations.get(output, -1)
                if (
                    leaf in group.reads
                    and readers[leaf] == 1
                    and leaf not in elsewhere
                    and _is_alike(graph, leaf, output)
                ):
                    found[output] = leaf
    return found


def _read_elsewhere(graph: Snapshot, group: Group) -> set[int]:
    """What another thread may have written to before it is read: what single elements are taken from, and
    what that is computed from.
    """
    found, waiting = set[int](), picked(graph, group)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += graph.inputs[each] if each in group.inside else ()
    return found


def _is_alike(graph: Snapshot, leaf: int, result: int) -> bool:
    before, after = graph.sigs[leaf], graph.sigs[result]
    return before.shape == after.shape and before.dtype is after.dtype


def in_place_kernel(kernel: Kernel, results: dict[int, int]) -> Kernel:
    """The kernel that loads the leaves from where the results go."""
    numbers = {buffer.value: number for number, buffer in enumerate(kernel.buffers)}
    homes = {numbers[leaf]: numbers[result] for result, leaf in results.items()}
    names: dict[int, Instruction] = {}
    body = []
    for each in kernel.body:
        args = tuple(names.get(id(arg), arg) for arg in each.args)
        data = homes.get(each.data, each.data) if each.op == "load" else each.data
        made = names[id(each)] = Instruction(each.op, each.type, args, data)
        body.append(made)
    return replace(kernel, body=tuple(body))
