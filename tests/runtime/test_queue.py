"""The queue: what is recorded, what flushes it and why, what is dropped, and threads that share it."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.runtime.helpers import Bench, bench, floats, scale_params
from webgrad.config import MemoryBudget
from webgrad.errors import OutOfMemoryError, StaleBufferError
from webgrad.runtime.buffers import Buffer, Virtual
from webgrad.runtime.queue import CUT_GROWTH, FIRST_CUT

pytestmark = pytest.mark.gpu


def flushes(bench: Bench) -> dict[str, int]:
    """The causes that flushed, with their counts."""
    return {cause: count for cause, count in bench.stats["flushes"].items() if count}


# Recording and flushing


def test_recording_runs_nothing(alone: Bench) -> None:
    x = alone.upload(floats(1, 2))
    y = alone.scale(x, 2)
    stats = alone.stats
    assert (stats["submissions"], stats["dispatches"], flushes(alone)) == (0, 0, {})
    assert stats["buffers_created"] == 1  # the upload's: a result has no memory before its flush
    assert alone.numbers(y).tolist() == [2, 4]


def test_a_read_flushes_once_with_its_copy_in_the_same_submission(alone: Bench) -> None:
    y = alone.scale(alone.scale(alone.upload(floats(1, 2)), 2), 3)
    assert alone.numbers(y).tolist() == [6, 12]
    stats = alone.stats
    assert flushes(alone) == {"read": 1}
    assert (stats["submissions"], stats["host_round_trips"]) == (1, 1)
    assert stats["commands"] == stats["dispatches"] == 2


def test_a_second_read_runs_nothing_again(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(3)), 2)
    assert alone.numbers(y).tolist() == alone.numbers(y).tolist() == [6]
    assert alone.stats["dispatches"] == 1
    assert alone.stats["host_round_trips"] == 2


def test_flush_submits_without_a_round_trip(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(3)), 2)
    event = alone.device.flush()
    assert event is not None
    assert flushes(alone) == {"eval": 1}
    assert alone.stats["host_round_trips"] == 0
    assert alone.numbers(y).tolist() == [6]


def test_synchronize_flushes_and_waits(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(3)), 2)
    alone.device.synchronize()
    assert flushes(alone) == {"synchronize": 1}
    assert alone.queue.last_event is not None
    assert alone.queue.last_event.finished
    assert alone.numbers(y).tolist() == [6]


def test_with_nothing_pending_nothing_is_submitted(alone: Bench) -> None:
    assert alone.device.flush() is None
    alone.device.synchronize()
    assert alone.stats["submissions"] == 0
    assert flushes(alone) == {}


def test_a_long_queue_is_cut_early_then_rarely(alone: Bench) -> None:
    x = alone.upload(floats(1))
    cuts = []
    for step in range(2 * FIRST_CUT * (1 + CUT_GROWTH + CUT_GROWTH**2)):
        before = alone.stats["submissions"]
        x = alone.scale(x, 1)
        if alone.stats["submissions"] > before:
            cuts.append(step)
    lengths = np.diff([0, *cuts]).tolist()
    assert lengths[:3] == [FIRST_CUT, FIRST_CUT * CUT_GROWTH, FIRST_CUT * CUT_GROWTH**2]
    assert set(flushes(alone)) == {"full"}
    alone.numbers(x)
    alone.device.reset_stats()
    for _ in range(FIRST_CUT + 1):  # after a read the GPU should start early again
        x = alone.scale(x, 1)
    assert flushes(alone) == {"full": 1}


def test_the_ramp_ends_at_the_setting() -> None:
    short = bench(queue=100)
    x = short.upload(floats(1))
    for _ in range(64 + 5 * 100 + 1):
        x = short.scale(x, 1)
    assert flushes(short) == {"full": 6}


def test_a_queue_setting_below_the_first_cut_holds_from_the_start() -> None:
    short = bench(queue=10)
    x = short.upload(floats(1))
    for _ in range(101):
        x = short.scale(x, 1)
    assert flushes(short) == {"full": 10}


def test_a_queue_without_its_first_command_is_cut_at_twice_the_length(alone: Bench) -> None:
    x = alone.upload(floats(1))
    y = alone.add(x, x)
    for _ in range(2 * FIRST_CUT - 1):
        y = alone.scale(y, 1)
    assert flushes(alone) == {}
    y = alone.scale(y, 1)
    assert flushes(alone) == {"full": 1}
    assert alone.numbers(y).tolist() == [2]


def test_too_many_bytes_flush(alone: Bench) -> None:
    small = bench(memory=MemoryBudget(bytes=4 << 20))
    x = small.upload(np.ones(1 << 16))
    for _ in range(40):  # 40 × 256 KiB through a 4 MiB budget
        x = small.scale(x, 1)
    assert flushes(small)["bytes"] >= 2
    assert small.numbers(x).tolist() == [1] * (1 << 16)
    assert small.stats["bytes_peak"] <= 4 << 20


def test_a_held_stretch_is_one_submission(alone: Bench) -> None:
    x = alone.upload(floats(1))
    with alone.queue.hold():
        for _ in range(1000):
            x = alone.scale(x, 1)
    assert flushes(alone) == {}
    alone.device.flush()
    assert alone.stats["submissions"] == 1
    assert alone.stats["dispatches"] == 1000


# Writes


def test_an_upload_flushes_nothing(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(1)), 2)
    z = alone.upload(floats(5))
    assert flushes(alone) == {}
    assert alone.numbers(alone.add(y, z)).tolist() == [7]


def test_an_upload_takes_no_time_that_grows_with_the_queue(
    alone: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    monkeypatch.setattr("webgrad.runtime.contents.uses_slot", lambda _, slot: decoded.append(slot))
    alone.scale(alone.upload(floats(1)), 2)
    alone.upload(floats(5))
    assert decoded == []


def test_a_write_to_a_buffer_that_no_command_uses_flushes_nothing(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(1)), 2)
    z = alone.device.allocate(4)
    alone.queue.write(z, floats(5))
    alone.queue.write(z, floats(6))
    assert flushes(alone) == {}
    assert alone.numbers(alone.add(y, z)).tolist() == [8]


@pytest.mark.parametrize("which", ["input", "output"])
def test_a_write_to_a_buffer_that_commands_use_flushes_first(alone: Bench, which: str) -> None:
    x = alone.upload(floats(1))
    y = alone.scale(x, 2)
    alone.queue.write(x if which == "input" else y, floats(10))
    assert flushes(alone) == {"write": 1}
    z = alone.scale(x, 3)
    assert alone.numbers(z).tolist() == [30 if which == "input" else 3]
    assert alone.numbers(y).tolist() == [2 if which == "input" else 10]


def test_a_write_to_a_buffer_whose_view_is_used_flushes_first(alone: Bench) -> None:
    x = alone.upload(np.arange(128))
    y = alone.scale(alone.queue.view(x, 256, 256), 1)
    alone.queue.write(x, np.zeros(128, np.float32))
    assert flushes(alone) == {"write": 1}
    assert alone.numbers(y).tolist() == list(range(64, 128))


def test_an_upload_without_room_makes_the_queue_give_back_what_was_dropped() -> None:
    small = bench(memory=MemoryBudget(bytes=4 << 20))
    megabyte = np.ones(1 << 18)
    weights = small.upload(2 * megabyte)
    sums = []
    for _ in range(6):  # each batch is dropped while the command that uses it is pending
        batch = small.upload(megabyte)
        total = small.device.allocate(4)
        small.add_into(weights, batch, total)
        sums.append(total)
    assert [small.numbers(total).tolist() for total in sums] == [[3]] * 6


def test_small_uploads_without_room_make_the_queue_give_back_what_was_dropped() -> None:
    small = bench(memory=MemoryBudget(bytes=32 * 256))
    for number in range(100):  # each upload is dropped while the command that overwrites it is pending
        y = small.scale(small.upload(floats(number)), 2)
    assert flushes(small)["bytes"] >= 2
    assert small.numbers(y).tolist() == [198]
    assert small.stats["dispatches"] == 100


def test_an_upload_without_room_in_a_held_stretch_is_an_error_and_loses_nothing() -> None:
    small = bench(memory=MemoryBudget(bytes=4 * 256))
    x = small.upload(floats(3))
    with small.queue.hold():
        y = small.scale(x, 2)
        held = [small.upload(floats(number)) for number in range(3)]
        with pytest.raises(OutOfMemoryError):
            small.upload(floats(9))
    assert flushes(small) == {}
    held.clear()
    assert small.numbers(y).tolist() == [6]


# Buffers that are dropped


def test_memory_of_dropped_uploads_comes_back_without_a_flush(alone: Bench) -> None:
    for _ in range(10):
        alone.upload(np.zeros(1 << 18))
    for _ in range(10):
        alone.upload(np.zeros(16))
    alone.device.flush()
    assert alone.stats["bytes_live"] == 0
    assert alone.stats["buffers_created"] <= 2
    assert alone.stats["submissions"] == 0


def test_dropped_uploads_come_back_when_unused_slots_are_tidied(alone: Bench) -> None:
    y = alone.scale(alone.upload(floats(1)), 2)
    for _ in range(5000):
        alone.device.allocate(16)
    alone.upload(np.zeros(1 << 18))
    alone.upload(np.zeros(1 << 18))
    assert alone.numbers(y).tolist() == [2]
    alone.device.flush()
    assert alone.stats["bytes_live"] == 256


def test_a_result_dropped_before_the_flush_is_computed_for_its_readers(alone: Bench) -> None:
    x = alone.upload(floats(1, 2))
    y = alone.scale(x, 2)
    z = alone.scale(y, 10)
    del x, y
    assert alone.numbers(z).tolist() == [20, 40]
    assert alone.stats["bytes_live"] == 256


def test_live_tensors_do_not_keep_the_records_of_their_queues(alone: Bench) -> None:
    kept = []
    for _ in range(3):
        x = alone.upload(floats(1))
        for _ in range(20):
            x = alone.scale(x, 1, "traced")
        kept.append(x)
        alone.device.flush()
    gc.collect()
    records = [each for each in gc.get_objects() if isinstance(each, Virtual) and each.label == "traced"]
    assert len(records) == len(kept)


def test_a_freed_buffer_is_stale(alone: Bench) -> None:
    x = alone.upload(floats(1), "x")
    y = alone.scale(x, 2)
    x.free()
    for use in (lambda: alone.scale(x, 2), lambda: alone.numbers(x), lambda: alone.queue.write(x, floats(1))):
        with pytest.raises(StaleBufferError, match="is gone"):
            use()
    x.free()  # again: nothing happens
    assert alone.numbers(y).tolist() == [2]


def test_a_freed_buffer_is_stale_when_its_slot_is_taken_again(alone: Bench) -> None:
    x = alone.upload(floats(1))
    x.free()
    others = [alone.upload(floats(9)) for _ in range(3)]
    with pytest.raises(StaleBufferError):
        alone.numbers(x)
    assert [alone.numbers(other).tolist() for other in others] == [[9]] * 3


# Threads


def test_threads_share_a_device(encoded: Bench) -> None:
    barrier = threading.Barrier(8)

    def work(number: int) -> list[list[float]]:
        results = []
        barrier.wait()
        for step in range(15):
            x = encoded.upload(floats(number, step))
            y = encoded.add(encoded.scale(x, 2), x)
            for _ in range(step % 4):
                y = encoded.scale(y, 1)
            results.append(encoded.numbers(y).tolist())
        return results

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(8)))
    assert found == [[[3.0 * number, 3.0 * step] for step in range(15)] for number in range(8)]


def test_a_thread_may_use_what_another_made(alone: Bench) -> None:
    made: list[Buffer] = []
    thread = threading.Thread(target=lambda: made.append(alone.scale(alone.upload(floats(4)), 2)))
    thread.start()
    thread.join()
    assert alone.numbers(made[0]).tolist() == [8]


def test_a_flush_without_room_loses_nothing() -> None:
    small = bench(memory=MemoryBudget(bytes=4 << 20))
    spare = small.upload(np.ones(1 << 19), "spare")
    x = small.upload(np.ones(1 << 18), "x")
    y = small.device.allocate(2 << 20)
    small.device.dispatch(small.scale_pipeline, [x, y], scale_params(1, 5), (1, 1, 1))
    for _ in range(2):
        with pytest.raises(OutOfMemoryError, match=r"no room for a buffer of 2.0 MiB: 3.0 MiB in use.*spare"):
            small.device.flush()
    assert small.stats["bytes_live"] == 3 << 20
    spare.free()
    assert small.numbers(y)[0] == 5
    assert small.stats["dispatches"] == 1


def test_numbered_heads_are_bounded(alone: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webgrad.runtime.queue.HEADS_KEPT", 8)
    source = alone.device.upload(floats(1, 2, 3))
    for grid in range(1, 40):
        result = alone.device.allocate(12)
        alone.device.dispatch(alone.scale_pipeline, (source, result), scale_params(3, grid), (grid, 1, 1))
        assert np.array_equal(alone.device.read(result).view(np.float32), floats(1, 2, 3) * grid)
    assert len(alone.queue._heads) <= 8
