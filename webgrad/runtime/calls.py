"""The calls of a flush, in two ways: quick ones that keep the GIL, plain ones through cffi, which drop it.

Dropping the GIL costs a busy process a switch interval (5 ms) per call, so short calls keep it. A submit
may block while the GPU is busy: the caller says so, and it drops the GIL. Handles are integers in the quick
way and cffi pointers in the plain one; nobody but the encoder and `NativeDevice` sees them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from ctypes import c_int, c_size_t, c_uint64, c_void_p
from typing import Any

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


class Calls:
    """What a flush asks of the driver, by functions of wgpu-native with handles in a form of their own."""

    def __init__(self, functions: Any, null: Any, device: Handle, queue: Handle) -> None:
        self._functions, self._null = functions, null
        self._device, self._queue = self.own(device), self.own(queue)

    def own(self, handle: Handle) -> Handle:
        """What cffi made, as these functions take it."""
        return handle

    def push_scope(self, kind: int) -> None:
        self._functions.wgpuDevicePushErrorScope(self._device, kind)

    def begin(self, descriptor: Handle | None = None) -> tuple[Handle, Handle]:
        encoder = self._encoder()
        how = self._null if descriptor is None else self.own(descriptor)
        return encoder, self._functions.wgpuCommandEncoderBeginComputePass(encoder, how)

    def _encoder(self) -> Handle:
        return self._functions.wgpuDeviceCreateCommandEncoder(self._device, self._null)

    def end(self, encoder: Handle, compute_pass: Handle, copies: Iterable[Copy]) -> Handle:
        self._functions.wgpuComputePassEncoderEnd(compute_pass)
        return self._copy_and_finish(encoder, copies)

    def copy(self, copies: Iterable[Copy]) -> Handle:
        encoder = self._encoder()
        commands = self._copy_and_finish(encoder, copies)
        self._functions.wgpuCommandEncoderRelease(encoder)
        return commands

    def _copy_and_finish(self, encoder: Handle, copies: Iterable[Copy]) -> Handle:
        copy, own = self._functions.wgpuCommandEncoderCopyBufferToBuffer, self.own
        for source, offset, target, nbytes in copies:
            copy(encoder, own(source), offset, own(target), 0, nbytes)
        return self._functions.wgpuCommandEncoderFinish(encoder, self._null)

    def release(self, encoder: Handle, compute_pass: Handle) -> None:
        self._functions.wgpuComputePassEncoderRelease(compute_pass)
        self._functions.wgpuCommandEncoderRelease(encoder)

    def touch(self) -> None:
        self._functions.wgpuCommandEncoderRelease(self._encoder())

    def release_commands(self, commands: Handle) -> None:
        self._functions.wgpuCommandBufferRelease(commands)

    def poll(self) -> None:
        self._functions.wgpuDevicePoll(self._device, 0, self._null)


class PlainCalls(Calls):
    """Through cffi: works wherever wgpu does."""

    def __init__(self, device: Handle, queue: Handle, on_scope: Handle, on_done: int) -> None:
        super().__init__(lib, ffi.NULL, device, queue)
        self._scope_info = ffi.new("WGPUPopErrorScopeCallbackInfo *")
        self._scope_info.mode, self._scope_info.callback = _SPONTANEOUS, on_scope
        self._done_info = ffi.new("WGPUQueueWorkDoneCallbackInfo *")
        self._done_info.mode = _SPONTANEOUS
        self._done_info.callback = ffi.cast("WGPUQueueWorkDoneCallback", on_done)
        self._map_info = ffi.new("WGPUBufferMapCallbackInfo *")
        self._map_info.mode = _SPONTANEOUS

    def pop_scope(self) -> None:
        lib.wgpuDevicePopErrorScope(self._device, self._scope_info[0])

    def submit(self, commands: Handle | None, *, may_block: bool) -> None:
        given = [] if commands is None else [commands]
        lib.wgpuQueueSubmit(self._queue, len(given), ffi.new("WGPUCommandBuffer[]", given))

    def when_done(self) -> None:
        lib.wgpuQueueOnSubmittedWorkDone(self._queue, self._done_info[0])

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


class QuickCalls(Calls):
    """Through ctypes, keeping the GIL; handles are addresses."""

    def __init__(self, device: Handle, queue: Handle, on_scope: Handle, on_done: int) -> None:
        quick = library()
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(quick, name)
            function.restype, function.argtypes = result, arguments
        super().__init__(quick, None, device, queue)
        self._blocking_submit = ctypes.CDLL(lib_path).wgpuQueueSubmit
        self._blocking_submit.restype, self._blocking_submit.argtypes = _SIGNATURES["wgpuQueueSubmit"]
        self._scope_info = _CallbackInfo(None, _SPONTANEOUS, address_of(on_scope), None, None)
        self._done_info = _CallbackInfo(None, _SPONTANEOUS, on_done, None, None)
        self._map_info = _CallbackInfo(None, _SPONTANEOUS, None, None, None)

    def own(self, handle: Handle) -> Handle:
        return address_of(handle)

    def pop_scope(self) -> None:
        self._functions.wgpuDevicePopErrorScope(self._device, self._scope_info)

    def submit(self, commands: Handle | None, *, may_block: bool) -> None:
        submit = self._blocking_submit if may_block else self._functions.wgpuQueueSubmit
        if commands is None:
            submit(self._queue, 0, None)
        else:
            submit(self._queue, 1, ctypes.byref(c_void_p(commands)))

    def when_done(self) -> None:
        self._functions.wgpuQueueOnSubmittedWorkDone(self._queue, self._done_info)

    def map_read(self, buffer: Handle, nbytes: int, reply: int) -> None:
        self._map_info.callback = reply
        self._functions.wgpuBufferMapAsync(address_of(buffer), _READ, 0, nbytes, self._map_info)
