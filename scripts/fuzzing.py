"""Cases by the million in worker processes: one that dies, hangs or raises is found, named and passed over.

In: a `Part`, whose `start` gives a function from a case's seed to its outcome, and how many. Out: `Found`.
Workers are forked from a process that has opened no device; each takes a portion of the seeds, and leaves the
seed that it is at in shared memory, so that its death or its silence can be blamed on a case.
"""

from __future__ import annotations

import contextlib
import mmap
import multiprocessing
import os
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

from scripts.figures import Budget, Progress, duration

__all__ = ["ENDLESS", "Case", "Found", "Part", "limit_memory", "run"]

Case = Callable[[int], str]  # a seed → what came of it, in a word or two; whatever it raises is a failure
MEMORY_FILES = Path("/dev/shm")
ENDLESS = "endless"  # a file of this name in its folder says that what a worker does now may have no end
PATIENCE = (30.0, 10.0)  # seconds without a sign of life; of what may have no end


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of case."""

    name: str
    what: str
    count: int
    share: float  # of the time that is left when it begins
    start: Callable[[Path], Case]  # in a worker, with a folder of its own
    portion: int = 1000  # cases of one worker
    seconds: float = 1.0  # of processor time for a case
    memory: int | None = 256 << 20  # bytes a worker may take beyond those it begins with; None: any
    failures: int = 200  # after so many there is nothing more to learn


@dataclass(slots=True)
class Found:
    """What became of the cases of a part."""

    done: int = 0
    wall: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    memory: int = 0

    def add(self, other: Found) -> None:
        """Take in what a worker found."""
        self.done += other.done
        self.outcomes.update(other.outcomes)
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)
        self.memory = max(self.memory, other.memory)

    @property
    def rate(self) -> float:
        """Cases in a second."""
        return self.done / self.wall if self.wall else 0.0


# In a worker


class _TooSlow(BaseException):
    """The time is over; nothing that is tried may catch this."""


def _too_slow(number: int, frame: object) -> None:
    raise _TooSlow("it took more processor time than it may")


def work(part: Part, case: Case, seeds: range, place: mmap.mmap) -> Found:
    """Try cases one after the other, up to the last or until the place says to stop."""
    before = _peak()
    if part.memory is not None:
        limit_memory(part.memory)
    signal.signal(signal.SIGPROF, _too_slow)
    found = Found()
    now = time.process_time()
    for seed in seeds:
        if place[8] or len(found.failures) >= part.failures:
            break
        place[:8] = struct.pack("<q", seed)
        try:
            signal.setitimer(signal.ITIMER_PROF, part.seconds)
            try:
                outcome = case(seed)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome = "FAILED"
            found.failures.append((seed, f"{type(error).__name__}: {error}"))
        found.outcomes[outcome] += 1
        found.done += 1
        began, now = now, time.process_time()
        if now - began > found.slowest[0]:
            found.slowest = (now - began, seed)
    found.memory = max(0, _peak() - before)
    return found


def _peak() -> int:
    import resource  # which Windows has not; the tests of files use what this module is used by

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def limit_memory(most: int) -> None:
    """A limit on the address space, where the system says how much of it is in use."""
    try:
        import resource  # which Windows has not

        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (used + most, resource.RLIM_INFINITY))


def _in_worker(part: Part, seeds: range, place: mmap.mmap, folder: str, results: Connection) -> None:
    # What libraries in C say goes to a file: it is shown if the worker dies.
    errors = os.open(os.path.join(folder, "stderr"), os.O_CREAT | os.O_WRONLY)  # noqa: PTH118
    os.dup2(errors, 2)
    with contextlib.suppress(KeyboardInterrupt):
        try:
            case = part.start(Path(folder))
        except Exception as error:
            results.send(f"{part.name} cannot begin: {type(error).__name__}: {error}")
            return
        results.send(work(part, case, seeds, place))


# Outside of them


class _Worker:
    """A process, the seeds it was given, and the one it is at."""

    def __init__(self, part: Part, seeds: range) -> None:
        self.part, self.seeds = part, seeds
        self.place = mmap.mmap(-1, 16)
        self.place[:8] = struct.pack("<q", seeds.start)
        memory_files = MEMORY_FILES if MEMORY_FILES.is_dir() and os.access(MEMORY_FILES, os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="webgrad-fuzz-", dir=memory_files)
        self.results, far = multiprocessing.Pipe(duplex=False)
        context: Any = multiprocessing.get_context("fork")
        arguments = (part, seeds, self.place, self.folder, far)
        self.process = context.Process(target=_in_worker, args=arguments, daemon=True)
        self.process.start()
        far.close()
        self.seen, self.since = -1, time.monotonic()

    @property
    def at(self) -> int:
        return int(struct.unpack("<q", self.place[:8])[0])

    def stop(self) -> None:
        """Let it end after the case it is at."""
        self.place[8] = 1

    def hangs(self) -> bool:
        """Whether it has been at one case for much longer than that may take; machines can be busy."""
        if self.at != self.seen:
            self.seen, self.since = self.at, time.monotonic()
        usual, endless = PATIENCE
        patience = endless if self.endless() else usual + 5 * self.part.seconds
        return time.monotonic() - self.since > patience

    def endless(self) -> bool:
        return Path(self.folder, ENDLESS).exists()

    def end(self) -> tuple[Found, range]:
        """What it found, or what became of it; and the seeds that nobody tried."""
        hung = self.process.is_alive() and not self.results.poll()
        found = None
        if not hung:
            with contextlib.suppress(EOFError):
                found = self.results.recv()
        excused = hung and self.endless()
        if hung:
            self.process.kill()
        self.process.join()
        complaint = Path(self.folder, "stderr").read_text(errors="replace") if found is None else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        if isinstance(found, str):
            raise RuntimeError(found)
        if found is not None:
            return found, range(0)
        what = "hung" if hung else f"the process ended with {self.process.exitcode}"
        # Those before it went well: what failed among them is found by running the seeds again.
        lost = Found(self.at + 1 - self.seeds.start)
        lost.outcomes["no end" if excused else "HUNG" if hung else "DIED"] += 1
        lost.outcomes["outcome lost with its worker"] += self.at - self.seeds.start
        if not excused:
            lost.failures.append((self.at, f"{what}: {complaint[-600:]}"))
        return lost, range(self.at + 1, self.seeds.stop)


def run(part: Part, first: int, count: int, jobs: int, budget: Budget, progress: Progress) -> Found:
    """Try so many cases from a seed on, in so many processes at a time, while there is time."""
    total, began = Found(), time.monotonic()
    portion = max(1, min(part.portion, -(-count // jobs)))
    waiting = [range(at, min(at + portion, first + count)) for at in range(first, first + count, portion)]
    waiting.reverse()
    workers: list[_Worker] = []
    try:
        while workers or (waiting and not budget.over and len(total.failures) < part.failures):
            ending = budget.over or len(total.failures) >= part.failures
            while waiting and len(workers) < jobs and not ending:
                workers.append(_Worker(part, waiting.pop()))
            for worker in workers if ending else ():
                worker.stop()
            ready = wait_for([worker.results for worker in workers], timeout=0.5)
            for worker in [each for each in workers if each.results in ready or each.hangs()]:
                workers.remove(worker)
                found, rest = worker.end()
                total.add(found)
                if rest:
                    waiting.append(rest)
            total.wall = time.monotonic() - began
            done = total.done + sum(max(0, worker.at - worker.seeds.start) for worker in workers)
            progress.show(
                f"{part.name}: {done:,} of {count:,} in {duration(total.wall)}, "
                f"{len(total.failures)} failures"
            )
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            shutil.rmtree(worker.folder, ignore_errors=True)
        progress.clear()
    return total
