"""Measuring: every candidate for a kernel is made and run on data of its own, and timed in turn.

In: a bundle of groups and the choices for it, the default first. Out: a `Candidate` for each. One that cannot
be made, or whose results are not the default's, is dropped. The user's values are not touched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..arrays import Array, np
from ..errors import DeviceLostError, WebgradError
from ..graph.node import Signature
from ..graph.snapshot import Snapshot
from ..kernels.launch import Bound, Launch
from ..lower.choices import Choice
from ..lower.compile import compile_bundle
from ..runtime.buffers import Buffer
from ..runtime.pipelines import Pipeline
from ..runtime.queue import Recorder
from ..runtime.timer import Timer
from ..runtime.webgpu import Device
from ..schedule.plan import Group
from .entries import Candidate

Numbers = Mapping[int, Any]  # the run-time numbers by node

MAX_SECONDS = 2.0  # seconds for all candidates of one kernel
ROUNDS = 7
# What a sample should take, in seconds, and how often a kernel is run for it at most: by GPU timestamps, and
# by the clock, which also counts what a submission costs.
SAMPLE, MAX_RUNS = 4e-3, 64
CLOCKED_SAMPLE, MAX_CLOCKED_RUNS = 20e-3, 1024
MAX_SLOWDOWN = 2.0  # times the best: not timed again, after two rounds
_PATTERN = 65_521  # elements of data before it repeats: a prime, so that no two rows are alike
_POISON = 0x5A
# dtype → what results may differ by, of the largest; other dtypes must be equal
TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-9}


class DispatchArguments(NamedTuple):
    """A kernel over buffers, ready to be recorded."""

    pipeline: Pipeline
    buffers: list[Buffer]
    params: bytes
    grid: tuple[int, int, int]


def measure(
    device: Device,
    graph: Snapshot,
    groups: Sequence[Group],
    offered: Sequence[Choice],
    numbers: Numbers | None = None,
    *,
    limit: float = MAX_SECONDS,
) -> tuple[Candidate, ...]:
    """Time the choices for a bundle. An error of the default's own, as of a lost device, is raised."""
    stop = time.monotonic() + limit
    trial = _Trial(device, graph, groups, numbers or {})
    dropped: dict[Choice, str] = {}
    runs: dict[Choice, list[DispatchArguments]] = {}
    with Timer(device) as timer:
        for choice in offered:
            try:
                if runs and time.monotonic() > stop:
                    dropped[choice] = "there was no time for it"
                elif trial.agrees(launches := trial.launches(choice), timer):
                    runs[choice] = launches
                else:
                    dropped[choice] = "its results are not the default's"
            except DeviceLostError:
                raise
            except WebgradError as error:
                if choice == offered[0]:
                    raise
                dropped[choice] = str(error).partition("\n")[0]
        best = _timed(timer, runs, stop)
    return tuple(Candidate(each, best.get(each), dropped.get(each, "")) for each in offered)


def _timed(timer: Timer, runs: Mapping[Choice, list[DispatchArguments]], stop: float) -> dict[Choice, float]:
    """The best time of each, in rounds, so that a change of the machine's mood is the same for all."""
    best = {choice: timer.seconds(_recording(launches, 1)) for choice, launches in runs.items()}
    default, least = next(iter(runs)), min(best.values())
    sample, most = (SAMPLE, MAX_RUNS) if timer.exact else (CLOCKED_SAMPLE, MAX_CLOCKED_RUNS)
    count = max(1, min(most, math.ceil(sample / max(least, 1e-7))))
    for number in range(ROUNDS):
        least = min(best.values())
        for choice, launches in runs.items():
            hopeless = number > 1 and choice != default and best[choice] > MAX_SLOWDOWN * least
            if number and (hopeless or time.monotonic() > stop):
                continue
            seconds = timer.seconds(_recording(launches, count)) / count
            best[choice] = min(best[choice], seconds)
    return best


def _recording(launches: Sequence[DispatchArguments], count: int) -> Callable[[Recorder], None]:
    def record(recorder: Recorder) -> None:
        for _ in range(count):
            for each in launches:
                recorder.dispatch(*each)

    return record


