"""The result of scheduling: groups of nodes, one kernel each, in an order in which they can run.

A group stores its outputs; everything between them and the values it reads is computed inside it. The
invariant: every input of a group is a leaf, a scalar, or an output of a group before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from ..device_profile import DeviceProfile
from ..graph.node import Signature
from ..graph.snapshot import Snapshot

MAX_THIN_ROWS = 8  # rows of A up to which a product is thin: reading B is its whole cost
MIN_VECTOR_SIZE = 1 << 15  # elements from which a map of a bundle goes by fours on software adapters

GroupKind = Literal[
    "map",  # element by element
    "rows",  # folds along axes, with maps before, between and after them
    "contract",  # a matrix product with maps of its operands and result
    "attend",  # attention, with cheap maps of its operands, and maps and permutations of its result
    "scan",  # running totals
    "sort",
    "scatter",
    "fft",
    "decode",  # weights of quantised blocks by themselves
    "kernel",  # a launch of a kernel that a user wrote
]


def bindings_of(sig: Signature, profile: DeviceProfile) -> int:
    """How many bindings a stored value takes: more than one where it is larger than a binding may be."""
    nbytes = int(sig.nbytes)
    return 1 if nbytes <= profile.max_binding_bytes else -(-nbytes // profile.part_bytes)


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that share a kernel.

    `outputs` are stored, those of a map of one shape; `reads` are the stored nodes it takes, `scalars` the
    numbers. `inside` are its nodes, inputs first. `row_axes` (rows): of each output, the axes that its folds
    depend on; the sizes of these are the same for all.
    `center` (contract, attend, scan, sort, scatter, fft, decode, kernel): the main node of the kernel.
    """

    kind: GroupKind
    outputs: tuple[int, ...]
    inside: tuple[int, ...]
    reads: tuple[int, ...]
    scalars: tuple[int, ...]
    row_axes: tuple[tuple[int, ...], ...] = ()
    center: int = -1


@dataclass(frozen=True, slots=True)
class Schedule:
    """Groups in order; `bundles` are runs of them that share one kernel, each a tuple of group indices."""

    graph: Snapshot
    groups: tuple[Group, ...]
    bundles: tuple[tuple[int, ...], ...] = field(default=())


def folded_along(graph: Snapshot, group: Group) -> tuple[bool, int]:
    """Whether a group's folds go along the last axis in memory, and how long the longest is."""
    along, length = False, 1
    for number in group.inside:
        sig = graph.sigs[number]
        if sig.kind == "reduce":
            shape = graph.sigs[graph.inputs[number][0]].shape
            last = [axis for axis, size in enumerate(shape) if size != 1][-1:]
            along = along or not last or last[0] in sig.attributes[0]
            length = max(length, math.prod(shape[axis] for axis in sig.attributes[0]))
    return along, length


def goes_by_fours(graph: Snapshot, group: Group, profile: DeviceProfile) -> bool:
    """Whether a map that shares a launch takes four elements at a time: packed results are whole words.

    It is twice as fast on software adapters, and takes twice as long to compile.
    """
    long = profile.kind == "software" and graph.sigs[group.outputs[0]].size >= MIN_VECTOR_SIZE
    return long or any(graph.sigs[each].dtype.is_packed for each in group.outputs)


def goes_by_element(graph: Snapshot, number: int) -> bool:
    """Whether an element depends only on elements of the same index: a map, or an alias of a value."""
    sig = graph.sigs[number]
    renamed = sig.op.name == "reshape" and graph.sigs[graph.inputs[number][0]].shape == sig.shape
    return sig.kind in ("map", "cast") or renamed


def joins_pairs(graph: Snapshot, number: int) -> bool:
    """Whether a node joins complex numbers from their parts: a concat of two along a last axis of 2."""
    sig = graph.sigs[number]
    return (
        sig.kind == "concat"
        and sig.shape[-1] == 2
        and sig.attributes == (len(sig.shape) - 1,)
        and len(graph.inputs[number]) == 2
    )


def picked(graph: Snapshot, group: Group) -> list[int]:
    """The longer values from which a group takes single elements, once for each element."""
    return [
        each
        for number in group.inside
        if graph.sigs[number].size == 1
        for each in graph.inputs[number]
        if graph.sigs[each].size > 1
    ]


def is_flat(graph: Snapshot, group: Group) -> bool:
    """Whether a map reads everything at the index it writes, or is one number: only the length matters."""
    shape = graph.sigs[group.outputs[0]].shape
    for number in group.inside:
        sig = graph.sigs[number]
        if sig.size == 1:
            fits = sig.kind in ("map", "cast", "move")
        else:
            sources = [graph.sigs[each] for each in graph.inputs[number]]
            fits = sig.shape == shape and goes_by_element(graph, number)
            fits = fits and all(each.shape == shape or each.size == 1 for each in sources)
        if not fits:
            return False
    return True
