"""What a function closes over: the tensors that hold given nodes, what its names stand for, and where it is.

In: nodes, a function and its arguments. Out: tensors, names, a device. Python's garbage collector knows who
refers to what, so neither the function nor its objects need to say.
"""

from __future__ import annotations

import dis
import functools
import gc
import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

from ..evaluate.evaluate import compute
from ..graph.node import Node
from ..graph.op import SCALAR
from ..runtime.device import default_device
from ..tensor import Tensor

Names = list[tuple[Callable[[], Any], Any]]  # what gives a name's value, and what that was

MAX_SEARCHED = 1000  # objects
_FIXED = (type, ModuleType, BuiltinFunctionType)  # names of these are not given to others
_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_NOT_SEARCHED = (type, ModuleType, FunctionType, str, bytes, int, float, Node)


def tensors_that_refer_to(what: Iterable[Any]) -> list[Tensor]:
    """All tensors that hold one of these nodes, or are of one of these classes."""
    wanted = list(what)
    frozen = gc.get_freeze_count()
    if frozen:  # the collector does not look among those
        gc.unfreeze()
    found = [each for each in gc.get_referrers(*wanted) if isinstance(each, Tensor)] if wanted else []
    if frozen:
        gc.freeze()
    return found


def store_numbers() -> None:
    """Store the numbers that tensors hold: such a tensor may be a captured function's, and change."""
    classes = [Tensor]
    for each in classes:
        classes += each.__subclasses__()
    compute([each.node for each in tensors_that_refer_to(classes) if each.node.sig.op is SCALAR])


def device_of(function: Callable[..., Any], given: Sequence[Any]) -> Any:
    """Where numbers are: with the first tensor that is found in the arguments, or in what the function names.

    Their parts are looked into too, the nearest first; a method's object is an argument.
    """
    seen = [*given, function, *(value() for _, value in named_in(function))]
    known: set[int] = set()
    for each in seen:
        if isinstance(each, Tensor):
            return each.node.sig.device
        if id(each) not in known and len(known) < MAX_SEARCHED and not isinstance(each, _NOT_SEARCHED):
            known.add(id(each))
            seen += [part for part in gc.get_referents(each) if not isinstance(part, _NOT_SEARCHED)]
    return default_device()


def names_of(function: Callable[..., Any]) -> Names:
    """What a function names, and what that is now: a name may be given to others. Numbers and text are
    compared by value; tensors, modules and other objects are held weakly, and are to be the same ones.
    """
    found: Names = []
    for _, get in named_in(function):
        value = get()
        if isinstance(value, int | float | str):
            found.append((get, value))
        elif not isinstance(value, _FIXED):
            with suppress(TypeError):  # None, a list, a dict: they know no weak references
                found.append((get, ref(value)))
    return found


def is_still(now: Any, then: Any) -> bool:
    """Whether a name stands for what it stood for."""
    return now is then() if isinstance(then, ref) else type(now) is type(then) and bool(now == then)


def named_in(function: Callable[..., Any]) -> list[tuple[str, Callable[[], Any]]]:
    """The names in a function's code that are not its own, of what is around it and globals, with what gives
    what each stands for.
    """
    plain = inspect.unwrap(function)
    code, names = getattr(plain, "__code__", None), getattr(plain, "__globals__", {})
    if code is None:
        return []
    cells = zip(code.co_freevars, plain.__closure__ or (), strict=True)
    found: list[tuple[str, Callable[[], Any]]] = [
        (name, functools.partial(contents_of, cell, name)) for name, cell in cells
    ]
    return found + [(name, functools.partial(names.get, name)) for name in global_names(code)]


@functools.lru_cache(maxsize=512)
def global_names(code: CodeType) -> tuple[str, ...]:
    """The global names that code reads, that of functions in it too; `co_names` has attributes among them."""
    read = (each.argval for each in dis.get_instructions(code) if each.opname in _READS)
    inner = (name for each in code.co_consts if isinstance(each, CodeType) for name in global_names(each))
    return tuple(dict.fromkeys([*read, *inner]))


def contents_of(cell: CellType, name: str) -> Any:
    """What a variable of an enclosing function stands for; its name is for messages."""
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None
