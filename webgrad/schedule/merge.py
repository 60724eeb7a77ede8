"""Merging: maps over the same elements become one kernel with several outputs, and independent
maps of one structure (an optimiser's step over all parameters) become one launch.

In: groups in order. Out: fewer groups, and bundles of groups that are launched together. The invariant:
nothing is merged across a dependency through another kernel.
"""

from __future__ import annotations

from dataclasses import replace

from ..device_profile import MAX_PARAMS, DeviceProfile
from ..graph.snapshot import Snapshot
from .fuse import MAX_SCALARS
from .plan import Group, bindings_of, folded_along, goes_by_element, goes_by_fours, is_flat, picked
from .size import MAX_SIZE, group_size

SIZE_WORDS = 8  # parameters of a flat map, at most, that are neither numbers nor indices
MAX_COMMAND_WORDS = MAX_PARAMS // 4 - SIZE_WORDS  # numbers and indices, if all parameters fit into a command


def join_launches(graph: Snapshot, groups: list[Group]) -> list[Group]:
    """Results of one launch of a user's kernel become one group, at the position of the first of them."""
    made: list[Group] = []
    places: dict[object, int] = {}
    for group in groups:
        if group.kind == "kernel":
            call, place = graph.sigs[group.center].attributes
            key = call, graph.inputs[group.center]
            at = places.get(key)
            if at is not None and all(graph.sigs[each].attributes[1] != place for each in made[at].outputs):
                made[at] = replace(
                    made[at],
                    outputs=made[at].outputs + group.outputs,
                    inside=made[at].inside + group.inside,
                )
                continue
            places[key] = len(made)
        made.append(group)
    return made


def merge(graph: Snapshot, groups: list[Group], profile: DeviceProfile, *, rows: bool = True) -> list[Group]:
    """Join map groups of one shape where one reads the other's elements in place, or both read the same; and
    with `rows`, groups that fold the same rows of something.
    """
    made: list[Group] = []
    home: dict[int, int] = {}  # stored node → group
    above: list[int] = []  # of each group, as bits: the groups that it depends on, directly or not
    for group in groups:
        needs = 0
        direct = {home[each] for each in group.reads if each in home}
        for each in direct:
            needs |= above[each] | 1 << each
        may = group.kind == "map" or (rows and group.kind == "rows")
        target = _partner(graph, made, above, group, direct, profile) if may else None
        if target is None:
            target = len(made)
            made.append(group)
            above.append(needs)
        else:
            made[target] = _joined(made[target], group)
            more = needs & ~(1 << target) & ~above[target]
            above[target] |= more
            for other in (
                range(len(made)) if more else ()
            ):  # an earlier group may depend on it, by an earlier merge
                if above[other] >> target & 1:
                    above[other] |= more
        for each in group.outputs:
            home[each] = target
    return _sorted(made)


def _partner(
    graph: Snapshot,
    made: list[Group],
    above: list[int],
    group: Group,
    direct: set[int],
    profile: DeviceProfile,
) -> int | None:
    for target in range(len(made) - 1, max(-1, len(made) - 64), -1):
        other = made[target]
        if other.kind != group.kind:
            continue
        if not (_meet_in_rows if group.kind == "rows" else _meet)(graph, other, group, target in direct):
            continue
        if any(each != target and above[each] >> target & 1 for each in direct):
            continue  # depends on it through another kernel
        both = _joined(other, group)
        if _bindings(graph, [both], profile) > profile.max_storage_buffers:
            continue
        if len(both.scalars) > MAX_SCALARS or group_size(graph, both) > MAX_SIZE:
            continue
        return target
    return None


def _meet(graph: Snapshot, other: Group, group: Group, is_read: bool) -> bool:
    """Whether two maps have the same elements, and share loads."""
    if graph.sigs[other.outputs[0]].shape != graph.sigs[group.outputs[0]].shape:
        return False
    if not _stored_alike(graph, (*other.outputs, *group.outputs)):
        return False
    if set(other.outputs) & set(group.reads) and not _reads_own(graph, group, set(other.outputs)):
        return False
    return is_read or _share(graph, other, group)


