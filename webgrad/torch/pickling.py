"""Values as torch.save writes them: a pickle whose names are torch's, and the numbers of storages beside it.

In: containers, numbers, texts and tensors. Out: the pickle, of protocol 2, and the storages by their keys.
Tensors that share memory share a storage. Any other object is refused: reading it would run its code.
"""

from __future__ import annotations

import argparse
import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import webgrad as wg

from .devices import device
from .shapes_of import Size
from .tensor import Array

__all__ = ["Pickle"]

_STORAGES = {
    wg.float32: "Float", wg.float64: "Double", wg.float16: "Half", wg.bfloat16: "BFloat16",
    wg.int64: "Long", wg.int32: "Int", wg.int16: "Short", wg.int8: "Char", wg.uint8: "Byte",
    wg.bool: "Bool", wg.complex64: "ComplexFloat", wg.complex128: "ComplexDouble",
}  # fmt: skip
_MULTIARRAY = f"numpy.{'core' if np.__version__.startswith('1.') else '_core'}.multiarray"
_BATCH = 1000  # elements between two marks, as Python's own pickles have them
_FACTORIES: dict[Any, str] = {list: "list", dict: "dict", set: "set", int: "int", float: "float"}


class _Memory:
    """A storage in the making: tensors that lie in one memory."""

    def __init__(self, key: str, tensors: list[Any]) -> None:
        self.key = key
        self.is_shared = len(tensors) > 1
        self.tensors = tensors
        self.size = sum(each.numel() for each in tensors)
        if self.is_shared:
            self.size = max(_reach(each) for each in tensors)

    def numbers(self) -> np.ndarray[Any, Any]:
        """Its numbers in order; what no tensor shows is 0."""
        if not self.is_shared:
            return np.ascontiguousarray(self.tensors[0].numpy()).reshape(-1)
        found = np.zeros(self.size, self.tensors[0].dtype.numpy)
        for each in self.tensors:
            _, offset, strides = wg.memory_layout(each)
            steps = tuple(step * found.itemsize for step in strides)
            np.lib.stride_tricks.as_strided(found[offset:], tuple(each.shape), steps)[...] = each.numpy()
        return found


