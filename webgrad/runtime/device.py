"""Devices: an adapter opened, with its queue, its profile and its pipelines; opened once, at first use.

`open_device` gives the one Device of an adapter; a Device outlives the loss of the native device under it.
The invariant: in a forked child no call reaches the driver, and at exit none is left running.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..config import Settings
from ..config import settings as current_settings
from ..errors import DTypeError, ForkError, LaunchError
from ..wgsl import Program
from . import adapters
from .adapters import AdapterInfo
from .buffers import Buffer
from .checks import Limits
from .context import Context, Event
from .host import memory_bytes
from .native import NativeDevice
from .pipelines import Pipeline
from .profile import PORTABLE, DeviceProfile, ProfileKind
from .queue import Queue
from .stats import Counters, Stats
from .transfer import Bytes

__all__ = [
    "CpuDevice",
    "Device",
    "default_device",
    "open_device",
    "open_device_async",
    "reset_stats",
    "set_default_device",
    "stats",
    "synchronize",
]

_PROFILES: dict[str, ProfileKind] = {
    "software": "software",
    "integrated": "integrated",
    "other": "integrated",
}


class Device:
    """A GPU: virtual buffers, recorded commands, pipelines.

    `settings` and `features` narrow what the adapter offers; a Device made directly is its user's own, one
    from `open_device` is shared.
    """

    def __init__(self, info: AdapterInfo, settings: Settings | None = None) -> None:
        self.info = info
        self.name = info.device
        self.settings = settings or current_settings()
        self.features = info.features
        self.counters = Counters()
        self._pipelines: dict[tuple[Program, bool, tuple[tuple[int, Program], ...]], Pipeline] = {}
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
                max_binding=limits["max-storage-buffer-binding-size"] & ~3,
                min_offset=limits["min-storage-buffer-offset-alignment"],
            ),
            self.counters,
            self._open_context,
        )
        _opened.every.add(self)

    def _budget(self) -> int:
        memory = memory_bytes() or 8 << 30
        if self.settings.memory is not None:
            return self.settings.memory.of(memory)
        return min(memory // 2, 8 * self.info.limits["max-buffer-size"])

    def _open_context(self) -> Context:
        def open_native(when_done: Callable[[], None]) -> NativeDevice:
            return NativeDevice(
                adapters.raw_adapter(self.info.index),
                _feature_numbers(self.features),
                when_done,
                immediates="immediates" in self.features,
                quick=self.settings.encoder == "fast",
            )

        return Context(
            open_native,
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
        """The size of subgroups, 0 where kernels may differ: told by the adapter, or by Mesa's name."""
        if "subgroups" not in self.features:
            return 0
        smallest, largest = self.info.subgroup_sizes
        if smallest == largest:
            return smallest
        lanes = re.search(r"llvmpipe \(.*?(\d+) bits\)", self.info.name)  # its vectors hold 32-bit lanes
        return int(lanes[1]) // 32 if lanes else 0

    # Buffers

    def allocate(self, nbytes: int, label: str = "") -> Buffer:
        """A buffer of so many bytes, with no contents yet."""
        return self.queue.allocate(nbytes, label)

    def upload(self, data: Any, label: str = "", *, keep: bool = False) -> Buffer:
        """A buffer with a copy of host memory. `keep` holds on to that, in case the device is lost."""
        return self.queue.upload(data, label, keep=keep)

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
        if not isinstance(program, Program):
            raise LaunchError(
                f"a {type(program).__name__} is not a program: make one with webgrad.wgsl.program_from_source"
            )
        careful = self.settings.debug if checked is None else bool(checked) or self.settings.debug
        key = (program, careful, tuple(in_place))
        found = self._pipelines.get(key)
        if found is None:
            missing = program.requires - self.features
            if missing:
                raise DTypeError(
                    f"{program.label} needs {', '.join(sorted(missing))}, "
                    f"which {self.name} ({self.info.name}) lacks"
                )
            variants = tuple((index, self.pipeline(variant, checked=checked)) for index, variant in in_place)
            # Threads may come here together: the first one's pipeline is everyone's.
            found = self._pipelines.setdefault(key, Pipeline(program, checked=careful, in_place=variants))
        return found

    def dispatch(
        self,
        pipeline: Pipeline,
        buffers: Sequence[Buffer],
        params: bytes = b"",
        grid: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        """Record one dispatch."""
        self.queue.dispatch(pipeline, buffers, params, grid)

    def compute(
        self,
        pipeline: Pipeline,
        inputs: Sequence[Buffer],
        nbytes: int,
        params: bytes = b"",
        grid: tuple[int, int, int] = (1, 1, 1),
        label: str = "",
    ) -> Buffer:
        """Record one dispatch into a new buffer of `nbytes` bytes, which is the kernel's last binding."""
        return self.queue.compute(pipeline, inputs, nbytes, params, grid, label)

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
        readings = {
            "bytes_live": pool.bytes_live,
            "bytes_pooled": pool.bytes_free,
            "bytes_peak": pool.bytes_peak,
        }
        waiting = self.queue.waiting
        return Stats({**self.counters.as_dict(), **readings, "commands": self.counters.commands + waiting})

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
        self.profile = PORTABLE

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


class _Opened:
    """The process's devices: the shared ones, the default, and all that must be told of a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shared: dict[str, Device | CpuDevice] = {}
        self.default: Device | CpuDevice | None = None  # set by the program; None: by the settings
        self.chosen: tuple[Settings, str] | None = None  # by the settings, so that adapters are asked once
        self.every: weakref.WeakSet[Device] = weakref.WeakSet()


_opened = _Opened()


def open_device(spec: Device | CpuDevice | str | None = None) -> Device | CpuDevice:
    """The device for `spec`, opened once: cpu, webgpu, webgpu:N, part of a name, or None for the default."""
    if isinstance(spec, Device | CpuDevice):
        return spec
    if spec is None and _opened.default is not None:
        return _opened.default
    settings = current_settings()
    choice = _choice(spec, settings)
    with _opened.lock:
        device = _opened.shared.get(choice.device)
        if device is None:
            device = CpuDevice() if choice.device == "cpu" else Device(choice.adapter, settings)
            _opened.shared[choice.device] = device
        if spec is None:
            _opened.chosen = (settings, choice.device)
        return device


def _choice(spec: str | None, settings: Settings) -> adapters.Choice:
    """What is meant; drivers are asked only where one may be wanted, so the cpu works in a forked child."""
    if spec is None and _opened.chosen is not None and _opened.chosen[0] is settings:
        spec = _opened.chosen[1]
    wanted = settings.device if spec is None else spec
    cpu = isinstance(wanted, str) and wanted.strip().lower() == "cpu"
    return adapters.choose(spec, () if cpu else adapters.list_adapters(), settings)


async def open_device_async(spec: Device | CpuDevice | str | None = None) -> Device | CpuDevice:
    """The same without blocking the event loop: the driver takes most of a second to start."""
    return await asyncio.to_thread(open_device, spec)


def default_device() -> Device | CpuDevice:
    """The device that is used where none is named."""
    return open_device(None)


def set_default_device(device: Device | CpuDevice | str | None) -> None:
    """Use this device where none is named (cpu, webgpu:N, …); None goes back to the settings' choice."""
    _opened.default = None if device is None else open_device(device)


def stats(device: Device | CpuDevice | str | None = None) -> Stats:
    """What the device (None: the default) has done since it was opened or its counters were reset."""
    return open_device(device).stats()


def reset_stats(device: Device | CpuDevice | str | None = None) -> None:
    """Set the counters of the device (None: the default) to zero."""
    open_device(device).reset_stats()


def synchronize(device: Device | CpuDevice | str | None = None) -> None:
    """Submit what is recorded on the device (None: the default) and wait until it is done."""
    open_device(device).synchronize()


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
        f"this process ({os.getpid()}) was forked from one that uses the GPU, and no driver works in such a "
        "child. Start workers with multiprocessing.get_context('spawn'), or use the GPU in one process only."
    )


def _after_fork() -> None:
    _opened.lock = threading.Lock()
    for device in _opened.every:
        device.queue.renew_lock()  # whoever held it is not in this process
        device.queue.trouble = _refuse_fork
        device.queue.context.forsake(_refuse_fork)
    if _opened.every:
        _skip_exit_handlers()


def _skip_exit_handlers() -> None:
    """Let this process end, after all of Python's own handlers, without those of the drivers.

    Mesa's would join threads that exist in the parent only, and crash: test_device.py, the forked child.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):  # glibc has it: the last handler to be registered is the first to run
        library.on_exit(ctypes.cast(library._exit, ctypes.c_void_p), None)


def _at_exit() -> None:
    for device in list(_opened.every):
        device.queue.finish()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
