"""Profiles: `with wg.profile("trace.json", "report.html"):`, where time and memory went.

In: what runs inside of the block, on every device. Out: a `Profile`: stages, kernels with the user's lines,
memory and flushes; as a table, as a trace that Perfetto opens, and as a page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Any

from ...errors import ArgumentError, ModelFileError, WebgradError
from ...io.replace import replacing
from ...observing import observe
from ...runtime.device import flushes_ended, opened_devices
from .build_times import telling
from .collector import Collected, Collector
from .report import page
from .summary import KernelRow, StageRow, Summary, summarise
from .table import as_text
from .timeline import page_data
from .trace import chrome_trace

__all__ = ["Profile", "profile"]

SUFFIXES = (".json", ".html")


class Profile:
    """What ran inside of a `with` block. Made by `profile`.

    >>> with wg.profile() as found:
    ...     y = float(wg.sum(wg.ones(1000) * 2))
    >>> len(found.kernels) > 0
    True
    """

    def __init__(self, paths: Sequence[str | Path], title: str) -> None:
        self.paths = [_checked(each) for each in paths]
        self.title = title
        self._collector: Collector | None = None
        self._found: Collected | None = None
        self._summary: Summary | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Profile:
        if self._collector is not None:
            raise ArgumentError("this profile was used before: make another with wg.profile()")
        for device in opened_devices():
            device.synchronize()  # what was begun before is no part of it
        self._collector = Collector()
        self._stack.enter_context(observe(self._collector))
        self._stack.enter_context(telling(self._collector.built))
        self._collector.found.began = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        collector = self._collector
        assert collector is not None
        trouble: WebgradError | None = None
        try:
            for device in opened_devices():
                device.synchronize()  # a flush that nobody waits for is part of it
        except WebgradError as lost:
            trouble = lost
        finally:
            collector.found.ended = collector.found.ended or perf_counter_ns()
            self._stack.close()
            flushes_ended()
            self._found = collector.finish()
        for each in self.paths:
            self.save(each)
        if trouble is not None and error is None:  # else the block's own error is on its way
            raise trouble

    # What was found

    @property
    def summary(self) -> Summary:
        """All of it, added up."""
        if self._found is None:
            what = "was not entered" if self._collector is None else "is still running"
            raise ArgumentError(f"the profile {what}: ask after its `with` block")
        if self._summary is None:
            self._summary = summarise(self._found)
        return self._summary

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.summary.seconds

    @property
    def explained(self) -> float:
        """The share of the time in which a stage or a kernel was at work."""
        return self.summary.explained

    @property
    def stages(self) -> list[StageRow]:
        """Where the thread's time went, the most first."""
        return self.summary.stages

    @property
    def kernels(self) -> list[KernelRow]:
        """What the kernels took, the most first."""
        return self.summary.kernels

    def __str__(self) -> str:
        return as_text(self.summary)

    def __repr__(self) -> str:
        if self._found is None:
            return f"<Profile, {'not entered' if self._collector is None else 'still running'}>"
        return f"<Profile of {self.seconds:.3f} s: {len(self.kernels)} kernels>"

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, as the page gets it."""
        assert self._found is not None, self.summary
        return page_data(self._found, self.summary, self.title)

    def save(self, path: str | Path) -> None:
        """Write a trace for Perfetto (.json), or a page (.html)."""
        path = _checked(path)
        if path.suffix == ".json":
            assert self._found is not None, self.summary
            text = chrome_trace(self._found, self.summary)
        else:
            text = page(self.as_dict())
        with replacing(path) as temporary:
            try:
                temporary.write_text(text, encoding="utf-8")
            except OSError as error:
                raise ModelFileError(f"{path} cannot be written: {error.strerror or error}") from None


def _checked(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ArgumentError(
            f"profile writes a trace (name.json) or a page (name.html), and {str(path)!r} ends in neither"
        )
    if not path.parent.is_dir():
        raise ArgumentError(f"profile cannot write {str(path)!r}: there is no folder {str(path.parent)!r}")
    return path


def profile(*paths: str | Path, title: str = "") -> Profile:
    """A profile of what runs inside of `with`: the paths are written at its end, .json a trace, .html a page.

    Every kernel runs in a pass of its own meanwhile, and is timed there.

    >>> with wg.profile() as found:
    ...     y = float(wg.sum(wg.ones(1000) * 2))
    >>> found.kernels[0].device
    'cpu'
    """
    return Profile(paths, title or " ".join([Path(sys.argv[0] or "python").name, *sys.argv[1:]]))