def _stored_alike(graph: Snapshot, outputs: tuple[int, ...]) -> bool:
    """Whether results fit into one kernel: packed ones are stored by fours, also where the last are fewer,
    and four of 64 bits are then more than the padding of a buffer.
    """
    widths = {graph.sigs[each].dtype.itemsize for each in outputs}
    return graph.sigs[outputs[0]].size % 4 == 0 or 8 not in widths or min(widths) >= 4


def _meet_in_rows(graph: Snapshot, other: Group, group: Group, is_read: bool) -> bool:
    """Whether two groups fold the same rows: of one value, along the same axes, for results of words."""
    if is_read or not _share(graph, other, group) or _row_sizes(graph, other) != _row_sizes(graph, group):
        return False
    for each in (other, group):
        if any(graph.sigs[one].op.name == "window" for one in each.inside):
            return False  # folds over windows are written out
        if any(graph.sigs[one].dtype.is_packed for one in each.outputs):
            return False
    return folded_along(graph, other) == folded_along(graph, group)


def _row_sizes(graph: Snapshot, group: Group) -> list[int]:
    shape = graph.sigs[group.outputs[0]].shape
    return [shape[axis] for axis in group.row_axes[0]]


def _share(graph: Snapshot, first: Group, second: Group) -> bool:
    """Whether both read one value, so that one kernel saves loads; a shared scalar saves none."""
    alone = graph.sigs[first.outputs[0]].size == 1
    return any(alone or graph.sigs[each].size > 1 for each in set(first.reads) & set(second.reads))


def _joined(first: Group, second: Group) -> Group:
    outputs = (*first.outputs, *second.outputs)
    reads = dict.fromkeys([*first.reads, *second.reads])
    return Group(
        first.kind,
        outputs,
        tuple(dict.fromkeys([*first.inside, *second.inside])),
        tuple(each for each in reads if each not in outputs),
        tuple(dict.fromkeys([*first.scalars, *second.scalars])),
        (*first.row_axes, *second.row_axes),
    )


def _bindings(graph: Snapshot, groups: list[Group], profile: DeviceProfile) -> int:
    """The number of bindings of a launch of these groups; one more may hold parameters. A flat map has few of
    these, unless it takes many single elements of longer values: the index of each is one.
    """
    values = {each for group in groups for each in (*group.reads, *group.outputs)}
    few = len(groups) == 1 and is_flat(graph, groups[0]) and _words(graph, groups[0]) <= MAX_COMMAND_WORDS
    return (not few) + sum(bindings_of(graph.sigs[each], profile) for each in values)


