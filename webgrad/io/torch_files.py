"""What torch.save writes: a pickle of plain values, and the storages of its tensors, in a zip or one by one.

In: a file, from anywhere. Out: the value, with what the reader makes of each tensor in it. Nothing in the
file is executed (`pickles.py`). Every storage lies within the file, and every tensor within its storage.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import webgrad as wg

from ..arrays import Array, np
from ..dtypes import COMPLEX, REAL
from .memory_map import is_possible, map_file, shown, view_of
from .pickles import PLAIN_NAMES, Maker, read_pickle
from .weights import Contents, Row
from .zips import open_zip, stored, unpacked

__all__ = ["Storage", "StoredTensor", "TorchNames", "is_of_torch", "read_pt", "read_torch"]

LEGACY_MAGIC = (
    b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # the pickle that files before torch 1.6 begin with
)
ZIP_MAGIC = b"PK\x03\x04"
_PICKLE = 1 << 26  # bytes
_DIRECTORY, _MEMBERS = 1 << 24, 1 << 17  # of a zip: bytes of its list of files, and how many
_DEPTH, _VALUES = 64, 1 << 20  # of containers whose tensors have names, and of what is in them
_COPIES = 1 << 20  # elements that a tensor may have beyond those of its storage, which it repeats
_STORAGES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128", "Untyped": "uint8",
}  # fmt: skip
_KNOWN = {each.name: each for each in (*REAL, *COMPLEX)}
_ABSENT = (
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("complex32", "qint8", "quint8", "qint32"),
)


@dataclass(frozen=True, slots=True)
class Storage:
    """The bytes that tensors share: which of the file's, where torch had them, and the bytes."""

    key: str
    location: str
    data: Array
    big_endian: bool


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file: its storage, where in it its elements lie, and whether it needs a gradient.

    >>> import io
    >>> from webgrad import torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.ones(2, 3), file)
    >>> _ = file.seek(0)
    >>> stored = wg.io.read_torch(file)
    >>> stored.dtype, stored.shape, stored.strides, stored.offset
    ('float32', (2, 3), (3, 1), 0)
    """

    storage: Storage
    dtype: str  # torch's name
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool = False
    conjugate: bool = False
    negative: bool = False

    def elements(self) -> Array:
        """All numbers of the storage, as a read-only array without order."""
        dtype = _KNOWN.get(self.dtype)
        if dtype is None:
            raise wg.ModelFileError(f"it has a tensor of {self.dtype}, and webgrad has {', '.join(_KNOWN)}")
        data = self.storage.data
        whole = data[: len(data) // dtype.itemsize * dtype.itemsize]
        if self.storage.big_endian and dtype.itemsize > 1:
            part = dtype.itemsize // (2 if dtype.kind == "c" else 1)
            whole = np.ascontiguousarray(whole.reshape(-1, part)[:, ::-1]).reshape(-1)
        return view_of(whole, dtype.numpy, (len(whole) // dtype.itemsize,))

    def array(self) -> Array:
        """Its numbers, as a read-only view of the file where that can be."""
        elements = self.elements()
        if not math.prod(self.shape):
            return np.zeros(self.shape, elements.dtype)
        steps = tuple(each * elements.itemsize for each in self.strides)
        found = np.lib.stride_tricks.as_strided(elements[self.offset :], self.shape, steps, writeable=False)
        found = np.conj(found) if self.conjugate else found
        return -found if self.negative else found

    def is_dense(self) -> bool:
        """Whether its elements are contiguous, in order."""
        expected = 1
        for size, step in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and step != expected:
                return False
            expected *= size
        return True


def _same(value: Any, *_: Any) -> Any:
    return value


def _allowed(thing: Any) -> Maker:
    """A class or function that a caller of the reader allows a file to use."""

    def build(made: Any, state: Any) -> None:
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
            return
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():
                object.__setattr__(made, name, value)

    is_class = isinstance(thing, type)
    return Maker(thing, build, (lambda *values: thing.__new__(thing, *values)) if is_class else None)


@dataclass(frozen=True, slots=True)
class TorchNames:
    """What a reader makes of torch's own things in a file: by default plain values, and StoredTensors.

    `others` are classes and functions that a file may use beside these, by "module name": they are called.

    >>> names = wg.io.TorchNames(tensor=lambda stored: stored.shape)
    """

    tensor: Callable[[StoredTensor], Any] = _same
    parameter: Callable[[Any, bool], Any] = _same
    dtype: Callable[[str], Any] = str
    size: Callable[[Any], Any] = tuple
    device: Callable[..., Any] = lambda kind, index=None: kind if index is None else f"{kind}:{index}"
    others: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """Names in pickles, and what they stand for."""
        rebuilding = {
            "torch._utils _rebuild_tensor": Maker(self._tensor),
            "torch._utils _rebuild_tensor_v2": Maker(self._tensor),
            "torch._utils _rebuild_tensor_v3": Maker(self._untyped_tensor),
            "torch._utils _rebuild_parameter": Maker(self._parameter),
            "torch._utils _rebuild_parameter_with_state": Maker(self._parameter),
        }

        def typed(rebuild: Any, kind: Any, arguments: Any, state: Any) -> Any:
            """A tensor with attributes of its own, which are left out: tensors have none here."""
            if not any(rebuild is each for each in rebuilding.values()):
                raise ValueError("it has a tensor that is made of something else")
            return rebuild.make(*arguments)

        names: dict[str, Any] = rebuilding | {
            "torch._tensor _rebuild_from_type_v2": Maker(typed),
            "torch Size": Maker(lambda sizes=(): self.size(_sizes(sizes))),
            "torch device": Maker(self._device),
            "torch.serialization _get_layout": Maker(lambda name: name),
            "torch Tensor": "torch.Tensor",
            "torch.nn.parameter Parameter": "torch.nn.Parameter",
        }
        for name in (*_KNOWN, *_ABSENT):
            names[f"torch {name}"] = _DType(name, self.dtype(name)) if name in _ABSENT else self.dtype(name)
        for name, dtype in _STORAGES.items():
            for home in ("torch", "torch.storage", "torch.cuda"):
                names[f"{home} {name}Storage"] = _DType(dtype, name)
        return PLAIN_NAMES | names | {name: _allowed(each) for name, each in self.others.items()}

    def _tensor(
        self,
        place: Any,
        offset: Any,
        size: Any,
        stride: Any,
        grad: Any = False,
        hooks: Any = None,
        marks: Any = None,
    ) -> Any:
        storage, dtype = _placed(place)
        marks = marks if isinstance(marks, dict) else {}
        found = StoredTensor(
            storage,
            dtype,
            offset,
            _sizes(size),
            tuple(stride),
            grad is True,
            *(marks.get(each) is True for each in ("conj", "neg")),
        )
        _check(found)
        return self.tensor(found)

    def _untyped_tensor(
        self,
        place: Any,
        offset: Any,
        size: Any,
        stride: Any,
        grad: Any,
        hooks: Any,
        dtype: Any,
        marks: Any = None,
    ) -> Any:
        name = dtype.name if isinstance(dtype, _DType) else str(getattr(dtype, "name", dtype))
        return self._tensor((_placed(place)[0], name), offset, size, stride, grad, hooks, marks)

    def _parameter(self, data: Any, grad: Any, hooks: Any = None, state: Any = None) -> Any:
        return self.parameter(data, grad is True)

    def _device(self, kind: Any, index: Any = None) -> Any:
        if not isinstance(kind, str) or not isinstance(index, int | None):
            raise ValueError("it has a device without a name")
        return self.device(kind, index)


@dataclass(frozen=True, slots=True)
class _DType:
    """A dtype that stands in a storage's name, or that webgrad has not."""

    name: str
    value: Any


