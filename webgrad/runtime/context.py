"""What dies with an open device: native device, pool, bind groups, compiled pipelines, resolved queues.

The queue above it lives on: when a device is lost it gets a new context. The invariant: a physical buffer's
end ends its bind groups and the resolved queues that use it, so nothing prepared can name a freed object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..observing import stage
from .groups import BindGroups
from .layer import Answers, Copy, DeviceLayer, Handle, Prepared
from .pipelines import Compiler
from .pool import Pool
from .resolve import Resolved, ResolvedQueues
from .stats import Counters
from .transfer import Bytes, Staging, wait_until, write_bytes

UPLOADS_PER_SUBMIT = 16 << 20  # a write's staging memory is kept until a submit: submit after so many bytes


class Progress:
    """How many submissions the GPU has finished: the driver adds an item to `answers` for each."""

    __slots__ = ("_counted", "answers")

    def __init__(self) -> None:
        self.answers: Answers = []
        self._counted = 0

    @property
    def completed(self) -> int:
        return self._counted + len(self.answers)

    def count(self) -> None:
        """Shorten the list, under the queue's lock; who asks meanwhile may hear too few, never too many."""
        ended = len(self.answers)
        del self.answers[:ended]
        self._counted += ended


class Event:
    """One submission; it tells whether the GPU has finished.

    >>> device = wg.open_device("webgpu")
    >>> buffer = device.upload(np.arange(3, dtype=np.int32))
    >>> event = device.flush()
    >>> event is None or event.wait()
    True
    """

    __slots__ = ("_context", "_serial")

    def __init__(self, context: Context, serial: int) -> None:
        self._context = context
        self._serial = serial

    @property
    def finished(self) -> bool:
        """Whether the GPU is known to have finished, without asking it."""
        return self._context.progress.completed >= self._serial

    @property
    def done(self) -> bool:
        """Whether the GPU has finished; never blocks."""
        if not self.finished:
            self._context.check()
            self._context.native.poll()
        return self.finished

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the GPU has finished, or `timeout` seconds have passed; tells which."""
        context = self._context
        if not self.finished:
            context.check()
        return wait_until(lambda: self.finished, context.native, timeout)

    @property
    def lost(self) -> bool:
        """Whether its device is gone."""
        return not self._context.native.alive()


class Context:
    """An open device and its caches."""

    def __init__(
        self,
        open_layer: Callable[[Answers], DeviceLayer],
        features: frozenset[str],
        counters: Counters,
        *,
        budget: int,
        in_flight: int,
        encoder: str,
        largest: Callable[[], str],
    ) -> None:
        progress = Progress()
        native = open_layer(progress.answers)
        self.native = native
        self.progress = progress
        self.features = features
        self.counters = counters
        self.max_in_flight = in_flight
        self.pool = Pool(native, counters, budget, self._forget_buffer, largest, self._settle)
        native.account = self.pool.account
        self.groups = BindGroups(native, self.pool, counters)
        self.compiler = Compiler(native, self.groups, counters, features)
        self.encoder = native.make_encoder(encoder, self.pool.make)
        self.resolved = ResolvedQueues()
        self.staging = Staging(native, self.pool.make)
        self.closed = False
        self.submitted = 0
        self.check: Callable[[], None] = lambda: None  # raises where the driver must not be called
        self._in_flight: deque[Event] = deque()
        self._unsubmitted_bytes = 0

    def _forget_buffer(self, buffer: int) -> None:
        self.resolved.drop_buffer(buffer)
        self.groups.drop_buffer(buffer)

    def forsake(self, refuse: Callable[[], None]) -> None:
        """In a forked child: the driver is never called again; `refuse` raises whenever that is wanted."""
        self.check = refuse
        self.native.forsake()

    def _settle(self) -> None:
        event = self.submit(None)
        if self.native.blocking:
            event.wait()

    def redo(self, resolved: Resolved) -> None:
        """Lend and take back what a resolved queue does."""
        self.pool.bytes_peak = max(self.pool.bytes_peak, self.pool.bytes_live + resolved.peak)
        self.pool.take_these(resolved.to_lend)
        for buffer in resolved.to_give:
            self.pool.give(buffer)

    def undo(self, resolved: Resolved) -> None:
        """The reverse, for a queue that was not submitted after all."""
        self.pool.take_these(resolved.to_give)
        for buffer in resolved.to_lend:
            self.pool.give(buffer)

    def encode(self, prepared: Prepared, params: Sequence[bytes], copies: Sequence[Copy]) -> Handle:
        """A command buffer of rows in one pass, and copies behind it."""
        return self.encoder.encode(prepared, params, copies)

    def submit(self, commands: Any | None) -> Event:
        """Submit a command buffer (None: pending writes only)."""
        with stage("submit"):
            self.native.submit(commands, may_block=self.progress.completed < self.submitted)
        self._unsubmitted_bytes = 0
        self.submitted += 1
        self.counters.submissions += 1
        event = Event(self, self.submitted)
        self._in_flight.append(event)
        return event

    def throttle(self, *, poll: bool = True) -> None:
        """Let the driver free what is done; keep few submissions in flight and the caches in their limits."""
        if poll:
            self.native.poll()
        in_flight = self._in_flight
        self.progress.count()
        while in_flight and in_flight[0].finished:
            in_flight.popleft()
        if self.native.blocking:
            self.wait_for_room()
        if len(self.groups) > self.groups.limit:
            self.resolved.clear()
            self.groups.clear()

    def wait_for_room(self) -> None:
        """Wait until few submissions are in flight, where waiting is possible."""
        in_flight = self._in_flight
        while len(in_flight) > self.max_in_flight and self.native.can_wait:
            in_flight.popleft().wait()

    def write(self, buffer: int, source: Bytes) -> None:
        """Write host memory into a physical buffer, ahead of all that is submitted later."""
        with stage("transfer"):
            self._write(self.pool.buffers.get(buffer).handle, source)

    def _write(self, handle: Handle, source: Bytes) -> None:
        for start in range(0, source.nbytes, UPLOADS_PER_SUBMIT):
            part = source[start : start + UPLOADS_PER_SUBMIT]
            write_bytes(partial(self.native.write, handle), part, start)
            self._unsubmitted_bytes += part.nbytes
            if self._unsubmitted_bytes >= UPLOADS_PER_SUBMIT:
                self.submit(None)
                self.throttle()

    def close(self) -> None:
        """Let everything native go; the device itself goes with the last who waits on it."""
        if self.closed:
            return
        self.closed = True
        self.resolved.clear()
        self.compiler.close()
        self.encoder.close()
        self.groups.close()
        self.staging.close()
        self.pool.close()
