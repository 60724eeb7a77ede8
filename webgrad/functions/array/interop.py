"""The way in and out: other libraries' arrays and Python's values to tensors, and tensors to them.

In: anything NumPy can read, or that has the buffer protocol or DLPack. Out: Tensors, or host copies of them.
The invariant: what goes out is a copy; what comes in is copied unless `copy=False` asks to share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ... import dtypes, errors
from ...arrays import Array, has_numpy, np
from ...dtypes import DType, as_dtype
from ...errors import ArgumentError, DTypeError, NoAdapterError, ProtocolError
from ...evaluate.evaluate import read
from ...gradients.history import Call, History, grad_mode
from ...graph.node import scalar
from ...graph.op import SCALAR
from ...ops.host_arrays import DTYPE_NAMES, by_dlpack, host_array, leaf_of
from ...runtime.device import AnyDevice, CpuDevice, DeviceLike, open_device
from ...tensor import Tensor, own_array
from ...values import Values

# In


def place(op: str, array: Any, device: Any, *, copy: bool | None = None) -> Tensor:
    """A tensor of an array's values on a device; copy=False shares the array's memory, or raises."""
    return Tensor(leaf_of(op, array, device, copy=copy))


def from_numpy(array: Array, device: DeviceLike = None) -> Tensor:
    """A tensor of a NumPy array's values, copied.

    >>> wg.from_numpy(np.ones(2, np.int8)).dtype
    webgrad.int8
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"from_numpy takes a NumPy array, not a {type(array).__name__}: use webgrad.asarray")
    return place("from_numpy", host_array("from_numpy", array), open_device(device))


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor of the values of another library's array, by DLPack; on their device, or on `device`.

    They are copied, unless `copy=False` asks to share them, on the cpu; then they must not be written to.

    >>> wg.from_dlpack(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """
    if isinstance(x, Tensor):
        where = x.device if device is None else open_device(device)
        if copy is False and where is not x.device:
            raise errors.BufferError(
                f"from_dlpack: copy=False is impossible from {x.device.name} to {where.name}: values must be "
                "copied"
            )
        return Tensor(move(x, where).node)
    if not hasattr(x, "__dlpack__"):
        raise ProtocolError(f"from_dlpack: a {type(x).__name__} has no __dlpack__: use webgrad.asarray")
    array = host_array("from_dlpack", by_dlpack("from_dlpack", x))
    return place("from_dlpack", array, open_device("cpu" if device is None else device), copy=copy)


def move(x: Tensor, device: AnyDevice) -> Tensor:
    """The same values on another device; a gradient goes back to where they came from."""
    if device is x.device:
        return x
    if x.node.sig.op is SCALAR:
        return Tensor(scalar(x.node.storage, x.dtype, device))
    fresh = x.device.is_gpu  # what is read from a GPU is nobody else's, or nobody writes to it
    moved = place(
        "to_device", read(x.node), device, copy=False if fresh and isinstance(device, CpuDevice) else None
    )
    if x.node.history is not None and grad_mode.on:
        home = x.device
        call = Call((x.node,), 1, lambda gradients: [move(gradients[0], home)])
        moved.node.history = History(0, (call,))
    return moved


# Out


def to_numpy(x: Tensor, dtype: Any, copy: bool | None) -> Array:
    """What np.asarray(x) gives."""
    if copy is False:
        raise errors.BufferError("a tensor gives NumPy a copy of its values: copy=False is impossible")
    array = own_array(read(x.node), x)
    return array if dtype is None else array.astype(dtype, copy=False)


def to_dlpack(x: Tensor, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """A DLPack capsule in host memory: a copy, or with copy=False, on the cpu, the values themselves.

    What is shared must not be written to: consumers of DLPack 1.0 are told so.
    """
    if stream is not None:
        raise ArgumentError(f"__dlpack__: the host has no streams, and stream={stream!r} was given")
    if dl_device is not None and tuple(map(int, dl_device)) != x.__dlpack_device__():
        raise errors.BufferError(
            f"a tensor is exported to host memory only, not to DLPack device {tuple(dl_device)}"
        )
    if x.dtype is dtypes.bfloat16:
        raise errors.BufferError(
            "bfloat16 cannot be exported by DLPack: convert with x.astype(webgrad.float32) first"
        )
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    if copy is not False:
        array = own_array(read(x.node), x)
    elif x.device.is_gpu:
        raise errors.BufferError(
            f"copy=False is impossible for a tensor on {x.device.name}: its values must be copied"
        )
    else:
        array = read(x.node).view()
        array.flags.writeable = False
        array = array if versioned else np.asarray(_Exposed(array))
    return array.__dlpack__(max_version=(1, 0)) if versioned and _numpy_versioned() else array.__dlpack__()


class _Exposed:
    """An array's memory as NumPy takes it from others, writable: DLPack before 1.0 knows nothing else."""

    def __init__(self, array: Array) -> None:
        self.array = array
        start = array.__array_interface__["data"][0]
        self.__array_interface__ = array.__array_interface__ | {"data": (start, False)}


@cache
def _numpy_versioned() -> bool:
    """From NumPy 2.1 on; before that capsules are of the old kind, which every consumer takes."""
    return tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)


def restore(array: Any, device: str, requires_grad: bool = False) -> Tensor:
    """A pickled tensor: on the device it was on, or on the default one where there is no such adapter."""
    try:
        where = open_device(device)
    except NoAdapterError:
        where = open_device(None)
    if isinstance(array, Values) and has_numpy():  # it was pickled where there is none
        array = np.frombuffer(array.data, array.dtype.numpy).reshape(array.shape)
    return place("unpickling", array, where).requires_grad_(requires_grad)


def targets_of(targets: Sequence[Any], dtype: Any, device: Any) -> tuple[DType | None, Any]:
    """The dtype and the device that `x.to(...)` names, None where it names none."""
    for each in targets:
        if isinstance(each, Tensor):
            dtype, device = each.dtype, each.device
        elif isinstance(each, AnyDevice) or (isinstance(each, str) and each not in DTYPE_NAMES):
            device = each
        elif each is not None:
            dtype = each
    return None if dtype is None else as_dtype(dtype), device
