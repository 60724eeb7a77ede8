"""Running a recording again: every distinct dispatch over fresh buffers, verified and timed, on any adapter.

In: a recording's path, a device. Out: a `ReplayReport`. A dispatch is run alone, with what its buffers held,
and what it writes is held against what it wrote. Its WGSL is treated as a user's own is: read, refused where
compilers would not survive it, and compiled with bounds checks; so no file can harm the process.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from fnmatch import fnmatchcase

from ...arrays import np
from ...errors import DeviceError, DeviceLostError, ModelFileError, WebgradError
from ...runtime.buffers import Buffer
from ...runtime.device import DeviceLike
from ...runtime.pipelines import Pipeline
from ...runtime.queue import Recorder
from ...runtime.stats import readable_bytes
from ...runtime.timer import Timer
from ...runtime.webgpu import Device
from ...wgsl import Program, program_from_source
from ..gpu_choice import gpu_for
from .comparison import Outcome, compare, element_type
from .file_format import Binding, Dispatch, Kernel
from .reader import RecordingReader
from .record import whole_number
from .report import Replayed, ReplayReport

__all__ = ["replay"]

PATIENCE = 2.0  # seconds for the timing of one dispatch
LONGEST = 60.0  # seconds for its first run: a damaged kernel may never end
_LABEL = 200  # characters: it stands for a file's name


def replay(
    path: str | os.PathLike[str],
    device: DeviceLike = None,
    *,
    repeat: int = 5,
    only: str = "*",
    verify: bool = True,
) -> ReplayReport:
    """Run each dispatch of a recording again: verify what it writes, time it, and list by total time.

    `device` is a GPU; without it the default, or the best adapter where that is the cpu. `repeat` is how
    often each is timed, `only` a pattern for kernels' names, such as "matmul*".

    >>> import tempfile
    >>> path = tempfile.gettempdir() + "/webgrad-replayed.zip"
    >>> with wg.record(path):
    ...     _ = wg.sum(wg.ones(8, device="webgpu")).item()
    >>> wg.replay(path).right
    True
    """
    repeat = whole_number("replay: repeat", repeat, 1)
    chosen = gpu_for(device, "a recording is of GPU kernels")
    with RecordingReader(path) as recording, Timer(chosen) as timer:
        player = _Player(chosen, recording, timer, repeat=repeat, verify=verify)
        rows = [player.play(each) for each in recording.dispatches if fnmatchcase(each.name, only)]
        return ReplayReport(
            path=str(recording.path),
            origins=recording.origins,
            device=chosen.name,
            adapter=f"{chosen.info.name}, {chosen.info.backend}",
            exact=timer.exact,
            left_out=len(recording.dispatches) - len(rows),
            rows=tuple(sorted(rows, key=lambda each: -each.total)),
        )


class _CannotRunError(Exception):
    """Why this device does not run a dispatch."""


class _EndlessError(DeviceError):
    """A dispatch that keeps the device busy."""


class _Player:
    """Runs the dispatches of one recording on one device."""

    def __init__(
        self, device: Device, recording: RecordingReader, timer: Timer, *, repeat: int, verify: bool
    ) -> None:
        self.device = device
        self.recording = recording
        self.timer = timer
        self.repeat = repeat
        self.verify = verify
        self._programs: dict[int, Program | str] = {}  # by kernel; or why there is none
        self._random = np.random.default_rng(0)

    def play(self, dispatch: Dispatch) -> Replayed:
        """Run one dispatch."""
        try:
            return self._run(dispatch, self._program(dispatch))
        except _CannotRunError as error:
            why = str(error)
        except (DeviceLostError, ModelFileError, _EndlessError):
            raise
        except WebgradError as error:  # no room, or a compiler or driver that refuses it
            why = str(error).partition("\n")[0]
        return Replayed(dispatch, why=why)

    def _program(self, dispatch: Dispatch) -> Program:
        found = self._programs.get(dispatch.kernel)
        if found is None:
            found = self._programs[dispatch.kernel] = _read(self.recording.kernels[dispatch.kernel])
        if isinstance(found, str):
            raise _CannotRunError(found)
        self._check(dispatch, found)
        return found

    def _check(self, dispatch: Dispatch, program: Program) -> None:
        """Refuse what the device lacks; what the driver would refuse is said in the user's words."""
        missing = (program.requires | set(dispatch.needs)) - self.device.features
        if missing:
            raise _CannotRunError(f"needs {', '.join(sorted(missing))}")
        limits = self.device.info.limits
        threads = program.workgroup_size[0] * program.workgroup_size[1] * program.workgroup_size[2]
        largest = max((each.nbytes for each in dispatch.bindings), default=0)
        for what, wanted, limit in (
            ("storage buffers", len(program.bindings), "max-storage-buffers-per-shader-stage"),
            ("bytes in a binding", largest, "max-storage-buffer-binding-size"),
            ("workgroups in a dimension", max(dispatch.grid), "max-compute-workgroups-per-dimension"),
            ("threads in a workgroup", threads, "max-compute-invocations-per-workgroup"),
        ):
            if wanted > limits[limit]:
                raise _CannotRunError(f"needs {wanted:,} {what}, {limits[limit]:,} here")
        room = sum(each.nbytes for each in dispatch.bindings)
        if room > self.device.budget:
            raise _CannotRunError(
                f"needs {readable_bytes(room)}, {readable_bytes(self.device.budget)} allowed"
            )

    def _run(self, dispatch: Dispatch, program: Program) -> Replayed:
        device = self.device
        bindings = self._bound(dispatch, program)
        pipeline = device.pipeline(program, checked=True)
        device.queue.compile(pipeline)
        params = dispatch.params if program.params_size else b""
        before = [self._before(each) for each in bindings]
        buffers = [device.upload(each) for each in before]
        outcome = None
        device.dispatch(pipeline, buffers, params, dispatch.grid)
        self._wait(dispatch)
        if self.verify and dispatch.kept:
            outcome = self._outcome(bindings, buffers)
        seconds = self._timed(pipeline, bindings, buffers, before, params, dispatch)
        return Replayed(dispatch, seconds=seconds, outcome=outcome)

    def _wait(self, dispatch: Dispatch) -> None:
        event = self.device.flush()
        if event is not None and not event.wait(LONGEST) and not event.lost:
            raise _EndlessError(
                f"{dispatch.name} has run for {LONGEST:g} seconds on {self.device.name} and is not done: its "
                "kernel may be damaged, and never end; --only leaves it out"
            )

    def _bound(self, dispatch: Dispatch, program: Program) -> list[Binding]:
        """The recorded buffers in the order of the program's bindings; it has none that it does not use."""
        named = {each.name: each for each in dispatch.bindings}
        found = [named.get(each.name) for each in program.bindings]
        kept = [each for each in found if each is not None]
        if len(kept) < len(found) or program.params_size not in (0, len(dispatch.params)):
            raise ModelFileError(
                f"{self.recording.path} is damaged: the buffers or parameters of {dispatch.name} are not "
                "those of its kernel"
            )
        return kept

    def _before(self, binding: Binding) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """What a buffer held; where that was not kept, numbers of the right type."""
        if binding.before:
            return np.frombuffer(self.recording.contents(binding.before, binding.nbytes), np.uint8)
        dtype = element_type(binding.dtype, binding.type)
        count = -(-binding.nbytes // dtype.itemsize)
        if dtype.kind in "iub":  # small, since they may be indices
            values = self._random.integers(0, 2, count).astype(dtype)
        else:
            values = self._random.random(count, np.float32).astype(dtype)
        return values.view(np.uint8)[: binding.nbytes]

    def _outcome(self, bindings: list[Binding], buffers: list[Buffer]) -> Outcome | None:
        """The worst of what the buffers that are written compare to; None where there is none."""
        found = []
        for binding, buffer in zip(bindings, buffers, strict=True):
            if binding.access == "read_write":
                computed = self.device.read(buffer).tobytes()
                expected = self.recording.contents(binding.after, binding.nbytes)
                found.append(compare(expected, computed, element_type(binding.dtype, binding.type)))
        return max(found, key=lambda each: (not each.right, not each.same, each.error), default=None)

    def _timed(
        self,
        pipeline: Pipeline,
        bindings: list[Binding],
        buffers: list[Buffer],
        before: list[np.ndarray[tuple[int, ...], np.dtype[np.uint8]]],
        params: bytes,
        dispatch: Dispatch,
    ) -> float:
        """The median; what is written is restored in between, since it may be updated in place."""
        record = _recording(pipeline, buffers, params, dispatch.grid)
        found: list[float] = []
        stop = time.monotonic() + PATIENCE
        while len(found) < self.repeat and (not found or time.monotonic() < stop):
            for binding, buffer, data in zip(bindings, buffers, before, strict=True):
                if binding.access == "read_write":
                    self.device.queue.write(buffer, data)
            found.append(self.timer.seconds(record))
        return statistics.median(found)


def _recording(
    pipeline: Pipeline, buffers: list[Buffer], params: bytes, grid: tuple[int, int, int]
) -> Callable[[Recorder], None]:
    return lambda recorder: recorder.dispatch(pipeline, buffers, params, grid)


def _read(kernel: Kernel) -> Program | str:
    """The program of a kernel's text, or why it is refused."""
    try:
        return program_from_source(kernel.text, entry=kernel.entry, label=kernel.label[:_LABEL])
    except WebgradError as error:
        return f"its WGSL is refused: {str(error).partition(chr(10))[0]}"
