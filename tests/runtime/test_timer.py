"""Timing commands on a device: by its own timestamps where it has them, by the clock where not."""

from __future__ import annotations

import gc
from unittest.mock import patch

import numpy as np
import pytest

from tests.limits import HANG
from tests.runtime.helpers import Bench, bench, floats
from webgrad.errors import DeviceLostError
from webgrad.runtime import timestamps
from webgrad.runtime.native import native_object_counts, native_of
from webgrad.runtime.timer import Timer

pytestmark = pytest.mark.gpu


def spin_seconds(bench: Bench, timer: Timer, turns: int) -> float:
    y = bench.upload(floats(1))
    return timer.seconds(lambda _: bench.spin(y, turns))


# Turns of a kernel, more and more: on a busy machine what is short may take as long as what is longer, but
# not as long as whatever is longer.
MORE = tuple(500_000 * 4**number for number in range(6))


def grows(bench: Bench, timer: Timer) -> bool:
    """Whether more work takes longer."""
    return any(0 < spin_seconds(bench, timer, 1000) < spin_seconds(bench, timer, turns) for turns in MORE)


def test_timestamps_grow_with_the_work(encoded: Bench) -> None:
    with Timer(encoded.device) as timer:
        assert timer.exact
        spin_seconds(encoded, timer, 1)  # compiles
        assert grows(encoded, timer)


def test_the_clock_where_there_are_no_timestamps() -> None:
    plain = bench(disable_features=frozenset({"timestamps"}))
    plain.device.features -= {"timestamps"}
    with Timer(plain.device) as timer:
        assert not timer.exact
        spin_seconds(plain, timer, 1)
        assert grows(plain, timer)


@pytest.mark.parametrize("told", [0.0, -1.0, 1e9])
def test_a_clock_that_cannot_be_right_is_not_believed(alone: Bench, told: float) -> None:
    with Timer(alone.device) as timer, patch.object(timestamps.Timestamps, "seconds", lambda _: told):
        assert 0 < spin_seconds(alone, timer, 1000) < HANG


def test_what_waited_before_is_done_and_not_timed(alone: Bench) -> None:
    x = alone.upload(floats(1, 2, 3))
    with Timer(alone.device) as timer:
        spin_seconds(alone, timer, 1)
        alone.numbers(alone.scale(x, 1))
        y, z = alone.scale(x, 3), alone.upload(floats(1))

        def timed_behind(turns: int) -> float:
            alone.spin(z, turns)
            return timer.seconds(lambda _: alone.scale_into(x, alone.device.allocate(12), 2))

        assert any(timed_behind(turns) < spin_seconds(alone, timer, turns) / 2 for turns in MORE)
        assert alone.queue.waiting == 0
        assert alone.numbers(y).tolist() == [3, 6, 9]
        assert alone.numbers(alone.scale(y, 2)).tolist() == [6, 12, 18]
    assert native_of(alone.queue.context.native).timed is None


def test_an_error_while_recording_leaves_the_queue_usable(alone: Bench) -> None:
    with Timer(alone.device) as timer:
        with pytest.raises(ZeroDivisionError):
            timer.seconds(lambda _: print(1 // 0))
        assert spin_seconds(alone, timer, 10) > 0


def test_a_device_lost_meanwhile(alone: Bench) -> None:
    with Timer(alone.device) as timer:
        spin_seconds(alone, timer, 1)
        alone.queue.context.native.destroy()
        with pytest.raises(DeviceLostError):
            spin_seconds(alone, timer, 1)
        assert spin_seconds(alone, timer, 1) > 0  # on the new device, by the clock
    with Timer(alone.device) as timer:
        assert timer.exact
        assert spin_seconds(alone, timer, 1) > 0


def test_no_native_object_is_left(alone: Bench) -> None:
    def timed() -> dict[str, int]:
        for _ in range(3):
            with Timer(alone.device) as timer:
                spin_seconds(alone, timer, 1)
        alone.device.synchronize()
        gc.collect()
        return native_object_counts()

    before = timed()
    assert {kind: count - before.get(kind, 0) for kind, count in timed().items()} == dict.fromkeys(before, 0)


def test_times_come_from_the_pass_of_the_commands(alone: Bench) -> None:
    x = alone.upload(np.zeros(4))
    with Timer(alone.device) as timer:
        timer.seconds(lambda _: alone.spin(x, 1))

        def several(count: int, turns: int) -> float:
            def record(_: object) -> None:
                for _each in range(count):
                    alone.spin(x, turns)

            return timer.seconds(record)

        assert any(several(4, turns) > 2 * several(1, turns) for turns in MORE)
