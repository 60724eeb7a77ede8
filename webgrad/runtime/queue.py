"""The queue: commands are recorded against virtual buffers, and run when a value is needed.

Comes in: dispatches (pipeline, buffers, parameters, grid), uploads, reads. A flush resolves what is pending (or
finds it resolved), encodes it into one pass and submits once. The invariant: recording changes nothing but the
pending list, and a flush that raises before its submit leaves that list as it was, unless the device is lost.
All of it happens under one lock, so threads may share a device.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import (
    BufferError,
    DeviceError,
    DeviceLostError,
    ForeignBufferError,
    LaunchError,
    OutOfMemoryError,
    ShaderError,
)
from .arena import Arena
from .buffers import Buffer, Virtual
from .context import Context, Event
from .pipelines import PADDING, Pipeline
from .pool import size_class
from .resolve import Grid, Head, Pending, Resolved, resolve
from .stats import Counters, readable_bytes
from .transfer import Bytes, ReadBack, as_bytes

__all__ = ["Limits", "Queue"]

Copy = tuple[int, Any, int]  # slot, read-back handle, bytes

FIRST_CUT = 64  # commands before the first flush after a read: the GPU should start early
CUT_GROWTH = 4
_SIZES_KEPT = 4096


class Limits:
    """What the queue must know of its device."""

    __slots__ = ("max_buffer", "max_commands", "max_pending_bytes", "max_workgroups", "min_offset")

    def __init__(
        self, max_commands: int, max_pending_bytes: int, max_workgroups: int, max_buffer: int, min_offset: int
    ) -> None:
        self.max_commands = max_commands
        self.max_pending_bytes = max_pending_bytes
        self.max_workgroups = max_workgroups
        self.max_buffer = max_buffer
        self.min_offset = min_offset


class Queue:
    """Virtual buffers and the commands over them, of one device. `open_context` opens the device (again)."""

    def __init__(self, name: str, limits: Limits, counters: Counters, open_context: Callable[[], Context]) -> None:
        self.name = name
        self.limits = limits
        self.counters = counters
        self.context = open_context()
        self.dropped: deque[int] = deque()  # handles whose Buffer was collected; anyone may append at any time
        self.trouble: Callable[[], None] | None = None  # raises, or repairs what keeps the device from being used
        self.last_event: Event | None = None
        self._open_context = open_context
        self._virtual: Arena[Virtual] = Arena("buffer")
        self._pending = Pending()
        self._heads: list[Head] = []  # (pipeline, grid) by number, as it stands in the pending code
        self._head_numbers: dict[Head, int] = {}
        self._sizes: dict[int, int] = {}  # bytes → size class, for sizes seen
        self._cut_at = FIRST_CUT
        self._held = 0
        self._pending_bytes = 0
        self.renew_lock()

    def renew_lock(self) -> None:
        """A lock nobody holds: at the start, and in a forked child."""
        self.lock = threading.RLock()
        self._acquire, self._release_lock = self.lock.acquire, self.lock.release

    # Buffers

    def allocate(self, nbytes: int, label: str = "") -> Buffer:
        """A new virtual buffer; no memory is taken until something is written to it."""
        self._acquire()
        try:
            if self.dropped or self.trouble is not None:
                self._enter()
            size = self._sizes.get(nbytes) or self._size_of(nbytes, label)
            self._pending_bytes += size
            if self._pending_bytes > self.limits.max_pending_bytes:
                self._flush_bytes(size)
            pending = self._pending
            virtuals = pending.virtuals
            virtual = Virtual(nbytes, size, label, pending, len(virtuals))
            virtuals.append(virtual)
            return Buffer(self, self._virtual.insert(virtual), virtual)
        finally:
            self._release_lock()

    def _size_of(self, nbytes: int, label: str) -> int:
        if not 0 <= nbytes <= self.limits.max_buffer:
            raise BufferError(
                f"a buffer {label!r} of {nbytes:,} bytes cannot be: this device's buffers have from 0 to "
                f"{self.limits.max_buffer:,} bytes; split the tensor"
            )
        if len(self._sizes) >= _SIZES_KEPT:
            self._sizes.clear()
        size = self._sizes[nbytes] = size_class(nbytes)
        return size

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """A part of a buffer, to be bound on its own: the way round the limit on a binding's size."""
        with self.lock:
            self._enter()
            whole = self._get(buffer)
            step = self.limits.min_offset
            if offset % step or offset < 0 or nbytes <= 0 or nbytes % 4 or offset + nbytes > (whole.nbytes + 3) & ~3:
                raise BufferError(
                    f"a view of {nbytes} bytes at offset {offset} of {whole.describe()} cannot be: the offset must be a "
                    f"multiple of {step}, the length a multiple of 4, and both inside the buffer"
                )
            base, start = whole.view or (buffer.handle, 0)
            virtual = Virtual(nbytes, 0, whole.label, None, 0)
            virtual.view = (base, start + offset)
            return Buffer(self, self._virtual.insert(virtual), virtual, buffer)

    def release(self, handle: int) -> None:
        """Free a virtual buffer; from now on its handle is stale."""
        with self.lock:
            self.dropped.append(handle)
            self._drain()

    def _drain(self) -> None:
        """Let go of the buffers that were dropped. One with a slot gives its memory back at the next flush."""
        dropped, discard, pending = self.dropped, self._virtual.discard, self._pending
        while dropped:
            virtual = discard(dropped.popleft())
            if virtual is not None:
                if virtual.pending is pending:
                    virtual.pending = None
                elif virtual.physical:
                    self.context.pool.give(virtual.physical)
                    virtual.physical = 0

    def _get(self, buffer: Buffer) -> Virtual:
        if not isinstance(buffer, Buffer):
            raise BufferError(f"a {type(buffer).__name__} is not a buffer: upload it first")
        if buffer.queue is not self:
            raise ForeignBufferError(f"{buffer!r} belongs to another device, not to this {self.name}: move it here first")
        return self._virtual.get(buffer.handle)

    def _enter(self) -> None:
        """What every entry does first: find out whether the device can be used, and let dropped buffers go."""
        if self.trouble is not None:
            self.trouble()
        if self.dropped:
            self._drain()

    # Recording

    def dispatch(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], params: bytes = b"", grid: Grid = (1, 1, 1)
    ) -> None:
        """Record one dispatch. Nothing runs before a flush; what cannot be right is an error now."""
        self._acquire()
        try:
            if self.dropped or self.trouble is not None:
                self._enter()
            pending = self._pending
            if len(pending.params) >= self._cut_at and self._cut(pipeline, grid):
                pending = self._pending
            slots = []
            for buffer in buffers:
                virtual = buffer.virtual
                slots.append(virtual.slot if virtual.pending is pending else self._admit(buffer))
            head = self._head_numbers.get((pipeline, grid))
            if (
                head is None
                or pipeline.careful
                or pending.views
                or len(params) != pipeline.params_size
                or len(slots) != pipeline.arity
                or len(set(slots)) != len(slots)
            ):
                head = self._checked_head(pipeline, buffers, slots, params, grid)
                if not all(grid):
                    return
            pending.code += (head, *slots)
            if pipeline.exact:
                pending.code += [(buffer.nbytes + 3) // 4 or 4 for buffer in buffers]
            pending.params.append(params)
        finally:
            self._release_lock()

    def _admit(self, buffer: Buffer) -> int:
        """A slot for a buffer that is new to the pending queue."""
        return self._new_slot(self._get(buffer))

    def _new_slot(self, virtual: Virtual) -> int:
        pending = self._pending
        if virtual.view is not None:
            handle, offset = virtual.view
            whole = self._virtual.get(handle)
            slot = whole.slot if whole.pending is pending else self._new_slot(whole)
            virtual.size = (slot, offset, virtual.nbytes)
            pending.views += 1
        elif not virtual.physical:
            if virtual.lost:
                raise DeviceLostError(f"{virtual.describe()} {virtual.lost}, and has no host copy: make it again")
            if virtual.host is not None:
                self._fill(virtual, virtual.host)
        virtual.pending = pending
        virtual.slot = len(pending.virtuals)
        pending.virtuals.append(virtual)
        return virtual.slot

    def _checked_head(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], slots: list[int], params: bytes, grid: Grid
    ) -> int:
        """The number of a (pipeline, grid), after every check there is; begins to compile a new pipeline."""
        check_launch(pipeline, [each.nbytes for each in buffers], params, grid, self.limits.max_workgroups)
        self._check_aliases(pipeline, slots)
        head = self._head_numbers.get((pipeline, grid))
        if head is None:
            if not pipeline.in_place:  # else the flush knows which variant is wanted
                self.context.compiler.request(pipeline)
            head = self._head_numbers[pipeline, grid] = len(self._heads)
            self._heads.append((pipeline, grid))
        return head

    def _check_aliases(self, pipeline: Pipeline, slots: list[int]) -> None:
        """WebGPU forbids one buffer as read and as read_write in a dispatch, even for disjoint parts."""
        seen: dict[int, str] = {}
        for slot, access in zip(slots, pipeline.accesses, strict=True):
            size = self._pending.virtuals[slot].size
            base = slot if isinstance(size, int) else size[0]
            if base in seen and "read_write" in (access, seen[base]):
                raise LaunchError(
                    f"{pipeline.program.label}: one buffer is bound twice and written; "
                    "write to a buffer of its own, or use the kernel's in-place variant"
                )
            seen[base] = access

    def _cut(self, pipeline: Pipeline, grid: Grid) -> bool:
        """Flush a long queue, at a place that comes again when the program loops.

        The place is a command like the one the queue began with; without one, at twice the length. A cut at a
        fixed count would drift through a loop's period, and no queue would ever be the same again.
        """
        if self._held:
            return False
        pending = self._pending
        if self._heads[pending.code[0]] == (pipeline, grid) or len(pending.params) >= 2 * self._cut_at:
            self._flush("full", ramp=min(CUT_GROWTH * self._cut_at, self.limits.max_commands))
            return True
        return False

    def _flush_bytes(self, size: int) -> None:
        if not self._held and self._pending.code:
            self._flush("bytes", ramp=self._cut_at)
            self._pending_bytes = size

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Record a stretch of commands that is submitted as one, however long."""
        with self.lock:
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1

    # Running

    def flush(self, cause: str = "eval") -> Event | None:
        """Submit what is pending, without waiting. Gives the event of the newest submission."""
        with self.lock:
            self._enter()
            self._flush(cause)
            return self.last_event

    def synchronize(self) -> None:
        """Submit what is pending and wait for the GPU."""
        event = self.flush("synchronize")
        if event is not None:
            event.wait()
            if self.context.native.lost:
                self._mark_lost()
                raise DeviceLostError("the GPU device was lost while it was waited for")

    def _flush(self, cause: str, copies: Sequence[Copy] = (), ramp: int = FIRST_CUT) -> None:
        """Resolve, encode, submit. `copies` are (slot, read-back handle, bytes), at the end of the same submission."""
        pending, context, counters = self._pending, self.context, self.counters
        if not pending.code and not copies:
            return
        if self.dropped:
            self._drain()
        try:
            resolved = self._resolved()
            try:
                commands = self._encode(resolved, pending, copies)
                self.last_event = context.submit(commands)
            except BaseException:
                context.undo(resolved)
                raise
        except DeviceLostError:
            self._mark_lost()
            raise
        except OutOfMemoryError:
            raise  # everything stays as it was: free something, and the next flush runs it
        except (DeviceError, ShaderError):
            self._discard("was to be computed by commands that the GPU refused")
            raise
        counters.flushes[cause] += 1
        counters.commands += len(pending.params)
        counters.dispatches += len(pending.params)
        counters.in_place += resolved.in_place
        self._settle(resolved)
        self._cut_at = ramp
        context.throttle()

    def _resolved(self) -> Resolved:
        pending, context = self._pending, self.context
        key = pending.key()
        inputs = [each.physical for each in pending.virtuals]
        resolved = context.resolved.find(key, inputs, context.pool.free)
        if resolved is None:
            resolved = resolve(pending, inputs, self._heads, context)
            context.resolved.remember(key, resolved)
            self.counters.queues_resolved += 1
        else:
            context.redo(resolved)
            self.counters.queues_replayed += 1
            self.counters.bind_groups_reused += len(pending.params)
        return resolved

    def _encode(self, resolved: Resolved, pending: Pending, copies: Sequence[Copy]) -> Any:
        context = self.context
        native = context.native
        where = dict(resolved.outcome) if copies else {}
        sources = [
            (context.pool.buffers.get(where.get(slot) or pending.virtuals[slot].physical).handle, 0, target, nbytes)
            for slot, target, nbytes in copies
        ]
        encoder, compute_pass = native.begin()
        try:
            context.encoder.run(compute_pass, resolved.prepared, pending.params)
        except BaseException:
            native.abandon(encoder, compute_pass)
            raise
        return native.finish(encoder, compute_pass, sources)

    def _settle(self, resolved: Resolved) -> None:
        """After a submit: note where the held tensors are, and begin an empty queue."""
        virtuals = self._pending.virtuals
        for slot, buffer in resolved.outcome:
            virtuals[slot].physical = buffer
        for slot in resolved.overwritten:
            virtuals[slot].host = None  # the host copy is old now
        self._begin()

    def _begin(self) -> None:
        self._pending = Pending()
        self._pending_bytes = 0

    # Transfers

    def write(self, buffer: Buffer, data: Any, *, keep: bool = False) -> None:
        """Fill a buffer from host memory. Only a buffer that pending commands use makes a flush.

        With `keep` the host memory is kept (copied if it can be written to), to restore the buffer from after the
        device was lost.
        """
        source = as_bytes(data)
        with self.lock:
            self._enter()
            virtual = self._get(buffer)
            if source.nbytes != virtual.nbytes:
                raise BufferError(f"{virtual.describe()} cannot take {source.nbytes:,} bytes: the sizes must be equal")
            if virtual.view is not None:
                raise BufferError(f"{virtual.describe()} is a view: write to the whole buffer")
            if virtual.pending is self._pending and self._uses(virtual.slot):
                self._flush("write")
            virtual.lost = ""
            virtual.host = None
            self._fill(virtual, source)
            if keep:
                virtual.host = source.copy() if source.flags.writeable else source

    def _uses(self, slot: int) -> bool:
        """Whether a pending command uses a slot, or a view of it."""
        pending = self._pending
        slots = {slot} | {each.slot for each in pending.virtuals if isinstance(each.size, tuple) and each.size[0] == slot}
        return any(not slots.isdisjoint(used) for _, _, used, _ in pending.commands(self._heads))

    def _fill(self, virtual: Virtual, source: Bytes) -> None:
        context = self.context
        try:
            fresh = not virtual.physical
            if fresh:
                virtual.physical = context.pool.take(virtual.size)
            try:
                context.write(virtual.physical, source)
            except BaseException:
                if fresh:
                    context.pool.give(virtual.physical)
                    virtual.physical = 0
                raise
        except DeviceLostError:
            self._mark_lost()
            raise
        self.counters.bytes_uploaded += source.nbytes

    def read(self, buffer: Buffer) -> Bytes:
        """The buffer's bytes: flushes what is pending and waits."""
        started = self._start_read(buffer)
        return self._collected(started, started.wait) if started is not None else np.empty(0, np.uint8)

    async def read_async(self, buffer: Buffer) -> Bytes:
        """The same, letting other tasks run while the GPU works."""
        started = self._start_read(buffer)
        if started is None:
            return np.empty(0, np.uint8)
        result = await started.wait_async()
        return self._collected(started, lambda: result)

    def _collected(self, started: ReadBack, wait: Callable[[], Bytes]) -> Bytes:
        try:
            result = wait()
        except DeviceLostError:
            with self.lock:
                if started.staging is self.context.staging:
                    self._mark_lost()
            raise
        self.counters.bytes_downloaded += result.nbytes
        return result

    def _start_read(self, buffer: Buffer) -> ReadBack | None:
        """Submit what is pending with a copy of the buffer behind it."""
        with self.lock:
            self._enter()
            virtual = self._get(buffer)
            if not virtual.nbytes:
                return None
            if virtual.view is not None:
                raise BufferError(f"{virtual.describe()} is a view: read the whole buffer")
            slot = virtual.slot if virtual.pending is self._pending else self._new_slot(virtual)
            if not virtual.physical and not self._uses(slot):
                raise BufferError(f"{virtual.describe()} was never written: there is nothing to read")
            context = self.context
            nbytes = (virtual.nbytes + 3) & ~3
            try:
                size, handle = context.staging.take(nbytes)
            except DeviceLostError:
                self._mark_lost()
                raise
            try:
                self._flush("read", [(slot, handle, nbytes)])
            except BaseException:
                context.staging.give(size, handle)
                raise
            self.counters.host_round_trips += 1
            try:
                return ReadBack(context.staging, size, handle, virtual.nbytes, context.last_submission)
            except DeviceLostError:
                self._mark_lost()
                raise

    # Trouble

    def _mark_lost(self) -> None:
        """The device is gone: drop what was pending, and open a new one at the next use."""
        self._discard("was to be computed on a device that was lost")
        for virtual in self._virtual:
            if virtual.physical:
                virtual.physical = 0
                if virtual.host is None:
                    virtual.lost = "was on a device that was lost"
        self.context.close()
        self.last_event = None
        self.trouble = self._reopen

    def _reopen(self) -> None:
        self.context = self._open_context()
        self.trouble = None

    def _discard(self, why: str) -> None:
        """Drop the pending commands; what they were to compute says so when it is used."""
        pending = self._pending
        for pipeline, _, slots, _ in pending.commands(self._heads):
            for slot, access in zip(slots, pipeline.accesses, strict=True):
                virtual = pending.virtuals[slot]
                if access == "read_write" and not virtual.physical:
                    virtual.lost, virtual.host = why, None
        for virtual in pending.virtuals:
            if virtual.pending is None and virtual.physical:
                self.context.pool.give(virtual.physical)
        self._begin()

    def finish(self) -> None:
        """At exit: drop what is pending and let the GPU finish what it has, so that no driver thread is left running."""
        if self.trouble is None and not self.context.native.lost and self.lock.acquire(timeout=5):
            try:
                self._begin()
                if self.last_event is not None:
                    self.last_event.wait(60)
            finally:
                self.lock.release()

    def largest(self, count: int = 5) -> str:
        """The largest buffers that hold memory, for an error message."""
        held = sorted((each for each in self._virtual if each.physical), key=lambda each: -each.nbytes)
        return ", ".join(f"{each.label or 'unnamed'} {readable_bytes(each.nbytes)}" for each in held[:count]) or "none"


def check_launch(pipeline: Pipeline, sizes: Sequence[int], params: bytes, grid: Grid, most: int) -> None:
    """Refuse a launch that cannot be right, saying what is wrong with it."""
    label, bindings = pipeline.program.label, pipeline.program.bindings
    if len(sizes) != pipeline.arity:
        names = ", ".join(binding.name for binding in bindings) or "none"
        raise LaunchError(f"{label} takes {pipeline.arity} buffers ({names}), not {len(sizes)}")
    if len(params) != pipeline.params_size:
        names = ", ".join(f"{each.name}: {each.type}" for each in pipeline.program.params) or "none"
        raise LaunchError(f"{label} takes {pipeline.params_size} bytes of parameters ({names}), not {len(params)}")
    if len(grid) != 3 or any(not 0 <= count <= most for count in grid):
        raise LaunchError(f"{label}: a grid of {grid} workgroups is not allowed; each must be from 0 to {most}")
    for binding, nbytes in zip(bindings, sizes, strict=True):
        if nbytes < binding.bytes > PADDING:
            raise LaunchError(f"{label}: {binding.name} ({binding.type}) needs {binding.bytes} bytes, not {nbytes}")
