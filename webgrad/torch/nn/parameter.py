"""torch.nn.parameter: parameters and buffers, tensors that are members of modules.

In: tensors. Out: torch's tensors that `Module` registers when they are assigned.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..tensor import Tensor

__all__ = ["Buffer", "Parameter"]


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