def _placed(place: Any) -> tuple[Storage, str]:
    storage, dtype = place
    if not isinstance(storage, Storage) or not isinstance(dtype, str):
        raise ValueError("it has a tensor without a storage")
    return storage, dtype


def _sizes(shape: Any) -> tuple[int, ...]:
    found = tuple(shape) if isinstance(shape, tuple | list) else ()
    if found != shape and list(found) != shape:
        raise ValueError("it has a tensor without a shape")
    if not all(type(each) is int and each >= 0 for each in found) or not is_possible(found):
        raise ValueError(f"it has a tensor of shape {str(found)[:80]}")
    return found


def _check(tensor: StoredTensor) -> None:
    """Whether a tensor lies within its storage."""
    numbers = (tensor.offset, *tensor.strides)
    if not all(type(each) is int and 0 <= each < 1 << 48 for each in numbers):
        raise ValueError(f"it has a tensor with the offset and strides {str(numbers)[:80]}")
    dtype = _KNOWN.get(tensor.dtype)
    if len(tensor.shape) != len(tensor.strides):
        raise ValueError("it has a tensor of another rank than it says")
    if dtype is None or not math.prod(tensor.shape):
        return
    held = len(tensor.storage.data) // dtype.itemsize
    last = tensor.offset + sum(
        (size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True)
    )
    if last >= held:
        raise ValueError(
            f"it has a tensor of shape {tensor.shape} outside of its storage of {held:,} numbers"
        )
    if math.prod(tensor.shape) > held + _COPIES:
        raise ValueError(
            f"it has a tensor of shape {tensor.shape} that repeats a storage of {held:,} numbers"
        )


