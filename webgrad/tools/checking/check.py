"""check: a computation kernel by kernel on a GPU, each held against the cpu, and the first op that diverges.

In: a function, or anything that computes while a `Checker` watches. Out: a `CheckReport`. The invariant: what
is computed is what it would be without a check, until it is stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from ...errors import ArgumentError
from ...evaluate.evaluate import checking, evaluate
from ...graph.node import Node
from ...graph.snapshot import Walk
from ...jit.pytree import flatten
from ...runtime.device import DeviceLike
from ...runtime.webgpu import Device
from ..gpu_choice import gpu_for
from .checked_graph import CheckedGraph
from .verdict import CheckReport

__all__ = ["COMPARES", "Checker", "Stopped", "check"]

COMPARES = "check holds a GPU against the cpu"


class Stopped(BaseException):
    """Ends what is checked at the first divergence; no error, so that nobody's `except` takes it for one."""


class Checker:
    """Is shown every graph before it is computed, and holds its kernels against the cpu."""

    def __init__(self, device: Device, *, everything: bool = False, times: int | None = None) -> None:
        self.device = device
        self.report = CheckReport(device.name)
        self._everything = everything
        self._times = times
        self._seen: Counter[tuple[int, ...]] = Counter()

    def __call__(self, roots: list[Node], walked: Walk) -> Callable[..., None] | None:
        """Compare the kernels of a graph; `Stopped` at the first divergence, unless everything is wanted.

        What it gives compares the plan's own run with that of its kernels one by one.
        """
        self._stop()
        self._seen[walked.key] += 1
        if self._times is not None and self._seen[walked.key] > self._times:
            self.report.repeated += 1
            return None
        own = roots[0].sig.device
        evaluation = CheckedGraph(self.report, own if own.is_gpu else self.device, roots, walked)
        evaluation.run(self._everything)
        self._stop()
        if not own.is_gpu:
            return None

        def ran(numbers: Sequence[int], storage: Sequence[Any]) -> None:
            evaluation.compare_run(numbers, storage)
            self._stop()

        return ran

    def _stop(self) -> None:
        if self.report.divergences and not self._everything:
            raise Stopped("a check found a divergence, and stops what it checks here")


def check(
    function: Callable[..., Any],
    *args: Any,
    device: DeviceLike = None,
    everything: bool = False,
    times: int | None = None,
    **kwargs: Any,
) -> CheckReport:
    """Call a function and hold every kernel of it on a GPU against the cpu: a report that names the first
    op that diverges.

    `device` is the GPU (None: that of the tensors, else the best adapter, software ones too); tensors of the
    cpu are compiled for it. The function is stopped at the first divergence unless `everything` is wanted;
    `times` is how often evaluations of one structure are compared, None being always. Functions made by
    `webgrad.jit` run as plain ones meanwhile.

    >>> report = wg.check(lambda x: wg.softmax(x @ x.T, axis=-1), wg.ones((4, 4)), device="webgpu")
    >>> report.ok
    True
    """
    if not callable(function):
        raise ArgumentError(
            f"check takes a function and its arguments, not a {type(function).__name__}: write "
            "wg.check(lambda: ...)"
        )
    if times is not None and (type(times) is not int or times < 1):
        raise ArgumentError(f"check: times must be an integer from 1, or None, not {times!r}")
    checker = Checker(gpu_for(device, COMPARES), everything=everything, times=times)
    try:
        with checking(checker):
            checker.report.result = result = function(*args, **kwargs)
            _refuse_later(result)
            leaves: list[Any] = []
            flatten(result, leaves, numbers=False)
            evaluate([each.node for each in leaves])
    except Stopped:
        checker.report.result = None
    return checker.report


def _refuse_later(result: Any) -> None:
    """Nothing of a generator or a coroutine has run when its function has returned."""
    if isinstance(result, CoroutineType):
        result.close()  # else Python warns of it
        raise ArgumentError(
            "check got a coroutine, which has not run: write wg.check(lambda: asyncio.run(f()))"
        )
    if isinstance(result, GeneratorType | AsyncGeneratorType):
        raise ArgumentError("check got a generator, which has not run: write wg.check(lambda: list(f()))")
