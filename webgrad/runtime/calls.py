"""The calls of a flush, in two ways: quick ones that keep the GIL, plain ones through cffi, which drop it.

Dropping the GIL costs a busy process a switch interval (5 ms) per call, so short calls keep it. A submit
may block while the GPU is busy: the caller says so, and it drops the GIL. Handles are integers in the quick
way and cffi pointers in the plain one; nobody but the encoder and `NativeDevice` sees them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Protocol

from ..errors import DeviceError
from .layer import Answers, Copy, Handle

try:
    from wgpu.backends.wgpu_native import ffi, lib
    from wgpu.backends.wgpu_native._ffi import lib_path
except (ImportError, OSError, RuntimeError) as error:  # other modules of this folder come here first
    raise DeviceError(
        f"this needs a GPU, and wgpu cannot be loaded ({error}): pip install 'wgpu==0.32.*' brings it"
    ) from error

_SPONTANEOUS = int(lib.WGPUCallbackMode_AllowSpontaneous)
_READ = 1  # WGPUMapMode


class Calls(Protocol):
    """What a flush asks of the driver."""

    def push_scope(self, kind: int) -> None: ...

    def pop_scope(self) -> None: ...

    def begin(self, descriptor: Handle | None = None) -> tuple[Handle, Handle]: ...

    def end(self, encoder: Handle, compute_pass: Handle, copies: Iterable[Copy]) -> Handle: ...

    def copy(self, copies: Iterable[Copy]) -> Handle: ...

    def own(self, commands: Handle) -> Handle: ...

    def resolve(self, queries: Handle, target: Handle, copies: Iterable[Copy]) -> Handle: ...

    def release(self, encoder: Handle, compute_pass: Handle) -> None: ...

    def touch(self) -> None: ...

    def release_commands(self, commands: Handle) -> None: ...

    def submit(self, commands: Handle | None, *, may_block: bool) -> None: ...

    def when_done(self) -> None: ...

    def poll(self) -> None: ...

    def map_read(self, buffer: Handle, nbytes: int, reply: int) -> None: ...


_FirstArgument = ctypes.CFUNCTYPE(None, c_int)


class Reply:
    """A callback for the driver that does no more than put its first argument into a list.

    ctypes calls `list.append` without a step of Python in which a signal's handler could raise, where nobody
    would hear of it. The driver passes more arguments; in every calling convention that wgpu-native is built
    for the caller clears them away, so a callee may leave them unread.
    """

    __slots__ = ("_callback", "address", "answers")

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self._callback = _FirstArgument(answers.append)
        self.address: int = c_void_p.from_buffer(self._callback).value or 0


def address_of(pointer: Handle) -> int:
    """A cffi pointer as a number."""
    return int(ffi.cast("uintptr_t", pointer))


def library() -> ctypes.PyDLL:
    """wgpu-native once more, for calls that keep the GIL."""
    return ctypes.PyDLL(lib_path)


class PlainCalls:
    """Through cffi: works wherever wgpu does."""

    def __init__(self, device: Handle, queue: Handle, on_scope: Handle, on_done: int) -> None:
        self._device, self._queue = device, queue
        self._scope_info = ffi.new("WGPUPopErrorScopeCallbackInfo *")
        self._scope_info.mode, self._scope_info.callback = _SPONTANEOUS, on_scope
        self._done_info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        self._done_info.mode = _SPONTANEOUS
        self._done_info.callback = ffi.cast("WGPUQueueWorkDoneCallback", on_done)
        self._map_info = ffi.new("WGPUBufferMapCallbackInfo *")
        self._map_info.mode = _SPONTANEOUS

    def push_scope(self, kind: int) -> None:
        lib.wgpuDevicePushErrorScope(self._device, kind)

    def pop_scope(self) -> None:
        lib.wgpuDevicePopErrorScope(self._device, self._scope_info[0])

    def begin(self, descriptor: Handle | None = None) -> tuple[Handle, Handle]:
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._device, ffi.NULL)
        return encoder, lib.wgpuCommandEncoderBeginComputePass(encoder, descriptor or ffi.NULL)

    def end(self, encoder: Handle, compute_pass: Handle, copies: Iterable[Copy]) -> Handle:
        lib.wgpuComputePassEncoderEnd(compute_pass)
        return self._copy_and_finish(encoder, copies)

    def copy(self, copies: Iterable[Copy]) -> Handle:
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._device, ffi.NULL)
        commands = self._copy_and_finish(encoder, copies)
        lib.wgpuCommandEncoderRelease(encoder)
        return commands

    def resolve(self, queries: Handle, target: Handle, copies: Iterable[Copy]) -> Handle:
        encoder = lib.wgpuDeviceCreateCommandEncoder(self._device, ffi.NULL)
        lib.wgpuCommandEncoderResolveQuerySet(encoder, queries, 0, 2, target, 0)
        commands = self._copy_and_finish(encoder, copies)
        lib.wgpuCommandEncoderRelease(encoder)
        return commands

    def _copy_and_finish(self, encoder: Handle, copies: Iterable[Copy]) -> Handle:
        for source, offset, target, nbytes in copies:
            lib.wgpuCommandEncoderCopyBufferToBuffer(encoder, source, offset, target, 0, nbytes)
        return lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)

    def own(self, commands: Handle) -> Handle:
        """A command buffer that was made by cffi, as `submit` takes it."""
        return commands

    def release(self, encoder: Handle, compute_pass: Handle) -> None:
        lib.wgpuComputePassEncoderRelease(compute_pass)
        lib.wgpuCommandEncoderRelease(encoder)

    def touch(self) -> None:
        lib.wgpuCommandEncoderRelease(lib.wgpuDeviceCreateCommandEncoder(self._device, ffi.NULL))

    def release_commands(self, commands: Handle) -> None:
        lib.wgpuCommandBufferRelease(commands)

    def submit(self, commands: Handle | None, *, may_block: bool) -> None:
        if commands is None:
            lib.wgpuQueueSubmit(self._queue, 0, ffi.NULL)
        else:
            lib.wgpuQueueSubmit(self._queue, 1, ffi.new("WGPUCommandBuffer[1]", [commands]))

    def when_done(self) -> None:
        lib.wgpuQueueOnSubmittedWorkDone(self._queue, self._done_info[0])

    def poll(self) -> None:
        lib.wgpuDevicePoll(self._device, False, ffi.NULL)

    def map_read(self, buffer: Handle, nbytes: int, reply: int) -> None:
        self._map_info.callback = ffi.cast("WGPUBufferMapCallback", reply)
        lib.wgpuBufferMapAsync(buffer, _READ, 0, nbytes, self._map_info[0])


class _CallbackInfo(ctypes.Structure):
    """The CallbackInfo of error scopes, finished work and mapped buffers, which are laid out alike."""

    _fields_ = (
        ("next", c_void_p),
        ("mode", c_int),
        ("callback", c_void_p),
        ("user1", c_void_p),
        ("user2", c_void_p),
    )


class _Future(ctypes.Structure):
    _fields_ = (("id", c_uint64),)


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "wgpuDevicePushErrorScope": (None, (c_void_p, c_int)),
    "wgpuDevicePopErrorScope": (_Future, (c_void_p, _CallbackInfo)),
    "wgpuDeviceCreateCommandEncoder": (c_void_p, (c_void_p, c_void_p)),
    "wgpuCommandEncoderBeginComputePass": (c_void_p, (c_void_p, c_void_p)),
    "wgpuCommandEncoderCopyBufferToBuffer": (
        None,
        (c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_uint64),
    ),
    "wgpuCommandEncoderResolveQuerySet": (
        None,
        (c_void_p, c_void_p, c_uint32, c_uint32, c_void_p, c_uint64),
    ),
    "wgpuCommandEncoderFinish": (c_void_p, (c_void_p, c_void_p)),
    "wgpuCommandEncoderRelease": (None, (c_void_p,)),
    "wgpuComputePassEncoderEnd": (None, (c_void_p,)),
    "wgpuComputePassEncoderRelease": (None, (c_void_p,)),
    "wgpuCommandBufferRelease": (None, (c_void_p,)),
    "wgpuQueueSubmit": (None, (c_void_p, c_size_t, c_void_p)),
    "wgpuBufferMapAsync": (_Future, (c_void_p, c_uint64, c_size_t, c_size_t, _CallbackInfo)),
    "wgpuDevicePoll": (c_int, (c_void_p, c_int, c_void_p)),
    "wgpuQueueOnSubmittedWorkDone": (_Future, (c_void_p, _CallbackInfo)),
}


class QuickCalls:
    """Through ctypes, keeping the GIL."""

    def __init__(self, device: Handle, queue: Handle, on_scope: Handle, on_done: int) -> None:
        quick, blocking = library(), ctypes.CDLL(lib_path)
        self._call = {}
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(quick, name)
            function.restype, function.argtypes = result, arguments
            self._call[name] = function
        self._blocking_submit = blocking.wgpuQueueSubmit
        self._blocking_submit.restype, self._blocking_submit.argtypes = _SIGNATURES["wgpuQueueSubmit"]
        self._device, self._queue = address_of(device), address_of(queue)
        self._scope_info = _CallbackInfo(None, _SPONTANEOUS, address_of(on_scope), None, None)
        self._done_info = _CallbackInfo(None, _SPONTANEOUS, on_done, None, None)
        self._map_info = _CallbackInfo(None, _SPONTANEOUS, None, None, None)

    def push_scope(self, kind: int) -> None:
        self._call["wgpuDevicePushErrorScope"](self._device, kind)

    def pop_scope(self) -> None:
        self._call["wgpuDevicePopErrorScope"](self._device, self._scope_info)

    def begin(self, descriptor: Handle | None = None) -> tuple[Handle, Handle]:
        encoder = self._call["wgpuDeviceCreateCommandEncoder"](self._device, None)
        address = None if descriptor is None else address_of(descriptor)
        return encoder, self._call["wgpuCommandEncoderBeginComputePass"](encoder, address)

    def end(self, encoder: Handle, compute_pass: Handle, copies: Iterable[Copy]) -> Handle:
        self._call["wgpuComputePassEncoderEnd"](compute_pass)
        return self._copy_and_finish(encoder, copies)

    def copy(self, copies: Iterable[Copy]) -> Handle:
        encoder = self._call["wgpuDeviceCreateCommandEncoder"](self._device, None)
        commands = self._copy_and_finish(encoder, copies)
        self._call["wgpuCommandEncoderRelease"](encoder)
        return commands

    def resolve(self, queries: Handle, target: Handle, copies: Iterable[Copy]) -> Handle:
        encoder = self._call["wgpuDeviceCreateCommandEncoder"](self._device, None)
        resolve = self._call["wgpuCommandEncoderResolveQuerySet"]
        resolve(encoder, address_of(queries), 0, 2, address_of(target), 0)
        commands = self._copy_and_finish(encoder, copies)
        self._call["wgpuCommandEncoderRelease"](encoder)
        return commands

    def _copy_and_finish(self, encoder: Handle, copies: Iterable[Copy]) -> Handle:
        for source, offset, target, nbytes in copies:
            self._call["wgpuCommandEncoderCopyBufferToBuffer"](
                encoder, address_of(source), offset, address_of(target), 0, nbytes
            )
        return self._call["wgpuCommandEncoderFinish"](encoder, None)

    def own(self, commands: Handle) -> Handle:
        """A command buffer that was made by cffi, as `submit` takes it."""
        return address_of(commands)

    def release(self, encoder: Handle, compute_pass: Handle) -> None:
        self._call["wgpuComputePassEncoderRelease"](compute_pass)
        self._call["wgpuCommandEncoderRelease"](encoder)

    def touch(self) -> None:
        self._call["wgpuCommandEncoderRelease"](
            self._call["wgpuDeviceCreateCommandEncoder"](self._device, None)
        )

    def release_commands(self, commands: Handle) -> None:
        self._call["wgpuCommandBufferRelease"](commands)

    def submit(self, commands: Handle | None, *, may_block: bool) -> None:
        submit = self._blocking_submit if may_block else self._call["wgpuQueueSubmit"]
        if commands is None:
            submit(self._queue, 0, None)
        else:
            submit(self._queue, 1, ctypes.byref(c_void_p(commands)))

    def when_done(self) -> None:
        self._call["wgpuQueueOnSubmittedWorkDone"](self._queue, self._done_info)

    def poll(self) -> None:
        self._call["wgpuDevicePoll"](self._device, 0, None)

    def map_read(self, buffer: Handle, nbytes: int, reply: int) -> None:
        self._map_info.callback = reply
        self._call["wgpuBufferMapAsync"](address_of(buffer), _READ, 0, nbytes, self._map_info)
