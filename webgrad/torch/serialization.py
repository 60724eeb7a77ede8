"""torch.save and torch.load: torch's own files, read without executing anything in them.

In: values of tensors, numbers, texts and containers, and a path or a file object. Out: the same values. What
is written torch reads, and a path that ends in .safetensors is written and read as that.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import webgrad as wg

from .defaults import integer_of
from .devices import device as Device
from .devices import place
from .nn.parameter import Parameter
from .pickling import Pickle
from .shapes_of import Size
from .tensor import adopt

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

_ALIGNMENT = 64  # of storages in a file, as torch has them
_WIDE = ("int64", "uint64")
_OURS = ("cpu", "cuda", "webgpu", "meta")  # locations in files; others are GPUs of other makers
_allowed: dict[str, Any] = {}


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write a value to a path or a file object, as torch's file, or named tensors as .safetensors.

    >>> import io
    >>> import webgrad.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"epoch": 3, "weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)["weight"].tolist()
    [1.0, 1.0]
    """
    if hasattr(f, "write"):
        _write_members(Pickle(obj), f, "archive")
        return
    path = Path(f)
    if path.suffix.lower() == ".safetensors":
        wg.io.save(path, obj)
        return
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    pickle = Pickle(obj)  # here, so that what cannot be saved leaves the file as it was
    with wg.io.replacing(path) as temporary, temporary.open("wb") as file:
        _write_members(pickle, file, path.stem or "archive")


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a value from a path or a file object that torch wrote, or this: the legacy format, too.

    Nothing in a file is executed, whatever `weights_only` says: tensors, numbers, texts and containers are
    read, and classes that `add_safe_globals` names.
    """
    names = wg.io.TorchNames(
        tensor=_Tensors(map_location, bool(mmap)).tensor,
        parameter=_parameter,
        dtype=lambda name: getattr(wg, name, name),
        size=Size,
        device=lambda *parts: Device(*parts),
        others=_allowed,
    )
    if hasattr(f, "read"):
        return wg.io.read_torch(f, names)
    path = Path(f)
    if not path.exists():
        raise FileNotFoundError(2, os.strerror(2), str(f))
    if path.suffix.lower() == ".safetensors":
        where = place(map_location) if not callable(map_location) else None
        return adopt(wg.io.load(path, where))
    return wg.io.read_torch(path, names)


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files use classes and functions: `load` calls them with what stands in the file."""
    for each in safe_globals:
        thing, name = each if isinstance(each, tuple) else (each, f"{each.__module__}.{each.__qualname__}")
        module, _, last = name.rpartition(".")
        _allowed[f"{module} {last}"] = thing


