"""Values where faults hide (zeros of both signs, ties, equal operands), and what gradients are there.

In: shapes and a range. Out: arrays of few values, exact in half precision, so that many are equal. `RULES`
say, row by row, what the gradient is where finite differences have no answer: in NumPy, apart from webgrad's
own rules. At ties it is PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["RULES", "coarse"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Rule = Callable[..., tuple[Array | None, ...]]


def coarse(generator: np.random.Generator, shape: Shape, low: float, high: float) -> Array:
    """Numbers on a coarse grid inside of a range around 0, where that has one; half of the zeros are -0."""
    near, far = max(low, -2.0), min(high, 2.0)
    step = 0.5 if far - near > 1.5 else 0.125
    grid = np.arange(np.ceil(near / step), np.floor(far / step) + 1) * step
    margin = 0.02 * (far - near)
    grid = grid[(grid > near + margin) & (grid < far - margin)]
    values = generator.choice(grid, shape)
    return np.asarray(np.where((values == 0) & (generator.random(shape) < 0.5), -0.0, values))


# The rules: of the weights of the results, the attributes, and the operands


def _nothing(weights: Array, attributes: Any, *operands: Array) -> tuple[Array, ...]:
    """Steps."""
    return tuple(np.zeros(each.shape) for each in operands)


def _elements(slopes: Callable[..., tuple[Any, ...]]) -> Rule:
    """Of a map, from the slopes by its operands."""

    def rule(weights: Array, attributes: Any, *operands: Array) -> tuple[Array, ...]:
        found = slopes(*np.broadcast_arrays(*operands))
        pairs = zip(found, operands, strict=True)
        return tuple(_summed(weights * slope, each.shape) for slope, each in pairs)

    return rule


def _summed(gradient: Array, shape: Shape) -> Array:
    more = gradient.ndim - len(shape)
    short = tuple(at for at, size in enumerate(shape) if size == 1)
    return np.asarray(gradient.sum(axis=tuple(range(more))).sum(axis=short, keepdims=True))


def _angle(y: Array, x: Array) -> tuple[Array, Array]:
    square = x * x + y * y
    inverse = np.where(square == 0, 0, 1 / np.where(square == 0, 1, square))
    return x * inverse, -y * inverse


def _shared(extreme: Callable[..., Any]) -> Rule:
    def rule(weights: Array, attributes: Any, x: Array) -> tuple[Array, ...]:
        axes = attributes[0]
        if not x.size:
            return (np.zeros(x.shape),)
        hit = x == extreme(x, axis=axes, keepdims=True)
        return (hit * np.expand_dims(weights, axes) / hit.sum(axis=axes, keepdims=True),)

    return rule


def _running(better: Callable[[Any, Any], Any]) -> Rule:
    """To the last of those that equal the extreme so far."""

    def rule(weights: Array, attributes: Any, x: Array) -> tuple[Array, ...]:
        result = np.zeros(x.shape)
        lines, sums, totals = (np.moveaxis(each, attributes[0], -1) for each in (x, result, weights))
        for place in np.ndindex(lines.shape[:-1]):
            best = 0
            for at, value in enumerate(lines[place]):
                best = at if better(value, lines[place][best]) else best
                sums[place][best] += totals[place][at]
        return (result,)

    return rule


def _scattered_max(weights: Array, attributes: Any, base: Array, index: Array, updates: Array) -> Any:
    rows = np.clip(index, 0, len(base) - 1)
    largest = base.copy()
    np.maximum.at(largest, rows, updates)
    stays, wins = base == largest, updates == largest[rows]
    count = stays.astype(np.float64)
    np.add.at(count, rows, wins)
    return stays * weights / count, None, wins * (weights / count)[rows]


RULES: dict[str, Rule] = {
    **dict.fromkeys(("sign", "floor", "ceil", "round", "trunc", "floor_divide"), _nothing),
    "abs": _elements(lambda a: (np.sign(a),)),
    "maximum": _elements(lambda a, b: ((a > b) + (a == b) * 0.5, (b > a) + (a == b) * 0.5)),
    "minimum": _elements(lambda a, b: ((a < b) + (a == b) * 0.5, (b < a) + (a == b) * 0.5)),
    "clamp_min": _elements(lambda a, b: (a >= b, b > a)),
    "clamp_max": _elements(lambda a, b: (a <= b, b < a)),
    "remainder": _elements(lambda a, b: (np.ones(a.shape), -np.floor(a / b))),
    "atan2": _elements(_angle),
    "max": _shared(np.max),
    "min": _shared(np.min),
    "cumulative_max": _running(lambda new, old: new >= old),
    "cumulative_min": _running(lambda new, old: new <= old),
    "scatter_max": _scattered_max,
}
