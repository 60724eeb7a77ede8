"""Operators over nodes: the row of each operator, and what may replace a value in place.

In: nodes and numbers, of which one at least is a node. Out: nodes. Rows of floats take integers as float32,
and powers have a special rule; every other operator is its row of the table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import dtypes
from ..errors import DTypeError, ShapeError
from ..graph.node import Node
from ..graph.op import Op
from .primitives import alias, cast, elementwise
from .table import TABLE

Operand = Node | bool | int | float | complex
Combine = Callable[[Operand, Operand], Node]
_BREADTH = {
    "b": 0,
    "u": 1,
    "i": 1,
    "f": 2,
    "c": 3,
}  # the kinds that may replace a value of each kind in place: its own and narrower ones


def combiner(name: str) -> Combine:
    """A binary row of the table as a function of nodes and numbers."""
    op = TABLE[name]
    return _power if name == "power" else functools.partial(of_floats if op.types == "f" else elementwise, op)


def _is_floating(value: Operand) -> bool:
    return value.sig.dtype.kind in "fc" if isinstance(value, Node) else isinstance(value, (float, complex))


def of_floats(op: Op, *operands: Operand) -> Node:
    """A row that takes only floats: where no operand is one, integers and bools are cast to float32."""
    if not any(map(_is_floating, operands)):
        operands = tuple(cast(each, dtypes.float32) if isinstance(each, Node) else each for each in operands)
    return elementwise(op, *operands)


def _power(a: Operand, b: Operand) -> Node:
    """a to the power of b; a square is one multiplication, and exact."""
    if isinstance(a, Node) and not isinstance(b, Node):
        kind = a.sig.dtype.kind
        if kind in "iu" and isinstance(b, int) and b < 0:
            raise DTypeError(
                f"power: {a.sig.dtype.name} to the power of {b} has no integer result: convert with "
                "x.astype(webgrad.float32), or use a float as the exponent"
            )
        if b == 2 and (kind in "fc" or (kind != "b" and isinstance(b, int))):
            return elementwise(_MULTIPLY, a, a)
        if kind == "c" and b != 0 and b in _WHOLE:
            result = _repeated(a, abs(int(b.real)))
            return elementwise(_DIVIDE, 1.0, result) if b.real < 0 else result
    return elementwise(_POWER, a, b)


_WHOLE = range(-16, 17)  # exponents for which complex numbers are multiplied


def _repeated(a: Node, exponent: int) -> Node:
    """A complex number to an integer power, by multiplications: they keep digits that a logarithm loses."""
    if exponent == 1:
        return alias(a)
    half = _repeated(a, exponent // 2)
    square = elementwise(_MULTIPLY, half, half)
    return elementwise(_MULTIPLY, square, a) if exponent % 2 else square


def cast_to_target(op: str, result: Node, target: Node) -> Node:
    """An in-place result, cast to the dtype of its target, which must have its shape and no narrower kind."""
    old, new = target.sig, result.sig
    if new.shape != old.shape:
        raise ShapeError(
            f"{op} in place: the result has shape {new.shape} and cannot replace a tensor of shape "
            f"{old.shape}: write x = x … instead"
        )
    if _BREADTH[new.dtype.kind] > _BREADTH[old.dtype.kind]:
        raise DTypeError(
            f"{op} in place: the result is {new.dtype.name} and cannot replace a tensor of {old.dtype.name}: "
            "write x = x … instead, or convert with x.astype"
        )
    return cast(result, old.dtype)


_DIVIDE, _MULTIPLY, _POWER = TABLE["divide"], TABLE["multiply"], TABLE["power"]
