"""Passes: what each removes, that kernels stay right by the grammar, and that results do not change."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest

from tests.graph.helpers import apply, fold, tensor, value
from tests.lower.helpers import F32, copy_kernel, kernel_of, raw
from tests.schedule.graphs import SOFTWARE, tall_stack
from webgrad.device_profile import DeviceProfile
from webgrad.functions.learning.activations import softmax
from webgrad.lower.compile import compile_schedule
from webgrad.lower.ir import BOOL, U32, Instruction, Kernel, Type, verify
from webgrad.lower.passes import PASSES, drop_unused, fold_constants, order_buffers, share_values
from webgrad.ops import primitives
from webgrad.schedule.schedule import schedule

I = Instruction  # noqa: E741
Pass = Callable[[Kernel], Kernel]


def stored(*parts: Instruction, at: Instruction, x: Instruction) -> Kernel:
    kernel = kernel_of(*parts, I("store", None, (at, x), 1))
    verify(kernel)
    return kernel


def ops(kernel: Kernel) -> list[str]:
    return [each.op for each in kernel.body]


# drop_unused


def test_what_nothing_needs_is_dropped() -> None:
    zero, spare = I("const", U32, (), 0), I("const", U32, (), 9)
    unused = I("arithmetic", U32, (spare, spare), "+")
    x = I("load", F32, (zero,), 0)
    kernel = drop_unused(stored(zero, spare, unused, x, at=zero, x=x))
    verify(kernel)
    assert ops(kernel) == ["const", "load", "store"]


def test_empty_blocks_are_dropped_with_what_they_alone_need() -> None:
    zero, ten = I("const", U32, (), 0), I("const", U32, (), 10)
    loop = I("loop", U32, (zero, ten, zero))
    unused = I("arithmetic", U32, (loop, zero), "+")
    x = I("load", F32, (zero,), 0)
    kernel = stored(zero, ten, loop, unused, I("end_loop", None, (loop,)), x, at=zero, x=x)
    kernel = drop_unused(drop_unused(kernel))
    verify(kernel)
    assert ops(kernel) == ["const", "load", "store"]


def test_what_has_an_effect_stays() -> None:
    kernel = copy_kernel()
    assert drop_unused(kernel).body == kernel.body


# fold_constants


@pytest.mark.parametrize(
    ("sign", "a", "b", "expected"),
    [
        ("+", 3, 4, 7),
        ("-", 3, 4, (1 << 32) - 1),
        ("*", 1 << 31, 2, 0),
        ("/", 17, 5, 3),
        ("%", 17, 5, 2),
        ("min", 17, 5, 5),
    ],
)
def test_arithmetic_of_constants_is_done(sign: str, a: int, b: int, expected: int) -> None:
    left, right = I("const", U32, (), a), I("const", U32, (), b)
    at = I("arithmetic", U32, (left, right), sign)
    x = I("load", F32, (at,), 0)
    kernel = drop_unused(fold_constants(stored(left, right, at, x, at=at, x=x)))
    verify(kernel)
    assert [each.data for each in kernel.body if each.op == "const"] == [expected]
    assert "arithmetic" not in ops(kernel)


@pytest.mark.parametrize(("sign", "b"), [("+", 0), ("-", 0), ("*", 1), ("/", 1)])
def test_arithmetic_that_changes_nothing_is_left_out(sign: str, b: int) -> None:
    thread, right = I("thread", U32, (), "local"), I("const", U32, (), b)
    at = I("arithmetic", U32, (thread, right), sign)
    x = I("load", F32, (at,), 0)
    kernel = drop_unused(fold_constants(stored(thread, right, at, x, at=at, x=x)))
    verify(kernel)
    assert ops(kernel) == ["thread", "load", "store"]
    assert kernel.body[1].args[0] is kernel.body[0]


@pytest.mark.parametrize(("sign", "b"), [("+", 1), ("-", 1), ("*", 0), ("/", 2), ("%", 1), ("min", 0)])
def test_other_arithmetic_stays(sign: str, b: int) -> None:
    thread, right = I("thread", U32, (), "local"), I("const", U32, (), b)
    at = I("arithmetic", U32, (thread, right), sign)
    x = I("load", F32, (at,), 0)
    assert "arithmetic" in ops(fold_constants(stored(thread, right, at, x, at=at, x=x)))


def test_folding_goes_through_chains_and_loops() -> None:
    one, zero = I("const", U32, (), 1), I("const", U32, (), 0)
    two = I("arithmetic", U32, (one, one), "+")
    three = I("arithmetic", U32, (two, one), "+")
    loop = I("loop", U32, (zero, three, one))
    at = I("arithmetic", U32, (loop, zero), "+")
    x = I("load", F32, (at,), 0)
    body = (one, zero, two, three, loop, at, x, I("store", None, (at, x), 1), I("end_loop", None, (loop,)))
    kernel = fold_constants(kernel_of(*body))
    verify(kernel)
    (changed,) = [each for each in kernel.body if each.op == "loop"]
    assert changed.args[1].data == 3
    load = next(each for each in kernel.body if each.op == "load")
    assert load.args[0] is changed


# share_values


def test_equal_values_of_a_block_are_made_once() -> None:
    thread = I("thread", U32, (), "local")
    one = [I("const", U32, (), 1) for _ in range(2)]
    sums = [I("arithmetic", U32, (thread, each), "+") for each in one]
    x = I("load", F32, (sums[0],), 0)
    kernel = share_values(stored(thread, *one, *sums, x, at=sums[1], x=x))
    verify(kernel)
    assert ops(kernel) == ["thread", "const", "arithmetic", "load", "store"]


def test_values_of_other_blocks_are_not_shared() -> None:
    zero = I("const", U32, (), 0)
    yes = I("compare", BOOL, (zero, zero), "==")
    body: list[Instruction] = [zero, yes]
    for _ in range(2):
        block = I("if", None, (yes,))
        x = I("load", F32, (zero,), 0)
        body += [block, x, I("store", None, (zero, x), 1), I("end_if", None, (block,))]
    kernel = share_values(kernel_of(*body))
    verify(kernel)
    assert ops(kernel).count("load") == 2


def test_values_that_differ_in_a_number_are_not_shared() -> None:
    thread = I("thread", U32, (), "local")
    parts = [I("const", U32, (), 1), I("const", U32, (), 2)]
    sums = [I("arithmetic", U32, (thread, parts[0]), sign) for sign in ("+", "*")]
    x = I("load", F32, (sums[0],), 0)
    kernel = share_values(stored(thread, *parts, *sums, x, at=sums[1], x=x))
    assert ops(kernel) == ["thread", "const", "const", "arithmetic", "arithmetic", "load", "store"]


def test_reads_of_registers_are_not_shared() -> None:
    zero, nothing = I("const", U32, (), 0), I("const", F32, (), 0.0)
    registers = [I("register", F32, (nothing,)) for _ in range(2)]
    first = I("read", F32, (registers[0],))
    x = I("load", F32, (zero,), 0)
    write = I("write", None, (registers[0], x))
    second = I("read", F32, (registers[0],))
    stores = [I("store", None, (zero, each), 1) for each in (first, second)]
    kernel = share_values(kernel_of(zero, nothing, *registers, first, x, write, second, *stores))
    verify(kernel)
    assert ops(kernel).count("read") == 2
    assert ops(kernel).count("register") == 2


def test_numbers_of_other_types_are_not_shared() -> None:
    zero, real, truth = I("const", U32, (), 1), I("const", F32, (), 1.0), I("const", Type("bool"), (), True)
    kernel = share_values(kernel_of(zero, real, truth))
    assert len(kernel.body) == 3


def test_buffers_are_numbered_by_use_and_results_come_last() -> None:
    from tests.graph.helpers import graph_of

    w = value(12, 12)
    texts = []
    for x in (value(12, 12), primitives.reshape(value(144), (12, 12))):
        plan = schedule(graph_of(primitives.contract(x, w)), SOFTWARE)
        (launch,) = compile_schedule(plan, SOFTWARE, check=True)[0][1]
        texts.append(launch.program.text)
        assert [each.written for each in launch.kernel.buffers] == [False, False, True]
        assert order_buffers(launch.kernel) is launch.kernel
    assert texts[0] == texts[1]


# All of them


def subsets() -> list[Sequence[Pass]]:
    return [chosen for size in range(len(PASSES) + 1) for chosen in itertools.permutations(PASSES, size)]


def test_any_choice_and_order_of_passes_keeps_the_grammar(profile: DeviceProfile) -> None:
    x = tensor(12, 33)
    roots = [
        tall_stack(x, 3).node,
        fold("sum", primitives.permute(value(5, 6, 7), (2, 0, 1)), 0, 2),
        apply("exp", primitives.contract(value(9, 10), value(10, 11))),
        primitives.concat([value(3, 4), apply("negative", value(5, 4))], 0),
    ]
    kernels = [kernel for root in roots for kernel in raw(root, profile=profile)]
    assert len(kernels) >= 4
    for kernel in kernels:
        for chosen in subsets():
            changed = kernel
            for each in chosen:
                changed = each(changed)
                verify(changed)
            assert changed.buffers == kernel.buffers
            assert [e.data for e in changed.body if e.op == "store"] == [
                e.data for e in kernel.body if e.op == "store"
            ]


def test_a_second_run_changes_nothing() -> None:
    for kernel in raw(softmax(tensor(16, 33))):
        once = kernel
        for each in PASSES:
            once = each(once)
        again = once
        for each in PASSES:
            again = each(again)
        assert [(e.op, e.data) for e in again.body] == [(e.op, e.data) for e in once.body]


def test_passes_never_make_a_kernel_longer() -> None:
    for kernel in raw(softmax(tensor(16, 33))):
        for each in PASSES:
            assert len(each(kernel).body) <= len(kernel.body)


def test_compiling_without_passes_works() -> None:
    from tests.graph.helpers import graph_of

    plan = schedule(graph_of(softmax(tensor(16, 33))), SOFTWARE)
    plain = compile_schedule(plan, SOFTWARE, passes=(), check=True)
    full = compile_schedule(plan, SOFTWARE, check=True)
    assert len(plain) == len(full) == 1
    assert len(plain[0][1][0].kernel.body) >= len(full[0][1][0].kernel.body)
