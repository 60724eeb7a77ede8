"""Running random programs in every way that must not matter: fused or not, under any passes, for any profile.

In: a program and a way. Out: the values of its roots and held steps, compared with NumPy's; for one that is
wrong, a report with the graph and a smaller program that is wrong too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.properties.helpers import AnyDevice, Array, gpu, on, wide
from tests.properties.programs import Program, Step, Value, allowed, needed, values_of
from webgrad.device_profile import DeviceProfile
from webgrad.errors import BufferError
from webgrad.evaluate.evaluate import clear_plans, evaluate, read
from webgrad.evaluate.gpu_plan import GpuPlan
from webgrad.graph.node import Node
from webgrad.graph.snapshot import Snapshot, snapshot, walk
from webgrad.lower.choices import Choice
from webgrad.lower.compile import choices_of, compile_schedule
from webgrad.lower.passes import PASSES
from webgrad.runtime.webgpu import Device
from webgrad.schedule.pairs import split_pairs
from webgrad.schedule.plan import Group, Schedule

__all__ = ["WAYS", "Way", "difference", "profiled", "report", "wrong"]

Results = dict[int, Array]
Way = Callable[[Program, np.random.Generator], Results]


# Ways to run a program


def _evaluated(program: Program, device: AnyDevice) -> Results:
    """As a user's program would: held nodes are computed when they are asked for, or were stored already."""
    roots, held = program.build(device)
    evaluate(roots)
    nodes = dict(zip((*program.roots, *program.held), (*roots, *held), strict=True))
    return {number: read(node) for number, node in nodes.items()}


def on_cpu(program: Program, random: np.random.Generator) -> Results:
    """By the cpu's own plan."""
    return _evaluated(program, on("cpu"))


def compiled(program: Program, random: np.random.Generator) -> Results:
    """By native code, at once."""
    with patch("webgrad.evaluate.cpu_plan.MUCH", 0), _without_plans():
        return _evaluated(program, on("cpu"))


@contextmanager
def _without_plans() -> Iterator[None]:
    """With none of those that were made before, and leaving none behind."""
    clear_plans()
    yield
    clear_plans()


def fused(program: Program, random: np.random.Generator) -> Results:
    """As every program is run on a GPU."""
    return _evaluated(program, gpu())


def unfused(program: Program, random: np.random.Generator) -> Results:
    """A kernel for each node but movement."""
    return _planned(program, gpu(), fuse=False)


def some_passes(program: Program, random: np.random.Generator) -> Results:
    """Under a choice of the passes, each kernel verified before and after each of them."""
    chosen = tuple(each for each in PASSES if random.random() < 0.5)
    with _compiled_with(passes=chosen, check=True):
        return _planned(program, gpu())


def as_discrete(program: Program, random: np.random.Generator) -> Results:
    """Kernels for a discrete GPU: workgroups that share a row, tiles, one thread per vector."""
    return _planned(program, profiled(kind="discrete", subgroup_size=0))


