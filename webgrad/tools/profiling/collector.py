"""Collecting a profile: what stages, kernels and memory did, as it is told by `observing`.

In: spans of stages, launches of flushes, groups of the cpu. Out: `Collected`, plain lists on one clock. GPU
times come from timestamps around each launch, where the adapter has them; else each launch is submitted and
waited for by itself. The invariant: what is added up is all that happened, up to MOST_KEPT events, with which
the profile ends, and says so; the timeline has an end before, at MOST_EVENTS.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...errors import WebgradError
from ...observing import Note, Observer
from ...runtime.host import resident_bytes
from ...runtime.timer import pass_times

if TYPE_CHECKING:
    from ...runtime.context import Context
    from ...runtime.launches import Flush, FlushedLaunch

__all__ = ["MOST_EVENTS", "Collected", "Collector", "Kernel", "Span"]

MOST_EVENTS = 200_000  # of the timeline
MOST_KEPT = 4_000_000  # spans and launches: some 800 MB, half a minute of the smallest calls there are
MOST_WAITING = 16  # flushes whose times were not yet asked for
RESIDENT_EVERY = 2_000_000  # nanoseconds between two looks at the process's memory

Span = tuple[int, str, int, int]  # thread, stage, began, ended
Kernel = tuple[str, Note, int, int]  # device, what, began, ended


@dataclass(slots=True)
class Collected:
    """What happened, in nanoseconds of `perf_counter_ns`; `thread` is the one that was profiled."""

    thread: int
    began: int
    ended: int = 0
    spans: list[Span] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    flushes: list[tuple[int, str, str, int]] = field(default_factory=list)  # when, device, cause, commands
    memory: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)  # when, live, pooled
    resident: list[tuple[int, int]] = field(default_factory=list)
    timing: dict[str, str] = field(default_factory=dict)  # device → how its kernels were timed
    notes: list[str] = field(default_factory=list)


class Collector(Observer):
    """Told of all that happens; `finish` waits for the GPU's times."""

    apart = True

    def __init__(self) -> None:
        self.found = Collected(threading.get_ident(), perf_counter_ns())
        self._clocks: dict[Context, _Clock] = {}
        self._waiting: deque[tuple[_Clock, Flush, int, Callable[[], Any]]] = deque()
        self._looked = 0
        self._launched = 0
        self._lock = threading.RLock()

    # What is told

    def span(self, stage: str, began: int, ended: int) -> None:
        """A stage worked."""
        if not self.found.ended:
            self.found.spans.append((threading.get_ident(), stage, began, ended))

    def built(self, began: int, ended: int) -> None:
        """A function of tensors was called."""
        if not self.found.ended:
            self.found.spans.append((threading.get_ident(), "build", began, ended))

    def computed(self, device: Any, note: Note, began: int, ended: int) -> None:
        """The cpu computed a group."""
        if self.found.ended:
            return
        self.found.kernels.append((device.name, note, began, ended))
        self.found.spans.append((threading.get_ident(), "kernels", began, ended))
        self.found.timing.setdefault(device.name, "wall")
        self._look()
        self._end_if_full(1)

    def encode(self, flush: Flush) -> Any:
        """Each launch in a timed pass of its own, or by itself."""
        if self.found.ended:
            return flush.together()
        clock = self._clock(flush.queue.context)
        if clock.times is not None and flush.launches:
            return clock.times.encode(flush)
        for launch in flush.launches:
            began = perf_counter_ns()
            flush.run(launch)
            self._add(flush, launch, began, perf_counter_ns())
        return flush.rest()

    def flushed(self, flush: Flush) -> None:
        """A flush was submitted: its times can be asked for."""
        now, queue = perf_counter_ns(), flush.queue
        context, found = queue.context, self.found
        with self._lock:
            clock = self._clocks.get(context)
            if clock is not None and clock.times is not None and clock.times.staged:
                self._waiting.append((clock, flush, now, clock.times.started()))
            if found.ended:
                return
            pool = context.pool
            series = found.memory.setdefault(queue.name, [])
            series.append((now, flush.peak, pool.bytes_free))
            series.append((now + 1, flush.live, pool.bytes_free))
            found.flushes.append((now, queue.name, flush.cause, len(flush.launches)))
            self._look()
            while len(self._waiting) > MOST_WAITING:
                self._collect()
            self._end_if_full(len(flush.launches))

    def _end_if_full(self, launches: int) -> None:
        found = self.found
        self._launched += launches
        if self._launched + len(found.spans) >= MOST_KEPT and not found.ended:
            found.ended = perf_counter_ns()
            seconds = (found.ended - found.began) * 1e-9
            found.notes.append(
                f"the profile is full with {MOST_KEPT:,} events: it shows the first {seconds:.1f} s"
            )

    # What becomes of it

    def finish(self) -> Collected:
        """Wait for what is still to come, and put the GPU's times on the host's clock."""
        with self._lock:
            while self._waiting:
                self._collect()
            for clock in self._clocks.values():
                self.found.kernels += clock.on_the_host()
                clock.close()
            self._clocks.clear()
        self.found.resident.append((perf_counter_ns(), resident_bytes()))
        self.found.ended = self.found.ended or perf_counter_ns()
        return self.found

    def _clock(self, context: Context) -> _Clock:
        found = self._clocks.get(context)
        if found is None:
            found = self._clocks[context] = _Clock(context)
        return found

    def _collect(self) -> None:
        clock, flush, submitted, times = self._waiting.popleft()
        name = flush.queue.name
        try:
            found = times()
        except WebgradError as error:
            self.found.notes.append(f"{len(flush.launches)} launches on {name} have no times: {error}")
            return
        self.found.timing.setdefault(name, "timestamps")
        clock.add(name, flush, submitted, found)

    def _add(self, flush: Flush, launch: FlushedLaunch, began: int, ended: int) -> None:
        name = flush.queue.name
        self.found.timing[name] = "wall"
        self.found.kernels.append((name, launch.about, began, ended))

    def _look(self) -> None:
        now = perf_counter_ns()
        if now - self._looked >= RESIDENT_EVERY:
            self._looked = now
            self.found.resident.append((now, resident_bytes()))


class _Clock:
    """The GPU's times of one open device, and how they are the host's."""

    def __init__(self, context: Context) -> None:
        self.times: Any = None
        self._launches: list[tuple[str, Note, float, float]] = []  # in the GPU's seconds
        self._ahead: float | None = None  # seconds: the GPU's clock, less the host's, at most
        if "timestamps" in context.features:
            self.times = pass_times(context)

    def add(self, device: str, flush: Flush, submitted: int, times: Any) -> None:
        """The times of a flush; it cannot have begun before it was submitted."""
        for launch, (began, ended) in zip(flush.launches, times, strict=True):
            self._launches.append((device, launch.about, float(began), float(ended)))
        if len(times):
            ahead = float(times[0][0]) - submitted * 1e-9
            self._ahead = ahead if self._ahead is None else min(self._ahead, ahead)

    def on_the_host(self) -> list[Kernel]:
        """The launches on the host's clock: the same clock, or one that is taken to be ahead by as much as
        fits the flush that began soonest.
        """
        ahead = self._ahead or 0.0
        if abs(ahead) < 0.05:  # seconds: it is the same clock, and drivers take a while to begin
            ahead = 0.0
        return [
            (device, note, int((began - ahead) * 1e9), int((max(ended, began) - ahead) * 1e9))
            for device, note, began, ended in self._launches
        ]

    def close(self) -> None:
        if self.times is not None:
            self.times.close()
