"""What calls are drawn by: an array's shape, and numbers, axes and other arrays for a call on it.

In: a generator and a dtype. Out: `Drawer`, from which the families make pairs of functions, webgrad's and
NumPy's, and `Calls`, a program of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import webgrad as wg
from tests.properties.drawing import BOUNDS, draw_few
from tests.properties.helpers import Array, Shape
from webgrad.tensor import Tensor

__all__ = [
    "ANY",
    "FLOATS",
    "GRADIENT",
    "KINDS",
    "MOST",
    "NUMBERS",
    "REAL",
    "TURNED",
    "Calls",
    "Drawer",
    "Family",
    "Pair",
    "Refused",
    "alike",
    "beside",
    "draw_values",
    "renamed",
    "same",
]


Function = Callable[[Any], Any]
Pair = tuple[Function, Function]  # webgrad's, NumPy's
KINDS: dict[wg.DType, float] = {
    wg.float32: 0.5,
    wg.float16: 0.1,
    wg.bfloat16: 0.05,
    wg.float64: 0.1,
    wg.int32: 0.12,
    wg.int8: 0.05,
    wg.complex64: 0.08,
}
FEW, TURNED, GRADIENT = 0.4, 0.3, {False: 0.4, True: 0.1}  # shares; of gradients: on the cpu, on a GPU
MOST = 2_000  # elements
ANY, REAL, FLOATS, NUMBERS = "ifc", "if", "f", "fc"


class Refused(Exception):
    """A call that cannot be made here, or that would make the comparison meaningless."""


@dataclass(slots=True)
class Calls:
    """An array, and calls one after another; `wanted` is what comes of them, in its dtype and exactly."""

    dtype: wg.DType
    start: Array
    steps: list[tuple[str, Pair]] = field(default_factory=list)
    wanted: Array = field(default_factory=lambda: np.zeros(0))
    exact: Array = field(default_factory=lambda: np.zeros(0))
    smooth: bool = True  # no choice was made between numbers that were rounded

    def __repr__(self) -> str:
        names = " → ".join(name for name, _ in self.steps)
        return f"{self.dtype.name} {self.start.shape}: {names}"


class Drawer:
    """Draws the arguments of a call on an array."""

    def __init__(self, random: np.random.Generator, dtype: wg.DType) -> None:
        self.random, self.dtype = random, dtype
        self.shape: Shape = ()
        self.settled = True  # whether the array has been rounded nowhere

    def one(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def axis(self, least: int = 0) -> int:
        """An axis, at times counted from the end; of so many elements at least."""
        rank = len(self.shape)
        axis = int(self.random.integers(rank)) if rank else 0
        if not rank or self.shape[axis] < least:
            raise Refused("no axis")
        return axis - rank if self.chance(0.3) else axis

    def axes(self, least: int = 0) -> Any:
        if self.chance(0.2) and 0 not in self.shape:
            return None
        return self.axis(least)

    def order(self) -> tuple[int, ...]:
        if len(self.shape) < 2:
            raise Refused("nothing to transpose")
        return tuple(int(each) for each in self.random.permutation(len(self.shape)))

    def number(self) -> float | int:
        value = self.one(BOUNDS)
        return int(value) if self.dtype.kind == "i" else float(value)

    def array(self, shape: Shape) -> Array:
        """Another array of the dtype."""
        return draw_values(self.random, self.dtype, shape)

    def index(self, size: int, shape: Shape) -> Array:
        return self.random.integers(0, size, shape).astype(np.int32)

    def choose(self) -> None:
        """Refuse a choice between numbers that were rounded: others may round otherwise."""
        if not self.settled:
            raise Refused("a choice by a hair")


def draw_values(random: np.random.Generator, dtype: wg.DType, shape: Shape) -> Array:
    """Small numbers; often few different ones."""
    if dtype.kind == "i":
        return random.integers(-3, 4, shape).astype(dtype.numpy)
    if dtype.kind == "c":
        both = [draw_values(random, wg.float32, shape) for _ in range(2)]
        return np.asarray(both[0] + 1j * both[1]).astype(dtype.numpy)
    if random.random() < FEW:
        return draw_few(random, dtype, shape)
    return np.asarray(random.uniform(-2, 2, shape)).astype(dtype.numpy)


def same(name: str, *args: Any, **options: Any) -> Pair:
    """Functions that have one name and one way to be called."""
    return (
        lambda x: getattr(wg, name)(x, *args, **options),
        lambda x: getattr(np, name)(x, *args, **options),
    )


def renamed(name: str, numpy: Function, *args: Any, **options: Any) -> Pair:
    return lambda x: getattr(wg, name)(x, *args, **options), numpy


def beside(x: Tensor, array: Array) -> Tensor:
    """Numbers on a tensor's device, in its dtype."""
    return wg.asarray(array, device=x.device).astype(x.dtype)


def alike(x: Array, array: Array) -> Array:
    """An array in the precision of another."""
    return array.astype(x.dtype) if array.dtype.kind not in "biu" else array


# name → kinds of dtypes, how often, the call
Family = dict[str, tuple[str, float, Callable[[Drawer], Pair]]]
