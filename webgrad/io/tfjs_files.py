"""TensorFlow.js: a model.json, the shards of weights that it lists, and the graph that it may describe.

In: a model.json from anywhere. Out: `Contents`, whose metadata is all else that the file says; and the nodes
of a graph model as records. Shards are plain files beside the model.json, exactly as long as their weights;
codes of 8 or 16 bits become the numbers that they stand for when a weight is asked for.
"""

from __future__ import annotations

import base64
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import webgrad as wg

from ..arrays import Array, np
from ..runtime.shield import shield
from .json_files import read_object
from .memory_map import check_is_file, is_possible, map_file, shown
from .weights import Contents, Row, Weights

__all__ = ["GraphNode", "read_tfjs", "tfjs_nodes"]

NAME = "model.json"
MOST = 1 << 18  # weights, nodes and JSON's objects
_SHARDS = 4096
_TEXTS = 1 << 12  # in all weights of texts, which are walked through
DTYPES = {
    "float32": "<f4", "float16": "<f2", "int32": "<i4", "uint16": "<u2", "uint8": "u1", "bool": "?",
    "complex64": "<c8",
}  # fmt: skip
_CODES = ("uint8", "uint16", "float16")  # what numbers of 32 bits may be stored as
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


def read_tfjs(path: Path) -> Contents:
    """What a model.json lists; its shards are looked at, and read when a weight is asked for."""
    manifest = read_object(path, "a model of TensorFlow.js", MOST)
    groups = manifest.pop("weightsManifest", [])
    rows: dict[str, Row] = {}
    seen = _Seen(path)
    try:
        for group in groups:
            for name, row in _group(path, list(group["paths"]), list(group["weights"]), seen).items():
                if name in rows:
                    raise wg.ModelFileError(f"{path} is damaged: it has {shown(name)} twice")
                rows[name] = row
    except _DAMAGED as error:
        if isinstance(error, wg.WebgradError):
            raise
        raise wg.ModelFileError(f"{path} is damaged: its weightsManifest cannot be: {error!r:.200}") from None
    if len(rows) > MOST:
        raise wg.ModelFileError(f"{path} has {len(rows):,} weights, and the limit is {MOST:,}")
    return Contents("tfjs", manifest, rows)


@dataclass(slots=True)
class _Seen:
    """What the groups of a file had until now, so that a small file is never much work."""

    path: Path
    shards: set[Path] = field(default_factory=set)
    texts: int = 0

    def add_shards(self, files: Sequence[Path]) -> None:
        for file in files:
            if file in self.shards:
                raise wg.ModelFileError(f"{self.path} is damaged: it names {shown(file.name)} twice")
            self.shards.add(file)

    def add_texts(self, name: str, count: int) -> None:
        self.texts += count
        if self.texts > _TEXTS:
            raise wg.ModelFileError(
                f"{self.path} has {self.texts:,} texts up to {name}, and the limit is {_TEXTS:,}"
            )


def _group(path: Path, names: Sequence[Any], entries: Sequence[Any], seen: _Seen) -> dict[str, Row]:
    """The weights of a group, which lie one behind the other in its shards."""
    shards = _Shards.beside(path, names)
    seen.add_shards(shards.files)
    rows: dict[str, Row] = {}
    start = 0
    for entry in entries:
        name = entry["name"]
        if not isinstance(name, str) or name in rows:
            raise wg.ModelFileError(f"{path} is damaged: it has {shown(str(name))} twice, or no text as name")
        row = _row(seen, shards, entry, start)
        rows[name] = row
        start += row.nbytes
        if start > shards.nbytes:
            raise wg.ModelFileError(
                f"{path} is damaged: {shown(name)} ends at byte {start:,}, and its shards have "
                f"{shards.nbytes:,}"
            )
    if start != shards.nbytes:
        raise wg.ModelFileError(
            f"{path} is damaged: a group's weights have {start:,} bytes, and its shards {shards.nbytes:,}"
        )
    return rows


