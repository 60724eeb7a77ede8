"""Writing GGUF: metadata, then tensors one after the other, each at a multiple of the alignment.

In: tensors, arrays and quantised rows by name, and values beside them. Out: a file of version 3. Everything
is checked before the first byte is written, and one tensor at a time is in the host's memory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import webgrad as wg

from ..arrays import np
from ..ops.blocks import FORMATS
from .gguf import ALIGNMENT, HEAD, MAGIC, MAX_DIMENSIONS, NESTING, PAIRS, TENSORS
from .gguf_types import ARRAY, BOOL, NUMBERS, TEXT, TYPE_NUMBERS, TYPES
from .quantised_rows import Blocks

__all__ = ["GGUF_FORMATS", "dtype_of", "gguf_parts"]

# What tensors can be turned into
GGUF_FORMATS = ("F32", "F16", "BF16", *(each.name for each in FORMATS.values() if each.can_quantise))
_NAME = 64  # bytes of a tensor's name, says the format
_VALUE_NUMBERS = {dtype: number for number, dtype in NUMBERS.items()}
_BY_DTYPE = {each.dtype: each.name for each in TYPES.values() if each.dtype is not None}


@dataclass(frozen=True, slots=True)
class _Planned:
    """A tensor and the form that it will have."""

    name: str
    value: Any
    form: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        type_ = TYPES[TYPE_NUMBERS[self.form]]
        return math.prod(self.shape) // type_.weights * type_.nbytes


def gguf_parts(
    tensors: Mapping[str, Any], metadata: Mapping[str, Any], format: str | None
) -> Iterator[bytes]:
    """The parts of a file, to be written one after the other; what cannot be written raises now."""
    wanted = _format(format)
    _check_limit(len(tensors), TENSORS, "tensors")
    _check_limit(len(metadata), PAIRS, "values beside them")
    planned = [_planned(name, value, wanted) for name, value in tensors.items()]
    values = [_text(key, "a name") + _value(key, value) for key, value in metadata.items()]
    alignment = _alignment(metadata)
    listed, end = [], 0
    for each in planned:
        listed.append(_listed(each, end))
        end = _up(end + each.nbytes, alignment)
    head = b"".join([MAGIC, struct.pack("<IQQ", 3, len(planned), len(values)), *values, *listed])
    _check_limit(len(head), HEAD, "bytes of metadata")
    return (_padded(part, alignment) for part in chain([head], map(_bytes, planned)))


def _check_limit(count: int, limit: int, what: str) -> None:
    if count > limit:
        raise wg.ArgumentError(f"io.save: {count:,} {what} are too many for a .gguf file: it has {limit:,}")


def _format(name: str | None) -> str | None:
    if name is None:
        return None
    if str(name).upper() not in GGUF_FORMATS:
        raise wg.ArgumentError(f"io.save: format is one of {', '.join(GGUF_FORMATS)}, not {name!r}")
    return name.upper()


def _up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _padded(data: bytes, alignment: int) -> bytes:
    return data + bytes(_up(len(data), alignment) - len(data))


def _alignment(metadata: Mapping[str, Any]) -> int:
    value = metadata.get("general.alignment", ALIGNMENT)
    if isinstance(value, bool) or not isinstance(value, int) or not 8 <= value <= 4096 or value & (value - 1):
        raise wg.ArgumentError(
            f"io.save: general.alignment is a power of two from 8 to 4096, as an int, not {value!r}"
        )
    return value


# Tensors


def _planned(name: Any, value: Any, format: str | None) -> _Planned:
    if not isinstance(name, str) or not 0 < len(name.encode(errors="replace")) <= _NAME:
        raise wg.ArgumentError(f"io.save: {name!r} cannot name a tensor in GGUF: texts up to {_NAME} bytes")
    if not isinstance(value, wg.Tensor | wg.QuantisedTensor | Blocks | np.ndarray | np.generic):
        raise wg.DTypeError(f"io.save: {name} is a {type(value).__name__}, not a tensor or a NumPy array")
    if len(value.shape) > MAX_DIMENSIONS:
        raise wg.ShapeError(
            f"io.save: {name} has the shape {value.shape}, and GGUF has up to {MAX_DIMENSIONS} dimensions"
        )
    return _Planned(name, value, _form(name, value, format), tuple(value.shape))


def dtype_of(name: str, value: Any) -> wg.DType:
    """The data type of a tensor or an array that is to be written."""
    try:
        return wg.as_dtype(value.dtype)
    except wg.DTypeError as error:
        raise wg.DTypeError(f"io.save: {name}: {error}") from None


def _form(name: str, value: Any, format: str | None) -> str:
    """What a tensor will be: blocks stay as they are, and so do integers; matrices become `format`."""
    if isinstance(value, wg.QuantisedTensor | Blocks):
        return value.format
    dtype = dtype_of(name, value)
    own = _BY_DTYPE.get(dtype.numpy)
    if own is None:
        raise wg.DTypeError(
            f"io.save: {name} is {dtype.name}, and GGUF has {', '.join(_BY_DTYPE.values())}: save "
            f"{'its webgrad.view_as_real()' if dtype.kind == 'c' else 'its astype() of one of these'}"
        )
    if format is None or dtype.kind != "f":
        return own
    is_whole = value.shape and value.shape[-1] % TYPES[TYPE_NUMBERS[format]].weights == 0
    return format if len(value.shape) == 2 and is_whole else "F32"


def _listed(planned: _Planned, place: int) -> bytes:
    sizes = planned.shape[::-1]
    return _text(planned.name, "a name") + struct.pack(
        f"<I{len(sizes)}QIQ", len(sizes), *sizes, TYPE_NUMBERS[planned.form], place
    )


def _bytes(planned: _Planned) -> bytes:
    value, form = planned.value, planned.form
    if isinstance(value, wg.QuantisedTensor):
        return value.to_blocks()
    if isinstance(value, Blocks):
        return value.data.tobytes()
    dtype = TYPES[TYPE_NUMBERS[form]].dtype
    if dtype is None:
        tensor = value if isinstance(value, wg.Tensor) else wg.asarray(value, device="cpu")
        return wg.quantise(tensor, form).to_blocks()
    array = value.numpy() if isinstance(value, wg.Tensor) else np.asarray(value)
    return array.astype(dtype, copy=False).tobytes()  # row by row, whatever the layout


# Values


def _text(value: str, what: str) -> bytes:
    if not isinstance(value, str):
        raise wg.ArgumentError(f"io.save: {what} in GGUF's metadata is a text, not {value!r}")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise wg.ArgumentError(f"io.save: {what} in GGUF's metadata cannot be written: {value!r}") from None
    return struct.pack("<Q", len(data)) + data


def _value(key: str, value: Any) -> bytes:
    type_, data = _typed(key, value)
    return struct.pack("<I", type_) + data


def _typed(key: str, value: Any) -> tuple[int, bytes]:
    """A value's type and bytes. Ints and floats have 32 bits where these do; NumPy's are as they are."""
    if isinstance(value, str):
        return TEXT, _text(value, key)
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return ARRAY, _array(key, value)
    return _numbers(key, np.asarray(value) if isinstance(value, np.generic) else [value])


def _array(key: str, values: Any, depth: int = 1) -> bytes:
    if depth > NESTING:
        raise wg.ArgumentError(f"io.save: {key} has lists in lists, more than {NESTING} deep")
    if isinstance(values, np.ndarray) and values.ndim == 1:
        type_, data = _numbers(key, values)
    elif all(isinstance(value, list | tuple | np.ndarray) for value in values) and len(values):
        type_, data = ARRAY, b"".join(_array(key, value, depth + 1) for value in values)
    elif all(isinstance(value, str) for value in values) and len(values):
        type_, data = TEXT, b"".join(_text(value, key) for value in values)
    else:
        type_, data = _numbers(key, values)
    return struct.pack("<IQ", type_, len(values)) + data


def _numbers(key: str, values: Any) -> tuple[int, bytes]:
    array = values if isinstance(values, np.ndarray) else np.asarray(values, _dtype(key, values))
    if array.dtype == np.bool_:
        return BOOL, array.tobytes()
    little = array.dtype.newbyteorder("<") if array.dtype.kind in "iuf" else array.dtype
    number = _VALUE_NUMBERS.get(little)
    if number is None:
        raise wg.ArgumentError(f"io.save: {key} is of {array.dtype.name}, which GGUF's metadata do not have")
    return number, array.astype(little, copy=False).tobytes()


def _dtype(key: str, values: Sequence[Any]) -> np.dtype[Any]:
    """The smallest of the usual types that holds all of these: what other writers choose, too."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return np.dtype(np.bool_)
    if kinds == {int} or not kinds:
        low, high = min(values, default=0), max(values, default=0)
        for dtype in ("<u4", "<i4", "<i8", "<u8") if len(values) == 1 else ("<i4", "<u4", "<i8", "<u8"):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return np.dtype(dtype)
        raise wg.ArgumentError(f"io.save: {key} has a number that does not fit in 64 bits")
    if kinds <= {int, float}:
        largest = float(np.finfo(np.float32).max)
        return np.dtype("<f8" if any(largest < abs(value) < math.inf for value in values) else "<f4")
    if all(isinstance(value, np.generic) for value in values):
        return np.asarray(values).dtype
    raise wg.ArgumentError(
        f"io.save: {key} is {str(values)[:60]}: values in GGUF are texts, numbers, bools, and lists of one "
        "of these"
    )
