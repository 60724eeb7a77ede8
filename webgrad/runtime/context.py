"""Everything that dies with an open device: native device, pool, bind groups, compiled pipelines, resolved queues.

The queue above it lives on: when a device is lost it gets a new context. The invariant: a physical buffer's end
ends its bind groups and the resolved queues that use it, so nothing prepared can name a freed object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from wgpu.backends.wgpu_native import ffi

from .encode import make_encoder
from .groups import BindGroups
from .native import NativeDevice
from .pipelines import Compiler
from .pool import Pool
from .resolve import Resolved, ResolvedQueues
from .stats import Counters
from .transfer import Bytes, Staging, wait_until, write_bytes

__all__ = ["Context", "Event"]

UPLOADS_PER_SUBMIT = 16 << 20  # a write's staging memory is kept until a submit: submit after so many bytes


class Event:
    """One submission: has the GPU finished it?"""

    __slots__ = ("_context", "_serial", "_submission")

    def __init__(self, context: Context, serial: int, submission: int) -> None:
        self._context = context
        self._serial = serial
        self._submission = submission

    @property
    def finished(self) -> bool:
        """Whether the GPU is known to have finished, without asking it."""
        return self._context.completed >= self._serial

    @property
    def done(self) -> bool:
        """Whether the GPU has finished; never blocks."""
        if not self.finished:
            self._context.native.poll()
        return self.finished

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the GPU has finished, or `timeout` seconds have passed; tells which."""
        context = self._context
        return wait_until(lambda: self.finished, context.native, self._submission, timeout)


class Context:
    """An open device and its caches."""

    def __init__(
        self,
        native: NativeDevice,
        features: frozenset[str],
        counters: Counters,
        *,
        budget: int,
        in_flight: int,
        encoder: str,
        largest: Callable[[], str],
    ) -> None:
        self.native = native
        self.counters = counters
        self.max_in_flight = in_flight
        self.pool = Pool(native, counters, budget, self._forget_buffer, largest)
        self.groups = BindGroups(native, self.pool, counters)
        self.compiler = Compiler(native, self.groups, counters, features)
        self.encoder = make_encoder(encoder, native, self.groups)
        self.resolved = ResolvedQueues()
        self.staging = Staging(native)
        self.completed = 0  # submissions the GPU has finished
        self.submitted = 0
        self.last_submission = 0
        self._in_flight: deque[Event] = deque()
        self._unsubmitted_bytes = 0
        self._finished_ticket: Any = ffi.new_handle(self._on_finished)

    def _on_finished(self) -> None:
        self.completed += 1

    def _forget_buffer(self, buffer: int) -> None:
        self.resolved.drop_buffer(buffer)
        self.groups.drop_buffer(buffer)

    def redo(self, resolved: Resolved) -> None:
        """Lend and take back what a resolved queue does."""
        self.pool.take_these(resolved.to_lend)
        for buffer in resolved.to_give:
            self.pool.give(buffer)

    def undo(self, resolved: Resolved) -> None:
        """The reverse, for a queue that was not submitted after all."""
        self.pool.take_these(resolved.to_give)
        for buffer in resolved.to_lend:
            self.pool.give(buffer)

    def submit(self, commands: Any | None) -> Event:
        """Submit a command buffer (None: pending writes only)."""
        self.last_submission = self.native.submit(commands)
        self._unsubmitted_bytes = 0
        self.submitted += 1
        self.counters.submissions += 1
        self.native.when_done(self._finished_ticket)
        event = Event(self, self.submitted, self.last_submission)
        self._in_flight.append(event)
        return event

    def throttle(self) -> None:
        """Let the driver free what is done, keep few submissions in flight and the caches within their limits."""
        self.native.poll()
        in_flight = self._in_flight
        while in_flight and in_flight[0].finished:
            in_flight.popleft()
        while len(in_flight) > self.max_in_flight:
            in_flight.popleft().wait()
        if len(self.groups) > self.groups.limit:
            self.resolved.clear()
            self.groups.clear()

    def write(self, buffer: int, source: Bytes) -> None:
        """Write host memory into a physical buffer, ahead of all that is submitted later."""
        handle = self.pool.buffers.get(buffer).handle
        for start in range(0, source.nbytes, UPLOADS_PER_SUBMIT):
            part = source[start : start + UPLOADS_PER_SUBMIT]
            write_bytes(lambda offset, data, nbytes, at=start: self.native.write(handle, at + offset, data, nbytes), part)
            self._unsubmitted_bytes += part.nbytes
            if self._unsubmitted_bytes >= UPLOADS_PER_SUBMIT:
                self.submit(None)
                self.throttle()

    def close(self) -> None:
        """Let everything native go."""
        self.resolved.clear()
        self.compiler.close()
        self.groups.clear()
        self.staging.clear()
        for physical in self.pool.buffers:
            self.native.release_buffer(physical.handle)
        self.native.close()
