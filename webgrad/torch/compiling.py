"""torch.compile: `wg.jit` where a function can be captured, a plain call otherwise.

In: a function or a module. Out: one that gives the same results. What cannot be captured (a value that is
read, say) is called as it is, and that is said once.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import webgrad as wg

from .tensor import adopt

__all__ = ["compile"]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """A function, or a module's call, captured once and replayed.

    >>> import webgrad.torch as torch
    >>> double = torch.compile(lambda x: x * 2)
    >>> double(torch.ones(2)).tolist()
    [2.0, 2.0]
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, mode=mode, disable=disable)
    if disable:
        return model
    if isinstance(model, wg.nn.Module):
        object.__setattr__(model, "forward", _captured(model.forward, fullgraph))
        return model
    return _captured(model, fullgraph)


def _captured(function: Callable[..., Any], fullgraph: bool) -> Callable[..., Any]:
    fast = wg.jit(function)
    plain = False

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal plain
        if plain or wg.is_grad_enabled():
            return function(*args, **kwargs)
        try:
            return adopt(fast(*args, **kwargs))
        except wg.CaptureError as error:
            if fullgraph:
                raise
            plain = True
            warnings.warn(f"torch.compile: called without being captured: {error}", stacklevel=2)
            return function(*args, **kwargs)

    return call