# The two formats


def read_torch(file: str | os.PathLike[str] | IO[bytes], names: TorchNames | None = None) -> Any:
    """The value in a file that torch.save wrote, with `names` for what is torch's; nothing in it is executed.

    >>> import io
    >>> from webgrad import torch
    >>> file = io.BytesIO()
    >>> torch.save({"step": 3, "weight": torch.ones(2, 3)}, file)
    >>> _ = file.seek(0)
    >>> value = wg.io.read_torch(file)
    >>> value["step"], value["weight"].shape, value["weight"].array().tolist()
    (3, (2, 3), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """
    found = TorchNames() if names is None else names
    if isinstance(file, str | os.PathLike):
        return _read(Path(file), map_file(Path(file)), found)
    return _read("the file", np.frombuffer(file.read(), np.uint8), found)


def _read(path: Path | str, data: Array, names: TorchNames) -> Any:
    head = data[: len(LEGACY_MAGIC)].tobytes()
    if head.startswith(ZIP_MAGIC):
        return _read_zip(path, data, names)
    if head == LEGACY_MAGIC:
        return _read_legacy(path, data, names)
    raise wg.ModelFileError(
        f"{path} is no file of torch.save, or damaged; other pickles can hold code, and are not read"
    )


def _read_zip(path: Path | str, data: Array, names: TorchNames) -> Any:
    archive = open_zip(path, data, _DIRECTORY, ".pt")
    members = {each.filename: each for each in archive.infolist()}
    roots = [name.removesuffix("data.pkl") for name in members if name.endswith("/data.pkl")]
    if len(roots) != 1 or len(archive.infolist()) != len(members) or len(members) > _MEMBERS:
        raise wg.ModelFileError(
            f"{path} is damaged, or no file of torch.save: it has {len(roots)} data.pkl in it"
        )
    root = roots[0]
    if f"{root}constants.pkl" in members:
        raise wg.ModelFileError(
            f"{path} is a TorchScript program, which is code; torch itself writes its weights alone by "
            "torch.save(torch.jit.load(path).state_dict(), …)"
        )
    if sum(each.file_size for each in members.values()) > len(data):
        raise wg.ModelFileError(f"{path} is compressed, or damaged: more is in it than it has bytes")
    order = members.get(f"{root}byteorder")
    is_big = order is not None and unpacked(path, archive, order, 16) == b"big"

    def storage(key: str, location: str, _: int) -> Storage:
        member = members.get(f"{root}data/{key}")
        if member is None:
            raise ValueError(f"it has no storage {shown(key)}")
        return Storage(key, location, stored(path, data, member), is_big)

    member = members[f"{root}data.pkl"]
    if member.file_size > _PICKLE:
        raise wg.ModelFileError(
            f"{path} has a pickle of {member.file_size:,} bytes: the limit is {_PICKLE:,}"
        )
    pickle = io.BytesIO(unpacked(path, archive, member, _PICKLE))
    return read_pickle(str(path), pickle, names.table(), _persistent(storage))


