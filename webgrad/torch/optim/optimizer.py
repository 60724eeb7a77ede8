"""torch.optim.Optimizer: webgrad's own, whose groups take any setting; and the base of programs' optimisers.

In: parameters, in groups, and defaults. Out: `param_groups`, `state`, `step` with hooks. A class that brings
its own `step` keeps what it likes in `state`; webgrad's state is made when webgrad's `step` is called.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import webgrad as wg

from ..tensor import Array

__all__ = ["Optimizer", "required"]

HOOKS = (
    "step_pre",
    "step_post",
    "state_dict_pre",
    "state_dict_post",
    "load_state_dict_pre",
    "load_state_dict_post",
)


class _Required:
    """A setting without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Optimizer(wg.optim.Optimizer):
    """The base of all optimisers, webgrad's and programs' own."""

    _hints: Mapping[str, Any] = MappingProxyType({})  # settings of torch's that say how, not what

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Array):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}"
            )
        self._hooks: dict[str, OrderedDict[int, Any]] = {kind: OrderedDict() for kind in HOOKS}
        self._waits = not _is_ours(type(self))  # until webgrad's step is called
        super().__init__(_listed(params), {**defaults, **self._hints})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.__dict__["step"])  # type: ignore[method-assign]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # Groups

    def add_param_group(self, param_group: Any) -> None:
        """Take more parameters, with settings of their own, known or not."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        given = [params] if isinstance(params, Array) else list(params)
        if given and isinstance(given[0], tuple):
            group["param_names"] = [name for name, _ in given]
            given = [each for _, each in given]
        for name, default in self.defaults.items():
            if group.setdefault(name, default) is required:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
        settings = {name: _number(value) for name, value in group.items() if name in self.defaults}
        super().add_param_group({**settings, "params": given})
        more = {name: value for name, value in group.items() if name not in (*self.defaults, "params")}
        self.param_groups[-1].update(more)

    def _check_parameters(self, params: list[Any]) -> None:
        for each in params:
            if not isinstance(each, Array):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(each).__name__}"
                )
            if isinstance(each, wg.nn.UninitializedParameter):
                raise ValueError("a parameter of a lazy layer has no shape yet: call the model once first")
            if not each.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({*map(id, params)}) < len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=4)
        if not {*map(id, self.state)}.isdisjoint(map(id, params)):
            raise ValueError("some parameters appear in more than one parameter group")

    def _check(self, group: dict[str, Any]) -> None:
        if not self._waits:
            super()._check(group)

    def _new_state(self, parameter: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {} if self._waits else super()._new_state(parameter, group)

    # Steps

    def step(self, closure: Callable[[], Any] | None = None, *, skip: Any = None) -> Any:
        """Change every parameter that has a gradient; gives the loss that a closure computes."""
        if self._waits:
            self._fill()
        if not self._hooks["step_pre"] and not self._hooks["step_post"]:
            return super().step(closure, skip=skip)
        return _with_hooks(super().step, self, (closure,), {"skip": skip})

    def _fill(self) -> None:
        """Make webgrad's state, which a class with its own `step` does without."""
        if type(self)._update is wg.optim.Optimizer._update:
            raise NotImplementedError(f"{type(self).__name__} has no step")
        self._waits = False
        for group in self.param_groups:
            for each in group["params"]:
                self.state[each] = self._new_state(each, group)

    # Saving and going on

    def state_dict(self) -> dict[str, Any]:
        """State by the parameters' numbers, and the groups' settings."""
        for hook in self._hooks["state_dict_pre"].values():
            hook(self)
        found = _packed(self) if self._waits else super().state_dict()
        for hook in self._hooks["state_dict_post"].values():
            found = hook(self, found) or found
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        given = dict(state_dict)
        for hook in self._hooks["load_state_dict_pre"].values():
            given = hook(self, given) or given
        _check_groups(self.param_groups, given["param_groups"])
        if self._waits:
            _unpack(self, given)
        else:
            super().load_state_dict(given)
        for hook in self._hooks["load_state_dict_post"].values():
            hook(self)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for at, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {at}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _register(kind: str) -> Callable[..., Any]:
    """The method that takes hooks of a kind."""

    def register(self: Any, hook: Callable[..., Any], prepend: bool = False) -> wg.HookHandle:
        return wg.HookHandle(self._hooks[kind], hook)

    register.__doc__ = f"Call a hook of the kind {kind}; gives a handle that removes it."
    return register


