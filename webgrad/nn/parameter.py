"""Parameters: tensors that a module owns and that training changes.

In: values. Out: a Tensor that modules register by its attribute's name. The invariant: a parameter stays the
same object while its values change, dtype and device included, so optimisers and captured functions see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import webgrad as wg

__all__ = ["Parameter", "UninitializedBuffer", "UninitializedParameter", "assign"]


class Parameter(wg.Tensor):
    """A tensor that a module owns: set as an attribute of a `Module`, it is one of its `parameters()`.

    >>> p = wg.nn.Parameter([1.0, 2.0])
    >>> p.requires_grad, p.shape
    (True, (2,))
    """

    __slots__ = ()

    if TYPE_CHECKING:  # what is changed in place is itself

        def __iadd__(self, other: Any) -> Parameter: ...
        def __isub__(self, other: Any) -> Parameter: ...
        def __imul__(self, other: Any) -> Parameter: ...
        def __itruediv__(self, other: Any) -> Parameter: ...

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        values = data.detach() if isinstance(data, wg.Tensor) else wg.asarray(data)
        if requires_grad and values.dtype.kind not in "fc":
            raise wg.DTypeError(
                f"Parameter: {values.dtype.name} values have no gradients; convert them to floats with "
                "x.astype(webgrad.float32), or say requires_grad=False"
            )
        super().__init__(values.node)
        self.requires_grad = requires_grad

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __copy__(self) -> Parameter:
        return Parameter(self, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Parameter:
        return Parameter(self, self.requires_grad)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.numpy(), self.device.name, self.requires_grad)


def _restored(values: Any, device: str, requires_grad: bool) -> Parameter:
    return Parameter(wg.asarray(values, device=device), requires_grad)


class UninitializedParameter(Parameter):
    """A parameter of a lazy layer, which has no shape until the layer's first call.

    >>> wg.nn.LazyLinear(2).weight
    UninitializedParameter
    """

    __slots__ = ()
    settled: ClassVar[type] = Parameter  # what it is once it has a shape

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(wg.zeros(0, dtype=dtype, device=device), requires_grad)

    def materialize(self, shape: Sequence[int]) -> None:
        """Take a shape; the values are zeros."""
        _materialise(self, shape)

    def __repr__(self) -> str:
        return type(self).__name__

    __str__ = __repr__

    def __copy__(self) -> Parameter:
        return type(self)(self.requires_grad, self.device, self.dtype)

    def __deepcopy__(self, memo: Any) -> Parameter:
        return self.__copy__()


class UninitializedBuffer(wg.Tensor):
    """A buffer of a lazy layer, which has no shape until the layer's first call.

    >>> wg.nn.LazyBatchNorm1d().running_mean
    UninitializedBuffer
    """

    __slots__ = ()
    settled: ClassVar[type] = wg.Tensor

    def __init__(self, device: Any = None, dtype: Any = None) -> None:
        super().__init__(wg.zeros(0, dtype=dtype, device=device).node)

    def materialize(self, shape: Sequence[int]) -> None:
        """Take a shape; the values are zeros."""
        _materialise(self, shape)

    def __repr__(self) -> str:
        return type(self).__name__

    __str__ = __repr__


def _materialise(tensor: Any, shape: Sequence[int]) -> None:
    tensor.data = wg.zeros(tuple(shape), dtype=tensor.dtype, device=tensor.device)
    tensor.__class__ = tensor.settled


def assign(tensor: wg.Tensor, value: wg.Tensor) -> None:
    """Give a tensor the values of another, be they of its dtype and on its device or not.

    It asks for a gradient if it did, and has none.
    """
    tensor.data = value
    tensor.grad = None
