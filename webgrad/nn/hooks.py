"""Hooks: functions that are called around a module's `forward`, and on the way back through it.

In: a module, its hooks and those of all modules, and the arguments of a call. Out: what `forward` returned,
as the hooks left it. The invariant: a call without hooks costs one look at each table of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import webgrad as wg

from .version import Hooks

__all__ = [
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
]

Hook = Callable[..., Any]
_TABLES = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_KINDS = (  # hooks that are called otherwise, by their handles
    *("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs"),
    "_forward_hooks_always_called",
)
_everywhere: dict[str, Hooks] = {name: Hooks() for name in _TABLES}  # hooks of all modules


class Hooked:
    """What calls `forward` with the hooks of a module; `Module` derives from it."""

    _forward_pre_hooks_with_kwargs: set[wg.HookHandle]
    _forward_hooks_with_kwargs: set[wg.HookHandle]
    _forward_hooks_always_called: set[wg.HookHandle]

    def __init__(self) -> None:
        self.__dict__.update({table: Hooks() for table in _TABLES}, **{kind: set() for kind in _KINDS})

    def _has_hooks(self) -> bool:
        if not Hooks.are_used:
            return False
        held = self.__dict__
        return bool(
            held.get("_forward_hooks")
            or held.get("_forward_pre_hooks")
            or held.get("_backward_hooks")
            or held.get("_backward_pre_hooks")
            or any(_everywhere.values())
        )

    def _call_hook(self, hook: Hook, *args: Any) -> Any:
        """What a hook returns of the module and what it is told."""
        return hook(self, *args)

    def _hook_handles(self) -> tuple[wg.HookHandle, ...]:
        """What captured functions look at: another value where a hook came or went."""
        if not self._has_hooks():
            return ()
        return tuple(handle for table in _TABLES for handle, _ in self._hooks(table))

    def _hooks(self, table: str) -> list[tuple[wg.HookHandle, Hook]]:
        """Those of all modules first, then its own."""
        return [*_everywhere[table].items(), *self.__dict__.get(table, {}).items()]

    def _call_with_hooks(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        called: set[wg.HookHandle] = set()
        result = None
        try:
            inputs, options = self._prepared(inputs, options)
            passage = _Passage(self)
            result = self.forward(*passage.entered(inputs), **options)  # type: ignore[attr-defined]
            for handle, hook in self._hooks("_forward_hooks"):
                called.add(handle)
                result = self._after(handle, hook, inputs, options, result)
            return passage.left(result)
        except Exception:
            self._call_always(called, inputs, options, result)
            raise

    def _prepared(
        self, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the hooks before `forward` leave them."""
        for handle, hook in self._hooks("_forward_pre_hooks"):
            if handle in self._forward_pre_hooks_with_kwargs:
                changed = self._call_hook(hook, inputs, options)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise wg.ArgumentError(
                            f"{type(self).__name__}: a hook before forward with kwargs returns None or a "
                            f"tuple of the new arguments and keywords, not {changed!r}"
                        )
                    inputs, options = changed
            else:
                changed = self._call_hook(hook, inputs)
                if changed is not None:
                    inputs = changed if isinstance(changed, tuple) else (changed,)
        return inputs, options

    def _after(
        self, handle: wg.HookHandle, hook: Hook, inputs: tuple[Any, ...], options: dict[str, Any], result: Any
    ) -> Any:
        keywords = (options,) if handle in self._forward_hooks_with_kwargs else ()
        changed = self._call_hook(hook, inputs, *keywords, result)
        return result if changed is None else changed

    def _call_always(
        self, called: set[wg.HookHandle], inputs: tuple[Any, ...], options: dict[str, Any], result: Any
    ) -> None:
        """After an error, the hooks that are called all the same and were not yet."""
        for handle, hook in self._hooks("_forward_hooks"):
            if handle in self.__dict__.get("_forward_hooks_always_called", ()) and handle not in called:
                result = self._after(handle, hook, inputs, options, result)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> wg.HookHandle:
        """Call hook(module, inputs) before `forward`; what it returns, unless None, are the inputs.

        `prepend` calls it before those that are there. `with_kwargs` calls hook(module, inputs, keywords),
        which may return both.
        """
        handle = self._registered("_forward_pre_hooks", hook, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs.add(handle)
        return handle

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> wg.HookHandle:
        """Call hook(module, inputs, output) after `forward`; what it returns, unless None, is the output.

        `prepend` calls it before those that are there. `with_kwargs` calls hook(module, inputs, keywords,
        output). `always_call` calls it after an error too.
        """
        handle = self._registered("_forward_hooks", hook, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs.add(handle)
        if always_call:
            self._forward_hooks_always_called.add(handle)
        return handle

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> wg.HookHandle:
        """Call hook(module, grad_input, grad_output) when gradients have gone back through the module.

        Both are tuples, with None for what has no gradient. What it returns, unless None, are the gradients
        of the inputs.
        """
        return self._registered("_backward_hooks", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> wg.HookHandle:
        """Call hook(module, grad_output) before gradients go back through the module.

        What it returns, unless None, are the gradients of the outputs.
        """
        return self._registered("_backward_pre_hooks", hook, prepend)

    def _registered(self, table: str, hook: Hook, prepend: bool) -> wg.HookHandle:
        hooks = self.__dict__[table]
        handle = wg.HookHandle(hooks, hook)
        if prepend:
            hooks.to_front(handle)
        return handle


class _Passage:
    """One call of a module with backward hooks: gradients of its outputs are kept until its inputs' come."""

    def __init__(self, module: Hooked) -> None:
        self.module = module
        self.hooks = [hook for _, hook in module._hooks("_backward_hooks")]
        self.pre_hooks = [hook for _, hook in module._hooks("_backward_pre_hooks")]
        self.is_watched = bool(self.hooks or self.pre_hooks) and wg.is_grad_enabled()
        self.grad_output: tuple[Any, ...] = ()
        self.ends_here = True  # whether no input has a gradient
        self.count = 0

    def entered(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs; their gradients go through the hooks."""
        if not self.is_watched:
            return inputs
        self.count = len(inputs)
        places = [at for at, each in enumerate(inputs) if _has_gradient(each)]
        if not places or not self.hooks:
            return inputs
        self.ends_here = False

        def pulled(*gradients: Any) -> tuple[Any, ...]:
            found: list[Any] = [None] * self.count
            for at, gradient in zip(places, gradients, strict=True):
                found[at] = gradient
            changed = self.called(tuple(found))
            return tuple(changed[at] for at in places)

        return _replaced(inputs, places, pulled)

    def left(self, result: Any) -> Any:
        """The outputs; their gradients are kept, as the hooks before leave them."""
        if not self.is_watched:
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        places = [at for at, each in enumerate(outputs) if _has_gradient(each)]
        if not places:
            return result

        def pulled(*gradients: Any) -> tuple[Any, ...]:
            found: list[Any] = [None] * len(outputs)
            for at, gradient in zip(places, gradients, strict=True):
                found[at] = gradient
            self.grad_output = tuple(found)
            for hook in self.pre_hooks:
                changed = self.module._call_hook(hook, self.grad_output)
                if changed is not None:
                    self.grad_output = changed if isinstance(changed, tuple) else (changed,)
            if self.ends_here:
                self.called((None,) * self.count)
            return tuple(self.grad_output[at] for at in places)

        changed = _replaced(outputs, places, pulled)
        if not isinstance(result, tuple):
            return changed[0]
        return type(result)(*changed) if hasattr(result, "_fields") else changed

    def called(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the inputs after all hooks."""
        for hook in self.hooks:
            changed = self.module._call_hook(hook, grad_input, self.grad_output)
            if changed is not None:
                grad_input = changed if isinstance(changed, tuple) else (changed,)
        return grad_input


def _has_gradient(value: Any) -> bool:
    return isinstance(value, wg.Tensor) and value.requires_grad


def _replaced(values: tuple[Any, ...], places: list[int], pulled: Hook) -> tuple[Any, ...]:
    """The same values, with a step of the way back in between."""
    through = wg.custom_gradient(lambda *tensors: (tensors, pulled))
    changed = list(values)
    for at, tensor in zip(places, through(*(values[at] for at in places)), strict=True):
        changed[at] = tensor
    return tuple(changed)


def register_module_forward_pre_hook(hook: Hook) -> wg.HookHandle:
    """Call hook(module, inputs) before the `forward` of every module.

    >>> seen = []
    >>> with wg.nn.register_module_forward_pre_hook(lambda module, inputs: seen.append(str(module))):
    ...     _ = wg.nn.ReLU()(wg.ones(2))
    >>> seen
    ['ReLU()']
    """
    return wg.HookHandle(_everywhere["_forward_pre_hooks"], hook)


def register_module_forward_hook(hook: Hook) -> wg.HookHandle:
    """Call hook(module, inputs, output) after the `forward` of every module.

    >>> seen = []
    >>> with wg.nn.register_module_forward_hook(lambda module, inputs, output: seen.append(output.shape)):
    ...     _ = wg.nn.Linear(3, 2)(wg.ones((5, 3)))
    >>> seen
    [(5, 2)]
    """
    return wg.HookHandle(_everywhere["_forward_hooks"], hook)


def register_module_full_backward_hook(hook: Hook) -> wg.HookHandle:
    """Call hook(module, grad_input, grad_output) when gradients have gone back through any module.

    >>> seen = []
    >>> with wg.nn.register_module_full_backward_hook(lambda module, before, after: seen.append(after[0])):
    ...     wg.nn.ReLU()(wg.ones(2).requires_grad_()).sum().backward()
    >>> seen[0].tolist()
    [1.0, 1.0]
    """
    return wg.HookHandle(_everywhere["_backward_hooks"], hook)
