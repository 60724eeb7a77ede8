"""Work for which there is no room keeps only those waiting who need it, and nothing runs out of order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import webgrad as wg
from tests.runtime.faults.harness import check_books
from tests.runtime.helpers import Bench, Floats, bench
from webgrad.config import MemoryBudget
from webgrad.errors import OutOfMemoryError
from webgrad.runtime.command_list import CommandList

pytestmark = [pytest.mark.gpu, pytest.mark.fault]

ROW = np.arange(1 << 18, dtype=np.float32)  # 1 MiB
FEW = np.arange(5, dtype=np.float32)


def short(megabytes: int = 4) -> Bench:
    return bench(memory=MemoryBudget(bytes=(megabytes << 20) + (1 << 16)))  # and a little for small ones


def too_much(private: Bench, x: Any) -> Any:
    """A value that takes 4 MiB beside its input."""
    with private.queue.hold():
        parts = [private.scale(x, factor, f"part {factor}") for factor in (2, 3, 4)]
        total = private.add(private.add(parts[0], parts[1]), parts[2])
        return total, *parts


def refused(private: Bench, buffer: Any) -> str:
    with pytest.raises(OutOfMemoryError) as caught:
        private.numbers(buffer)
    check_books(private)
    return str(caught.value)


def test_others_go_on_and_the_value_is_refused_again() -> None:
    private = short()
    x, few = private.upload(ROW, "x"), private.upload(FEW)
    stuck = too_much(private, x)
    for _ in range(3):
        message = refused(private, stuck[0])
        assert "x 1.0 MiB" in message
        assert "part 2 1.0 MiB" in message
        np.testing.assert_array_equal(private.numbers(private.scale(few, 2)), 2 * FEW)
        np.testing.assert_array_equal(private.numbers(private.scale(x, 2)), 2 * ROW)
        check_books(private)
    stuck = stuck[:1]
    np.testing.assert_array_equal(private.numbers(stuck[0]), 9 * ROW)
    check_books(private)


def test_many_others_are_recorded_and_run_meanwhile() -> None:
    private = short()
    x = private.upload(ROW)
    stuck = too_much(private, x)
    refused(private, stuck[0])
    value = private.upload(FEW)
    for _ in range(3000):  # past every place where a queue is cut
        value = private.scale(value, 1)
    large = private.upload(ROW)
    for _ in range(20):
        large = private.scale(large, 1)
    np.testing.assert_array_equal(private.numbers(value), FEW)
    np.testing.assert_array_equal(private.numbers(large), ROW)
    check_books(private)
    del large
    refused(private, stuck[0])


def test_what_overwrites_waits_for_those_that_read_before() -> None:
    private = short()
    x, ballast = private.upload(ROW, "x"), private.upload(ROW, "ballast")
    y = private.scale(x, 2)
    z = private.scale(x, 3)
    both = private.add(y, z)
    refused(private, both)
    private.device.dispatch(private.pipeline(TWICE, "twice"), [x], grid=(4096, 1, 1))
    np.testing.assert_array_equal(private.numbers(x), 2 * ROW)
    refused(private, both)
    private.queue.write(x, 7 * ROW)
    refused(private, both)
    del ballast
    np.testing.assert_array_equal(private.numbers(both), 5 * ROW)
    np.testing.assert_array_equal(private.numbers(x), 7 * ROW)
    np.testing.assert_array_equal(private.numbers(z), 3 * ROW)


def test_a_write_that_would_come_too_early_is_refused() -> None:
    private = short(2)
    x, ballast = private.upload(ROW, "x"), private.upload(ROW, "ballast")
    y = private.scale(x, 2)
    refused(private, y)
    with pytest.raises(OutOfMemoryError):
        private.queue.write(x, ROW + 1)
    private.device.dispatch(private.pipeline(TWICE, "twice"), [x], grid=(4096, 1, 1))
    refused(private, x)
    del ballast
    np.testing.assert_array_equal(private.numbers(y), 2 * ROW)
    np.testing.assert_array_equal(private.numbers(x), 2 * ROW)
    check_books(private)


TWICE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn twice(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = x[id.x] * 2.0; }
"""


