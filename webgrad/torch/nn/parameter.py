"""torch.nn.parameter: parameters and buffers, tensors that are members of modules.

In: tensors. Out: torch's tensors that `Module` registers when they are assigned.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..devices import place
from ..tensor import Tensor

__all__ = ["PLAIN", "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class Parameter(wg.nn.Parameter, Tensor):
    """A tensor that a module owns and that is trained."""

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        made: Any = wg.nn.Parameter(wg.zeros(0) if data is None else data, requires_grad)
        made.__class__ = cls
        return made

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        """What there is to do `__new__` has done."""

    def __str__(self) -> str:
        return self.__repr__()

    def __copy__(self) -> Any:
        return type(self)(self, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        copy = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.detach().numpy(), self.device.name, self.requires_grad)


def _restored(kind: Any, values: Any, device: str, requires_grad: bool) -> Any:
    return kind(wg.asarray(values, device=device), requires_grad)


class Buffer(Tensor):
    """A tensor that is part of a module's state and is not trained."""

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        made: Any = wg.zeros(0) if data is None else data.detach()
        made.__class__ = Buffer if persistent else TransientBuffer
        return made

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        """What there is to do `__new__` has done."""


class TransientBuffer(Buffer):
    """A buffer that is not saved."""

    __slots__ = ()


class UninitializedParameter(wg.nn.UninitializedParameter, Parameter):
    """A parameter of a lazy layer, which has no shape yet."""

    __slots__ = ()
    settled = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        made: Any = wg.nn.UninitializedParameter(requires_grad, place(device), dtype)
        made.__class__ = cls
        return made


class UninitializedBuffer(wg.nn.UninitializedBuffer, Tensor):
    """A buffer of a lazy layer, which has no shape yet."""

    __slots__ = ()
    settled = Tensor

    def __new__(cls, device: Any = None, dtype: Any = None) -> Any:
        made: Any = wg.nn.UninitializedBuffer(place(device), dtype)
        made.__class__ = cls
        return made


def is_lazy(param: Any) -> bool:
    """Whether it has no shape yet."""
    return isinstance(param, wg.nn.UninitializedParameter | wg.nn.UninitializedBuffer)


# webgrad's classes of what modules hold, and torch's
PLAIN: dict[type, type] = {
    wg.nn.Parameter: Parameter,
    wg.nn.UninitializedParameter: UninitializedParameter,
    wg.nn.UninitializedBuffer: UninitializedBuffer,
}
