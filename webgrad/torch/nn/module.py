"""torch.nn.Module and Parameter: webgrad's own, whose tensors are torch's.

In: webgrad's classes of modules. Out: classes of the same names whose calls return torch's tensors, and whose
parameters, buffers and parts are torch's: what a module is given, and what it makes itself, is adopted where
it is assigned.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import webgrad as wg

from ..devices import device as Device
from ..devices import place
from ..tensor import Array, Tensor, adopt

__all__ = ["Buffer", "Module", "Parameter", "counterpart"]

_COUNTERPARTS: dict[type, type] = {}  # webgrad's class → torch's


class Parameter(wg.nn.Parameter, Tensor):
    """A tensor that a module owns and that is trained."""

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        made: Any = wg.nn.Parameter(wg.zeros(0) if data is None else data, requires_grad)
        made.__class__ = cls
        return made

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        """What there is to do `__new__` has done."""

    def __copy__(self) -> Any:
        return Parameter(self, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        copy = memo[id(self)] = Parameter(self.detach().clone(), self.requires_grad)
        return copy


class Buffer(Tensor):
    """A tensor that is part of a module's state and is not trained."""

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        return wg.zeros(0) if data is None else data


class Module(wg.nn.Module):
    """What every layer and model is."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return adopt(super().__call__(*inputs, **options))

    def _put(self, place: str, name: str, value: Any) -> None:
        super()._put(place, name, _own(value))

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """The values of all parameters and persistent buffers by dotted names."""
        found: Any = OrderedDict() if destination is None else destination
        prefix = args[1] if len(args) > 1 else prefix
        values = dict(self._state(prefix)) if keep_vars else super().state_dict(prefix)
        found.update({name: adopt(each) for name, each in values.items()})
        return found

    def to(self, *targets: Any, dtype: Any = None, device: Any = None, **hints: Any) -> Any:
        """To a device, a dtype, both, or another tensor's; only floats change their dtype."""
        given = [each for each in targets if not isinstance(each, bool) and each is not None]
        devices = [each for each in given if isinstance(each, str | int | Device)]
        rest = [each for each in given if not isinstance(each, str | int | Device)]
        where = place(devices[0] if devices else device)
        return super().to(*rest, dtype=dtype, device=where)

    def cuda(self, device: Any = None) -> Any:
        """To the best device."""
        return self.to("cuda" if device is None else device)

    def type(self, dst_type: Any) -> Any:
        """Floats in another dtype."""
        return self.to(getattr(dst_type, "dtype", dst_type))


def _own(value: Any) -> Any:
    """A parameter, buffer or module as torch's."""
    if isinstance(value, wg.nn.Module):
        for each in value.modules():
            _become(each)
    elif value.__class__ is wg.nn.Parameter:
        value.__class__ = Parameter
    elif isinstance(value, Array):
        adopt(value)
    return value


def _become(module: Any) -> None:
    """One module, as torch's, with its own tensors."""
    wanted = _COUNTERPARTS.get(module.__class__)
    if wanted is None:
        return
    module.__class__ = wanted
    for each in (*module._parameters.values(), *module._buffers.values()):
        _own(each)


def counterpart(original: type) -> type:
    """torch's class of one of webgrad's modules; classes derived from each other stay so."""
    if original is wg.nn.Module:
        return Module
    if original not in _COUNTERPARTS:
        above = next(each for each in original.__mro__[1:] if issubclass(each, wg.nn.Module))
        _COUNTERPARTS[original] = type(
            original.__name__,
            (counterpart(above), original),
            {"__module__": "webgrad.torch.nn", "__doc__": original.__doc__},
        )
    return _COUNTERPARTS[original]