class Pickle:
    """One value, written: `parts` is its pickle, `memories` what lies beside it."""

    def __init__(self, value: Any) -> None:
        self.parts = bytearray(b"\x80\x02")
        self._known: dict[Any, int] = {}  # objects by identity, texts by value → their numbers in the memo
        self._alive: list[Any] = []  # those whose identities are known
        tensors = list({id(each): each for each in _tensors_in(value)}.values())
        wg.eval(tensors)
        together: dict[Any, list[Any]] = {}
        for each in tensors:
            together.setdefault(_place(each), []).append(each)
        self.memories = [_Memory(str(number), each) for number, each in enumerate(together.values())]
        self._memory_of = {id(each): memory for memory in self.memories for each in memory.tensors}
        try:
            self._write(value)
        except RecursionError:
            raise RuntimeError("torch.save: containers are nested too deeply") from None
        self.parts += b"."

    # Values, by their types

    def _write(self, value: Any) -> None:
        if isinstance(value, Array):
            self._once(value, self._tensor)
            return
        write = _WRITERS.get(type(value))
        if write is not None:
            write(self, value)
        elif isinstance(value, np.generic | np.ndarray):
            self._once(value, self._array)
        elif isinstance(value, wg.nn.Module):
            raise RuntimeError(
                f"torch.save: a {type(value).__name__} is a program, which a file does not hold here: save "
                "model.state_dict(), make the module again, and load_state_dict()"
            )
        else:
            raise RuntimeError(
                f"torch.save: a {type(value).__module__}.{type(value).__qualname__} is neither a tensor nor "
                "a plain value (numbers, texts, lists, tuples, dicts, sets, dtypes, devices): save what it "
                "consists of, vars(it) say"
            )

    def _once(self, value: Any, write: Callable[..., None]) -> None:
        """Write an object, or where it is already, its number."""
        number = self._known.get(id(value))
        if number is None:
            write(value)
            self._remember(value)
        else:
            self._put(b"j", number)

    def _remember(self, value: Any) -> None:
        self._alive.append(value)
        self._number(id(value))

    def _number(self, key: Any) -> None:
        number = self._known[key] = len(self._known)
        self._put(b"r", number)

    def _put(self, opcode: bytes, number: int) -> None:
        self.parts += opcode + struct.pack("<I", number)

    def _text(self, value: str) -> None:
        number = self._known.get(value)
        if number is not None:
            self._put(b"j", number)
            return
        data = value.encode("utf-8", "surrogatepass")
        self._put(b"X", len(data))
        self.parts += data
        self._number(value)

    def _integer(self, value: int) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self.parts += b"J" + struct.pack("<i", value)
            return
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        short = len(data) < 256
        self.parts += (
            b"\x8a" + bytes((len(data),)) if short else b"\x8b" + struct.pack("<I", len(data))
        ) + data

    def _name(self, module: str, name: str) -> None:
        self.parts += f"c{module}\n{name}\n".encode()

    def _call(self, module: str, name: str, *values: Any) -> None:
        self._name(module, name)
        self._tuple(values)
        self.parts += b"R"

    def _tuple(self, values: Iterable[Any]) -> None:
        self.parts += b"("
        for each in values:
            self._write(each)
        self.parts += b"t"

    def _list(self, value: list[Any], begin: bytes = b"]") -> None:
        if id(value) in self._known:
            self._put(b"j", self._known[id(value)])
            return
        self.parts += begin
        self._remember(value)
        self._elements(value)

    def _elements(self, values: Iterable[Any]) -> None:
        every = list(values)
        for start in range(0, len(every), _BATCH):
            self.parts += b"("
            for each in every[start : start + _BATCH]:
                self._write(each)
            self.parts += b"e"

    def _dict(self, value: dict[Any, Any]) -> None:
        if id(value) in self._known:
            self._put(b"j", self._known[id(value)])
            return
        if type(value) is dict:
            self.parts += b"}"
        else:
            self._begin(value)
        self._remember(value)
        items = list(value.items())
        for start in range(0, len(items), _BATCH):
            self.parts += b"("
            for key, each in items[start : start + _BATCH]:
                self._write(key)
                self._write(each)
            self.parts += b"u"
        if isinstance(value, OrderedDict) and hasattr(value, "_metadata"):
            self._write({"_metadata": value._metadata})
            self.parts += b"b"

    def _begin(self, value: dict[Any, Any]) -> None:
        """An empty dict of another class."""
        if isinstance(value, defaultdict):
            if value.default_factory is not None and value.default_factory not in _FACTORIES:
                raise RuntimeError(
                    f"torch.save: a defaultdict of {value.default_factory} is a function: save dict(it)"
                )
            self._name("collections", "defaultdict")
            self.parts += b"("
            if value.default_factory is not None:
                self._name("__builtin__", _FACTORIES[value.default_factory])
            self.parts += b"tR"
        else:
            self._call("collections", type(value).__name__)

    # torch's own

    def _tensor(self, x: Any) -> None:
        if isinstance(x, wg.nn.Parameter):
            self._name("torch._utils", "_rebuild_parameter")
            self.parts += b"("
            self._plain_tensor(x, False)
            self._write(x.requires_grad)
        else:
            self._plain_tensor(x, x.requires_grad)
            return
        self._call("collections", "OrderedDict")
        self.parts += b"tR"

    def _plain_tensor(self, x: Any, requires_grad: bool) -> None:
        memory = self._memory_of[id(x)]
        untyped = x.dtype not in _STORAGES
        self._name("torch._utils", "_rebuild_tensor_v3" if untyped else "_rebuild_tensor_v2")
        self.parts += b"(("
        self._text("storage")
        self._name(
            *(("torch.storage", "UntypedStorage") if untyped else ("torch", f"{_STORAGES[x.dtype]}Storage"))
        )
        self._text(memory.key)
        self._text("cpu" if x.device.name == "cpu" else "cuda:0")
        self._integer(memory.size * (x.dtype.itemsize if untyped else 1))
        self.parts += b"tQ"
        offset, strides = wg.memory_layout(x)[1:] if memory.is_shared else (0, _in_order(x.shape))
        for each in (offset, tuple(x.shape), strides, requires_grad):
            self._write(each)
        self._call("collections", "OrderedDict")
        if untyped:
            self._name("torch", x.dtype.name)
        self.parts += b"tR"

    def _array(self, value: Any) -> None:
        array = np.asarray(value)
        if array.dtype.kind not in "biufc" or array.dtype.itemsize > 16:
            raise RuntimeError(f"torch.save: an array of {array.dtype} is no array of numbers")
        code = array.dtype.newbyteorder("<").str[1:]
        data = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()
        if isinstance(value, np.generic):
            self._name(_MULTIARRAY, "scalar")
            self.parts += b"("
            self._numpy_dtype(code)
            self._bytes(data)
            self.parts += b"tR"
            return
        self._name(_MULTIARRAY, "_reconstruct")
        self.parts += b"("
        self._name("numpy", "ndarray")
        self._tuple((0,))
        self._bytes(b"b")
        self.parts += b"tR("
        self._integer(1)
        self._tuple(array.shape)
        self._numpy_dtype(code)
        self._write(False)
        self._bytes(data)
        self.parts += b"tb"

    def _numpy_dtype(self, code: str) -> None:
        self._call("numpy", "dtype", code, False, True)
        self._tuple((3, "<" if code[-1] != "1" else "|", None, None, None, -1, -1, 0))
        self.parts += b"b"

    def _bytes(self, value: bytes | bytearray) -> None:
        if isinstance(value, bytearray):
            self._name("__builtin__", "bytearray")
            self.parts += b"("
            self._bytes(bytes(value))
            self.parts += b"tR"
            return
        self._call("_codecs", "encode", value.decode("latin-1"), "latin1")

    def _set(self, value: Any) -> None:
        self._name("__builtin__", type(value).__name__)
        self.parts += b"(]"
        self._elements(value)
        self.parts += b"tR"

    def _namespace(self, value: argparse.Namespace) -> None:
        self._name("argparse", "Namespace")
        self.parts += b")\x81"
        self._write(vars(value))
        self.parts += b"b"

    def _deque(self, value: deque[Any]) -> None:
        self._call("collections", "deque", list(value), value.maxlen)

    def _complex(self, value: complex) -> None:
        self._call("__builtin__", "complex", value.real, value.imag)


