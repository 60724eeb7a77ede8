"""Explicit batches: upload, queue operations, execute them in one submission, read.

In: NumPy arrays and calls such as `matmul` and `relu`. Out: NumPy arrays. Operations are nodes of
the tensor graph, computed by `execute` and no sooner; shapes, dtypes and owners are checked as they are
recorded, so nothing wrong is ever submitted. Plans, pipelines and buffers outlive the batch.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from .arrays import Array, ml_dtypes, np
from .custom import Grid, Kernel
from .dtypes import DType, as_dtype, float32
from .errors import (
    BatchError,
    BufferError,
    DTypeError,
    ForeignBufferError,
    LaunchError,
    OutOfMemoryError,
    ShapeError,
)
from .evaluate.evaluate import compute, evaluation_lock
from .functions.array import elementwise, reductions
from .functions.array.products import matmul
from .functions.learning import activations
from .graph.node import Node, backlog, leaf
from .graph.trace import refuse_in_trace
from .runtime.buffers import Buffer
from .runtime.context import Event
from .runtime.device import CpuDevice, open_device
from .runtime.pipelines import Pipeline
from .runtime.webgpu import Device
from .tensor import Tensor
from .wgsl.packing import ParamValue

# what every GPU has
_DTYPES = frozenset(map(np.dtype, ("f4", "f2", ml_dtypes.bfloat16, "i4", "i2", "i1", "u4", "u2", "u1")))


@dataclass(frozen=True, slots=True)
class _UserLaunch:
    """A recorded launch of a user's own kernel, which may change what operations before it read."""

    before: tuple[Node, ...]  # computed first, whether or not their arrays are alive
    pipeline: Pipeline
    nodes: tuple[Node, ...]
    params: bytes
    grid: tuple[int, int, int]