def _read_legacy(path: Path | str, data: Array, names: TorchNames) -> Any:
    """Pickles of a magic, a version, the machine, the value and the keys of storages; then these in turn."""
    file = io.BytesIO(data[:_PICKLE].tobytes())
    found: dict[str, Storage] = {}
    sizes: dict[str, tuple[int, str]] = {}

    def noted(key: str, location: str, nbytes: int) -> Storage:
        sizes[key] = (nbytes, location)
        return Storage(key, location, data[:0], False)

    def storage(key: str, _: str, __: int) -> Storage:
        return found[key]

    _, version, system = (read_pickle(str(path), file, {}) for _ in range(3))
    if version != 1001 or not isinstance(system, dict):
        raise wg.ModelFileError(
            f"{path} is of version {shown(str(version))} of torch's files, and 1001 is read"
        )
    start = file.tell()
    plain = TorchNames(tensor=_same).table() | dict.fromkeys(names.others, _ANYTHING)
    plain |= {
        name: Maker(_nothing) for name in plain if name.startswith(("torch._utils _reb", "torch._tensor "))
    }
    read_pickle(str(path), file, plain, _persistent(noted))  # where it ends, and how long the storages are
    keys = read_pickle(str(path), file, {})
    at = file.tell()
    is_big = system.get("little_endian") is False
    for key in keys if isinstance(keys, list) else ():
        nbytes, location = sizes.get(key, (-1, ""))
        at += 8  # how many elements there are, once more
        if nbytes < 0 or at + nbytes > len(data):
            raise wg.ModelFileError(f"{path} is damaged: storage {shown(str(key))} lies outside of it")
        found[key] = Storage(key, location, data[at : at + nbytes], is_big)
        at += nbytes
    file.seek(start)
    return read_pickle(str(path), file, names.table(), _persistent(storage))


def _nothing(*_: Any) -> None:
    return None


_ANYTHING = Maker(lambda *_: {}, lambda made, state: None)


def _persistent(storage: Callable[[str, str, int], Storage]) -> Callable[[Any], Any]:
    """A storage and its dtype, from ("storage", type, key, location, elements), or of a part of one, which
    the legacy format has."""

    def answer(identity: Any) -> tuple[Storage, str]:
        word, kind, key, location, count, *view = identity
        if word != "storage" or not isinstance(kind, _DType) or not isinstance(key, str):
            raise ValueError("it refers to something that is no storage")
        if not isinstance(location, str) or type(count) is not int or not 0 <= count < 1 << 48:
            raise ValueError("it has a storage without a size")
        if view and view[0] is not None:
            raise ValueError("it has a storage that is part of another: save it again with a torch of today")
        return storage(key, location, count * _KNOWN[kind.name].itemsize), kind.name

    return answer


def is_of_torch(path: Path, head: bytes) -> bool:
    """Whether torch.save wrote it: a zip that begins with .../data.pkl, or nearly so, or its magic."""
    if head.startswith(ZIP_MAGIC):
        return b"/data.pkl" in map_file(path)[:4096].tobytes()
    return head.startswith(LEGACY_MAGIC)


# As a file of weights


def read_pt(path: Path) -> Contents:
    """The tensors of a file by the keys on the way to them, joined by dots; plain values are metadata."""
    data = map_file(path)
    rows: dict[str, Row] = {}
    metadata: dict[str, Any] = {}
    waiting: list[tuple[str, Any, int]] = [("", _read(path, data, TorchNames()), 0)]
    for _ in range(_VALUES):  # the same container may be in many others
        if not waiting:
            return Contents("torch", metadata, rows)
        name, value, depth = waiting.pop()
        if isinstance(value, StoredTensor | np.ndarray):
            name = name or "tensor"
            if name in rows:
                raise wg.ModelFileError(
                    f"{path} has two tensors by the name {shown(name)}: use webgrad.torch.load"
                )
            rows[name] = _row(value)
        elif isinstance(value, dict | list | tuple) and depth < _DEPTH:
            pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
            waiting += [
                (f"{name}.{key}" if name else str(key), each, depth + 1) for key, each in reversed(pairs)
            ]
        elif depth >= _DEPTH:
            raise wg.ModelFileError(f"{path} has containers in containers, more than {_DEPTH} deep")
        else:
            metadata[name] = value
    raise wg.ModelFileError(f"{path} holds more than {_VALUES:,} values")


def _row(value: StoredTensor | Array) -> Row:
    kind = value.dtype if isinstance(value, StoredTensor) else value.dtype.name
    dtype = _KNOWN.get(kind)
    form = kind.upper() if dtype is None else dtype.short.upper()
    nbytes = math.prod(value.shape) * (1 if dtype is None else dtype.itemsize)
    return Row(form, value.shape, nbytes, value.array if isinstance(value, StoredTensor) else lambda: value)
