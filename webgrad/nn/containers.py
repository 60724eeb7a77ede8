"""Containers: modules and parameters in a row or under names, with PyTorch's behaviour.

In: modules or parameters. Out: a module that has them as its members, so that state dicts have PyTorch's
names: "0.weight", "1.weight" … for rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import index
from typing import Any, overload

import webgrad as wg

from .module import Module
from .parameter import Parameter

__all__ = [
    "Flatten",
    "Identity",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "Unflatten",
]


def _place(owner: Module, at: Any, length: int) -> int:
    """An index from the front, checked."""
    try:
        place = index(at)
    except TypeError:
        raise wg.DTypeError(
            f"{type(owner).__name__} takes integers and slices as indices, not {at!r}"
        ) from None
    if not -length <= place < length:
        raise wg.IndexingError(f"{type(owner).__name__} has {length} members, and no index {place}")
    return place % length


class _Row(Module):
    """Modules under the names "0", "1" …, or None in a module's place; the row stays without gaps."""

    def _row(self) -> list[Any]:
        return list(self._modules.values())

    def _rename(self, modules: Iterable[Module | None]) -> None:
        held = list(modules)
        self._modules.clear()
        self._changes += 1
        for number, module in enumerate(held):
            self.register_module(str(number), module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._row())

    def __contains__(self, module: object) -> bool:
        return any(each is module for each in self._row())

    def __setitem__(self, at: int, module: Module) -> None:
        name = list(self._modules)[_place(self, at, len(self))]
        self.register_module(name, module)

    def __delitem__(self, at: int | slice) -> None:
        row = self._row()
        if isinstance(at, slice):
            del row[at]
        else:
            del row[_place(self, at, len(row))]
        self._rename(row)

    def append(self, module: Module | None) -> Any:
        """One more at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module | None]) -> Any:
        """Several more at the end."""
        for module in list(modules):
            self.append(module)
        return self

    __iadd__ = extend

    def insert(self, at: int, module: Module | None) -> Any:
        """One more before the module at an index."""
        row = self._row()
        row.insert(at, module)
        self._rename(row)
        return self

    def pop(self, at: int = -1) -> Module:
        """Take one out."""
        row = self._row()
        found: Module = row.pop(_place(self, at, len(row)))
        self._rename(row)
        return found


class Sequential(_Row):
    """Modules one after another: the output of one is the input of the next.

    >>> model = wg.nn.Sequential(wg.nn.Linear(4, 8), wg.nn.ReLU(), wg.nn.Linear(8, 2))
    >>> model(wg.zeros((3, 4))).shape, len(model[:2])
    ((3, 2), 2)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], Mapping) else None
        for name, module in named.items() if named is not None else enumerate(modules):
            self.register_module(str(name), module)

    @overload
    def __getitem__(self, at: int) -> Module: ...
    @overload
    def __getitem__(self, at: slice) -> Sequential: ...
    def __getitem__(self, at: int | slice) -> Module:
        if isinstance(at, slice):
            return type(self)(dict(list(self._modules.items())[at]))
        found: Module = self._row()[_place(self, at, len(self))]
        return found

    def __add__(self, others: Iterable[Module]) -> Sequential:
        return Sequential(*self, *others)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*self._row() * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Any:
        return self.extend(self._row() * (times - 1))

    def forward(self, x: Any) -> Any:
        """Through all of them."""
        for module in self._row():
            x = module(x)
        return x


class ModuleList(_Row):
    """A list of modules, which are members of the module that holds it.

    >>> layers = wg.nn.ModuleList(wg.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), [name for name, _ in layers[1:].named_parameters()][:2]
    (3, ['0.weight', '0.bias'])
    """

    def __init__(self, modules: Iterable[Module | None] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    @overload
    def __getitem__(self, at: int) -> Module: ...
    @overload
    def __getitem__(self, at: slice) -> ModuleList: ...
    def __getitem__(self, at: int | slice) -> Module:
        row = self._row()
        return type(self)(row[at]) if isinstance(at, slice) else row[_place(self, at, len(row))]

    def __add__(self, others: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *others])

    def __repr__(self) -> str:
        return _runs(self) if len(self) else f"{self._get_name()}()"


