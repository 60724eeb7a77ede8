"""The methods of tensors that call functions; importing this module adds them to Tensor.

In: nothing. Out: `Tensor` with the members of `Methods`. They are not in `tensor.py`, since the functions
that they call import `Tensor`.
"""
# mypy: disable-error-code="misc"
# A member's self is a Tensor, which has the members of Methods and no other class has.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..arrays import has_numpy, np
from ..errors import ArgumentError
from ..evaluate.evaluate import read
from ..gradients import requires_grad
from ..gradients.hooks import HookHandle
from ..gradients.slots import GradientSlot
from ..ops.views import share
from ..ops.writes import replace
from ..porting import message
from ..runtime.device import DeviceLike, open_device
from ..tensor import Tensor, view
from .array import display, elementwise, indexing, interop, reshaping
from .complex import parts
from .method_table import FunctionMethods
from .pytorch_methods import PytorchMethods


class Methods(FunctionMethods, PytorchMethods):
    """The members of Tensor other than operators and reads."""

    __slots__ = ()

    # Parts and other shapes

    @property
    def mT(self: Tensor) -> Tensor:
        """The last two axes exchanged."""
        return reshaping.matrix_transpose(self)

    @property
    def real(self: Tensor) -> Tensor:
        """The real parts of complex numbers; real numbers are their own."""
        return parts.real(self)

    @property
    def imag(self: Tensor) -> Tensor:
        """The imaginary parts of complex numbers; of real ones zeros."""
        return parts.imag(self)

    # For other libraries, and for readers

    def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return interop.to_numpy(self, dtype, copy)

    def __dlpack__(
        self: Tensor,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        return interop.to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self: Tensor) -> tuple[int, int]:
        return 1, 0  # the host, whatever the device: what is exported is a copy there

    def __reduce__(self: Tensor) -> tuple[Any, ...]:
        array = self.numpy() if has_numpy() else read(self.node)
        return interop.restore, (array, self.device.name, self.requires_grad)

    def __deepcopy__(self: Tensor, memo: Any) -> Tensor:
        if not isinstance(self.node.history, GradientSlot):
            return Tensor(self.node)
        return requires_grad.copied(self)

    def __repr__(self: Tensor) -> str:
        return display.represent(self)

    def __str__(self: Tensor) -> str:
        return display.text(self)

    def _repr_html_(self: Tensor) -> str:
        return display.html(self)

    # Elsewhere, or in another dtype

    def to_device(self: Tensor, device: DeviceLike, *, stream: Any = None) -> Tensor:
        """The same values on another device; itself where it is there already. There are no streams.

        >>> wg.ones(2).to_device("cpu").device.name
        'cpu'
        """
        if stream is not None:
            raise ArgumentError(f"to_device: webgrad has no streams, and stream={stream!r} was given")
        return interop.move(self, open_device(device))

    def astype(self: Tensor, dtype: Any, *, copy: bool = True, device: DeviceLike = None) -> Tensor:
        """The values in another dtype; floats become integers by truncation, clamped, NaN as 0.

        >>> wg.asarray([1.7, -1.7]).astype(wg.int32).tolist()
        [1, -1]
        """
        return elementwise.astype(self, dtype, copy=copy, device=device)

    def to(self: Tensor, *targets: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """To a device, a dtype, both, or another tensor's, as in PyTorch.

        >>> wg.asarray([1, 2]).to("cpu", wg.float16).dtype
        webgrad.float16
        """
        dtype, device = interop.targets_of(targets, dtype, device)
        result = self if device is None else self.to_device(device)
        return result if dtype is None else result.astype(dtype, copy=False)

    def clone(self: Tensor) -> Tensor:
        """A tensor of the same values; changing one of them leaves the other as it is.

        >>> x = wg.asarray([1, 2])
        >>> y = x.clone()
        >>> y[0] = 9
        >>> x.tolist()
        [1, 2]
        """
        return +self

    def contiguous(self: Tensor) -> Tensor:
        """The same values: a view where the elements are in order already, else a copy. The real layout in
        memory is up to the compiler.

        >>> wg.ones((2, 3)).T.contiguous().shape
        (3, 2)
        """
        is_view = self.alias is not None and self.alias.parent is not None
        return view(self, kind="contiguous") if is_view else self

    # Gradients

    @property
    def requires_grad(self: Tensor) -> bool:
        """Whether gradients go to this tensor, or through it to others. Set it on tensors of floats.

        >>> x = wg.asarray([1.0, 2.0])
        >>> x.requires_grad = True
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        return self.node.history is not None

    @requires_grad.setter
    def requires_grad(self: Tensor, value: bool) -> None:
        requires_grad.ask_for_gradient(self, value)

    def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad`, and give the tensor itself.

        >>> w = wg.ones(2).requires_grad_()
        >>> (w * w).sum().backward()
        >>> w.grad.tolist()
        [2.0, 2.0]
        """
        self.requires_grad = requires_grad
        return self

    @property
    def grad(self: Tensor) -> Tensor | None:
        """The gradient accumulated by `backward`; None before that, and after it was set to None."""
        return requires_grad.gradient_of(self)

    @grad.setter
    def grad(self: Tensor, value: Tensor | None) -> None:
        requires_grad.set_gradient(self, value)

    @property
    def is_leaf(self: Tensor) -> bool:
        """Whether it was made by a user, not computed from tensors that require a gradient."""
        history = self.node.history
        return history is None or (isinstance(history, GradientSlot) and history.belongs_to(self))

    def backward(
        self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False
    ) -> None:
        """Add this tensor's gradient by each tensor that requires one to that tensor's `grad`.

        The tensor has one element, or `gradient` is the gradient of its elements. The graph is freed unless
        `retain_graph`; with `create_graph` gradients have gradients.

        >>> w = wg.asarray(3.0).requires_grad_()
        >>> (w * w).backward()
        >>> w.grad.item()
        6.0
        """
        requires_grad.backward(self, gradient, retain_graph, create_graph)

    def detach(self: Tensor) -> Tensor:
        """A view of the same values that no gradient goes through.

        >>> w = wg.ones(2).requires_grad_()
        >>> (w * 2).detach().requires_grad
        False
        """
        made = requires_grad.detached(self)
        share(self, made, "detach", ())
        return made

    def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call a function with this tensor's gradient when that is computed; it may return another gradient.

        Gives a handle whose `remove()` removes the hook.

        >>> w = wg.ones(2).requires_grad_()
        >>> handle = w.register_hook(lambda gradient: gradient * 10)
        >>> (w * w).sum().backward()
        >>> w.grad.tolist()
        [20.0, 20.0]
        """
        return requires_grad.add_hook(self, hook)

    def retain_grad(self: Tensor) -> None:
        """Keep the gradient in `grad`, though this tensor was computed from others.

        >>> w = wg.ones(2).requires_grad_()
        >>> y = w * 3
        >>> y.retain_grad()
        >>> (y * y).sum().backward()
        >>> y.grad.tolist()
        [6.0, 6.0]
        """
        requires_grad.retain_gradient(self)

    # Indexing

    def __getitem__(self: Tensor, key: Any) -> Tensor:
        return indexing.get_item(self, key)

    def __setitem__(self: Tensor, key: Any, value: Any) -> None:
        replace(self, indexing.set_item(self, key, value).node)

    # PyTorch's and NumPy's ways to give a shape or axes: x.reshape(2, 3), x.reshape((2, 3))

    def reshape(self: Tensor, *shape: Any) -> Tensor:
        """The same elements in another shape; one size may be -1.

        >>> wg.arange(6).reshape(2, -1).shape
        (2, 3)
        """
        return reshaping.reshape(self, _one_sequence(shape))

    def view(self: Tensor, *shape: Any) -> Tensor:
        """The same elements in another shape, as a view; what is written to it is seen in this tensor.

        >>> x = wg.zeros((2, 2))
        >>> x.view(-1)[3] = 1.0
        >>> x.tolist()
        [[0.0, 0.0], [0.0, 1.0]]
        """
        return reshaping.reshape(self, _one_sequence(shape), copy=False)

    def permute(self: Tensor, *axes: Any) -> Tensor:
        """Axis i of the result is axis axes[i] of this one.

        >>> wg.ones((2, 3, 4)).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        return reshaping.permute_dims(self, _one_sequence(axes))

    def transpose(self: Tensor, *axes: Any) -> Tensor:
        """Two axes exchanged, as in PyTorch; all in reverse order, or in that of a sequence, as in NumPy.

        >>> wg.zeros((2, 3, 4)).transpose(0, 1).shape, wg.zeros((2, 3, 4)).transpose((2, 0, 1)).shape
        ((3, 2, 4), (4, 2, 3))
        """
        if not axes:
            return self.T
        return (
            reshaping.swapaxes(self, *axes)
            if len(axes) == 2
            else reshaping.permute_dims(self, _one_sequence(axes))
        )

    def expand(self: Tensor, *shape: Any) -> Tensor:
        """The elements repeated along axes of size 1, and new leading ones; -1 keeps the size of an axis.

        >>> wg.asarray([[1], [2]]).expand(2, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
        return reshaping.expand(self, _one_sequence(shape))

    def type_as(self: Tensor, other: Tensor) -> Tensor:
        """In the dtype of another tensor.

        >>> wg.asarray([1, 2]).type_as(wg.ones(1)).dtype
        webgrad.float32
        """
        return self.astype(other.dtype)


def _one_sequence(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape or axes, given one by one or as one sequence."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values


def _refuse(x: Any, name: str) -> NoReturn:
    """Say what a member that tensors do not have is here; no member in a class body, for type checkers."""
    own = type(x) is Tensor
    raise AttributeError(message("a Tensor", "x" if own else "", name, tuple(dir(Tensor)) if own else ()))


_OF_CLASSES = frozenset(
    ("__annotations__", "__doc__", "__firstlineno__", "__module__", "__slots__", "__static_attributes__")
)
for _each in reversed(Methods.__mro__[:-1]):
    for _name, _member in vars(_each).items():
        if _name not in _OF_CLASSES:
            setattr(Tensor, _name, _member)
setattr(Tensor, "__getattr__", _refuse)  # noqa: B010
