"""Constructors of rows, so that `ops/maps.py` reads as a table.

In: what is particular to an op. Out: its row.
"""

from __future__ import annotations

import re
from typing import Any

from .. import dtypes
from ..errors import DTypeError
from ..graph.node import Signature
from ..graph.op import Op
from . import shapes

Sigs = tuple[Signature, ...]
Spelling = str | dict[str, str]
INTEGERS = ("i32", "u32", "i64", "u64")
NUMBERS = ("f32", *INTEGERS, "f64")


def row(name: str, doc: str, wgsl: Spelling, types: str = "iuf", result: str = "same", **more: Any) -> Op:
    """A row. The doc of a public function has an example: `text >>> [1, 2], 3 -> [4 5]`. `numpy` is NumPy's
    name for it where that is another, or its reference.
    """
    numpy = more.pop("numpy", name)
    more["doc"], _, more["example"] = doc.partition(" >>> ")
    arity = more.pop("arity", None) or _operands(wgsl)
    infer = more.pop("infer", None) or shapes.elementwise(name, types, result)
    return Op(name, "map", arity, numpy, wgsl, types, result, infer, **more)


def _operands(wgsl: Spelling) -> int:
    """How many operands a spelling has: {0} is the first."""
    texts = [wgsl] if isinstance(wgsl, str) else wgsl.values()
    return 1 + max(int(place) for text in texts for place in re.findall(r"{(\d)}", text))


def spelled(text: str, *types: str) -> dict[str, str]:
    """One spelling for several compute types."""
    return dict.fromkeys(types, text)


def called(name: str, arity: int, *types: str) -> dict[str, str]:
    """A function of the library for each of these types; the one for f32 has the plain name."""
    operands = ", ".join(f"{{{at}}}" for at in range(arity))
    return {each: f"wg_{name}{'' if each == 'f32' else '_' + each}({operands})" for each in types}


def comparison(name: str, doc: str, sign: str, boolean: str) -> Op:
    """A row that compares; floats by a function: compilers turn !(a < b) into a >= b, x == x into true."""
    wgsl = spelled(f"({{0}} {sign} {{1}})", *INTEGERS) | called(name, 2, "f32", "f64") | {"bool": boolean}
    return row(name, doc, wgsl, "biuf", "bool", cost=2, gradient=())


def logical(name: str, doc: str, wgsl: str) -> Op:
    """A row of bools."""
    return row(name, doc, {"bool": wgsl}, "b", "bool", gradient=())


def of_floats(name: str, doc: str, cost: int, *gradient: str, tolerance: float = 4, **more: Any) -> Op:
    """A function of floats, in the library, with a gradient for each operand."""
    wgsl = called(name, len(gradient), "f32", "f64")
    return row(name, doc, wgsl, "f", cost=cost, gradient=gradient, tolerance=tolerance, **more)


def question(name: str, doc: str, integers: str) -> Op:
    """A row that tests floats; for integers and bools the result is constant."""
    wgsl = called(name, 1, "f32", "f64")
    return row(name, doc, wgsl, "f", "bool", cost=2, gradient=(), integers=integers)


# Rules where operands are not all of one dtype


def choice(sigs: Sigs, attributes: tuple[Any, ...]) -> tuple[tuple[int, ...], Any]:
    """The rule of `where`: a bool, and two operands of one dtype."""
    condition, a, b = sigs
    shapes.check_kind("where (its condition)", "b", condition.dtype)
    if a.dtype is not b.dtype:
        raise DTypeError(
            f"where: {a.dtype.name} and {b.dtype.name} must be one dtype; convert one with astype"
        )
    return shapes.broadcast("where", [each.shape for each in sigs]), a.dtype


def words(sigs: Sigs, attributes: tuple[Any, ...]) -> tuple[tuple[int, ...], Any]:
    """The rule of `random_bits`: only uint32."""
    for each in sigs:
        if each.dtype is not dtypes.uint32:
            raise DTypeError(f"random_bits takes uint32 words, not {each.dtype.name}; convert with astype")
    return shapes.broadcast("random_bits", [each.shape for each in sigs]), dtypes.uint32
