"""The thin device layer: make a buffer, write, make a pipeline, run a command list, read. Nothing above it calls wgpu.

Takes plain values and handles, gives handles (cffi pointers into wgpu-native). Every call that may fail runs in
error scopes and raises; the invariant is that nothing reaches a submit that could abort the process: wgpu-native
panics on a submit to a lost device, with an invalid command buffer or with a mapped buffer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from wgpu.backends.wgpu_native import ffi, lib

from ..errors import CompileError, DeviceError, DeviceLostError, OutOfMemoryError

__all__ = ["MAX_PARAMS", "PARAMS_STRIDE", "Handle", "NativeDevice", "native_object_counts"]

Handle = Any  # a cffi pointer; wgpu's bindings carry no types

MAX_PARAMS = 128  # bytes of parameters a kernel may take: what every immediates-capable native device has
PARAMS_STRIDE = 256  # the dynamic-offset alignment every WebGPU device accepts

STORAGE = 0x80 | 0x04 | 0x08  # Storage | CopySrc | CopyDst
UNIFORM = 0x40 | 0x08
READBACK = 0x01 | 0x08  # MapRead | CopyDst

_VALIDATION, _OUT_OF_MEMORY = 1, 2  # error filters; the third, Internal, aborts in wgpu-native 29
_NO_ERROR = 1
_COMPUTE = 0x4
_BINDING_TYPES = {"uniform": 2, "read_write": 3, "read": 4}  # WGPUBufferBindingType

_scope = threading.local()


def _text(view: Any) -> str:
    if not view.data or view.length > 1 << 24:
        return ""
    return str(ffi.unpack(view.data, view.length).decode("utf-8", "replace"))


@ffi.callback("void(WGPUPopErrorScopeStatus, WGPUErrorType, WGPUStringView, void *, void *)")
def _on_scope(status: int, kind: int, message: Any, _1: Any, _2: Any) -> None:
    _scope.error = None if kind == _NO_ERROR else (kind, _text(message))


@ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)")
def _on_map(status: int, message: Any, ticket: Any, _2: Any) -> None:
    ffi.from_handle(ticket)(status, _text(message))


@ffi.callback("void(WGPUQueueWorkDoneStatus, WGPUStringView, void *, void *)")
def _on_work_done(status: int, message: Any, ticket: Any, _2: Any) -> None:
    ffi.from_handle(ticket)()


@ffi.callback("void(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)")
def _on_lost(device: Any, reason: int, message: Any, ticket: Any, _2: Any) -> None:
    ffi.from_handle(ticket).lost = True


@ffi.callback("void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)")
def _on_uncaptured(device: Any, kind: int, message: Any, ticket: Any, _2: Any) -> None:
    ffi.from_handle(ticket).stray_errors.append(_text(message))


@ffi.callback("void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)")
def _on_device(status: int, device: Any, message: Any, ticket: Any, _2: Any) -> None:
    ffi.from_handle(ticket).append((status, device, _text(message)))


class _State:
    """What the driver's own callbacks may touch: no reference to the device, so that it can be dropped."""

    def __init__(self) -> None:
        self.lost = False
        self.stray_errors: list[str] = []


def _view(text: bytes) -> Any:
    view = ffi.new("WGPUStringView *")
    data = ffi.from_buffer(text)
    view.data = data
    view.length = len(text)
    return view, data


def _open(adapter: Any, features: Sequence[int], state_handle: Any) -> Handle:
    limits = ffi.new("WGPULimits *")
    lib.wgpuAdapterGetLimits(adapter._internal, limits)
    limits.nextInChain = ffi.NULL
    required = ffi.new("WGPUFeatureName[]", list(features))
    descriptor = ffi.new("WGPUDeviceDescriptor *")
    descriptor.requiredFeatureCount = len(features)
    descriptor.requiredFeatures = required
    descriptor.requiredLimits = limits
    descriptor.deviceLostCallbackInfo.mode = lib.WGPUCallbackMode_AllowSpontaneous
    descriptor.deviceLostCallbackInfo.callback = _on_lost
    descriptor.deviceLostCallbackInfo.userdata1 = state_handle
    descriptor.uncapturedErrorCallbackInfo.callback = _on_uncaptured
    descriptor.uncapturedErrorCallbackInfo.userdata1 = state_handle
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