def get_safe_globals() -> list[Any]:
    """What files may use."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Files may use nothing but tensors and plain values again."""
    _allowed.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """While it is entered, files may use these too."""
    before = dict(_allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _allowed.clear()
        _allowed.update(before)


# Writing


def _write_members(pickle: Pickle, file: Any, root: str) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        _write_member(archive, f"{root}/data.pkl", bytes(pickle.parts))
        _write_member(archive, f"{root}/byteorder", sys.byteorder.encode())
        for memory in pickle.memories:
            numbers = memory.numbers().reshape(-1)
            _write_member(archive, f"{root}/data/{memory.key}", numbers.view(np.uint8).data)
        _write_member(archive, f"{root}/version", b"3\n")


def _write_member(archive: zipfile.ZipFile, name: str, data: Any) -> None:
    """One file of the archive, whose bytes begin at a multiple of 64 by an extra field before them."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o600 << 16
    begin = archive.fp.tell() + 30 + len(name.encode()) + 4 if archive.fp is not None else 0
    padding = -begin % _ALIGNMENT
    entry.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    archive.writestr(entry, data)


# Reading


class _Place:
    """What a function given as `map_location` gets for a storage, and moves to a device."""

    def __init__(self, location: str) -> None:
        self.location = location

    def cpu(self) -> _Place:
        """On the cpu."""
        return _Place("cpu")

    def cuda(self, device: Any = None) -> _Place:
        """On the best device."""
        return _Place("cuda" if device is None else str(Device(device)))


class _Tensors:
    """Makes tensors of what a file has: those of one storage are views of one tensor."""

    def __init__(self, map_location: Any, mapped: bool) -> None:
        self._map_location, self._mapped = map_location, mapped
        self._wholes: dict[tuple[str, str], Any] = {}
        self._places: dict[str, Any] = {}

    def tensor(self, stored: Any) -> Any:
        """A tensor on the device that `map_location` says."""
        if stored.conjugate or stored.negative:
            return self._finished(self._put(stored.array(), stored), stored)
        key = (stored.storage.key, stored.dtype)
        whole = self._wholes.get(key)
        if whole is None:
            numbers = stored.elements()
            is_whole = stored.is_dense() and math.prod(stored.shape) == len(numbers)
            whole = self._put(numbers.reshape(stored.shape) if is_whole else numbers, stored)
            self._wholes[key] = whole
            if is_whole:
                return self._finished(whole, stored)
        view = _viewed(whole.detach().reshape(-1), stored)
        return self._finished(self._put(stored.array(), stored) if view is None else view, stored)

    def _finished(self, x: Any, stored: Any) -> Any:
        adopt(x)
        return x.requires_grad_() if stored.requires_grad else x

    def _put(self, numbers: Any, stored: Any) -> Any:
        where = wg.open_device(self._where(stored.storage.location))
        if numbers.dtype.name in _WIDE and "int64" not in where.info.features:
            narrow = integer_of(where) if numbers.dtype.name == "int64" else wg.uint32
            if numbers.size and not np.array_equal(numbers.astype(narrow.numpy), numbers):
                raise RuntimeError(
                    f"torch.load: {where.name} has no integers of 64 bits, and a tensor in the file needs "
                    'them: load it with map_location="cpu"'
                )
            numbers = numbers.astype(narrow.numpy)
        shared = self._mapped and where is wg.open_device("cpu") and numbers.flags.c_contiguous
        return wg.asarray(numbers, device=where, copy=False if shared else None)

    def _where(self, location: str) -> Any:
        if location not in self._places:
            self._places[location] = self._mapped_location(location)
        return self._places[location]

    def _mapped_location(self, location: str) -> Any:
        chosen = self._map_location
        if isinstance(chosen, dict):
            chosen = chosen.get(location, location)
        elif callable(chosen):
            found = chosen(_Place(location), location)
            chosen = location if found is None else getattr(found, "location", found)
        if chosen is None:
            chosen = location
        return place("cuda" if isinstance(chosen, str) and not chosen.startswith(_OURS) else chosen)


def _parameter(data: Any, requires_grad: bool) -> Any:
    """The same tensor as a parameter: it goes on sharing its memory."""
    data.__class__ = Parameter
    data.requires_grad = requires_grad
    return data


def _viewed(flat: Any, stored: Any) -> Any:
    """A tensor in the flat memory of its storage as a view of it; None where axes overlap each other."""
    held = flat.numel()
    axes = [axis for axis, size in enumerate(stored.shape) if size != 1 and stored.strides[axis]]
    axes.sort(key=lambda axis: -stored.strides[axis])
    steps = [stored.strides[axis] for axis in axes]
    if any(first % second for first, second in itertools.pairwise(steps)) or not math.prod(stored.shape):
        return None
    wide = (
        [held // steps[0], *(first // second for first, second in itertools.pairwise(steps)), steps[-1]]
        if axes
        else [held]
    )
    starts, left = [], stored.offset
    for step in steps:
        start, left = divmod(left, step)
        starts.append(start)
    sizes = [stored.shape[axis] for axis in axes]
    if any(start + size > whole for start, size, whole in zip(starts, sizes, wide, strict=False)):
        return None
    cut = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    found = flat[: math.prod(wide)].reshape(wide)[(*cut, left)]
    order = sorted(range(len(axes)), key=lambda at: axes[at])
    found = wg.permute_dims(found, order) if order else found
    single = [size if axis in axes else 1 for axis, size in enumerate(stored.shape)]
    return wg.expand(wg.reshape(found, tuple(single)), stored.shape)
