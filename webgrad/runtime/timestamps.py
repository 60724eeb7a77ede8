"""GPU timestamps around passes, by wgpu-native.

In: a context that is open. Out: seconds by the GPU's own clock: of one pass (`Timestamps`), or of every
launch of a flush, each in a pass of its own (`PassTimes`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wgpu.backends.wgpu_native import ffi, lib

from ..arrays import np
from .context import Context
from .launches import Flush
from .layer import Handle
from .native import native_of
from .transfer import ReadBack

_TIMES = 16  # bytes: two times of 64 bits
_RESOLVE = 0x200 | 0x04  # QueryResolve | CopySrc
_IN_A_SET = 1024  # launches that a set of queries has times for; WebGPU allows 4096 queries


class Timestamps:
    """Two queries of one open device. As a context: its passes note when they begin and end."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._native = native_of(context.native)
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
        self.period = native.timestamp_period()

    def __enter__(self) -> None:
        self._native.timed = self._descriptor

    def __exit__(self, *_: object) -> None:
        self._native.timed = None

    def seconds(self) -> float:
        """What lies between the two times of the last pass."""
        staging = self._context.staging
        size, handle = staging.take(_TIMES)

        def resolve(encoder: Handle) -> None:
            lib.wgpuCommandEncoderResolveQuerySet(encoder, self._queries, 0, 2, self._target, 0)
            lib.wgpuCommandEncoderCopyBufferToBuffer(encoder, self._target, 0, handle, 0, _TIMES)

        try:
            self._context.submit(self._native.encode_apart(resolve))
        except BaseException:
            staging.give(size, handle)
            raise
        times = ReadBack(staging, size, handle, _TIMES).wait().tobytes()
        first, last = (int.from_bytes(each, sys.byteorder) for each in (times[:8], times[8:]))
        return (last - first) * self.period

    def close(self) -> None:
        self._native.release_queries(self._queries)
        self._native.release_buffer(self._target)


class PassTimes:
    """Times of every launch: when it began and ended, in the GPU's own seconds, of one open device."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._native = native_of(context.native)
        self._sets: list[Handle] = []
        self._target: Handle = None
        self._staged: tuple[int, Handle, int] | None = None  # of the flush that is about to be submitted
        self._period = self._native.timestamp_period()

    def encode(self, flush: Flush) -> Handle:
        """The flush's command buffer; `started` tells of its times once it is submitted."""
        count = len(flush.launches)
        self._reserve(count)
        nbytes = _TIMES * count
        size, staging = self._context.staging.take(nbytes)
        self._staged = size, staging, nbytes

        def fill(encoder: Handle) -> None:
            params = [each.params for each in flush.launches]
            self._context.encoder.run_apart(
                lambda number: self._pass(encoder, number), flush.prepared, params
            )
            for at, queries in enumerate(self._sets):
                first = at * _IN_A_SET
                if first < count:
                    many = min(_IN_A_SET, count - first)
                    lib.wgpuCommandEncoderResolveQuerySet(
                        encoder, queries, 0, 2 * many, self._target, first * _TIMES
                    )
            copies = [(self._target, 0, staging, nbytes), *flush.copies]
            for source, offset, target, length in copies:
                lib.wgpuCommandEncoderCopyBufferToBuffer(encoder, source, offset, target, 0, length)

        try:
            return self._native.encode_apart(fill)
        except BaseException:
            self._context.staging.give(size, staging)
            raise

    @property
    def staged(self) -> bool:
        """Whether a flush was encoded of which `started` was not asked yet."""
        return self._staged is not None

    def started(self) -> Callable[[], np.ndarray[Any, Any]]:
        """After the submit: a function that waits for the times, and gives (begin, end) of each launch."""
        assert self._staged is not None
        size, staging, nbytes = self._staged
        self._staged = None
        reading = ReadBack(self._context.staging, size, staging, nbytes)
        return lambda: reading.wait().view(np.uint64).reshape(-1, 2) * self._period

    def _reserve(self, count: int) -> None:
        missing = -(-count // _IN_A_SET) - len(self._sets)
        if missing <= 0:
            return
        self._sets += [self._native.create_queries(2 * _IN_A_SET) for _ in range(missing)]
        if self._target is not None:
            self._native.release_buffer(self._target)
            self._target = None
        self._target = self._native.create_buffer(len(self._sets) * _IN_A_SET * _TIMES, _RESOLVE)

    @contextmanager
    def _pass(self, encoder: Handle, number: int) -> Iterator[Handle]:
        writes = ffi.new("WGPUPassTimestampWrites *")
        writes.querySet = self._sets[number // _IN_A_SET]
        place = 2 * (number % _IN_A_SET)
        writes.beginningOfPassWriteIndex, writes.endOfPassWriteIndex = place, place + 1
        descriptor = ffi.new("WGPUComputePassDescriptor *")
        descriptor.timestampWrites = writes
        opened = lib.wgpuCommandEncoderBeginComputePass(encoder, descriptor)
        try:
            yield opened
        finally:
            lib.wgpuComputePassEncoderEnd(opened)
            lib.wgpuComputePassEncoderRelease(opened)

    def close(self) -> None:
        """Let the queries go."""
        for each in self._sets:
            self._native.release_queries(each)
        if self._target is not None:
            self._native.release_buffer(self._target)
        self._sets, self._target = [], None
