"""Devices: an adapter opened, with its queue, its profile and its pipelines; opened once, at first use.

`open_device` gives the one Device of an adapter; a Device outlives the loss of the native device under it. The
invariant: in a forked child no call reaches the driver, and at exit none is left running.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from ..config import Settings
from ..config import settings as current_settings
from ..errors import DTypeError, ForkError
from ..wgsl import Program, program_from_source
from . import adapters
from .adapters import AdapterInfo
from .buffers import Buffer
from .context import Context, Event
from .host import memory_bytes
from .native import NativeDevice
from .pipelines import Pipeline
from .profile import DeviceProfile, ProfileKind
from .queue import Limits, Queue
from .stats import Counters, Stats
from .transfer import Bytes, as_bytes

__all__ = ["CpuDevice", "Device", "open_device", "open_device_async"]

_PROFILES: dict[str, ProfileKind] = {"software": "software", "integrated": "integrated", "other": "integrated"}

_SUBGROUP_PROBE = """
@group(0) @binding(0) var<storage, read_write> size: array<u32>;
@compute @workgroup_size(64)
fn probe(@builtin(subgroup_size) lanes: u32, @builtin(local_invocation_index) index: u32) {
    if (index == 0u) { size[0] = lanes; }
}
"""


class Device:
    """A GPU: virtual buffers, recorded commands, pipelines.

    `settings` and `features` narrow what the adapter offers; a Device made directly is its user's own, one from
    `open_device` is shared.
    """

    def __init__(self, info: AdapterInfo, settings: Settings | None = None) -> None:
        self.info = info
        self.name = info.device
        self.settings = settings or current_settings()
        self.features = info.features
        self.counters = Counters()
        self._pipelines: dict[tuple[Program, bool], Pipeline] = {}
        limits = info.limits
        budget = self._budget()
        self.budget = budget
        self.queue = Queue(
            self.name,
            Limits(
                max_commands=self.settings.queue,
                max_pending_bytes=budget,
                max_workgroups=limits["max-compute-workgroups-per-dimension"],
                max_buffer=limits["max-buffer-size"] & ~0xFFFFF,
                min_offset=limits["min-storage-buffer-offset-alignment"],
            ),
            self.counters,
            self._open_context,
        )
        _opened.add(self)

    def _budget(self) -> int:
        memory = memory_bytes() or 8 << 30
        if self.settings.memory is not None:
            return self.settings.memory.of(memory)
        return min(memory // 2, 8 * self.info.limits["max-buffer-size"])

    def _open_context(self) -> Context:
        raw = adapters.raw_adapter(self.info.index)
        native = NativeDevice(
            raw, _feature_numbers(self.features), immediates="immediates" in self.features
        )
        return Context(
            native,
            self.features,
            self.counters,
            budget=self.budget,
            in_flight=self.settings.in_flight,
            encoder=self.settings.encoder,
            largest=lambda: self.queue.largest(),
        )

    def __repr__(self) -> str:
        return f"<Device {self.name}: {self.info.name}>"

    @functools.cached_property
    def profile(self) -> DeviceProfile:
        """What kernel choosers may know of this device."""
        limits = self.info.limits
        return DeviceProfile(
            kind=_PROFILES.get(self.info.type, "discrete"),
            features=self.features,
            subgroup_size=self._subgroup_size(),
            max_invocations=limits["max-compute-invocations-per-workgroup"],
            max_workgroup_storage=limits["max-compute-workgroup-storage-size"],
            max_workgroups=limits["max-compute-workgroups-per-dimension"],
            max_storage_buffers=limits["max-storage-buffers-per-shader-stage"],
            max_binding_bytes=limits["max-storage-buffer-binding-size"],
        )

    def _subgroup_size(self) -> int:
        """The size of subgroups where it is one for all kernels: told by the adapter, or measured in software."""
        smallest, largest = self.info.subgroup_sizes
        if "subgroups" not in self.features:
            return 0
        if smallest == largest or not self.info.software:
            return smallest if smallest == largest else 0
        size = self.allocate(4)
        self.dispatch(self.pipeline(program_from_source(_SUBGROUP_PROBE, label="subgroup size")), [size])
        return int(self.read(size).view("<u4")[0])

    # Buffers

    def allocate(self, nbytes: int, label: str = "") -> Buffer:
        """A buffer of so many bytes, with no contents yet."""
        return self.queue.allocate(nbytes, label)

    def upload(self, data: Any, label: str = "", *, keep: bool = False) -> Buffer:
        """A buffer with a copy of host memory. `keep` holds on to the host memory, in case the device is lost."""
        source = as_bytes(data)
        buffer = self.queue.allocate(source.nbytes, label)
        self.queue.write(buffer, source, keep=keep)
        return buffer

    def read(self, buffer: Buffer) -> Bytes:
        """A buffer's bytes, once all that was recorded has run."""
        return self.queue.read(buffer)

    async def read_async(self, buffer: Buffer) -> Bytes:
        """The same without blocking the event loop."""
        return await self.queue.read_async(buffer)

    # Commands

    def pipeline(
        self, program: Program, *, checked: bool | None = None, in_place: Sequence[tuple[int, Program]] = ()
    ) -> Pipeline:
        """The pipeline of a program. Bounds checks are left out for our own kernels, unless debugging."""
        careful = self.settings.debug if checked is None else checked or self.settings.debug
        found = self._pipelines.get((program, careful))
        if found is None:
            missing = program.requires - self.features
            if missing:
                raise DTypeError(
                    f"{program.label} needs {', '.join(sorted(missing))}, which {self.name} ({self.info.name}) lacks"
                )
            variants = tuple((index, self.pipeline(variant, checked=checked)) for index, variant in in_place)
            found = self._pipelines[program, careful] = Pipeline(program, checked=careful, in_place=variants)
        return found

    def dispatch(
        self, pipeline: Pipeline, buffers: Sequence[Buffer], params: bytes = b"", grid: tuple[int, int, int] = (1, 1, 1)
    ) -> None:
        """Record one dispatch."""
        self.queue.dispatch(pipeline, buffers, params, grid)

    def flush(self) -> Event | None:
        """Submit what is recorded, without waiting."""
        return self.queue.flush("eval")

    def synchronize(self) -> None:
        """Submit what is recorded and wait until the GPU has done it."""
        self.queue.synchronize()

    # Accounts

    def stats(self) -> Stats:
        """The counters, with the pool's bytes."""
        pool = self.queue.context.pool
        readings = {"bytes_live": pool.bytes_live, "bytes_pooled": pool.bytes_free, "bytes_peak": pool.bytes_peak}
        return Stats(self.counters.as_dict() | readings)

    def reset_stats(self) -> None:
        """Set the counters to zero, and the peak to what is in use now."""
        self.counters.reset()
        pool = self.queue.context.pool
        pool.bytes_peak = pool.bytes_live