@dataclass(frozen=True, slots=True)
class _Shards:
    """Files that are one row of bytes; they are opened for each piece, so that none stays open."""

    files: tuple[Path, ...]
    ends: tuple[int, ...]

    @staticmethod
    def beside(path: Path, names: Sequence[Any]) -> _Shards:
        if len(names) > _SHARDS:
            raise wg.ModelFileError(f"{path} names {len(names):,} files, and the limit is {_SHARDS:,}")
        files = tuple(_shard(path, name) for name in names)
        return _Shards(files, tuple(accumulate(each.stat().st_size for each in files)))

    @property
    def nbytes(self) -> int:
        return self.ends[-1] if self.ends else 0

    def piece(self, start: int, end: int, read: Callable[[Path], Array] = map_file) -> Array:
        """Some of the bytes, copied; `read` gives those of a file."""
        parts = [np.empty(0, np.uint8)]
        for at in range(bisect_right(self.ends, start), len(self.files)):
            begin = self.ends[at - 1] if at else 0
            if begin >= end:
                break
            data = read(self.files[at])
            if len(data) != self.ends[at] - begin:
                raise wg.ModelFileError(f"{self.files[at]} has changed: it has {len(data):,} bytes now")
            parts.append(data[max(start - begin, 0) : end - begin])
        return np.concatenate(parts)


def _shard(path: Path, name: Any) -> Path:
    """A plain file in the folder of the model.json, and no link out of it."""
    is_plain = isinstance(name, str) and name.isprintable() and not set(name) & set("/\\:")
    if not is_plain or name in ("", ".", ".."):
        raise wg.ModelFileError(f"{path} names {shown(str(name))}, which is no file in its own folder")
    file: Path = path.parent / name
    with shield:
        try:
            is_inside = file.resolve().parent == path.parent.resolve()
        except (OSError, RuntimeError) as error:
            raise wg.ModelFileError(f"{path}: {shown(name)} cannot be read: {error}") from None
    if not is_inside:
        raise wg.ModelFileError(f"{path} names {shown(name)}, a link to a file that is not in its folder")
    check_is_file(file)
    return file


def _row(seen: _Seen, shards: _Shards, entry: Mapping[str, Any], start: int) -> Row:
    path = seen.path
    name, dtype, shape = shown(entry["name"]), entry["dtype"], tuple(entry["shape"])
    if not all(type(size) is int and size >= 0 for size in shape) or not is_possible(shape):
        raise wg.ModelFileError(f"{path}: {name} has the shape {str(shape)[:80]}, which no array has")
    if dtype == "string":
        seen.add_texts(name, math.prod(shape))
        return Row("STRING", shape, _length_of_texts(path, name, shards, math.prod(shape), start), _no_texts)
    coding = _Coding.of(path, name, dtype, entry.get("quantization"))
    stored = np.dtype(DTYPES[coding.stored])
    nbytes = math.prod(shape) * stored.itemsize

    def host() -> Array:
        return coding.decoded(shards.piece(start, start + nbytes).view(stored)).reshape(shape)

    return Row(coding.form, shape, nbytes, host)


def _no_texts() -> Array:
    raise wg.ModelFileError("weights that are texts are not read")


def _length_of_texts(path: Path, name: str, shards: _Shards, count: int, start: int) -> int:
    """How many bytes so many texts take, of which each is behind its length."""
    read = lru_cache(2)(map_file)  # a length may lie in two files
    end = start
    for _ in range(count):
        length = shards.piece(end, end + 4, read)
        if len(length) < 4:
            raise wg.ModelFileError(f"{path} is damaged: {name} ends behind its shards")
        end += 4 + int(length.view("<u4")[0])
    return end - start