def _words(graph: Snapshot, group: Group) -> int:
    """Parameters of a flat map other than its length: its numbers, and the indices of single elements."""
    numbers: int = sum(max(1, graph.sigs[each].dtype.itemsize // 4) for each in group.scalars)
    return numbers + len(picked(graph, group))


def _reads_own(graph: Snapshot, group: Group, sources: set[int]) -> bool:
    """Whether every thread of a group reads these nodes only at the index that it writes."""
    shape = graph.sigs[group.outputs[0]].shape
    inside = set(group.inside)
    stack = list(group.outputs)
    same: set[int] = set()  # reached element by element
    while stack:
        number = stack.pop()
        if number in same:
            continue
        same.add(number)
        if number in inside and goes_by_element(graph, number):
            stack += [each for each in graph.inputs[number] if graph.sigs[each].shape == shape]
    for number in inside:
        for each in graph.inputs[number]:
            if each in sources and not (
                number in same and goes_by_element(graph, number) and graph.sigs[each].shape == shape
            ):
                return False
    return True


def _sorted(groups: list[Group]) -> list[Group]:
    """Groups in topological order, otherwise in the order given."""
    home = {each: at for at, group in enumerate(groups) for each in group.outputs}
    begun: set[int] = set()
    done: set[int] = set()
    result: list[Group] = []
    stack = list(reversed(range(len(groups))))
    while stack:
        at = stack[-1]
        if at in done:
            stack.pop()
            continue
        waiting = [home[each] for each in groups[at].reads if each in home and home[each] not in done]
        if waiting:
            assert at not in begun, "groups need each other in a ring"  # which would be sorted for ever
            begun.add(at)
            stack += waiting
        else:
            done.add(at)
            result.append(groups[at])
            stack.pop()
    return result


def bundle(graph: Snapshot, groups: list[Group], profile: DeviceProfile) -> tuple[tuple[int, ...], ...]:
    """Group indices by launch: independent map groups of one structure share one, as bindings allow.

    Groups of one level are independent, and groups that no other reads, which may all wait for the last.
    """
    levels = _levels(groups)
    read = {each for group in groups for each in group.reads}
    alike: dict[object, list[int]] = {}
    for at, group in enumerate(groups):
        flat = group.kind == "map" and is_flat(graph, group) and _room(graph, groups, [at], profile)
        flat = flat and not any(
            graph.sigs[each].dtype.itemsize == 8 for each in (*group.reads, *group.outputs)
        )
        level = levels[at] if read.intersection(group.outputs) else 0
        alike.setdefault((level, _structure(graph, group)) if flat else at, []).append(at)
    bundles = [share for members in alike.values() for share in _shared_out(graph, groups, members, profile)]
    last = {each[0]: max(levels[at] for at in each) for each in bundles}
    return tuple(tuple(each) for each in sorted(bundles, key=lambda each: (last[each[0]], each[0])))


def _shared_out(
    graph: Snapshot, groups: list[Group], members: list[int], profile: DeviceProfile
) -> list[list[int]]:
    """Groups of one structure by launch. Vectorised ones come first; others fill their last launch if all of
    them fit, else they get separate launches.
    """
    by_fours = [at for at in members if goes_by_fours(graph, groups[at], profile)]
    others = [at for at in members if at not in set(by_fours)]
    shares: list[list[int]] = []
    for at in by_fours:
        if shares and _room(graph, groups, [*shares[-1], at], profile):
            shares[-1].append(at)
        else:
            shares.append([at])
    if shares and others and _room(graph, groups, [*shares[-1], *others], profile):
        shares[-1] += others
        return [sorted(share) for share in shares]
    most = 1
    while most < len(others) and _room(graph, groups, others[: most + 1], profile):
        most += 1
    each = -(-len(others) // -(-len(others) // most)) if others else 1  # evenly filled
    for start in range(0, len(others), each):
        share = others[start : start + each]
        fits = len(share) == 1 or _room(graph, groups, share, profile)
        shares += [share] if fits else [[at] for at in share]
    return shares


def _levels(groups: list[Group]) -> list[int]:
    home: dict[int, int] = {}
    levels: list[int] = []
    for at, group in enumerate(groups):
        levels.append(1 + max((levels[home[each]] for each in group.reads if each in home), default=0))
        for each in group.outputs:
            home[each] = at
    return levels


def _structure(graph: Snapshot, group: Group) -> tuple[object, ...]:
    """The structure of a group, without its scalars and lengths; from its outputs on, since the order of its
    nodes is that of the whole graph, which may differ between equal groups.
    """
    names: dict[int, int] = {}
    code: list[object] = []
    inside = set(group.inside)
    stack = list(reversed(group.outputs))
    while stack:
        number = stack[-1]
        waiting = [each for each in graph.inputs[number] if each in inside and each not in names]
        if number in names:
            stack.pop()
        elif waiting:
            stack += reversed(waiting)
        else:
            stack.pop()
            sig = graph.sigs[number]
            code.append((sig.op.name, sig.dtype.name, not sig.shape))
            for each in graph.inputs[number]:
                kind = graph.sigs[each].kind
                code.append("s" if kind == "scalar" else names.setdefault(each, len(names)))
            code.append(number in group.outputs)
            names.setdefault(number, len(names))
    return tuple(code)


def _room(graph: Snapshot, groups: list[Group], members: list[int], profile: DeviceProfile) -> bool:
    together = [groups[at] for at in members]
    small = all(
        graph.sigs[each].nbytes <= profile.max_binding_bytes
        for at in members
        for each in (*groups[at].reads, *groups[at].outputs)
    )
    return (
        small
        and len({each for at in members for each in groups[at].scalars}) <= 2 * MAX_SCALARS
        and _bindings(graph, together, profile) <= profile.max_storage_buffers
        and (len(members) == 1 or sum(_size(graph, each, profile) for each in together) <= MAX_SIZE)
    )


def _size(graph: Snapshot, group: Group, profile: DeviceProfile) -> int:
    """The size of a group in a bundle."""
    return group_size(graph, group, 4 if goes_by_fours(graph, group, profile) else 1)
