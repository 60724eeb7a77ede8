"""torch.compile: `wg.jit` where a function can be captured, a plain call otherwise.

In: a function or a module. Out: one that gives the same results. The invariant: what a captured call could
not repeat (a value that is read, an effect of Python code, a result that is differentiated later) is called
as it is.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import webgrad as wg

from .effects import Survey
from .shapes_of import Size
from .tensor import adopt

__all__ = ["compile"]

MAX_ENTRIES = 8  # captures for different numbers, texts and modules among the arguments
WARM_UP = 3  # plain calls in which the state of Python objects comes to rest
MAX_IN_A_ROW = 8  # calls that are captured without one that is replayed
_PLAIN = (int, float, complex, str, bytes, bool, type(None), wg.DType, Size, slice)


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
    """A function or a module that is captured and replayed where that gives the same; else a plain call.

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
        return wg.torch.nn.optimized.OptimizedModule(model, Compiled(model, fullgraph))
    return functools.wraps(model, updated=())(Compiled(model, fullgraph))


class Compiled:
    """A function with its captured calls, by what is no tensor among the arguments."""

    def __init__(self, function: Callable[..., Any], fullgraph: bool = False) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.reason = ""  # why it is called as it is, if it is
        self._entries: dict[Any, _Entry] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.reason:
            return self.function(*args, **kwargs)
        tensors: list[Any] = []
        found = _taken((args, kwargs), tensors)
        if found is None:
            return self._plainly("an argument is neither tensor, number, text nor module", args, kwargs)
        structure, key = found
        entry = self._entries.get((key, wg.is_grad_enabled()))
        if entry is None:
            if len(self._entries) >= MAX_ENTRIES:
                return self.function(*args, **kwargs)
            entry = self._entries[key, wg.is_grad_enabled()] = _Entry(self.function, structure)
        if entry.reason:
            return self._plainly(entry.reason, args, kwargs)
        try:
            return entry.call(tensors, args, kwargs)
        except wg.CaptureError as error:
            return self._plainly(str(error), args, kwargs)

    def _plainly(self, reason: str, args: Any, kwargs: Any) -> Any:
        """A plain call, and the reason once."""
        if self.fullgraph:
            raise wg.CaptureError(f"torch.compile(fullgraph=True): {reason}")
        self.reason = reason
        warnings.warn(f"torch.compile: called without being captured: {reason}", stacklevel=3)
        return self.function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(copy.deepcopy(self.function, memo), self.fullgraph)

    def __reduce__(self) -> Any:
        return Compiled, (self.function, self.fullgraph)


class _Entry:
    """The calls whose arguments differ in tensors alone."""

    def __init__(self, function: Callable[..., Any], structure: Any) -> None:
        self._function, self._structure = function, structure
        self._survey = survey = Survey(function)
        survey.add(structure)
        self.reason = survey.effect and f"{survey.effect}, which a captured call would not repeat"
        self._plain_calls = 0
        self._mode = "warming"  # then "captured", or "plain" where results are differentiated later
        self._in_a_row = 0
        run = functools.update_wrapper(functools.partial(self._run), function, updated=())
        self._fast = wg.jit(run)  # which looks at the names of what is wrapped

    def call(self, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        """The result: of a plain call until the state of Python's objects is known to rest."""
        if self._mode == "warming":
            return self._warm_up(args, kwargs)
        if self._mode == "plain":
            return self._function(*args, **kwargs)
        runs = self._in_a_row
        result = adopt(self._fast(*tensors))
        if self._in_a_row == runs:
            self._in_a_row = 0
        elif self._in_a_row > MAX_IN_A_ROW:
            self.reason = f"it was captured {self._in_a_row} times in a row"
        return result

    def _warm_up(self, args: Any, kwargs: Any) -> Any:
        before = self._survey.state()
        result = self._function(*args, **kwargs)
        self._plain_calls += 1
        if not self._survey.differentiates and _asks(result):
            self._mode = "plain"
        elif self._survey.state() == before:
            self._mode = "captured"
        elif self._plain_calls >= WARM_UP:
            self.reason = "an attribute, number or list of Python's is another one after each call"
        return result

    def _run(self, *tensors: Any) -> Any:
        self._in_a_row += 1
        wg.watch(self._survey.state)
        args, kwargs = _given(self._structure, adopt(list(tensors)))
        return self._function(*args, **kwargs)


class _Place:
    """A tensor's place among the arguments."""

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


def _taken(value: Any, tensors: list[Any]) -> tuple[Any, Any] | None:
    """A value with places for its tensors, and what it is compared by; None where it cannot be compared."""
    if isinstance(value, wg.Tensor):
        tensors.append(value)
        return _Place(len(tensors) - 1), _Place
    if isinstance(value, slice):
        return value, (slice, value.start, value.stop, value.step)
    if isinstance(value, _PLAIN):
        return value, (type(value), value)
    if isinstance(value, wg.nn.Module | wg.optim.Optimizer):
        return value, id(value)
    if type(value) is dict:
        found = [_taken(each, tensors) for each in value.values()]
        if None in found or not all(isinstance(each, str | int) for each in value):
            return None
        pairs = [each for each in found if each is not None]
        return dict(zip(value, [each for each, _ in pairs], strict=True)), (
            tuple(value), tuple(key for _, key in pairs),
        )  # fmt: skip
    if type(value) in (list, tuple):
        found = [_taken(each, tensors) for each in value]
        if None in found:
            return None
        pairs = [each for each in found if each is not None]
        return type(value)(each for each, _ in pairs), (type(value), *(key for _, key in pairs))
    return None


def _given(structure: Any, tensors: list[Any]) -> Any:
    """The value, with these tensors."""
    if isinstance(structure, _Place):
        return tensors[structure.at]
    if type(structure) is dict:
        return {name: _given(each, tensors) for name, each in structure.items()}
    if type(structure) in (list, tuple):
        return type(structure)(_given(each, tensors) for each in structure)
    return structure


def _asks(result: Any) -> bool:
    """Whether a gradient may be asked of a result."""
    if isinstance(result, wg.Tensor):
        return result.requires_grad
    parts = result.values() if isinstance(result, dict) else getattr(result, "__dict__", {}).values()
    parts = result if isinstance(result, list | tuple) else parts
    return any(map(_asks, parts))
