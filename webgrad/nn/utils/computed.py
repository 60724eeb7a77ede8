"""Hooks that compute a parameter of others before each call of its module.

In: a module and the name of a parameter. Out: the same module, whose attribute of this name is what the hook
computed last; other parameters and buffers are in its state.
"""

from __future__ import annotations

from typing import Any

import webgrad as wg

from ..parameter import Parameter

__all__ = ["Computed"]


class Computed:
    """A hook that computes a parameter; its subclasses say how."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Any) -> wg.Tensor:
        """The value."""
        raise NotImplementedError

    def __call__(self, module: Any, inputs: Any) -> None:
        module.__dict__[self.name] = self.compute(module)

    def put(self, module: Any, **parameters: wg.Tensor) -> None:
        """Take the parameter away, and register others."""
        requires_grad = module._parameters[self.name].requires_grad
        del module._parameters[self.name]
        for ending, value in parameters.items():
            module.register_parameter(f"{self.name}_{ending}", Parameter(value, requires_grad))

    def begin(self, module: Any) -> None:
        """Compute the value once, and before each call."""
        self(module, None)
        handle = module.register_forward_pre_hook(self)
        module.__dict__.setdefault("_computed", {})[self.name] = (self, handle)

    @classmethod
    def taken_off(cls, module: Any, name: str, *endings: str) -> Any:
        """End it: the value as it is now becomes a parameter again."""
        hook, handle = module.__dict__.get("_computed", {}).get(name, (None, None))
        if not isinstance(hook, cls):
            raise wg.ArgumentError(f"{cls.__name__} of {name!r} not found in {type(module).__name__}")
        with wg.no_grad():
            value = hook.compute(module)
        requires_grad = getattr(module, f"{name}_{endings[0]}").requires_grad
        handle.remove()
        del module.__dict__["_computed"][name], module.__dict__[name]
        for ending in endings:
            delattr(module, f"{name}_{ending}")
        module.register_parameter(name, Parameter(value, requires_grad))
        return module