class ModuleDict(Module):
    """Modules by names, which are members of the module that holds it.

    >>> heads = wg.nn.ModuleDict({"mean": wg.nn.Linear(4, 1)})
    >>> heads["mean"](wg.zeros((2, 4))).shape
    (2, 1)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        self.update(modules or ())

    def __getitem__(self, name: str) -> Module:
        if name not in self._modules:
            raise KeyError(f"ModuleDict has no {name!r}; there are: {', '.join(self._modules) or 'none'}")
        return self._modules[name]  # type: ignore[return-value]

    def __setitem__(self, name: str, module: Module) -> None:
        self.register_module(name, module)

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or replace those of the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def pop(self, name: str) -> Module:
        """Take one out."""
        found = self[name]
        delattr(self, name)
        return found

    def clear(self) -> None:
        """Take all out."""
        for name in list(self):
            self.pop(name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return [self[name] for name in self]

    def items(self) -> Iterable[tuple[str, Module]]:
        """Both."""
        return [(name, self[name]) for name in self]


def _runs(modules: ModuleList) -> str:
    """The text of a list, in which modules of the same text follow each other in one line."""
    lines: list[str] = []
    start = 0
    for text, run in groupby(map(repr, modules)):
        count = len(list(run))
        places = f"({start}): " if count == 1 else f"({start}-{start + count - 1}): {count} x "
        lines.append(f"  {places}" + text.replace("\n", "\n  "))
        start += count
    return "\n".join([f"{modules._get_name()}(", *lines, ")"])


def _as_parameter(value: Any) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(Module):
    """A list of parameters; tensors that are none become parameters.

    >>> weights = wg.nn.ParameterList([wg.ones(2), wg.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()], weights[1].shape
    (['0', '1'], (3,))
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter([each for each in self._parameters.values() if each is not None])

    @overload
    def __getitem__(self, at: int) -> Parameter: ...
    @overload
    def __getitem__(self, at: slice) -> ParameterList: ...
    def __getitem__(self, at: int | slice) -> Parameter | ParameterList:
        row = list(self)
        return ParameterList(row[at]) if isinstance(at, slice) else row[_place(self, at, len(row))]

    def __setitem__(self, at: int, value: Any) -> None:
        self.register_parameter(str(_place(self, at, len(self))), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """One more at the end."""
        self.register_parameter(str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Several more at the end."""
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def __add__(self, others: Iterable[Any]) -> ParameterList:
        return type(self)([*self, *others])

    def __repr__(self) -> str:
        return _listed(self)


class ParameterDict(Module):
    """Parameters by names; tensors that are none become parameters.

    >>> wg.nn.ParameterDict({"scale": wg.ones(2)})["scale"].shape
    (2,)
    """

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self.update(values or ())

    def __getitem__(self, name: str) -> Parameter:
        if name not in self._parameters:
            raise KeyError(
                f"ParameterDict has no {name!r}; there are: {', '.join(self._parameters) or 'none'}"
            )
        return self._parameters[name]  # type: ignore[return-value]

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, _as_parameter(value))

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def update(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add parameters, or replace those of the same names."""
        for name, value in dict(values).items():
            self[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter of a name, or something else where there is none."""
        return self._parameters.get(name, default)

    def pop(self, name: str) -> Parameter:
        """Take one out."""
        found = self[name]
        delattr(self, name)
        return found

    def clear(self) -> None:
        """Take all out."""
        for name in list(self):
            self.pop(name)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, name: object) -> bool:
        return name in self._parameters

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Parameter]:
        """The parameters."""
        return [self[name] for name in self]

    def items(self) -> Iterable[tuple[str, Parameter]]:
        """Both."""
        return [(name, self[name]) for name in self]

    def __repr__(self) -> str:
        return _listed(self)


def _listed(module: Module) -> str:
    """A module as text whose members are parameters."""
    rows = [
        f"  ({name}): Parameter of shape {each.shape}, {each.dtype.name}"
        for name, each in module.named_parameters(recurse=False)
    ]
    return "\n".join([f"{type(module).__name__}(", *rows, ")"]) if rows else f"{type(module).__name__}()"


class Identity(Module):
    """y = x, whatever its arguments.

    >>> wg.nn.Identity(54, unused=True)(wg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *unused: Any, **also_unused: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """x itself."""
        return x


class Flatten(Module):
    """The axes from start_dim to end_dim as one: (N, C, H, W) → (N, C·H·W).

    >>> wg.nn.Flatten()(wg.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """With one axis instead of several."""
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several, of the sizes given; one of them may be -1.

    >>> wg.nn.Unflatten(1, (3, -1))(wg.zeros((2, 12))).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """With several axes instead of one."""
        if not -x.ndim <= self.dim < x.ndim:
            raise wg.AxisError(f"Unflatten: a tensor of shape {x.shape} has no axis {self.dim}")
        at = self.dim % x.ndim
        return x.reshape((*x.shape[:at], *self.unflattened_size, *x.shape[at + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
