"""Lazy layers: their first input says how many features or channels they take; PyTorch's names.

In: a layer's arguments without the first, its size. Out: the layer itself, once it was called: until then
its parameters have no shape, and `reset_parameters` waits. Make the optimiser after the first call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import webgrad as wg

from . import convolution, linear, normalisation
from .module import Module
from .parameter import UninitializedBuffer, UninitializedParameter

# A layer, and where its features or channels are in inputs of so many axes
_LAYERS: dict[type[Module], Callable[[int], int]] = {
    linear.Linear: lambda ndim: -1,
    convolution.Conv1d: lambda ndim: ndim - 2,
    convolution.Conv2d: lambda ndim: ndim - 3,
    convolution.Conv3d: lambda ndim: ndim - 4,
    convolution.ConvTranspose1d: lambda ndim: ndim - 2,
    convolution.ConvTranspose2d: lambda ndim: ndim - 3,
    convolution.ConvTranspose3d: lambda ndim: ndim - 4,
    normalisation.BatchNorm1d: lambda ndim: 1,
    normalisation.BatchNorm2d: lambda ndim: 1,
    normalisation.BatchNorm3d: lambda ndim: 1,
    normalisation.InstanceNorm1d: lambda ndim: ndim - 2,
    normalisation.InstanceNorm2d: lambda ndim: ndim - 3,
    normalisation.InstanceNorm3d: lambda ndim: ndim - 4,
}
__all__ = ["LazyModuleMixin", *(f"Lazy{each.__name__}" for each in _LAYERS)]


class LazyModuleMixin(Module):
    """What lazy layers share: they take their size from their first input, and are plain layers from then on.

    >>> layer = wg.nn.LazyLinear(2)
    >>> layer(wg.zeros((5, 3))).shape, layer
    ((5, 2), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become: ClassVar[type[Module]]
    size_axis: ClassVar[Callable[[int], int]]

    def __init__(self, *args: Any, **options: Any) -> None:
        kind = self.cls_to_become
        given = inspect.signature(kind).bind(1, *args, **options)
        self._size_name, *_ = given.arguments
        given.arguments[self._size_name] = given.arguments.get("groups", 1)  # until it is known
        kind.__init__(self, *given.args, **given.kwargs)
        self._arguments = {key: value for key, value in given.arguments.items() if key != self._size_name}
        setattr(self, self._size_name, 0)
        for name, each in self._parameters.items():
            if each is not None:
                fresh = UninitializedParameter(each.requires_grad, each.device, each.dtype)
                self._put("_parameters", name, fresh)
        for name, buffer in self._buffers.items():
            if buffer is not None and buffer.ndim:
                self._buffers[name] = UninitializedBuffer(buffer.device, buffer.dtype)

    def has_uninitialized_params(self) -> bool:
        """Whether it still waits for its first input, or for a state to load."""
        waiting = (UninitializedParameter, UninitializedBuffer)
        return any(
            isinstance(each, waiting) for each in (*self._parameters.values(), *self._buffers.values())
        )

    def initialize_parameters(self, x: wg.Tensor) -> None:
        """Take the size from an input, and become the plain layer; what was loaded before stays."""
        axis = type(self).size_axis(x.ndim)
        if not -1 <= axis < x.ndim or not x.ndim:
            raise wg.ShapeError(f"{type(self).__name__}: x {x.shape} has not enough axes to take a size from")
        size = int(x.shape[axis])
        waiting = [each for each in self._parameters.values() if isinstance(each, UninitializedParameter)]
        place = {"device": waiting[0].device, "dtype": waiting[0].dtype} if waiting else {}
        kind: Any = self.cls_to_become
        made = kind(size, **{**self._arguments, **place})
        for own, new in ((self._parameters, made._parameters), (self._buffers, made._buffers)):
            for name, tensor in list(own.items()):
                if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
                    tensor.materialize(new[name].shape)  # type: ignore[union-attr]
                    tensor.data = new[name]
        setattr(self, self._size_name, size)
        for name in ("_size_name", "_arguments"):
            del self.__dict__[name]
        self._settle(self.cls_to_become)

    def _settle(self, kind: type[Module]) -> None:
        """Be a module of another class from now on."""
        self.__class__ = kind  # type: ignore[assignment]

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the layer gives, which it becomes by this."""
        self.initialize_parameters(inputs[0])
        return self.forward(*inputs, **options)


_ARGUMENTS = {"Linear": "2", "Conv": "2, 3", "Instance": "affine=True"}  # of an example


def _lazy(kind: type[Module], size_axis: Callable[[int], int]) -> type[Module]:
    """The lazy form of a layer."""
    name = f"Lazy{kind.__name__}"
    given = next((each for word, each in _ARGUMENTS.items() if word in name), "")
    example = f"wg.nn.{name}({given}).has_uninitialized_params()"
    scope: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"`{kind.__name__}` that takes its size from its first input.\n\n>>> {example}\nTrue\n",
        "cls_to_become": kind,
        "size_axis": staticmethod(size_axis),
    }
    return type(name, (LazyModuleMixin, kind), scope)


globals().update({f"Lazy{each.__name__}": _lazy(each, axis) for each, axis in _LAYERS.items()})
