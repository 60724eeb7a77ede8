"""The device layer: errors reach the thread that made them, and no native object is left over."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from wgpu.backends.wgpu_native import lib

from tests.runtime.helpers import Bench, bench, floats
from tests.runtime.test_pipelines import BROKEN, variant
from webgrad.errors import CompileError, DeviceError
from webgrad.runtime.native import native_object_counts, native_of

pytestmark = pytest.mark.gpu


def counts() -> dict[str, int]:
    """The native objects there are, once those of devices that earlier tests dropped are gone."""
    gc.collect()
    return native_object_counts()


def test_a_thread_waits_for_the_error_scopes_of_another(alone: Bench) -> None:
    native = alone.queue.context.native
    with ThreadPoolExecutor(1) as threads:
        native.push_scope()
        try:
            failing = threads.submit(native.create_buffer, 1 << 50)
            # Scopes opened now would lie above ours on the device's one stack, and take each other's errors.
            assert wait([failing], 0.2).not_done == {failing}
        finally:
            error = native.pop_scope()
        assert error is None
        with pytest.raises(DeviceError, match=r"refused making a buffer of 1,125,899,906,842,624 bytes"):
            failing.result(5)


def test_a_compile_error_beside_busy_threads_is_nobody_elses(alone: Bench) -> None:
    layout = alone.queue.context.groups.layout(("read_write",))
    native = alone.queue.context.native
    stop = threading.Event()

    def compile_broken() -> int:
        failures = 0
        while not stop.is_set():
            with pytest.raises(CompileError):
                native.create_pipeline(BROKEN, "broken", layout.pipeline, checked=True)
            failures += 1
        return failures

    with ThreadPoolExecutor(2) as threads:
        failing = [threads.submit(compile_broken) for _ in range(2)]
        try:
            for number in range(60):
                x = alone.upload(np.full(10 + number, 1))
                assert alone.numbers(alone.scale(x, number)).tolist() == [number] * (10 + number)
        finally:
            stop.set()
        assert all(each.result(10) > 0 for each in failing)


def test_a_loop_leaves_no_native_object_behind(encoded: Bench) -> None:
    x = encoded.upload(np.arange(100))

    def turn(number: int) -> None:
        y = encoded.add(encoded.scale(x, number), x)
        z = encoded.scale(encoded.queue.view(y, 256, 16), 2)
        encoded.queue.write(y, np.zeros(100, np.float32))
        encoded.numbers(encoded.scale(z, 1))
        encoded.upload(floats(number))
        encoded.device.flush()

    for number in range(5):
        turn(number)
    before = counts()
    for number in range(200):
        turn(number)
    encoded.device.synchronize()
    after = counts()
    assert {
        kind: (before.get(kind, 0), after[kind]) for kind in after if after[kind] != before.get(kind)
    } == {}


def test_refused_work_leaves_no_native_object_behind(alone: Bench) -> None:
    broken = alone.pipeline(BROKEN, "broken")

    def turn() -> None:
        y = alone.device.allocate(4)
        alone.device.dispatch(broken, [y])
        with pytest.raises(CompileError):
            alone.device.flush()
        with pytest.raises(DeviceError):
            alone.queue.context.native.create_buffer(1 << 50)

    turn()
    before = counts()
    for _ in range(20):
        turn()
    alone.device.synchronize()
    assert counts() == before


def test_a_closed_context_lets_everything_go() -> None:
    before = counts()
    closing = bench(immediates=False)
    x = closing.upload(floats(1))
    for number in range(3):
        y = closing.device.allocate(4)
        closing.device.dispatch(closing.device.pipeline(variant(number)), [x, y], bytes([1, *bytes(7)]))
        assert closing.numbers(y).tolist() == [number]
    assert counts() != before
    closing.queue.context.close()
    del closing, x, y
    assert counts() == before


def test_a_forsaken_device_is_left_to_its_owner() -> None:
    before = counts()
    forsaken = bench()
    native = native_of(forsaken.queue.context.native)
    device, queue = native.device, native.queue
    native.forsake()
    forsaken.queue.context.close()
    del forsaken, native
    assert counts()["Device"] == before.get("Device", 0) + 1
    lib.wgpuQueueRelease(queue)
    lib.wgpuDeviceRelease(device)
    assert counts().get("Device", 0) == before.get("Device", 0)
