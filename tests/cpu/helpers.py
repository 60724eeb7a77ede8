"""Graphs for the cpu's plans, and what they must give: the reference, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from webgrad import dtypes
from webgrad.cpu.plan import CompiledPlan
from webgrad.device_profile import CPU_PROFILE
from webgrad.dtypes import DType
from webgrad.evaluate.cpu_plan import HostPlan
from webgrad.evaluate.evaluate import _state
from webgrad.graph.node import Node, leaf, make
from webgrad.graph.snapshot import snapshot, walk
from webgrad.ops import primitives
from webgrad.ops.table import TABLE
from webgrad.reference.plan import ReferencePlan, compute
from webgrad.runtime.device import CpuDevice
from webgrad.schedule.cpu_passes import CPU_PASSES
from webgrad.schedule.schedule import schedule

Array = np.ndarray[Any, Any]
CPU = CpuDevice()
RNG = np.random.default_rng(3)


def node_of(array: Any) -> Node:
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    return leaf(array, array.shape, dtypes.as_dtype(array.dtype), CPU)


def drawn(*shape: int, dtype: DType = dtypes.float32) -> Node:
    """Random elements: of integers small ones of both signs, of floats about 1."""
    if dtype.kind == "f":
        return node_of(RNG.standard_normal(shape).astype(dtype.numpy))
    if dtype.kind == "b":
        return node_of(RNG.integers(0, 2, shape).astype(np.bool_))
    return node_of(RNG.integers(0 if dtype.kind == "u" else -50, 50, shape).astype(dtype.numpy))


def apply(name: str, *operands: Any) -> Node:
    return primitives.elementwise(TABLE[name], *operands)


def where(condition: Node, a: Node, b: Node) -> Node:
    return make(TABLE["where"], (condition, a, b))


def fold(name: str, x: Node, *axes: int, keep: bool = False) -> Node:
    """A reduce; with `keep` its axes stay, of side 1."""
    result = primitives.reduce(TABLE[name], x, tuple(sorted(axes)))
    sides = tuple(1 if axis in axes else side for axis, side in enumerate(x.sig.shape))
    return primitives.reshape(result, sides) if keep else result


def softmax(x: Node, axis: int) -> Node:
    powers = apply("exp", apply("subtract", x, fold("max", x, axis, keep=True)))
    return apply("divide", powers, fold("sum", powers, axis, keep=True))


def layer_norm(x: Node, axis: int, scale: Node | None = None) -> Node:
    side = x.sig.shape[axis]
    centred = apply("subtract", x, apply("divide", fold("sum", x, axis, keep=True), float(side)))
    spread = apply("divide", fold("sum", apply("multiply", centred, centred), axis, keep=True), float(side))
    result = apply("multiply", centred, apply("rsqrt", apply("add", spread, 1e-5)))
    return result if scale is None else apply("multiply", result, scale)


class Planned:
    """A plan with the values it runs on."""

    def __init__(self, *roots: Node) -> None:
        self.roots = roots
        walked = walk(roots)
        self.nodes = walked.nodes
        self.graph = snapshot(walked, roots)
        self.reference = ReferencePlan(self.graph.copy())
        self.schedule = schedule(self.graph, CPU_PROFILE, CPU_PASSES)
        self.plan = CompiledPlan(self.schedule)

    def run(self, *, by_reference: bool = False) -> list[Array]:
        leaves = {at: each.storage for at, each in enumerate(self.nodes) if each.sig.kind == "leaf"}
        scalars = {at: each.storage for at, each in enumerate(self.nodes) if each.sig.kind == "scalar"}
        plan = self.reference if by_reference else self.plan
        found = plan.run(leaves, scalars)
        assert set(found) == set(self.graph.roots)
        return [found[each] for each in self.graph.roots]


def check(*roots: Node, rounding: float = 0.0, slack: float = 0.0) -> Planned:
    """Run native code twice and compare with the reference, run as a plan, too: nothing may be shared, and no
    input may change.
    """
    before = [each.storage.copy() for each in walk(roots).nodes if each.sig.kind == "leaf"]
    planned = Planned(*roots)
    first, second, third = planned.run(), planned.run(), planned.run(by_reference=True)
    wanted = compute(list(roots))
    leaves = [each.storage for each in planned.nodes if each.sig.kind == "leaf"]
    for root, one, two, plain, want in zip(roots, first, second, third, wanted, strict=True):
        assert isinstance(one, np.ndarray)
        assert one.shape == root.sig.shape
        assert one.dtype == root.sig.dtype.numpy
        if root.sig.kind != "leaf":
            assert one.flags.c_contiguous
            assert one.flags.writeable
            assert plain.flags.c_contiguous
            assert plain.flags.writeable
            assert not any(np.shares_memory(one, each) for each in (two, plain, *leaves))
            assert not any(np.shares_memory(plain, each) for each in leaves)
        np.testing.assert_array_equal(plain, want) if plain.dtype.kind != "V" else compare(plain, want, 1, 0)
        compare(one, want, rounding, slack)
        assert one.tobytes() == two.tobytes()
    for each, old in zip(leaves, before, strict=True):
        assert each.tobytes() == old.tobytes()
    return planned


def compare(got: Array, want: Array, rounding: float, slack: float) -> None:
    """Equal, or within `rounding` units in the last place of what float32 or a smaller type holds."""
    if got.dtype.kind == "V":  # bfloat16, whose NaN NumPy does not know
        compare_floats(got, want, rounding * 2.0**-7, slack)
    elif got.dtype.kind == "f":
        compare_floats(got, want, rounding * max(float(np.finfo(got.dtype).eps), 2.0**-23), slack)
    else:
        np.testing.assert_array_equal(got, want)


def compare_floats(got: Array, want: Array, share: float, slack: float) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=share, atol=slack)


def last_plan() -> HostPlan:
    """The plan that ran last."""
    every = [each for alike in _state.plans.values() for each in alike.values()]
    plan = max(every, key=lambda each: each.used).plan
    assert isinstance(plan, HostPlan)
    return plan
