"""Functions made from rows: the public function of each map op of the table.

In: a row. Out: a function with the row's name, text and example. It takes tensors, numbers and NumPy arrays,
one tensor at least, and gives a tensor of the broadcast shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...graph.node import Node
from ...graph.op import Op
from ...ops.operators import Operand, combiner, of_floats
from ...ops.primitives import elementwise
from ...ops.table import TABLE
from ...tensor import Tensor, operand
from .creation import as_tensor, full_like

_LIST, _AS_TENSOR = re.compile(r"(\[[^]]*\])"), r"wg.asarray(\1)"
_FOUR_DIGITS = re.compile(r"\.\d{4}")
# what a row of floats gives for integers and bools, where it does not take them as float32
_OF_INTEGERS: dict[str, Callable[[Tensor], Tensor]] = {
    "same": lambda x: +x,  # a tensor of its own: it may be written to
    "true": lambda x: full_like(x, True, dtypes.bool),
    "false": lambda x: full_like(x, False, dtypes.bool),
}


def functions_of(module: str) -> dict[str, Callable[..., Tensor]]:
    """The public functions that are one row each, by name; `module` is where they can be found."""
    found = {op.public: function_of(op, op.public) for op in TABLE.values() if op.public}
    for each in found.values():
        each.__module__ = module
    return found


def function_of(op: Op, name: str) -> Callable[..., Tensor]:
    """A row as a function of that name."""
    function: Callable[..., Tensor] = _unary(op) if op.arity == 1 else _binary(op)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documented(name, op)
    return function


def _documented(name: str, op: Op) -> str:
    """A row's text and its example, as a call that prints its result."""
    arguments, shown = op.example.split(" -> ")
    call = f"wg.{name}({_LIST.sub(_AS_TENSOR, arguments)})"
    # Rounded ones may differ in their last digits between machines
    printed = f"{call}.numpy().round(4)" if _FOUR_DIGITS.search(shown) else call
    return f"{op.doc}\n\n>>> print({printed})\n{shown}"


def _unary(op: Op) -> Callable[[Tensor], Tensor]:
    name, others = op.name, _OF_INTEGERS.get(op.integers)
    compute = of_floats if op.types == "f" else elementwise

    def function(x: Tensor) -> Tensor:
        x = as_tensor(name, x)
        if others is not None and x.dtype.kind in "biu":
            return others(x)
        return Tensor(compute(op, x.node))

    def logical(x: Tensor) -> Tensor:
        return Tensor(elementwise(op, truth_of(as_tensor(name, x).node)))

    return logical if op.types == "b" else function


def _binary(op: Op) -> Callable[[Any, Any], Tensor]:
    name, combine = op.name, combiner(op.name)

    def function(x1: Any, x2: Any, /) -> Tensor:
        if x1.__class__ is Tensor and x2.__class__ is Tensor:
            return Tensor(combine(x1.node, x2.node))
        return Tensor(combine(*operands(name, x1, x2)))

    def logical(x1: Any, x2: Any, /) -> Tensor:
        return Tensor(elementwise(op, *[_truth(each) for each in operands(name, x1, x2)]))

    return logical if op.types == "b" else function


def operands(op: str, *values: Any) -> list[Operand]:
    """Operands as nodes and numbers; one at least must be a tensor."""
    beside = next((each for each in values if isinstance(each, Tensor)), None)
    if beside is None:
        beside = as_tensor(op, values[0])
    found = [operand(op, each, beside.node) for each in values]
    for value, each in zip(values, found, strict=True):
        if each is NotImplemented:
            as_tensor(op, value)  # which says what is wrong with it
    return found


def _truth(value: Operand) -> Operand:
    return truth_of(value) if isinstance(value, Node) else bool(value)


def truth_of(x: Node) -> Node:
    """Whether elements are not zero."""
    return x if x.sig.dtype.kind == "b" else elementwise(TABLE["not_equal"], x, 0)
