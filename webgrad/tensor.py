"""Tensors: what a user holds. A Tensor is a node of the lazy graph with the operators of a NumPy array.

In: operators, indices, methods. Out: new Tensors, or values. Nothing runs until a value is needed. The
invariant: a node never changes its value; `x += 1` and `x[0] = 1` give x another node, and with it every
tensor that is a view of x, or that x is a view of (`ops/views.py`).
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .arrays import missing, np
from .dtypes import DType
from .errors import ArgumentError, DTypeError, ShapeError
from .evaluate.evaluate import read, read_async
from .graph.node import Node
from .graph.trace import refuse_in_trace
from .ops import primitives
from .ops.count import Count, count_of
from .ops.host_arrays import host_array, leaf_of
from .ops.moves import Move
from .ops.operators import cast_to_target, combiner
from .ops.primitives import elementwise
from .ops.table import TABLE
from .ops.views import Alias, share
from .ops.writes import replace
from .runtime.device import CpuDevice
from .runtime.transfer import as_bytes
from .values import Values

if TYPE_CHECKING:
    from .functions.methods import Methods
    from .runtime.webgpu import Device
else:
    Methods = object  # functions/methods.py adds the methods

Binary = Callable[["Tensor", Any], "Tensor"]
_NUMBERS: tuple[Any, ...] = (bool, int, float, complex)
_PLAIN = frozenset(_NUMBERS)
_MISTAKEN = (list, tuple)  # operands that are refused with a hint
_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_INDEX = "Shapes are fixed, but x[i] and x[i] = y take a tensor as i, and so does take"


# Operands: the left or right operand of an operator, as a node or a number


def operand(op: str, value: Any, beside: Node) -> Any:
    """The other operand of a tensor's operator; NotImplemented for types that may define it themselves."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Tensor):
        return value.node
    if isinstance(value, np.ndarray):
        return leaf_of(op, host_array(op, value), beside.sig.device)
    if isinstance(value, _MISTAKEN):
        raise DTypeError(
            f"{op}: a {type(value).__name__} cannot be an operand of a tensor: make it a tensor, with "
            "webgrad.asarray"
        )
    if isinstance(value, np.generic):
        value = value.item()  # NumPy scalars promote like Python's: float32 * np.sqrt(2) stays float32
    for kind in _NUMBERS:
        if isinstance(value, kind):
            return kind(value)
    return NotImplemented


