"""Weights as safetensors files that a browser keeps: each below 256 MiB, with where every tensor starts.

In: arrays by name. Out: files, and for each its length and sha256; for each tensor its file and place. A
tensor is written when it is read, so at most one is in memory beyond the model itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..dtypes import DType

__all__ = ["SHARD", "Stored", "write_shards"]

SHARD = 255 << 20  # bytes of tensors in a file: with its header it stays below 256 MiB
_ALIGNMENT = 8


class Stored(NamedTuple):
    """A tensor to be written; `read` gives its bytes."""

    dtype: DType
    shape: tuple[int, ...]
    nbytes: int
    read: Callable[[], Any]


def write_shards(tensors: Mapping[str, Stored], folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Write the files; gives what the plan says of them, and of the tensors."""
    shards = _shared_out(tensors)
    files: list[dict[str, Any]] = []
    places: dict[str, Any] = {}
    for number, names in enumerate(shards):
        file = f"weights-{number + 1}-of-{len(shards)}.safetensors"
        starts, digest, nbytes = _write(folder / file, {name: tensors[name] for name in names})
        files.append({"file": file, "bytes": nbytes, "sha256": digest})
        for name, start in starts.items():
            each = tensors[name]
            places[name] = {
                "file": number,
                "start": start,
                "bytes": each.nbytes,
                "dtype": each.dtype.name,
                "shape": list(each.shape),
            }
    return files, places


def _shared_out(tensors: Mapping[str, Stored]) -> list[list[str]]:
    """Which tensors share a file, in their order; none is larger than one."""
    shards: list[list[str]] = []
    left = -1
    for name, each in tensors.items():
        if each.nbytes > left:
            shards.append([])
            left = SHARD
        shards[-1].append(name)
        left -= _up(each.nbytes)
    return shards


def _up(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _write(path: Path, tensors: Mapping[str, Stored]) -> tuple[dict[str, int], str, int]:
    """One file: where tensors start in it, its sha256 and its length."""
    header: dict[str, Any] = {}
    end = 0
    for name, each in tensors.items():
        offsets = [end, end + each.nbytes]
        header[name] = {"dtype": each.dtype.short.upper(), "shape": list(each.shape), "data_offsets": offsets}
        end = offsets[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(_up(len(text)))
    first = 8 + len(text)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for part in (len(text).to_bytes(8, "little"), text):
            file.write(part)
            digest.update(part)
        for each in tensors.values():
            data = memoryview(each.read()).cast("B")
            file.write(data)
            digest.update(data)
    starts = {name: first + entry["data_offsets"][0] for name, entry in header.items()}
    return starts, digest.hexdigest(), first + end
