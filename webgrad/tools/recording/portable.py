"""A GPU that is used as if it had no more than WebGPU promises: its kernels run on every other adapter.

In: an open device. Out: another one on the same adapter, with the limits that every adapter has and without
optional features; what kernels may be is chosen by those.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import DeviceError
from ...runtime.adapters import PROMISED
from ...runtime.device import CpuDevice
from ...runtime.webgpu import Device

__all__ = ["portable_device"]

_HARMLESS = frozenset({"immediates", "timestamps"})  # they change no kernel


def portable_device(device: Device | CpuDevice) -> Device:
    """The same adapter with fewer abilities."""
    if not isinstance(device, Device):
        raise DeviceError(
            "a portable recording needs a GPU as the default device, and that is the cpu: choose an adapter "
            "with wg.set_default_device('webgpu:0'), --device or WEBGRAD_DEVICE"
        )
    info = device.info
    limits = dict(info.limits) | {
        name: min(most, info.limits.get(name, most)) for name, most in PROMISED.items()
    }
    return Device(replace(info, features=info.features & _HARMLESS, limits=limits), device.settings)