def _constant(text: bytes) -> Callable[[Pickle, Any], None]:
    def write(pickle: Pickle, _: Any) -> None:
        pickle.parts += text

    return write


def _float(pickle: Pickle, value: float) -> None:
    pickle.parts += b"G" + struct.pack(">d", value)


def _bool(pickle: Pickle, value: bool) -> None:
    pickle.parts += b"\x88" if value else b"\x89"


_WRITERS: dict[type, Callable[[Pickle, Any], None]] = {
    type(None): _constant(b"N"),
    bool: _bool,
    int: Pickle._integer,
    float: _float,
    complex: Pickle._complex,
    str: Pickle._text,
    bytes: Pickle._bytes,
    bytearray: Pickle._bytes,
    tuple: Pickle._tuple,
    list: Pickle._list,
    dict: Pickle._dict,
    OrderedDict: Pickle._dict,
    defaultdict: Pickle._dict,
    Counter: Pickle._dict,
    deque: Pickle._deque,
    set: Pickle._set,
    frozenset: Pickle._set,
    argparse.Namespace: Pickle._namespace,
    Size: lambda pickle, value: pickle._call("torch", "Size", tuple(value)),
    device: lambda pickle, value: pickle._call("torch", "device", *str(value).split(":")[:1], *_index(value)),
    wg.DType: lambda pickle, value: pickle._name("torch", value.name),
}


def _index(value: device) -> tuple[int, ...]:
    return () if value.index is None else (value.index,)


def _tensors_in(value: Any) -> Iterator[Any]:
    """All tensors in containers."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Array):
            yield each
        elif isinstance(each, dict | list | tuple | set | frozenset | deque | argparse.Namespace):
            if id(each) in seen:
                continue
            seen.add(id(each))
            inner = vars(each) if isinstance(each, argparse.Namespace) else each
            waiting += reversed(list(inner.values() if isinstance(inner, dict) else inner))


def _place(x: Any) -> tuple[Any, ...]:
    """What is equal for tensors of one storage; axes in reverse order have none in torch."""
    layout = wg.memory_layout(x)
    if min((layout.offset, *layout.strides)) < 0:
        return (id(x),)
    return layout.memory, x.dtype


def _reach(x: Any) -> int:
    """Up to which number of its memory a tensor goes."""
    _, offset, strides = wg.memory_layout(x)
    steps = sum((size - 1) * step for size, step in zip(x.shape, strides, strict=True))
    return int(offset + steps + 1) if math.prod(x.shape) else 0


def _in_order(shape: Any) -> tuple[int, ...]:
    found, step = [], 1
    for size in reversed(tuple(shape)):
        found.append(step)
        step *= max(size, 1)
    return tuple(reversed(found))
