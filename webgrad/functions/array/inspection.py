"""The namespace as the array API asks about it, its devices and their data types; and tensors' memory.

In: a device, or none for the default one. Out: the truth about it: 64-bit types, and complex numbers made of
them, are listed for the devices that have them only.
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...ops import views
from ...ops.shapes import most_axes
from ...runtime.adapters import list_adapters, rank
from ...runtime.device import DeviceLike, open_device
from ...tensor import Tensor
from .types import STANDARD, isdtype


class Info:
    """What `__array_namespace_info__` gives: the namespace's devices, types and abilities."""

    __slots__ = ()

    def capabilities(self) -> dict[str, bool | int | None]:
        """Whether masks and data-dependent shapes work (they do, and synchronise), and the most dimensions.

        >>> wg.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": most_axes() - 1,  # one holds the parts of complex numbers
        }

    def devices(self) -> tuple[str, ...]:
        """The names of the usable devices, each GPU once; a tensor's device equals its name.

        >>> "cpu" in wg.__array_namespace_info__().devices()
        True
        """
        every = list_adapters()
        return ("cpu", *(each.device for each in every if not rank(each, every)[0]))

    def default_device(self) -> str:
        """The name of the default device."""
        return open_device(None).name

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, DType]:
        """The default dtypes, the same on every device.

        >>> wg.__array_namespace_info__().default_dtypes()["integral"]
        webgrad.int32
        """
        open_device(device)  # an error, where there is no such device
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.complex64,
            "integral": dtypes.int32,
            "indexing": dtypes.int32,
        }

    def dtypes(
        self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The array API's data types that a device has, by name; of some kinds, as `isdtype` names them.

        >>> list(wg.__array_namespace_info__().dtypes(device="cpu", kind="real floating"))
        ['float32', 'float64']
        """
        features = open_device(device).info.features
        return {
            each.name: each
            for each in STANDARD
            if (not each.feature or each.feature in features) and (kind is None or isdtype(each, kind))
        }


def __array_namespace_info__() -> Any:
    """The namespace's devices, types and abilities, as the array API asks for them.

    >>> wg.__array_namespace_info__().default_dtypes(device="cpu")["real floating"]
    webgrad.float32
    """
    return Info()


def memory_layout(x: Tensor) -> views.Layout:
    """Where a tensor's elements lie in the memory that it shares with its views: which, offset, strides.

    Offset and strides count elements. Two tensors whose `memory` is equal share it: a write to one is seen in
    the other where their elements are the same ones.

    >>> x = wg.zeros((2, 3))
    >>> row = x[1]
    >>> wg.memory_layout(row)[1:], wg.memory_layout(x.T)[1:]
    ((3, (1,)), (0, (1, 3)))
    >>> wg.memory_layout(row).memory == wg.memory_layout(x).memory
    True
    """
    return views.layout(x)
