"""From a schedule to launches: every bundle of groups lowered, passed through the passes, and written as
text.

In: a `Schedule` and a device's profile. Out: `Launch`es in order, over the graph's numbered values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import DTypeError, WebgradError
from ..graph.node import check_offered
from ..graph.snapshot import Snapshot
from ..runtime.profile import DeviceProfile
from ..schedule.plan import Group, Schedule
from .attention import lower_attention
from .contract import lower_contraction
from .domains import lower_maps, lower_rows, lower_scan
from .emit import Emitted, emit
from .ir import Kernel, verify
from .ordering import scatter_kernels, sort_kernels
from .passes import PASSES

__all__ = ["alias_of", "compile_bundle", "compile_schedule", "lower_bundle"]

Pass = Callable[[Kernel], Kernel]


def compile_schedule(
    plan: Schedule,
    profile: DeviceProfile,
    *,
    passes: Sequence[Pass] = PASSES,
    check: bool = False,
    offered: bool = True,
) -> list[tuple[tuple[Group, ...], list[Emitted]]]:
    """The launches of each bundle, in order; bundles whose results are empty have none.

    With `offered` what GPUs do not offer is an error; without, it has no launches.
    """
    made = []
    for bundle in plan.bundles:
        groups = tuple(plan.groups[each] for each in bundle)
        try:
            launches = compile_bundle(plan.graph, groups, profile, passes=passes, check=check)
        except WebgradError as error:
            if offered or not isinstance(error, DTypeError):
                error.value = groups[0].outputs[0]  # type: ignore[attr-defined]  # which is to blame
                raise
            launches = []
        made.append((groups, launches))
    return made


def compile_bundle(
    graph: Snapshot,
    groups: tuple[Group, ...],
    profile: DeviceProfile,
    *,
    passes: Sequence[Pass] = PASSES,
    check: bool = False,
) -> list[Emitted]:
    """The launches of groups that go together."""
    live = [group for group in groups if graph.sigs[group.outputs[0]].size]
    if not live:
        return []
    _check_types(graph, live)
    if live[0].kind in _WHOLE:
        return _WHOLE[live[0].kind](graph, live[0], profile)
    if alias_of(graph, live) is not None:
        return []
    kernel = lower_bundle(graph, live, profile)
    if check:
        verify(kernel)
    for each in passes:
        kernel = each(kernel)
        if check:
            verify(kernel)
    return [emit(kernel, profile)]


def lower_bundle(graph: Snapshot, groups: list[Group], profile: DeviceProfile) -> Kernel:
    """Kernel IR for groups that share a launch."""
    group = groups[0]
    if group.kind == "map":
        return lower_maps(graph, groups, profile)
    return _LOWER[group.kind](graph, group, profile)


def alias_of(graph: Snapshot, groups: Sequence[Group]) -> tuple[int, int] | None:
    """(result, value) where a group only gives a value another shape: both have the same memory."""
    group = groups[0]
    if len(groups) > 1 or group.kind != "map" or len(group.outputs) > 1 or len(group.reads) != 1:
        return None
    if any(graph.sigs[each].op.name != "reshape" for each in group.inside):
        return None
    return group.outputs[0], group.reads[0]


_WHOLE = {"sort": sort_kernels, "scatter": scatter_kernels}
_LOWER = {"rows": lower_rows, "scan": lower_scan, "contract": lower_contraction, "attend": lower_attention}


def _check_types(graph: Snapshot, groups: list[Group]) -> None:
    """Refuse what GPUs do not compute: a cpu's graph that is to be shown as theirs may hold it."""
    for group in groups:
        for number in group.inside:
            if graph.sigs[number].kind == "map":
                check_offered(graph.sigs[number].op, graph.sigs[graph.inputs[number][-1]].dtype)