class BatchArray:
    """A value of a batch: an uploaded array, or an operation's result, once the batch is executed.

    >>> batch = wg.Batch("webgpu")
    >>> y = batch.relu(batch.upload(np.ones((4, 8), np.float32)))
    >>> y.shape, y.nbytes
    ((4, 8), 128)
    """

    __slots__ = ("__weakref__", "_batch", "_node", "_ready")

    def __init__(self, batch: Batch, node: Node, ready: bool) -> None:
        self._batch = batch
        self._node = node
        self._ready = ready

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self._node.sig.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype of its elements."""
        dtype: np.dtype[Any] = np.dtype(self._node.sig.dtype.numpy)
        return dtype

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self._node.sig.size

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self._node.sig.nbytes)

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
        # Results of operations not executed yet; weak, so that what the user drops is not stored.
        self._results: list[weakref.ref[BatchArray]] = []
        self._launches: deque[_UserLaunch] = deque()
        self._sources: list[Buffer] = []  # existing buffers that recorded operations read

    def __len__(self) -> int:
        return len(self._results) + len(self._launches)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} operations on {self.device.name}>"

    # Values

    def upload(self, array: Any, label: str = "") -> BatchArray:
        """A copy of a NumPy array (or anything `np.asarray` takes) on the device."""
        host = np.asarray(array)
        dtype = _supported(host.dtype)
        storage = self.device.upload(host, label) if isinstance(self.device, Device) else _copied(host)
        return BatchArray(self, leaf(storage, host.shape, dtype, self.device), ready=True)

    def empty(self, shape: int | Sequence[int], dtype: Any = np.float32) -> BatchArray:
        """A value without contents, for a kernel of your own to write to."""
        sizes, kind = _shape(shape), _supported(np.dtype(dtype))
        if isinstance(self.device, Device):
            storage: Any = self.device.allocate(math.prod(sizes) * kind.itemsize, f"empty {sizes}")
        else:
            storage = _copied(np.broadcast_to(np.zeros((), kind.numpy), sizes))
        return self._result(leaf(storage, sizes, kind, self.device))

    def import_buffer(
        self, buffer: BatchArray | Buffer, shape: int | Sequence[int] | None = None, dtype: Any = None
    ) -> BatchArray:
        """Use an executed value of another batch, or a device's buffer (float32), or reinterpret it."""
        storage: Any = buffer
        if isinstance(buffer, BatchArray):
            if buffer._batch.device is not self.device:
                raise ForeignBufferError(
                    f"{buffer!r} is not on this batch's device, {self.device.name}: read it, upload it here"
                )
            if not buffer._ready:
                raise BatchError(f"{buffer!r} has no value yet: execute its own batch first")
            storage = buffer._node.storage
            shape, dtype = buffer.shape if shape is None else shape, dtype or buffer.dtype
        elif not isinstance(self.device, Device) or getattr(buffer, "queue", None) is not self.device.queue:
            raise ForeignBufferError(
                f"{buffer!r} is not a buffer of {self.device.name}: upload its contents instead"
            )
        if isinstance(self.device, Device):
            self.device.queue.size_of(storage)  # raises where it was freed
        kind = _supported(np.dtype(dtype or np.float32))
        sizes = _shape(buffer.nbytes // kind.itemsize if shape is None else shape)
        nbytes = math.prod(sizes) * kind.itemsize
        if nbytes != buffer.nbytes:
            raise ShapeError(
                f"{buffer!r} cannot be reinterpreted as {kind.name} of shape {sizes}: {nbytes} bytes"
            )
        if not isinstance(self.device, Device):
            storage = storage.reshape(-1).view(kind.numpy).reshape(sizes)
        return BatchArray(self, leaf(storage, sizes, kind, self.device), ready=True)

    # Operations

    def matmul(self, a: BatchArray, b: BatchArray, *, transposed: bool = False) -> BatchArray:
        """a @ b for a of shape (…, k) and b of (k, n), or of (n, k) when `transposed`."""
        self._check("matmul", "f", a, b)
        if not a.shape or len(b.shape) != 2 or a.shape[-1] != b.shape[1 if transposed else 0]:
            layout = "(n, k)" if transposed else "(k, n)"
            raise ShapeError(
                f"matmul of {a.shape} and {b.shape}: a must be (…, k) and b {layout} with the same k"
            )
        return self._record(lambda x, y: matmul(x, y.T if transposed else y), a, b)

    def add(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a + b; b may also be one row of a, or one element."""
        return self._binary("add", "fiu", elementwise.add, a, b)

    def sub(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a - b; b may also be one row of a, or one element."""
        return self._binary("sub", "fiu", elementwise.subtract, a, b)

    def mul(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a * b; b may also be one row of a, or one element."""
        return self._binary("mul", "fiu", elementwise.multiply, a, b)

    def div(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """a / b, for floats; b may also be one row of a, or one element."""
        return self._binary("div", "f", elementwise.divide, a, b)

    def scale(self, x: BatchArray, factor: float) -> BatchArray:
        """x times a number."""
        try:
            number = float(factor)
        except (TypeError, ValueError):
            raise DTypeError(
                f"scale takes a number, not a {type(factor).__name__}; mul takes two arrays"
            ) from None
        return self._unary("scale", "f", lambda tensor: tensor * number, x)

    def relu(self, x: BatchArray) -> BatchArray:
        """max(x, 0)."""
        return self._unary("relu", "fi", activations.relu, x)

    def gelu(self, x: BatchArray) -> BatchArray:
        """x · Φ(x), the exact form."""
        return self._unary("gelu", "f", activations.gelu, x)

    def sigmoid(self, x: BatchArray) -> BatchArray:
        """1 / (1 + e⁻ˣ)."""
        return self._unary("sigmoid", "f", elementwise.sigmoid, x)

    def tanh(self, x: BatchArray) -> BatchArray:
        """The hyperbolic tangent."""
        return self._unary("tanh", "f", elementwise.tanh, x)

    def silu(self, x: BatchArray) -> BatchArray:
        """x · sigmoid(x), and 0 at minus infinity."""
        return self._unary("silu", "f", _silu, x)

    def softmax(self, x: BatchArray) -> BatchArray:
        """Softmax along the last axis."""
        self._check("softmax", "f", x)
        if not x.shape:
            raise ShapeError("softmax of a 0-d array: it has no axis")
        return self._record(activations.softmax, x)

    def dot(self, a: BatchArray, b: BatchArray) -> BatchArray:
        """The sum of a * b, as a 0-d value; both of one shape."""
        self._check("dot", "fiu", a, b)
        if a.shape != b.shape:
            raise ShapeError(f"dot of {a.shape} and {b.shape}: the shapes must be equal")
        return self._record(_dot, a, b)

    def run(
        self,
        kernel: Kernel,
        /,
        *arrays: BatchArray,
        grid: Grid | None = None,
        threads: Grid | None = None,
        **params: ParamValue,
    ) -> None:
        """Record a launch of your own kernel; arrays that it writes can be read after `execute`."""
        self._own("run", arrays)
        if not isinstance(kernel, Kernel):
            raise LaunchError(f"run takes a kernel made by webgrad.kernel, not a {type(kernel).__name__}")
        if not isinstance(self.device, Device) or kernel.device is not self.device:
            raise ForeignBufferError(
                f"{kernel!r} was made for {kernel.device.name}, this batch is on {self.device.name}"
            )
        pipeline, data, workgroups = kernel.prepare(arrays, grid, threads, params)
        self._read_by(arrays)
        before, nodes = (tuple(each._node for each in some) for some in (self._waiting(), arrays))
        self._launches.append(_UserLaunch(before, pipeline, nodes, data, workgroups))

    # Recording

    def _unary(self, op: str, kinds: str, function: Callable[[Tensor], Tensor], x: BatchArray) -> BatchArray:
        self._check(op, kinds, x)
        return self._record(function, x)

    def _binary(
        self, op: str, kinds: str, function: Callable[[Tensor, Tensor], Tensor], a: BatchArray, b: BatchArray
    ) -> BatchArray:
        self._check(op, kinds, a, b)
        shape = _broadcast_shape(op, a.shape, b.shape)
        return self._record(lambda x, y: function(x, y.reshape(shape)), a, b)

    def _record(self, function: Callable[..., Tensor], *arrays: BatchArray) -> BatchArray:
        self._read_by(arrays)
        with backlog.paused():
            return self._result(function(*[Tensor(each._node) for each in arrays]).node)

    def _result(self, node: Node) -> BatchArray:
        value = BatchArray(self, node, ready=False)
        self._results.append(weakref.ref(value))
        return value

    def _waiting(self) -> list[BatchArray]:
        """The results that are still alive."""
        found = [each() for each in self._results]
        return [each for each in found if each is not None]

    def _read_by(self, arrays: Iterable[BatchArray]) -> None:
        """Record the buffers that an operation reads, which must exist when it runs."""
        if isinstance(self.device, Device):
            self._sources += [each._node.storage for each in arrays if each._ready]

    def _own(self, op: str, arrays: Iterable[BatchArray]) -> None:
        for array in arrays:
            if not isinstance(array, BatchArray):
                raise BufferError(
                    f"{op} takes values of this batch, not a {type(array).__name__}: upload it first"
                )
            if array._batch is not self:
                raise ForeignBufferError(
                    f"{op}: {array!r} belongs to another batch; bring it in with import_buffer"
                )

    def _check(self, op: str, kinds: str, *arrays: BatchArray) -> None:
        """Refuse values of other batches, dtypes that differ, and dtypes that an op does not take."""
        self._own(op, arrays)
        names = [each._node.sig.dtype.name for each in arrays]
        if len(set(names)) > 1:
            raise DTypeError(
                f"{op} of {' and '.join(names)}: convert one of them, so that the dtypes are equal"
            )
        if arrays[0]._node.sig.dtype.kind not in kinds:
            offered = ", ".join(sorted(str(each) for each in _DTYPES if as_dtype(each).kind in kinds))
            raise DTypeError(f"{op} is not offered for {names[0]}, only for {offered}; convert it first")

    # Running

    def execute(self) -> Event | None:
        """Run what was recorded, in one submission, without waiting.

        Gives the event of the newest submission, None on the cpu. After an error no further values are
        readable, and what can still run does so at the next call.
        """
        refuse_in_trace("a batch is executed")
        event = None
        results = self._waiting()
        if isinstance(self.device, Device):
            queue = self.device.queue
            for buffer in self._sources:  # raises for a freed buffer before anything is recorded
                queue.size_of(buffer)
            with evaluation_lock(), queue.hold() as recorder:
                while self._launches:
                    launch = self._launches[0]
                    compute([*launch.before, *launch.nodes])
                    buffers = [each.storage for each in launch.nodes]
                    recorder.dispatch(launch.pipeline, buffers, launch.params, launch.grid)
                    self._launches.popleft()  # so that a call after an error does not run it again
                compute([each._node for each in results])
                event = queue.flush("execute")
        else:
            compute([each._node for each in results])
        self._results.clear()
        self._sources.clear()
        for each in results:
            each._ready = True
        return event

    def read(self, array: BatchArray) -> Array:
        """A value as a NumPy array; waits for the GPU."""
        storage = self._readable(array)
        return _shaped(
            array, self.device.read(storage) if isinstance(self.device, Device) else storage.copy()
        )

    async def read_async(self, array: BatchArray) -> Array:
        """The same, letting other tasks run meanwhile."""
        storage = self._readable(array)
        if isinstance(self.device, Device):
            return _shaped(array, await self.device.read_async(storage))
        return _shaped(array, storage.copy())

    def _readable(self, array: BatchArray) -> Any:
        self._own("read", (array,))
        if not array._ready:
            raise BatchError(f"{array!r} cannot be read yet: call execute() first")
        return array._node.storage


def _silu(x: Tensor) -> Tensor:
    return elementwise.where(x == -math.inf, 0.0, activations.silu(x))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """16-bit floats are widened first, so that products and sums are not rounded on the way."""
    if a.dtype.kind == "f":
        return reductions.sum(a.astype(float32) * b.astype(float32)).astype(a.dtype)
    return reductions.sum(a * b, dtype=a.dtype)


def _supported(dtype: np.dtype[Any]) -> DType:
    if dtype not in _DTYPES or not dtype.isnative:
        names = ", ".join(sorted(each.name for each in _DTYPES))
        raise DTypeError(
            f"a batch takes {names}, not {dtype.str if dtype.names is None else dtype}; "
            "convert it with array.astype"
        )
    return as_dtype(dtype)


def _copied(host: Array) -> Array:
    try:
        return host.copy()
    except MemoryError as error:
        raise OutOfMemoryError(f"the host has no room for a copy of {host.nbytes:,} bytes: {error}") from None


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(map(index, shape)) if isinstance(shape, Sequence) else (index(shape),)
    except TypeError:
        raise ShapeError(f"a shape is made of integers, not {shape!r}") from None
    if min(sizes, default=0) < 0:
        raise ShapeError(f"an array cannot have shape {sizes}: no size may be negative")
    return sizes


def _shaped(array: BatchArray, data: Array) -> Array:
    return data.view(array.dtype).reshape(array.shape)


def _broadcast_shape(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of b that broadcasts with a: a's own, one row of it, or one element."""
    if a == b:
        return b
    elements = math.prod(b)
    if elements == 1 and 0 not in a:
        return ()
    if a and b[-1:] == a[-1:] and elements == a[-1]:
        return a[-1:]
    raise ShapeError(
        f"{op} of {a} and {b}: b must have the shape of a, of one row of a ({a[-1:]}), or one element"
    )
