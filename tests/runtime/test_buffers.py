"""Buffers: references that free what they refer to when they are dropped."""

from __future__ import annotations

import gc

import pytest

from tests.runtime.helpers import Bench, floats
from webgrad.errors import BufferError

pytestmark = pytest.mark.gpu


def test_a_buffer_says_what_it_is(shared: Bench) -> None:
    name = shared.device.name
    assert repr(shared.device.allocate(5000, "weights")) == f"<Buffer 'weights': 5,000 bytes on {name}>"
    assert repr(shared.device.allocate(0)) == f"<Buffer: 0 bytes on {name}>"
    assert shared.device.allocate(5000).nbytes == 5000


def test_a_record_describes_itself_for_errors(shared: Bench) -> None:
    assert shared.device.allocate(5000, "weights").virtual.describe() == "'weights' (5,000 bytes)"
    assert shared.device.allocate(1).virtual.describe() == "an unnamed buffer (1 bytes)"


def test_dropping_the_last_reference_frees_the_memory(alone: Bench) -> None:
    x = alone.upload(floats(1))
    same = x
    del x
    alone.device.flush()
    assert alone.stats["bytes_live"] == 256
    del same
    alone.device.flush()
    assert alone.stats["bytes_live"] == 0


def test_buffers_in_a_cycle_are_freed_by_the_collector(alone: Bench) -> None:
    cycle: dict[str, object] = {"buffer": alone.upload(floats(1))}
    cycle["self"] = cycle
    del cycle
    gc.collect()
    alone.device.flush()
    assert alone.stats["bytes_live"] == 0


def test_free_then_drop_frees_once(alone: Bench) -> None:
    x = alone.upload(floats(1))
    x.free()
    others = [alone.upload(floats(number)) for number in range(3)]  # one of them has the slot of x
    del x
    alone.device.flush()
    assert [alone.numbers(other).tolist() for other in others] == [[0], [1], [2]]
    assert alone.stats["bytes_live"] == 3 * 256


def test_what_is_not_a_buffer_is_refused(shared: Bench) -> None:
    with pytest.raises(BufferError, match="ndarray is not a device"):
        shared.device.read(floats(1))  # type: ignore[arg-type]


def test_a_buffer_collected_while_its_queue_is_locked(alone: Bench) -> None:
    with alone.queue.lock:
        x = alone.upload(floats(1))
        del x
        y = alone.upload(floats(2))
    assert alone.numbers(y).tolist() == [2]
    alone.device.flush()
    assert alone.stats["bytes_live"] == 256
