"""Holes in stages: every value is computed in the first function that knows what it needs."""

from __future__ import annotations

import pytest

from tests.graph.helpers import graph_of, value
from webgrad.device_profile import PORTABLE
from webgrad.lower.builder import Builder
from webgrad.lower.holes import argument, make_stages
from webgrad.lower.ir import U32, Hole, Instruction, Kernel, KernelError, Type, verify
from webgrad.lower.passes import PASSES
from webgrad.lower.pull import Puller
from webgrad.lower.writer import Writer

STAGES = [("first", {"row": U32}), ("second", {"outer": U32}), ("last", {"step": U32})]


def puller() -> Puller:
    graph = graph_of(value(4, 6, 8))
    return Puller(graph, (), graph.roots)


def staged(pull: Puller, *, constant: bool = False) -> tuple[Hole, ...]:
    """x[row, outer // 2, step], or a number that no stage has to do with."""

    def fill(row: Instruction, outer: Instruction, step: Instruction) -> Instruction:
        if constant:
            return pull.builder.constant(0.0, Type("f32"))
        at = argument(pull, row, "row", 9).limited(4)
        (node,) = pull.graph.roots
        indices = (at, argument(pull, outer, "outer", 12) // 2, argument(pull, step, "step", 8))
        return pull.pull(node, indices)

    return make_stages(pull, STAGES, fill)


def kernel_of(pull: Puller, holes: tuple[Hole, ...]) -> Kernel:
    return Kernel("test", tuple(pull.buffers), (), (), 8, 1, None, holes)


def ops(hole: Hole) -> list[str]:
    return [str(each.data) for each in hole.body if each.op == "arithmetic"]


def test_each_value_is_in_the_first_stage_that_knows_it() -> None:
    first, second, last = staged(puller())
    assert ops(first) == ["min", "*"]
    assert ops(second) == ["/", "*", "+"]
    assert ops(last) == ["+"]
    assert [len(each.keeps or ()) for each in (first, second)] == [1, 1]
    assert last.keeps is None
    assert [name for name, _ in last.arguments] == ["stage0", "stage1", "step"]
    assert [each.op for each in last.body].count("load") == 1


def test_stages_are_whole_before_and_after_every_pass() -> None:
    pull = puller()
    kernel = kernel_of(pull, staged(pull))
    verify(kernel)
    for each in PASSES:
        kernel = each(kernel)
        verify(kernel)
    assert [len(hole.results) for hole in kernel.holes] == [1, 1, 1]


def test_stages_as_text() -> None:
    pull = puller()
    writer = Writer(kernel_of(pull, staged(pull)), PORTABLE)
    text = "".join(map(writer.function, writer.kernel.holes))
    assert "struct kept_first { k0: u32 }" in text
    assert "fn first(row: u32) -> kept_first {" in text
    assert "fn second(stage0: kept_first, outer: u32) -> kept_second {" in text
    assert "fn last(stage0: kept_first, stage1: kept_second, step: u32) -> f32 {" in text


def test_a_stage_that_keeps_nothing() -> None:
    pull = puller()
    holes = staged(pull, constant=True)
    verify(kernel_of(pull, holes))
    writer = Writer(kernel_of(pull, holes), PORTABLE)
    text = "".join(map(writer.function, holes))
    assert "struct kept_first { k0: u32 }" in text  # a struct has a member
    assert "return kept_first(0u);" in text


def test_a_result_that_an_early_stage_knows() -> None:
    pull = puller()

    def fill(row: Instruction, outer: Instruction, step: Instruction) -> Instruction:
        return pull.builder.arithmetic("+", row, row)

    first, _, last = make_stages(pull, STAGES, fill)
    verify(kernel_of(pull, (first, last)))
    assert first.keeps
    assert last.result is not None
    assert last.result.data == "stage0.k0"


def test_what_leaves_a_stage_must_be_in_it() -> None:
    build = Builder()
    with pytest.raises(KernelError, match="its result is not in it"):
        verify(kernel_of(puller(), (Hole("odd", (), (), None, (build.constant(1),)),)))
