"""Examples of a function's arguments: which are given, and the names that an input or result has in a file.

In: a function and its examples, a tuple in the order of its arguments or a dict by name. Out: the leaves of
all of them, each with a name of its own, and the arguments again with other leaves.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import ArgumentError
from .pytree import TreeSpec, flatten, unflatten

__all__ = ["Examples", "examples_of", "labels_of_result", "refuse_twice"]


class Examples(NamedTuple):
    """The tensors and numbers among a call's arguments with their names, and how the call is made of them."""

    labels: list[str]
    leaves: list[Any]
    specs: list[TreeSpec]
    named: dict[str, TreeSpec]

    def arguments(self, leaves: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments with other leaves: those by place, and those by name."""
        places = iter(leaves)
        args = [unflatten(each, places) for each in self.specs]
        return args, {key: unflatten(each, places) for key, each in self.named.items()}


def examples_of(op: str, function: Callable[..., Any], examples: Any, name: str) -> Examples:
    """A function's examples; `op` is who asks, and `name` what messages call the function."""
    args, kwargs, names = _arguments(op, function, examples, name)
    leaves: list[Any] = []
    specs = [flatten(each, leaves, numbers=True) for each in args]
    named = {key: flatten(each, leaves, numbers=True) for key, each in kwargs.items()}
    labels = [
        label
        for first, spec in [*zip(names, specs, strict=True), *named.items()]
        for label in _labels(first, spec)
    ]
    refuse_twice(op, labels, f"inputs of {name}")
    return Examples(labels, leaves, specs, named)


def _arguments(
    op: str, function: Callable[..., Any], examples: Any, name: str
) -> tuple[list[Any], dict[str, Any], list[str]]:
    """Positional arguments with their names, and named ones."""
    if not callable(function):
        raise ArgumentError(f"{op} takes a function or a module; {name} is of type {type(function).__name__}")
    if isinstance(examples, Mapping):
        _bind(op, function, (), examples, name)
        return [], dict(examples), []
    args = list(examples) if isinstance(examples, list | tuple) else [examples]
    return args, {}, _bind(op, function, args, {}, name)


def _bind(
    op: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str
) -> list[str]:
    """The names of positional arguments."""
    try:
        signature_of = inspect.signature(getattr(function, "forward", function))
    except (TypeError, ValueError):
        return [f"input_{at}" for at in range(len(args))]
    try:
        bound = signature_of.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(
            f"{op}: the example inputs do not fit {name}{signature_of}: {error}. Give a tuple of its "
            "arguments in order, or a dict by name"
        ) from None
    names: list[str] = []
    for key, value in bound.arguments.items():
        several = signature_of.parameters[key].kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{key}_{at}" for at in range(len(value))] if several else [key]
    return names[: len(args)]


def _labels(name: str, spec: TreeSpec) -> Iterator[str]:
    """The names of a value's leaves, in the order in which it is taken apart."""
    if spec.kind in ("tensor", "number"):
        yield name
    keys = spec.data if spec.kind == "dict" else range(len(spec.parts))
    for key, part in zip(keys, spec.parts, strict=True) if spec.parts else ():
        yield from _labels(f"{name}_{key}" if name else str(key), part)


def labels_of_result(spec: TreeSpec) -> list[str]:
    """The names of results: "output" for one, the keys of a dict, output_0 … of a tuple."""
    return list(_labels("" if spec.kind == "dict" else "output", spec))


def refuse_twice(op: str, labels: Sequence[str], what: str) -> None:
    """Refuse two inputs or outputs of one name."""
    for label, count in Counter(labels).items():
        if count > 1:
            raise ArgumentError(f"{op}: {count} {what} would be called {label!r}: rename all but one")
