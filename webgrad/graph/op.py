"""The record of a primitive op: one row of `ops/table.py`, which nodes carry to every later stage.

Later stages know the ops by their kind and their row (NumPy reference, WGSL), never by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Literal, cast

from ..arrays import np

Kind = Literal[
    "leaf",  # storage: a buffer of the device, or a NumPy array on the cpu
    "scalar",  # one number, known to the host; a parameter of kernels
    "map",  # element by element, with broadcasting
    "cast",  # the same elements in another dtype: by value, or by bits
    "iota",  # the index along an axis
    "move",  # the same elements at other indices
    "view",  # pairs of floats as complex numbers, or back: the same memory
    "gather",  # indices that are themselves computed
    "decode",  # weights of quantised blocks, from their words
    "concat",  # several tensors along an axis
    "reduce",  # a reduction over axes
    "contract",  # a matrix product
    "attend",  # attention: softmax of a product, times a third
    "scan",  # running totals along an axis
    "sort",  # the permutation that sorts
    "scatter",  # elements written to computed indices
    "fft",  # Fourier transforms
    "kernel",  # a result of a kernel that a user wrote
    "composite",  # a graph as one node, before later stages see it; of several results a bundle and items
    "bundle",
    "item",
]
Infer = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[tuple[int, ...], Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """A primitive.

    `reference` computes it: of a map op from the arrays, of any other from the result's signature and them.
    `wgsl` spells a map op, `{0}` its first operand: one text, or one per compute type (f32 i32 u32 bool i64
    u64 f64). `wg_…` names are functions of `wgsl/library`. `types` are the kinds of dtype it is offered for.
    """

    name: str
    kind: Kind
    arity: int  # -1: any number
    reference: Callable[..., Any] | str  # a text names a function of NumPy
    wgsl: str | Mapping[str, str] = ""
    types: str = "biuf"
    result: Literal["same", "bool"] | str = "same"  # a dtype's name where it is always that
    infer: Infer | None = None  # (input signatures, attributes) → shape, dtype; None: broadcast, by `result`
    cost: int = 1  # of a map op: about how many additions
    identity: Callable[[Any], Any] | None = None  # of a reduce: the start value for a dtype
    domain: tuple[float, float] = (-1e3, 1e3)  # floats the tests draw from, apart from special values
    tolerance: float = 0.0  # of float32 against NumPy in float64, in units in the last place; 0: equal
    doc: str = ""
    example: str = ""  # of a map op that is a public function and a method: `[1, 2], 3 -> [4 5]`
    function: str = ""  # that function's name, where it is not the row's
    # its result for integers and bools, where the row takes only floats
    integers: Literal["float32", "same", "true", "false"] = "float32"
    # By each input, as text over the functions of `gradients/rules.py`: g is the result's gradient, y the
    # result, a, b, c (or xs) the inputs; "0" where it is always that. One text that is not a tuple gives all.
    # (): declared to have none.
    gradient: str | tuple[str, ...] | None = None
    # of movement: its attributes without the places at which it begins, which each run may have others of
    form: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None

    @property
    def public(self) -> str:
        """The name of the public function and method of the row; "" where there is none."""
        return (self.function or self.name) if self.example else ""

    @property
    def numpy(self) -> Callable[..., Any]:
        """The function that computes it on arrays."""
        return _of_numpy(self.reference) if isinstance(self.reference, str) else self.reference

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


@cache
def _of_numpy(name: str) -> Callable[..., Any]:
    return cast(Callable[..., Any], attrgetter(name)(np))


def _stored(*_: Any) -> Any:
    raise AssertionError("a leaf has its value")


def _number(sig: Any) -> Any:
    """A number that a pass put into a graph; a user's is known when the graph is run."""
    return sig.attributes[0]


LEAF = Op("leaf", "leaf", 0, _stored, gradient=())
SCALAR = Op("scalar", "scalar", 0, _number, gradient=())
