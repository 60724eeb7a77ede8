"""Groups of one structure are lowered once: the layers of a model are alike.

In: a graph and the groups of a launch. Out: their structure, without node ids, and these ids in order; and
the launches of one such bundle as those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..graph.snapshot import Snapshot
from ..schedule.plan import Group

if TYPE_CHECKING:  # the cpu's plans need no launches
    from ..kernels.launch import Launch


def structure(graph: Snapshot, groups: Sequence[Group]) -> tuple[tuple[object, ...], tuple[int, ...]]:
    """What lowering uses of groups: two bundles with equal structures have the same kernel, over the node ids
    that are returned with them.
    """
    places: dict[int, int] = {}
    code: list[object] = []

    def note(numbers: Sequence[int]) -> None:
        code.append(len(numbers))
        for number in numbers:
            if number not in places:
                places[number] = len(places)
                code.append(graph.sigs[number].number)
            code.append(places[number])

    for group in groups:
        code += (group.kind, group.row_axes)
        note(group.reads)
        note(group.scalars)
        for number in group.inside:
            note((*graph.inputs[number], number))
        note(group.outputs)
        if group.center >= 0:
            note((group.center,))
        code += [places.get(graph.donations.get(each, -1), -1) for each in group.outputs]
    return tuple(code), tuple(places)


def alias_of(graph: Snapshot, groups: Sequence[Group]) -> tuple[int, int] | None:
    """(result, value) where a group only reshapes a value: both have the same memory."""
    group = groups[0]
    if len(groups) > 1 or group.kind != "map" or len(group.outputs) > 1 or len(group.reads) != 1:
        return None
    if any(graph.sigs[each].op.name != "reshape" for each in group.inside):
        return None
    return group.outputs[0], group.reads[0]


def renumbered(launches: Sequence[Launch], old: Sequence[int], new: Sequence[int]) -> list[Launch]:
    """The launches of one bundle over the values of another of the same structure."""
    names = dict(zip(old, new, strict=True))
    made = []
    for each in launches:
        kernel = replace(
            each.kernel,
            buffers=tuple(replace(one, value=names[one.value]) for one in each.kernel.buffers),
            scalars=tuple((names[number], dtype) for number, dtype in each.kernel.scalars),
        )
        bound = tuple(one._replace(value=names.get(one.value, one.value)) for one in each.bound)
        scalars = tuple(names[number] for number in each.scalars)
        made.append(replace(each, kernel=kernel, bound=bound, scalars=scalars))
    return made
