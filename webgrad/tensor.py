"""Tensors: what a user holds. A Tensor is a node of the lazy graph with Python's and NumPy's manners.

In: operators, indices, methods. Out: new Tensors, or values. Nothing runs until a value is needed. The
invariant: a node never changes its value; `x += 1` and `x[0] = 1` give x another node, and with it every
tensor that is a view of x, or that x is a view of (`ops/views.py`).
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .arrays import has_numpy, missing, np
from .dtypes import DType
from .errors import ArgumentError, DTypeError, GradientError, ShapeError
from .evaluate.evaluate import read, read_async
from .graph.history import Call, History, recording, recording_set
from .graph.node import Node
from .graph.slots import GradientSlot
from .graph.trace import current_trace, refuse_in_trace
from .ops import primitives
from .ops.operators import combiner, fitted
from .ops.primitives import elementwise
from .ops.table import TABLE
from .ops.views import Alias, Change, Move, changes, share
from .pytorch_methods import PytorchMethods
from .runtime.device import CpuDevice, DeviceLike, open_device
from .runtime.shield import shield
from .runtime.transfer import as_bytes
from .values import Values

if TYPE_CHECKING:
    from .runtime.webgpu import Device

__all__ = ["Tensor", "give", "own_array", "view"]

Binary = Callable[["Tensor", Any], "Tensor"]
_NUMBERS: tuple[Any, ...] = (bool, int, float, complex)
_PLAIN = frozenset(_NUMBERS)
_MISTAKEN = (list, tuple)  # operands that are refused with a hint
_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_INDEX = "Shapes are fixed, but x[i] and x[i] = y take a tensor as i, and so does take"


# Operands: what stands on either side of an operator, as a node or a number


def operand(op: str, value: Any, beside: Node) -> Any:
    """What an operator takes beside a tensor; NotImplemented for what may know better itself."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Tensor):
        return value.node
    if isinstance(value, np.ndarray):
        from .ops.creation import asarray

        return asarray(value, device=beside.sig.device).node
    if isinstance(value, _MISTAKEN):
        raise DTypeError(
            f"{op}: a {type(value).__name__} is no operand beside a tensor: make a tensor of it first, with "
            "webgrad.asarray"
        )
    if isinstance(value, np.generic):
        value = value.item()  # NumPy's numbers are as weak as Python's: float32 * np.sqrt(2) stays float32
    for kind in _NUMBERS:
        if isinstance(value, kind):
            return kind(value)
    return NotImplemented


def _operator(name: str) -> Binary:
    """x ∘ other."""
    combine = combiner(name)

    def method(self: Tensor, other: Any) -> Tensor:
        if other.__class__ is Tensor:
            return Tensor(combine(self.node, other.node))
        second = operand(name, other, self.node)
        return second if second is NotImplemented else Tensor(combine(self.node, second))

    return method


def _reflected(name: str) -> Binary:
    """other ∘ x, where other is no tensor."""
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
        _replace(self, fitted(name, combine(self.node, second), self.node))
        return self

    return method


def _replace(tensor: Tensor, node: Node) -> None:
    """Give a tensor another value, and what shares elements with it; who captures a function wants to know.

    One that asks for a gradient goes on asking, and has its own node, since a mark on it is seen by all.
    """
    if tensor.alias is not None:
        give(changes(tensor, node))
        return
    trace = current_trace()
    if trace is not None:
        trace.note(tensor)
    history = tensor.node.history
    if history is not None:
        if not _stays(tensor, not recording.on):
            node = _overwritten(tensor.node, node)
        else:
            if sys.getrefcount(node) > _OWN or node.storage is not None:
                node = primitives.alias(node)
            node.history = history
    tensor.node = node


def _overwritten(old: Node, node: Node) -> Node:
    """A new value of a tensor that gradients go through. Where they do not go through the new one, it still
    requires them, as in PyTorch: what it was computed from gets 0.
    """
    if node.history is not None or not recording.on:
        return node
    with recording_set(False):
        node = primitives.alias(node)
    node.history = History(0, (Call((old,), 1, lambda gradients: [None]),))
    if recording.made is not None:
        recording.made.add(id(node))
    return node


