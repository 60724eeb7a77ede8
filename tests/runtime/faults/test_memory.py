"""Memory that runs out at every allocation: the work is done, or waits, whole, until there is room again."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.runtime.faults.harness import Memory, check_books, fresh_kernel, sane, wrap
from tests.runtime.helpers import Bench, Floats, bench
from webgrad.config import MemoryBudget
from webgrad.errors import OutOfMemoryError
from webgrad.runtime.layer import READBACK, STORAGE, UNIFORM

pytestmark = [pytest.mark.gpu, pytest.mark.fault]

VALUES = np.arange(300, dtype=np.float32)
ENCODINGS: dict[str, dict[str, Any]] = {
    "fast-immediates": {"encoder": "fast", "immediates": True},
    "fast-uniform": {"encoder": "fast", "immediates": False},
    "plain-uniform": {"encoder": "plain", "immediates": False},
}


class Work:
    """Uploads, a long queue over many sizes, reads: each step can be asked for again after it failed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.uploaded: Any = None
        self.results: list[Any] = []
        self.read: list[Floats] = []
        self.steps: list[Callable[[], None]] = [self.upload, self.record, self.first, self.second, self.again]

    def upload(self) -> None:
        self.uploaded = self.uploaded or self.bench.upload(VALUES, "uploaded")

    def record(self) -> None:
        """Every size class once, and more commands than the first block of uniform parameters holds."""
        if not self.results:
            bench = self.bench
            with bench.queue.hold():
                small = bench.scale(self.uploaded, 2, "small")
                large = bench.device.allocate(40_000, "large")
                bench.device.dispatch(
                    bench.scale_pipeline, [small, large], struct.pack("<If", 300, 3.0), (5, 1, 1)
                )
                value = self.uploaded
                for _ in range(400):
                    value = bench.scale(value, 1)
                self.results = [bench.add(large, value), value]

    def first(self) -> None:
        self.read[:1] = [self.bench.numbers(self.results[0])[:300]]

    def second(self) -> None:
        self.read[1:2] = [self.bench.numbers(self.results[1])]

    def again(self) -> None:
        y = self.bench.scale(self.results[1], 5)
        self.read[2:3] = [self.bench.numbers(y)]

    def check(self) -> None:
        for found, factor in zip(self.read, (7, 1, 5), strict=True):
            np.testing.assert_array_equal(found, factor * VALUES)


def creations(settings: dict[str, Any]) -> list[tuple[int, ...]]:
    """What the workload asks the driver for, in order."""
    private = bench(**settings)
    memory = Memory(private.queue.context.native)
    work = Work(private)
    for step in work.steps:
        step()
    work.check()
    return memory.asked


def usages(asked: list[tuple[int, ...]]) -> set[int]:
    return {(*arguments, STORAGE)[1] for arguments in asked}


