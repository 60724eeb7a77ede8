"""Programs as plain records: graphs to build on any device, to compute by NumPy, to join and to make smaller.

A step's value is computed twice: in its own dtype, and with floats as float64. What the two differ by is what
rounding does to it; `allowed` is what devices may differ by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.properties.helpers import AnyDevice, Array, on, place, sig_of, wide
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import Node, Signature, make, scalar, signature, source
from webgrad.graph.op import LEAF
from webgrad.ops.table import TABLE
from webgrad.reference.plan import value_of

__all__ = ["Program", "Step", "Value", "allowed", "joined", "needed", "value_of_step", "values_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """An op of the table over earlier steps; `data` and `dtype` are a leaf's, a scalar's or an iota's."""

    op: str
    inputs: tuple[int, ...] = ()
    attributes: tuple[Any, ...] = ()
    data: Any = field(default=None, repr=False)
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order; `roots` are computed, `held` are steps that the user still refers to meanwhile."""

    steps: tuple[Step, ...]
    roots: tuple[int, ...]
    held: tuple[int, ...] = ()

    def build(
        self, device: AnyDevice, given: Mapping[int, Node] = MappingProxyType({})
    ) -> tuple[list[Node], list[Node]]:
        """Its roots and held nodes on a device; nothing else refers to the others. `given` are steps' nodes
        that are there already.
        """
        nodes: list[Node] = []
        for at, step in enumerate(self.steps):
            nodes.append(given[at] if at in given else _node(step, nodes, device))
        return [nodes[each] for each in self.roots], [nodes[each] for each in self.held]


@dataclass(frozen=True, slots=True)
class Value:
    """What a step gives: in its dtype, and as float64 would have it."""

    dtype: DType
    array: Array
    exact: Array
    transformed: bool = False  # made of a Fourier transform, whose errors go by its largest result


def _node(step: Step, nodes: Sequence[Node], device: AnyDevice) -> Node:
    if step.op == "leaf":
        return place(step.data, device)
    if step.op == "scalar":
        return scalar(step.data, step.dtype, device)
    if step.op == "iota":
        return source(TABLE["iota"], step.attributes, step.dtype, device)
    return make(TABLE[step.op], tuple(nodes[each] for each in step.inputs), step.attributes)


def value_of_step(step: Step, inputs: Sequence[Value]) -> Value:
    """A step by NumPy."""
    if step.op in ("leaf", "scalar"):
        array = np.asarray(step.data, None if step.dtype is None else step.dtype.numpy)
        return Value(dtypes.as_dtype(array.dtype), array, wide(array))
    sig = _sig(step, inputs)
    array = value_of(sig, [each.array for each in inputs])
    if sig.dtype.kind != "f":
        return Value(sig.dtype, array, array)
    with np.errstate(all="ignore"):
        exact = [each.exact for each in inputs]
        if step.op in ("cast", "iota"):
            result = wide(array) if step.op == "iota" or inputs[0].dtype.kind != "f" else exact[0]
        else:
            result = sig.op.numpy(*exact) if sig.kind == "map" else sig.op.numpy(sig, *exact)
    transformed = sig.kind == "fft" or any(each.transformed for each in inputs)
    return Value(sig.dtype, array, np.asarray(result).reshape(sig.shape), transformed)


def _sig(step: Step, inputs: Sequence[Value]) -> Signature:
    cpu = on("cpu")
    if step.op == "iota":
        return signature(TABLE["iota"], step.attributes, step.dtype, cpu)
    sigs = [signature(LEAF, each.array.shape, each.dtype, cpu) for each in inputs]
    return sig_of(TABLE[step.op], sigs, step.attributes)


def values_of(program: Program) -> list[Value]:
    """Every step's value."""
    values: list[Value] = []
    for step in program.steps:
        values.append(value_of_step(step, [values[each] for each in step.inputs]))
    return values


def allowed(value: Value) -> Array:
    """By how much a device's result may differ from `exact`; nothing for integers."""
    if value.dtype.kind != "f":
        return np.zeros(value.array.shape)
    relative, absolute = {4: (1e-4, 1e-5), 8: (1e-9, 1e-9)}.get(value.dtype.itemsize, (2e-2, 2e-2))
    if value.dtype is dtypes.bfloat16:
        relative, absolute = 8 * relative, 8 * absolute
    if value.transformed:
        absolute += 4 * np.finfo(np.float32).eps * np.abs(value.exact).max(initial=0.0)
    return absolute + relative * np.abs(value.exact)


def joined(programs: Sequence[Program]) -> Program:
    """Several programs as one, side by side."""
    steps: list[Step] = []
    roots: list[int] = []
    held: list[int] = []
    for program in programs:
        start = len(steps)
        roots += [start + each for each in program.roots]
        held += [start + each for each in program.held]
        steps += [replace(step, inputs=tuple(start + each for each in step.inputs)) for step in program.steps]
    return Program(tuple(steps), tuple(roots), tuple(held))


def needed(program: Program) -> Program:
    """Without the steps that neither roots nor held ones need."""
    used = set(program.roots) | set(program.held)
    for at in range(len(program.steps) - 1, -1, -1):
        if at in used:
            used.update(program.steps[at].inputs)
    number = {old: new for new, old in enumerate(sorted(used))}
    kept = [program.steps[old] for old in sorted(used)]
    steps = tuple(replace(step, inputs=tuple(number[each] for each in step.inputs)) for step in kept)
    return Program(
        steps, tuple(number[each] for each in program.roots), tuple(number[each] for each in program.held)
    )
