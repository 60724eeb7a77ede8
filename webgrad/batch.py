"""Explicit batches: upload, queue operations, execute them in one submission, read.

Comes in: NumPy arrays and calls such as `matmul` and `relu`. Goes out: NumPy arrays. Operations are recorded,
not run, until `execute`; shapes, dtypes and owners are checked as they are recorded, so nothing wrong is ever
submitted. On the cpu device the same batch runs by NumPy. Pipelines and buffers belong to the device and
outlive the batch.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Literal

from .arrays import Array, ml_dtypes, np
from .custom import Grid, Kernel
from .errors import (
    BatchError,
    BufferError,
    DTypeError,
    ForeignBufferError,
    LaunchError,
    OutOfMemoryError,
    ShapeError,
)
from .kernels import choose
from .kernels.launch import Launch
from .kernels.reference import REFERENCE
from .runtime.buffers import Buffer
from .runtime.context import Event
from .runtime.device import CpuDevice, open_device
from .runtime.pipelines import PADDING, Pipeline
from .runtime.queue import Queue
from .runtime.webgpu import Device
from .wgsl.packing import ParamValue

__all__ = ["Batch", "BatchArray"]

Broadcast = Literal["none", "row", "scalar"]

_PIECE_ALIGNMENT = (
    1024  # bytes: whole groups of four of any dtype, and an offset that every device can bind at
)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_DTYPES = frozenset(map(np.dtype, ("f4", "f2", _BFLOAT16, "i4", "i2", "i1", "u4", "u2", "u1")))


@dataclass(frozen=True, slots=True)
class _Dispatch:
    """One recorded GPU command; it keeps its buffers alive until it is executed."""

    pipeline: Pipeline
    buffers: tuple[Buffer, ...]
    params: bytes
    grid: tuple[int, int, int]


class BatchArray:
    """A value of a batch: an uploaded array, or an operation's result, once the batch is executed.

    >>> batch = wg.Batch("webgpu")
    >>> y = batch.relu(batch.upload(np.ones((4, 8), np.float32)))
    >>> y.shape, y.nbytes
    ((4, 8), 128)
    """

    __slots__ = ("__weakref__", "_batch", "_buffer", "_host", "_ready", "dtype", "shape")

    def __init__(self, batch: Batch, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape = shape
        self.dtype = dtype
        self._batch = batch
        self._buffer: Buffer | None = None
        self._host: Array | None = None
        self._ready = False

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        state = "ready" if self._ready else "not executed"
        return f"<BatchArray {self.shape} {self.dtype.name} on {self._batch.device.name}, {state}>"


class Batch:
    """A list of operations that one `execute` submits at once.

    >>> batch = wg.Batch("webgpu")
    >>> x = batch.upload(np.ones((2, 8), np.float32))
    >>> y = batch.relu(batch.matmul(x, batch.upload(np.ones((8, 2), np.float32))))
    >>> event = batch.execute()
    >>> batch.read(y).tolist()
    [[8.0, 8.0], [8.0, 8.0]]
    """

    def __init__(self, device: Device | CpuDevice | str | None = None) -> None:
        self.device = open_device(device)
        self._commands: deque[_Dispatch | Callable[[], None]] = deque()
        # Made by commands not executed yet; weak, so that what the user drops is free inside the batch.
        self._results: list[weakref.ref[BatchArray]] = []

    def __len__(self) -> int:
        return len(self._commands)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} operations on {self.device.name}>"

    # Values

    def upload(self, array: Any, label: str = "") -> BatchArray:
        """A copy of a NumPy array (or what `np.asarray` takes) on the device."""
        host = np.asarray(array)
        value = BatchArray(self, host.shape, _supported(host.dtype))
        if isinstance(self.device, Device):
            value._buffer = self.device.upload(host, label)
        else:
            value._host = _copied(host)
        value._ready = True
        return value

    def empty(self, shape: int | Sequence[int], dtype: Any = np.float32) -> BatchArray:
        """A value without contents, for a kernel of your own to write to."""
        sizes = _sides(shape)
        value = self._result("empty", sizes, _supported(np.dtype(dtype)))
        if not isinstance(self.device, Device):
            value._host = _copied(np.broadcast_to(value.dtype.type(0), sizes))
        return value

    def import_buffer(
        self, buffer: BatchArray | Buffer, shape: int | Sequence[int] | None = None, dtype: Any = None
    ) -> BatchArray:
        """Use an executed value of another batch, or a device's buffer (float32), or see it otherwise."""
        if isinstance(buffer, BatchArray):
            if buffer._batch.device is not self.device:
                raise ForeignBufferError(
                    f"{buffer!r} is not on this batch's device, {self.device.name}: read it, upload it here"
                )
            if not buffer._ready:
                raise BatchError(f"{buffer!r} has no value yet: execute its own batch first")
            host, memory = buffer._host, buffer._buffer
            shape, dtype = buffer.shape if shape is None else shape, dtype or buffer.dtype
        elif isinstance(self.device, Device) and getattr(buffer, "queue", None) is self.device.queue:
            host, memory = None, buffer
        else:
            raise ForeignBufferError(
                f"{buffer!r} is not a buffer of {self.device.name}: upload its contents instead"
            )
        if memory is not None:
            memory.queue.size_of(memory)  # says so where it was freed
        dtype = _supported(np.dtype(dtype or np.float32))
        value = BatchArray(self, _sides(buffer.nbytes // dtype.itemsize if shape is None else shape), dtype)
        if value.nbytes != buffer.nbytes:
            raise ShapeError(
                f"{buffer!r} cannot be seen as {dtype.name} of shape {value.shape}: {value.nbytes} bytes"
            )
        value._host = None if host is None else host.reshape(-1).view(dtype).reshape(value.shape)
        value._buffer, value._ready = memory, True
        return value

    # Operations

    def matmul(self, a: BatchArray, b: BatchArray, *, transposed: bool = False) -> BatchArray:
        """a @ b for a of shape (…, k) and b of (k, n), or of (n, k) when `transposed`."""
        self._own("matmul", a, b)
        if not a.shape or len(b.shape) != 2 or a.shape[-1] != b.shape[1 if transposed else 0]:
            layout = "(n, k)" if transposed else "(k, n)"
            raise ShapeError(
                f"matmul of {a.shape} and {b.shape}: a must be (…, k) and b {layout} with the same k"
            )
        k, n = a.shape[-1], b.shape[0 if transposed else 1]
        m = math.prod(a.shape[:-1])
        dtype = _common("matmul", a, b)
        launch = choose.matmul(self.device.profile, dtype.name, m, n, k, transposed=transposed)
        return self._record("matmul", (launch,), (a, b), (*a.shape[:-1], n), dtype, transposed)

    def add(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a + b; b may also be one row of a, or one element."""
        return self._binary("add", a, b)

    def sub(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a - b; b may also be one row of a, or one element."""
        return self._binary("sub", a, b)

    def mul(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a * b; b may also be one row of a, or one element."""
        return self._binary("mul", a, b)

    def div(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a / b, for floats; b may also be one row of a, or one element."""
        return self._binary("div", a, b)

    def scale(self, x: BatchArray, factor: float) -> BatchArray:
        """x times a number."""
        try:
            number = float(factor)
        except (TypeError, ValueError):
            raise DTypeError(
                f"scale takes a number, not a {type(factor).__name__}; mul takes two arrays"
            ) from None
        return self._unary("scale", x, number)

    def relu(self, x: BatchArray) -> BatchArray:
        """max(x, 0)."""
        return self._unary("relu", x)

    def gelu(self, x: BatchArray) -> BatchArray:
        """x · Φ(x), the exact form."""
        return self._unary("gelu", x)

    def sigmoid(self, x: BatchArray) -> BatchArray:
        """1 / (1 + e⁻ˣ)."""
        return self._unary("sigmoid", x)

    def tanh(self, x: BatchArray) -> BatchArray:
        """The hyperbolic tangent."""
        return self._unary("tanh", x)

    def silu(self, x: BatchArray) -> BatchArray:
        """x · sigmoid(x)."""
        return self._unary("silu", x)

    def softmax(self, x: BatchArray) -> BatchArray:
        """Softmax along the last axis."""
        self._own("softmax", x)
        if not x.shape:
            raise ShapeError("softmax of a 0-d array: it has no axis to go along")
        columns = x.shape[-1]
        rows = math.prod(x.shape[:-1])
        launch = choose.softmax(self.device.profile, x.dtype.name, rows, columns)
        return self._record("softmax", (launch,), (x,), x.shape, x.dtype)

    def dot(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """The sum of a * b, as a 0-d value; both of one shape."""
        self._own("dot", a, b)
        if a.shape != b.shape:
            raise ShapeError(f"dot of {a.shape} and {b.shape}: the shapes must be equal")
        dtype = _common("dot", a, b)
        return self._record("dot", choose.dot(self.device.profile, dtype.name, a.size), (a, b), (), dtype)

    def run(
        self,
        kernel: Kernel,
        /,
        *arrays: BatchArray,
        grid: Grid | None = None,
        threads: Grid | None = None,
        **params: ParamValue,
    ) -> None:
        """Record a launch of your own kernel; what it writes to can be read after `execute`."""
        self._own("run", *arrays)
        if not isinstance(kernel, Kernel):
            raise LaunchError(f"run takes a kernel made by webgrad.kernel, not a {type(kernel).__name__}")
        if not isinstance(self.device, Device) or kernel.device is not self.device:
            raise ForeignBufferError(
                f"{kernel!r} was made for {kernel.device.name}, this batch is on {self.device.name}"
            )
        pipeline, data, workgroups = kernel.prepare([each.nbytes for each in arrays], grid, threads, params)
        self._commands.append(_Dispatch(pipeline, tuple(map(_buffer, arrays)), data, workgroups))

    def _unary(self, op: str, x: BatchArray, *scalars: float) -> BatchArray:
        self._own(op, x)
        chooser = functools.partial(choose.unary, self.device.profile, op, x.dtype.name)
        return self._map(op, lambda count: chooser(count, *scalars), (x,), x.shape, x.dtype, 1, *scalars)

    def _binary(self, op: str, a: BatchArray, b: BatchArray) -> BatchArray:
        self._own(op, a, b)
        dtype = _common(op, a, b)
        broadcast = _broadcast(op, a.shape, b.shape) if a.size else "none"
        columns = b.size if broadcast == "row" else 1
        chooser = functools.partial(choose.binary, self.device.profile, op, dtype.name)
        return self._map(
            op, lambda count: chooser(count, broadcast, columns), (a, b), a.shape, dtype, columns
        )

    # Recording

    def _own(self, op: str, *arrays: BatchArray) -> None:
        for array in arrays:
            if not isinstance(array, BatchArray):
                raise BufferError(
                    f"{op} takes values of this batch, not a {type(array).__name__}: upload it first"
                )
            if array._batch is not self:
                raise ForeignBufferError(
                    f"{op}: {array!r} belongs to another batch; bring it in with import_buffer"
                )

    def _result(self, op: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> BatchArray:
        value = BatchArray(self, shape, dtype)
        if isinstance(self.device, Device):
            value._buffer = self.device.allocate(value.nbytes, f"{op} {shape}")
        self._results.append(weakref.ref(value))
        return value

    def _map(
        self,
        op: str,
        chooser: Callable[[int], Launch],
        inputs: tuple[BatchArray, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        period: int,
        *scalars: Any,
    ) -> BatchArray:
        """Record an op that goes element by element: `chooser` gives its launch, `period` is b's row."""
        launch = chooser(math.prod(shape))
        if (
            not isinstance(self.device, Device)
            or math.prod(shape) * dtype.itemsize <= self.device.profile.max_binding_bytes
        ):
            return self._record(op, (launch,), inputs, shape, dtype, *scalars)
        result = self._result(op, shape, dtype)
        self._commands += self._pieces(op, self.device, chooser, inputs, result, period)
        return result

    def _pieces(
        self,
        op: str,
        device: Device,
        chooser: Callable[[int], Launch],
        inputs: tuple[BatchArray, ...],
        result: BatchArray,
        period: int,
    ) -> list[_Dispatch]:
        """The dispatches over parts of arrays that are too large to be bound whole."""
        itemsize = result.dtype.itemsize
        step = math.lcm(_PIECE_ALIGNMENT // itemsize, period)
        most = device.profile.max_binding_bytes // itemsize // step * step
        if not most:
            raise self._too_large(op, result)
        dispatches = []
        for start in range(0, result.size, most):
            count = min(most, result.size - start)
            launch = chooser(count)
            span = (start * itemsize, -(-count * itemsize // PADDING) * PADDING)
            buffers = [
                device.queue.view(_buffer(each), *span) if each.size == result.size else _buffer(each)
                for each in (*inputs, result)
            ]
            dispatches.append(
                _Dispatch(device.pipeline(launch.program), tuple(buffers), launch.params, launch.grid)
            )
        return dispatches

    def _record(
        self,
        op: str,
        launches: tuple[Launch, ...],
        inputs: tuple[BatchArray, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *scalars: Any,
    ) -> BatchArray:
        result = self._result(op, shape, dtype)
        if isinstance(self.device, Device):
            self._commands += self._dispatches(op, self.device, launches, inputs, result)
        else:
            self._commands.append(lambda: _compute(op, inputs, result, scalars))
        return result

    def _dispatches(
        self,
        op: str,
        device: Device,
        launches: tuple[Launch, ...],
        inputs: tuple[BatchArray, ...],
        result: BatchArray,
    ) -> list[_Dispatch]:
        for array in (*inputs, result):
            if array.nbytes > device.profile.max_binding_bytes:
                raise self._too_large(op, array)
        sources = tuple(map(_buffer, inputs))
        dispatches = []
        for launch in launches:
            pipeline = device.pipeline(launch.program, in_place=launch.in_place)
            target = device.allocate(launch.temporary_bytes) if launch.temporary_bytes else _buffer(result)
            dispatches.append(_Dispatch(pipeline, (*sources, target), launch.params, launch.grid))
            sources = (target,)
        return dispatches

    def _too_large(self, op: str, array: BatchArray) -> ShapeError:
        limit = self.device.profile.max_binding_bytes
        return ShapeError(
            f"{op}: {array!r} has {array.nbytes:,} bytes, and this device binds at most {limit:,} at once; "
            "split it along its first axis"
        )

    # Running

    def execute(self) -> Event | None:
        """Run what was recorded, in one submission, without waiting.

        Gives the event of the newest submission, None on the cpu. After an error nothing is ready to be read
        that was not before, and what can still run does so at the next call.
        """
        event = None
        if isinstance(self.device, Device):
            self._check_buffers(self.device.queue)
            with self.device.queue.hold() as recorder:
                while self._commands:
                    # Popped one by one: a value that nobody else holds is free after its last command.
                    command = self._commands.popleft()
                    assert isinstance(command, _Dispatch)
                    recorder.dispatch(command.pipeline, command.buffers, command.params, command.grid)
                    del command
                event = self.device.queue.flush("execute")
        else:
            for run in self._commands:
                assert not isinstance(run, _Dispatch)
                run()
            self.device.counters.commands += len(self._commands)
            self._commands.clear()
        for result in self._results:
            if (array := result()) is not None:
                array._ready = True
        self._results.clear()
        return event

    def _check_buffers(self, queue: Queue) -> None:
        """Find out what was freed before anything is recorded."""
        for command in self._commands:
            assert isinstance(command, _Dispatch)
            for buffer in command.buffers:
                queue.size_of(buffer)

    def read(self, array: BatchArray) -> Array:
        """A value as a NumPy array; waits for the GPU."""
        host = self._readable(array)
        if host is not None:
            return host.copy()
        assert isinstance(self.device, Device)
        return self._shaped(array, self.device.read(_buffer(array)))

    async def read_async(self, array: BatchArray) -> Array:
        """The same, letting other tasks run meanwhile."""
        host = self._readable(array)
        if host is not None:
            return host.copy()
        assert isinstance(self.device, Device)
        return self._shaped(array, await self.device.read_async(_buffer(array)))

    def _readable(self, array: BatchArray) -> Array | None:
        self._own("read", array)
        if not array._ready:
            raise BatchError(f"{array!r} cannot be read yet: call execute() first")
        return array._host

    def _shaped(self, array: BatchArray, data: Array) -> Array:
        return data.view(array.dtype).reshape(array.shape)


def _supported(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype not in _DTYPES or not dtype.isnative:
        names = ", ".join(sorted(each.name for each in _DTYPES))
        raise DTypeError(
            f"a batch takes {names}, not {dtype.str if dtype.names is None else dtype}; "
            "convert it with array.astype"
        )
    return dtype


def _copied(host: Array) -> Array:
    try:
        return host.copy()
    except MemoryError as error:
        raise OutOfMemoryError(f"the host has no room for a copy of {host.nbytes:,} bytes: {error}") from None


def _sides(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        sides = tuple(map(index, shape)) if isinstance(shape, Sequence) else (index(shape),)
    except TypeError:
        raise ShapeError(f"a shape is whole numbers, not {shape!r}") from None
    if min(sides, default=0) < 0:
        raise ShapeError(f"an array of shape {sides} cannot be: no side may be negative")
    return sides


def _buffer(array: BatchArray) -> Buffer:
    assert array._buffer is not None
    return array._buffer


def _common(op: str, a: BatchArray, b: BatchArray) -> np.dtype[Any]:
    if a.dtype != b.dtype:
        raise DTypeError(
            f"{op} of {a.dtype.name} and {b.dtype.name}: convert one of them, so that the dtypes are equal"
        )
    return a.dtype


def _broadcast(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> Broadcast:
    if a == b:
        return "none"
    if math.prod(b) == 1:
        return "scalar"
    if a and b[-1:] == a[-1:] and math.prod(b) == a[-1]:
        return "row"
    raise ShapeError(
        f"{op} of {a} and {b}: b must have the shape of a, of one row of a ({a[-1:]}), or one element"
    )


def _compute(op: str, inputs: tuple[BatchArray, ...], result: BatchArray, scalars: tuple[Any, ...]) -> None:
    """The cpu's way: the NumPy reference, with narrow floats widened to f32 as on the GPU."""
    hosts = [each._host for each in inputs]
    narrow = result.dtype in (np.dtype("f2"), _BFLOAT16)
    wide = [each.astype(np.float32) if narrow and each is not None else each for each in hosts]
    with np.errstate(all="ignore"):
        result._host = np.asarray(REFERENCE[op](*wide, *scalars)).astype(result.dtype).reshape(result.shape)