def test_a_recording_runs_past_work_without_room() -> None:
    private = short()
    x, few = private.upload(ROW, "x"), private.upload(FEW)
    stuck = too_much(private, x)
    refused(private, stuck[0])
    commands = CommandList(private.queue.limits.max_binding)
    given = commands.slot(FEW.nbytes, given=True), commands.slot(ROW.nbytes, given=True)
    made = commands.slot(FEW.nbytes)
    commands.launch(private.add_pipeline, (1, 1, 1), [given[0], given[1], made])
    commands.outputs.append(made)
    for _ in range(3):
        [found] = private.queue.replay(commands, [few, x], [np.uint32(5).tobytes()])
        np.testing.assert_array_equal(private.numbers(found), FEW + ROW[:5])
        check_books(private)
    refused(private, stuck[0])
    del x
    stuck = stuck[:1]
    np.testing.assert_array_equal(private.numbers(stuck[0]), 9 * ROW)
    check_books(private)


def test_gradients_without_room_leave_other_tensors_alone() -> None:
    device = short(16).device
    w = wg.ones((512, 512), device=device).requires_grad_()
    y = w
    for _ in range(30):
        y = wg.tanh(y @ w * 0.001)
    y.sum().backward()
    for _ in range(2):
        with pytest.raises(
            OutOfMemoryError, match=r"(?s)The largest tensors: \d+ × .*tanh.* 1\.0 MiB.*test_shor"
        ):
            wg.Tensor.numpy(w.grad)  # type: ignore[arg-type]
        assert (wg.ones(3, device=device) * 2).tolist() == [2, 2, 2]
        wg.eval(wg.ones(3, device=device) + 1)
        assert float(w.sum().item()) == 512 * 512
    w.grad = None
    del y
    (w * 2).sum().backward()
    assert (wg.Tensor.numpy(w.grad) == 2).all()  # type: ignore[arg-type]


def test_random_work_over_the_budget() -> None:
    assert sum(random_work(seed) for seed in range(5)) > 0


def random_work(seed: int) -> int:
    """Random commands, writes, drops and reads with little room; gives how many reads were refused.

    What can be read is what NumPy says, and once only one value is held it can be.
    """
    generator, private = random.Random(seed), short(5)
    twice = private.pipeline(TWICE, "twice")
    held: list[tuple[Any, Floats]] = [(private.upload(ROW), ROW), (private.upload(FEW), FEW)]
    refusals = 0
    for _ in range(60):
        buffer, value = generator.choice(held)
        kind = generator.choice(("scale", "scale", "add", "twice", "drop", "read", "write"))
        try:
            if kind == "scale":
                held.append((private.scale(buffer, 0.5), value * np.float32(0.5)))
            elif kind == "add":
                other, more = generator.choice([each for each in held if each[1].size == value.size])
                held.append((private.add(buffer, other), value + more))
            elif kind == "twice" and value.size == ROW.size:
                private.device.dispatch(twice, [buffer], grid=(4096, 1, 1))
                held = [(each, now * 2) if each is buffer else (each, now) for each, now in held]
            elif kind == "write":
                private.queue.write(buffer, value + 1)
                held = [(each, now + 1) if each is buffer else (each, now) for each, now in held]
            elif kind == "drop" and len(held) > 2:
                held.remove(next(each for each in held if each[0] is buffer))
            elif kind == "read":
                np.testing.assert_array_equal(private.numbers(buffer), value)
        except OutOfMemoryError:
            refusals += 1
        check_books(private)
    buffer, value = generator.choice(held)
    held.clear()
    np.testing.assert_array_equal(private.numbers(buffer), value)
    check_books(private)
    return refusals
