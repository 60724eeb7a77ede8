"""webgrad: tensors and machine learning on every GPU, in browsers, and on the CPU.

Importing it is light and touches no GPU: every name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from .errors import *  # noqa: F403  (the error tree is public as it stands)

if TYPE_CHECKING:
    from .batch import Batch as Batch
    from .batch import BatchArray as BatchArray
    from .custom import Kernel as Kernel
    from .custom import kernel as kernel
    from .runtime.adapters import devices as devices
    from .runtime.buffers import Buffer as Buffer
    from .runtime.context import Event as Event
    from .runtime.device import CpuDevice as CpuDevice
    from .runtime.device import Device as Device
    from .runtime.device import default_device as default_device
    from .runtime.device import open_device as open_device
    from .runtime.device import open_device_async as open_device_async
    from .runtime.device import reset_stats as reset_stats
    from .runtime.device import set_default_device as set_default_device
    from .runtime.device import stats as stats
    from .runtime.device import synchronize as synchronize

# public name → the module that has it
_HOMES = {
    "Batch": "batch",
    "BatchArray": "batch",
    "Buffer": "runtime.buffers",
    "CpuDevice": "runtime.device",
    "Device": "runtime.device",
    "Event": "runtime.context",
    "Kernel": "custom",
    "default_device": "runtime.device",
    "devices": "runtime.adapters",
    "kernel": "custom",
    "open_device": "runtime.device",
    "open_device_async": "runtime.device",
    "reset_stats": "runtime.device",
    "set_default_device": "runtime.device",
    "stats": "runtime.device",
    "synchronize": "runtime.device",
}

__version__ = "0.1.0"
__all__ = [*errors.__all__, *_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'webgrad' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"webgrad.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
