"""torch.Tensor: webgrad's tensor with torch's names, promotion of types, and meaning of methods.

In: webgrad's tensors, as its functions return them. Out: the same objects as torch's tensors: `adopt` changes
their class, so nothing is copied and nothing is lost. The methods that are functions too come from the tables
of this folder (`methods.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import webgrad as wg

from .defaults import float_dtype
from .promotion import matched, wrapped
from .shapes_of import Count, Size

__all__ = ["Array", "Tensor", "adopt", "adopting", "legacy", "written"]

Array = wg.Tensor
_REPLACED = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}  # a kind may be written to its own and to higher ones
_array_shape = Array.shape.fget  # type: ignore[attr-defined]
_array_item, _array_set = Array.__getitem__, Array.__setitem__
_array_gradient: Any = Array.grad
_array_data: Any = Array.data


_BOOL, _BYTE = wg.bool, wg.uint8
_TRUTHS = (wg.bool, bool)
_OF_BOOLS: dict[str, Callable[[Any, Any], Any]] = {
    "__add__": wg.logical_or,
    "__radd__": wg.logical_or,
    "__mul__": wg.logical_and,
    "__rmul__": wg.logical_and,
}


def _operator(name: str) -> Callable[[Any, Any], Any]:
    """An operator with torch's promotion of types."""
    compute = getattr(Array, name)
    divides = name in ("__truediv__", "__rtruediv__")
    of_bools = _OF_BOOLS.get(name, compute)

    def method(self: Any, other: Any) -> Any:
        first, second = matched(self, float(other) if divides and other.__class__ is int else other)
        if first.dtype is _BOOL and getattr(second, "dtype", second.__class__) in _TRUTHS:
            result = of_bools(first, second)
        else:
            result = compute(first, second)
        if result.__class__ is Array:
            result.__class__ = Tensor
        return result

    method.__name__ = name
    return method


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """The same, written to the first operand, which keeps its dtype."""
    change, compute = getattr(Array, f"__i{name}__"), f"__{name}__"

    def method(self: Any, other: Any) -> Any:
        first, second = matched(self, other)
        if first is self and self.dtype is not _BOOL:
            return change(self, second)
        return written(self, getattr(self, compute)(other))

    method.__name__ = f"__i{name}__"
    return method


def _adopted_property(name: str) -> property:
    read: Any = getattr(Array, name).fget
    turns = name in ("mT", "mH", "H")
    return property(lambda self: self if turns and not self.ndim else adopt(read(self)))


class Tensor(Array):
    """A tensor as torch has it: `dim=`, `keepdim=`, `size()`, `view`, in-place forms, torch's promotion.

    >>> import webgrad.torch as torch
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.max(dim=1).values.tolist(), x.size()
    ([2.0, 4.0], torch.Size([2, 2]))
    """

    __slots__ = ()
    __hash__ = Array.__hash__

    def __new__(cls, *data: Any, device: Any = None) -> Any:
        """As torch.FloatTensor: sizes, a sequence of values, another tensor's values, or nothing."""
        made = legacy(data, device, float_dtype())
        made.__class__ = cls
        return made

    def __init__(self, *data: Any, device: Any = None) -> None:
        """What there is to do `__new__` has done."""

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return Size(_array_shape(self))

    @property
    def size(self) -> Any:
        """x.size() is the shape, x.size(dim) one of its sizes; the number of elements is x.numel()."""
        return Count(_array_shape(self))

    @property
    def grad(self) -> Any:
        """The gradient that `backward` has added up, or None."""
        return adopt(_array_gradient.fget(self))

    @grad.setter
    def grad(self, value: Any) -> None:
        _array_gradient.fset(self, value)

    @property
    def data(self) -> Any:
        """A view of the values that no gradient goes through."""
        return adopt(self.detach())

    @data.setter
    def data(self, value: Any) -> None:
        _array_data.fset(self, value)

    def __getitem__(self, key: Any) -> Any:
        return adopt(_array_item(self, _with_masks(key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        if value.__class__ is int and value < 0:
            value = wrapped(value, self.dtype)
        _array_set(self, _with_masks(key), value)

    def __iter__(self) -> Iterator[Any]:
        if not _array_shape(self):
            raise TypeError("iteration over a 0-d tensor")
        return (self[each] for each in range(len(self)))


def _with_masks(key: Any) -> Any:
    """A key in which bytes, which torch still takes for masks, are bools."""
    if key.__class__ is tuple:
        return tuple([_with_masks(each) for each in key])
    return key.astype(_BOOL) if isinstance(key, Array) and key.dtype is _BYTE else key


def adopting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with torch's tensors as results."""

    def adopted(*args: Any, **kwargs: Any) -> Any:
        return adopt(function(*args, **kwargs))

    adopted.__name__ = getattr(function, "__name__", "adopted")
    adopted.__doc__ = function.__doc__
    return adopted


_OPERATORS = (
    "add sub mul truediv floordiv mod pow and or xor lshift rshift radd rsub rmul rtruediv rfloordiv rmod "
    "rpow rand ror rxor rlshift rrshift eq ne lt le gt ge"
)
_IN_PLACE = "add sub mul truediv floordiv mod pow and or xor lshift rshift"
for _name in _OPERATORS.split():
    setattr(Tensor, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _IN_PLACE.split():
    setattr(Tensor, f"__i{_name}__", _in_place(_name))
for _name in ("T", "mT", "H", "mH", "real", "imag"):
    setattr(Tensor, _name, _adopted_property(_name))
Tensor.__rdiv__ = Tensor.__rtruediv__  # type: ignore[attr-defined]
for _name in ("__neg__", "__abs__", "__invert__", "__pos__", "__copy__", "__deepcopy__"):
    setattr(Tensor, _name, adopting(getattr(Array, _name)))


def adopt(value: Any) -> Any:
    """The same with webgrad's tensors as torch's, in tuples, lists and dicts too."""
    kind = value.__class__
    if kind is Array:
        value.__class__ = Tensor
    elif kind is Tensor:
        pass  # the most frequent, after those
    elif kind is tuple or kind is list or (issubclass(kind, tuple) and kind is not Size):
        for each in value:
            adopt(each)
    elif kind is dict:
        for each in value.values():
            adopt(each)
    return value


def written(target: Any, value: Any, resize: bool = False) -> Any:
    """A tensor with the values of another written to it; with `resize` an empty one takes its shape too."""
    if isinstance(target, tuple | list):
        for each, one in zip(target, value, strict=True):
            written(each, one, resize)
        return target
    if isinstance(value, Array):
        if _REPLACED[value.dtype.kind] > _REPLACED[target.dtype.kind]:
            raise wg.DTypeError(
                f"result type {value.dtype.name} can't be cast to the desired output type {target.dtype.name}"
            )
        shape = _array_shape(value)
        if shape != _array_shape(target):
            if not resize:
                raise wg.ShapeError(
                    f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}"
                )
            target.data = value.astype(target.dtype)
            return target
    _array_set(target, ..., value)
    return target


def legacy(data: tuple[Any, ...], device: Any, dtype: Any) -> Any:
    """As torch.FloatTensor: zeros of some sizes, the values of a sequence, or nothing."""
    if len(data) == 1 and not isinstance(data[0], Integral):
        if not isinstance(data[0], Size):
            return wg.asarray(data[0], dtype=dtype, device=device, copy=True)
        data = tuple(data[0])
    return wg.zeros(data or (0,), dtype=dtype, device=device)