@pytest.mark.parametrize("settings", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_the_workload_meets_every_kind_of_allocation(settings: dict[str, Any]) -> None:
    wanted = {STORAGE, READBACK} if settings["immediates"] else {STORAGE, READBACK, UNIFORM}
    assert usages(creations(settings)) == wanted


@pytest.mark.parametrize("settings", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_one_failure_anywhere_is_not_noticed(settings: dict[str, Any]) -> None:
    for at in range(1, len(creations(settings)) + 1):
        private = bench(**settings)
        work = Work(private)
        with Memory(private.queue.context.native).failing(partial(operator.eq, at)):
            for step in work.steps:
                step()
                check_books(private)
        work.check()


@pytest.mark.parametrize("settings", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_no_room_from_any_allocation_on_loses_nothing(settings: dict[str, Any]) -> None:
    for at in range(1, len(creations(settings)) + 1):
        private = bench(**settings)
        work = Work(private)
        memory = Memory(private.queue.context.native)
        failed = 0
        with memory.failing(partial(operator.le, at)):
            for step in work.steps:
                for _ in range(2):
                    try:
                        step()
                        break
                    except OutOfMemoryError as error:
                        failed += 1
                        assert_accounted(error)
                        check_books(private)
                else:
                    break
        assert failed
        for step in work.steps:
            step()
            check_books(private)
        work.check()


def assert_accounted(error: OutOfMemoryError) -> None:
    """Asked, used, limit, the largest, and what to do."""
    message = str(error)
    for part in ("no room for a buffer of", "in use", "limit", "largest tensors", "WEBGRAD_MEMORY"):
        assert part in message


@pytest.mark.parametrize(
    ("method", "doing"),
    [
        ("create_group_layout", "making a bind group layout"),
        ("create_pipeline_layout", "making a pipeline layout"),
        ("create_pipeline", "compiling a shader"),
        ("create_bind_group", "making bind groups"),
        ("finish", "recording commands"),
        ("begin", "recording commands"),
        ("write", "writing"),
    ],
)
def test_no_room_for_what_is_not_a_buffer_keeps_the_work(method: str, doing: str) -> None:
    private = bench()
    x = private.upload(VALUES, "x")
    native = private.queue.context.native
    left = 1

    def fail(call: int) -> None:
        nonlocal left
        if left:
            left -= 1
            native.fail((3, "Not enough memory left."), doing)

    wrap(native, method, fail)
    y, z = private.device.allocate(1200, "y"), private.device.allocate(1200, "z")

    def work() -> Floats:
        private.device.dispatch(fresh_kernel(private), [x, y, x, z], grid=(4, 1, 1))
        private.queue.write(x, VALUES + 1)
        private.device.dispatch(fresh_kernel(private), [x, y, x, z], grid=(4, 1, 1))
        return private.numbers(z)[:256]

    with pytest.raises(OutOfMemoryError, match=r"no memory left while .*in use, limit"):
        work()
    check_books(private)
    np.testing.assert_array_equal(work(), 2 * (VALUES + 1)[:256])
    check_books(private)


def test_a_budget_of_a_few_megabytes_and_work_above_it() -> None:
    private = bench(memory=MemoryBudget(bytes=4 << 20))
    row = np.arange(1 << 18, dtype=np.float32)  # 1 MiB
    kept = [private.upload(row + number, f"kept {number}") for number in range(3)]
    with pytest.raises(OutOfMemoryError) as caught:
        private.numbers(private.add(private.scale(kept[0], 2), private.scale(kept[1], 2)))
    assert_accounted(caught.value)
    assert "kept 0 1.0 MiB" in str(caught.value)
    del caught  # its traceback holds on to what was to be added
    assert private.stats["bytes_live"] <= 4 << 20
    check_books(private)
    kept.pop()
    result = private.add(private.scale(kept[0], 2), kept[1])
    np.testing.assert_array_equal(private.numbers(result), 2 * row + row + 1)
    check_books(private)


def test_pending_work_above_the_budget_runs_once_there_is_room() -> None:
    private = bench(memory=MemoryBudget(bytes=4 << 20))
    row = np.arange(1 << 18, dtype=np.float32)
    x = private.upload(row, "x")
    ballast = [private.upload(row, "ballast") for _ in range(2)]
    with private.queue.hold():
        y = private.scale(x, 2, "y")
        z = private.scale(y, 3, "z")
    for _ in range(3):
        with pytest.raises(OutOfMemoryError):
            private.numbers(z)
        check_books(private)
    ballast.clear()
    np.testing.assert_array_equal(private.numbers(z), 6 * row)
    np.testing.assert_array_equal(private.numbers(y), 2 * row)
    check_books(private)


def test_a_loop_above_the_budget_recycles_within_it() -> None:
    private = bench(memory=MemoryBudget(bytes=6 << 20))
    value = private.upload(np.ones(1 << 18, np.float32))
    for _ in range(300):
        value = private.scale(value, 1.0)
    assert private.numbers(value).sum() == 1 << 18
    assert private.stats["bytes_peak"] <= 6 << 20
    sane(private)
    check_books(private)


def test_a_buffer_no_device_can_have_is_refused_at_once() -> None:
    private = bench()
    most = private.queue.limits.max_buffer
    for nbytes in (most + 1, 3 << 30, 1 << 62, 1 << 80):
        with pytest.raises(ValueError, match="split"):
            private.device.allocate(nbytes, "giant")
    sane(private)
