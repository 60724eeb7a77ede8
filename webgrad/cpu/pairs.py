"""Arithmetic of complex numbers by whole pairs of floats: a pass over the graph, its ops, their functions.

In: a graph for the cpu, in which complex numbers are formulas over their parts. Out: the same graph, in which
products, conjugates and sizes of pairs are NumPy's functions of complex numbers, and what is done to both
parts alike is one map over both: taking pairs apart and joining them takes several times as long as that.
Parts that are computed by themselves, as those of an exponential are, stay so. Rounding apart, results are
those of the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ..arrays import Array, np
from ..graph.node import Signature, signature
from ..graph.op import Op
from ..graph.snapshot import Snapshot
from ..ops.shapes import broadcast
from ..ops.table import TABLE
from ..schedule.plan import is_part, joins_pairs

__all__ = ["add_to_real", "conjugate", "has_pairs", "keep_pairs", "multiply", "sizes"]

Parts = tuple[int, int]  # the nodes of a real and an imaginary part
Pattern = str | tuple["Pattern", ...]


def keep_pairs(graph: Snapshot) -> None:
    """Rewrite a graph in place; numbers of nodes stay."""
    if not any(is_part(graph, each) for each in range(len(graph))):
        return
    pairs = _Pairs(graph)
    for node in graph.order():
        if joins_pairs(graph, node):
            pairs.replace_join(node)
        elif graph.sigs[node].op.name == "where":
            pairs.replace_size(node)


def has_pairs(graph: Snapshot, number: int) -> bool:
    """Whether a node is arithmetic of complex numbers: made of their parts, or by an op of this file."""
    return joins_pairs(graph, number) or graph.sigs[number].op in _OPS


# What is looked for: names of ops with what they take; other names stand for any node

_PRODUCT: tuple[Pattern, Pattern] = (
    ("subtract", ("multiply", "a", "c"), ("multiply", "b", "d")),
    ("add", ("multiply", "a", "d"), ("multiply", "b", "c")),
)
_LARGE: Pattern = ("maximum", ("abs", "x"), ("abs", "y"))
_SMALL: Pattern = ("minimum", ("abs", "x"), ("abs", "y"))
_RATIO: Pattern = ("where", ("equal", _LARGE, "nought"), "none", ("divide", _SMALL, _LARGE))
_SIZE: Pattern = (
    "where",
    ("bitwise_or", ("equal", ("abs", "x"), "first_end"), ("equal", ("abs", "y"), "second_end")),
    "endless",
    ("multiply", _LARGE, ("sqrt", ("add", "one", ("multiply", _RATIO, _RATIO)))),
)
_NUMBERS = {  # those in a size's formula
    "first_end": math.inf,
    "second_end": math.inf,
    "endless": math.inf,
    "nought": 0.0,
    "none": 0.0,
    "one": 1.0,
}


class _Form(NamedTuple):
    """An op over pairs, and its operands: parts that are such pairs, or a real number for both of them."""

    op: Op
    operands: tuple[Parts | int, ...]


class _Pairs:
    """What is known of a graph: which parts are those of numbers that are pairs."""

    def __init__(self, graph: Snapshot) -> None:
        self._graph = graph
        self._made: dict[Parts, int | None] = {}

    def replace_join(self, node: int) -> None:
        """Let joined parts be the pairs that they are computed as."""
        graph, sig = self._graph, self._graph.sigs[node]
        if sig.dtype.name not in ("float32", "float64"):
            return
        real, imaginary = (self._as_shaped(each, sig.shape[:-1]) for each in graph.inputs[node])
        pairs = None if real is None or imaginary is None else self._whole((real, imaginary))
        if pairs is not None and graph.sigs[pairs].shape == sig.shape:
            graph.sigs[node] = signature(TABLE["reshape"], sig.shape, sig.dtype, sig.device, (sig.shape,))
            graph.inputs[node] = (pairs,)

    def replace_size(self, node: int) -> None:
        """Let the formula of a size be that of pairs: joined for it, if they are none."""
        graph, sig = self._graph, self._graph.sigs[node]
        found: dict[str, int] = {}
        if sig.dtype.name not in ("float32", "float64") or not self._matches(node, _SIZE, found):
            return
        numbers = tuple(found[each] for each in _NUMBERS)
        parts = found["x"], found["y"]
        if any(graph.sigs[each].kind != "scalar" for each in numbers) or any(
            graph.sigs[each].shape != sig.shape for each in parts
        ):
            return
        pairs = self._whole(parts)
        graph.inputs[node] = (self._joined(parts) if pairs is None else pairs, *numbers)
        graph.sigs[node] = signature(_SIZES, sig.shape, sig.dtype, sig.device, ())

    # Finding

    def _as_shaped(self, node: int, shape: tuple[int, ...]) -> int | None:
        """The first value of a shape that a node is reshapes of."""
        found = None
        while True:
            sig = self._graph.sigs[node]
            if sig.shape == shape:
                found = node
            if sig.op.name != "reshape":
                return found
            (node,) = self._graph.inputs[node]

    def _bare(self, node: int) -> int:
        found = self._as_shaped(node, self._graph.sigs[node].shape)
        assert found is not None
        return found

    def _matches(self, node: int, pattern: Pattern, found: dict[str, int]) -> bool:
        node = self._bare(node)
        if isinstance(pattern, str):
            return found.setdefault(pattern, node) == node
        name, *inner = pattern
        inputs = self._graph.inputs[node]
        return self._graph.sigs[node].op.name == name and all(
            self._matches(each, one, found) for each, one in zip(inputs, inner, strict=True)
        )

    def _whole(self, parts: Parts) -> int | None:
        """The pairs that parts are of, or are computed as from now on; None where they are no such."""
        stack = [parts]
        forms: dict[Parts, _Form] = {}
        while stack:
            key = stack[-1]
            if key in self._made:
                stack.pop()
                continue
            form = forms.get(key)
            if form is None:
                pairs = self._taken_from(key)
                form = None if pairs is not None else self._form(key)
                if form is None:
                    self._made[key] = pairs
                    continue
                forms[key] = form
            waiting = [each for each in form.operands if isinstance(each, tuple) and each not in self._made]
            if waiting:
                stack += waiting
            else:
                self._made[key] = self._computed(key, form)
        return self._made[parts]

    def _taken_from(self, parts: Parts) -> int | None:
        """The pairs that these are the two parts of."""
        sources = []
        for at, node in enumerate(parts):
            if not is_part(self._graph, node):
                return None
            (part,) = self._graph.inputs[node]
            if self._graph.sigs[part].attributes[0][-1] != (at, at + 1, 1):
                return None
            sources.append(self._bare(self._graph.inputs[part][0]))
        return sources[0] if sources[0] == sources[1] else None

    def _form(self, parts: Parts) -> _Form | None:
        graph = self._graph
        real, imaginary = (graph.sigs[each] for each in parts)
        found: dict[str, int] = {}
        if all(map(self._matches, parts, _PRODUCT, (found, found))):
            return _Form(_MULTIPLY, ((found["a"], found["b"]), (found["c"], found["d"])))
        first, second = ([self._bare(one) for one in graph.inputs[each]] for each in parts)
        if self._adds_number(parts[0]) and not self._adds_number(parts[1]):
            return _Form(_ADD_TO_REAL, ((first[0], parts[1]), first[1]))
        if real.kind == "map" and real.op is imaginary.op and real.dtype is imaginary.dtype:
            both = zip(first, second, strict=True)
            return _Form(real.op, tuple(a if a == b else (a, b) for a, b in both))
        if imaginary.op.name == "negative":
            return _Form(_CONJUGATE, ((parts[0], second[0]),))
        return None

    def _adds_number(self, node: int) -> bool:
        inputs = self._graph.inputs[node]
        return self._graph.sigs[node].op.name == "add" and self._graph.sigs[inputs[1]].kind == "scalar"

    # Making

    def _computed(self, parts: Parts, form: _Form) -> int | None:
        """The node of a form, where that is less work: no more parts must be joined than were pairs."""
        graph = self._graph
        pairs = [each for each in form.operands if isinstance(each, tuple)]
        known = [each for each in pairs if self._made[each] is not None]
        apart = [each for each in pairs if self._made[each] is None and not self._is_number(each)]
        if not known or len(apart) > len(known):
            return None
        operands = tuple(map(self._operand, form.operands))
        shape = broadcast(form.op.name, [graph.sigs[each].shape for each in operands])
        sig, op = graph.sigs[parts[0]], form.op
        if op.name == "add" and graph.sigs[operands[1]].op.name == "negative":  # how formulas subtract
            op, operands = TABLE["subtract"], (operands[0], *graph.inputs[operands[1]])
        return graph.add(signature(op, shape, sig.dtype, sig.device, ()), operands)

    def _is_number(self, parts: Parts) -> bool:
        return all(self._graph.sigs[each].size == 1 for each in parts)

    def _operand(self, value: Parts | int) -> int:
        if isinstance(value, tuple):
            pairs = self._made[value]
            return self._joined(value) if pairs is None else pairs
        shape = self._graph.sigs[value].shape
        return self._reshaped(value, (*shape, 1)) if shape else value

    def _joined(self, parts: Parts) -> int:
        """Parts as pairs, by a join of its own."""
        graph = self._graph
        shape = broadcast("complex", [graph.sigs[each].shape for each in parts])
        sig = graph.sigs[parts[0]]
        halves = []
        for each in parts:
            if graph.sigs[each].shape != shape:
                expanded = signature(TABLE["expand"], shape, sig.dtype, sig.device, (shape,))
                each = graph.add(expanded, (each,))
            halves.append(self._reshaped(each, (*shape, 1)))
        joined = signature(TABLE["concat"], (*shape, 2), sig.dtype, sig.device, (len(shape),))
        return graph.add(joined, tuple(halves))

    def _reshaped(self, node: int, shape: tuple[int, ...]) -> int:
        sig = self._graph.sigs[node]
        return self._graph.add(signature(TABLE["reshape"], shape, sig.dtype, sig.device, (shape,)), (node,))


# What NumPy does with pairs

_COMPLEX = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}


def _numbers(pairs: Array) -> Array:
    """Pairs of floats as complex numbers: a view, where they lie side by side."""
    if pairs.shape[-1:] != (2,):  # one number for both parts
        pairs = np.broadcast_to(pairs, (*pairs.shape[:-1], 2))
    if pairs.strides[-1] != pairs.itemsize:
        pairs = np.ascontiguousarray(pairs)
    numbers: Array = pairs.view(_COMPLEX[pairs.dtype])
    return numbers[..., 0]


def _mapped(function: np.ufunc) -> Callable[..., Array]:
    """A function of complex numbers, of pairs."""

    def mapped(*arrays: Array, out: Array | None = None) -> Array:
        values = [_numbers(each) for each in arrays]
        if out is not None and out.strides[-1] == out.itemsize:
            function(*values, out=_numbers(out))
            return out
        result = np.asarray(function(*values))
        made: Array = result[..., None].view(arrays[0].dtype)
        if out is None:
            return made
        np.copyto(out, made)
        return out

    return mapped


multiply = _mapped(np.multiply)
conjugate = _mapped(np.conjugate)


_add = _mapped(np.add)


def add_to_real(pairs: Array, number: Array, out: Array | None = None) -> Array:
    """A real number added to complex ones. Imaginary parts stay, since -0.0 added changes nothing."""
    return _add(pairs, np.array((number, -0.0), pairs.dtype), out=out)


def sizes(pairs: Array, *numbers: Array, out: Array | None = None) -> Array:
    """The sizes of complex numbers; by the formula that was found, if its numbers are others."""
    if all(map(float.__eq__, map(float, numbers), _NUMBERS.values())):
        return np.abs(_numbers(pairs), out=out)
    first_end, second_end, endless, nought, none, one = numbers
    first, second = np.abs(pairs[..., 0]), np.abs(pairs[..., 1])
    large, small = np.maximum(first, second), np.minimum(first, second)
    ratio = np.where(large == nought, none, small / large)
    ends = (first == first_end) | (second == second_end)
    result = np.where(ends, endless, large * np.sqrt(one + ratio * ratio))
    if out is None:
        return result
    np.copyto(out, result)
    return out


def _reference(sig: Signature, *arrays: Array) -> Array:
    return sizes(*arrays)


def _row(name: str, arity: int, numpy: Callable[..., Array], cost: int, doc: str) -> Op:
    return Op(name, "map", arity, numpy, types="f", cost=cost, doc=doc, gradient=())


_MULTIPLY = _row("multiply_pairs", 2, multiply, 6, "Products of complex numbers; made on the cpu.")
_CONJUGATE = _row("conjugate_pairs", 1, conjugate, 1, "Complex numbers' conjugates; made on the cpu.")
_ADD_TO_REAL = _row("add_to_real", 2, add_to_real, 1, "Complex numbers and a real one; made on the cpu.")
_SIZES = Op(
    "sizes_of_pairs",
    "gather",
    1 + len(_NUMBERS),
    _reference,
    types="f",
    cost=16,
    doc="The sizes of complex numbers, and the numbers of their formula; made on the cpu.",
    gradient=(),
)
_OPS = frozenset((_MULTIPLY, _CONJUGATE, _ADD_TO_REAL, _SIZES))
