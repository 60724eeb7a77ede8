"""What a function closes over: the tensors that hold given nodes, whoever holds those, and where they are.

In: nodes, a function and its arguments. Out: tensors, a device. Python's garbage collector knows who refers
to what, so neither the function nor its objects need to say.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any

from .evaluate import compute
from .graph.node import Node
from .graph.op import SCALAR
from .runtime.device import default_device
from .tensor import Tensor

__all__ = ["device_of", "store_numbers", "tensors_that_refer_to"]

LOOKED_INTO = 1000  # objects
_NOT_LOOKED_INTO = (type, ModuleType, FunctionType, str, bytes, int, float, Node)


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
    named = inspect.unwrap(function)
    code, names = getattr(named, "__code__", None), getattr(named, "__globals__", {})
    cells = getattr(named, "__closure__", None) or ()
    seen = [*given, function, *(cell.cell_contents for cell in cells if cell != CellType())]
    seen += [names.get(name) for name in code.co_names] if code is not None else []
    known: set[int] = set()
    for each in seen:
        if isinstance(each, Tensor):
            return each.node.sig.device
        if id(each) not in known and len(known) < LOOKED_INTO and not isinstance(each, _NOT_LOOKED_INTO):
            known.add(id(each))
            seen += [part for part in gc.get_referents(each) if not isinstance(part, _NOT_LOOKED_INTO)]
    return default_device()
