"""In place: a kernel whose results are written where the values lie that they replace.

In: the groups of a launch, and its kernel. Out: which result may take over which value's memory, and the
kernel that does so. Only flat maps: a thread reads an element and writes to its place, and nobody else does
either. An optimiser's step over parameters and their state is such a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph.snapshot import Snapshot
from ..schedule.plan import Group, is_flat
from .ir import Instruction, Kernel

__all__ = ["overwriting", "replaced_values"]


def replaced_values(graph: Snapshot, groups: Sequence[Group]) -> dict[int, int]:
    """For the results of a launch the leaves that they may replace, each the nearest one that is like it.

    A new average is nearest to the old one, and a new parameter to the old one: what replaces each other lies
    in the same memory again at the next step.
    """
    readers: dict[int, int] = {}
    for group in groups:
        for each in group.reads:
            readers[each] = readers.get(each, 0) + 1
    found: dict[int, int] = {}
    for group in groups:
        if group.kind != "map" or not is_flat(graph, group):
            continue
        taken: set[int] = set()
        for output in group.outputs:
            for each in _nearest(graph, group, output):
                alike = _sig(graph, each) == _sig(graph, output)
                if alike and graph.sigs[each].kind == "leaf" and readers[each] == 1 and each not in taken:
                    taken.add(each)
                    found[output] = each
                    break
    return found


def _sig(graph: Snapshot, number: int) -> tuple[object, ...]:
    sig = graph.sigs[number]
    return sig.shape, sig.dtype


def _nearest(graph: Snapshot, group: Group, output: int) -> list[int]:
    """What a group reads for one of its results, the nearest first."""
    reads, inside = set(group.reads), set(group.inside)
    found: list[int] = []
    line, seen = [output], {output}
    for number in line:
        for each in graph.inputs[number] if number in inside else ():
            if each not in seen:
                seen.add(each)
                line.append(each)
                if each in reads:
                    found.append(each)
    return found


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
