"""Submitting what is pending: resolved (or found resolved), encoded into one pass, submitted once.

In: a queue with pending commands, and copies to make behind them. Out: one submission, and the queue's
records brought up to date. The invariant: a flush that raises before its submit leaves the pending commands
as they were, unless the device is lost. Functions of `Queue`; `flush` and `synchronize` are its methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import compress
from typing import TYPE_CHECKING, Any

from ..errors import BufferError, DeviceLostError, OutOfMemoryError
from ..observing import observers, stage
from .buffers import Buffer, Virtual
from .context import Event
from .launches import Flush
from .layer import Copy, Handle
from .loss import discard, note_loss
from .pending import Pending
from .resolve import Resolved, resolve
from .shield import shield

if TYPE_CHECKING:
    from .queue import Queue

Wanted = tuple[Virtual, Handle]  # what is read, and the read-back buffer it is copied to


def flush(queue: Queue, cause: str = "eval", wanted: Sequence[Buffer] | None = None) -> Event | None:
    """Submit what is pending, without waiting. Gives the event of the newest submission.

    Where there is no room for all of it, what `wanted` waits for is enough.
    """
    with shield, queue.lock:
        queue.enter()
        flush_pending(queue, cause, read=wanted)
        return queue.last_event


def synchronize(queue: Queue) -> None:
    """Submit what is pending and wait for the GPU."""
    event = queue.flush("synchronize")
    if event is not None:
        event.wait()
        if event.lost:
            with shield, queue.lock:
                note_loss(queue)
            raise DeviceLostError("the GPU device was lost while it was waited for")


def flush_early(queue: Queue, cause: str, ramp: int) -> bool:
    """Submit what is pending before anybody asks for it; where there is no room, it waits until then."""
    if not queue.crowded:
        with suppress(OutOfMemoryError):
            flush_pending(queue, cause, ramp=ramp)
    return not queue.crowded


def flush_pending(
    queue: Queue,
    cause: str,
    copies: Sequence[Wanted] = (),
    ramp: int = 0,
    read: Sequence[Buffer] | None = None,
    written: Sequence[Buffer] = (),
) -> None:
    """Resolve, encode, submit, with `copies` at the end of the same submission.

    Where there is no room for all that is pending, only what must come before buffers are `read` or
    `written` to: the rest waits for whoever wants it, or until it is dropped.
    """
    with shield:
        if queue.crowded:
            _prune(queue)
        elif queue.dropped:
            queue.drain()
        pending, part = queue.pending, None
        if queue.crowded and read is not None:
            part = pending.part(read, written)
        if pending.code and part is None:
            try:
                _run(queue, pending, copies, cause)
            except OutOfMemoryError:
                queue.crowded = True
                part = None if read is None else pending.part(read, written)
                if part is None:
                    raise
            else:
                queue.begin()
                queue.crowded = False
                queue.cut_at = ramp or queue.first_cut
                queue.context.throttle()
                return
        if part is not None and part.code:
            _run(queue, part, copies, cause)
            part.leave()
            queue.changes += 1
            queue.context.throttle()
        elif copies:
            _flush_copies(queue, cause, copies)


def _run(queue: Queue, pending: Pending, copies: Sequence[Wanted], cause: str) -> None:
    """Submit commands, or leave everything as it was: the next flush, when there is room, runs them."""
    queue.running = pending
    try:
        resolved = _submit(queue, pending, copies, cause)
    except DeviceLostError:
        note_loss(queue)
        raise
    except (OutOfMemoryError, BufferError):
        raise
    except Exception:
        discard(queue, "was to be computed by commands that could not be run")
        raise
    counters = queue.counters
    counters.flushes[cause] += 1
    counters.commands += len(pending.params)
    counters.dispatches += len(resolved.prepared.rows)
    counters.in_place += resolved.in_place
    _settle(queue, pending, resolved)


def _prune(queue: Queue) -> None:
    """After a flush without room: forget commands whose results were dropped since."""
    queue.drain()
    before = len(queue.pending.params)
    for virtual in queue.pending.prune():
        if virtual.physical:
            queue.context.pool.give(virtual.physical)
            virtual.physical = 0
    queue.crowded = 0 < len(queue.pending.params) == before


def _submit(queue: Queue, pending: Pending, copies: Sequence[Wanted], cause: str) -> Resolved:
    context = queue.context
    with stage("resolve"):
        resolved = _resolved(queue, pending)
    context.pool.protected = resolved.touched  # until submitted, whatever has to make room meanwhile
    try:
        sources = _sources(queue, resolved, pending, copies) if copies else []
        flush = Flush(queue, cause, pending, resolved, sources) if observers() else None
        with stage("encode"):
            commands = encode(queue, resolved, pending, sources) if flush is None else flush.encoded()
        queue.last_event = context.submit(commands)
    except BaseException:
        context.undo(resolved)
        raise
    finally:
        context.pool.protected = frozenset()
    if flush is not None:
        for each in flush.watchers:
            each.flushed(flush)
    return resolved


def _resolved(queue: Queue, pending: Pending) -> Resolved:
    context = queue.context
    key = pending.key()
    inputs = [each.physical for each in pending.virtuals]
    resolved = context.resolved.find(key, inputs, context.pool.free)
    if resolved is None:
        resolved = resolve(pending, inputs, context)
        context.resolved.remember(key, resolved, pending.owner())
        queue.counters.queues_resolved += 1
    else:
        context.redo(resolved)
        queue.counters.queues_replayed += 1
        queue.counters.bind_groups_reused += len(resolved.prepared.rows)
    return resolved


def _sources(queue: Queue, resolved: Resolved, pending: Pending, copies: Sequence[Wanted]) -> list[Copy]:
    where = dict(resolved.outcome)
    return [
        _copy(queue, where.get(virtual.slot, 0) if pending.owns(virtual) else 0, virtual, target)
        for virtual, target in copies
    ]


def encode(queue: Queue, resolved: Resolved, pending: Pending, sources: Sequence[Copy]) -> Any:
    """The commands of a resolved queue with the parameters of this run."""
    params = pending.params
    if resolved.launched is not None:
        params = list(compress(params, resolved.launched))
    return queue.context.encode(resolved.prepared, params, sources)


def _flush_copies(queue: Queue, cause: str, copies: Sequence[Wanted]) -> None:
    """Submit copies alone, where no command is pending."""
    context = queue.context
    try:
        commands = context.native.copy([_copy(queue, 0, virtual, target) for virtual, target in copies])
        queue.last_event = context.submit(commands)
    except DeviceLostError:
        note_loss(queue)
        raise
    queue.counters.flushes[cause] += 1
    context.throttle(poll=False)  # whoever reads is about to wait


def _copy(queue: Queue, computed: int, virtual: Virtual, target: Handle) -> Copy:
    """From where to where a read-back copies; `computed` is where pending commands put it, or 0."""
    buffer = computed or virtual.physical
    if not buffer:
        raise BufferError(f"{virtual.describe()} was never written: there is nothing to read")
    return queue.context.pool.buffers.get(buffer).handle, 0, target, (virtual.nbytes + 3) & ~3


def _settle(queue: Queue, pending: Pending, resolved: Resolved) -> None:
    """After a submit: note where the held tensors are."""
    virtuals = pending.virtuals
    for slot, buffer in resolved.outcome:
        virtuals[slot].physical = buffer
    for slot in resolved.changed:
        virtuals[slot].host = None  # the host copy is old now
