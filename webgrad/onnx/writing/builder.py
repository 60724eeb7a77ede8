"""The graph that is being written: nodes, weights and constants, each under a name of its own.

In: operators with their inputs. Out: messages. The invariant: an operator gets types that onnxruntime's
kernels take: others are cast to wider ones and back, or refused where that would change the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import webgrad as wg

from ...arrays import Array, ml_dtypes, np
from ..types import code_of
from .encoder import Encoded, encode
from .sizes import Size

__all__ = ["Builder", "Value"]

_ALL = "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool"
_INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_NUMBERS = f"float16 float32 float64 {_INTEGERS}"
_FLOATS = "float16 float32 float64"
_SHORT = "float16 float32"
_WIDE = "float16 float32 float64 int32 int64"

# What each operator is computed in; those that are not here take every type. A float16 that onnxruntime has
# no kernel for it casts itself.
_TYPES = {
    name: frozenset(types.split())
    for names, types in {
        "Add Sub Mul Div Less LessOrEqual Greater GreaterOrEqual Abs": _NUMBERS,
        "Equal": f"{_NUMBERS} bool",
        "Mod": _NUMBERS,
        "Neg": f"{_FLOATS} int8 int16 int32 int64",
        "Sign": f"{_NUMBERS} bfloat16",
        "Max Min": f"{_WIDE} int8 uint8 uint32 uint64",
        "Pow MatMul Einsum CumSum ReduceSum ReduceMean ReduceProd": _WIDE,
        "ReduceMax ReduceMin ArgMax ArgMin": f"{_WIDE} int8 uint8",
        "And Or Xor Not": "bool",
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot": _INTEGERS,
        "BitShift": "uint8 uint32 uint64",
        "Where": f"{_FLOATS} int8 int32 int64 uint8 uint32",
        "Pad": f"{_WIDE} int8 uint8 uint32 uint64 bool",
        "Expand": f"{_NUMBERS} bool",
        "TopK": f"{_WIDE} int8 int16 uint8",
        "Clip": f"{_WIDE} int8 uint8 uint32 uint64",
        "IsNaN IsInf Exp Log Sqrt Floor Ceil Round Sin Cos Tanh Sigmoid Reciprocal Softmax": _FLOATS,
        "LogSoftmax LayerNormalization BatchNormalization Gemm Relu DFT RMSNormalization": _FLOATS,
        "Erf Gelu Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Conv ConvTranspose AveragePool": _SHORT,
        "GlobalAveragePool InstanceNormalization Elu LeakyRelu Selu Celu Softplus HardSigmoid": _SHORT,
        "MaxPool": f"{_FLOATS} int8 uint8",
    }.items()
    for name in names.split()
}
_WIDER = {
    **dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16"), "int32"),
    **dict.fromkeys(("int32", "uint32", "uint64"), "int64"),
    **dict.fromkeys(("float16", "bfloat16"), "float32"),
}
# Of uint64 as int64 these give the same bits; all others would take large numbers for negative ones.
_WRAPS = frozenset({"Add", "Sub", "Mul", "MatMul", "ReduceSum", "CumSum", "Where", "Pad", "Equal", "Expand"})
_COMPARES = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}
_GIVES_BOOL = frozenset({*_COMPARES, "IsNaN", "IsInf", "And", "Or", "Xor", "Not"})
_REDUCES = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin"}
_ONE = frozenset({*_REDUCES, "Expand", "TopK", "CumSum", "DFT"})  # only their first input is data


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the graph: its name, and its type by NumPy's name."""

    name: str
    dtype: str


