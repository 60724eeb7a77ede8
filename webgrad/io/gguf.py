"""GGUF, versions 2 and 3: metadata and tensors of language models, in one file.

In: a file's bytes, from anywhere. Out: `Contents`. Every count, length, type and place is compared with the
bytes that are there before it is used: a file that lies is refused, and costs no more than its own size.
"""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import Any, NoReturn

import webgrad as wg

from ..arrays import Array, np
from .gguf_types import ARRAY, BOOL, NUMBERS, TEXT, TYPES, TensorType
from .memory_map import is_possible, map_file, shown, view_of
from .quantised_rows import Blocks
from .weights import Contents, Row

__all__ = [
    "ALIGNMENT",
    "HEAD",
    "MAGIC",
    "MAX_DIMENSIONS",
    "NESTING",
    "PAIRS",
    "TENSORS",
    "part_names",
    "read_gguf",
]

MAGIC = b"GGUF"
ALIGNMENT = 32  # of tensors, where general.alignment does not say otherwise
MAX_DIMENSIONS = 4  # the most that a tensor has
HEAD = 1 << 27  # bytes: metadata and the list of tensors end before this
_KEY = 1 << 16  # bytes of a name
TENSORS = 1 << 15
PAIRS = 1 << 16
_ITEMS = 1 << 21  # texts in arrays, and numbers in lists, all together: what a second is enough for
_ARRAYS = 1 << 16  # arrays in arrays, all together
NESTING = 4
_LONG = 1024  # arrays of so many numbers stay arrays
_LARGEST_ALIGNMENT = 1 << 20
_PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
_UNSIGNED, _PAIR = struct.Struct("<Q"), struct.Struct("<IQ")


def read_gguf(path: Path) -> Contents:
    """What is in a GGUF file; of one that is a part of several, what is in all of them."""
    found = _read_file(path)
    count = found.metadata.get("split.count", 1)
    return found if count in (0, 1) else _read_parts(path, found, count)


def _read_parts(path: Path, found: Contents, count: Any) -> Contents:
    """All parts of a model that was split: the first has the metadata, each has some of the tensors."""
    names = part_names(path.name)
    if type(count) is not int or len(names) != count:
        raise wg.ModelFileError(
            f"{path} is one of {shown(str(count))} parts of a model (split.count), which are found by their "
            "names: NAME-00001-of-00003.gguf and so on, in one folder; give it its name back"
        )
    parts = []
    for number, name in enumerate(names):
        beside = path.with_name(name)
        if not beside.exists():
            raise wg.ModelFileError(f"{path} is one of {count} parts of a model, and {beside} is missing")
        part = found if name == path.name else _read_file(beside)
        told = part.metadata.get("split.count"), part.metadata.get("split.no", number)
        if told != (count, number):
            raise wg.ModelFileError(
                f"{beside} is named as part {number + 1} of {count}, and says itself that it is "
                f"split.no={shown(str(told[1]))} of split.count={shown(str(told[0]))}"
            )
        parts.append(part)
    rows: dict[str, Row] = {}
    for name, part in zip(names, parts, strict=True):
        twice = next((each for each in part.rows if each in rows), None)
        if twice is not None:
            raise wg.ModelFileError(f"{path.with_name(name)}: an earlier part has {shown(twice)} too")
        rows |= part.rows
    total = parts[0].metadata.get("split.tensors.count", len(rows))
    if total != len(rows):
        raise wg.ModelFileError(
            f"{path}: its {count} parts have {len(rows):,} tensors, and split.tensors.count is "
            f"{shown(str(total))}: fetch them again"
        )
    return Contents("gguf", parts[0].metadata, rows)


def part_names(name: str) -> list[str]:
    """The names of all parts of a split GGUF model, of which this is one; none where it is no part's name.

    >>> wg.io.part_names("model-00002-of-00002.gguf")
    ['model-00001-of-00002.gguf', 'model-00002-of-00002.gguf']
    """
    found = _PART.fullmatch(name)
    if found is None or not 1 <= int(found[2]) <= int(found[3]):
        return []
    return [f"{found[1]}-{number:05}-of-{found[3]}.gguf" for number in range(1, int(found[3]) + 1)]


