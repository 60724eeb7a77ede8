"""From a schedule to launches: every bundle of groups is lowered, goes through the passes, and is written as
text.

In: a `Schedule` and a device's profile. Out: `Launch`es in order, over the graph's values by id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..device_profile import DeviceProfile
from ..errors import DTypeError, WebgradError
from ..graph.node import check_offered
from ..graph.snapshot import Snapshot
from ..kernels.launch import InPlace, Launch
from ..observing import stage
from ..schedule.plan import Group, Schedule
from .attention import attention_choices, lower_attention
from .choices import Choice
from .contract import contraction_choices, lower_contraction
from .domains import lower_maps, lower_rows, row_choices
from .emit import emit
from .in_place import in_place_kernel, in_place_results
from .ir import Kernel, verify
from .passes import PASSES
from .quantised import lower_quantised, quantised_choices
from .scan import lower_scan
from .structures import alias_of, renumbered, structure
from .whole_values import fourier_kernels, scatter_kernels, sort_kernels, user_kernels

LEAST_TUNED = 1 << 14  # elements that a kernel touches, from which its choice may matter
Pass = Callable[[Kernel], Kernel]
# Gives the choice for a bundle; None: the default.
Choose = Callable[[Snapshot, tuple[Group, ...]], Choice | None]


def compile_schedule(
    plan: Schedule,
    profile: DeviceProfile,
    *,
    passes: Sequence[Pass] = PASSES,
    check: bool = False,
    offered: bool = True,
    choose: Choose | None = None,
) -> list[tuple[tuple[Group, ...], list[Launch]]]:
    """The launches of each bundle, in order; bundles whose results are empty have none.

    With `offered`, an op that GPUs do not offer is an error; without, it has no launches. `choose` gives the
    choice for a bundle.
    """
    made = []
    done: dict[object, tuple[tuple[int, ...], list[Launch]]] = {}
    for bundle in plan.bundles:
        groups = tuple(plan.groups[each] for each in bundle)
        try:
            choice = None if choose is None else choose(plan.graph, groups)
            code, numbers = structure(plan.graph, groups)
            alike = None if groups[0].kind in _WHOLE else done.get((code, choice))
            if alike is not None:
                made.append((groups, renumbered(alike[1], alike[0], numbers)))
                continue
            launches = compile_bundle(plan.graph, groups, profile, passes=passes, check=check, choice=choice)
            done[code, choice] = numbers, launches
        except WebgradError as error:
            if offered or not isinstance(error, DTypeError):
                error.value = groups[0].outputs[0]  # type: ignore[attr-defined]  # the value that failed
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
    choice: Choice | None = None,
) -> list[Launch]:
    """The launches of a bundle, by one of its choices."""
    live = [group for group in groups if graph.sigs[group.outputs[0]].size]
    if not live:
        return []
    _check_types(graph, live)
    if live[0].kind in _WHOLE:
        with stage("lower"):
            launches = _WHOLE[live[0].kind](graph, live[0], profile, *_given(choice))
        return [replace(each, choice=choice) for each in launches]
    if alias_of(graph, live) is not None:
        return []
    with stage("lower"):
        kernel = lower_bundle(graph, live, profile, choice)
        if check:
            verify(kernel)
        for each in passes:
            kernel = each(kernel)
            if check:
                verify(kernel)
    with stage("emit"):
        launch = emit(kernel, profile)
        in_place = _in_place(graph, live, kernel, launch, profile)
    return [replace(launch, choice=choice, in_place=in_place)]


def _in_place(
    graph: Snapshot, groups: list[Group], kernel: Kernel, launch: Launch, profile: DeviceProfile
) -> tuple[InPlace, ...]:
    """The variant whose results take the storage of leaves that they replace, if there are such results."""
    results = in_place_results(graph, groups)
    if not results or any(each.nbytes for each in launch.bound):
        return ()
    variant = emit(in_place_kernel(kernel, results), profile)
    if variant.params != launch.params or variant.more != launch.more:
        return ()
    places = {each.value: at for at, each in enumerate(launch.bound)}
    pairs = tuple((places[leaf], places[result]) for result, leaf in results.items())
    return ((pairs, variant.program),)


def choices_of(graph: Snapshot, groups: Sequence[Group], profile: DeviceProfile) -> tuple[Choice, ...]:
    """The choices of a bundle, the default first; none where there is only one way."""
    group = groups[0]
    touched = sum(graph.sigs[each].size for each in (*group.reads, *group.outputs))
    offered = _CHOICES.get(_row(graph, group))
    if offered is None or len(groups) > 1 or touched < LEAST_TUNED or not graph.sigs[group.outputs[0]].size:
        return ()
    found = tuple(dict.fromkeys(offered(graph, group, profile)))
    return found if len(found) > 1 else ()


def lower_bundle(
    graph: Snapshot, groups: list[Group], profile: DeviceProfile, choice: Choice | None = None
) -> Kernel:
    """Kernel IR for groups that share a launch."""
    group = groups[0]
    if group.kind == "map":
        return lower_maps(graph, groups, profile)
    return _LOWER[_row(graph, group)](graph, group, profile, *_given(choice))


def _row(graph: Snapshot, group: Group) -> str:
    """The key of a group in the tables below: its main op, or its kind."""
    name = graph.sigs[group.center].op.name if group.center >= 0 else ""
    return name if name in _LOWER else group.kind


def _given(choice: Choice | None) -> tuple[Choice, ...]:
    """A choice as extra arguments: only a lowering that offers choices takes one."""
    return () if choice is None else (choice,)


_WHOLE: dict[str, Callable[..., list[Launch]]] = {
    "sort": sort_kernels,
    "scatter": scatter_kernels,
    "fft": fourier_kernels,
    "kernel": user_kernels,
}
_LOWER: dict[str, Callable[..., Kernel]] = {
    "rows": lower_rows,
    "scan": lower_scan,
    "contract": lower_contraction,
    "attend": lower_attention,
    "matmul_blocks": lower_quantised,
}
_CHOICES: dict[str, Callable[[Snapshot, Group, DeviceProfile], tuple[Choice, ...]]] = {
    "rows": row_choices,
    "contract": contraction_choices,
    "attend": attention_choices,
    "matmul_blocks": quantised_choices,
}


def _check_types(graph: Snapshot, groups: list[Group]) -> None:
    """Refuse dtypes that GPUs do not compute: a cpu's graph that is shown as theirs may have them."""
    for group in groups:
        for number in group.inside:
            if graph.sigs[number].kind == "map":
                check_offered(graph.sigs[number].op, graph.sigs[graph.inputs[number][-1]].dtype)
