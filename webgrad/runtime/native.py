"""The device layer over wgpu-native: make a buffer, write, make a pipeline, run a command list, read.

Takes plain values and handles, gives handles (cffi pointers into wgpu-native). Every call that may fail
runs in error scopes and raises; the invariant is that nothing reaches a submit that could abort the
process: wgpu-native panics on a submit to a lost device, with an invalid command buffer or with a mapped
buffer.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from ctypes import CDLL, c_void_p
from typing import Any, NoReturn
from weakref import ref

import wgpu
from wgpu.backends.wgpu_native import ffi, lib
from wgpu.backends.wgpu_native._ffi import lib_path

from ..device_profile import MAX_PARAMS
from ..errors import CompileError, DeviceError, DeviceLostError, OutOfMemoryError
from ..wgsl import Dialect, Parameters
from .calls import PlainCalls, QuickCalls, Reply, address_of
from .device_request import callback, feature_numbers, request_device, text_of
from .encode import make_encoder
from .layer import STORAGE, Answers, Copy, DeviceLayer, Encoder, Handle
from .shield import shield
from .transfer import read_bytes

_VALIDATION, _OUT_OF_MEMORY = 1, 2  # error filters; the third, Internal, aborts in wgpu-native 29
_NO_ERROR = 1
_COMPUTE = 0x4
_BINDING_TYPES = {"uniform": 2, "read_write": 3, "read": 4}  # WGPUBufferBindingType

_scope = threading.local()
_UNHEARD = 0, "its answer was not heard: the stack or the memory of Python is full"


@callback("void(WGPUPopErrorScopeStatus, WGPUErrorType, WGPUStringView, void *, void *)")
def _on_scope(status: int, kind: int, message: Any, _1: Any, _2: Any) -> None:
    _scope.error = None if kind == _NO_ERROR else (kind, text_of(message))


def _view(text: bytes) -> Any:
    view = ffi.new("WGPUStringView *")
    data = ffi.from_buffer(text)
    view.data = data
    view.length = len(text)
    return view, data


# What the driver calls back outlives its device: it may call while that is dropped, or long after.
_keep_alive: list[Any] = []
_PIPELINE = "webgrad pipeline"  # the label of those that are compiled outside of scopes
_library = CDLL(lib_path)


class _Release(ref["NativeDevice"]):
    """A weak reference whose callback, a function of the driver's, gets a handle: by C alone, as in Reply."""

    __slots__ = ("_as_parameter_",)
    _as_parameter_: c_void_p


@atexit.register
def _release_no_more() -> None:
    for each in _keep_alive:
        if isinstance(each, list):
            each.clear()