def dispatch_of(
    device: Device, launch: Launch, values: Mapping[int, Buffer], numbers: Numbers
) -> DispatchArguments:
    """A launch over the buffers of its values, all of which are there."""
    more = device.upload(launch.more) if launch.more else None

    def buffer(bound: Bound) -> Buffer:
        if bound.value < 0:
            assert more is not None
            return more
        whole = values[bound.value]
        return device.queue.view(whole, bound.start, bound.nbytes) if bound.nbytes else whole

    params = launch.front.pack(*[numbers[each] for each in launch.scalars]) + launch.params
    buffers = [buffer(each) for each in launch.bound]
    return DispatchArguments(
        device.pipeline(launch.program, checked=launch.checked), buffers, params, launch.grid
    )


class _Trial:
    """A bundle with data to run it on; the default's results are what others are compared with."""

    def __init__(self, device: Device, graph: Snapshot, groups: Sequence[Group], numbers: Numbers) -> None:
        self._device = device
        self._graph = graph
        self._groups = tuple(groups)
        self._numbers = numbers
        self._outputs = [each for group in groups for each in group.outputs]
        self._expected: list[Array] = []
        reads = dict.fromkeys(each for group in groups for each in group.reads)
        self._values = {each: device.upload(_data(graph.sigs[each], 1)) for each in reads}
        self._values |= {each: device.allocate(graph.sigs[each].nbytes) for each in self._outputs}

    def launches(self, choice: Choice) -> list[DispatchArguments]:
        """What a choice runs, compiled."""
        device = self._device
        made = compile_bundle(
            self._graph, self._groups, device.profile, check=device.settings.checks, choice=choice
        )
        launches = [self._launch(each) for each in made]
        for each in launches:
            device.queue.compile(each.pipeline)
        return launches

    def _launch(self, launch: Launch) -> DispatchArguments:
        for bound in launch.bound:
            if bound.value >= 0 and bound.value not in self._values:  # between two launches of one choice
                nbytes = self._graph.sigs[bound.value].nbytes
                self._values[bound.value] = self._device.allocate(nbytes)
        numbers = {each: self._numbers.get(each, 1) for each in launch.scalars}
        return dispatch_of(self._device, launch, self._values, numbers)

    def agrees(self, launches: Sequence[DispatchArguments], timer: Timer) -> bool:
        """Run it once: whether its results are the default's, which is the first that comes."""
        found = self._results(launches)
        if not self._expected:
            if not all(np.isfinite(each).all() for each in found if each.dtype.kind not in "biu"):
                self._reload()  # a logarithm, say, of what is negative: NaN would hide what is wrong
                found = self._results(launches)
            self._expected = found
        return all(map(_equal, found, self._expected))

    def _results(self, launches: Sequence[DispatchArguments]) -> list[Array]:
        device, sigs = self._device, self._graph.sigs
        for each in self._outputs:  # or a kernel that writes nothing would leave the last one's results
            device.queue.write(self._values[each], np.full(sigs[each].nbytes, _POISON, np.uint8))
        for launch in launches:
            device.dispatch(*launch)
        return [device.read(self._values[each]).view(sigs[each].dtype.numpy) for each in self._outputs]

    def _reload(self) -> None:
        for each in dict.fromkeys(each for group in self._groups for each in group.reads):
            self._device.queue.write(self._values[each], _data(self._graph.sigs[each], 0))


def _data(sig: Signature, signed: int) -> Array:
    """Random elements for a value: floats around 0 or above it, small whole numbers."""
    random = np.random.default_rng(sig.size)
    dtype = sig.dtype.numpy
    if sig.dtype.kind == "f":
        low = -1.0 if signed else 0.1
        pattern = random.uniform(low, 1.0, _PATTERN).astype(dtype)
    elif sig.dtype.kind == "u":  # perhaps packed weights: every byte is a small number
        pattern = random.integers(0, 8, _PATTERN * dtype.itemsize, np.uint8).view(dtype)
    else:
        pattern = random.integers(0, 8 if sig.dtype.kind == "i" else 2, _PATTERN).astype(dtype)
    return np.resize(pattern, sig.size)


def _equal(found: Array, expected: Array) -> bool:
    """Whether results are the same, within rounding for floats; NaN and infinities must be where they are."""
    tolerance = TOLERANCE.get(found.dtype.name)
    if np.array_equal(found.view(np.uint8), expected.view(np.uint8)):
        return True
    if tolerance is None:
        return False
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return False
    wide = np.float64 if found.dtype.itemsize == 8 else np.float32
    left: Array = found[finite].astype(wide)
    right: Array = expected[finite].astype(wide)
    largest = float(np.abs(right).max(initial=0))
    return bool(np.abs(np.subtract(left, right)).max(initial=0) <= tolerance * largest)