@dataclass(frozen=True, slots=True)
class _Coding:
    """How a weight's numbers are stored: as they are, as halves, or as codes that scale and min explain."""

    dtype: str
    stored: str
    scale: float = 1.0
    least: float = 0.0

    @staticmethod
    def of(path: Path, name: str, dtype: Any, quantisation: Any) -> _Coding:
        if dtype not in DTYPES:
            raise wg.ModelFileError(f"{path}: {name} is {dtype!r:.80}, and webgrad has {', '.join(DTYPES)}")
        if quantisation is None:
            return _Coding(dtype, dtype)
        stored = quantisation["dtype"]
        original = quantisation.get("original_dtype", dtype)
        if stored not in _CODES or original != dtype or dtype not in ("float32", "int32"):
            raise wg.ModelFileError(
                f"{path}: {name} is {dtype} stored as {stored!r:.80}; webgrad has float32 and int32 as "
                f"{', '.join(_CODES)}"
            )
        if stored == "float16":
            return _Coding(dtype, stored)
        scale, least = quantisation["scale"], quantisation["min"]
        if not all(type(each) in (int, float) and abs(each) < 2.0**127 for each in (scale, least)):
            raise wg.ModelFileError(f"{path}: {name} has the scale {scale!r:.40} and the min {least!r:.40}")
        return _Coding(dtype, stored, float(scale), float(least))

    @property
    def form(self) -> str:
        """As other files have it: F32, U8 …"""
        return wg.as_dtype(self.stored).short.upper()

    def decoded(self, codes: Array) -> Array:
        """The numbers that codes stand for: computed in double precision, as TensorFlow.js does."""
        if self.stored == self.dtype:
            return codes
        # one for each code, of which there are fewer than weights
        count = 1 << 8 * codes.itemsize
        numbers: Array = codes if self.stored == "float16" else np.arange(count) * self.scale + self.least
        if self.dtype == "int32":
            numbers = np.clip(np.floor(numbers + 0.5), -(1 << 31), (1 << 31) - 1)
        with np.errstate(over="ignore"):
            found: Array = numbers.astype(self.dtype)
        return found if self.stored == "float16" else found[codes]


# The graph


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of a TensorFlow graph: its operator, and the names that it reads, a colon before an output's
    number, a caret before nodes that only have to run first.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    attributes: dict[str, Any]


def tfjs_nodes(weights: Weights) -> tuple[GraphNode, ...]:
    """The nodes of a graph model of TensorFlow.js, in the order of its file, which is that of running.

    Attributes are plain values: numbers, texts, tuples of them; a type is TensorFlow's name of it, a shape a
    tuple of sizes with -1 for unknown ones, or None.

    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.json")
    >>> topology = {"node": [{"name": "y", "op": "Relu", "input": ["x"]}]}
    >>> written = path.write_text(json.dumps({"modelTopology": topology}))
    >>> wg.io.tfjs_nodes(wg.io.open(path))
    (GraphNode(name='y', op='Relu', inputs=('x',), attributes={}),)
    """
    topology = weights.metadata.get("modelTopology")
    topology = topology if isinstance(topology, dict) else {}
    nodes, library = topology.get("node"), topology.get("library")
    if not isinstance(nodes, list) or len(nodes) > MOST:
        raise wg.ModelFileError(f"{weights.path} has no graph: its modelTopology has no list of nodes")
    if isinstance(library, dict) and library.get("function"):
        raise wg.ModelFileError(f"{weights.path} has functions of its own, which webgrad does not run")
    return tuple(map(partial(_node, weights.path), nodes))


def _node(path: Path, entry: Any) -> GraphNode:
    try:
        name, op, inputs = entry["name"], entry["op"], tuple(entry.get("input", ()))
        if not all(isinstance(each, str) for each in (name, op, *inputs)):
            raise TypeError("names are texts")
    except _DAMAGED as error:
        raise wg.ModelFileError(f"{path} is damaged: a node cannot be: {error!r:.200}") from None
    try:
        attributes = {key: _attribute(value) for key, value in (entry.get("attr") or {}).items()}
    except (*_DAMAGED, RecursionError) as error:
        message = f"{path} is damaged: an attribute of {shown(name)} cannot be: {error!r:.200}"
        raise wg.ModelFileError(message) from None
    return GraphNode(name, op, inputs, attributes)


def _text(value: Any) -> str | bytes:
    data = base64.b64decode(value, validate=True)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _shape(value: Mapping[str, Any]) -> tuple[int, ...] | None:
    if value.get("unknownRank"):
        return None
    return tuple(int(each.get("size", -1)) for each in value.get("dim", ()))


def _type(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no name of a type")
    return value


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "s": _text, "i": int, "f": float, "b": bool, "type": _type, "shape": _shape, "tensor": dict,
}  # fmt: skip


def _attribute(value: Mapping[str, Any]) -> Any:
    [(kind, found)] = value.items()
    if kind != "list":
        return _VALUES[kind](found)
    return tuple(_VALUES[inner](each) for inner, several in found.items() for each in several)
