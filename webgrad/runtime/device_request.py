"""Opening a device of wgpu-native, and what the driver tells by callbacks meanwhile.

In: an adapter of wgpu-py, and the features that are wanted. Out: the handle of an open device, or an error
with the driver's own words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from wgpu.backends.wgpu_native import ffi, lib
from wgpu.backends.wgpu_native._mappings import enum_str2int, enummap

from ..errors import DeviceError
from .adapters import FEATURE_NAMES
from .layer import Handle


def text_of(view: Any) -> str:
    """What the driver says."""
    if not view.data or view.length > 1 << 24:
        return ""
    return str(ffi.unpack(view.data, view.length).decode("utf-8", "replace"))


def callback(signature: str) -> Callable[[Callable[..., None]], Any]:
    """ffi.callback with a type."""
    decorate: Callable[[Callable[..., None]], Any] = ffi.callback(signature)
    return decorate


@callback("void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)")
def _on_uncaptured(device: Any, kind: int, message: Any, ticket: Any, _2: Any) -> None:
    logging.getLogger("webgrad").error("the GPU driver reported: %s", text_of(message))


@callback("void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)")
def _on_device(status: int, device: Any, message: Any, ticket: Any, _2: Any) -> None:
    ffi.from_handle(ticket).append((status, device, text_of(message)))


def request_device(adapter: Any, features: Sequence[int], on_lost: Handle) -> Handle:
    """A device of an adapter, with all that the adapter allows; `on_lost` is called when it is gone."""
    limits = ffi.new("WGPULimits *")
    lib.wgpuAdapterGetLimits(adapter._internal, limits)
    limits.nextInChain = ffi.NULL
    required = ffi.new("WGPUFeatureName[]", list(features))
    descriptor = ffi.new("WGPUDeviceDescriptor *")
    descriptor.requiredFeatureCount = len(features)
    descriptor.requiredFeatures = required
    descriptor.requiredLimits = limits
    descriptor.deviceLostCallbackInfo.mode = lib.WGPUCallbackMode_AllowSpontaneous
    descriptor.deviceLostCallbackInfo.callback = ffi.cast("WGPUDeviceLostCallback", on_lost)
    descriptor.uncapturedErrorCallbackInfo.callback = _on_uncaptured
    answers: list[tuple[int, Handle, str]] = []
    ticket = ffi.new_handle(answers)
    info = ffi.new("WGPURequestDeviceCallbackInfo *")
    info.mode = lib.WGPUCallbackMode_AllowSpontaneous
    info.callback = _on_device
    info.userdata1 = ticket
    lib.wgpuAdapterRequestDevice(adapter._internal, descriptor, info[0])
    if not answers or answers[0][0] != 1:
        reason = answers[0][2].strip() if answers else "the driver gave no answer"
        raise DeviceError(f"the adapter refused to open a device: {reason}")
    return answers[0][1]


def feature_numbers(features: frozenset[str]) -> list[int]:
    """wgpu-native's numbers of features."""
    numbers = []
    for feature in sorted(features):
        name = FEATURE_NAMES[feature]
        number = enummap.get(f"FeatureName.{name}")
        numbers.append(enum_str2int["NativeFeature"][name] if number is None else number)
    return numbers