def as_narrow(program: Program, random: np.random.Generator) -> Results:
    """Kernels for few and small bindings, and short grids: buffers in parts, grids of two sides."""
    largest = max(value.array.nbytes for value in values_of(program))
    half = max(4096, 1 << (largest // 2).bit_length())  # the largest value may come in two parts
    try:
        return _planned(program, _narrow(half))
    except BufferError:  # sorts and scatters take whole values only, and say so
        return _planned(program, _narrow(2 * half))


def _narrow(binding: int) -> Device:
    return profiled(
        kind="discrete",
        subgroup_size=0,
        max_storage_buffers=8,
        max_binding_bytes=binding,
        max_workgroups=64,
    )


def some_choices(program: Program, random: np.random.Generator) -> Results:
    """Every kernel by any of the choices that there are for it, as tuning might have it."""
    device = gpu() if random.random() < 0.5 else profiled(kind="discrete", subgroup_size=0)

    def choose(graph: Snapshot, groups: tuple[Group, ...]) -> Choice | None:
        found = choices_of(graph, groups, device.profile)
        return found[random.integers(len(found))] if found else None

    with patch("webgrad.lower.compile.LEAST_TUNED", 0), _compiled_with(choose=choose, check=True):
        return _planned(program, device)


WAYS: dict[str, Way] = {
    "cpu": on_cpu,
    "compiled": compiled,
    "fused": fused,
    "unfused": unfused,
    "some passes": some_passes,
    "discrete": as_discrete,
    "narrow": as_narrow,
    "some choices": some_choices,
}


def _planned(program: Program, device: Device, *, fuse: bool = True) -> Results:
    """By a plan of its own, so that nothing is taken from another way's."""
    roots, held = program.build(device)
    walked = walk(roots)
    plan = GpuPlan(split_pairs(snapshot(walked, roots)), device, fuse=fuse)
    most = max((len(step.launch.bound) for step in plan.steps if step.pipeline is not None), default=0)
    assert most <= device.profile.max_storage_buffers, (
        f"a kernel has {most} bindings, too many for the profile"
    )
    storage = dict(zip(plan.stored, plan.run(walked.nodes), strict=True))
    numbers = {**dict(zip(program.held, held, strict=True)), **dict(zip(program.roots, roots, strict=True))}
    found: Results = {}
    for number, node in numbers.items():
        place = walked.numbers.get(node)
        if place in storage:
            found[number] = _array(node, device, storage[place])
    return found


def _array(node: Node, device: Device, storage: Any) -> Array:
    array: Array = device.read(storage).view(node.sig.dtype.numpy)
    return array.reshape(node.sig.shape)


@contextmanager
def _compiled_with(**options: Any) -> Iterator[None]:
    """Plans made inside are compiled with these options."""

    def compile_with(plan: Schedule, profile: DeviceProfile, **_: Any) -> Any:
        return compile_schedule(plan, profile, **options)

    with patch("webgrad.evaluate.gpu_plan.compile_schedule", compile_with):
        yield


@cache
def profiled(**changes: Any) -> Device:
    """The test adapter, opened as if it were another device."""
    shared = gpu()
    device = Device(shared.info, shared.settings)
    device.__dict__["profile"] = replace(shared.profile, **changes)
    return device


# Comparison


def difference(program: Program, way: Way, seed: int) -> str:
    """What is wrong with a program's results; the empty text: nothing."""
    try:
        results = way(program, np.random.default_rng(seed))
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    values = values_of(program)
    texts = [wrong(number, values[number], array) for number, array in results.items()]
    return "; ".join(text for text in texts if text)


def wrong(number: int, value: Value, array: Array) -> str:
    """What is wrong with the array that a step gave; the empty text: nothing."""
    if array.shape != value.array.shape or array.dtype != value.array.dtype:
        return f"step {number} is {array.dtype} {array.shape}, not {value.array.dtype} {value.array.shape}"
    with np.errstate(all="ignore"):
        if value.dtype.kind == "f":
            bad = ~(np.abs(wide(array) - value.exact) <= allowed(value))
        else:
            bad = array != value.array
    if not np.any(bad):
        return ""
    at = tuple(int(each) for each in np.argwhere(bad)[0])
    count = np.count_nonzero(bad)
    return (
        f"step {number}: {count} of {bad.size} wrong, first at {at}: {array[at]!r}, not {value.array[at]!r}"
    )


def report(program: Program, way: Way, name: str, seed: int, part: str = "graphs") -> str:
    """What is wrong with a program, its graph, and a smaller one that is wrong; the empty text: nothing."""
    text = difference(program, way, seed)
    if not text:
        return ""
    small = shrink(program, lambda candidate: bool(difference(candidate, way, seed)))
    return "\n".join(
        (
            f"seed {seed}, {name}: {text}",
            f"again: python -m scripts.fuzz --only {part} --count 1 --seed {seed}",
            "the graph:",
            _shown(program),
            f"smaller: {difference(small, way, seed)}",
            _shown(small),
        )
    )


def _shown(program: Program) -> str:
    roots, _ = program.build(on("cpu"))
    return repr(snapshot(walk(roots), roots))


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A program with fewer steps that still fails: fewer roots, and steps replaced by their values."""
    for root in sorted({*program.roots, *program.held}):
        candidate = needed(Program(program.steps, (root,)))
        if fails(candidate):
            program = candidate
            break
    for at in range(len(program.steps)):
        if at < len(program.steps) and program.steps[at].inputs and at not in program.roots:
            candidate = _with_leaf(program, at)
            if fails(needed(candidate)):
                program = candidate
    return needed(program)


def _with_leaf(program: Program, at: int) -> Program:
    steps: Sequence[Step] = program.steps
    data = values_of(program)[at].array
    return Program((*steps[:at], Step("leaf", (), (), data), *steps[at + 1 :]), program.roots, program.held)