_keep_alive: list[Any] = []  # callback states outlive their device: the driver may call back while it is dropped


class NativeDevice:
    """One open wgpu device and its queue.

    `adapter` is the wgpu-py adapter, `features` the native feature numbers to ask for.
    """

    def __init__(self, adapter: Any, features: Sequence[int], *, immediates: bool) -> None:
        self.immediates = immediates
        self._state = _State()
        state_handle = ffi.new_handle(self._state)
        _keep_alive.append((self._state, state_handle))
        self.device = _open(adapter, features, state_handle)
        self.queue = lib.wgpuDeviceGetQueue(self.device)
        self._pop_info = ffi.new("WGPUPopErrorScopeCallbackInfo *")
        self._pop_info.mode = lib.WGPUCallbackMode_AllowSpontaneous
        self._pop_info.callback = _on_scope
        self._entries = ffi.new("WGPUBindGroupEntry[]", 64)
        self._group_descriptor = ffi.new("WGPUBindGroupDescriptor *")
        self._group_descriptor.entries = self._entries
        for index in range(64):
            self._entries[index].binding = index
        self._closed = False

    @property
    def lost(self) -> bool:
        """Whether the driver has said that the device is gone."""
        return self._state.lost

    # Error scopes: two filters, pushed and popped around whatever may fail. They belong to the calling thread.

    def push_scope(self) -> None:
        lib.wgpuDevicePushErrorScope(self.device, _OUT_OF_MEMORY)
        lib.wgpuDevicePushErrorScope(self.device, _VALIDATION)

    def pop_scope(self) -> tuple[int, str] | None:
        info = self._pop_info[0]
        lib.wgpuDevicePopErrorScope(self.device, info)
        error: tuple[int, str] | None = _scope.error
        lib.wgpuDevicePopErrorScope(self.device, info)
        return error or _scope.error

    def fail(self, error: tuple[int, str], doing: str) -> NoReturn:
        """Raise what the driver said as an error of ours."""
        kind, text = error
        reason = text.replace("Validation Error", "").replace("Caused by:", "").strip()
        if self.lost or "device is lost" in text.lower():
            self._state.lost = True
            raise DeviceLostError(f"the GPU device was lost while {doing}")
        if kind == 3 or "not enough memory" in text.lower() or "out of memory" in text.lower():
            raise OutOfMemoryError(f"the GPU has no memory left while {doing}: {reason}")
        raise DeviceError(f"the GPU refused {doing}: {reason}")

    def _guarded(self, doing: str, call: Callable[[], Handle], release: Callable[[Handle], None] | None) -> Handle:
        self.push_scope()
        try:
            handle = call()
        finally:
            error = self.pop_scope()
        if error:
            if release is not None and handle:
                release(handle)
            self.fail(error, doing)
        return handle

    # Objects

    def create_buffer(self, nbytes: int, usage: int = STORAGE) -> Handle:
        descriptor = ffi.new("WGPUBufferDescriptor *")
        descriptor.size = nbytes
        descriptor.usage = usage
        return self._guarded(
            f"making a buffer of {nbytes:,} bytes",
            lambda: lib.wgpuDeviceCreateBuffer(self.device, descriptor),
            lib.wgpuBufferRelease,
        )

    def release_buffer(self, handle: Handle) -> None:
        if not self._closed:
            lib.wgpuBufferRelease(handle)

    def create_group_layout(self, kinds: Sequence[str], *, dynamic: bool = False) -> Handle:
        entries = ffi.new("WGPUBindGroupLayoutEntry[]", max(len(kinds), 1))
        for index, kind in enumerate(kinds):
            entries[index].binding = index
            entries[index].visibility = _COMPUTE
            entries[index].buffer.type = _BINDING_TYPES[kind]
            entries[index].buffer.hasDynamicOffset = dynamic
        descriptor = ffi.new("WGPUBindGroupLayoutDescriptor *")
        descriptor.entryCount = len(kinds)
        descriptor.entries = entries
        return self._guarded(
            "making a bind group layout",
            lambda: lib.wgpuDeviceCreateBindGroupLayout(self.device, descriptor),
            lib.wgpuBindGroupLayoutRelease,
        )

    def create_pipeline_layout(self, groups: Sequence[Handle]) -> Handle:
        layouts = ffi.new("WGPUBindGroupLayout[]", list(groups))
        descriptor = ffi.new("WGPUPipelineLayoutDescriptor *")
        descriptor.bindGroupLayoutCount = len(groups)
        descriptor.bindGroupLayouts = layouts
        descriptor.immediateSize = MAX_PARAMS if self.immediates else 0
        return self._guarded(
            "making a pipeline layout",
            lambda: lib.wgpuDeviceCreatePipelineLayout(self.device, descriptor),
            lib.wgpuPipelineLayoutRelease,
        )

    def create_bind_group(self, layout: Handle, ranges: Iterable[tuple[Handle, int, int]]) -> Handle:
        """Bind (buffer, offset, bytes) ranges in order. The caller holds the device's lock, and an error scope."""
        entries = self._entries
        count = 0
        for buffer, offset, nbytes in ranges:
            entry = entries[count]
            entry.buffer = buffer
            entry.offset = offset
            entry.size = nbytes
            count += 1
        descriptor = self._group_descriptor
        descriptor.layout = layout
        descriptor.entryCount = count
        return lib.wgpuDeviceCreateBindGroup(self.device, descriptor)

    def release_bind_group(self, handle: Handle) -> None:
        if not self._closed:
            lib.wgpuBindGroupRelease(handle)

    def create_pipeline(self, text: str, entry: str, layout: Handle, *, checked: bool) -> Handle:
        """Compile WGSL text into a pipeline; CompileError carries the compiler's own words."""
        code, code_keep = _view(text.encode())
        name, name_keep = _view(entry.encode())
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
        source.code = code[0]
        module_descriptor = ffi.new("WGPUShaderModuleDescriptor *")
        module_descriptor.nextInChain = ffi.addressof(source, "chain")
        checks = 3 if checked else 0  # 1: bounds checks, 2: loop bounding
        self.push_scope()
        module = lib.wgpuDeviceCreateShaderModuleTrusted(self.device, module_descriptor, checks)
        error = self.pop_scope()
        pipeline = ffi.NULL
        if not error:
            descriptor = ffi.new("WGPUComputePipelineDescriptor *")
            descriptor.layout = layout
            descriptor.compute.module = module
            descriptor.compute.entryPoint = name[0]
            self.push_scope()
            pipeline = lib.wgpuDeviceCreateComputePipeline(self.device, descriptor)
            error = self.pop_scope()
        lib.wgpuShaderModuleRelease(module)
        del code_keep, name_keep
        if error:
            if pipeline:
                lib.wgpuComputePipelineRelease(pipeline)
            if not self.lost and "device is lost" not in error[1].lower():
                raise CompileError(error[1])
            self.fail(error, "compiling a shader")
        return pipeline

    def release_pipeline(self, handle: Handle) -> None:
        if not self._closed:
            lib.wgpuComputePipelineRelease(handle)

    # Work

    def write(self, buffer: Handle, offset: int, data: Any, nbytes: int) -> None:
        """Copy host memory into a buffer, before anything submitted later. `data` is a cffi pointer."""
        self._guarded(
            f"writing {nbytes:,} bytes",
            lambda: lib.wgpuQueueWriteBuffer(self.queue, buffer, offset, data, nbytes),
            None,
        )

    def begin(self) -> tuple[Handle, Handle]:
        """Open an encoder with one compute pass, inside error scopes that `finish` closes."""
        self.push_scope()
        encoder = lib.wgpuDeviceCreateCommandEncoder(self.device, ffi.NULL)
        return encoder, lib.wgpuCommandEncoderBeginComputePass(encoder, ffi.NULL)

    def finish(
        self, encoder: Handle, compute_pass: Handle, copies: Iterable[tuple[Handle, int, Handle, int]]
    ) -> Handle:
        """End the pass, append (source, offset, target, bytes) copies, and give the command buffer."""
        lib.wgpuComputePassEncoderEnd(compute_pass)
        for source, offset, target, nbytes in copies:
            lib.wgpuCommandEncoderCopyBufferToBuffer(encoder, source, offset, target, 0, nbytes)
        commands = lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        error = self.pop_scope()
        lib.wgpuComputePassEncoderRelease(compute_pass)
        lib.wgpuCommandEncoderRelease(encoder)
        if error:
            lib.wgpuCommandBufferRelease(commands)
            self.fail(error, "recording commands")
        return commands

    def abandon(self, encoder: Handle, compute_pass: Handle) -> None:
        """Give up an open encoder after an error of our own."""
        lib.wgpuComputePassEncoderRelease(compute_pass)
        lib.wgpuCommandEncoderRelease(encoder)
        self.pop_scope()

    def submit(self, commands: Handle | None) -> int:
        """Submit one finished command buffer (None: only pending writes); gives the submission's index."""
        if self.lost:  # a submit to a lost device panics in wgpu-native, past any error scope
            if commands is not None:
                lib.wgpuCommandBufferRelease(commands)
            raise DeviceLostError("the GPU device was lost before a submit")
        if commands is None:
            return int(lib.wgpuQueueSubmitForIndex(self.queue, 0, ffi.NULL))
        index = int(lib.wgpuQueueSubmitForIndex(self.queue, 1, ffi.new("WGPUCommandBuffer[1]", [commands])))
        lib.wgpuCommandBufferRelease(commands)
        return index

    def when_done(self, ticket: Any) -> None:
        """Call the function behind `ticket` (an `ffi.new_handle`) once all that was submitted so far is done."""
        info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        info.mode = lib.WGPUCallbackMode_AllowSpontaneous
        info.callback = _on_work_done
        info.userdata1 = ticket
        lib.wgpuQueueOnSubmittedWorkDone(self.queue, info[0])

    def map_read(self, buffer: Handle, nbytes: int, ticket: Any) -> None:
        """Ask for a read-back buffer's contents; the function behind `ticket` gets (status, message) on a poll."""
        info = ffi.new("WGPUBufferMapCallbackInfo *")
        info.mode = lib.WGPUCallbackMode_AllowSpontaneous
        info.callback = _on_map
        info.userdata1 = ticket
        self._guarded(
            "mapping a buffer",
            lambda: lib.wgpuBufferMapAsync(buffer, 1, 0, nbytes, info[0]),
            None,
        )

    def mapped(self, buffer: Handle, nbytes: int) -> Any:
        """The bytes of a mapped buffer, valid until `unmap`."""
        return ffi.buffer(lib.wgpuBufferGetConstMappedRange(buffer, 0, nbytes), nbytes)

    def unmap(self, buffer: Handle) -> None:
        lib.wgpuBufferUnmap(buffer)

    def poll(self, *, submission: int | None = None, wait: bool = False) -> None:
        """Let the driver free what is done and call back; with `wait`, block until the submission is done."""
        index = ffi.NULL if submission is None else ffi.new("WGPUSubmissionIndex *", submission)
        lib.wgpuDevicePoll(self.device, wait, index)

    def destroy(self) -> None:
        """Make the device lost at once, as a driver reset would."""
        lib.wgpuDeviceDestroy(self.device)

    def close(self) -> None:
        """Let the native device go. Handles made by it must not be used afterwards."""
        if not self._closed:
            self._closed = True
            lib.wgpuQueueRelease(self.queue)
            lib.wgpuDeviceRelease(self.device)


def native_object_counts() -> dict[str, int]:
    """How many objects of each kind wgpu-native holds, for leak tests."""
    import wgpu

    report = wgpu.diagnostics.get_dict()["wgpu_native_counts"]
    return {str(kind): int(row["count"]) for kind, row in report.items() if row["count"]}
