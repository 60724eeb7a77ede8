"""A flush as observers see it: its launches with their programs, parameters, buffers and notes.

In: a resolved queue that is about to be submitted. Out: `Flush`, which can encode all launches in one pass,
each in a timed pass of its own, or run them one by one. The invariant: whatever an observer does, every
launch runs once, in order, and the copies come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import BufferError, DeviceError, OutOfMemoryError
from ..observing import Note, Observer, observers
from .layer import Copy, Handle, Row
from .transfer import Bytes, ReadBack, read_bytes

if TYPE_CHECKING:
    from ..wgsl import Program
    from .pending import Pending
    from .queue import Queue
    from .resolve import Resolved


class BoundRange(NamedTuple):
    """What a launch binds: a physical buffer's number, a part of it, and whether that may be written to."""

    buffer: int
    offset: int
    nbytes: int  # of the value; the binding itself may be larger
    access: str


class FlushedLaunch(NamedTuple):
    """One dispatch of a flush."""

    row: Row
    params: bytes
    note: Note | None
    sizes: tuple[Any, ...]  # by binding: (offset, bytes)

    @property
    def program(self) -> Program:
        """Its text, bindings and parameters."""
        return self.row.pipeline.pipeline.program

    @property
    def checked(self) -> bool:
        """Whether it was compiled with bounds checks."""
        return self.row.pipeline.pipeline.checked

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.program.label if self.note is None else self.note.name

    @property
    def about(self) -> Note:
        """Its note; of one that has none, a kernel of the user's own say, what its bindings tell."""
        if self.note is not None:
            return self.note
        bound = self.bound
        written = sum(each.nbytes for each in bound if each.access == "read_write")
        read = sum(each.nbytes for each in bound if each.access == "read")
        return Note(self.name, bytes_read=read, bytes_written=written)

    @property
    def bound(self) -> list[BoundRange]:
        """Its bindings, in order."""
        accesses = self.row.pipeline.pipeline.accesses
        return [
            BoundRange(buffer, offset, nbytes, access)
            for buffer, (offset, nbytes), access in zip(
                self.row.group.buffers, self.sizes, accesses, strict=True
            )
        ]


class Flush:
    """What is about to be submitted, and why."""

    def __init__(
        self, queue: Queue, cause: str, pending: Pending, resolved: Resolved, copies: Sequence[Copy]
    ) -> None:
        self.queue = queue
        self.watchers = observers()  # who sees it encoded is told that it was submitted, and nobody else
        self.begun = False  # whether some of it has run
        self.cause = cause
        self.copies = copies
        self.in_place = resolved.in_place
        size_of = queue.context.pool.buffers.get
        gone = sum(size_of(each).size for each in resolved.to_give)
        lent = sum(size_of(each).size for each in resolved.to_lend)
        self.live = queue.context.pool.bytes_live  # bytes that are in use after it
        self.peak = self.live + gone - lent + resolved.peak  # and at most, meanwhile
        params: Sequence[bytes] = pending.params
        notes: Sequence[Note | None] = [pending.notes.get(each) for each in range(len(params))]
        if resolved.launched is not None:
            params = list(compress(params, resolved.launched))
            notes = list(compress(notes, resolved.launched))
        virtuals = pending.virtuals
        self.launches = [
            FlushedLaunch(row, each, note, tuple([_part(virtuals[slot]) for slot in row.slots]))
            for row, each, note in zip(resolved.prepared.rows, params, notes, strict=True)
        ]
        self.prepared = resolved.prepared

    def encoded(self) -> Handle:
        """The command buffer: an observer's, where one wants the launches apart."""
        for each in self.watchers:
            if each.apart:
                return self._encoded_by(each)
        return self.together()

    def _encoded_by(self, observer: Observer) -> Handle:
        try:
            return observer.encode(self)
        except (OutOfMemoryError, BufferError) as error:
            if not self.begun:
                raise
            # The queue would run all of it again, and some of it has run.
            raise DeviceError(f"what was being watched could not be run to its end: {error}") from error

    def together(self) -> Handle:
        """All launches in one pass, as it is where nobody watches."""
        return self.queue.context.encode(self.prepared, [each.params for each in self.launches], self.copies)

    def run(self, launch: FlushedLaunch) -> None:
        """Run one launch, and wait for it."""
        self.begun = True
        context = self.queue.context
        prepared = context.encoder.prepare([launch.row])
        context.submit(context.encode(prepared, [launch.params], ())).wait()

    def read(self, bound: BoundRange) -> Bytes:
        """The bytes of a binding as they are now; waits for what was run."""
        context = self.queue.context
        nbytes = (bound.nbytes + 3) & ~3
        if not nbytes:
            return read_bytes(b"")
        size, handle = context.staging.take(nbytes)
        try:
            source = context.pool.buffers.get(bound.buffer).handle
            context.submit(context.native.copy([(source, bound.offset, handle, nbytes)]))
        except BaseException:
            context.staging.give(size, handle)
            raise
        return ReadBack(context.staging, size, handle, bound.nbytes).wait()

    def rest(self) -> Handle:
        """The copies alone, where every launch has run."""
        return self.queue.context.native.copy(self.copies)


def _part(virtual: Any) -> tuple[int, int]:
    """(offset, bytes) of a value in its buffer."""
    return (0 if isinstance(virtual.size, int) else virtual.size[1]), virtual.nbytes
