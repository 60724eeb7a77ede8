"""NumPy's files: one array (.npy) or several (.npz, a zip of them), without pickle.

In: a file, from anywhere. Out: `Contents`. An array's header is read by a pattern and never evaluated; sizes
are compared with the bytes that are there, and what a zip unpacks to with how large it is itself.
"""

from __future__ import annotations

import math
import re
import zipfile
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from .memory_map import is_possible, map_file, view_of
from .weights import Contents, Row
from .zips import open_zip, unpacked

__all__ = ["FORMS", "MAGIC", "ONLY", "read_npy", "read_npz"]

MAGIC = b"\x93NUMPY"
ONLY = "arr_0"  # what np.savez calls an array without a name
_HEADER = 1 << 16  # bytes
_DIRECTORY, _MEMBERS = 1 << 20, 1 << 13  # of a zip: bytes of its list of files, and how many
_FREE, _RATIO = 1 << 26, 100  # what a zip may unpack to: so many bytes, and so many times its own
_FIELDS = (
    re.compile(r"""['"]descr['"]\s*:\s*['"]([^'"]{1,16})['"]"""),
    re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)\b"""),
    re.compile(r"""['"]shape['"]\s*:\s*\(([0-9L,\s]{0,1024})\)"""),
)
FORMS: dict[str, str] = {
    "b1": "BOOL",
    "i1": "I8",
    "i2": "I16",
    "i4": "I32",
    "i8": "I64",
    "u1": "U8",
    "u2": "U16",
    "u4": "U32",
    "u8": "U64",
    "f2": "F16",
    "f4": "F32",
    "f8": "F64",
    "c8": "C64",
    "c16": "C128",
}


def read_npy(path: Path) -> Contents:
    """The array in a .npy file, under the name "arr_0"."""
    data = map_file(path)
    header = _header(str(path), data[: _HEADER + 12].tobytes())
    start, form, dtype, turned, shape = header
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes != len(data) - start:
        raise wg.ModelFileError(
            f"{path} is damaged: {shape} of {dtype.str} is {nbytes:,} bytes, and it has {len(data) - start:,}"
        )
    return Contents(
        "npz", {}, {ONLY: Row(form, shape, nbytes, lambda: _array(data[start:], dtype, turned, shape))}
    )


def read_npz(path: Path) -> Contents:
    """The arrays in a .npz file, by their names in it."""
    data = map_file(path)
    rows: dict[str, Row] = {}
    archive = open_zip(path, data, _DIRECTORY, ".npz")
    members = archive.infolist()
    _check_sizes(path, len(data), members)
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name in rows:
            raise wg.ModelFileError(f"{path} is damaged: it has {member.filename!r} twice")
        rows[name] = _member_row(path, archive, member)
    return Contents("npz", {}, rows)


def _check_sizes(path: Path, size: int, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > _MEMBERS:
        raise wg.ModelFileError(f"{path} has {len(members):,} files in it, and the limit is {_MEMBERS:,}")
    for member in members:
        name = f"{path}: {member.filename!r}"
        if not member.filename.endswith(".npy"):
            raise wg.ModelFileError(f"{name} is not an array; a .npz file has only .npy files in it")
        if member.flag_bits & 1:
            raise wg.ModelFileError(f"{name} is encrypted: webgrad reads plain files only")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise wg.ModelFileError(f"{name} is compressed in a way that NumPy does not use")
    total, limit = sum(member.file_size for member in members), _FREE + _RATIO * size
    if total > limit:
        raise wg.ModelFileError(
            f"{path} would unpack to {total:,} bytes, and the limit for its size is {limit:,}: save it again "
            "with np.savez, which does not compress"
        )


def _member_row(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Row:
    name = f"{path}: {member.filename!r}"
    start, form, dtype, turned, shape = _header(name, unpacked(path, archive, member, _HEADER + 12))
    nbytes = math.prod(shape) * dtype.itemsize
    if start + nbytes != member.file_size:
        raise wg.ModelFileError(
            f"{name} is damaged: {shape} of {dtype.str} is {nbytes:,} bytes, and it has "
            f"{member.file_size - start:,}"
        )

    def host() -> Array:
        data = np.frombuffer(unpacked(path, archive, member, member.file_size), np.uint8)
        if len(data) != start + nbytes:
            raise wg.ModelFileError(f"{name} is damaged: it ends too early")
        return _array(data[start:], dtype, turned, shape)

    return Row(form, shape, nbytes, host)


def _header(name: str, head: bytes) -> tuple[int, str, np.dtype[Any], bool, tuple[int, ...]]:
    """Where the data begin, its form and dtype, whether columns come first, and the shape."""
    width = {1: 2, 2: 4, 3: 4}.get(head[6] if len(head) > 6 else 0)
    if head[:6] != MAGIC or width is None:
        raise wg.ModelFileError(f"{name} is no .npy file of version 1, 2 or 3")
    length = int.from_bytes(head[8 : 8 + width], "little")
    start = 8 + width + length
    if length > _HEADER or start > len(head):
        raise wg.ModelFileError(f"{name} is damaged: its header is said to have {length:,} bytes")
    text = head[8 + width : start].decode("latin-1")
    descr, order, sizes = (pattern.search(text) for pattern in _FIELDS)
    if descr is None or order is None or sizes is None:
        raise wg.ModelFileError(
            f"{name}: its header is none of a plain array: {text[:80]!r}; arrays of records or objects are "
            "not read"
        )
    code = descr[1]
    form = FORMS.get(code[1:]) if code[0] in "<>|=" else None
    if form is None:
        why = "objects are pickles, which can hold code" if "O" in code else f"webgrad has {', '.join(FORMS)}"
        raise wg.ModelFileError(f"{name} is an array of {code!r}: {why}")
    return start, form, np.dtype(code), order[1] == "True", _sizes(name, sizes[1])


def _sizes(name: str, text: str) -> tuple[int, ...]:
    numbers = [part.strip().removesuffix("L") for part in text.split(",")]
    numbers = [part for part in numbers if part]
    if not all(part.isdecimal() and len(part) < 20 for part in numbers):
        raise wg.ModelFileError(f"{name} is damaged: its shape is ({text[:80]})")
    shape = tuple(int(part) for part in numbers)
    if not is_possible(shape):
        raise wg.ModelFileError(f"{name} is damaged: its shape is {shape}")
    return shape


def _array(data: Array, dtype: np.dtype[Any], turned: bool, shape: tuple[int, ...]) -> Array:
    array = view_of(data, dtype, shape[::-1] if turned else shape)
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
        array.flags.writeable = False
    return array.T if turned else array
