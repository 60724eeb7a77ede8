"""Recording: every distinct dispatch that runs inside a block, with what its buffers held before and after.

In: the flushes of every GPU while the block runs. Out: a file that `replay` runs again, on any adapter. Two
dispatches are the same where kernel, sizes, grid and fixed parameters are: the first is kept, the others are
counted. The invariant: what the block computes is what it would compute without.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import ArgumentError, BufferError, ModelFileError, OutOfMemoryError
from ...graph.node import line_of
from ...observing import Observer, observe
from ...runtime.device import default_device, default_while, flushes_ended, opened_gpus
from ...runtime.stats import readable_bytes
from .file_format import Binding, Dispatch, Origin, RecordingWriter

if TYPE_CHECKING:
    from ...runtime.launches import Flush, FlushedLaunch
    from ...runtime.queue import Queue
    from ...runtime.webgpu import Device

__all__ = ["Recording", "record"]

LIMIT = 2 << 30
_OPS_SHOWN = 40
_log = logging.getLogger("webgrad")


def record(path: str | os.PathLike[str], *, limit: int = LIMIT, portable: bool = False) -> Recording:
    """A block whose GPU dispatches are kept in a file, each distinct one once, for `wg.replay`.

    `limit` bounds the bytes of buffers in it: beyond that, dispatches are kept without them, to be timed but
    not verified. With `portable` the default device is used, inside the block, as if it had no more than
    every adapter has; so the recording runs on all of them. A block that ends by an error leaves what ran
    until then.

    >>> import tempfile
    >>> with wg.record(tempfile.gettempdir() + "/webgrad-run.zip") as recording:
    ...     _ = wg.sum(wg.ones(8)).item()  # on the cpu there is nothing to record
    >>> recording.distinct
    0
    """
    return Recording(path, whole_number("record: limit", limit, 0), portable=portable)


def whole_number(what: str, value: Any, least: int) -> int:
    """An argument that must be an integer."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ArgumentError(f"{what} is {value!r}, and must be an integer from {least}")
    return number


class Recording:
    """A recording that is being made, in a `with` statement, or was."""

    def __init__(self, path: str | os.PathLike[str], limit: int, *, portable: bool) -> None:
        self.path = os.fspath(path)
        self.limit = limit
        self.portable = portable
        self._keeper: _Keeper | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Recording:
        if self._keeper is not None:
            raise ArgumentError(f"the recording {self.path} was made already: call wg.record again")
        keeper = _Keeper(RecordingWriter(self.path, self.limit))
        try:
            if self.portable:
                self._stack.enter_context(default_while(_portable()))
            for each in opened_gpus():
                each.flush()  # what was recorded before is not of this block
            self._stack.enter_context(observe(keeper))
        except BaseException:
            self._stack.close()
            keeper.writer.abandon()
            raise
        self._keeper = keeper
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        keeper = self._keeper
        assert keeper is not None
        ended_well = False
        try:
            with self._stack:
                for each in opened_gpus() if kind is None else ():
                    each.flush()
            ended_well = kind is None
        finally:
            flushes_ended()  # those of other threads, which may be writing still
            keeper.close()
            if keeper.failure is not None:
                if ended_well:
                    raise keeper.failure
                _log.error("%s", keeper.failure)  # the block's own error is on its way

    @property
    def dispatches(self) -> int:
        """How many dispatches have run."""
        return 0 if self._keeper is None else self._keeper.counts.total()

    @property
    def distinct(self) -> int:
        """How many distinct ones."""
        return 0 if self._keeper is None else len(self._keeper.found)

    @property
    def without_buffers(self) -> int:
        """How many distinct ones are kept without their buffers, for want of room."""
        return 0 if self._keeper is None else sum(not each.kept for each in self._keeper.found.values())

    @property
    def nbytes(self) -> int:
        """Bytes of buffers, equal ones counted once."""
        return 0 if self._keeper is None else self._keeper.writer.stored

    def __repr__(self) -> str:
        lacking = f", {self.without_buffers} without buffers" if self.without_buffers else ""
        return (
            f"<Recording {self.path}: {self.dispatches:,} dispatches, {self.distinct:,} distinct{lacking}, "
            f"{readable_bytes(self.nbytes)}>"
        )


def _portable() -> Device:
    from .portable import portable_device  # here: it loads wgpu-native, which browsers have not

    return portable_device(default_device())