def _stays(tensor: Tensor, keeps: bool) -> bool:
    """Whether a tensor's history is the same with another value: not where that is part of gradients."""
    history = tensor.node.history
    if not keeps and isinstance(history, GradientSlot) and history.belongs_to(tensor):
        raise GradientError(
            f"a tensor of shape {tensor.shape} that requires a gradient is changed in place, itself or "
            "through a view: gradients would be those of its old value. Change it under webgrad.no_grad(), "
            "as optimisers do, or write x = x … instead"
        )
    return keeps


def _with_history(change: Change) -> Node:
    """The node of a change, with the history that its tensor has afterwards."""
    tensor, node, keeps = change
    history = tensor.node.history
    if history is None:
        return node
    if not _stays(tensor, keeps):
        return _overwritten(tensor.node, node)
    with recording_set(False):
        node = primitives.alias(node)
    node.history = history
    return node


def give(found: Sequence[Change]) -> None:
    """Give tensors other nodes, all of them or none."""
    trace = current_trace()
    values = [(each.tensor, _with_history(each)) for each in found]
    with shield:
        for tensor, node in values:
            if trace is not None:
                trace.note(tensor)
            tensor.node = node


def view(base: Tensor, *moves: Move, kind: str = "view") -> Tensor:
    """A tensor of another's elements, moved: what is written to one of them is seen in the other."""
    node = base.node
    for move, argument in moves:
        node = move(node, argument)
    made = Tensor(node)
    share(base, made, kind, moves)
    return made


_OWN = 3  # references to a node that nobody else has: the caller's, the argument, and the count's


def _operators(name: str) -> tuple[Binary, Binary, Binary]:
    """x ∘ other, other ∘ x, and x ∘= other."""
    return _operator(name), _reflected(name), _in_place(name)


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    op = TABLE[name]
    return lambda self: Tensor(elementwise(op, self.node))


class _Function:
    """A method that is the function of the same name in a module of ops/, loaded when it is first used."""

    def __init__(self, home: str) -> None:
        self.home = home

    def __set_name__(self, owner: type[Tensor], name: str) -> None:
        self.name = name

    def __get__(self, instance: Tensor | None, owner: type[Tensor]) -> Any:
        function = getattr(importlib.import_module(f"{__package__}.ops.{self.home}"), self.name)
        setattr(Tensor, self.name, function)
        return getattr(owner if instance is None else instance, self.name)


def _function(home: str) -> Callable[..., Tensor]:
    return _Function(home)  # type: ignore[return-value]  # what it gives when it is asked for


