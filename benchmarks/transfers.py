"""Reading 256 bytes back against the raw map-and-poll floor; 64 MB up and down against wgpu's plain calls.

All in one run, medians, alternating. An upload is timed until the GPU has it, a download until it is a NumPy
array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from common import gpu, median_seconds, report
from wgpu import BufferUsage
from wgpu.backends.wgpu_native import ffi, lib

from webgrad.runtime import adapters
from webgrad.runtime.layer import READBACK, STORAGE
from webgrad.runtime.webgpu import Device

SMALL, LARGE = 256, 64 << 20


def raw_read(device: Device) -> Callable[[], bytes]:
    """Copy, submit, map, poll, copy out: nothing but the C calls."""
    native = device.queue.context.native
    source, target = native.create_buffer(SMALL, STORAGE), native.create_buffer(SMALL, READBACK)
    mapped: list[int] = []
    kept: list[object] = []  # cffi's callbacks live no longer than their Python objects

    @ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")
    def on_map(status: int, message: object, _1: object, _2: object) -> None:
        mapped.append(status)

    info = ffi.new("WGPUBufferMapCallbackInfo *")
    info.mode = lib.WGPUCallbackMode_AllowSpontaneous
    info.callback = on_map

    kept.append(on_map)

    def run(_: list[object] = kept) -> bytes:
        encoder = lib.wgpuDeviceCreateCommandEncoder(native.device, ffi.NULL)
        lib.wgpuCommandEncoderCopyBufferToBuffer(encoder, source, 0, target, 0, SMALL)
        commands = lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        lib.wgpuQueueSubmit(native.queue, 1, ffi.new("WGPUCommandBuffer[1]", [commands]))
        lib.wgpuCommandBufferRelease(commands)
        lib.wgpuCommandEncoderRelease(encoder)
        mapped.clear()
        lib.wgpuBufferMapAsync(target, 1, 0, SMALL, info[0])
        while not mapped:
            lib.wgpuDevicePoll(native.device, True, ffi.NULL)
        data = bytes(ffi.buffer(lib.wgpuBufferGetConstMappedRange(target, 0, SMALL), SMALL))
        lib.wgpuBufferUnmap(target)
        return data

    return run


def main() -> int:
    device = gpu()
    small = device.upload(np.arange(SMALL, dtype=np.uint8))
    floor = raw_read(device)
    for run in (floor, lambda: device.read(small)):
        for _ in range(20):
            run()
    rounds = [(median_seconds(floor, 101), median_seconds(lambda: device.read(small), 101)) for _ in range(5)]
    ratio = sorted(ours / raw for raw, ours in rounds)[2]
    raw_time = sorted(raw for raw, _ in rounds)[2]

    plain = adapters.raw_adapter(device.info.index).request_device_sync()
    usage = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST
    theirs = plain.create_buffer(size=LARGE, usage=usage)
    data = np.random.default_rng(0).integers(0, 256, LARGE, np.uint8)
    ours = device.upload(data)

    def plain_upload() -> None:
        plain.queue.write_buffer(theirs, 0, data)
        plain.queue.submit([])
        lib.wgpuDevicePoll(plain._internal, True, ffi.NULL)

    def our_upload() -> None:
        device.queue.write(ours, data)
        device.queue.context.submit(None)
        device.queue.context.native.wait()

    def plain_download() -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        return np.frombuffer(plain.queue.read_buffer(theirs), np.uint8)

    def our_download() -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        return device.read(ours)

    figures = {}
    for name, mine, other in (
        ("upload", our_upload, plain_upload),
        ("download", our_download, plain_download),
    ):
        mine(), other()
        pairs = [(median_seconds(mine, 3), median_seconds(other, 3)) for _ in range(5)]
        figures[name] = sorted(other / own for own, other in pairs)[2], sorted(own for own, _ in pairs)[2]
    assert np.array_equal(our_download(), data)
    assert np.array_equal(plain_download(), data)
    good = [
        report(
            "read-back of 256 bytes, × the raw floor",
            f"{ratio:.2f} ×",
            f"≤ 2 × ({raw_time * 1e6:.0f} µs)",
            ratio <= 2,
        )
    ]
    for name, (speed, seconds) in figures.items():
        value = f"{speed:.0%} ({LARGE / seconds / 1e9:.1f} GB/s)"
        good.append(report(f"{name} of 64 MB, speed of the plain call", value, "≥ 70 %", speed >= 0.7))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