class NativeDevice:
    """One open wgpu device and its queue.

    `adapter` is the wgpu-py adapter, `features` the native feature numbers to ask for; `done` gets an item
    for every submission that the GPU has finished.
    """

    dialect: Dialect = "naga"
    threaded = True
    blocking = True

    def __init__(
        self,
        adapter: Any,
        features: Sequence[int],
        done: Answers,
        *,
        immediates: bool,
        quick: bool,
    ) -> None:
        self.parameters: Parameters = "immediates" if immediates else "group"
        self.queue: Handle | None = None
        self.params_layout: Handle | None = None  # of the uniform buffer that parameters come in
        self._submitting, self._reading = threading.Lock(), threading.Lock()  # `destroy` keeps out of both
        self.timed: Any = None  # the descriptor of passes that note when they begin and end
        self.account: Callable[[], str] = str  # what is in use, for the error when memory runs out
        self._scopes = threading.RLock()
        self._losses: Answers = []
        on_lost, on_done = Reply(self._losses), Reply(done)
        _keep_alive.extend((on_lost, on_done))
        self._reads: dict[int, Reply] = {}  # that the driver may still have to answer
        self._releases: list[_Release] = []
        _keep_alive.extend((self._reads, self._releases))
        self.device = request_device(adapter, features, on_lost.address)
        self.queue = lib.wgpuDeviceGetQueue(self.device)
        self._release_at_end("wgpuDeviceRelease", self.device)
        self._release_at_end("wgpuQueueRelease", self.queue)
        calls = QuickCalls if quick else PlainCalls
        self._calls = calls(self.device, self.queue, _on_scope, on_done.address)
        self._entries = ffi.new("WGPUBindGroupEntry[]", 64)
        self._group_descriptor = ffi.new("WGPUBindGroupDescriptor *")
        self._group_descriptor.entries = self._entries
        for index in range(64):
            self._entries[index].binding = index
        self._calls.push_scope(_OUT_OF_MEMORY)
        self._calls.push_scope(_VALIDATION)
        if not immediates:
            self.params_layout = self.create_group_layout(["uniform"], dynamic=True)
            self._release_at_end("wgpuBindGroupLayoutRelease", self.params_layout)

    def _release_at_end(self, release: str, handle: Handle) -> None:
        """Not sooner than nobody refers to this: another thread may wait on the device, or hold an event."""
        reference = _Release(self, getattr(_library, release))
        reference._as_parameter_ = c_void_p(address_of(handle))
        self._releases.append(reference)

    @property
    def lost(self) -> bool:
        """Whether the driver has said that the device is gone."""
        return bool(self._losses)

    def alive(self) -> bool:
        """Whether the device is there still; 1 µs: an encoder of a lost one makes the driver call back."""
        self._calls.touch()
        return not self.lost

    # Error scopes: two filters, pushed and popped around what may fail. wgpu-native keeps one stack of them
    # for all threads, and an error goes to the newest: so only one thread at a time may have scopes open.
    # tests/runtime/test_native.py fails without the lock. Pipelines, which compile long and in several
    # threads, are made outside: whoever meets an error of theirs knows it by the label, and passes over it.
    # At the bottom lies a pair that is never popped: an error that no scope meets is told to a callback under
    # the lock of the stack, and that callback would wait for the GIL of a thread that waits for the stack.

    def push_scope(self) -> None:
        self._scopes.acquire()
        self._calls.push_scope(_OUT_OF_MEMORY)
        self._calls.push_scope(_VALIDATION)

    def pop_scope(self) -> tuple[int, str] | None:
        error = self._pop()
        return None if error and _PIPELINE in error[1] else error

    def _pop(self) -> tuple[int, str] | None:
        with shield:
            try:
                _scope.error = _UNHEARD
                self._calls.pop_scope()
                error: tuple[int, str] | None = _scope.error
                _scope.error = _UNHEARD
                self._calls.pop_scope()
                return error or _scope.error
            finally:
                self._scopes.release()

    def fail(self, error: tuple[int, str], doing: str) -> NoReturn:
        """Raise what the driver said as an error of ours."""
        raise self._translated(error, doing)

    def _translated(self, error: tuple[int, str], doing: str) -> DeviceError | OutOfMemoryError:
        kind, text = error
        reason = text.replace("Validation Error", "").replace("Caused by:", "").strip()
        if self.lost or "device is lost" in text.lower():
            self._losses.append(0)
            return DeviceLostError(f"the GPU device was lost while {doing}")
        if kind == 3 or "not enough memory" in text.lower() or "out of memory" in text.lower():
            return OutOfMemoryError(f"the GPU has no memory left while {doing}: {reason}. {self.account()}")
        return DeviceError(f"the GPU refused {doing}: {reason}")

    def _guarded(
        self, doing: str, call: Callable[[], Handle], release: Callable[[Handle], None] | None
    ) -> Handle:
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
        lib.wgpuBufferRelease(handle)

    def create_layouts(self, accesses: tuple[str, ...]) -> tuple[Handle, Handle]:
        group = self.create_group_layout(accesses)
        groups = [group] if self.params_layout is None else [group, self.params_layout]
        return group, self.create_pipeline_layout(groups)

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
        descriptor.immediateSize = MAX_PARAMS if self.parameters == "immediates" else 0
        return self._guarded(
            "making a pipeline layout",
            lambda: lib.wgpuDeviceCreatePipelineLayout(self.device, descriptor),
            lib.wgpuPipelineLayoutRelease,
        )

    def release_layouts(self, group: Handle, pipeline: Handle) -> None:
        lib.wgpuBindGroupLayoutRelease(group)
        lib.wgpuPipelineLayoutRelease(pipeline)

    def create_bind_group(self, layout: Handle, ranges: Iterable[tuple[Handle, int, int]]) -> Handle:
        """Bind (buffer, offset, bytes) ranges in order. The caller holds the device's lock and a scope."""
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
            label, label_keep = _view(_PIPELINE.encode())
            descriptor = ffi.new("WGPUComputePipelineDescriptor *")
            descriptor.label = label[0]
            descriptor.layout = layout
            descriptor.compute.module = module
            descriptor.compute.entryPoint = name[0]
            pipeline = lib.wgpuDeviceCreateComputePipeline(self.device, descriptor)
            error = self._pipeline_error(pipeline, descriptor)
            del label_keep
        lib.wgpuShaderModuleRelease(module)
        del code_keep, name_keep
        if error:
            if pipeline:
                lib.wgpuComputePipelineRelease(pipeline)
            found = self._translated(error, "compiling a shader")
            raise CompileError(error[1]) if type(found) is DeviceError else found
        return pipeline

    def _pipeline_error(self, pipeline: Handle, descriptor: Any) -> tuple[int, str] | None:
        """Why a pipeline is invalid, None where it is not: asked by using it, and told by making it again."""
        invalid: tuple[int, str] | None = (0, "")
        while invalid and "GetBindGroupLayout" not in invalid[1]:  # then it was another thread's
            self.push_scope()
            lib.wgpuBindGroupLayoutRelease(lib.wgpuComputePipelineGetBindGroupLayout(pipeline, 0))
            invalid = self._pop()
        if not invalid:
            return None
        descriptor.label.length = 0
        told: tuple[int, str] | None = (0, _PIPELINE)
        while told and _PIPELINE in told[1]:  # another thread's: a scope keeps only its first error
            self.push_scope()
            lib.wgpuComputePipelineRelease(lib.wgpuDeviceCreateComputePipeline(self.device, descriptor))
            told = self._pop()
        return told or invalid

    def confirm_pipeline(self, handle: Handle) -> None:
        """One that is there is compiled."""

    def release_pipeline(self, handle: Handle) -> None:
        lib.wgpuComputePipelineRelease(handle)

    def create_queries(self, count: int) -> Handle:
        """A set of timestamp queries."""
        descriptor = ffi.new("WGPUQuerySetDescriptor *")
        descriptor.type = lib.WGPUQueryType_Timestamp
        descriptor.count = count
        return self._guarded(
            "making timestamp queries",
            lambda: lib.wgpuDeviceCreateQuerySet(self.device, descriptor),
            lib.wgpuQuerySetRelease,
        )

    def release_queries(self, handle: Handle) -> None:
        lib.wgpuQuerySetRelease(handle)

    def timestamp_period(self) -> float:
        """The seconds that a timestamp counts in."""
        return float(lib.wgpuQueueGetTimestampPeriod(self.queue)) * 1e-9

    # Work

    def argument(self, handle: Handle) -> c_void_p:
        """A ready-made C argument."""
        return c_void_p(address_of(handle))

    def make_encoder(self, kind: str, make_buffer: Callable[[int, int], Handle]) -> Encoder:
        """The encoder called "fast" or "plain"."""
        return make_encoder(kind, self, make_buffer)

    def write(self, buffer: Handle, offset: int, data: Any) -> None:
        """Copy whole words of host memory into a buffer, before anything submitted later."""
        pointer = ffi.from_buffer(data)
        nbytes = len(pointer)
        self._guarded(
            f"writing {nbytes:,} bytes",
            lambda: lib.wgpuQueueWriteBuffer(self.queue, buffer, offset, pointer, nbytes),
            None,
        )

    def begin(self) -> tuple[Handle, Handle]:
        """Open an encoder with one compute pass, inside error scopes that `finish` closes."""
        self.push_scope()
        return self._calls.begin(self.timed)

    def finish(self, encoder: Handle, compute_pass: Handle, copies: Iterable[Copy]) -> Handle:
        """End the pass, append (source, offset, target, bytes) copies, and give the command buffer."""
        commands = self._calls.end(encoder, compute_pass, copies)
        error = self.pop_scope()
        self._calls.release(encoder, compute_pass)
        if error:
            self._calls.release_commands(commands)
            self.fail(error, "recording commands")
        return commands

    def copy(self, copies: Iterable[Copy]) -> Handle:
        """A command buffer with nothing but copies in it."""
        calls = self._calls
        return self._guarded("recording a copy", lambda: calls.copy(copies), calls.release_commands)

    def encode_apart(self, fill: Callable[[Handle], None]) -> Handle:
        """A command buffer of whatever `fill` puts into an encoder, by cffi: for those who watch."""

        def encoded() -> Handle:
            encoder = lib.wgpuDeviceCreateCommandEncoder(self.device, ffi.NULL)
            try:
                fill(encoder)
                return self._calls.own(lib.wgpuCommandEncoderFinish(encoder, ffi.NULL))
            finally:
                lib.wgpuCommandEncoderRelease(encoder)

        return self._guarded("recording commands", encoded, self._calls.release_commands)

    def abandon(self, encoder: Handle, compute_pass: Handle) -> None:
        """Give up an open encoder after an error of our own."""
        self._calls.release(encoder, compute_pass)
        self.pop_scope()

    def submit(self, commands: Handle | None, *, may_block: bool = True) -> None:
        """Submit one finished command buffer (None: only pending writes).

        `when_done` is called on a later poll, once the GPU has finished it.
        """
        with self._submitting:
            try:
                if not self.alive():  # a submit to a lost device panics in wgpu-native, past any error scope
                    raise DeviceLostError("the GPU device was lost before a submit")
                self._calls.submit(commands, may_block=may_block)
            finally:
                if commands is not None:
                    self._calls.release_commands(commands)
            self._calls.when_done()

    def map_read(self, buffer: Handle, nbytes: int, answers: Answers) -> None:
        """Ask for a read-back buffer's contents; `answers` gets the status on a poll."""
        if len(self._reads) >= 64:
            for key, each in list(self._reads.items()):
                if each.answers:
                    self._reads.pop(key, None)
        reply = Reply(answers)
        self._reads[id(reply)] = reply
        self._calls.map_read(buffer, nbytes, reply.address)

    def copy_mapped(self, buffer: Handle, nbytes: int) -> Any:
        """The bytes of a mapped buffer in whole words; the buffer is unmapped."""
        with self._reading:
            if not self.alive():  # wgpu-native panics here too
                raise DeviceLostError("the GPU device was lost while a buffer was read back")
            data = lib.wgpuBufferGetConstMappedRange(buffer, 0, nbytes)
            result = read_bytes(ffi.buffer(data, nbytes))
            lib.wgpuBufferUnmap(buffer)
        return result

    def unmap(self, buffer: Handle) -> None:
        lib.wgpuBufferUnmap(buffer)

    def poll(self) -> None:
        """Let the driver free what is done and call back, without waiting."""
        self._calls.poll()

    @property
    def can_wait(self) -> bool:
        return True

    def pause(self, seconds: float) -> None:
        """Let others run meanwhile."""
        time.sleep(seconds)

    async def pause_async(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def wait(self) -> None:
        """Block until all that was submitted is done, deaf to Ctrl-C; `transfer.wait_until` is not."""
        lib.wgpuDevicePoll(self.device, True, ffi.NULL)

    def destroy(self) -> None:
        """Make the device lost at once, as a driver reset would."""
        with self._submitting, self._reading:
            lib.wgpuDeviceDestroy(self.device)

    def forsake(self) -> None:
        """In a forked child: leave the native device to the parent."""
        self._releases.clear()


def open_native(adapter: Any, features: frozenset[str], done: Answers, *, quick: bool) -> NativeDevice:
    """Open a device of a wgpu-py adapter, with features by their names."""
    numbers = feature_numbers(features)
    with shield:  # the driver calls back
        return NativeDevice(adapter, numbers, done, immediates="immediates" in features, quick=quick)


def native_of(layer: DeviceLayer) -> NativeDevice:
    """The same layer, where it is wgpu-native's: for what no other offers."""
    if not isinstance(layer, NativeDevice):
        raise DeviceError("this is only there on devices of wgpu, outside of browsers")
    return layer


def native_object_counts() -> dict[str, int]:
    """How many objects of each kind wgpu-native holds, for leak tests."""
    report = wgpu.diagnostics.get_dict()["wgpu_native_counts"]
    return {str(kind): int(row["count"]) for kind, row in report.items() if row["count"]}