@dataclass(slots=True)
class Builder:
    """A graph as it grows."""

    opset: int
    nodes: list[Encoded] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)
    domains: set[str] = field(default_factory=lambda: {""})
    symbols: dict[str, tuple[Value, int]] = field(default_factory=dict)  # a size's name: input, axis
    read: set[str] = field(default_factory=set)  # names that a node or an output reads
    _names: set[str] = field(default_factory=set)
    _known: dict[Any, Value] = field(default_factory=dict)

    # Names, weights, constants

    def name(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found, number = wanted, 1
        while found in self._names:
            number += 1
            found = f"{wanted}_{number}"
        self._names.add(found)
        return found

    def weight(self, wanted: str, array: Array) -> Value:
        """A tensor of the file."""
        name = self.name(wanted)
        self.weights[name] = array
        return Value(name, array.dtype.name)

    def constant(self, given: Any, dtype: str = "int64") -> Value:
        """A small array, one for all that are equal."""
        array = np.ascontiguousarray(np.asarray(given, _numpy(dtype))).reshape(np.shape(given))
        key = dtype, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = self.weight("constant", array)
        return self._known[key]

    # Operators

    def op(self, op: str, *inputs: Value | None, wanted: int = 0, **attributes: Any) -> Value:
        """An operator's output at a place. Data of a type that it does not take is cast, and cast back."""
        places = self._data(op, inputs)
        given = next((each.dtype for at in places if (each := inputs[at]) is not None), "")
        computed = self._type(op, given) if given else ""
        cast = [
            self.cast(each, computed) if each is not None and at in places and each.dtype == given else each
            for at, each in enumerate(inputs)
        ]
        first = next((each.dtype for each in inputs if each is not None), "")
        found = self.raw(op, cast, _result(op, computed or first, wanted), wanted, attributes)
        return self.cast(found, given) if found.dtype == computed else found

    def raw(
        self,
        op: str,
        inputs: Sequence[Value | None],
        dtype: str,
        wanted: int = 0,
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
    ) -> Value:
        """A node as it is, and its output at a place; the outputs before it have names that nobody reads."""
        made = Value(self.name(op.lower()), dtype)
        self.domains.add(domain)
        self.read.update(each.name for each in inputs if each is not None)
        self.nodes.append(
            encode(
                "Node",
                input=[each.name if each is not None else "" for each in inputs],
                output=[*[self.name("unused") for _ in range(wanted)], made.name],
                name=self.name(op),
                op_type=op,
                domain=domain or None,
                attribute=[_attribute(name, each) for name, each in (attributes or {}).items()],
            )
        )
        return made

    def cast(self, value: Value, dtype: str) -> Value:
        """By value, as C does it."""
        if value.dtype == dtype:
            return value
        return self.raw("Cast", [value], dtype, attributes={"to": code_of(_numpy(dtype))})

    def _data(self, op: str, inputs: Sequence[Value | None]) -> tuple[int, ...]:
        """Which inputs are data, and so of the type that the operator is computed in."""
        if op not in _TYPES:
            return ()
        if op == "Where":
            return (1, 2)
        if op == "Pad":
            return (0, 2)
        return (0,) if op in _ONE else tuple(range(len(inputs)))

    def _type(self, op: str, dtype: str) -> str:
        """The type that an operator computes one in."""
        found = dtype
        while found not in _TYPES[op]:
            if found not in _WIDER or (found == "uint64" and op not in _WRAPS):
                raise wg.DTypeError(
                    f"save: {op} of {dtype} is what onnxruntime has no kernel for: convert with "
                    f"x.astype(webgrad.{'float32' if dtype == 'float64' else 'int64'}) first"
                )
            found = _WIDER[found]
        return found

    def rename(self, value: Value, name: str) -> None:
        """An output of the graph, under the name that it has there."""
        self.read.add(value.name)
        self.nodes.append(encode("Node", input=[value.name], output=[name], op_type="Identity"))

    # Sizes

    def shape(self, sizes: Sequence[int | Size]) -> Value:
        """A shape as a tensor of int64, with the sizes that are open computed."""
        if all(isinstance(each, int) for each in sizes):
            return self.constant([*sizes])
        parts = [self.constant([each]) if isinstance(each, int) else self._size(each) for each in sizes]
        return parts[0] if len(parts) == 1 else self.raw("Concat", parts, "int64", attributes={"axis": 0})

    def number(self, size: int | Size) -> Value:
        """One size as a number of int64."""
        return self.constant(size) if isinstance(size, int) else self.squeezed(self._size(size))

    def squeezed(self, value: Value) -> Value:
        """An array of one element as a number."""
        return self.raw("Reshape", [value, self.constant(np.zeros(0, np.int64))], value.dtype)

    def _size(self, size: Size) -> Value:
        """An open size, as an array of one element."""
        if size not in self._known:
            total = None
            for names, factor in size.terms:
                product = self.constant([factor])
                for name in names:
                    one = self._symbol(name)
                    product = one if product == self.constant([1]) else self.op("Mul", product, one)
                total = product if total is None else self.op("Add", total, product)
            self._known[size] = total if total is not None else self.constant([0])
        return self._known[size]

    def _symbol(self, name: str) -> Value:
        if name not in self._known:
            source, axis = self.symbols[name]
            shape = self.raw("Shape", [source], "int64")
            self._known[name] = self.raw("Gather", [shape, self.constant([axis])], "int64")
        return self._known[name]


def _result(op: str, dtype: str, place: int) -> str:
    """The type of an operator's output."""
    if op in _GIVES_BOOL:
        return "bool"
    return "int64" if op in ("ArgMax", "ArgMin", "Shape") or (op, place) == ("TopK", 1) else dtype


def _numpy(dtype: str) -> Any:
    return np.dtype(getattr(ml_dtypes, dtype, None) or dtype)


_KINDS = {"f": 1, "i": 2, "s": 3, "floats": 6, "ints": 7}


def _attribute(name: str, given: Any) -> Encoded:
    kind = {float: "f", str: "s", int: "i", bool: "i"}.get(type(given))
    if kind is None:
        kind = "floats" if given and isinstance(given[0], float) else "ints"
    return encode("Attribute", name=name, type=_KINDS[kind], **{kind: given})
