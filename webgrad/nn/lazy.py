"""Lazy layers: their first input says how many features or channels they take; PyTorch's names.

In: a layer's arguments without the first, its size. Out: the layer itself, once it was called: until then
its parameters have no shape, and `reset_parameters` waits. Make the optimiser after the first call.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import webgrad as wg

from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
)
from .parameter import UninitializedBuffer, UninitializedParameter

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin(Module):
    """What lazy layers share: they take their size from their first input, and are plain layers from then on.

    >>> layer = wg.nn.LazyLinear(2)
    >>> layer(wg.zeros((5, 3))).shape, layer
    ((5, 2), Linear(in_features=3, out_features=2, bias=True))
    """

    cls_to_become: ClassVar[type[Module]]

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
        axis = self._size_axis(x.ndim)
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
                    tensor.materialize(new[name].shape)
                    tensor.data = new[name]
        setattr(self, self._size_name, size)
        for name in ("_size_name", "_arguments"):
            del self.__dict__[name]
        self._settle(self.cls_to_become)

    @staticmethod
    def _size_axis(ndim: int) -> int:
        """Where the features or channels are in inputs of so many axes."""
        raise NotImplementedError

    def _settle(self, kind: type[Module]) -> None:
        """Be a module of another class from now on."""
        self.__class__ = kind  # type: ignore[assignment]

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the layer gives, which it becomes by this."""
        self.initialize_parameters(inputs[0])
        return self.forward(*inputs, **options)


class LazyLinear(LazyModuleMixin, Linear):
    """`Linear` that takes its size from its first input.

    >>> wg.nn.LazyLinear(2).has_uninitialized_params()
    True
    """

    cls_to_become = Linear

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return -1


class LazyConv1d(LazyModuleMixin, Conv1d):
    """`Conv1d` that takes its size from its first input.

    >>> wg.nn.LazyConv1d(2, 3).has_uninitialized_params()
    True
    """

    cls_to_become = Conv1d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 2


class LazyConv2d(LazyModuleMixin, Conv2d):
    """`Conv2d` that takes its size from its first input.

    >>> wg.nn.LazyConv2d(2, 3).has_uninitialized_params()
    True
    """

    cls_to_become = Conv2d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 3


class LazyConv3d(LazyModuleMixin, Conv3d):
    """`Conv3d` that takes its size from its first input.

    >>> wg.nn.LazyConv3d(2, 3).has_uninitialized_params()
    True
    """

    cls_to_become = Conv3d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 4


class LazyConvTranspose1d(LazyModuleMixin, ConvTranspose1d):
    """`ConvTranspose1d` that takes its size from its first input.

    >>> wg.nn.LazyConvTranspose1d(2, 3).has_uninitialized_params()
    True
    """

    cls_to_become = ConvTranspose1d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 2


class LazyConvTranspose2d(LazyModuleMixin, ConvTranspose2d):
    """`ConvTranspose2d` that takes its size from its first input.

    >>> wg.nn.LazyConvTranspose2d(2, 3).has_uninitialized_params()
    True
    """

    cls_to_become = ConvTranspose2d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 3


class LazyConvTranspose3d(LazyModuleMixin, ConvTranspose3d):
    """`ConvTranspose3d` that takes its size from its first input.

    >>> wg.nn.LazyConvTranspose3d(2, 3).has_uninitialized_params()
    True
    """

    cls_to_become = ConvTranspose3d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 4


class LazyBatchNorm1d(LazyModuleMixin, BatchNorm1d):
    """`BatchNorm1d` that takes its size from its first input.

    >>> wg.nn.LazyBatchNorm1d().has_uninitialized_params()
    True
    """

    cls_to_become = BatchNorm1d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return 1


class LazyBatchNorm2d(LazyModuleMixin, BatchNorm2d):
    """`BatchNorm2d` that takes its size from its first input.

    >>> wg.nn.LazyBatchNorm2d().has_uninitialized_params()
    True
    """

    cls_to_become = BatchNorm2d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return 1


class LazyBatchNorm3d(LazyModuleMixin, BatchNorm3d):
    """`BatchNorm3d` that takes its size from its first input.

    >>> wg.nn.LazyBatchNorm3d().has_uninitialized_params()
    True
    """

    cls_to_become = BatchNorm3d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return 1


class LazyInstanceNorm1d(LazyModuleMixin, InstanceNorm1d):
    """`InstanceNorm1d` that takes its size from its first input.

    >>> wg.nn.LazyInstanceNorm1d(affine=True).has_uninitialized_params()
    True
    """

    cls_to_become = InstanceNorm1d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 2


class LazyInstanceNorm2d(LazyModuleMixin, InstanceNorm2d):
    """`InstanceNorm2d` that takes its size from its first input.

    >>> wg.nn.LazyInstanceNorm2d(affine=True).has_uninitialized_params()
    True
    """

    cls_to_become = InstanceNorm2d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 3


class LazyInstanceNorm3d(LazyModuleMixin, InstanceNorm3d):
    """`InstanceNorm3d` that takes its size from its first input.

    >>> wg.nn.LazyInstanceNorm3d(affine=True).has_uninitialized_params()
    True
    """

    cls_to_become = InstanceNorm3d

    @staticmethod
    def _size_axis(ndim: int) -> int:
        return ndim - 4