for _kind in HOOKS:
    setattr(Optimizer, f"register_{_kind}_hook", _register(_kind))


def _is_ours(kind: type) -> bool:
    """Whether a class steps as webgrad does."""
    step = kind.__dict__.get("step") or next(
        each.__dict__["step"] for each in kind.__mro__ if "step" in each.__dict__
    )
    known = step in (Optimizer.__dict__["step"], wg.optim.LBFGS.__dict__["step"])
    has_rule = kind._update is not wg.optim.Optimizer._update  # type: ignore[attr-defined]
    return known and (has_rule or issubclass(kind, wg.optim.LBFGS))


def _listed(params: Any) -> Any:
    """Parameters as a list: generators may be read once."""
    return list(params) if isinstance(params, Iterable) and not isinstance(params, Mapping) else params


def _number(value: Any) -> Any:
    """A setting; one that is a tensor is read."""
    return value.item() if isinstance(value, Array) and not value.ndim else value


def _with_hooks(step: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for hook in self._hooks["step_pre"].values():
        changed = hook(self, args, kwargs)
        if changed is not None:
            args, kwargs = changed
    result = step(*args, **kwargs)
    for hook in self._hooks["step_post"].values():
        hook(self, args, kwargs)
    return result


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A program's `step` with hooks around it, which a scaler of gradients may skip."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, skip: Any = None, **kwargs: Any) -> Any:
        if skip is not None and bool(skip):
            return None
        return _with_hooks(functools.partial(step, self), self, args, kwargs)

    return hooked


def _check_groups(own: list[Any], saved: list[Any]) -> None:
    """Raise where a saved state has other groups."""
    lengths, others = ([len(group["params"]) for group in groups] for groups in (own, saved))
    if len(lengths) != len(others):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if lengths != others:
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
        )


def _packed(optimizer: Any) -> dict[str, Any]:
    """The state of a program's own optimiser, with numbers in place of parameters."""
    places: dict[int, int] = {}
    groups = []
    for group in optimizer.param_groups:
        numbers = [places.setdefault(id(each), len(places)) for each in group["params"]]
        groups.append({**{name: each for name, each in group.items() if name != "params"}, "params": numbers})
    state = {
        places[id(key)] if isinstance(key, Array) else key: value
        for key, value in optimizer.state.items()
        if value
    }
    return {"state": state, "param_groups": groups}


def _unpack(optimizer: Any, given: dict[str, Any]) -> None:
    """What `_packed` gave, back in its places."""
    numbers = [number for group in given["param_groups"] for number in group["params"]]
    params = [each for group in optimizer.param_groups for each in group["params"]]
    by_number = dict(zip(numbers, params, strict=True))
    optimizer.state.clear()
    for key, value in given["state"].items():
        param = by_number.get(key)
        optimizer.state[key if param is None else param] = _moved(value, param)
    for group, other in zip(optimizer.param_groups, given["param_groups"], strict=True):
        group.update({name: value for name, value in other.items() if name != "params"})


def _moved(value: Any, param: Any, name: Any = None) -> Any:
    """A saved value, in the dtype and on the device of its parameter; counts of steps stay as they are."""
    if isinstance(value, Array):
        if param is None or name == "step":
            return value
        floats = param.dtype.kind in "fc"
        return value.to_device(param.device).astype(param.dtype if floats else value.dtype, copy=False)
    if isinstance(value, dict):
        return {key: _moved(each, param, key) for key, each in value.items()}
    return type(value)(_moved(each, param) for each in value) if isinstance(value, list | tuple) else value
