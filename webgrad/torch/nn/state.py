"""State dicts as torch has them: saved module by module, and loaded so, with the hooks of both.

In: a module. Out: an OrderedDict of its values by dotted names, or what of such a one did not fit. Programs
override `_save_to_state_dict` and `_load_from_state_dict`, which are called for each module of a tree.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import webgrad as wg

from ..tensor import adopt

__all__ = ["Stateful"]

EXTRA = "_extra_state"
_HOOKS = (
    *("_state_dict_pre_hooks", "_state_dict_hooks"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found no values for, and what it found no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Stateful(wg.nn.Module):
    """Saving and loading; torch's `Module` derives from it."""

    _version = 1  # of what a class saves

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        return self._transient

    def get_extra_state(self) -> Any:
        """What a class saves beside its tensors."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """What a class does with what it saved beside its tensors."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _saved_members(self) -> Iterator[tuple[str, Any]]:
        persistent = ((name, each) for name, each in self._buffers.items() if name not in self._transient)
        return ((k, v) for k, v in itertools.chain(self._parameters.items(), persistent) if v is not None)

    # Saving

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """The values of all parameters and persistent buffers by dotted names."""
        given: Any = (*args, *(destination, prefix, keep_vars)[len(args) :])
        destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if isinstance(module, Stateful):
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
            elif module is not None:
                destination.update(module.state_dict(f"{prefix}{name}."))
        for hook in self._state_dict_hooks.values():
            changed = hook(self, destination, prefix, local)
            destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """This module's own values, without those of the modules below it."""
        for name, value in self._saved_members():
            destination[prefix + name] = value if keep_vars else adopt(value.detach())
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> wg.HookHandle:
        """Call hook(module, prefix, keep_vars) before `state_dict`."""
        return wg.HookHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> wg.HookHandle:
        """Call hook(module, state_dict, prefix, local_metadata) after `state_dict`."""
        return wg.HookHandle(self._state_dict_hooks, hook)

    _register_state_dict_hook = register_state_dict_post_hook

    # Loading

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Take the values of a state dict; gives what was missing and what was not expected."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        found = IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None) or {}
        _load(self, dict(state_dict), "", metadata, assign, found, errors)
        if strict:
            for kind, keys in (("Unexpected", found.unexpected_keys), ("Missing", found.missing_keys)):
                if keys:
                    names = ", ".join(f'"{each}"' for each in keys)
                    errors.insert(0, f"{kind} key(s) in state_dict: {names}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return found

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """This module's own values, without those of the modules below it."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for name, value in self._saved_members():
            key = prefix + name
            if key in state_dict:
                error = self._take(name, value, state_dict[key], key, bool(local_metadata.get("assign")))
                error_msgs += [error] if error else []
            elif strict:
                missing_keys.append(key)
        self._take_extra(state_dict, prefix + EXTRA, strict, missing_keys, unexpected_keys)
        if strict:
            own = {name for name, _ in self._saved_members()}
            unexpected_keys += [key for key in state_dict if self._is_unexpected(key, prefix, own)]

    def _take(self, name: str, value: Any, given: Any, key: str, assign: bool) -> str | None:
        """A new value for a member; what keeps it from being one."""
        if not isinstance(given, wg.Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
                f"from checkpoint but received {type(given)}"
            )
        if isinstance(value, wg.nn.UninitializedParameter | wg.nn.UninitializedBuffer):
            value.materialize(given.shape)
        shape = tuple(value.shape)
        if shape == () and tuple(given.shape) == (1,):
            given = given[0]
        if tuple(given.shape) != shape:
            return (
                f"size mismatch for {key}: copying a param with shape torch.Size({list(given.shape)}) from "
                f"checkpoint, the shape in current model is torch.Size({list(shape)})."
            )
        if assign:
            is_learnt = isinstance(value, wg.nn.Parameter)
            setattr(self, name, wg.nn.Parameter(given, value.requires_grad) if is_learnt else given)
            return None
        with wg.no_grad():
            value[...] = given.detach().to(value.dtype, device=value.device)
        return None

    def _take_extra(
        self, state: Any, key: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if key in state:
                self.set_extra_state(state[key])
            elif strict:
                missing.append(key)
        elif strict and key in state:
            unexpected.append(key)

    def _is_unexpected(self, key: str, prefix: str, own: set[str]) -> bool:
        if not key.startswith(prefix) or key == prefix + EXTRA:
            return False
        first, dot, _ = key[len(prefix) :].partition(".")
        return first not in self._modules if dot else first not in own

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> wg.HookHandle:
        """Call hook(module, state_dict, prefix, …) before this module's values are loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> wg.HookHandle:
        called = (lambda *args: hook(self, *args)) if with_module else hook
        return wg.HookHandle(self._load_state_dict_pre_hooks, called)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> wg.HookHandle:
        """Call hook(module, incompatible_keys) after this module, and those below it, were loaded."""
        return wg.HookHandle(self._load_state_dict_post_hooks, hook)


def _load(
    module: Any,
    state: dict[str, Any],
    prefix: str,
    metadata: Any,
    assign: bool,
    found: IncompatibleKeys,
    errors: list[str],
) -> None:
    local = {**metadata.get(prefix[:-1], {}), "assign": assign}
    module._load_from_state_dict(state, prefix, local, True, *found, errors)
    for name, child in module._modules.items():
        if isinstance(child, Stateful):
            below = f"{prefix}{name}."
            values = {key: value for key, value in state.items() if key.startswith(below)}
            _load(child, values, below, metadata, assign, found, errors)
    for hook in module._load_state_dict_post_hooks.values():
        hook(module, found)


def _hooks(name: str) -> property:
    """Hooks of one kind: made when they are first asked for."""
    return property(lambda self: self.__dict__.setdefault(name, OrderedDict()))


for _name in _HOOKS:
    setattr(Stateful, _name, _hooks(_name))
