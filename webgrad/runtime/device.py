"""Devices: the cpu, and the process's register of those that are opened, each once, at first use.

`open_device` gives the one device of a name. A GPU's `Device` is in webgpu.py, which is imported when one is
wanted: the native library takes a third of a second to load. The invariant: in a forked child no call reaches
the driver, and at exit none is left running.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..arrays import has_numpy, missing
from ..config import Settings
from ..config import settings as current_settings
from ..device_profile import PORTABLE
from ..errors import DeviceError, ForkError
from ..observing import opened
from . import adapters
from .adapters import AdapterInfo
from .stats import Counters, Stats, host_memory

if TYPE_CHECKING:
    from .webgpu import Device


class AnyDevice:
    """What GPUs and the cpu have in common."""

    name: str
    info: AdapterInfo
    is_gpu = False

    @property
    def type(self) -> str:
        """What kind of device it is: "cpu" or "webgpu"."""
        return self.name.partition(":")[0]

    @property
    def index(self) -> int | None:
        """The number behind the kind; None for the cpu."""
        number = self.name.partition(":")[2]
        return int(number) if number.isdigit() else None

    def __str__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: Any) -> AnyDevice:
        """Itself: a copied model or optimiser stays where it is."""
        return self

    def __copy__(self) -> AnyDevice:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return open_device, (self.name,)

    def __eq__(self, other: object) -> bool:
        """A device is itself alone, and equals its name, by which it is listed."""
        return self is other or (isinstance(other, str) and other == self.name)

    __hash__ = object.__hash__  # of itself, and quick: devices are part of every node's key


# how a device is named: itself, "cpu", "webgpu:0", part of a name; None: default
DeviceLike = AnyDevice | str | None


class CpuDevice(AnyDevice):
    """The host itself, by NumPy: always there, and the reference for the others.

    >>> wg.open_device("cpu").name
    'cpu'
    """

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
        """The counters, with the bytes of large arrays; `wg.memory()` counts small ones too."""
        return Stats(self.counters.as_dict() | host_memory.as_dict())

    def reset_stats(self) -> None:
        """Set the counters to zero, and the peak to what is in use now."""
        self.counters.reset()
        host_memory.peak = host_memory.live


class _Opened:
    """The process's devices: the shared ones, the default, and all that must be told of a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shared: dict[str, Device | CpuDevice] = {}
        self.default: Device | CpuDevice | None = None  # set by the program; None: by the settings
        self.chosen: tuple[Settings, str] | None = None  # by the settings, so that adapters are asked once
        self.distrusted: set[str] = set()  # those whose trial went wrong: never the default
        self._every: list[weakref.ref[Device]] = []

    def add(self, device: Device) -> None:
        """Note a GPU, and forget those that are gone: here, not in a finalizer, which signals may strike."""
        self._every = [*(each for each in self._every if each() is not None), weakref.ref(device)]

    @property
    def every(self) -> list[Device]:
        """Every GPU that is open."""
        return [device for each in self._every if (device := each()) is not None]


class _Instead(threading.local):
    """What this thread has in place of every device, while it traces a function for it."""

    device: Device | None = None


_opened = _Opened()
_instead = _Instead()


def register(device: Device) -> None:
    """Have a GPU told of forks and of the end of the process."""
    _opened.add(device)


def open_device(spec: DeviceLike = None) -> Device | CpuDevice:
    """The device for `spec`, opened once: cpu, webgpu, webgpu:N, part of a name, or None for the default.

    >>> wg.open_device("cpu") == "cpu"
    True
    """
    if _instead.device is not None:
        return _instead.device
    if isinstance(spec, AnyDevice):
        return spec  # type: ignore[return-value]
    if spec is None and _opened.default is not None:
        return _opened.default
    settings = current_settings()
    if spec is None and _opened.chosen is not None and _opened.chosen[0] is settings:
        return _opened.shared[_opened.chosen[1]]
    device = None
    while device is None:
        choice = _choice(spec, settings)
        with _opened.lock:
            device = _opened.shared.get(choice.device) or _opened_first(choice, settings, spec)
            if spec is None and device is not None:
                _opened.chosen = (settings, choice.device)
    return device


def _opened_first(choice: adapters.Choice, settings: Settings, spec: DeviceLike) -> Device | CpuDevice | None:
    """A device that was not open yet; None where it cannot be trusted, and another is to be chosen."""
    device = _cpu(choice.reason) if choice.device == "cpu" else _gpu(choice, settings)
    if not isinstance(device, CpuDevice) and (problem := device.learn()):
        text = (
            f"{choice.device} ({choice.adapter.name}) is not used: {problem}. Update its driver; "
            "`webgrad doctor` says more, and WEBGRAD_PROFILE has it used all the same."
        )
        if spec is not None or settings.device is not None:
            raise DeviceError(text)
        _opened.distrusted |= adapters.views_of(choice.adapter)
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return None
    _opened.shared[choice.device] = device
    return device


