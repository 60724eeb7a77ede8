"""The queue: commands are recorded against virtual buffers, and run when a value is needed.

Comes in: dispatches (pipeline, buffers, parameters, grid), uploads, reads. A flush resolves what is pending
(or finds it resolved), encodes it into one pass and submits once. The invariant: recording changes nothing
but the pending list, and a flush that raises before its submit leaves that list as it was, unless the
device is lost. All of it happens under one lock, so threads may share a device.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import compress
from operator import index
from typing import Any, NamedTuple

from ..errors import (
    BufferError,
    DeviceLostError,
    ForeignBufferError,
    OutOfMemoryError,
)
from ..observing import Note, observers, stage
from .arena import Arena
from .buffers import Buffer, Virtual, naming
from .checks import Limits, check_launch
from .context import Context, Event
from .launches import Flush
from .layer import Copy, Handle
from .pipelines import PADDING, Pipeline
from .pool import size_class
from .recording import Recording
from .references import Tagged
from .resolve import Grid, Head, Pending, Resolved, resolve
from .shield import shield
from .stats import Counters, readable_bytes
from .transfer import Bytes, ReadBack, as_bytes, constant, freeze, read_bytes

__all__ = ["Queue", "Recorder"]

Wanted = tuple[Virtual, Handle]  # what is read, and the read-back buffer it is copied to

FIRST_CUT = 64  # commands before the first flush after a read: the GPU should start early
CUT_GROWTH = 4
LARGE = 1 << 16  # bytes from which a buffer counts towards what may be pending
TIDY_EVERY = 4096  # new buffers between two looks at what was dropped
HEADS_KEPT = 1 << 16  # different pairs of pipeline and grid that are numbered at a time
_SIZES_KEPT = 4096


class Recorder(NamedTuple):
    """The queue's recording calls without its lock, for whoever holds it."""

    allocate: Callable[..., Buffer]
    dispatch: Callable[..., None]
    compute: Callable[..., Buffer]