class _Keeper(Observer):
    """Runs the launches of flushes: those that are new one by one, and the others as they come."""

    apart = True

    def __init__(self, writer: RecordingWriter) -> None:
        self.writer = writer
        self.found: dict[int, Dispatch] = {}
        self.counts: Counter[int] = Counter()
        self.failure: ModelFileError | None = None  # told at the block's end: computing goes on
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._origins: dict[Queue, Origin] = {}
        self._full = False
        self._lock = threading.Lock()  # devices flush in several threads

    def encode(self, flush: Flush) -> Any:
        """Keep what is new, count what is not; gives the commands that are left to submit."""
        with self._lock:
            return self._encode(flush)

    def _encode(self, flush: Flush) -> Any:
        new = [self._counted(each) for each in flush.launches]
        if max(new, default=-1) < 0:
            return flush.together()
        self._note_origin(flush)
        flush.begun = True
        return self._one_by_one(flush, new)

    def _one_by_one(self, flush: Flush, new: list[int]) -> Any:
        waiting: list[FlushedLaunch] = []
        for launch, number in zip(flush.launches, new, strict=True):
            if number < 0:
                waiting.append(launch)
                continue
            if waiting:
                flush.queue.context.submit(_together(flush, waiting, ()))
                waiting = []
            self._keep(flush, launch, number)
        return _together(flush, waiting, flush.copies) if waiting else flush.rest()

    def _counted(self, launch: FlushedLaunch) -> int:
        """The number of a launch that is met for the first time, else -1; it is counted."""
        fixed = launch.params[launch.note.numbers :] if launch.note is not None else launch.params
        program = launch.program
        sizes = tuple([nbytes for _, nbytes in launch.sizes])
        key = (program.text, program.entry, fixed, launch.row.grid, sizes)
        number = self._numbers.setdefault(key, len(self._numbers))
        self.counts[number] += 1
        return number if self.counts[number] == 1 else -1

    def _keep(self, flush: Flush, launch: FlushedLaunch, number: int) -> None:
        """Run a launch, and keep it with its contents as far as there is room."""
        bindings = _bindings(launch)
        kept = self._has_room(launch)
        before = self._contents(flush, launch) if kept else None
        flush.run(launch)
        after = None if before is None else self._contents(flush, launch, "read_write")
        if before is not None and after is not None:
            bindings = tuple(
                replace(each, before=then, after=now)
                for each, then, now in zip(bindings, before, after, strict=True)
            )
        self.found[number] = _dispatch(launch, self._kernel(launch), bindings)

    def _has_room(self, launch: FlushedLaunch) -> bool:
        wanted = sum(each.nbytes * (1 + (each.access == "read_write")) for each in launch.bound)
        fits = self.failure is None and self.writer.fits(wanted)
        if not fits and not self._full and self.failure is None:
            self._full = True
            _log.warning(
                "%s: %s of buffers are kept, and limit= allows %s: some dispatches are kept without theirs, "
                "to be timed but not verified",
                self.writer.path,
                readable_bytes(self.writer.stored),
                readable_bytes(self.writer.limit),
            )
        return fits

    def _contents(self, flush: Flush, launch: FlushedLaunch, access: str = "") -> list[str] | None:
        """What its buffers, or those of one access, hold now; None where it cannot be read or written."""
        try:
            return [
                self.writer.buffer(flush.read(each).tobytes()) if access in ("", each.access) else ""
                for each in launch.bound
            ]
        except ModelFileError as error:
            self.failure = error
        except (OutOfMemoryError, BufferError):
            pass  # there is no room to read it, and the launch itself needs none
        return None

    def _kernel(self, launch: FlushedLaunch) -> int:
        program = launch.program
        if self.failure is None:
            try:
                return self.writer.kernel(program.label, program.entry, program.text)
            except ModelFileError as error:
                self.failure = error
        return 0

    def _note_origin(self, flush: Flush) -> None:
        queue = flush.queue
        if queue not in self._origins:
            self._origins[queue] = next(_origin(each) for each in opened_gpus() if each.queue is queue)

    def close(self) -> None:
        """Put the file in its place, or leave nothing where it could not be written."""
        origins = list(self._origins.values())
        self._origins.clear()  # the recording may outlive the devices
        if self.failure is not None:
            self.writer.abandon()
            return
        if not self.found:
            _log.warning(
                "%s: no kernel ran on a GPU inside of wg.record, so it is empty; an adapter is chosen with "
                "wg.set_default_device, WEBGRAD_DEVICE or --device",
                self.writer.path,
            )
        rows = [replace(each, count=self.counts[number]) for number, each in self.found.items()]
        try:
            self.writer.close(origins, rows)
        except ModelFileError as error:
            self.failure = error


def _together(flush: Flush, launches: list[FlushedLaunch], copies: Any) -> Any:
    context = flush.queue.context
    prepared = context.encoder.prepare([each.row for each in launches])
    return context.encode(prepared, [each.params for each in launches], copies)


def _bindings(launch: FlushedLaunch) -> tuple[Binding, ...]:
    """A launch's buffers, without contents; dtypes are known of what is written."""
    dtypes = iter(launch.note.dtypes if launch.note is not None else ())
    return tuple(
        Binding(
            each.name,
            each.access,
            each.type,
            next(dtypes, "") if each.access == "read_write" else "",
            bound.nbytes,
        )
        for each, bound in zip(launch.program.bindings, launch.bound, strict=True)
    )


def _dispatch(launch: FlushedLaunch, kernel: int, bindings: tuple[Binding, ...]) -> Dispatch:
    note = launch.about
    more = len(note.ops) - _OPS_SHOWN
    ops = " ".join(note.ops[:_OPS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return Dispatch(
        kernel=kernel,
        name=launch.name,
        ops=ops,
        line=line_of(note.where),
        count=1,
        grid=launch.row.grid,
        params=launch.params,
        needs=tuple(sorted(launch.program.requires)),
        moved=note.bytes_read + note.bytes_written,
        operations=note.operations,
        bindings=bindings,
    )


def _origin(device: Device) -> Origin:
    info = device.info
    return Origin(
        __version__,
        device.name,
        info.name,
        info.backend,
        info.driver,
        tuple(sorted(device.features)),
        dict(info.limits),
    )
