"""Evaluation: values for nodes, plans found again by structure, errors that name the user's line."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

import numpy as np
import pytest

from tests.graph.helpers import CPU, apply, backlog_of, fold, numbers
from tests.limits import HANG
from tests.runtime.helpers import run_python
from webgrad import dtypes
from webgrad.errors import DTypeError, WebgradError
from webgrad.evaluate import evaluate as module
from webgrad.evaluate.evaluate import clear_plans, evaluate, plans, read, read_async
from webgrad.graph.node import Node, leaf, make, scalar
from webgrad.graph.op import LEAF, Op
from webgrad.ops import primitives

Array = np.ndarray[Any, Any]


def line_here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


# Values


def test_a_value_is_computed_and_kept() -> None:
    x = apply("add", numbers([1.0, 2.0]), 1.0)
    assert x.storage is None
    evaluate([x])
    first: Any = x.storage
    assert first.tolist() == [2.0, 3.0]
    assert (x.sig.op, x.inputs) == (LEAF, ())
    evaluate([x])
    assert x.storage is first
    assert read(x) is first


def test_several_roots_of_one_graph() -> None:
    base = numbers([[1.0, 2.0], [3.0, 4.0]])
    doubled = apply("multiply", base, 2.0)
    roots = [fold("sum", doubled, 0), doubled, fold("max", doubled, 1), doubled]
    evaluate(roots)
    assert [each.storage.tolist() for each in roots] == [
        [8.0, 12.0],
        [[2.0, 4.0], [6.0, 8.0]],
        [4.0, 8.0],
        [[2.0, 4.0], [6.0, 8.0]],
    ]


def test_nothing_to_compute() -> None:
    before = plans()
    evaluate([])
    given = numbers([1.0])
    evaluate([given, given])
    assert read(given).tolist() == [1.0]
    assert plans() == before


def test_a_root_that_is_a_number() -> None:
    node = scalar(2.5, dtypes.float16, CPU)
    value = read(node)
    assert (value.shape, value.dtype, value.item()) == ((), np.float16, 2.5)
    assert node.sig.kind == "leaf"
    assert read(apply("add", node, numbers([1.0], np.float16))).tolist() == [3.5]


def test_roots_of_every_kind_at_once() -> None:
    given, number = numbers([1.0]), scalar(3, dtypes.int32, CPU)
    made = apply("negative", given)
    evaluate([made, given, number, made])
    assert (made.storage.tolist(), number.storage.tolist()) == ([-1.0], 3)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5), ()], ids=str)
def test_empty_and_0_d_results(shape: tuple[int, ...]) -> None:
    result = read(apply("exp", numbers(np.zeros(shape))))
    assert result.shape == shape
    assert result.dtype == np.float32
    assert read(fold("sum", numbers(np.zeros((4, 0))), 1)).tolist() == [0.0] * 4


def test_a_value_between_that_someone_holds_is_right_afterwards() -> None:
    x = numbers([[1.0, 2.0], [3.0, 4.0]])
    total = fold("sum", x, 1)
    result = apply("divide", x, primitives.reshape(total, (2, 1)))
    evaluate([result])
    np.testing.assert_allclose(result.storage, [[1 / 3, 2 / 3], [3 / 7, 4 / 7]], rtol=1e-6)
    assert read(total).tolist() == [3.0, 7.0]


def test_reading_without_waiting() -> None:
    x = apply("add", numbers([1.0]), 1.0)
    assert asyncio.run(read_async(x)).tolist() == [2.0]
    assert asyncio.run(read_async(x)).tolist() == [2.0]


def test_inputs_are_never_written_to() -> None:
    array = np.arange(6, dtype=np.float32)
    array.flags.writeable = False
    x = leaf(array, (6,), dtypes.float32, CPU)
    assert read(apply("add", x, 1.0)).tolist() == [1, 2, 3, 4, 5, 6]
    moved = read(primitives.reshape(x, (2, 3)))
    assert moved.shape == (2, 3)
    assert array.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_deep_graph_is_computed() -> None:
    with backlog_of(1 << 40, 1 << 60):
        x = numbers([0.0])
        for _ in range(4_000):  # four times as deep as Python's functions may call each other
            x = apply("add", x, 1.0)
        assert read(x).tolist() == [4_000.0]


# Plans


def step(x: Node, rate: float) -> Node:
    return apply("subtract", x, apply("multiply", fold("sum", x, 0), rate))


def test_the_same_structure_makes_no_plan() -> None:
    x = numbers(np.ones(5))
    evaluate([step(x, 0.5)])
    before = plans()
    for turn in range(20):
        y = step(numbers(np.full(5, turn)), 0.1 * turn)
        np.testing.assert_allclose(read(y), np.full(5, turn - 5 * turn * 0.1 * turn), rtol=1e-5, atol=1e-5)
    assert plans() == before
    read(step(numbers(np.ones(6)), 0.5))
    assert plans() == before + 1


def test_a_training_loop_settles_on_one_plan() -> None:
    x = numbers(np.ones(4))
    made = []
    for _ in range(10):
        before = plans()
        x = step(x, 0.01)
        evaluate([x])
        made.append(plans() - before)
    assert sum(made[1:]) == 0


def test_operands_are_told_apart() -> None:
    a, b = numbers([1.0, 2.0]), numbers([10.0, 20.0])
    assert read(apply("subtract", a, b)).tolist() == [-9.0, -18.0]
    assert read(apply("subtract", b, a)).tolist() == [9.0, 18.0]
    assert read(apply("subtract", a, a)).tolist() == [0.0, 0.0]


def test_scalars_that_are_equal_once_may_differ_the_next_time() -> None:
    def both(first: float, second: float) -> list[float]:
        node = apply("add", apply("multiply", numbers([1.0]), first), second)
        return read(node).tolist()  # type: ignore[no-any-return]

    assert both(2.0, 2.0) == [4.0]
    assert both(2.0, 3.0) == [5.0]
    assert both(5.0, 5.0) == [10.0]
    assert both(3.0, 2.0) == [5.0]


def test_minus_zero_stays_minus_zero() -> None:
    x = numbers([1.0])
    made = apply("add", apply("multiply", x, 0.0), apply("multiply", x, -0.0))
    assert not np.signbit(read(made))[0]
    assert np.signbit(read(apply("multiply", x, -0.0)))[0]
    assert not np.signbit(read(apply("multiply", x, 0.0)))[0]


def test_plans_are_bounded_and_can_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLANS_KEPT", 10)
    clear_plans()
    for side in range(1, 30):
        read(apply("exp", numbers(np.zeros(side))))
        assert len(module._state.plans) <= 10
    before = plans()
    read(apply("exp", numbers(np.zeros(29))))  # still there
    assert plans() == before
    read(apply("exp", numbers(np.zeros(1))))  # long gone
    assert plans() == before + 1
    clear_plans()
    read(apply("exp", numbers(np.zeros(29))))
    assert plans() == before + 2


# Errors


def failing_op() -> Op:
    def refuse(x: Array) -> Array:
        raise DTypeError("refused on purpose")

    return Op("failing", "map", 1, refuse, infer=lambda sigs, attributes: (sigs[0].shape, sigs[0].dtype))


def test_an_error_names_the_users_line() -> None:
    node, line = make(failing_op(), (numbers([1.0]),)), line_here()
    with pytest.raises(DTypeError, match="refused on purpose") as caught:
        evaluate([node])
    message = str(caught.value)
    assert message.count("while computing") == 1
    assert f"while computing failing (1) float32, made at {__file__}:{line}" in message
    assert node.storage is None


def test_evaluation_works_after_an_error() -> None:
    bad = make(failing_op(), (numbers([1.0]),))
    good = apply("negative", numbers([1.0]))
    with pytest.raises(WebgradError):
        evaluate([bad])
    with pytest.raises(WebgradError):
        evaluate([bad, good])
    assert read(good).tolist() == [-1.0]


# Threads


def test_threads_that_evaluate_shared_graphs() -> None:
    start = numbers(np.arange(64))
    shared = [apply("add", start, float(number)) for number in range(20)]
    shared += [apply("multiply", each, 2.0) for each in shared]
    failures: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        try:
            barrier.wait(HANG)
            order = np.random.default_rng(seed).permutation(len(shared))
            for at in order:
                right = (np.arange(64) + at % 20) * (2 if at >= 20 else 1)
                np.testing.assert_array_equal(read(shared[at]), right)
                own = apply("add", shared[at], float(seed))
                np.testing.assert_array_equal(read(own), right + seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(HANG)
    assert not any(each.is_alive() for each in threads)
    assert failures == []


def test_the_cpu_works_in_a_forked_child() -> None:
    code = """
import os, threading
from tests.graph.helpers import apply, numbers
from webgrad.evaluate.evaluate import read
import numpy as np
x = apply("add", numbers(np.ones(1 << 20)), 1.0)
assert read(x)[0] == 2.0
pending = apply("exp", numbers([0.0]))
child = os.fork()
if child == 0:
    try:
        ok = read(pending).tolist() == [1.0]
        ok = ok and read(apply("add", numbers(np.ones(1 << 20)), 1.0)).sum() == 2 << 20
    except BaseException:
        ok = False
    os._exit(0 if ok else 3)
assert os.waitpid(child, 0)[1] == 0
assert read(pending).tolist() == [1.0]
print("fine")
"""
    done = run_python(code)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
