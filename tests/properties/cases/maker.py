"""Operands and cases for one op, dtype and device; which ops stand for others of their kind."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from tests.properties.helpers import (
    LAYOUTS,
    SHAPES,
    AnyDevice,
    Array,
    Case,
    Operand,
    Shape,
    draw,
    place,
)
from webgrad import dtypes
from webgrad.dtypes import DType
from webgrad.graph.node import make
from webgrad.graph.op import Op
from webgrad.reference.plan import value_of

__all__ = ["EPSILON", "STANDS_FOR", "THOROUGH", "Cases", "Maker", "follows"]


THOROUGH = (dtypes.float32, dtypes.int8)  # a whole word, and a part of one
# Ops whose kernels have the same indices as all others of their kind; what differs is one expression.
STANDS_FOR = {"map": ("add", "negative", "where"), "reduce": ("sum", "max"), "scan": ("cumulative_sum",)}
EPSILON = float(np.finfo(np.float32).eps)
Cases = Iterator[Case]
T = TypeVar("T")


def follows(op: Op, device: AnyDevice) -> bool:
    """Whether another op stands for this one."""
    return device.name != "cpu" and op.name not in STANDS_FOR.get(op.kind, (op.name,))


class Maker:
    """Operands and cases for one op, dtype and device; the same numbers whatever ran before."""

    def __init__(self, op: Op, dtype: DType, device: AnyDevice) -> None:
        self.op = op
        self.dtype = dtype
        self.device = device
        self.turn = zlib.crc32(op.name.encode()) + (*dtypes.REAL, *dtypes.COMPLEX).index(dtype)
        self.generator = np.random.default_rng(zlib.crc32(f"{op.name} {dtype.name}".encode()))
        self.follows = follows(op, device)
        self.thorough = device.name == "cpu" or (dtype in THOROUGH and not self.follows)

    def draw(self, shape: Shape, dtype: DType | None = None) -> Array:
        """Elements from the op's domain."""
        return draw(self.generator, dtype or self.dtype, shape, self.op.domain)

    def operand(self, layout: str, shape: Shape, dtype: DType | None = None, turn: int = 0) -> Operand:
        """Random elements in a layout."""
        return LAYOUTS[layout](lambda sizes: self.draw(sizes, dtype), shape, self.device, turn)

    def plain(self, value: Array) -> Operand:
        """An array as it is."""
        return Operand(place(value, self.device), value)

    def spread(self, choices: Sequence[T]) -> Iterator[tuple[str, T]]:
        """Each layout with each choice, or in turn with one; every second layout where another op stands."""
        for at, layout in enumerate(LAYOUTS):
            if self.follows and (self.turn + at) % 2:
                continue
            own = choices if self.thorough else [choices[(self.turn + at) % len(choices)]]
            yield from ((layout, each) for each in own)

    def every_layout(self, shapes: Sequence[Shape] = SHAPES) -> Iterator[tuple[str, Operand]]:
        """An operand of each layout and shape, with its label."""
        for layout, shape in self.spread(shapes):
            yield f"{layout} {shape}", self.operand(layout, shape, turn=self.turn)

    def case(self, label: str, operands: Sequence[Operand], attributes: tuple[Any, ...] = ()) -> Case:
        """Exactly what the row's NumPy function gives."""
        node = make(self.op, tuple(each.node for each in operands), attributes)
        return Case(
            f"{self.op.name}, {label}", node, (value_of(node.sig, [each.value for each in operands]),)
        )

    def close(
        self,
        label: str,
        operands: Sequence[Operand],
        attributes: tuple[Any, ...],
        wanted: Array,
        slack: Array,
    ) -> Case:
        """About what was computed in float64; the slack is absolute."""
        node = make(self.op, tuple(each.node for each in operands), attributes)
        return Case(f"{self.op.name}, {label}", node, (wanted.reshape(node.sig.shape),), 1.0, slack)