class CpuDevice:
    """The host itself, by NumPy: always there, and the reference for the others."""

    def __init__(self) -> None:
        self.info = adapters.cpu_device()
        self.name = "cpu"
        self.counters = Counters()

    def __repr__(self) -> str:
        return f"<CpuDevice {self.info.name}>"

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def stats(self) -> Stats:
        """The counters; the host's memory is not ours to count."""
        return Stats(self.counters.as_dict() | {"bytes_live": 0, "bytes_pooled": 0, "bytes_peak": 0})

    def reset_stats(self) -> None:
        """Set the counters to zero."""
        self.counters.reset()


_shared: dict[str, Device | CpuDevice] = {}
_shared_lock = threading.Lock()
_opened: weakref.WeakSet[Device] = weakref.WeakSet()


def open_device(spec: str | None = None) -> Device | CpuDevice:
    """The device for `spec` (cpu, webgpu, webgpu:N, part of an adapter's name; None: the default), opened once."""
    settings = current_settings()
    if spec == "cpu":  # no driver is asked where none is wanted
        found: tuple[AdapterInfo, ...] = ()
    else:
        found = adapters.list_adapters()
    choice = adapters.choose(spec, found, settings)
    with _shared_lock:
        device = _shared.get(choice.device)
        if device is None:
            device = CpuDevice() if choice.device == "cpu" else Device(choice.adapter, settings)
            _shared[choice.device] = device
        return device


async def open_device_async(spec: str | None = None) -> Device | CpuDevice:
    """The same without blocking the event loop: the driver takes most of a second to start."""
    return await asyncio.to_thread(open_device, spec)


def _feature_numbers(features: frozenset[str]) -> list[int]:
    from wgpu.backends.wgpu_native._mappings import enum_str2int, enummap

    numbers = []
    for feature in sorted(features):
        name = adapters.FEATURE_NAMES[feature]
        number = enummap.get(f"FeatureName.{name}")
        numbers.append(enum_str2int["NativeFeature"][name] if number is None else number)
    return numbers


def _refuse_fork() -> None:
    raise ForkError(
        f"this process ({os.getpid()}) was forked from one that uses the GPU, and no driver works in such a child. "
        "Start workers with multiprocessing.get_context('spawn'), or use the GPU in one process only."
    )


def _after_fork() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for device in _opened:
        device.queue.renew_lock()  # whoever held it is not in this process
        device.queue.trouble = _refuse_fork


def _at_exit() -> None:
    for device in list(_opened):
        device.queue.finish()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