class Tensor(PytorchMethods):
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
        """Where it is."""
        return self.node.sig.device  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.node.sig.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self.node.sig.size

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.node.sig.nbytes)

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return view(self, (primitives.permute, primitives.axes_of(len(self.node.sig.shape))[::-1]))

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        from .ops.manipulation import matrix_transpose

        return matrix_transpose(self)

    @property
    def real(self) -> Tensor:
        """The real parts of complex numbers; real numbers are their own."""
        from .ops.complex_parts import real

        return real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts of complex numbers; of real ones zeros."""
        from .ops.complex_parts import imag

        return imag(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in _API_VERSIONS:
            raise ArgumentError(
                f"webgrad follows the array API standard up to 2025.12, and api_version={api_version!r} was "
                f"asked for: ask for {', '.join(map(repr, _API_VERSIONS[1:]))}, or for none"
            )
        return sys.modules[__package__]

    # Its values

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a NumPy array that cannot be written to, since this tensor would not see it.

        Write to the tensor instead, or take a copy of your own: x.numpy().copy(), or np.array(x).

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
        """The values by the buffer protocol, with no need of NumPy.

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
                f"a {self.dtype.name} tensor is no index: convert it with x.astype(webgrad.int32)"
            )
        refuse_in_trace("a tensor stands for a whole number (a bound of a slice, a side, a count)", _INDEX)
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        from .ops.interop import to_numpy

        return to_numpy(self, dtype, copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        from .ops.interop import to_dlpack

        return to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the host, whatever the device: what is exported is a copy there

    def __reduce__(self) -> tuple[Any, ...]:
        from .ops.interop import restore

        array = self.numpy() if has_numpy() else read(self.node)
        return restore, (array, self.device.name, self.requires_grad)

    def __copy__(self) -> Tensor:
        return view(self)

    def __deepcopy__(self, memo: Any) -> Tensor:
        if not isinstance(self.node.history, GradientSlot):
            return Tensor(self.node)
        from .gradients.requires_grad import copied

        return copied(self)

    def __repr__(self) -> str:
        from .ops.display import represent

        return represent(self)

    def __str__(self) -> str:
        from .ops.display import text

        return text(self)

    def _repr_html_(self) -> str:
        from .ops.display import html

        return html(self)

    def __format__(self, spec: str) -> str:
        return format(self._only(f"the format {spec!r}"), spec) if spec else str(self)

    # Elsewhere, or otherwise

    def to_device(self, device: DeviceLike, *, stream: Any = None) -> Tensor:
        """The same values on another device; itself where it is there already. There are no streams.

        >>> wg.ones(2).to_device("cpu").device.name
        'cpu'
        """
        from .ops.interop import move

        if stream is not None:
            raise ArgumentError(f"to_device: webgrad has no streams, and stream={stream!r} was given")
        return move(self, open_device(device))

    def astype(self, dtype: Any, *, copy: bool = True, device: DeviceLike = None) -> Tensor:
        """The values in another dtype; floats become integers by truncation, kept in range, NaN as 0.

        >>> wg.asarray([1.7, -1.7]).astype(wg.int32).tolist()
        [1, -1]
        """
        from .ops.elementwise import astype

        return astype(self, dtype, copy=copy, device=device)

    def to(self, *targets: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """To a device, a dtype, both, or another tensor's, as PyTorch says it.

        >>> wg.asarray([1, 2]).to("cpu", wg.float16).dtype
        webgrad.float16
        """
        from .ops.interop import targets_of

        dtype, device = targets_of(targets, dtype, device)
        result = self if device is None else self.to_device(device)
        return result if dtype is None else result.astype(dtype, copy=False)

    def clone(self) -> Tensor:
        """A tensor of the same values; changing one of them leaves the other as it is.

        >>> x = wg.asarray([1, 2])
        >>> y = x.clone()
        >>> y[0] = 9
        >>> x.tolist()
        [1, 2]
        """
        return +self

    def contiguous(self) -> Tensor:
        """The same values; what is written to them is seen by what they are a view of only where elements
        stand there in the same order. How they really lie in memory is the compiler's business.

        >>> wg.ones((2, 3)).T.contiguous().shape
        (3, 2)
        """
        is_view = self.alias is not None and self.alias.parent is not None
        return view(self, kind="contiguous") if is_view else self

    # Gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients go to this tensor, or through it to others. Set it on tensors of floats.

        >>> x = wg.asarray([1.0, 2.0])
        >>> x.requires_grad = True
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        return self.node.history is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        from .gradients.requires_grad import ask_for_gradient

        ask_for_gradient(self, value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Itself, asking for a gradient or not.

        >>> w = wg.ones(2).requires_grad_()
        >>> (w * w).sum().backward()
        >>> w.grad.tolist()
        [2.0, 2.0]
        """
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` added up here; None before that, and after it was set to None."""
        from .gradients.requires_grad import gradient_of

        return gradient_of(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        from .gradients.requires_grad import set_gradient

        set_gradient(self, value)

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by a user, not computed from tensors that require a gradient."""
        history = self.node.history
        return history is None or (isinstance(history, GradientSlot) and history.belongs_to(self))

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False
    ) -> None:
        """Add this tensor's gradient by each tensor that requires one to that tensor's `grad`.

        It has one element, or `gradient` says how much each of its elements counts. What gradients are
        computed from is let go unless `retain_graph`; with `create_graph` gradients have gradients.

        >>> w = wg.asarray(3.0).requires_grad_()
        >>> (w * w).backward()
        >>> w.grad.item()
        6.0
        """
        from .gradients.requires_grad import backward

        backward(self, gradient, retain_graph, create_graph)

    def detach(self) -> Tensor:
        """A view of the same values that no gradient goes through.

        >>> w = wg.ones(2).requires_grad_()
        >>> (w * 2).detach().requires_grad
        False
        """
        from .gradients.requires_grad import detached

        made = detached(self)
        share(self, made, "detach", ())
        return made

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Have a function called with this tensor's gradient when that is computed; it may give another.

        Gives a handle whose `remove()` takes the hook away.

        >>> w = wg.ones(2).requires_grad_()
        >>> handle = w.register_hook(lambda gradient: gradient * 10)
        >>> (w * w).sum().backward()
        >>> w.grad.tolist()
        [20.0, 20.0]
        """
        from .gradients.requires_grad import add_hook

        return add_hook(self, hook)

    def retain_grad(self) -> None:
        """Keep the gradient in `grad`, though this tensor was computed from others.

        >>> w = wg.ones(2).requires_grad_()
        >>> y = w * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad.tolist()
        [6.0, 6.0]
        """
        from .gradients.requires_grad import retain_gradient

        retain_gradient(self)

    # Parts

    def __getitem__(self, key: Any) -> Tensor:
        from .ops.indexing import get_item

        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from .ops.indexing import set_item

        _replace(self, set_item(self, key, value).node)

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
        _replace(self, fitted("matmul", (self @ other).node, self.node))
        return self

    # PyTorch's and NumPy's ways to give a shape or axes: x.reshape(2, 3), x.reshape((2, 3))

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; one side may be -1.

        >>> wg.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        from .ops.manipulation import reshape

        return reshape(self, _together(shape))

    def view(self, *shape: Any) -> Tensor:
        """The same elements in another shape, as a view; what is written to it is seen in this tensor.

        >>> x = wg.zeros((2, 2))
        >>> x.view(-1)[3] = 1.0
        >>> x.tolist()
        [[0.0, 0.0], [0.0, 1.0]]
        """
        from .ops.manipulation import reshape

        return reshape(self, _together(shape), copy=False)

    def permute(self, *axes: Any) -> Tensor:
        """Axis i of the result is axis axes[i] of this one.

        >>> wg.ones((2, 3, 4)).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        from .ops.manipulation import permute_dims

        return permute_dims(self, _together(axes))

    def transpose(self, *axes: Any) -> Tensor:
        """Two axes exchanged, as in PyTorch; all in reverse order, or in that of a sequence, as in NumPy.

        >>> wg.zeros((2, 3, 4)).transpose(0, 1).shape, wg.zeros((2, 3, 4)).transpose((2, 0, 1)).shape
        ((3, 2, 4), (4, 2, 3))
        """
        from .ops.manipulation import permute_dims, swapaxes

        if not axes:
            return self.T
        return swapaxes(self, *axes) if len(axes) == 2 else permute_dims(self, _together(axes))

    def expand(self, *shape: Any) -> Tensor:
        """The elements repeated along axes of side 1, and new leading ones; -1 leaves a side as it is.

        >>> wg.asarray([[1], [2]]).expand(2, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
        from .ops.manipulation import expand

        return expand(self, _together(shape))

    def type_as(self, other: Tensor) -> Tensor:
        """In the dtype of another tensor.

        >>> wg.asarray([1, 2]).type_as(wg.ones(1)).dtype
        webgrad.float32
        """
        return self.astype(other.dtype)

    # Functions as methods: what x.softmax(axis=-1) takes is what wg.softmax(x, axis=-1) takes

    sum = _function("reductions")
    prod = _function("reductions")
    mean = _function("reductions")
    var = _function("reductions")
    std = _function("reductions")
    max = _function("reductions")
    min = _function("reductions")
    argmax = _function("reductions")
    argmin = _function("reductions")
    any = _function("reductions")
    all = _function("reductions")
    count_nonzero = _function("reductions")
    logsumexp = _function("reductions")
    norm = _function("reductions")
    flatten = _function("manipulation")
    squeeze = _function("manipulation")
    unsqueeze = _function("manipulation")
    broadcast_to = _function("manipulation")
    swapaxes = _function("manipulation")
    moveaxis = _function("manipulation")
    flip = _function("manipulation")
    roll = _function("manipulation")
    repeat = _function("manipulation")
    tile = _function("manipulation")
    split: Callable[..., Any] = _function("manipulation")
    chunk: Callable[..., Any] = _function("manipulation")
    unstack: Callable[..., Any] = _function("manipulation")
    tril = _function("manipulation")
    triu = _function("manipulation")
    diagonal = _function("manipulation")
    add = _function("elementwise")
    subtract = _function("elementwise")
    multiply = _function("elementwise")
    divide = _function("elementwise")
    exp = _function("elementwise")
    exp2 = _function("elementwise")
    expm1 = _function("elementwise")
    log = _function("elementwise")
    log1p = _function("elementwise")
    log2 = _function("elementwise")
    log10 = _function("elementwise")
    sin = _function("elementwise")
    cos = _function("elementwise")
    tan = _function("elementwise")
    sinh = _function("elementwise")
    cosh = _function("elementwise")
    tanh = _function("elementwise")
    erf = _function("elementwise")
    sqrt = _function("elementwise")
    rsqrt = _function("elementwise")
    sigmoid = _function("elementwise")
    abs = _function("elementwise")
    conj = _function("complex_parts")
    angle = _function("complex_parts")
    sign = _function("elementwise")
    square = _function("elementwise")
    reciprocal = _function("elementwise")
    floor = _function("elementwise")
    ceil = _function("elementwise")
    round = _function("elementwise")
    trunc = _function("elementwise")
    clip = _function("elementwise")
    clamp = _function("elementwise")
    maximum = _function("elementwise")
    minimum = _function("elementwise")
    isnan = _function("elementwise")
    isinf = _function("elementwise")
    isfinite = _function("elementwise")
    relu = _function("activations")
    gelu = _function("activations")
    silu = _function("activations")
    softmax = _function("activations")
    log_softmax = _function("activations")
    matmul = _function("products")
    dot = _function("products")
    cumsum = _function("scans")
    cumprod = _function("scans")
    sort = _function("sorting")
    argsort = _function("sorting")
    topk: Callable[..., Any] = _function("sorting")
    take = _function("indexing")
    take_along_axis = _function("indexing")
    nonzero: Callable[..., Any] = _function("indexing")
    sub = _function("pytorch")
    mul = _function("pytorch")
    div = _function("pytorch")
    neg = _function("pytorch")
    eq = _function("pytorch")
    ne = _function("pytorch")
    gt = _function("pytorch")
    ge = _function("pytorch")
    lt = _function("pytorch")
    le = _function("pytorch")
    amax = _function("pytorch")
    amin = _function("pytorch")
    mm = _function("pytorch")
    bmm = _function("pytorch")
    gather = _function("pytorch")
    index_select = _function("pytorch")
    masked_fill = _function("pytorch")
    unbind: Callable[..., Any] = _function("pytorch")
    pow = _function("elementwise")
    outer = _function("products")
    repeat_interleave = _function("manipulation")
    lerp = _function("elementwise")
    remainder = _function("elementwise")


def _factor(value: Any, beside: Tensor) -> Any:
    """The other operand of @ as a tensor."""
    found = operand("matmul", value, beside.node)
    if found.__class__ in _PLAIN:
        raise ShapeError(f"matmul: {value!r} is a number, not a matrix or vector: multiply by it with *")
    return Tensor(found) if isinstance(found, Node) else found


def _together(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape or axes, given one by one or as one sequence."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values


def own_array(array: Any, x: Tensor) -> np.ndarray[Any, Any]:
    """An array that its user may write to; what is read from a GPU is one already."""
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
