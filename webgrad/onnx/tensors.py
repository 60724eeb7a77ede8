"""Tensors in ONNX files: as arrays, without a copy where bytes lie as NumPy has them.

In: a Tensor message, and the folder that data outside of the file must be in. Out: an array, read-only. What
a tensor says of its size is compared with the bytes that are there first.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, NoReturn

import webgrad as wg

from ..arrays import Array, np
from ..io.memory_map import is_possible, map_file, shown, view_of
from .protobuf import Message
from .types import ElementType, type_of

__all__ = ["array_of", "sparse_array_of"]

SMALL, MOST_ZEROS = 1 << 20, 4096  # bytes; of a larger sparse tensor's, for each that is there
_OUTSIDE = 1  # a tensor's data_location: in another file
_HALVES = ("float16", "bfloat16")


def array_of(tensor: Message, folder: Path | None) -> Array:
    """The array of a Tensor message."""
    name = shown(tensor.name or "a tensor without a name")
    shape = tuple(tensor.dims)
    if any(size < 0 for size in shape) or not is_possible(shape):
        _fail(name, f"its shape is {list(shape)[:8]}")
    element = type_of(tensor.data_type)
    if tensor.data_location == _OUTSIDE:
        return _of_bytes(_outside(tensor, name, folder), element, shape, name)
    if tensor.has("raw_data"):
        return _of_bytes(np.frombuffer(tensor.raw_data, np.uint8), element, shape, name)
    return _of_numbers(getattr(tensor, element.field), element, shape, name)


def sparse_array_of(sparse: Message, folder: Path | None) -> Array:
    """The array of a SparseTensor message, with its zeros, of which there may not be far more than values."""
    name = shown(sparse.values.name if sparse.values else "a sparse tensor")
    if sparse.values is None or sparse.indices is None:
        _fail(name, "its values or indices are missing")
    values, indices = array_of(sparse.values, folder), array_of(sparse.indices, folder)
    shape = tuple(sparse.dims)
    if any(size < 0 for size in shape) or not is_possible(shape):
        _fail(name, f"its shape is {list(shape)[:8]}")
    if math.prod(shape) * values.itemsize > max(SMALL, MOST_ZEROS * values.nbytes):
        _fail(name, f"{values.size:,} values are there for the shape {list(shape)[:8]}")
    if indices.dtype.kind not in "iu":
        _fail(name, f"its indices are {indices.dtype.name}")
    if indices.ndim == 2:
        if indices.shape[1] != len(shape) or ((indices < 0) | (indices >= shape)).any():
            _fail(name, "its indices are outside of its shape")
        indices = np.ravel_multi_index(tuple(indices.T), shape)
    if indices.shape != values.shape or ((indices < 0) | (indices >= math.prod(shape))).any():
        _fail(name, "its indices are outside of its shape")
    found = np.zeros(math.prod(shape), values.dtype)
    found[indices] = values
    return found.reshape(shape)


def _of_bytes(data: Array, element: ElementType, shape: tuple[int, ...], name: str) -> Array:
    count = math.prod(shape)
    if not element.bits:
        _fail(name, "texts cannot be raw data")
    nbytes = -(-count * element.bits // 8)
    if data.size != nbytes:
        _fail(name, f"{data.size:,} bytes are there, and {element.name} {list(shape)} has {nbytes:,}")
    if element.bits < 8:
        return _unpacked(data, element, count).reshape(shape)
    if element.name == "bool":
        return np.asarray(data != 0).reshape(shape)
    if sys.byteorder == "big":
        data = data.reshape(-1, element.bits // 8)[:, ::-1].reshape(-1)
    return view_of(data, element.numpy, shape)


def _of_numbers(numbers: list[Any], element: ElementType, shape: tuple[int, ...], name: str) -> Array:
    """An array of numbers that are fields: halves and small types by their bits, complex ones in pairs."""
    count = math.prod(shape)
    if element.bits < 8 and element.bits:
        data = np.asarray(numbers, np.int64).astype(np.uint8).reshape(-1)
        return _of_bytes(data, element, shape, name)
    expected = 2 * count if element.name.startswith("complex") else count
    if len(numbers) != expected:
        _fail(name, f"{len(numbers):,} numbers are there, and its shape {list(shape)} has {count:,}")
    if not element.bits:
        return np.array([_text(each) for each in numbers], object).reshape(shape)
    if element.name in _HALVES or element.name.startswith("float8"):
        bits = np.uint16 if element.bits == 16 else np.uint8
        return np.asarray(numbers, np.int64).astype(bits).view(element.numpy).reshape(shape)
    if element.name.startswith("complex"):
        half = np.float32 if element.bits == 64 else np.float64
        return np.asarray(numbers, half).view(element.numpy).reshape(shape)
    if element.name in ("uint64", "uint32"):
        return np.asarray(numbers, np.int64).view(np.uint64).astype(element.numpy).reshape(shape)
    kept = np.float64 if element.field in ("float_data", "double_data") else np.int64
    return np.asarray(numbers, kept).astype(element.numpy).reshape(shape)


def _unpacked(data: Array, element: ElementType, count: int) -> Array:
    """Elements that share bytes, the first in the lowest bits, each in a byte of its own."""
    each = 8 // element.bits
    shifts = np.arange(0, 8, element.bits, dtype=np.uint8)
    codes = ((data.reshape(-1, 1) >> shifts) & (255 >> (8 - element.bits))).reshape(-1)[:count]
    assert len(data) * each >= count
    if element.name.startswith("int"):
        half = 1 << (element.bits - 1)
        return ((codes.astype(np.int8) ^ half) - half).astype(np.int8).astype(element.numpy)
    if element.name.startswith("uint"):
        return codes.astype(element.numpy)
    return codes.astype(np.uint8).view(element.numpy)


def _text(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise wg.ModelFileError("a text in a tensor is no UTF-8") from None


def _outside(tensor: Message, name: str, folder: Path | None) -> Array:
    """The bytes of a tensor that another file of the same folder holds."""
    facts = {each.key: each.value for each in tensor.external_data}
    place = facts.get("location", "")
    if folder is None:
        _fail(name, "its data is in another file, and the model was not read from a folder")
    path = _within(folder, place, name)
    data = map_file(path)
    start, length = _number(facts, "offset", 0, name), _number(facts, "length", None, name)
    end = data.size if length is None else start + length
    if start > data.size or end > data.size:
        _fail(name, f"its data ends at byte {end:,} of {path}, which has {data.size:,}")
    return data[start:end]


def _within(folder: Path, place: str, name: str) -> Path:
    """A file of the model's own folder: no way out of it, by a name or by a link."""
    parts = Path(place.replace("\\", "/")).parts
    if not place or "\0" in place or Path(place).is_absolute() or ".." in parts or ":" in place:
        _fail(name, f"its data is said to be in {shown(place)!r}, which is no file of the model's folder")
    path = folder.joinpath(*parts)
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        inside = False
    if not inside:
        _fail(name, f"its data is said to be in {shown(place)!r}, a link out of the model's folder")
    return path


def _number(facts: dict[str, str], key: str, default: int | None, name: str) -> Any:
    text = facts.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        _fail(name, f"its {key} is {shown(text)!r}, which is no number")
    return int(text)


def _fail(name: str, what: str) -> NoReturn:
    raise wg.ModelFileError(f"the tensor {name} cannot be read: {what}")
