"""How long commands take on a device: GPU timestamps around passes, or the clock around a submission.

In: a function that records commands. Out: seconds. The commands go through the device's own queue, alone in
their submission, with all of its checks; nothing else is in the pass that is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .context import Context
from .queue import Recorder
from .webgpu import Device

if TYPE_CHECKING:
    from .timestamps import PassTimes, Timestamps


class Timer:
    """Times commands on a device, while it is open. `close` it, or use it in a `with` statement."""

    def __init__(self, device: Device) -> None:
        self._queue = device.queue
        self._context = device.queue.context
        self._stamps: Timestamps | None = None
        if "timestamps" in device.features:
            self._stamps = _timestamps().Timestamps(self._context)

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the queries go."""
        if self._stamps is not None:
            self._stamps.close()
            self._stamps = None

    @property
    def exact(self) -> bool:
        """Whether the GPU itself tells the time."""
        return self._stamps is not None

    @property
    def period(self) -> float:
        """The seconds between two ticks of the GPU's clock; 0 where it tells no time."""
        return 0.0 if self._stamps is None else self._stamps.period

    def seconds(self, record: Callable[[Recorder], None]) -> float:
        """How long the GPU takes for what `record` records; other threads wait meanwhile."""
        found, waited = self.both(record)
        # A clock that stands still or runs backwards, as some drivers' do, is no clock.
        return found if found is not None and 0 < found <= 2 * waited else waited

    def both(self, record: Callable[[Recorder], None]) -> tuple[float | None, float]:
        """The seconds of the GPU's clock, None where it tells none, and those of the host's."""
        queue, stamps = self._queue, self._stamps
        with queue.lock:
            queue.synchronize()  # what others have recorded is not ours to time
            began = time.perf_counter()
            with queue.hold() as recorder:
                record(recorder)
            if stamps is None or queue.context is not self._context:
                queue.synchronize()
                return None, time.perf_counter() - began
            with stamps:
                queue.synchronize()
            waited = time.perf_counter() - began
            return stamps.seconds(), waited


def pass_times(context: Context) -> PassTimes:
    """The times of every launch on an open device that has timestamps."""
    times: PassTimes = _timestamps().PassTimes(context)
    return times


def _timestamps() -> Any:
    from . import timestamps  # here: it loads wgpu-native, which browsers have not

    return timestamps
