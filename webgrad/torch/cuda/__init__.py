"""torch.cuda: what programs ask of the GPU. It is available where webgrad's default device is a real GPU.

In: nothing, or a device. Out: answers. There is one stream: commands are recorded in order.
"""

from __future__ import annotations

import time
from typing import Any

import webgrad as wg

from .. import random as _random
from ..devices import device as Device
from ..devices import has_gpu, place
from ..typed import types_of as _types_of
from . import amp

__all__ = [
    "Event",
    "Stream",
    "amp",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]

globals().update(_types_of(on_gpu=True))


def is_available() -> bool:
    """Whether the default device is a GPU."""
    return has_gpu()


is_initialized = is_available


def device_count() -> int:
    """How many GPUs there are that are no software."""
    return sum(each.type not in ("cpu", "software") for each in wg.devices()) if has_gpu() else 0


def current_device() -> int:
    """The index of the default GPU."""
    return max(0, wg.default_device().info.index)


def set_device(device: Any) -> None:
    """Make a GPU the default device."""
    wg.set_default_device(place(device))


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return str(wg.open_device(place("cuda" if device is None else device)).info.name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """No compute capability of CUDA's: (0, 0)."""
    return (0, 0)


class get_device_properties:
    """The name and memory of a GPU."""

    def __init__(self, device: Any = None) -> None:
        self.name = get_device_name(device)
        self.total_memory = int(getattr(wg.default_device(), "budget", 0))
        self.major = self.minor = self.multi_processor_count = 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """bfloat16 is everywhere: it is computed in float32."""
    return True


def synchronize(device: Any = None) -> None:
    """Wait until everything is computed."""
    wg.synchronize()


def empty_cache() -> None:
    """Nothing to do: free memory is given back when it is needed."""


ipc_collect = reset_peak_memory_stats = reset_max_memory_allocated = empty_cache


def memory_allocated(device: Any = None) -> int:
    """How many bytes are in use."""
    return int(wg.stats()["bytes_live"])


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def manual_seed(seed: int) -> None:
    """The same as torch.manual_seed: there is one sequence of random numbers."""
    _random.seeded(seed)


manual_seed_all = manual_seed


class Stream:
    """Commands run in the order in which they are given: a stream is nothing but a context."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = args[0] if args else None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to do."""

    def synchronize(self) -> None:
        """Wait until everything is computed."""
        wg.synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    wait_event = wait_stream

    def record_event(self, event: Any = None) -> Any:
        """An event at this place."""
        found = event or Event()
        found.record()
        return found


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    return Stream(device)


default_stream = current_stream


def stream(stream: Any) -> Any:
    """A context in which commands go to the one stream."""
    return stream if stream is not None else Stream()


class Event:
    """A moment: recording it waits for what was computed before, so that times are those of the work."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.moment = 0.0

    def record(self, stream: Any = None) -> None:
        """Note the time when everything before is done."""
        wg.synchronize()
        self.moment = time.perf_counter()

    def synchronize(self) -> None:
        """It is done when it is recorded."""

    def query(self) -> bool:
        """Whether it is done."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events."""
        return (end_event.moment - self.moment) * 1e3


class device(Device):
    """A GPU as the default device, in a context."""