def _cpu(why: str) -> CpuDevice:
    if not has_numpy():
        raise missing("the cpu device")
    device = CpuDevice()
    opened(device, why)
    return device


def _gpu(choice: adapters.Choice, settings: Settings) -> Device:
    from .webgpu import Device  # here: whoever uses the cpu alone loads no queue

    return Device(choice.adapter, settings, choice.reason)


def _choice(spec: str | None, settings: Settings) -> adapters.Choice:
    """What is meant; drivers are asked only where one may be wanted, so the cpu works in a forked child."""
    wanted = settings.device if spec is None else spec
    cpu = isinstance(wanted, str) and wanted.strip().lower() == "cpu"
    there = () if cpu else adapters.list_adapters()
    if wanted is None:
        there = tuple(each for each in there if each.device not in _opened.distrusted)
    return adapters.choose(spec, there, settings)


def opened_devices() -> list[Device | CpuDevice]:
    """The devices that are open: the shared ones, and those that programs made themselves."""
    shared = list(_opened.shared.values())
    return [*shared, *(each for each in _opened.every if each not in shared)]


def opened_gpus() -> list[Device]:
    """Those of them that are GPUs."""
    return [each for each in opened_devices() if not isinstance(each, CpuDevice)]


def flushes_ended() -> None:
    """Wait for the flushes that other threads are in the middle of: whoever watched them sees their end."""
    for each in opened_gpus():
        with each.queue.lock:
            pass


async def open_device_async(spec: DeviceLike = None) -> Device | CpuDevice:
    """The same without blocking the event loop: the driver takes most of a second to start.

    >>> import asyncio
    >>> asyncio.run(wg.open_device_async("cpu")).name
    'cpu'
    """
    if sys.platform == "emscripten":
        await adapters.browser().open_adapter()
        return open_device(spec)
    import asyncio

    return await asyncio.to_thread(open_device, spec)


def default_device() -> Device | CpuDevice:
    """The device that is used where none is named.

    >>> wg.set_default_device("cpu")
    >>> wg.default_device().name
    'cpu'
    """
    return open_device(None)


def set_default_device(device: DeviceLike) -> None:
    """Use this device where none is named (cpu, webgpu:N, …); None goes back to the settings' choice.

    >>> wg.set_default_device("cpu")
    >>> wg.ones(3).device == "cpu"
    True
    """
    _opened.default = None if device is None else open_device(device)


@contextmanager
def default_while(device: Device | CpuDevice) -> Iterator[None]:
    """Use a device where none is named, until the block ends."""
    before, _opened.default = _opened.default, device
    try:
        yield
    finally:
        _opened.default = before


@contextmanager
def instead_while(device: Device | None) -> Iterator[None]:
    """Use a device wherever this thread names any, until the block ends; None: the one that it names."""
    before, _instead.device = _instead.device, device
    try:
        yield
    finally:
        _instead.device = before


def stats(device: DeviceLike = None) -> Stats:
    """What the device (None: the default) has done since it was opened or its counters were reset.

    >>> wg.reset_stats("cpu")
    >>> wg.linalg.det(wg.eye(2, device="cpu")).item()
    1.0
    >>> wg.stats("cpu")["host_round_trips"]
    1
    """
    return open_device(device).stats()


def reset_stats(device: DeviceLike = None) -> None:
    """Set the counters of the device (None: the default) to zero.

    >>> wg.reset_stats("cpu")
    >>> wg.stats("cpu")["host_round_trips"]
    0
    """
    open_device(device).reset_stats()


def synchronize(device: DeviceLike = None) -> None:
    """Submit what is recorded on the device (None: the default) and wait until it is done.

    >>> y = wg.eval(wg.ones(3, device="cpu") * 2)
    >>> wg.synchronize("cpu")
    """
    open_device(device).synchronize()


def _refuse_fork() -> None:
    raise ForkError(
        f"this process ({os.getpid()}) was forked from one that uses the GPU, and no driver works in such a "
        "child. Start workers with multiprocessing.get_context('spawn'), or use the GPU in one process only."
    )


def _after_fork() -> None:
    _opened.lock = threading.Lock()
    if _opened.chosen is not None and _opened.chosen[1] != "cpu":
        _opened.chosen = None  # so that adapters are asked again, which refuses here
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
    for device in _opened.every:
        device.queue.finish()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
