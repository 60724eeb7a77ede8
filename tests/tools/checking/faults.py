"""Kernels that are wrong on purpose, on GPUs or on the cpu: what `check` must find.

Each fault changes what makes the kernels (a library function's text, a template, the lowering, a pass), or
what the cpu does for an op, and never the reference. What was compiled before is forgotten when one begins
and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from webgrad.cpu.plan import CompiledPlan
from webgrad.evaluate.evaluate import clear_plans
from webgrad.graph.snapshot import Snapshot
from webgrad.lower import movement, passes, pull
from webgrad.lower.builder import Builder
from webgrad.lower.ir import Instruction
from webgrad.wgsl import library, template

__all__ = ["cpu_fault", "library_fault", "loop_fault", "move_fault", "pass_fault", "template_fault"]


@contextmanager
def library_fault(old: str, new: str) -> Iterator[None]:
    """A text of the WGSL library replaced by another."""
    right = library._source()
    assert any(old in each.text for each in right.values()), old

    def source() -> Any:
        return {
            name: library._Function(each.place, each.text.replace(old, new), each.generic)
            for name, each in right.items()
        }

    try:
        library._in_kernels.cache_clear()
        clear_plans()
        with patch.object(library, "_source", source):
            yield
    finally:
        library._in_kernels.cache_clear()
        clear_plans()


@contextmanager
def template_fault(name: str, old: str, new: str) -> Iterator[None]:
    """A text of a hand-written kernel replaced by another."""
    right = template.template_text
    assert old in right(name)

    def text(wanted: str) -> str:
        return right(wanted).replace(old, new) if wanted == name else right(wanted)

    try:
        template.expand_template.cache_clear()
        clear_plans()
        with patch.object(template, "template_text", text):
            yield
    finally:
        template.expand_template.cache_clear()
        clear_plans()


@contextmanager
def loop_fault() -> Iterator[None]:
    """Folds end one element, or four, too early."""
    right_fold, right_loop = pull.Puller._fold_loop, Builder.open_loop
    folding = []

    def fold(self: Any, *args: Any) -> Any:
        folding.append(True)
        return right_fold(self, *args)

    def open_loop(self: Any, start: Any, stop: Any, step: Any) -> Any:
        if folding and stop.op != "const":
            folding.clear()
            stop = self.arithmetic("-", stop, self.constant(1))
        return right_loop(self, start, stop, step)

    with patch.object(pull.Puller, "_fold_loop", fold), patch.object(Builder, "open_loop", open_loop):
        clear_plans()
        yield
    clear_plans()


@contextmanager
def move_fault(op: str) -> Iterator[None]:
    """A movement looks one place beside, along the last axis, but not beyond it."""
    right = movement.moved

    def moved(sig: Any, shape: tuple[int, ...], indices: Any) -> Any:
        found = right(sig, shape, indices)
        if sig.op.name != op:
            return found
        return (*found[:-2], found[-1], found[-2]) if shape[-1] == shape[-2] else found

    with patch.object(pull, "moved", moved):
        clear_plans()
        yield
    clear_plans()


@contextmanager
def pass_fault(first: str, second: str) -> Iterator[None]:
    """Where a kernel computes both of two functions, a pass takes the second for the first."""
    right = passes._shared

    def shared(body: tuple[Instruction, ...], results: Any) -> Any:
        made = {each.data.name: each for each in body if each.op == "apply"}
        if first not in made or second not in made:
            return right(body, results)
        names: dict[int, Instruction] = {}
        changed = []
        for old in body:
            each = passes._rebuilt(old, names)
            if each.op == "apply" and each.data.name == second:
                each = names[id(old)] = Instruction(each.op, each.type, each.args, made[first].data)
            changed.append(each)
        return right(tuple(changed), passes._renamed(results, names))

    with patch.object(passes, "_shared", shared):
        clear_plans()
        yield
    clear_plans()


@contextmanager
def cpu_fault(op: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """What the cpu computes with an op, changed."""
    right = CompiledPlan.run

    def wrong(plan: CompiledPlan, *arguments: Any) -> Any:
        found = right(plan, *arguments)
        graph = plan._graph
        return {root: np.asarray(change(x)) if _needs(graph, root, op) else x for root, x in found.items()}

    with patch.object(CompiledPlan, "run", wrong):
        clear_plans()
        yield
    clear_plans()


def _needs(graph: Snapshot, root: int, op: str) -> bool:
    return any(graph.sigs[each].op.name == op for each in _under(graph, root))


def _under(graph: Snapshot, root: int) -> set[int]:
    found, stack = set[int](), [root]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += graph.inputs[node]
    return found
