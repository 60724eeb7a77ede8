"""Parametrisation: a parameter or buffer that is computed of another one each time it is looked at.

In: a module, a name, and a module that computes. Out: the module, whose class has the name as a property; the
original is in `parametrizations`, which is part of the state, by PyTorch's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import webgrad as wg

from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_cache: dict[tuple[int, str], Any] = {}
_depth = [0]  # how many `cached` are open


@contextmanager
def cached() -> Iterator[None]:
    """Inside, what is parametrised is computed once.

    >>> with wg.nn.utils.parametrize.cached():
    ...     pass
    """
    _depth[0] += 1
    try:
        yield
    finally:
        _depth[0] -= 1
        if not _depth[0]:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The modules that compute a parameter, one after the other, and the originals that it is computed of.

    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    (2, 1)
    """

    def __init__(self, modules: Sequence[Module], original: wg.Tensor) -> None:
        super().__init__(modules)
        new: Any = original.detach()
        for module in reversed(list(modules)):
            if hasattr(module, "right_inverse"):
                with wg.no_grad():
                    new = module.right_inverse(new)
        is_learnt = isinstance(original, Parameter)
        several = new if isinstance(new, tuple | list) else (new,)
        self.is_tensor = not isinstance(new, tuple | list)
        self.ntensors = len(several)
        for at, each in enumerate(several):
            name = "original" if self.is_tensor else f"original{at}"
            if is_learnt:
                self.register_parameter(name, Parameter(each, original.requires_grad))
            else:
                self.register_buffer(name, each)

    def originals(self) -> tuple[Any, ...]:
        """What the value is computed of."""
        if self.is_tensor:
            return (self.original,)
        return tuple(getattr(self, f"original{at}") for at in range(self.ntensors))

    def forward(self) -> Any:
        """The value."""
        first, *others = self._modules.values()
        assert first is not None
        value = first(*self.originals())
        for each in others:
            assert each is not None
            value = each(value)
        return value

    def right_inverse(self, value: wg.Tensor) -> None:
        """Give the originals what the value would be computed of."""
        new: Any = value
        with wg.no_grad():
            for module in reversed([*self]):
                if not hasattr(module, "right_inverse"):
                    raise wg.ArgumentError(
                        f"{type(module).__name__} has no right_inverse: what it computes cannot be assigned"
                    )
                new = module.right_inverse(new)
            several = (new,) if self.is_tensor else new
            for original, each in zip(self.originals(), several, strict=True):
                original[...] = each


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        computed = self.parametrizations[name]
        if not _depth[0]:
            return computed()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = computed()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Have a parameter or buffer computed by a module whenever it is looked at.

    The module's `right_inverse`, if it has one, says what the value that there is would be computed of.

    >>> class Symmetric(wg.nn.Module):
    ...     def forward(self, x):
    ...         return wg.triu(x) + wg.triu(x, 1).mT
    >>> layer = wg.nn.Linear(3, 3)
    >>> _ = wg.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool(wg.allclose(layer.weight, layer.weight.mT)), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    home: Any = next(
        (each for each in (module._parameters, module._buffers) if each.get(tensor_name) is not None), None
    )
    if home is None:
        raise wg.ArgumentError(
            f"module {type(module).__name__} has no parameter, buffer or parametrised element {tensor_name!r}"
        )
    original = home[tensor_name]
    computed = ParametrizationList([parametrization], original)
    if not unsafe:
        found = computed()
        if found.shape != original.shape or found.dtype is not original.dtype:
            raise wg.ArgumentError(
                f"register_parametrization: {type(parametrization).__name__} makes {found.dtype.name} "
                f"{found.shape} of {original.dtype.name} {original.shape}; say unsafe=True if that is meant"
            )
    delattr(module, tensor_name)
    if not is_parametrized(module):
        kind = type(module)
        scope = {"__module__": kind.__module__, "_plain_class": kind, "__doc__": kind.__doc__}
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), scope)
        module.register_module("parametrizations", ModuleDict())
    module.parametrizations[tensor_name] = computed
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has something parametrised, or something of this name.

    >>> wg.nn.utils.parametrize.is_parametrized(wg.nn.Linear(3, 3))
    False
    """
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict) or not len(found):
        return False
    return tensor_name is None or tensor_name in found


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had.

    >>> wg.nn.utils.parametrize.type_before_parametrizations(wg.nn.Linear(3, 3)).__name__
    'Linear'
    """
    return getattr(type(module), "_plain_class", type(module))


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parameter plain again, with the value that it has, or with its original's.

    >>> layer = wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(3, 2))
    >>> list(wg.nn.utils.parametrize.remove_parametrizations(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise wg.ArgumentError(f"module {type(module).__name__} has no parametrisation of {tensor_name!r}")
    computed = module.parametrizations[tensor_name]
    if not leave_parametrized and not computed.is_tensor:
        raise wg.ArgumentError(
            "remove_parametrizations: the value is computed of several tensors: say leave_parametrized=True"
        )
    with wg.no_grad():
        value = computed() if leave_parametrized else computed.originals()[0]
    first = computed.originals()[0]
    del module.parametrizations[tensor_name]
    delattr(type(module), tensor_name)
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    if isinstance(first, Parameter):
        module.register_parameter(tensor_name, Parameter(value, first.requires_grad))
    else:
        module.register_buffer(tensor_name, value.detach())
    return module
