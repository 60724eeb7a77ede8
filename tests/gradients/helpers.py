"""Shared by the tests of gradients: finite differences in float64, samples over layouts, and the comparison.

In: functions of NumPy arrays, and the same functions of tensors. Out: a text for each gradient that differs.
The invariant: what gradients are compared with is made of values that NumPy computed, never of webgrad's.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import webgrad as wg
from webgrad.dtypes import DType

__all__ = [
    "LAYOUTS",
    "Array",
    "Input",
    "difference",
    "gradients_of",
    "integer",
    "is_wanted",
    "slopes",
    "weights",
]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
View = Callable[[Any, Any], Any]  # of NumPy or webgrad, and an array or tensor of it
STEP = 1e-3


# Layouts: the shape of what lies in memory, and how the operand is had from it


def _same(xp: Any, x: Any) -> Any:
    return x


LAYOUTS: dict[str, Callable[[Shape], tuple[Shape, View]]] = {
    "contiguous": lambda shape: (shape, _same),
    "transposed": lambda shape: (shape[::-1], lambda xp, x: x.T),
    "sliced": lambda shape: (
        tuple(2 * size + 1 for size in shape),
        lambda xp, x: x[tuple(slice(1, None, 2) for _ in shape)],
    ),
    "backwards": lambda shape: (shape, lambda xp, x: x[tuple(slice(None, None, -1) for _ in shape)]),
    "broadcast": lambda shape: (
        tuple(1 if not axis else size for axis, size in enumerate(shape)),
        lambda xp, x: xp.broadcast_to(x, shape),
    ),
}


@dataclass(frozen=True, slots=True)
class Input:
    """What lies in memory, and how an operand is had from it; only float64 is differentiated by."""

    base: Array
    view: View = field(default=_same)

    @property
    def is_float(self) -> bool:
        """Whether gradients are asked for."""
        return is_wanted(self.base)


def is_wanted(array: Array) -> bool:
    """Whether gradients by it are asked for: other types than float64 stay as they are."""
    return bool(array.dtype == np.float64)


def integer(values: Any) -> Input:
    """Places, or anything else that has no gradient."""
    return Input(np.asarray(values))


def weights(shape: Shape) -> Array:
    """How much each element of a result counts: no two alike, so that none is taken for another."""
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(np.float32).astype(np.float64)


# Finite differences


def slopes(function: Callable[..., Any], inputs: Sequence[Array], at: int, step: Any = STEP) -> Array:
    """The gradient of sum(weights × function) by one input, each element moved by itself.

    Of four values, so that the error goes with the fourth power of the step. Elements of the result are
    subtracted before they are summed, since they may be of very different sizes.
    """
    arrays = [each.copy() for each in inputs]
    x = arrays[at]
    steps = np.broadcast_to(step, x.shape)
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        middle, h = x[place], steps[place]
        values = []
        for times in (1, -1, 2, -2):
            x[place] = middle + times * h
            values.append(np.array(function(*arrays), np.float64))
        x[place] = middle
        slope = (8 * (values[0] - values[1]) - (values[2] - values[3])) / (12 * h)
        result[place] = np.sum(weights(slope.shape) * slope)
    return result


# webgrad's


def gradients_of(
    function: Callable[..., Any], bases: Sequence[Array], dtype: DType, device: Any
) -> list[wg.Tensor | None]:
    """The gradients of sum(weights × function) by all inputs that are floats, not computed yet."""
    tensors = [
        wg.asarray(each, dtype=dtype, device=device).requires_grad_()
        if is_wanted(each)
        else wg.asarray(each, device=device)
        for each in bases
    ]
    result = function(*tensors)
    factor = wg.asarray(weights(result.shape), dtype=result.dtype, device=device)
    (result * factor).sum().backward()
    assert all(each.grad.dtype is each.dtype for each in tensors if each.grad is not None)
    return [each.grad for each in tensors]


# Comparison


def difference(found: Array, wanted: Array, relative: float, absolute: float) -> str:
    """What is wrong with a gradient; nothing where it is right."""
    if found.shape != wanted.shape:
        return f"the shape is {found.shape}, not {wanted.shape}"
    if not found.size:
        return ""
    error = np.abs(found.astype(np.float64) - wanted) - (relative * np.abs(wanted) + absolute)
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(error, nan=np.inf))), error.shape)
    return (
        "" if error[worst] <= 0 else f"at {tuple(map(int, worst))}: {found[worst]!r}, not {wanted[worst]!r}"
    )


# Along a line: what functions of many inputs are checked by


def directions(name: str, arrays: Sequence[Array], count: int) -> list[list[Array]]:
    """Ways to move all inputs at once; a gradient that is wrong anywhere shows along nearly all of them."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    return [
        [generator.uniform(0.5, 1.0, each.shape) * generator.choice((-1, 1), each.shape) for each in arrays]
        for _ in range(count)
    ]


def slope_along(
    function: Callable[..., Any], arrays: Sequence[Array], way: Sequence[Array], step: float
) -> Any:
    """How a function changes along a way, by finite differences."""

    def at(times: float) -> Any:
        moved = [x + times * step * d if is_wanted(x) else x for x, d in zip(arrays, way, strict=True)]
        return function(*moved)

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