def _read_file(path: Path) -> Contents:
    data = map_file(path)
    cursor = _Cursor(path, data)
    _check_version(cursor, bytes(data[:4]))
    tensors, pairs = cursor.unsigned(), cursor.unsigned()
    cursor.check_count(tensors, TENSORS, 24, "tensors")  # a name's length, sizes, type and place
    cursor.check_count(pairs, PAIRS, 13, "values")
    metadata = _metadata(cursor, pairs)
    listed = [_listed(cursor) for _ in range(tensors)]
    alignment = _alignment(cursor, metadata)
    start = -(-cursor.at // alignment) * alignment
    return Contents("gguf", metadata, _rows(cursor, data[start:], alignment, listed))


def _check_version(cursor: _Cursor, magic: bytes) -> None:
    if magic != MAGIC:
        raise wg.ModelFileError(
            f"{cursor.path} is no GGUF file: it begins with {magic!r}, not with {MAGIC!r}"
        )
    cursor.at = 4
    version = cursor.number(4)
    if version in (2, 3):
        return
    if version in (2 << 24, 3 << 24):
        raise wg.ModelFileError(
            f"{cursor.path} is a big-endian GGUF file, which webgrad does not read: get or make "
            "a little-endian one"
        )
    raise wg.ModelFileError(
        f"{cursor.path} is GGUF of version {version}, and webgrad reads 2 and 3: convert the model anew"
    )


class _Cursor:
    """A place in the head of a file, which moves on as numbers and texts are read, and never over its end."""

    __slots__ = ("arrays", "at", "end", "items", "path", "view")

    def __init__(self, path: Path, data: Array) -> None:
        self.path = path
        self.view = memoryview(data.data)
        self.at = 0
        self.end = min(len(data), HEAD)
        self.items = self.arrays = 0  # how many there were in arrays

    def fail(self, what: str) -> NoReturn:
        raise wg.ModelFileError(f"{self.path} is damaged: {what}")

    def take(self, nbytes: int, what: str) -> int:
        """Where so many bytes begin; the cursor goes behind them."""
        start = self.at
        if nbytes > self.end - start:
            limit = "the file ends" if self.end < HEAD else f"its head may have {HEAD:,} bytes"
            self.fail(f"{what} at byte {start:,} is {nbytes:,} bytes, and {limit} at {self.end:,}")
        self.at = start + nbytes
        return start

    def check_count(self, count: int, limit: int, least: int, what: str) -> None:
        """Whether so many can follow: by the limit, and by the least bytes that each of them takes."""
        if count > limit:
            self.fail(f"it says that it has {count:,} {what}, and the limit is {limit:,}")
        if count * least > self.end - self.at:
            self.fail(f"it says that it has {count:,} {what}, and is too short for them")

    def number(self, nbytes: int) -> int:
        start = self.take(nbytes, "a number")
        return int.from_bytes(self.view[start : start + nbytes], "little")

    def unsigned(self) -> int:
        start = self.take(8, "a number")
        value: int = _UNSIGNED.unpack_from(self.view, start)[0]
        return value

    def text(self, what: str, limit: int = HEAD) -> str:
        length = self.unsigned()
        if length > limit:
            self.fail(f"{what} is said to have {length:,} bytes, and the limit is {limit:,}")
        start = self.take(length, what)
        try:
            return str(self.view[start : self.at], "utf-8")
        except UnicodeDecodeError as error:
            self.fail(f"{what} at byte {start:,} is no UTF-8 text: {error.reason}")


# Metadata


def _metadata(cursor: _Cursor, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(count):
        key = cursor.text("the name of a value", _KEY)
        if key in found:
            cursor.fail(f"it has the value {shown(key)} twice")
        found[key] = _value(cursor, cursor.number(4), shown(key))
    return found


def _value(cursor: _Cursor, type_: int, key: str) -> Any:
    if type_ == TEXT:
        return cursor.text(key)
    if type_ == ARRAY:
        return _array(cursor, key, 1)
    return _numbers(cursor, type_, 1, key)[0].item()


def _array(cursor: _Cursor, key: str, depth: int) -> Any:
    if depth > NESTING:
        cursor.fail(f"{key} has arrays in arrays, more than {NESTING} deep")
    type_, count = _PAIR.unpack_from(cursor.view, cursor.take(12, key))
    if type_ == TEXT:
        return _texts(cursor, count, key)
    if type_ == ARRAY:
        cursor.arrays += count
        cursor.check_count(cursor.arrays, _ARRAYS, 0, "arrays in arrays")
        cursor.check_count(count, _ARRAYS, 12, "arrays in arrays")
        return [_array(cursor, key, depth + 1) for _ in range(count)]
    numbers = _numbers(cursor, type_, count, key)
    if count >= _LONG:
        return numbers.copy()
    cursor.items += count
    cursor.check_count(cursor.items, _ITEMS, 0, "numbers in short arrays")
    return numbers.tolist()


def _numbers(cursor: _Cursor, type_: int, count: int, key: str) -> Array:
    dtype = np.dtype(np.uint8) if type_ == BOOL else NUMBERS.get(type_)
    if dtype is None:
        cursor.fail(f"{key} is of type {type_}, which GGUF does not have")
    start = cursor.take(count * dtype.itemsize, key)
    numbers: Array = np.frombuffer(cursor.view, dtype, count, start) if count else np.empty(0, dtype)
    if type_ != BOOL:
        return numbers
    if count and numbers.max() > 1:
        cursor.fail(f"{key} is a bool, and neither 0 nor 1")
    return numbers.view(np.bool_)


def _texts(cursor: _Cursor, count: int, key: str) -> list[str]:
    """An array of texts. Vocabularies have hundreds of thousands, so this loop calls as little as it can."""
    cursor.items += count
    cursor.check_count(cursor.items, _ITEMS, 0, "texts in arrays")
    cursor.check_count(count, _ITEMS, 8, "texts")
    view, at, end, length_at = cursor.view, cursor.at, cursor.end, _UNSIGNED.unpack_from
    found = []
    try:
        for _ in range(count):
            (length,) = length_at(view, at)
            start = at + 8
            at = start + length
            if at > end:
                cursor.fail(f"a text of {key} at byte {start:,} is {length:,} bytes, longer than the file")
            found.append(str(view[start:at], "utf-8"))
    except UnicodeDecodeError as error:
        cursor.fail(f"a text of {key} is no UTF-8: {error.reason}")
    except struct.error:
        cursor.fail(f"the file ends within {key}")
    cursor.at = at
    return found


def _alignment(cursor: _Cursor, metadata: dict[str, Any]) -> int:
    value = metadata.get("general.alignment", ALIGNMENT)
    if type(value) is not int or not 1 <= value <= _LARGEST_ALIGNMENT or value & (value - 1):
        cursor.fail(f"general.alignment is {value!r}, not a power of two up to {_LARGEST_ALIGNMENT:,}")
    return value


# Tensors

_Listed = tuple[str, tuple[int, ...], int, int]  # name, sizes in NumPy's order, type, place


def _listed(cursor: _Cursor) -> _Listed:
    name = cursor.text("the name of a tensor", _KEY)
    count = cursor.number(4)
    if count > MAX_DIMENSIONS:
        cursor.fail(f"{shown(name)} has {count:,} dimensions, and GGUF has up to {MAX_DIMENSIONS}")
    sizes = tuple(cursor.unsigned() for _ in range(count))
    if not is_possible(sizes):
        cursor.fail(f"{shown(name)} has the shape {sizes}, which no memory holds")
    return name, sizes[::-1], cursor.number(4), cursor.unsigned()


def _rows(cursor: _Cursor, data: Array, alignment: int, listed: list[_Listed]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    places = []
    for name, shape, number, start in listed:
        type_ = TYPES.get(number, TensorType(f"type {number}", 1, 0))
        label = shown(name)
        if name in rows:
            cursor.fail(f"it has the tensor {label} twice")
        if start % alignment:
            cursor.fail(f"{label} begins at byte {start:,} of the data, no multiple of {alignment}")
        if shape and shape[-1] % type_.weights:
            cursor.fail(f"{label} is {type_.name} of shape {shape}, with rows that are not whole blocks")
        nbytes = math.prod(shape) // type_.weights * type_.nbytes
        if start + nbytes > len(data):
            cursor.fail(
                f"{label} lies from byte {start:,} to {start + nbytes:,} of the data, and there are "
                f"{len(data):,}: fetch the file again"
            )
        places.append((start, nbytes, label))
        rows[name] = _row(cursor.path, label, type_, shape, data[start : start + nbytes])
    _check_apart(cursor, places)
    return rows


def _check_apart(cursor: _Cursor, places: list[tuple[int, int, str]]) -> None:
    end, before = 0, ""
    for start, nbytes, name in sorted(each for each in places if each[1]):
        if start < end:
            cursor.fail(f"{before} and {name} lie in the same bytes")
        end, before = start + nbytes, name


def _row(path: Path, name: str, type_: TensorType, shape: tuple[int, ...], data: Array) -> Row:
    def host() -> Array | Blocks:
        if type_.dtype is not None:
            return view_of(data, type_.dtype, shape)
        if not type_.is_readable or not shape:
            known = ", ".join(each.name for each in TYPES.values() if each.is_readable)
            raise wg.ModelFileError(
                f"{path}: {name} is {type_.name} of shape {shape}, and webgrad has {known}: get or make the "
                "model in one of these"
            )
        row = shape[-1] // type_.weights * type_.nbytes
        return Blocks(type_.name, shape, data.reshape(math.prod(shape[:-1]), row))

    return Row(type_.name, shape, len(data), host)
