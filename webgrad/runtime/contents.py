"""The contents of buffers: written from host memory, and read back.

In: a queue's buffers and host memory. Out: bytes. The invariant: a write comes before all that is submitted
later, and a read behind all that was recorded before. Functions of `Queue`; `write`, `upload`, `read` and
`read_async` are its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import BufferError, DeviceLostError, OutOfMemoryError
from .buffers import Buffer, Virtual
from .loss import note_loss
from .shield import shield
from .submission import flush_pending
from .transfer import Bytes, ReadBack, as_bytes, constant, freeze, read_bytes

if TYPE_CHECKING:
    from .queue import Queue


def write(queue: Queue, buffer: Buffer, data: Any, *, keep: bool = False) -> None:
    """Fill a buffer from host memory. Only a buffer that pending commands use makes a flush.

    With `keep` the host memory is kept (copied if it can be written to), to restore the buffer from
    after the device was lost.
    """
    source = as_bytes(data, queue.limits.max_buffer)
    with shield, queue.lock:
        queue.enter()
        virtual = queue.get(buffer)
        if source.nbytes != virtual.nbytes:
            raise BufferError(
                f"{virtual.describe()} cannot take {source.nbytes:,} bytes: the sizes must be equal"
            )
        if virtual.view is not None:
            raise BufferError(f"{virtual.describe()} is a view: write to the whole buffer")
        if virtual.pending is queue.pending and uses_slot(queue, virtual.slot):
            flush_pending(queue, "write", read=(), written=(buffer,))
        _write(queue, virtual, source, keep)


def upload(queue: Queue, data: Any, label: str = "", *, keep: bool = False) -> Buffer:
    """A new buffer, filled from host memory: nothing pending can use it, and nothing is flushed."""
    source = as_bytes(data, queue.limits.max_buffer)
    with shield, queue.lock:
        queue.enter()
        buffer = queue.allocate(source.nbytes, label)
        _write(queue, buffer.virtual, source, keep)
        return buffer


def _write(queue: Queue, virtual: Virtual, source: Bytes, keep: bool) -> None:
    fits = virtual.physical or queue.context.pool.has_room(queue.size_class_of(virtual.nbytes, virtual.label))
    waiting = queue.pending.code and not queue.holds and not queue.crowded
    if not fits and waiting:
        flush_pending(queue, "bytes")  # what was dropped gives its memory back; cheaper than an error first
    try:
        fill(queue, virtual, source)
    except OutOfMemoryError:
        if not waiting or not queue.pending.code:
            raise
        flush_pending(queue, "bytes")  # so that what was dropped gives its memory back
        fill(queue, virtual, source)
    queue.changes += 1
    virtual.lost = ""
    virtual.host = constant(source) if keep else None


def uses_slot(queue: Queue, slot: int) -> bool:
    """Whether a pending command uses a slot, or a view of it."""
    pending = queue.pending
    slots = {slot} | {
        each.slot for each in pending.virtuals if isinstance(each.size, tuple) and each.size[0] == slot
    }
    return any(not slots.isdisjoint(used) for _, _, used, _ in pending.commands())


def fill(queue: Queue, virtual: Virtual, source: Bytes) -> None:
    """Copy host memory to where a buffer is, or to a place that it gets."""
    with shield:
        _fill_shielded(queue, virtual, source)


def _fill_shielded(queue: Queue, virtual: Virtual, source: Bytes) -> None:
    context = queue.context
    try:
        fresh = not virtual.physical
        if fresh:
            virtual.physical = context.pool.take(queue.size_class_of(virtual.nbytes, virtual.label))
        try:
            context.write(virtual.physical, source)
        except BaseException:
            if fresh:
                context.pool.give(virtual.physical)
                virtual.physical = 0
            raise
    except DeviceLostError:
        note_loss(queue)
        raise
    queue.counters.bytes_uploaded += source.nbytes


def read(queue: Queue, buffer: Buffer, *, keep: bool = False) -> Bytes:
    """The buffer's bytes: flushes what is pending and waits.

    `keep` gives the host copy that is left by it, not to be written to; while nothing is pending that
    may overwrite the buffer, a later read finds it there. None is left where another thread wrote to a
    buffer, or had anything computed, while this one waited.
    """
    if keep:
        found = _host_copy(queue, buffer)
        if found is not None:
            return found
    with shield, queue.lock:
        started = start_read(queue, buffer)
        changes = queue.changes
    if started is None:
        return read_bytes(b"")
    result = collected(queue, started, started.wait)
    if keep:
        result = freeze(result)
        with queue.lock:
            if queue.changes == changes:
                buffer.virtual.host = result
    return result


def _host_copy(queue: Queue, buffer: Buffer) -> Bytes | None:
    with shield, queue.lock:
        queue.enter()
        return None if queue.pending.code else queue.get(buffer).host


async def read_async(queue: Queue, buffer: Buffer) -> Bytes:
    """The same, letting other tasks run while the GPU works."""
    started = start_read(queue, buffer)
    if started is None:
        return read_bytes(b"")
    result = await started.wait_async()
    return collected(queue, started, lambda: result)


def collected(queue: Queue, started: ReadBack, wait: Callable[[], Bytes]) -> Bytes:
    """The bytes of a read that was started, as `wait` gives them."""
    try:
        result = wait()
    except DeviceLostError:
        with shield, queue.lock:
            note_loss(queue)
        raise
    queue.counters.bytes_downloaded += result.nbytes
    return result


def start_read(queue: Queue, buffer: Buffer) -> ReadBack | None:
    """Submit what is pending with a copy of the buffer behind it."""
    with shield, queue.lock:
        queue.enter()
        virtual = queue.get(buffer)
        if not virtual.nbytes:
            return None
        if virtual.view is not None:
            raise BufferError(f"{virtual.describe()} is a view: read the whole buffer")
        if not virtual.physical:
            queue.restore(virtual)
        context = queue.context
        try:
            size, handle = context.staging.take((virtual.nbytes + 3) & ~3)
        except DeviceLostError:
            note_loss(queue)
            raise
        try:
            flush_pending(queue, "read", [(virtual, handle)], read=(buffer,))
        except BaseException:
            context.staging.give(size, handle)
            raise
        queue.counters.host_round_trips += 1
        return ReadBack(context.staging, size, handle, virtual.nbytes)
