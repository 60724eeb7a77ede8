"""Observers: the one place through which tools see what the stages do.

In: what stages report: how long they took, which plans were made, what a flush launched. Out: calls of the
active observers. The invariant: stages know nothing of tools, and without observers a report costs one look
at an empty tuple.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from .errors import ArgumentError

# host stage → what it does; times of a stage are without those of stages inside of it
STAGES: Mapping[str, str] = {
    "build": "making nodes: tensors' functions, and calls of captured functions",
    "walk": "numbering what is to be computed, and finding its plan",
    "schedule": "grouping nodes into kernels",
    "lower": "kernels as typed loops",
    "emit": "loops as text",
    "plan": "a plan of all that, to be run again and again",
    "record": "recording commands, or handing out steps on the cpu",
    "resolve": "buffers and bind groups for what was recorded",
    "compile": "waiting for the compiler of shaders, or of native code",
    "encode": "commands for the driver",
    "submit": "handing them to the driver",
    "transfer": "copying from and to the GPU's memory",
    "wait": "waiting for the GPU",
}


@dataclass(frozen=True, slots=True)
class Note:
    """What a launch computes, for people: `where` is the user's line as nodes keep it.

    `operations` are about the additions and products it takes. The first `numbers` bytes of its parameters
    are numbers of the run, a learning rate say. `dtypes` are those of the values it writes, in the order of
    the bindings that are written.
    """

    name: str
    ops: tuple[str, ...] = ()
    where: Any = None
    bytes_read: int = 0
    bytes_written: int = 0
    operations: int = 0
    numbers: int = 0
    dtypes: tuple[str, ...] = ()


class Observer:
    """The events; each method does nothing here. They are called in the thread that does the work.

    An observer that is `apart` encodes each flush's launches itself.
    """

    apart = False

    def span(self, stage: str, began: int, ended: int) -> None:
        """A stage worked from `began` to `ended`, in nanoseconds of `perf_counter_ns`."""

    def opened(self, device: Any, why: str) -> None:
        """A device was opened, and why it was this one."""

    def troubled(self, name: str, what: str) -> None:
        """A device was lost, or opened again."""

    def planned(self, device: Any, schedule: Any, compiled: Any) -> None:
        """A plan was made: the schedule, and for a GPU its (groups, launches)."""

    def tuned(self, device: Any, entry: Any) -> None:
        """The choices of a kernel were measured (`tuning.entries.Entry`)."""

    def compiled(self, label: str, text: str) -> None:
        """Native code was compiled, or found compiled: the text of an LLVM module."""

    def computed(self, device: Any, note: Note, began: int, ended: int) -> None:
        """The cpu computed a group."""

    def encode(self, flush: Any) -> Any:
        """The command buffer of a flush (`runtime/launches.Flush`), where the observer is `apart`."""

    def flushed(self, flush: Any) -> None:
        """A flush was submitted."""


_entered: tuple[Observer, ...] = ()
_changing = threading.Lock()


class _Local(threading.local):
    unseen = False


_local = _Local()


def observers() -> tuple[Observer, ...]:
    """The active observers."""
    return () if _local.unseen else _entered


@contextmanager
def unobserved() -> Iterator[None]:
    """Plans and launches of this thread inside are not reported; the times of its stages are."""
    before, _local.unseen = _local.unseen, True
    try:
        yield
    finally:
        _local.unseen = before


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Report everything that happens, in every thread, to an observer."""
    global _entered
    with _changing:
        if observer.apart and any(each.apart for each in _entered):
            raise ArgumentError(
                "a profile or a recording is active, and only one of them can run every kernel by itself: "
                "end that one first"
            )
        _entered = (*_entered, observer)
        _stages.update(_SPANS)
    try:
        yield
    finally:
        with _changing:
            _entered = tuple(each for each in _entered if each is not observer)
            if not _entered:
                _stages.update(dict.fromkeys(STAGES, _UNSEEN))


class _Wanted:
    """Enters the observers that the settings ask for, before the first device is opened."""

    def __init__(self) -> None:
        self.enter: Callable[[], None] | None = None


wanted = _Wanted()


def opened(device: Any, why: str) -> None:
    """Report a device that was opened."""
    if wanted.enter is not None:
        wanted.enter()
    for each in _entered:
        each.opened(device, why)


class _Began(threading.local):
    """When the current stages of a thread began, the innermost last."""

    def __init__(self) -> None:
        self.times: list[int] = []


_began = _Began()


class _Span:
    """A stage with observers."""

    __slots__ = ("_stage",)

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        _began.times.append(perf_counter_ns())

    def __exit__(self, *_: object) -> None:
        began, ended = _began.times.pop(), perf_counter_ns()
        for each in _entered:
            each.span(self._stage, began, ended)


class _Unseen:
    """A stage while nobody watches: nothing, and quick, since each flush has several. A C function that takes
    anything and gives "", which swallows no error.
    """

    __slots__ = ()
    __enter__ = __exit__ = staticmethod("".format)


_UNSEEN: Any = _Unseen()
_SPANS: Mapping[str, Any] = {name: _Span(name) for name in STAGES}
_stages: dict[str, Any] = dict.fromkeys(STAGES, _UNSEEN)
# While what it gives for a name is entered, that stage is at work. Looked up by C, without a Python call.
stage: Callable[[str], AbstractContextManager[None]] = _stages.__getitem__
