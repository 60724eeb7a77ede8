"""safetensors: named tensors and texts beside them, in one file, or in several with an index.

In: a file or a folder, from anywhere. Out: `Contents`. The format's own package says whether a file is sound;
then tensors are views of the mapped file. An index names files beside itself, and no others.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..dtypes import REAL, complex64
from ..runtime.shield import shield
from .json_files import checked_object, read_object
from .memory_map import is_possible, map_file, shown, view_of
from .weights import Contents, Row

__all__ = ["CODES", "HEADER", "INDEX", "SUFFIX", "TENSORS", "read_folder", "read_index", "read_safetensors"]

SUFFIX = ".safetensors"
INDEX = ".safetensors.index.json"
HEADER, TENSORS = 1 << 23, 1 << 15  # the limits of a file: bytes of its header, and how many tensors
_SHARDS = 10_000
CODES: dict[str, np.dtype[Any]] = {
    each.short.upper(): each.numpy.newbyteorder("<") for each in (*REAL, complex64)
}


def read_safetensors(path: Path) -> Contents:
    """What is in a .safetensors file."""
    data = map_file(path)
    length = int.from_bytes(data[:8].tobytes(), "little")
    if len(data) < 8 or length > len(data) - 8:
        raise wg.ModelFileError(f"{path} is damaged, or no safetensors file: its header is longer than it is")
    if length > HEADER:
        raise wg.ModelFileError(f"{path} has a header of {length:,} bytes, and the limit is {HEADER:,}")
    text = data[8 : 8 + length].tobytes()
    header = checked_object(path, text)
    _check_by_its_package(path)
    metadata = header.pop("__metadata__", None) or {}
    if len(header) > TENSORS:
        raise wg.ModelFileError(f"{path} has {len(header):,} tensors, and the limit is {TENSORS:,}")
    body = data[8 + length :]
    try:
        entries = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
        rows = {name: _row(path, shown(name), entry, body) for name, entry in entries}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, wg.ModelFileError):
            raise
        raise wg.ModelFileError(
            f"{path} is damaged: its header says what cannot be: {shown(str(error))}"
        ) from None
    return Contents("safetensors", dict(metadata), rows)


def _check_by_its_package(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    with shield:  # what a signal's handler raises is not the file's error
        try:
            with safe_open(path, framework="numpy"):
                pass
        except SafetensorError as error:
            raise wg.ModelFileError(
                f"{path} is damaged, or no safetensors file: {shown(str(error), 300)}"
            ) from None
        except OSError as error:
            raise wg.ModelFileError(f"{path} cannot be read: {error}") from None


def _row(path: Path, name: str, entry: dict[str, Any], body: Array) -> Row:
    code, shape = str(entry["dtype"]), tuple(entry["shape"])
    start, end = entry["data_offsets"]
    if not 0 <= start <= end <= len(body):
        raise wg.ModelFileError(f"{path} is damaged: {name} lies outside of it")
    dtype = CODES.get(code)
    if not is_possible(shape):
        raise wg.ModelFileError(f"{path}: {name} has the shape {str(shape)[:80]}, which no array has")
    if dtype is not None and math.prod(shape) * dtype.itemsize != end - start:
        raise wg.ModelFileError(f"{path} is damaged: {name} of shape {shape} has {end - start:,} bytes")

    def host() -> Array:
        if dtype is None:
            raise wg.ModelFileError(
                f"{path}: {name} is {code}, and webgrad has {', '.join(CODES)}: get or make the model in one "
                "of these"
            )
        return view_of(body[start:end], dtype, shape)

    return Row(code, shape, end - start, host)


# Several files


def read_folder(path: Path) -> Contents:
    """The safetensors of a folder: by its index, or model.safetensors, or all that there are."""
    names = sorted(each.name for each in path.iterdir() if each.name.endswith((SUFFIX, INDEX)))
    indexes = [name for name in names if name.endswith(INDEX)]
    files = [name for name in names if name.endswith(SUFFIX)]
    chosen = f"model{INDEX}" if f"model{INDEX}" in indexes else next(iter(indexes), None)
    if chosen is not None:
        return read_index(path / chosen)
    if "model.safetensors" in files:
        return read_safetensors(path / "model.safetensors")
    if not files:
        raise wg.ModelFileError(f"{path} has no {SUFFIX} files in it")
    return _together(path, {name: read_safetensors(path / name) for name in files}, None)


def read_index(path: Path) -> Contents:
    """The safetensors that a .safetensors.index.json names, which are all in its folder."""
    places = read_object(path, "an index").get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(each, str) for each in places.values()):
        raise wg.ModelFileError(f"{path} is damaged: it has no weight_map of names to files")
    files = sorted(set(places.values()))
    if len(files) > _SHARDS:
        raise wg.ModelFileError(f"{path} names {len(files):,} files, and the limit is {_SHARDS:,}")
    for name in files:
        if not name.endswith(SUFFIX) or "/" in name or "\\" in name or ":" in name or "\0" in name:
            raise wg.ModelFileError(
                f"{path} names {shown(name)}, which is no {SUFFIX} file in its own folder"
            )
    with shield:  # a handler's TimeoutError is an OSError, which isfile would take for a no
        missing = [name for name in files if not os.path.isfile(path.parent / name)]  # noqa: PTH113  (raises nothing)
    if missing:
        some = ", ".join(map(shown, missing[:4])) + (" …" if len(missing) > 4 else "")
        raise wg.ModelFileError(
            f"{path} names {len(files)} files, and {len(missing)} of them are not there: {some}; fetch them"
        )
    return _together(path, {name: read_safetensors(path.parent / name) for name in files}, places)


def _together(path: Path, shards: dict[str, Contents], places: dict[str, str] | None) -> Contents:
    """The tensors of all shards; with an index those that it names, where it says."""
    rows: dict[str, Row] = {}
    metadata: dict[str, Any] = {}
    for file, contents in shards.items():
        metadata |= contents.metadata
        for name, row in contents.rows.items():
            if places is not None and places.get(name) != file:
                continue
            if name in rows:
                raise wg.ModelFileError(
                    f"{path}: {shown(name)} is in several files; it has no index that says which"
                )
            rows[name] = row
    if places is not None and len(rows) < len(places):
        absent = [name for name in places if name not in rows]
        raise wg.ModelFileError(
            f"{path} names {len(places)} tensors, and {len(absent)} are not in their files: "
            f"{shown(absent[0])} is not in {places[absent[0]]}"
        )
    return Contents("safetensors", metadata, rows)
