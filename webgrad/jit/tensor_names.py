"""The names of the tensors that functions use: those of the parameters and buffers of their models.

In: functions, methods or modules. Out: names with tensors, as in a model's `state_dict`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..functions.learning.quantised import QuantisedTensor
from .closures import named_in

__all__ = ["named_tensors"]

Function = Callable[..., Any]


def named_tensors(functions: Iterable[Function]) -> list[tuple[str, Any]]:
    """The parameters and buffers of the models that functions are, belong to or name, with their names."""
    found: list[tuple[str, Any]] = []
    for function in functions:
        for prefix, model in _models(function):
            for kind in ("named_parameters", "named_buffers"):
                found += [(prefix + name, tensor) for name, tensor in getattr(model, kind)()]
            found += [(prefix + name, tensor) for name, tensor in _quantised(model)]
    return found


def _quantised(model: Any) -> Iterator[tuple[str, Any]]:
    """The blocks of quantised weights, which are no parameters."""
    for owner, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, QuantisedTensor):
                yield f"{owner}.{name}".lstrip("."), value._words


def _models(function: Function) -> list[tuple[str, Any]]:
    """Modules, with what their tensors' names begin with."""
    plain = inspect.unwrap(function)
    candidates = [("", plain), ("", getattr(plain, "__self__", None))]
    candidates += [(f"{name}.", value()) for name, value in named_in(function)]
    return [(prefix, each) for prefix, each in candidates if hasattr(each, "named_parameters")]
