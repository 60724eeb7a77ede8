"""Events of submissions, how many may be in flight, and what a context undoes and redoes."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tests.limits import HANG
from tests.runtime.helpers import Bench, bench, floats
from webgrad.runtime.context import Event

pytestmark = pytest.mark.gpu

LONG = 5_000_000  # turns: some 0.1 s on a software adapter


def test_an_event_is_done_when_the_gpu_is(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(1)), 2)
    event = alone.device.flush()
    assert event is not None
    assert event.wait() is True
    assert event.done
    assert event.finished
    assert event.wait(0) is True
    assert alone.numbers(y).tolist() == [2]


def longer_and_longer(alone: Bench) -> Iterator[Event]:
    """Events of kernels, each of which takes twice as long as the one before.

    On a quick GPU, or where this thread has to wait for its turn, a short one is done before it is looked at.
    """
    busy = alone.upload(floats(1))
    alone.spin(busy, 1)
    alone.device.synchronize()  # compiled
    for doublings in range(8):
        alone.spin(busy, LONG << doublings)
        event = alone.device.flush()
        assert event is not None
        yield event
        alone.device.synchronize()


def test_a_long_kernel_is_not_done_at_once(alone: Bench) -> None:
    for event in longer_and_longer(alone):
        early = [event.done, event.wait(0), event.wait(0.02)]
        assert event.wait(HANG) is True
        assert event.done
        if not any(early):
            return
    pytest.fail(f"every kernel was done at once: {early}")


def test_a_wait_lets_other_threads_run(alone: Bench) -> None:
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.002):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    during = []
    for event in longer_and_longer(alone):
        before = ticks[0]
        event.wait()
        during.append(ticks[0] - before)
        if during[-1] > 5:
            break
    stop.set()
    thread.join()
    assert during[-1] > 5, during


def test_events_are_done_in_order(alone: Bench) -> None:
    x = alone.upload(floats(1))
    events = []
    for _ in range(20):
        x = alone.scale(x, 1)
        events.append(alone.device.flush())
    last = events[-1]
    assert last is not None
    last.wait()
    assert all(event is not None and event.finished for event in events)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_at_most_so_many_submissions_are_in_flight(most: int) -> None:
    limited = bench(in_flight=most)
    busy = limited.upload(floats(1))
    progress, context = limited.queue.context.progress, limited.queue.context
    for _ in range(12):
        limited.spin(busy, 200_000)
        limited.device.flush()
        assert context.submitted - progress.completed <= most
    limited.device.synchronize()
    assert context.submitted == progress.completed == 12


def test_no_submission_is_counted_twice_or_not_at_all(alone: Bench) -> None:
    for number in range(5):
        alone.numbers(alone.scale(alone.upload(np.zeros(1 << number)), 2))
    alone.upload(np.zeros(5_000_000))
    alone.queue.context._settle()
    alone.device.synchronize()
    context = alone.queue.context
    assert context.progress.completed == context.submitted == alone.stats["submissions"]


def test_undo_is_the_reverse_of_redo(alone: Bench) -> None:
    x = alone.upload(floats(1))
    y = alone.scale(x, 2)
    del x
    alone.device.flush()
    context = alone.queue.context
    (resolved,) = next(iter(context.resolved._queues.values()))
    free, live = set(context.pool.free), context.pool.bytes_live
    context.undo(resolved)
    context.redo(resolved)
    assert (context.pool.free, context.pool.bytes_live) == (free, live)
    assert alone.numbers(y).tolist() == [2]


def test_too_many_bind_groups_are_let_go_together_with_the_queues_that_use_them(alone: Bench) -> None:
    context = alone.queue.context
    context.groups.limit = 10
    x = alone.upload(floats(1))
    held = []
    for number in range(30):
        held.append(alone.scale(x, number))
        alone.device.flush()
        assert len(context.groups) <= 10
    assert len(context.resolved) <= 10
    assert [alone.numbers(buffer).tolist() for buffer in held] == [[number] for number in range(30)]
