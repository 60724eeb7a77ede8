"""How long commands take on a device: GPU timestamps around one pass, or the clock around a submission.

In: a function that records commands. Out: seconds. The commands go through the device's own queue, alone in
their submission, with all of its checks; nothing else is in the pass that is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from wgpu.backends.wgpu_native import ffi

from .context import Context
from .native import NativeDevice
from .queue import Recorder
from .transfer import ReadBack
from .webgpu import Device

__all__ = ["Timer"]

_TIMES = 16  # bytes: two times of 64 bits
_RESOLVE = 0x200 | 0x04  # QueryResolve | CopySrc


class Timer:
    """Times commands on a device, while it is open. `close` it, or use it in a `with` statement."""

    def __init__(self, device: Device) -> None:
        self._queue = device.queue
        self._context = device.queue.context
        self._stamps = _Timestamps(self._context) if "timestamps" in device.features else None

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the queries go."""
        if self._stamps is not None:
            self._stamps.close()
            self._stamps = None

    @property
    def exact(self) -> bool:
        """Whether the GPU itself tells the time."""
        return self._stamps is not None

    def seconds(self, record: Callable[[Recorder], None]) -> float:
        """How long the GPU takes for what `record` records; other threads wait meanwhile."""
        found, waited = self.both(record)
        # A clock that stands still or runs backwards, as some drivers' do, is no clock.
        return found if found is not None and 0 < found <= 2 * waited else waited

    def both(self, record: Callable[[Recorder], None]) -> tuple[float | None, float]:
        """The seconds of the GPU's clock, None where it tells none, and those of the host's."""
        queue, stamps = self._queue, self._stamps
        with queue.lock:
            queue.synchronize()  # what others have recorded is not ours to time
            began = time.perf_counter()
            with queue.hold() as recorder:
                record(recorder)
            if stamps is None or queue.context is not self._context:
                queue.synchronize()
                return None, time.perf_counter() - began
            with stamps:
                queue.synchronize()
            waited = time.perf_counter() - began
            return stamps.seconds(), waited


class _Timestamps:
    """Two queries of one open device. As a context: its passes note when they begin and end."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._native: NativeDevice = context.native
        native = self._native
        self._target = native.create_buffer(_TIMES, _RESOLVE)
        self._queries: Any = None
        try:
            self._queries = native.create_queries(2)
        finally:
            if self._queries is None:
                native.release_buffer(self._target)
        self._writes = ffi.new("WGPUPassTimestampWrites *")
        self._writes.querySet = self._queries
        self._writes.beginningOfPassWriteIndex, self._writes.endOfPassWriteIndex = 0, 1
        self._descriptor = ffi.new("WGPUComputePassDescriptor *")
        self._descriptor.timestampWrites = self._writes
        self._period = native.timestamp_period()

    def __enter__(self) -> None:
        self._native.timed = self._descriptor

    def __exit__(self, *_: object) -> None:
        self._native.timed = None

    def seconds(self) -> float:
        """What lies between the two times of the last pass."""
        staging = self._context.staging
        size, handle = staging.take(_TIMES)
        try:
            self._context.submit(
                self._native.resolve(self._queries, self._target, [(self._target, 0, handle, _TIMES)])
            )
        except BaseException:
            staging.give(size, handle)
            raise
        first, last = ReadBack(staging, size, handle, _TIMES).wait().view(np.uint64)
        return (int(last) - int(first)) * self._period

    def close(self) -> None:
        self._native.release_queries(self._queries)
        self._native.release_buffer(self._target)
