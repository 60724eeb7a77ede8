"""What a function does beside computing with tensors: what a captured call would do once only, or not see.

In: a function. Out: the first such thing in its code and in that of functions and modules it names, and a
fingerprint of their objects' plain state. The invariant: what is not known to be harmless is an effect.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import webgrad as wg

__all__ = ["Survey"]

_HARMLESS = frozenset(
    {
        "webgrad", "math", "cmath", "operator", "itertools", "functools", "typing", "collections", "abc",
        "contextlib", "copy", "einops", "builtins", "dataclasses", "enum", "numbers", "types", "inspect",
        "warnings", "__future__", "numpy",
    }
)  # fmt: skip
_BUILTINS = frozenset(
    {
        "print", "input", "open", "next", "exec", "eval", "globals", "locals", "vars", "setattr", "delattr",
        "breakpoint",
    }
)  # fmt: skip
_ATTRIBUTES = frozenset({"manual_seed", "seed", "random", "shuffle", "write", "perf_counter"})
_CALLED = frozenset(  # without being named
    {"forward", "__call__", "__getitem__", "__len__", "__iter__", "__next__", "__add__", "__mul__"}
)
_PLAIN = (int, float, complex, str, bytes, bool, type(None), wg.DType)
_NOT_SEARCHED = (*_PLAIN, ModuleType, wg.Tensor, wg.optim.Optimizer)
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
MAX_CODES = 500
MAX_OBJECTS = 2000
MAX_VALUES = 16  # of a list or dict that are compared one by one


class Survey:
    """The code that a call may run, and the objects whose state it may read or change."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.effect = ""  # empty where there is none
        self.differentiates = False
        self._objects: dict[int, Any] = {}
        self._codes: set[CodeType] = set()
        self._classes: set[type] = set()  # of users' objects, whose methods are called by these names
        self._names = {*_CALLED}
        self._waiting: list[Any] = [function]
        while self._waiting and not self.effect:
            self._visit(self._waiting.pop())

    def state(self) -> tuple[Any, ...]:
        """The plain values that the objects hold now."""
        return tuple(_state_of(each) for each in self._objects.values())

    def add(self, value: Any) -> None:
        """Look at an argument too."""
        self._waiting.append(value)
        while self._waiting and not self.effect:
            self._visit(self._waiting.pop())

    def _visit(self, value: Any) -> None:
        if isinstance(value, functools.partial):
            self._waiting += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, MethodType):
            self._waiting += [value.__self__, value.__func__]
        elif isinstance(value, FunctionType):
            self._visit_function(inspect.unwrap(value))
        elif isinstance(value, _NOT_SEARCHED):
            pass
        elif isinstance(value, BuiltinFunctionType):
            if _root(value) not in _HARMLESS:
                self.effect = f"it calls {value.__qualname__}"
        elif isinstance(value, type):
            self._waiting.append(vars(value).get("__init__"))
            self._visit_methods({value}, self._names)
        elif id(value) not in self._objects:
            self._visit_object(value)

    def _visit_object(self, value: Any) -> None:
        self._objects[id(value)] = value
        if len(self._objects) > MAX_OBJECTS:
            self.effect = "it names too many objects"
        held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        if len(held) <= MAX_VALUES:
            self._waiting += held
        if isinstance(value, wg.nn.Module):
            self._waiting += value.children()
        if hasattr(value, "__dict__"):
            self._waiting += [each for each in vars(value).values() if hasattr(each, "__dict__")]
            self._visit_methods({type(value)}, self._names)

    def _visit_methods(self, classes: set[type], names: set[str]) -> None:
        """Look at the methods of these names; of classes that are met later, those of all names so far."""
        self._classes |= classes
        for kind in classes:
            for base in kind.__mro__:
                if _root(base) not in _HARMLESS:
                    members = vars(base)
                    self._waiting += [_function_of(members[each]) for each in names & members.keys()]

    def _visit_function(self, function: FunctionType) -> None:
        if function.__code__ in self._codes or _root(function) in _HARMLESS:
            return
        if len(self._codes) > MAX_CODES:
            self.effect = "it calls too many functions"
        for cell in function.__closure__ or ():
            self._waiting += _contents(cell)
        for code in _codes(function.__code__):
            self._codes.add(code)
            self._visit_code(code, function)

    def _visit_code(self, code: CodeType, function: FunctionType) -> None:
        names = {*code.co_names}
        self._visit_methods(self._classes, names - self._names)
        self._names |= names
        self.differentiates |= bool(names & {"backward", "grad"})
        if _ATTRIBUTES & names:
            self.effect = f"it calls {min(_ATTRIBUTES & names)}"
        for each in dis.get_instructions(code):
            if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
                each.opname == "STORE_DEREF" and each.argval in function.__code__.co_freevars
            ):
                self.effect = f"it gives the name {each.argval!r} another value"
            elif each.opname in _READS:
                self._visit_name(each.argval, names, function)

    def _visit_name(self, name: str, names: set[str], function: FunctionType) -> None:
        if name not in function.__globals__:
            if name in _BUILTINS:
                self.effect = f"it calls {name}"
            return
        value = function.__globals__[name]
        if not isinstance(value, ModuleType):
            self._waiting.append(value)
        elif _root(value) not in _HARMLESS:
            found = [getattr(value, each, None) for each in names]
            self._waiting += [each for each in found if callable(each)]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of functions in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _function_of(member: Any) -> Any:
    """What a class's member runs."""
    member = member.fget if isinstance(member, property) else member
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def _contents(cell: Any) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a name that has no value yet
        return []


def _root(value: Any) -> str:
    """The package that a function, class or module is from."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(name or "").partition(".")[0]


def _state_of(value: Any) -> Any:
    if isinstance(value, list | tuple | dict | set):
        return _summary(value)
    return tuple((name, _summary(each)) for name, each in getattr(value, "__dict__", {}).items())


def _summary(value: Any) -> Any:
    """A plain value itself; a tensor or an object by its identity; of a few values each."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, dict) and len(value) <= MAX_VALUES:
        return tuple(
            (key if isinstance(key, _PLAIN) else id(key), _shallow(each)) for key, each in value.items()
        )
    if isinstance(value, list | tuple) and len(value) <= MAX_VALUES:
        return tuple(map(_shallow, value))
    return (id(value), len(value)) if isinstance(value, list | tuple | dict | set) else id(value)


def _shallow(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else id(value)