def _operator(name: str) -> Binary:
    """x ∘ other."""
    combine = combiner(name)

    def method(self: Tensor, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            return Tensor(combine(self.node, other.node))
        second = operand(name, other, self.node)
        return second if second is NotImplemented else Tensor(combine(self.node, second))

    return method


def _reflected(name: str) -> Binary:
    """other ∘ x, where other is not a tensor."""
    combine = combiner(name)

    def method(self: Tensor, other: Any) -> Tensor:
        first = operand(name, other, self.node)
        return first if first is NotImplemented else Tensor(combine(first, self.node))

    return method


def _in_place(name: str) -> Binary:
    """x ∘= other: x gets another node, of the shape and dtype it had."""
    combine = combiner(name)

    def method(self: Tensor, other: Any) -> Tensor:
        second = operand(name, other, self.node)
        if second is NotImplemented:
            return NotImplemented  # type: ignore[no-any-return]
        replace(self, cast_to_target(name, combine(self.node, second), self.node))
        return self

    return method


def view(base: Tensor, *moves: Move, kind: str = "view") -> Tensor:
    """A view of a tensor by moves: a write to one of them is seen in the other."""
    node = base.node
    for move, argument in moves:
        node = move(node, argument)
    made = Tensor(node)
    share(base, made, kind, moves)
    return made


def _operators(name: str) -> tuple[Binary, Binary, Binary]:
    """x ∘ other, other ∘ x, and x ∘= other."""
    return _operator(name), _reflected(name), _in_place(name)


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    op = TABLE[name]
    return lambda self: Tensor(elementwise(op, self.node))


class Tensor(Methods):
    """An array on a device, of one dtype, computed when its values are needed.

    >>> x = wg.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> (x * 2 + x.sum(axis=0)).tolist()
    [[6.0, 10.0], [10.0, 14.0]]
    """

    __slots__ = ("__weakref__", "alias", "node")
    __array_ufunc__ = None  # so that array + tensor comes to __radd__
    __array_priority__ = 1000

    def __init__(self, node: Node) -> None:
        if node.__class__ is not Node:
            raise DTypeError(
                f"a Tensor is not made from a {type(node).__name__} directly: use webgrad.asarray(values), "
                "or webgrad.zeros, ones, arange …"
            )
        self.node = node
        self.alias: Alias | None = None  # what it shares its elements with

    # What it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape: the size of each axis."""
        return self.node.sig.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.node.sig.dtype  # type: ignore[no-any-return]

    @property
    def device(self) -> Device | CpuDevice:
        """The device that holds it."""
        return self.node.sig.device  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.node.sig.shape)

    @property
    def size(self) -> Count:
        """How many elements it has; called, x.size() is the shape and x.size(0) one of its sizes."""
        return count_of(self.node.sig.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.node.sig.nbytes)

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return view(self, (primitives.permute, primitives.axes_of(len(self.node.sig.shape))[::-1]))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in _API_VERSIONS:
            raise ArgumentError(
                f"webgrad follows the array API standard up to 2025.12, and api_version={api_version!r} was "
                f"requested: use {', '.join(map(repr, _API_VERSIONS[1:]))}, or none"
            )
        return sys.modules[__package__]

    # Its values

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only NumPy array, since a write to it would not change this tensor.

        Write to the tensor instead, or make a copy: x.numpy().copy(), or np.array(x).

        >>> wg.asarray([1, 2]).numpy()
        array([1, 2], dtype=int32)
        """
        return _read_only(own_array(read(self.node), self))

    async def numpy_async(self) -> np.ndarray[Any, Any]:
        """The same without blocking the event loop.

        >>> import asyncio
        >>> asyncio.run(wg.asarray([1, 2]).numpy_async())
        array([1, 2], dtype=int32)
        """
        return _read_only(own_array(await read_async(self.node), self))

    def item(self) -> Any:
        """The only element as a Python number.

        >>> wg.asarray([2.5]).item()
        2.5
        """
        return self._only("item()")

    async def item_async(self) -> Any:
        """The same without blocking the event loop.

        >>> import asyncio
        >>> asyncio.run(wg.asarray([2.5]).item_async())
        2.5
        """
        self._check_only("item_async()")
        return _one(await read_async(self.node))

    def _only(self, what: str) -> Any:
        self._check_only(what)
        return _one(read(self.node))

    def _check_only(self, what: str) -> None:
        if self.size != 1:
            raise ShapeError(
                f"{what} needs a tensor of one element, and this one has {self.size:,} (shape {self.shape}): "
                "reduce it with any(), all(), sum() …, take one with x[index], or use tolist()"
            )

    def _only_real(self, what: str) -> Any:
        if self.dtype.kind == "c":
            raise DTypeError(
                f"{what} of a {self.dtype.name} tensor: a complex number has two parts: take x.real, x.imag "
                "or abs(x) first, or use complex(x)"
            )
        return self._only(what)

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; of a 0-d tensor one number.

        >>> wg.asarray([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return read(self.node).tolist()

    async def tolist_async(self) -> Any:
        """The same without blocking the event loop.

        >>> import asyncio
        >>> asyncio.run(wg.asarray([[1, 2], [3, 4]]).tolist_async())
        [[1, 2], [3, 4]]
        """
        return (await read_async(self.node)).tolist()

    def memoryview(self) -> builtins.memoryview:
        """The values by the buffer protocol, without NumPy.

        16-bit floats are shown as their bits, complex numbers with their parts along a last axis; a tensor
        without elements is a view of one empty axis.

        >>> wg.asarray([[1, 2], [3, 4]]).memoryview().tolist()
        [[1, 2], [3, 4]]
        """
        array = read(self.node)
        data = array.data if isinstance(array, Values) else as_bytes(array)
        return Values(bytearray(data), self.dtype, self.shape).memoryview()

    def __bool__(self) -> bool:
        return bool(self._only("bool()"))

    def __int__(self) -> int:
        return int(self._only_real("int()"))

    def __float__(self) -> float:
        return float(self._only_real("float()"))

    def __complex__(self) -> complex:
        return complex(self._only("complex()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(
                f"a {self.dtype.name} tensor is not an index: convert it with x.astype(webgrad.int32)"
            )
        what = "a tensor stands for an integer (a bound of a slice, a size, a count)"
        refuse_in_trace(what, _INDEX, (self.node,))
        return int(self._only("an index"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-d tensor has no length: its one value is x.item()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("a 0-d tensor has nothing to iterate over: its one value is x.item()")
        return (self[each] for each in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __copy__(self) -> Tensor:
        return view(self)

    def __format__(self, spec: str) -> str:
        return format(self._only(f"the format {spec!r}"), spec) if spec else str(self)

    # Operators

    __hash__ = object.__hash__  # by identity, so that a tensor can be a key although == gives a tensor

    __add__, __radd__, __iadd__ = _operators("add")
    __sub__, __rsub__, __isub__ = _operators("subtract")
    __mul__, __rmul__, __imul__ = _operators("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operators("divide")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _operators("floor_divide")
    __mod__, __rmod__, __imod__ = _operators("remainder")
    __pow__, __rpow__, __ipow__ = _operators("power")
    __and__, __rand__, __iand__ = _operators("bitwise_and")
    __or__, __ror__, __ior__ = _operators("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operators("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operators("left_shift")
    __rshift__, __rrshift__, __irshift__ = _operators("right_shift")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")  # type: ignore[assignment]
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __neg__, __abs__, __invert__ = _unary("negative"), _unary("abs"), _unary("bitwise_invert")

    def __pos__(self) -> Tensor:
        return Tensor(self.node if self.node.history is None else primitives.alias(self.node))

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Tensor:
        second = _factor(other, self)
        return second if second is NotImplemented else self.matmul(second)

    def __rmatmul__(self, other: Any) -> Tensor:
        first = _factor(other, self)
        return first if first is NotImplemented else first.matmul(self)

    def __imatmul__(self, other: Any) -> Tensor:
        replace(self, cast_to_target("matmul", (self @ other).node, self.node))
        return self


def _factor(value: Any, beside: Tensor) -> Any:
    """The other operand of @ as a tensor."""
    found = operand("matmul", value, beside.node)
    if found.__class__ in _PLAIN:
        raise ShapeError(f"matmul: {value!r} is a number, not a matrix or vector: multiply by it with *")
    return Tensor(found) if isinstance(found, Node) else found


def own_array(array: Any, x: Tensor) -> np.ndarray[Any, Any]:
    """A writable array; what is read from a GPU is writable already."""
    if isinstance(array, Values):
        raise missing("x.numpy()", "x.tolist() and x.memoryview() do")
    shared = isinstance(x.device, CpuDevice) or not array.flags.writeable
    found: np.ndarray[Any, Any] = array.copy() if shared else array
    return found


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


def _one(array: Any) -> Any:
    """The only element as a Python number."""
    return array.numbers()[0] if isinstance(array, Values) else array.reshape(-1)[0].item()
