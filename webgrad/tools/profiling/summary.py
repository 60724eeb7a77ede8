"""What a profile amounts to: where the time of a thread went, and what every kernel took.

In: what was collected. Out: a `Summary`, on a clock that begins with the profile. Every moment of the
profiled thread belongs to the innermost stage that was at work, or to the program itself; of the time that
was waited, that in which a GPU was at work is told apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...graph.node import line_of
from ...observing import STAGES
from .collector import Collected, Kernel, Span

__all__ = ["KernelRow", "StageRow", "Summary", "self_intervals", "short_line", "stage_name", "summarise"]

Interval = tuple[int, int]

BLOCKED = 1_000_000  # nanoseconds from which handing commands to the driver is waiting for the GPU

OTHERS = {
    "kernels": "computing on the cpu",
    "idle": "waiting while no kernel ran: the driver's own time",
    "python": "the program's own code, and all that no stage tells of",
}


@dataclass(frozen=True, slots=True)
class StageRow:
    """What a host stage took of the profiled thread's time, without the stages inside of it."""

    name: str
    seconds: float
    count: int
    what: str


@dataclass(slots=True)
class KernelRow:
    """All launches of one kernel at one line; bytes and operations are those of all of them."""

    name: str
    device: str
    line: str
    ops: tuple[str, ...]
    count: int = 0
    seconds: float = 0.0
    slowest: float = 0.0  # seconds of the slowest launch: the first one may have had the driver compile
    share: float = 0.0  # of the time of all kernels
    bytes: int = 0
    operations: int = 0

    @property
    def gigabytes_a_second(self) -> float:
        """What it moved, over the time it took."""
        return self.bytes / self.seconds / 1e9 if self.seconds else 0.0

    @property
    def gigaflops(self) -> float:
        """What it computed, over the time it took."""
        return self.operations / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """A profile added up. `busy` is the share of the time in which kernels ran, by device."""

    seconds: float
    explained: float
    stages: list[StageRow]
    kernels: list[KernelRow]
    busy: dict[str, float]
    causes: dict[str, int]
    peaks: dict[str, int]  # device → the most bytes in use
    notes: list[str] = field(default_factory=list)


def summarise(found: Collected) -> Summary:
    """Add up what was collected."""
    total = max(1, found.ended - found.began)
    stages = _stages(found, total)
    by_name = {each.name: each.seconds for each in stages}
    unexplained = by_name.get("python", 0.0) + by_name.get("idle", 0.0)
    causes: dict[str, int] = {}
    for _, _, cause, _ in found.flushes:
        causes[cause] = causes.get(cause, 0) + 1
    devices = dict.fromkeys(each[0] for each in found.kernels)
    return Summary(
        seconds=total * 1e-9,
        explained=max(0.0, 1 - unexplained / (total * 1e-9)),
        stages=stages,
        kernels=_kernels(found.kernels),
        busy={
            each: _length(_union((k[2], k[3]) for k in found.kernels if k[0] == each)) / total
            for each in devices
        },
        causes=causes,
        peaks={name: max(live for _, live, _ in series) for name, series in found.memory.items()},
        notes=found.notes,
    )


def self_intervals(spans: Iterable[Span], began: int, ended: int) -> list[tuple[str, Interval]]:
    """The parts of a thread's time in which each stage was the innermost one; "python" where none was."""
    pieces: list[tuple[str, Interval]] = []
    stack: list[tuple[str, int]] = [("python", ended)]  # (stage, until)
    at = began

    def advance(until: int) -> None:
        nonlocal at
        while stack and at < until:
            name, end = stack[-1]
            stop = min(until, end)
            if stop > at:
                pieces.append((name, (at, stop)))
                at = stop
            if end <= until and len(stack) > 1:
                stack.pop()
            elif stop >= until:
                break

    for _, name, start, stop in sorted(spans, key=lambda each: (each[2], -each[3])):
        start, stop = max(start, began), min(stop, ended)
        if stop <= start:
            continue
        advance(start)
        stack.append((name, min(stop, stack[-1][1])))
    advance(ended)
    return pieces


def stage_name(name: str, began: int, ended: int) -> str:
    """A stage as people know it: a driver that blocks where commands are handed to it waits for the GPU."""
    return "wait" if name == "submit" and ended - began > BLOCKED else name


def _stages(found: Collected, total: int) -> list[StageRow]:
    mine = [each for each in found.spans if each[0] == found.thread]
    seconds: dict[str, int] = {}
    working = _union((began, ended) for device, _, began, ended in found.kernels if device != "cpu")
    waits: list[Interval] = []
    for name, piece in self_intervals(mine, found.began, found.ended):
        if stage_name(name, *piece) == "wait":
            waits.append(piece)
        else:
            seconds[name] = seconds.get(name, 0) + piece[1] - piece[0]
    if waits:
        busy = _overlap(waits, working)
        seconds["wait"] = busy
        seconds["idle"] = _length(waits) - busy
    counts: dict[str, int] = {}
    for _, name, _, _ in mine:
        counts[name] = counts.get(name, 0) + 1
    words = {**STAGES, **OTHERS}
    rows = [
        StageRow(name, spent * 1e-9, counts.get(name, 0), words.get(name, ""))
        for name, spent in seconds.items()
    ]
    return sorted(rows, key=lambda each: -each.seconds)


def _kernels(launches: Sequence[Kernel]) -> list[KernelRow]:
    rows: dict[Any, KernelRow] = {}
    for device, note, began, ended in launches:
        key = (device, note.name, note.where)
        row = rows.get(key)
        if row is None:
            row = rows[key] = KernelRow(note.name, device, short_line(note.where), note.ops)
        row.count += 1
        row.seconds += (ended - began) * 1e-9
        row.slowest = max(row.slowest, (ended - began) * 1e-9)
        row.bytes += note.bytes_read + note.bytes_written
        row.operations += note.operations
    every = sum(each.seconds for each in rows.values()) or 1.0
    for row in rows.values():
        row.share = row.seconds / every
    return sorted(rows.values(), key=lambda each: -each.seconds)


def short_line(where: Any) -> str:
    """A user's line, its file as seen from the current folder where it is below that."""
    text = line_of(where)
    return text.removeprefix(f"{Path.cwd()}{os.sep}")


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for began, ended in sorted(intervals):
        if joined and began <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], ended))
        else:
            joined.append((began, ended))
    return joined


def _length(intervals: Iterable[Interval]) -> int:
    return sum(ended - began for began, ended in intervals)


def _overlap(first: Sequence[Interval], second: Sequence[Interval]) -> int:
    """How much two lists of intervals, each sorted and apart, have in common."""
    total = at = 0
    for began, ended in first:
        while at < len(second) and second[at][1] <= began:
            at += 1
        each = at
        while each < len(second) and second[each][0] < ended:
            total += min(ended, second[each][1]) - max(began, second[each][0])
            each += 1
    return total