class Queue:
    """Virtual buffers and the commands over them, of one device. `open_context` opens the device (again)."""

    def __init__(
        self, name: str, limits: Limits, counters: Counters, open_context: Callable[[], Context]
    ) -> None:
        self.name = name
        self.limits = limits
        self.counters = counters
        self.context = open_context()
        # The references whose Buffer is gone, by their tags the handles of it; added to at any time.
        self.dropped: deque[Tagged[Buffer]] = deque()
        self.drop = self.dropped.append
        # Raises, or repairs what keeps the device from being used.
        self.trouble: Callable[[], None] | None = None
        self.last_event: Event | None = None
        self._open_context = open_context
        self._virtual: Arena[Virtual] = Arena("buffer")
        self._heads: list[Head] = []  # (pipeline, grid) by number, as it stands in the pending code
        self._pending = self._running = Pending(
            self._heads
        )  # what is recorded; what was last submitted of it
        self._head_numbers: dict[Head, int] = {}
        self._sizes: dict[int, int] = {}  # bytes → size class, for sizes seen
        self._first_cut = min(FIRST_CUT, limits.max_commands)
        self._cut_at = self._first_cut
        self._held = 0
        self._pending_bytes = 0
        self._crowded = False  # there was no room for what is pending
        self._tidy_at = TIDY_EVERY
        self._changes = 0  # how often buffers may have got other contents
        self.renew_lock()

    def renew_lock(self) -> None:
        """A lock nobody holds: at the start, and in a forked child."""
        self.lock = threading.RLock()

    # Buffers

    def allocate(self, nbytes: int, label: str = "") -> Buffer:
        """A new virtual buffer; no memory is taken until something is written to it."""
        with self.lock:
            if self.trouble is not None:
                self.trouble()
            return self._new(nbytes, label)

    def _new(self, nbytes: int, label: str = "") -> Buffer:
        if nbytes.__class__ is not int:
            nbytes = index(nbytes)
        size = self._sizes.get(nbytes) or self._new_size(nbytes, label)
        pending = self._pending
        virtuals = pending.virtuals
        slot = len(virtuals)
        if slot >= self._tidy_at or size >= LARGE:
            pending = self._make_room(size)
            virtuals = pending.virtuals
            slot = len(virtuals)
        virtual = Virtual(nbytes, size, label, pending, slot)
        virtuals.append(virtual)
        return Buffer(self, self._virtual.insert(virtual), virtual)

    def _size_of(self, nbytes: int, label: str = "") -> int:
        return self._sizes.get(nbytes) or self._new_size(nbytes, label)

    def _new_size(self, nbytes: int, label: str) -> int:
        if not 0 <= nbytes <= self.limits.max_buffer:
            raise BufferError(
                f"a buffer{f' {label!r}' if label else ''} of {nbytes:,} bytes cannot be: this device's have "
                f"from 0 to {self.limits.max_buffer:,} bytes; split what is larger"
            )
        if len(self._sizes) >= _SIZES_KEPT:
            self._sizes.clear()
        size = size_class(nbytes)
        if nbytes <= self.limits.max_binding < size:
            size = self.limits.max_binding  # or it could not be bound as a whole
        self._sizes[nbytes] = size
        return size

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """A part of a buffer, to be bound on its own: the way round the limit on a binding's size."""
        with self.lock:
            self._enter()
            whole = self._get(buffer)
            offset, nbytes = index(offset), index(nbytes)
            step = self.limits.min_offset
            if (
                offset % step
                or offset < 0
                or nbytes <= 0
                or nbytes % 4
                or offset + nbytes > (whole.nbytes + PADDING - 1) // PADDING * PADDING
            ):
                raise BufferError(
                    f"a view of {nbytes} bytes at offset {offset} of {whole.describe()} cannot be: "
                    f"the offset must be a multiple of {step}, the length a multiple of 4, "
                    "and both inside the buffer"
                )
            base, start = whole.view or (buffer, 0)
            virtual = Virtual(nbytes, 0, whole.label, None, 0)
            virtual.view = (base, start + offset)
            return Buffer(self, self._virtual.insert(virtual), virtual)

    def release(self, handle: int) -> None:
        """Free a virtual buffer; from now on its handle is stale."""
        with shield, self.lock:
            self._drain()
            self._let_go(self._virtual.discard(handle))

    def _drain(self) -> None:
        """Let go of dropped buffers. One that commands may use gives its memory back at the next flush."""
        dropped, discard = self.dropped, self._virtual.discard
        with shield:  # the pool's books must not be left half written
            while dropped:
                self._let_go(discard(dropped.popleft().tag))

    def _let_go(self, virtual: Virtual | None) -> None:
        if virtual is not None:
            pending, virtual.pending = virtual.pending, None
            if pending is not None and pending.code:
                return  # commands may use it
            if virtual.physical:
                self.context.pool.give(virtual.physical)
                virtual.physical = 0

    def _make_room(self, size: int) -> Pending:
        """Now and then: let dropped buffers and unused slots go; flush when too many bytes are pending."""
        self._drain()
        if not self._pending.code:
            self._begin()
        elif size >= LARGE and not self._held:
            if self.context.pool.bytes_live + self._pending_bytes + size > self.limits.max_pending_bytes:
                self._flush_early("bytes", self._cut_at)
            self._pending_bytes += size
        self._tidy_at = len(self._pending.virtuals) + TIDY_EVERY
        self._pending.views += size > self.limits.max_binding  # every launch is checked from now on
        return self._pending

    @property
    def waiting(self) -> int:
        """How many commands are recorded and not submitted."""
        return len(self._pending.params)

    def size_of(self, buffer: Buffer) -> int:
        """The bytes of a buffer of this device; an error where it is none, or no more."""
        return self._get(buffer).nbytes

    def _get(self, buffer: Buffer) -> Virtual:
        if not isinstance(buffer, Buffer):
            raise BufferError(
                f"a {type(buffer).__name__} is not a device's buffer: upload it first, or use Batch.run for "
                "the values of a batch"
            )
        if buffer.queue is not self:
            raise ForeignBufferError(
                f"{buffer!r} belongs to another device, not to this {self.name}: move it here first"
            )
        virtual = self._virtual.get(buffer.handle)
        if virtual.view is not None:
            self._get(virtual.view[0])  # a view goes with its whole
        return virtual

    def _enter(self) -> None:
        """What every entry does first: see whether the device can be used, and let dropped buffers go."""
        if self.trouble is not None:
            self.trouble()
        if not self.context.native.blocking:
            self.context.wait_for_room()  # here, since nothing is half done yet
        if self.dropped:
            self._drain()

    # Recording

    def dispatch(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], params: bytes = b"", grid: Grid = (1, 1, 1)
    ) -> None:
        """Record one dispatch. Nothing runs before a flush; what cannot be right is an error now."""
        with self.lock:
            if self.trouble is not None:
                self.trouble()
            self._record(pipeline, buffers, params, grid)

    def compute(
        self,
        pipeline: Pipeline,
        inputs: Sequence[Buffer],
        nbytes: int,
        params: bytes = b"",
        grid: Grid = (1, 1, 1),
        label: str = "",
    ) -> Buffer:
        """Record one dispatch into a new buffer of `nbytes` bytes, which is the kernel's last binding."""
        with self.lock:
            if self.trouble is not None:
                self.trouble()
            return self._compute(pipeline, inputs, nbytes, params, grid, label)

    def _compute(
        self,
        pipeline: Pipeline,
        inputs: Sequence[Buffer],
        nbytes: int,
        params: bytes = b"",
        grid: Grid = (1, 1, 1),
        label: str = "",
    ) -> Buffer:
        output = self._new(nbytes, label)
        self._record(pipeline, (*inputs, output), params, grid)
        return output

    def _record(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], params: bytes = b"", grid: Grid = (1, 1, 1)
    ) -> None:
        pending = self._pending
        if len(pending.params) >= self._cut_at and self._cut(pipeline, grid):
            pending = self._pending
        slots = []
        try:
            for buffer in buffers:
                virtual = buffer.virtual
                slots.append(virtual.slot if virtual.pending is pending else self._admit(buffer))
        except AttributeError:
            for buffer in buffers:
                self._get(buffer)  # says which of them is no buffer
            raise
        head = self._head_numbers.get((pipeline, grid))
        if (
            head is None
            or pipeline.careful
            or pending.views
            or params.__class__ is not bytes
            or len(params) != pipeline.params_size
            or len(slots) != pipeline.arity
            or slots.count(slots[-1]) != 1  # the one that is written; the others may repeat
        ):
            head = self._checked_head(pipeline, buffers, slots, params, grid)
            if head is None:
                return
        words = [(buffer.nbytes + 3) // 4 for buffer in buffers] if pipeline.exact else ()
        pending.code += (head, *slots, *words)  # no call up to the next line's: Ctrl-C cannot part them
        pending.params.append(params)

    def _admit(self, buffer: Buffer) -> int:
        """A slot for a buffer that is new to the pending queue."""
        virtual = self._get(buffer)
        if not virtual.physical or virtual.view is not None or virtual.nbytes > self.limits.max_binding:
            return self._new_slot(virtual)
        pending = self._pending
        slot = len(pending.virtuals)
        virtual.pending, virtual.slot = (
            pending,
            slot,
        )  # no call up to the next line's: Ctrl-C cannot part them
        pending.virtuals.append(virtual)
        return slot

    def _new_slot(self, virtual: Virtual) -> int:
        pending = self._pending
        if virtual.view is not None:
            base, offset = virtual.view
            whole = self._get(base)
            slot = whole.slot if whole.pending is pending else self._new_slot(whole)
            virtual.size = (slot, offset, virtual.nbytes)
            pending.views += 1
        elif virtual.nbytes > self.limits.max_binding:
            pending.views += 1
        if virtual.view is None and not virtual.physical:
            self._restore(virtual)
        slot = len(pending.virtuals)
        virtual.pending, virtual.slot = pending, slot  # no call up to the next line's, as above
        pending.virtuals.append(virtual)
        return slot

    def _restore(self, virtual: Virtual) -> None:
        """Bring a buffer back whose memory went with a lost device."""
        if virtual.lost:
            raise DeviceLostError(f"{virtual.describe()} {virtual.lost}, and has no host copy: make it again")
        if virtual.host is not None:
            self._fill(virtual, virtual.host)

    def _checked_head(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], slots: list[int], params: bytes, grid: Grid
    ) -> int | None:
        """The number of a (pipeline, grid), after every check there is; begins to compile a new pipeline.

        None for a grid with no workgroup in it: there is nothing to do.
        """
        for buffer in buffers:
            self._get(buffer)
        virtuals = [self._pending.virtuals[slot] for slot in slots]
        grid = check_launch(pipeline, buffers, virtuals, params, grid, self.limits)
        if not all(grid):
            return None
        head = self._head_numbers.get((pipeline, grid))
        if head is None:
            with shield:
                if not pipeline.in_place:  # else the flush knows which variant is wanted
                    self._request(pipeline)
                head = self._head_numbers[pipeline, grid] = len(self._heads)
                self._heads.append((pipeline, grid))
        return head

    def _request(self, pipeline: Pipeline) -> None:
        try:
            self.context.compiler.request(pipeline)
        except DeviceLostError:
            self._note_loss()
            raise

    def _cut(self, pipeline: Pipeline, grid: Grid) -> bool:
        """Flush a long queue, at a place that comes again when the program loops.

        The place is a command like the one the queue began with; without one, at twice the length. A cut at a
        fixed count would drift through a loop's period, and no queue would ever be the same again.
        """
        if self._held:
            return False
        pending = self._pending
        if self._heads[pending.code[0]] == (pipeline, grid) or len(pending.params) >= 2 * self._cut_at:
            return self._flush_early("full", min(CUT_GROWTH * self._cut_at, self.limits.max_commands))
        return False

    def annotate(self, note: Note) -> None:
        """Say what the newest command is about, for those who watch."""
        self._pending.annotate(note)

    @contextmanager
    def hold(self) -> Iterator[Recorder]:
        """Record a stretch of commands that is submitted as one, however long, by the recorder it gives."""
        with self.lock:
            self._enter()
            self._held += 1
            try:
                yield Recorder(self._new, self._record, self._compute)
            finally:
                self._held -= 1

    def replay(
        self,
        recording: Recording,
        inputs: Sequence[Buffer],
        params: list[bytes],
        donated: frozenset[int] = frozenset(),
        notes: Sequence[Note] = (),
    ) -> list[Buffer]:
        """Run a recording over other buffers, in a submission of its own; gives its outputs.

        `donated` are the numbers of inputs that nobody needs afterwards: their memory may be taken over, and
        they are freed. `notes` are what its commands are about, where somebody watches.
        """
        with shield, self.lock:
            self._enter()
            pending = recording.pending(donated, params)
            if self._pending.code:
                self._flush_before(pending, recording, inputs)
            idle, crowded = self._pending, self._crowded
            waiting = [(each.virtual, each.virtual.slot) for each in inputs if idle.owns(each.virtual)]
            pending.notes = dict(enumerate(notes))
            for number, (slot, buffer) in enumerate(zip(recording.inputs, inputs, strict=True)):
                virtual = self._get(buffer)
                if not virtual.physical:
                    self._restore(virtual)
                pending.virtuals[slot] = virtual
                virtual.pending, virtual.slot = None if number in donated else pending, slot
            given = dict(zip(recording.inputs, inputs, strict=True))
            outputs: dict[int, Buffer] = {}
            for slot in recording.outputs:
                if slot not in outputs and slot not in given:
                    nbytes = recording.nbytes[slot]
                    virtual = Virtual(nbytes, self._size_of(nbytes), "", pending, slot)
                    pending.virtuals[slot] = virtual
                    outputs[slot] = Buffer(self, self._virtual.insert(virtual), virtual)
            self._pending, self._crowded = pending, False
            try:
                self._flush("replay")
            finally:
                pending.forget()
                if idle.code or self._pending is pending:
                    self._pending, self._crowded = idle, crowded
                    for virtual, slot in waiting:
                        virtual.pending, virtual.slot = idle, slot
            for number in donated:
                self._virtual.discard(inputs[number].handle)
            return [outputs.get(slot) or given[slot] for slot in recording.outputs]

    def _flush_before(self, pending: Pending, recording: Recording, inputs: Sequence[Buffer]) -> None:
        """Run what a recording's inputs wait for; where there is no room for all that is pending, no more."""
        written = pending.given_away() | {
            slot
            for pipeline, _, slots, _ in pending.commands()
            for slot, access in zip(slots, pipeline.accesses, strict=True)
            if access == "read_write"
        }
        changed = [each for slot, each in zip(recording.inputs, inputs, strict=True) if slot in written]
        self._flush("replay", read=inputs, written=changed)

    def compile(self, pipeline: Pipeline) -> None:
        """Compile a pipeline now, so that a shader error is raised here."""
        with shield, self.lock:
            self._enter()
            try:
                self.context.compiler.confirm(pipeline)
            except DeviceLostError:
                self._note_loss()
                raise

    # Running

    def flush(self, cause: str = "eval", wanted: Sequence[Buffer] | None = None) -> Event | None:
        """Submit what is pending, without waiting. Gives the event of the newest submission.

        Where there is no room for all of it, what `wanted` waits for is enough.
        """
        with shield, self.lock:
            self._enter()
            self._flush(cause, read=wanted)
            return self.last_event

    def synchronize(self) -> None:
        """Submit what is pending and wait for the GPU."""
        event = self.flush("synchronize")
        if event is not None:
            event.wait()
            if event.lost:
                with shield, self.lock:
                    self._note_loss()
                raise DeviceLostError("the GPU device was lost while it was waited for")

    def _flush_early(self, cause: str, ramp: int) -> bool:
        """Submit what is pending before anybody asks for it; where there is no room, it waits until then."""
        if not self._crowded:
            with suppress(OutOfMemoryError):
                self._flush(cause, ramp=ramp)
        return not self._crowded

    def _flush(
        self,
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
            if self._crowded:
                self._prune()
            elif self.dropped:
                self._drain()
            pending, part = self._pending, None
            if self._crowded and read is not None:
                part = pending.part(read, written)
            if pending.code and part is None:
                try:
                    self._run(pending, copies, cause)
                except OutOfMemoryError:
                    self._crowded = True
                    part = None if read is None else pending.part(read, written)
                    if part is None:
                        raise
                else:
                    self._begin()
                    self._crowded = False
                    self._cut_at = ramp or self._first_cut
                    self.context.throttle()
                    return
            if part is not None and part.code:
                self._run(part, copies, cause)
                part.leave()
                self._changes += 1
                self.context.throttle()
            elif copies:
                self._flush_copies(cause, copies)

    def _run(self, pending: Pending, copies: Sequence[Wanted], cause: str) -> None:
        """Submit commands, or leave everything as it was: the next flush, when there is room, runs them."""
        self._running = pending
        try:
            resolved = self._submit(pending, copies, cause)
        except DeviceLostError:
            self._note_loss()
            raise
        except (OutOfMemoryError, BufferError):
            raise
        except Exception:
            self._discard("was to be computed by commands that could not be run")
            raise
        counters = self.counters
        counters.flushes[cause] += 1
        counters.commands += len(pending.params)
        counters.dispatches += len(resolved.prepared.rows)
        counters.in_place += resolved.in_place
        self._settle(pending, resolved)

    def _prune(self) -> None:
        """After a flush without room: forget commands whose results were dropped since."""
        self._drain()
        before = len(self._pending.params)
        for virtual in self._pending.prune():
            if virtual.physical:
                self.context.pool.give(virtual.physical)
                virtual.physical = 0
        self._crowded = 0 < len(self._pending.params) == before

    def _submit(self, pending: Pending, copies: Sequence[Wanted], cause: str) -> Resolved:
        context = self.context
        with stage("resolve"):
            resolved = self._resolved(pending)
        context.pool.protected = resolved.touched  # until submitted, whatever has to make room meanwhile
        try:
            sources = self._sources(resolved, pending, copies) if copies else []
            flush = Flush(self, cause, pending, resolved, sources) if observers() else None
            with stage("encode"):
                commands = self._encode(resolved, pending, sources) if flush is None else flush.encoded()
            self.last_event = context.submit(commands)
        except BaseException:
            context.undo(resolved)
            raise
        finally:
            context.pool.protected = frozenset()
        if flush is not None:
            for each in flush.watchers:
                each.flushed(flush)
        return resolved

    def _resolved(self, pending: Pending) -> Resolved:
        context = self.context
        key = pending.key()
        inputs = [each.physical for each in pending.virtuals]
        resolved = context.resolved.find(key, inputs, context.pool.free)
        if resolved is None:
            resolved = resolve(pending, inputs, context)
            context.resolved.remember(key, resolved, pending.owner())
            self.counters.queues_resolved += 1
        else:
            context.redo(resolved)
            self.counters.queues_replayed += 1
            self.counters.bind_groups_reused += len(resolved.prepared.rows)
        return resolved

    def _sources(self, resolved: Resolved, pending: Pending, copies: Sequence[Wanted]) -> list[Copy]:
        where = dict(resolved.outcome)
        return [
            self._copy(where.get(virtual.slot, 0) if pending.owns(virtual) else 0, virtual, target)
            for virtual, target in copies
        ]

    def _encode(self, resolved: Resolved, pending: Pending, sources: Sequence[Copy]) -> Any:
        params = pending.params
        if resolved.launched is not None:
            params = list(compress(params, resolved.launched))
        return self.context.encode(resolved.prepared, params, sources)

    def _flush_copies(self, cause: str, copies: Sequence[Wanted]) -> None:
        """Submit copies alone, where no command is pending."""
        context = self.context
        try:
            commands = context.native.copy([self._copy(0, virtual, target) for virtual, target in copies])
            self.last_event = context.submit(commands)
        except DeviceLostError:
            self._note_loss()
            raise
        self.counters.flushes[cause] += 1
        context.throttle(poll=False)  # whoever reads is about to wait

    def _copy(self, computed: int, virtual: Virtual, target: Handle) -> Copy:
        """From where to where a read-back copies; `computed` is where pending commands put it, or 0."""
        buffer = computed or virtual.physical
        if not buffer:
            raise BufferError(f"{virtual.describe()} was never written: there is nothing to read")
        return self.context.pool.buffers.get(buffer).handle, 0, target, (virtual.nbytes + 3) & ~3

    def _settle(self, pending: Pending, resolved: Resolved) -> None:
        """After a submit: note where the held tensors are."""
        virtuals = pending.virtuals
        for slot, buffer in resolved.outcome:
            virtuals[slot].physical = buffer
        for slot in resolved.overwritten:
            virtuals[slot].host = None  # the host copy is old now

    def _begin(self) -> None:
        self._changes += 1
        self._pending.forget()
        if len(self._heads) >= HEADS_KEPT:  # their numbers stand in the keys of resolved queues
            self._heads, self._head_numbers = [], {}
            self.context.resolved.clear()
        self._pending = Pending(self._heads)
        self._pending_bytes = 0
        self._tidy_at = TIDY_EVERY

    # Transfers

    def write(self, buffer: Buffer, data: Any, *, keep: bool = False) -> None:
        """Fill a buffer from host memory. Only a buffer that pending commands use makes a flush.

        With `keep` the host memory is kept (copied if it can be written to), to restore the buffer from
        after the device was lost.
        """
        source = as_bytes(data, self.limits.max_buffer)
        with shield, self.lock:
            self._enter()
            virtual = self._get(buffer)
            if source.nbytes != virtual.nbytes:
                raise BufferError(
                    f"{virtual.describe()} cannot take {source.nbytes:,} bytes: the sizes must be equal"
                )
            if virtual.view is not None:
                raise BufferError(f"{virtual.describe()} is a view: write to the whole buffer")
            if virtual.pending is self._pending and self._uses(virtual.slot):
                self._flush("write", read=(), written=(buffer,))
            self._write(virtual, source, keep)

    def upload(self, data: Any, label: str = "", *, keep: bool = False) -> Buffer:
        """A new buffer, filled from host memory: nothing pending can use it, and nothing is flushed."""
        source = as_bytes(data, self.limits.max_buffer)
        with shield, self.lock:
            self._enter()
            buffer = self.allocate(source.nbytes, label)
            self._write(buffer.virtual, source, keep)
            return buffer

    def _write(self, virtual: Virtual, source: Bytes, keep: bool) -> None:
        fits = virtual.physical or self.context.pool.has_room(self._size_of(virtual.nbytes, virtual.label))
        waiting = self._pending.code and not self._held and not self._crowded
        if not fits and waiting:
            self._flush("bytes")  # what was dropped gives its memory back; cheaper than an error first
        try:
            self._fill(virtual, source)
        except OutOfMemoryError:
            if not waiting or not self._pending.code:
                raise
            self._flush("bytes")  # so that what was dropped gives its memory back
            self._fill(virtual, source)
        self._changes += 1
        virtual.lost = ""
        virtual.host = constant(source) if keep else None

    def _uses(self, slot: int) -> bool:
        """Whether a pending command uses a slot, or a view of it."""
        pending = self._pending
        slots = {slot} | {
            each.slot for each in pending.virtuals if isinstance(each.size, tuple) and each.size[0] == slot
        }
        return any(not slots.isdisjoint(used) for _, _, used, _ in pending.commands())

    def _fill(self, virtual: Virtual, source: Bytes) -> None:
        with shield:
            self._fill_shielded(virtual, source)

    def _fill_shielded(self, virtual: Virtual, source: Bytes) -> None:
        context = self.context
        try:
            fresh = not virtual.physical
            if fresh:
                virtual.physical = context.pool.take(self._size_of(virtual.nbytes, virtual.label))
            try:
                context.write(virtual.physical, source)
            except BaseException:
                if fresh:
                    context.pool.give(virtual.physical)
                    virtual.physical = 0
                raise
        except DeviceLostError:
            self._note_loss()
            raise
        self.counters.bytes_uploaded += source.nbytes

    def read(self, buffer: Buffer, *, keep: bool = False) -> Bytes:
        """The buffer's bytes: flushes what is pending and waits.

        `keep` gives the host copy that is left by it, not to be written to; while nothing is pending that
        may overwrite the buffer, a later read finds it there. None is left where another thread wrote to a
        buffer, or had anything computed, while this one waited.
        """
        if keep:
            found = self._host_copy(buffer)
            if found is not None:
                return found
        with shield, self.lock:
            started = self._start_read(buffer)
            changes = self._changes
        if started is None:
            return read_bytes(b"")
        result = self._collected(started, started.wait)
        if keep:
            result = freeze(result)
            with self.lock:
                if self._changes == changes:
                    buffer.virtual.host = result
        return result

    def _host_copy(self, buffer: Buffer) -> Bytes | None:
        with shield, self.lock:
            self._enter()
            return None if self._pending.code else self._get(buffer).host

    async def read_async(self, buffer: Buffer) -> Bytes:
        """The same, letting other tasks run while the GPU works."""
        started = self._start_read(buffer)
        if started is None:
            return read_bytes(b"")
        result = await started.wait_async()
        return self._collected(started, lambda: result)

    def _collected(self, started: ReadBack, wait: Callable[[], Bytes]) -> Bytes:
        try:
            result = wait()
        except DeviceLostError:
            with shield, self.lock:
                self._note_loss()
            raise
        self.counters.bytes_downloaded += result.nbytes
        return result

    def _start_read(self, buffer: Buffer) -> ReadBack | None:
        """Submit what is pending with a copy of the buffer behind it."""
        with shield, self.lock:
            self._enter()
            virtual = self._get(buffer)
            if not virtual.nbytes:
                return None
            if virtual.view is not None:
                raise BufferError(f"{virtual.describe()} is a view: read the whole buffer")
            if not virtual.physical:
                self._restore(virtual)
            context = self.context
            try:
                size, handle = context.staging.take((virtual.nbytes + 3) & ~3)
            except DeviceLostError:
                self._note_loss()
                raise
            try:
                self._flush("read", [(virtual, handle)], read=(buffer,))
            except BaseException:
                context.staging.give(size, handle)
                raise
            self.counters.host_round_trips += 1
            return ReadBack(context.staging, size, handle, virtual.nbytes)

    # Trouble

    def _note_loss(self) -> None:
        """Where the device is gone: drop what was pending, and open a new one at the next use."""
        if self.context.closed or self.context.native.alive():
            return
        for virtual in self._written():
            virtual.host = None  # it is older than what was to be computed
        self._discard("was to be computed on a device that was lost")
        for virtual in self._virtual:
            if virtual.physical:
                virtual.physical = 0
                if virtual.host is None:
                    virtual.lost = "was on a device that was lost"
        self.context.close()
        self.last_event = None
        self.trouble = self._reopen
        for each in observers():
            each.troubled(self.name, "was lost: what was pending is dropped")

    def _reopen(self) -> None:
        with shield:
            self.context = self._open_context()
            self.trouble = None
        for each in observers():
            each.troubled(self.name, "was opened again")

    def _discard(self, why: str) -> None:
        """Drop the pending commands; what they were to compute says so when it is used."""
        for virtual in self._written():
            if not virtual.physical:
                virtual.lost, virtual.host = why, None
        for virtual in self._pending.dropped():
            self.context.pool.give(virtual.physical)
        self._begin()

    def _written(self) -> list[Virtual]:
        """The buffers, whole ones, that pending commands write to."""
        virtuals = self._pending.virtuals
        found = []
        for pipeline, _, slots, _ in self._pending.commands():
            for slot, access in zip(slots, pipeline.accesses, strict=True):
                if access == "read_write":
                    size = virtuals[slot].size
                    found.append(virtuals[slot if isinstance(size, int) else size[0]])
        return found

    def finish(self) -> None:
        """At exit: drop what is pending and let the GPU finish, so that no driver thread is left running."""
        if self.trouble is None and not self.context.native.lost and self.lock.acquire(timeout=5):
            try:
                self._begin()
                if self.last_event is not None:
                    self.last_event.wait(60)
            finally:
                self.lock.release()

    def largest(self, count: int = 5) -> str:
        """The largest buffers that hold memory, for an error message."""
        held = [each for each in self._virtual if each.physical]
        held += [
            each
            for each, buffer in zip(self._running.virtuals, self._running.placed, strict=False)
            if buffer and not each.physical
        ]
        held.sort(key=lambda each: -each.nbytes)
        sizes = Counter(
            f"{name or 'unnamed'} {readable_bytes(each.nbytes)}"
            for name, each in zip(naming.of(held), held, strict=True)
        )
        shown = [text if times == 1 else f"{times} × {text}" for text, times in sizes.items()]
        return ", ".join(shown[:count]) or "none"

    def held(self) -> list[tuple[Virtual, int]]:
        """The buffers that hold memory, each with the bytes of it, once what was dropped was let go."""
        with shield, self.lock:
            if self.trouble is None:
                self._drain()
            physical = self.context.pool.buffers
            return [(each, physical.get(each.physical).size) for each in self._virtual if each.physical]
