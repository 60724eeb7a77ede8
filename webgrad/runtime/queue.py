"""The queue: commands are recorded against virtual buffers, and run when a value is needed.

Comes in: dispatches (pipeline, buffers, parameters, grid), uploads, reads. Here they are recorded;
`submission.py` flushes, `command_list.py` replays, `contents.py` writes and reads, `loss.py` is for a device
that is gone. The invariant: recording changes nothing but the pending list. All of it happens under one lock,
so threads may share a device.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import index
from typing import NamedTuple

from ..errors import BufferError, DeviceLostError, ForeignBufferError
from ..observing import Note
from . import command_list, contents, submission
from .arena import Arena
from .buffers import Buffer, Virtual, naming
from .checks import Limits, check_launch
from .contents import fill
from .context import Context, Event
from .loss import note_loss
from .pending import Grid, Head, Pending
from .pipelines import PADDING, Pipeline
from .pool import size_class
from .references import Tagged
from .shield import shield
from .stats import Counters, readable_bytes
from .submission import flush_early

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
        self.open_context = open_context
        self.virtuals: Arena[Virtual] = Arena("buffer")
        self._heads: list[Head] = []  # (pipeline, grid) by number, as it stands in the pending code
        # What is recorded; what was last submitted of it.
        self.pending = self.running = Pending(self._heads)
        self._head_numbers: dict[Head, int] = {}
        self._sizes: dict[int, int] = {}  # bytes → size class, for sizes seen
        self.first_cut = min(FIRST_CUT, limits.max_commands)
        self.cut_at = self.first_cut
        self.holds = 0
        self._pending_bytes = 0
        self.crowded = False  # there was no room for what is pending
        self._tidy_at = TIDY_EVERY
        self.changes = 0  # how often buffers may have got other contents
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
        pending = self.pending
        virtuals = pending.virtuals
        slot = len(virtuals)
        if slot >= self._tidy_at or size >= LARGE:
            pending = self._make_room(size)
            virtuals = pending.virtuals
            slot = len(virtuals)
        virtual = Virtual(nbytes, size, label, pending, slot)
        virtuals.append(virtual)
        return Buffer(self, self.virtuals.insert(virtual), virtual)

    def size_class_of(self, nbytes: int, label: str = "") -> int:
        return self._sizes.get(nbytes) or self._new_size(nbytes, label)

    def _new_size(self, nbytes: int, label: str) -> int:
        if not 0 <= nbytes <= self.limits.max_buffer:
            raise BufferError(
                f"a buffer{f' {label!r}' if label else ''} of {nbytes:,} bytes cannot be: this device's have "
                f"from 0 to {self.limits.max_buffer:,} bytes; split what is larger"
            )
        if len(self._sizes) >= _SIZES_KEPT:
            self._sizes.clear()
        size = size_class(nbytes, self.limits.max_binding)
        self._sizes[nbytes] = size
        return size

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """A part of a buffer, to be bound on its own: the way round the limit on a binding's size."""
        with self.lock:
            self.enter()
            whole = self.get(buffer)
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
            return Buffer(self, self.virtuals.insert(virtual), virtual)

    def release(self, handle: int) -> None:
        """Free a virtual buffer; from now on its handle is stale."""
        with shield, self.lock:
            self.drain()
            self._let_go(self.virtuals.discard(handle))

    def drain(self) -> None:
        """Let go of dropped buffers. One that commands may use gives its memory back at the next flush."""
        dropped, discard = self.dropped, self.virtuals.discard
        with shield:  # the pool's books must not be left half written
            while dropped:
                self._let_go(discard(dropped.popleft().tag))

    def _let_go(self, virtual: Virtual | None) -> None:
        if virtual is not None:
            if virtual.view is not None:
                virtual.view = None  # so that the whole may be dropped too: commands know it by its slot
            pending, virtual.pending = virtual.pending, None
            if pending is not None and pending.code:
                return  # commands may use it
            if virtual.physical:
                self.context.pool.give(virtual.physical)
                virtual.physical = 0

    def _make_room(self, size: int) -> Pending:
        """Now and then: let dropped buffers and unused slots go; flush when too many bytes are pending."""
        self.drain()
        if not self.pending.code:
            self.begin()
        elif size >= LARGE and not self.holds:
            if self.context.pool.bytes_live + self._pending_bytes + size > self.limits.max_pending_bytes:
                flush_early(self, "bytes", self.cut_at)
            self._pending_bytes += size
        self._tidy_at = len(self.pending.virtuals) + TIDY_EVERY
        self.pending.views += size > self.limits.max_binding  # every launch is checked from now on
        return self.pending

    @property
    def waiting(self) -> int:
        """How many commands are recorded and not submitted."""
        return len(self.pending.params)

    def size_of(self, buffer: Buffer) -> int:
        """The bytes of a buffer of this device; an error where it is none, or no more."""
        return self.get(buffer).nbytes

    def get(self, buffer: Buffer) -> Virtual:
        if not isinstance(buffer, Buffer):
            raise BufferError(
                f"a {type(buffer).__name__} is not a device's buffer: upload it first, or use Batch.run for "
                "the values of a batch"
            )
        if buffer.queue is not self:
            raise ForeignBufferError(
                f"{buffer!r} belongs to another device, not to this {self.name}: move it here first"
            )
        virtual = self.virtuals.get(buffer.handle)
        if virtual.view is not None:
            self.get(virtual.view[0])  # a view goes with its whole
        return virtual

    def enter(self) -> None:
        """What every entry does first: see whether the device can be used, and let dropped buffers go."""
        if self.trouble is not None:
            self.trouble()
        if not self.context.native.blocking:
            self.context.wait_for_room()  # here, since nothing is half done yet
        if self.dropped:
            self.drain()

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
        pending = self.pending
        if len(pending.params) >= self.cut_at and self._cut(pipeline, grid):
            pending = self.pending
        slots = []
        try:
            for buffer in buffers:
                virtual = buffer.virtual
                slots.append(virtual.slot if virtual.pending is pending else self._admit(buffer))
        except AttributeError:
            for buffer in buffers:
                self.get(buffer)  # says which of them is no buffer
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
        virtual = self.get(buffer)
        if not virtual.physical or virtual.view is not None or virtual.nbytes > self.limits.max_binding:
            return self._new_slot(virtual)
        pending = self.pending
        slot = len(pending.virtuals)
        # No call up to the next line's: Ctrl-C cannot part them.
        virtual.pending, virtual.slot = pending, slot
        pending.virtuals.append(virtual)
        return slot

    def _new_slot(self, virtual: Virtual) -> int:
        pending = self.pending
        if virtual.view is not None:
            base, offset = virtual.view
            whole = self.get(base)
            slot = whole.slot if whole.pending is pending else self._new_slot(whole)
            virtual.size = (slot, offset, virtual.nbytes)
            pending.views += 1
        elif virtual.nbytes > self.limits.max_binding:
            pending.views += 1
        if virtual.view is None and not virtual.physical:
            self.restore(virtual)
        slot = len(pending.virtuals)
        virtual.pending, virtual.slot = pending, slot  # no call up to the next line's, as above
        pending.virtuals.append(virtual)
        return slot

    def restore(self, virtual: Virtual) -> None:
        """Bring a buffer back whose memory went with a lost device."""
        if virtual.lost:
            raise DeviceLostError(f"{virtual.describe()} {virtual.lost}, and has no host copy: make it again")
        if virtual.host is not None:
            fill(self, virtual, virtual.host)

    def _checked_head(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], slots: list[int], params: bytes, grid: Grid
    ) -> int | None:
        """The number of a (pipeline, grid), after every check there is; begins to compile a new pipeline.

        None for a grid with no workgroup in it: there is nothing to do.
        """
        for buffer in buffers:
            self.get(buffer)
        virtuals = [self.pending.virtuals[slot] for slot in slots]
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
            note_loss(self)
            raise

    def _cut(self, pipeline: Pipeline, grid: Grid) -> bool:
        """Flush a long queue, at a place that comes again when the program loops.

        The place is a command like the one the queue began with; without one, at twice the length. A cut at a
        fixed count would drift through a loop's period, and no queue would ever be the same again.
        """
        if self.holds:
            return False
        pending = self.pending
        if self._heads[pending.code[0]] == (pipeline, grid) or len(pending.params) >= 2 * self.cut_at:
            return flush_early(self, "full", min(CUT_GROWTH * self.cut_at, self.limits.max_commands))
        return False

    def annotate(self, note: Note) -> None:
        """Say what the newest command is about, for those who watch."""
        self.pending.annotate(note)

    @contextmanager
    def hold(self) -> Iterator[Recorder]:
        """Record a stretch of commands that is submitted as one, however long, by the recorder it gives."""
        with self.lock:
            self.enter()
            self.holds += 1
            try:
                yield Recorder(self._new, self._record, self._compute)
            finally:
                self.holds -= 1

    def compile(self, pipeline: Pipeline) -> None:
        """Compile a pipeline now, so that a shader error is raised here."""
        with shield, self.lock:
            self.enter()
            try:
                self.context.compiler.confirm(pipeline)
            except DeviceLostError:
                note_loss(self)
                raise

    # Running and transfers: each told where it stands

    flush = submission.flush
    synchronize = submission.synchronize
    replay = command_list.replay
    write = contents.write
    upload = contents.upload
    read = contents.read
    read_async = contents.read_async

    def begin(self) -> None:
        """A new list of pending commands, empty."""
        self.changes += 1
        self.pending.forget()
        if len(self._heads) >= HEADS_KEPT:  # their numbers stand in the keys of resolved queues
            self._heads, self._head_numbers = [], {}
            self.context.resolved.clear()
        self.pending = Pending(self._heads)
        self._pending_bytes = 0
        self._tidy_at = TIDY_EVERY

    def finish(self) -> None:
        """At exit: drop what is pending and let the GPU finish, so that no driver thread is left running."""
        if self.trouble is None and not self.context.native.lost and self.lock.acquire(timeout=5):
            try:
                self.begin()
                if self.last_event is not None:
                    self.last_event.wait(60)
            finally:
                self.lock.release()

    def largest(self, count: int = 5) -> str:
        """The largest buffers that hold memory, for an error message."""
        held = [each for each in self.virtuals if each.physical]
        held += [
            each
            for each, buffer in zip(self.running.virtuals, self.running.placed, strict=False)
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
                self.drain()
            physical = self.context.pool.buffers
            return [(each, physical.get(each.physical).size) for each in self.virtuals if each.physical]
