"""Values of the host as leaves: arrays, lists, numbers and buffers, in a dtype that webgrad has.

In: anything that NumPy or DLPack reads; without NumPy what `values.py` reads. Out: an array, or `Values`, and
a leaf that holds it on a device.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import dtypes, errors
from ..arrays import Array, has_numpy, np
from ..dtypes import DType, as_dtype
from ..errors import DeviceError, DTypeError, ShapeError
from ..graph.node import Node, leaf, signature
from ..runtime.device import AnyDevice, CpuDevice
from ..runtime.host_buffers import empty
from ..values import NARROW, Values, values_of
from .table import TABLE

DTYPE_NAMES = tuple(each.name for each in (*dtypes.REAL, *dtypes.COMPLEX))
_HOST = (1, 3, 11)  # DLPack's kDLCPU and the two kinds of host memory that a GPU has pinned


def host_array(op: str, value: Any, dtype: DType | None = None) -> Any:
    """A value as an array of a dtype that webgrad has, the one asked for or its own; Values without NumPy.

    Python's numbers have no dtype of their own: lists of floats are float32, of ints int32.
    """
    if not has_numpy():
        return values_of(op, value, dtype)
    if dtype is not None and value.__class__ is np.ndarray and value.dtype is dtype.numpy:
        return value
    if isinstance(value, (bytes, bytearray)):
        value = memoryview(value)
    is_plain = value.__class__ in _PLAIN
    has_dtype = not is_plain and (hasattr(value, "dtype") or hasattr(value, "__array__") or _is_buffer(value))
    array = _by_numpy(op, value)
    own = as_dtype(array.dtype)
    if array.dtype is not own.numpy:
        array = array.astype(own.numpy, copy=False)  # to this machine's byte order
    wanted = dtype or (own if has_dtype else NARROW.get(own, own))
    if not has_dtype and wanted is not own and wanted.kind in "iu" and own.kind in "iu":
        _refuse_overflow(op, array, wanted)
    return array if wanted is own else converted(array, wanted)


_PLAIN = frozenset((list, tuple, bool, int, float))


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _by_numpy(op: str, value: Any) -> Array:
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return by_dlpack(op, value)
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise ShapeError(f"{op}: these values do not make an array: {error}") from None
    except TypeError as error:
        raise DTypeError(f"{op}: a {type(value).__name__} cannot be read as an array: {error}") from None
    if array.dtype.kind in "OSUMmVc" and array.dtype not in _known():
        raise DTypeError(
            f"{op}: a {type(value).__name__} of {array.dtype} values holds no numbers or bools of a type "
            f"that webgrad has: {', '.join(DTYPE_NAMES)}"
        )
    return array


def by_dlpack(op: str, value: Any) -> Array:
    """What another library has in the host's memory."""
    kind = int(value.__dlpack_device__()[0])
    if kind not in _HOST:
        raise DeviceError(
            f"{op}: this {type(value).__name__} is in the memory of another library's device (DLPack kind "
            f"{kind}): copy it to the host first"
        )
    try:
        return np.from_dlpack(value)
    except BufferError as error:
        raise errors.BufferError(f"{op}: this {type(value).__name__} cannot be exported: {error}") from None
    except (RuntimeError, TypeError) as error:
        raise DTypeError(f"{op}: NumPy cannot read this {type(value).__name__} by DLPack: {error}") from None


def _refuse_overflow(op: str, array: Array, dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        outside = int(array.max()) if int(array.max()) > limits.max else int(array.min())
        raise DTypeError(
            f"{op}: {outside} does not fit {dtype.name}, which holds {limits.min} to {limits.max}: pass a "
            "wider type, such as dtype=webgrad.int64"
        )


def converted(array: Any, dtype: DType) -> Any:
    """An array, or Values, in another dtype, by the rule that tensors are converted by."""
    if isinstance(array, Values):
        return array.astype(dtype)
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(
            f"{array.dtype.name} to {dtype.name}: a complex number has two parts: take .real, .imag or abs()"
        )
    row = TABLE["cast"]
    with np.errstate(all="ignore"):
        result: Array = row.numpy(signature(row, array.shape, dtype, None, (dtype,)), array)
    return result


def check_dtype(op: str, dtype: DType, device: AnyDevice) -> None:
    """Refuse a dtype that a device has not."""
    if dtype.feature and dtype.feature not in device.info.features:
        narrow = {"f": "float32", "c": "complex64"}.get(dtype.kind, "int32")
        raise DTypeError(
            f"{op}: {device.name} ({device.info.name}) has no {dtype.name}: pass dtype=webgrad.{narrow}, or "
            "use device='cpu'"
        )


def leaf_of(op: str, array: Any, device: Any, *, copy: bool | None = None) -> Node:
    """A leaf of an array's values on a device; copy=False shares the array's memory, or raises."""
    dtype = as_dtype(array.dtype)
    check_dtype(op, dtype, device)
    if not isinstance(device, CpuDevice):
        if copy is False:
            raise errors.BufferError(
                f"{op}: copy=False is impossible on {device.name}: values must be copied to it"
            )
        storage: Any = device.upload(array)
    elif copy is False:
        if not array.flags.c_contiguous:
            raise errors.BufferError(f"{op}: copy=False is impossible for an array that is not contiguous")
        storage = array.view()
        storage.flags.writeable = False  # what the user may still hold is never written to
    else:
        storage = empty(array.shape, array.dtype)
        np.copyto(storage, array)
    return leaf(storage, array.shape, dtype, device)


@cache
def _known() -> tuple[Any, ...]:
    return tuple(each.numpy for each in (*dtypes.REAL, *dtypes.COMPLEX))
