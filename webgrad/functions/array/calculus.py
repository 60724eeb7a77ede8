"""Slopes and areas of what is known at points: gradients and integrals by the trapezoidal rule.

In: values at points, and their distances or places. Out: tensors of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, ShapeError
from ...ops.shapes import normalise_axes, normalise_axis
from ...tensor import Tensor
from .creation import as_tensor, asarray
from .manipulation import concat
from .reductions import sum as total
from .reshaping import part, reshape
from .scans import cumulative_sum


def _numbers(op: str, x: Any) -> Tensor:
    given = as_tensor(op, x)
    return given if given.dtype.kind in "fc" else given.astype(dtypes.float32)


def _along(x: Any, axis: int, rank: int) -> Any:
    """Numbers of one dimension laid along an axis."""
    return reshape(x, (-1, *(1,) * (rank - 1 - axis)))


def _areas(op: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Tensor, int]:
    """The area between each point and the next."""
    y = _numbers(op, y)
    along = normalise_axis(op, axis, y.ndim)
    size = y.shape[along]
    heights = part(y, along, min(1, size), size) + part(y, along, 0, max(size - 1, 0))
    if x is None:
        return heights * dx / 2, along
    places = as_tensor(op, x)
    if places.ndim == 1:
        widths: Any = _along(places[1:] - places[:-1], along, y.ndim)
    else:
        at = places.ndim - y.ndim + along
        count = places.shape[at]
        widths = part(places, at, min(1, count), count) - part(places, at, 0, max(count - 1, 0))
    return heights * widths / 2, along


def trapezoid(y: Tensor, x: Tensor | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral of values y at places x, or at a distance dx of each other, by trapezoids.

    >>> wg.trapezoid(wg.asarray([1.0, 2.0, 3.0])).item()
    4.0
    """
    areas, along = _areas("trapezoid", y, x, dx, axis)
    return total(areas, axis=along - as_tensor("trapezoid", y).ndim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integrals from the first place up to each later one, by trapezoids.

    >>> wg.cumulative_trapezoid(wg.asarray([1.0, 2.0, 3.0])).tolist()
    [1.5, 4.0]
    """
    areas, along = _areas("cumulative_trapezoid", y, x, dx, axis)
    return cumulative_sum(areas, axis=along - as_tensor("cumulative_trapezoid", y).ndim)


def gradient(
    x: Tensor, *spacing: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> list[Tensor]:
    """The slope at each element along axes, a tensor for each: by both neighbours, at the ends by one side.

    `spacing` is one distance for all axes, or for each a distance or the places of its elements.
    `edge_order` 2 takes parabolas at the ends.

    >>> [each.tolist() for each in wg.gradient(wg.asarray([1.0, 4.0, 9.0]))]
    [[3.0, 4.0, 5.0]]
    """
    x = _numbers("gradient", x)
    axes = normalise_axes("gradient", axis, x.ndim)
    if isinstance(axis, Sequence):
        axes = tuple(normalise_axis("gradient", each, x.ndim) for each in axis)
    steps = list(spacing) or [1.0]
    if len(steps) == 1 and len(axes) != 1:
        steps *= len(axes)
    if len(steps) != len(axes):
        raise ArgumentError(f"gradient: {len(spacing)} spacings for {len(axes)} axes: give one for each")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order!r}")
    for each in axes:
        if x.shape[each] <= edge_order:
            raise ShapeError(
                f"gradient of shape {x.shape} along axis {each}: it needs {edge_order + 1} elements at least"
            )
    return [_slope(x, each, step, edge_order) for each, step in zip(axes, steps, strict=True)]


def _slope(x: Tensor, axis: int, step: Any, edge_order: int) -> Tensor:
    size = x.shape[axis]

    def at(start: int, stop: int) -> Tensor:
        return part(x, axis, start, stop)

    if getattr(step, "ndim", 0) or isinstance(step, (list, tuple)):
        given = step if isinstance(step, Tensor) else asarray(step, device=x.device)
        places = given.astype(x.dtype if x.dtype.kind == "f" else dtypes.float32)
        if places.shape != (size,):
            raise ShapeError(f"gradient: {places.shape} places for {size} elements along axis {axis}")
        gaps: Any = _along(places[1:] - places[:-1], axis, x.ndim)
        before, after = part(gaps, 0, 0, size - 2), part(gaps, 0, 1, size - 1)
        first, last = part(gaps, 0, 0, 1), part(gaps, 0, size - 2, size - 1)
    else:
        before = after = first = last = step
    rising = (at(2, size) - at(1, size - 1)) / after if size > 2 else at(0, 0)
    falling = (at(1, size - 1) - at(0, size - 2)) / before if size > 2 else at(0, 0)
    inner = (rising * before + falling * after) / (before + after) if size > 2 else at(0, 0)
    start = (at(1, 2) - at(0, 1)) / first
    end = (at(size - 1, size) - at(size - 2, size - 1)) / last
    if edge_order == 2:
        start, end = 2 * start - part(inner, axis, 0, 1), 2 * end - part(inner, axis, size - 3, size - 2)
    return concat([start, inner, end], axis) if size > 2 else concat([start, end], axis)
