"""From a graph to groups: split, choose what is stored, gather each stored node's kernel, merge what can
share one.

In: a `Snapshot` (whose folds are rewritten in place) and a device's profile. Out: a `Schedule`.
"""

from __future__ import annotations

from ..graph.snapshot import Snapshot
from ..runtime.profile import DeviceProfile
from .attend import split_attention
from .fuse import Content, choose_stored, is_source
from .merge import bundle, merge
from .packed import keep_packed
from .plan import Group, GroupKind, Schedule
from .rewrite import rewrite
from .scans import split_scans
from .share import share_equals
from .split import split_folds
from .split_products import split_products
from .turn import turn_products

__all__ = ["schedule"]


def schedule(graph: Snapshot, profile: DeviceProfile, *, fuse: bool = True, split: bool = True) -> Schedule:
    """Group the nodes of a graph into kernels.

    Without `fuse` every node but a movement is a kernel; without `split` ops stay as they are, for NumPy.
    """
    share_equals(graph)
    keep_packed(graph, profile)
    turn_products(graph)
    if split:
        rewrite(graph)
        split_products(graph, profile)
        split_scans(graph, profile)
        split_attention(graph, profile)
        split_folds(graph, profile)
    stored, contents = choose_stored(graph, profile, fuse=fuse)
    order = graph.order()
    place = {number: at for at, number in enumerate(order)}
    groups = [_group(graph, number, stored, contents[number], place) for number in order if number in stored]
    if fuse:
        groups = merge(graph, groups, profile, rows=split)
    bundles = bundle(graph, groups, profile) if fuse else tuple((each,) for each in range(len(groups)))
    return Schedule(graph, tuple(groups), bundles)


def _group(graph: Snapshot, root: int, stored: set[int], content: Content, place: dict[int, int]) -> Group:
    inside: list[int] = []
    reads: dict[int, None] = {}
    scalars: dict[int, None] = {}
    seen: set[int] = set()
    stack = [root]
    while stack:
        number = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        inside.append(number)
        for each in graph.inputs[number]:
            if graph.sigs[each].kind == "scalar":
                scalars[each] = None
            elif is_source(graph.sigs[each]) or each in stored:
                reads[each] = None
            else:
                stack.append(each)
    sig = graph.sigs[root]
    kind: GroupKind = content.kind
    center = content.center
    if sig.kind in ("scan", "sort", "scatter", "fft"):
        kind, center = sig.kind, root
    inside.sort(key=place.__getitem__)
    return Group(
        kind,
        (root,),
        tuple(inside),
        tuple(reads),
        tuple(scalars),
        (tuple(sorted(content.rows or ())),) if kind == "rows" else (),
        center,
    )
