"""Which GPU a tool works on: the one that is named, the default device, or the best adapter.

In: how a user names a device, or None. Out: an open GPU; what is none is a DeviceError that says so. Tools
that need a GPU take a software adapter rather than none, since they are asked for by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DeviceError
from ..runtime.device import CpuDevice, DeviceLike, default_device, open_device

if TYPE_CHECKING:
    from ..runtime.webgpu import Device

__all__ = ["gpu_for"]


def gpu_for(device: DeviceLike, what: str) -> Device:
    """The GPU that is meant; `what` begins the error where it is none, as in "kernels run on GPUs only"."""
    chosen = default_device() if device is None else open_device(device)
    if device is None and isinstance(chosen, CpuDevice):
        chosen = open_device("webgpu")
    if isinstance(chosen, CpuDevice):
        raise DeviceError(
            f"{what}, and the device is the cpu: name an adapter, such as webgpu:0, a software one included; "
            "`webgrad info` lists them"
        )
    return chosen
