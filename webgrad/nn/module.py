"""Modules: parameters, buffers and other modules under names, with PyTorch's behaviour.

In: attributes as they are assigned. Out: trees of named tensors, `state_dict`s, and calls of `forward`. The
invariant: loading, moving and converting change tensors in place, so whoever holds a parameter sees it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import ref

import webgrad as wg

from ..arrays import has_numpy
from .hooks import Hooked
from .parameter import Parameter, assign
from .state import LoadedState, load_state
from .version import version

__all__ = ["Module"]

Self = TypeVar("Self", bound="Module")
Named = TypeVar("Named")
_MEMBERS = ("_parameters", "_buffers", "_modules")  # what attributes may be, by where they are kept


class _Calls(threading.local):
    outermost = True  # whether a call of a module that comes now is in no other one


_calls = _Calls()


class Module(Hooked):
    """What every layer and model is: assign parameters and modules as attributes, and define `forward`.

    >>> class Scale(wg.nn.Module):
    ...     def __init__(self, features):
    ...         super().__init__()
    ...         self.weight = wg.nn.Parameter(wg.ones(features))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> layer = Scale(2)
    >>> layer(wg.asarray([3.0, 4.0])).tolist(), list(layer.state_dict())
    ([3.0, 4.0], ['weight'])
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, wg.Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        Hooked.__init__(self)
        self._changes = 0  # how often a member was put, replaced or deleted
        self._training = True
        self._parameters = {}
        self._buffers = {}
        self._modules = {}
        self._transient: set[str] = set()  # the names of buffers that are not saved

    # Calls

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the module computes; every class of modules defines its own."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward: define forward(self, x) in the class"
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        if wg.is_captured():
            wg.watch(functools.partial(_members_of, ref(self, version.changed)), version)
        if not wg.is_grad_enabled() and _calls.outermost:
            return self._call_apart(inputs, options)
        if not self._has_hooks():
            return self.forward(*inputs, **options)
        return self._call_with_hooks(inputs, options)

    def _call_apart(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A call without gradients that is in no other one: it is computed by itself."""
        _calls.outermost = False
        try:
            found = self(*inputs, **options)
        finally:
            _calls.outermost = True
        wg.compute_apart((inputs, options), found)
        return found

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        place = (
            "_parameters" if isinstance(value, Parameter) else "_modules" if isinstance(value, Module) else ""
        )
        if place:
            self._put(place, name, value)
            return
        members = self.__dict__
        for known in _MEMBERS:
            if name in members.get(known, ()):
                self._reassign(known, name, value)
                return
        object.__setattr__(self, name, value)
        version.changed()

    def _put(self, place: str, name: str, value: Any) -> None:
        """Keep a member under a name that is nobody else's."""
        members = self.__dict__
        if place not in members:
            raise AttributeError(
                f"{type(self).__name__}.__init__ must call super().__init__() before it assigns self.{name}"
            )
        members.pop(name, None)
        for other in _MEMBERS:
            if other != place:
                members[other].pop(name, None)
        members["_changes"] += members[place].get(name) is not value
        members[place][name] = value
        version.changed()

    def _reassign(self, place: str, name: str, value: Any) -> None:
        """Another value under a name that was registered: of the same kind, or None."""
        kind = {"_parameters": Parameter, "_buffers": wg.Tensor, "_modules": Module}[place]
        if value is not None and not isinstance(value, kind):
            how = (
                f"wrap it as webgrad.nn.Parameter(…), or write to it, self.{name}[...] = value, under "
                "webgrad.no_grad()"
            )
            raise wg.DTypeError(
                f"{type(self).__name__}.{name} is a {kind.__name__}, and a {type(value).__name__} is none: "
                + (how if kind is Parameter else f"del self.{name} first if that is meant")
            )
        members = self.__dict__[place]
        if members[name] is not value:  # self.count += 1 puts what is there
            members[name] = value
            self._changes += 1

    def __getattr__(self, name: str) -> Any:
        members = self.__dict__
        for place in _MEMBERS:
            held = members.get(place)
            if held is not None and name in held:
                return held[name]
        if "_modules" not in members:
            raise AttributeError(
                f"{type(self).__name__}.__init__ must call super().__init__() before self.{name} is used"
            )
        known = [each for place in _MEMBERS for each in members[place]]
        raise AttributeError(
            f"{type(self).__name__} has no attribute {name!r}; its parameters, buffers and modules are: "
            f"{', '.join(known) or 'none'}"
        )

    def __delattr__(self, name: str) -> None:
        for place in _MEMBERS:
            if name in self.__dict__.get(place, ()):
                del self.__dict__[place][name]
                self._transient.discard(name)
                self._changes += 1
                return
        object.__delattr__(self, name)
        version.changed()

    def __dir__(self) -> list[str]:
        return sorted(
            {*super().__dir__(), *(each for place in _MEMBERS for each in self.__dict__.get(place, ()))}
        )

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """A parameter under a name; None keeps the name for one that is not there."""
        self._check_name(name, "_parameters")
        if parameter is not None and not isinstance(parameter, Parameter):
            raise wg.DTypeError(
                f"register_parameter({name!r}): a {type(parameter).__name__} is no Parameter; wrap it as "
                "webgrad.nn.Parameter(…)"
            )
        self._put("_parameters", name, parameter)

    def register_buffer(self, name: str, tensor: wg.Tensor | None, persistent: bool = True) -> None:
        """A tensor that is part of the state and is not trained; in `state_dict` only if persistent."""
        self._check_name(name, "_buffers")
        if tensor is not None and not isinstance(tensor, wg.Tensor):
            raise wg.DTypeError(
                f"register_buffer({name!r}): a {type(tensor).__name__} is not a tensor; make one with "
                "webgrad.asarray"
            )
        self._put("_buffers", name, tensor)
        (self._transient.discard if persistent else self._transient.add)(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """A module under a name."""
        self._check_name(name, "_modules")
        if module is not None and not isinstance(module, Module):
            raise wg.DTypeError(f"{type(self).__name__}, member {name!r}: {_no_module(module)}")
        self._put("_modules", name, module)

    add_module = register_module

    def _check_name(self, name: str, place: str) -> None:
        if not name or "." in name:
            raise wg.ArgumentError(
                f"a name of {type(self).__name__}'s members is a word without dots, not {name!r}"
            )
        if hasattr(self, name) and name not in self.__dict__.get(place, ()):
            raise wg.ArgumentError(
                f"{type(self).__name__} has an attribute {name!r} already; take another name"
            )

    # Trees of names

    def _members(
        self, place: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        """Everything kept in one place of this module, and of those below it, by dotted names, each once."""
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules if recurse else [(prefix, self)]:
            for name, value in module.__dict__[place].items():
                if value is not None and not (remove_duplicate and id(value) in seen):
                    seen.add(id(value))
                    yield _dotted(path, name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names; a shared one once, under its first name."""
        return self._members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once.

        >>> sum(p.size for p in wg.nn.Linear(3, 2).parameters())
        8
        """
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, wg.Tensor]]:
        """The buffers with their dotted names."""
        return self._members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[wg.Tensor]:
        """The buffers, each once."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, with their names."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names; a shared one once."""
        seen = set() if memo is None else memo
        if remove_duplicate and id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, _dotted(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; itself for "".

        >>> wg.nn.Sequential(wg.nn.Linear(3, 2)).get_submodule("0")
        Linear(in_features=3, out_features=2, bias=True)
        """
        return self._found("_modules", target) if target else self

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        return self._found("_parameters", target)  # type: ignore[no-any-return]

    def get_buffer(self, target: str) -> wg.Tensor:
        """The buffer of a dotted name."""
        return self._found("_buffers", target)  # type: ignore[no-any-return]

    def _found(self, place: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        home: Module | None = self
        for each in path.split(".") if path else ():
            home = home._modules.get(each) if home is not None else None
        found = None if home is None else home.__dict__[place].get(name)
        if found is None:
            members = self._members(place, "", True, False) if place != "_modules" else self.named_modules()
            names = ", ".join(each for each, _ in members if each) or "none"
            raise AttributeError(f"{type(self).__name__} has no {place[1:-1]} {target!r}; there are: {names}")
        return found

    # State

    def state_dict(self, prefix: str = "") -> dict[str, wg.Tensor]:
        """The values of all parameters and persistent buffers by dotted names, as they are now.

        >>> list(wg.nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        return {name: tensor.detach() for name, tensor in self._state(prefix)}

    def _state(self, prefix: str = "") -> Iterator[tuple[str, wg.Tensor]]:
        """In PyTorch's order: a module's parameters, its buffers, then the modules below it."""
        for path, module in self.named_modules(prefix=prefix.removesuffix("."), remove_duplicate=False):
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    yield _dotted(path, name), parameter
            for name, buffer in module._buffers.items():
                if buffer is not None and name not in module._transient:
                    yield _dotted(path, name), buffer

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> LoadedState:
        """Take the values of a `state_dict`: tensors or NumPy arrays, converted to each tensor's dtype.

        Everything is checked first: where names or shapes do not fit, nothing is changed. If not strict, what
        is missing or unexpected is left alone, and given back; shapes must fit all the same.

        >>> layer = wg.nn.Linear(2, 1)
        >>> layer.load_state_dict({"weight": np.ones((1, 2)), "bias": np.zeros(1)})
        LoadedState(missing_keys=[], unexpected_keys=[])
        """
        return load_state(type(self).__name__, dict(self._state()), state, strict)

    # Modes, devices, dtypes: for this module and all below it

    @property
    def training(self) -> bool:
        """Whether the module is in training: captured functions are captured anew when it changes."""
        return bool(self._watched("_training"))

    @training.setter
    def training(self, mode: bool) -> None:
        self._training = bool(mode)

    def _watched(self, name: str) -> Any:
        """An attribute that may change while a model is trained: functions are captured anew when it does."""
        if not wg.is_captured():
            return getattr(self, name)
        is_plain = name in self.__dict__ and not hasattr(type(self), name)  # else it may change by itself
        get = functools.partial(_attribute_of, ref(self, version.changed), name)
        return wg.watch(get, version if is_plain else None)

    def train(self: Self, mode: bool = True) -> Self:
        """In training: dropout drops, batch norms take the batch's statistics.

        >>> wg.nn.Dropout().eval().training
        False
        """
        if not isinstance(mode, bool):
            raise wg.ArgumentError(f"train: the mode is True or False, not {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Not in training: train(False)."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Whether the parameters get gradients; False freezes them."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """No gradients any more, or zeros instead."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else wg.zeros_like(parameter.grad)

    def to(self: Self, *targets: Any, dtype: Any = None, device: Any = None) -> Self:
        """To a device, a dtype, both, or another tensor's; only floats change their dtype.

        >>> wg.nn.Linear(2, 2).to(wg.float16).weight.dtype
        webgrad.float16
        """
        probe = wg.zeros(0, device="cpu" if has_numpy() else None).to(*targets, dtype=dtype, device=device)
        if probe.dtype.kind != "f":
            raise wg.DTypeError(f"to: parameters are floats, and {probe.dtype.name} is none")

        def moved(x: wg.Tensor) -> wg.Tensor:
            floats = x if x.dtype.kind == "f" else wg.zeros(0, device=x.device)
            result = floats.to(*targets, dtype=dtype, device=device)
            return result if floats is x else x.to(device=result.device)

        held = [*self.parameters(), *self.buffers()]
        values = [moved(tensor.detach()) for tensor in held]  # all of them first: one may fail
        gradients = [(each, moved(each.grad)) for each in self.parameters() if each.grad is not None]
        for tensor, value in zip(held, values, strict=True):
            assign(tensor, value)
        for parameter, gradient in gradients:
            parameter.grad = gradient
        return self

    def float(self: Self) -> Self:
        """Floats in float32."""
        return self.to(wg.float32)

    def half(self: Self) -> Self:
        """Floats in float16."""
        return self.to(wg.float16)

    def bfloat16(self: Self) -> Self:
        """Floats in bfloat16."""
        return self.to(wg.bfloat16)

    def double(self: Self) -> Self:
        """Floats in float64."""
        return self.to(wg.float64)

    def cpu(self: Self) -> Self:
        """To the cpu."""
        return self.to("cpu")

    def apply(self: Self, function: Callable[[Module], Any]) -> Self:
        """Call a function with every module below this one, then with itself.

        >>> _ = wg.nn.Sequential(wg.nn.Linear(2, 2)).apply(lambda module: print(type(module).__name__))
        Linear
        Sequential
        """
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    # As text

    def extra_repr(self) -> str:
        """What stands between the brackets of a layer's text: its arguments."""
        return ""

    def _get_name(self) -> str:
        """The name that a layer's text begins with."""
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if not children:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *([extra] if extra else []), *children]) + "\n)"


def _alive(module: ref[Module]) -> Module:
    """The module; a captured function that made it, and let go of it, watches it no longer."""
    found = module()
    if found is None:
        raise ReferenceError
    return found


def _attribute_of(module: ref[Module], name: str) -> Any:
    return getattr(_alive(module), name)


def _members_of(module: ref[Module]) -> Any:
    """Which members and hooks a module has: another value where one was replaced."""
    found = _alive(module)
    return found.__dict__.get("_changes"), *found._hook_handles()


def _no_module(value: Any) -> str:
    """What somebody took for a module, and what to write instead."""
    if isinstance(value, type) and issubclass(value, Module):
        return f"{value.__name__} is a class, and no Module yet: write {value.__name__}()"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} is no Module: give its modules one by one, with *, or a ModuleList"
    return f"a {type(value).__name__} is no Module: functions are called in forward"


def _dotted(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
