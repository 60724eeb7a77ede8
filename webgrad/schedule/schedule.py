"""From a graph to groups: the backend's passes, then choose what is stored, gather each stored node's kernel,
merge what can share one.

In: a `Snapshot`, which the passes rewrite in place, and a device's profile. Out: a `Schedule`.
"""

from __future__ import annotations

from ..device_profile import DeviceProfile
from ..graph.snapshot import Snapshot
from .content import Content
from .fuse import choose_stored, is_source
from .merge import bundle, join_launches, merge
from .passes import GPU_PASSES, Passes
from .plan import Group, GroupKind, Schedule


def schedule(
    graph: Snapshot, profile: DeviceProfile, backend: Passes = GPU_PASSES, *, fuse: bool = True
) -> Schedule:
    """Group the nodes of a graph into kernels. Without `fuse` every node except movements is a kernel."""
    for each in backend.passes:
        each.change(graph, profile)
    stored, contents = choose_stored(
        graph, profile, fuse=fuse, alone=backend.alone, kept=backend.kept, pulls=backend.pulls
    )
    order = graph.order()
    place = {number: at for at, number in enumerate(order)}
    groups = [
        _group(graph, number, stored, contents[number], place, alone=backend.alone(graph.sigs[number]))
        for number in order
        if number in stored
    ]
    if backend.shares_kernels:
        groups = join_launches(graph, groups)
    if fuse:
        groups = merge(graph, groups, profile, rows=backend.shares_kernels)
    bundles = bundle(graph, groups, profile) if fuse else tuple((each,) for each in range(len(groups)))
    return Schedule(graph, tuple(groups), bundles)


def _group(
    graph: Snapshot, root: int, stored: set[int], content: Content, place: dict[int, int], *, alone: bool
) -> Group:
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
    if sig.kind in ("scan", "sort", "scatter", "fft", "kernel") or (sig.kind == "decode" and alone):
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
