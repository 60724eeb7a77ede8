"""How long it takes to build graphs: while entered, webgrad's own functions of tensors tell when they ran.

In: somebody to tell. Out: (began, ended) of each call that a program makes, not of those that these make
themselves. The functions are wrapped on entering and put back on leaving, so that nobody else pays for it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from types import FunctionType, ModuleType
from typing import Any

from ...tensor import Tensor

__all__ = ["telling"]

Tell = Callable[[int, int], None]
_HOMES = ("webgrad.functions.", "webgrad.fft", "webgrad.linalg.")  # functions that never call a user's
_PLAIN = ("__init__", "__getattr__", "__setattr__", "__class_getitem__", "__init_subclass__")


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Have every call of a function of tensors told of, until it is left."""
    watch = _Watch(tell)
    owners: list[Any] = [sys.modules["webgrad"], *_namespaces(), *Tensor.__mro__[:-1]]
    before = [(owner, name, each) for owner in owners for name, each in _functions(owner)]
    for owner, name, each in before:
        setattr(owner, name, _told(each, watch))
    try:
        yield
    finally:
        watch.tell = None
        for owner, name, each in before:
            setattr(owner, name, each)


class _Watch:
    """Whom to tell; nobody at the end, since a program may have taken functions along by then."""

    def __init__(self, tell: Tell) -> None:
        self.tell: Tell | None = tell
        self.inside = threading.local()  # `busy` where a function that is told of runs


def _namespaces() -> list[ModuleType]:
    return [sys.modules[name] for name in ("webgrad.fft", "webgrad.linalg") if name in sys.modules]


def _functions(owner: Any) -> list[tuple[str, FunctionType]]:
    found = [(name, each) for name, each in vars(owner).items() if isinstance(each, FunctionType)]
    if isinstance(owner, type):
        return [(name, each) for name, each in found if name not in _PLAIN]
    return [(name, each) for name, each in found if each.__module__.startswith(_HOMES)]


def _told(function: FunctionType, watch: _Watch) -> Callable[..., Any]:
    inside = watch.inside

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tell = watch.tell
        if tell is None or getattr(inside, "busy", False):
            return function(*args, **kwargs)
        inside.busy = True
        began = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        finally:
            tell(began, perf_counter_ns())
            inside.busy = False

    return call
